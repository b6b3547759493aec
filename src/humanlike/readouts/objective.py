"""The multinomial logistic objective of all folds at once, on one shared feature matrix.

Shapes: N rows, D features, K classes that are present, M models (one a fold, or a single one on all rows).

Model m is fitted on the rows outside its fold. With z the row standardised over all rows (the one matrix in memory),
its logits are ((z - shift_m) / scale_m) · W_m + b_m: `shift_m` and `scale_m` turn z into the row standardised with
the statistics of the model's own training rows, so nothing of a held-out row enters, and no fold needs its own copy.
The objective, in the mean form used here, is

    F_m(W, b) = (1/n_m) Σ_i CE_i + (λ_m / 2) ‖W‖²,   λ_m = 1 / (C n_m),

which is scikit-learn's C·Σ CE + ½‖W‖² divided by C·n_m. The intercept b is free. A parameter array θ is (D+1, K): W
above b. With two classes scikit-learn penalises the one vector w = W_1 - W_0 by ½‖w‖², which at the optimum is ‖W‖²:
λ_m is doubled there, so that the solutions are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from humanlike.readouts.workers import Each

CHUNK_ROWS = 2048
TASK_ROWS = 4 * CHUNK_ROWS  # of one fold; summed by itself, and the sums in order
ALL_ROWS = -1  # fold of rows that every model is trained on
ROUNDINGS = 4  # a spread below this many roundings of the mean is no signal


def penalty_strength(C: float, train_size: int, num_classes: int) -> float:
    """λ = 1 / (C n) of the mean objective, twice that with two classes; see the module's docstring.

    Example:
        >>> penalty_strength(0.5, 4, 3), penalty_strength(0.5, 4, 2)
        (0.5, 1.0)
    """
    return (2.0 if num_classes == 2 else 1.0) / (C * train_size)


@dataclass(frozen=True)
class Block:
    """Rows `start` … `stop`-1, all of one fold."""

    fold: int
    start: int
    stop: int

    def parts(self, rows: int) -> list[Block]:
        """The block in pieces of `rows` rows, the last one shorter.

        Example:
            >>> [(part.start, part.stop) for part in Block(0, 10, 15).parts(3)]
            [(10, 13), (13, 15)]
        """
        return [Block(self.fold, s, min(s + rows, self.stop)) for s in range(self.start, self.stop, rows)]


@dataclass(frozen=True)
class FoldedProblem:
    """Features sorted by fold, and the affine map of every model; see the module's docstring.

    Attributes:
        z_ND: (N, D) float32 rows, standardised over all rows and sorted by fold.
        y_N: (N,) int64 class position 0 … K-1, in the same order.
        blocks: Row ranges of the folds.
        shift_MD: (M, D) float64.
        scale_MD: (M, D) float64, positive.
        C: Inverse strength of the penalty.
        num_classes: K.
    """

    z_ND: torch.Tensor
    y_N: torch.Tensor
    blocks: tuple[Block, ...]
    shift_MD: torch.Tensor
    scale_MD: torch.Tensor
    C: float
    num_classes: int

    @property
    def num_models(self) -> int:
        """M."""
        return len(self.shift_MD)

    def train_blocks(self, model: int) -> list[Block]:
        """The blocks that model `model` is trained on."""
        return [block for block in self.blocks if block.fold != model]

    def train_size(self, model: int) -> int:
        """n_m, the number of rows that model `model` is trained on."""
        return sum(block.stop - block.start for block in self.train_blocks(model))

    def penalty(self, model: int) -> float:
        """λ_m; see `penalty_strength`."""
        return penalty_strength(self.C, self.train_size(model), self.num_classes)

    @property
    def pass_flops(self) -> int:
        """Floating point operations of a pass over the rows for all models: two products with every training row."""
        return 4 * self.z_ND.shape[1] * self.num_classes * sum(map(self.train_size, range(self.num_models)))

    def on_shared_rows(self, model: int, theta: torch.Tensor) -> torch.Tensor:
        """θ of model `model`, (D+1, K), rewritten so that its logits are z · V + c; the rows are V above c."""
        v_DK = theta[:-1] / self.scale_MD[model].to(theta.dtype)[:, None]
        c_K = theta[-1] - self.shift_MD[model].to(theta.dtype) @ v_DK
        return torch.cat([v_DK, c_K[None]])

    def training_rows(self, model: int, position: torch.Tensor) -> torch.Tensor:
        """Some training rows as a model sees them, standardised, float32.

        Args:
            model: Index of the model.
            position: Which, counted among the training rows of the model; any shape.

        Returns:
            (*position.shape, D).
        """
        place_N = torch.cat([torch.arange(b.start, b.stop, device=position.device) for b in self.train_blocks(model)])
        rows = self.z_ND[place_N[position]]
        return rows.sub_(self.shift_MD[model].float()).div_(self.scale_MD[model].float())

    def value_and_gradient(
        self, models: list[int], thetas: list[torch.Tensor], each: Each = map
    ) -> tuple[list[float], list[torch.Tensor]]:
        """F and its gradient for several models in one pass over the rows.

        Every block of rows is multiplied once, with the weights of all the models that train on it side by side.

        Args:
            models: Distinct model indices.
            thetas: Their (D+1, K) parameters, all of one dtype, in which the products are computed; sums over rows of
                the loss are float64 always.
            each: `map`, or one that works side by side; the results are the same.

        Returns:
            Values (Python floats) and gradients ((D+1, K), dtype of the parameters), in the order of `models`.
        """
        K = self.num_classes
        shared_MDK = torch.stack([self.on_shared_rows(m, t) for m, t in zip(models, thetas, strict=True)])
        gradient_MDK = torch.zeros_like(shared_MDK)
        loss_M = torch.zeros(len(models), dtype=torch.float64, device=shared_MDK.device)
        tasks = []
        for block in self.blocks:
            training = [i for i, model in enumerate(models) if model != block.fold]
            if training:
                stacked_EIK = shared_MDK[training].permute(1, 0, 2).reshape(shared_MDK.shape[1], -1).contiguous()
                tasks += [(training, part, stacked_EIK) for part in block.parts(TASK_ROWS)]
        sums = each(lambda task: self._block_loss(task[1], task[2]), tasks)
        for (training, _, _), (loss_I, gradient_EIK) in zip(tasks, sums, strict=True):
            gradient_MDK[training] += gradient_EIK.view(-1, len(training), K).permute(1, 0, 2)
            loss_M[training] += loss_I
        values, gradients = [], []
        for i, (model, theta) in enumerate(zip(models, thetas, strict=True)):
            n, lam = self.train_size(model), self.penalty(model)
            weight_DK = theta[:-1]
            values.append(float(loss_M[i]) / n + 0.5 * lam * float(weight_DK.double().square().sum()))
            gradients.append(self._own_gradient(model, gradient_MDK[i], n).add_(_above_zero(lam * weight_DK)))
        return values, gradients

    def _block_loss(self, block: Block, stacked_EIK: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(I,) summed cross-entropy of a block for I models side by side, and its (D+1, I·K) gradient in (V, c)."""
        K, dtype = self.num_classes, stacked_EIK.dtype
        models = stacked_EIK.shape[1] // K
        gradient_EIK = torch.zeros_like(stacked_EIK)
        loss_I = torch.zeros(models, dtype=torch.float64, device=stacked_EIK.device)
        for start in range(block.start, block.stop, CHUNK_ROWS):
            rows = slice(start, min(start + CHUNK_ROWS, block.stop))
            z_BD = self.z_ND[rows].to(dtype)
            p_BIK = torch.addmm(stacked_EIK[-1], z_BD, stacked_EIK[:-1]).view(len(z_BD), models, K)
            y_BI1 = self.y_N[rows][:, None, None].expand(-1, models, 1)
            loss_I += _softmax_in_place(p_BIK, y_BI1).sum(0, dtype=torch.float64)
            p_BIK.scatter_add_(2, y_BI1, torch.full_like(y_BI1, -1, dtype=dtype))
            residual_BIK = p_BIK.view(len(z_BD), -1)
            gradient_EIK[:-1].addmm_(z_BD.T, residual_BIK)
            gradient_EIK[-1] += residual_BIK.sum(0)
        return loss_I, gradient_EIK

    def _own_gradient(self, model: int, gradient_EK: torch.Tensor, n: int) -> torch.Tensor:
        """The gradient of the mean loss in the model's own (W, b), from the summed one in (V, c)."""
        dtype = gradient_EK.dtype
        shift_D, scale_D = self.shift_MD[model].to(dtype), self.scale_MD[model].to(dtype)
        weight_DK = (gradient_EK[:-1] - shift_D[:, None] * gradient_EK[-1]) / scale_D[:, None]
        return torch.cat([weight_DK, gradient_EK[-1:]]).div_(n)

    def logits(self, model: int, theta: torch.Tensor, blocks: list[Block]) -> torch.Tensor:
        """(rows of `blocks`, K) logits of one model in the dtype of its parameters."""
        shared_EK = self.on_shared_rows(model, theta)
        parts = [
            torch.addmm(shared_EK[-1], self.z_ND[s : min(s + CHUNK_ROWS, b.stop)].to(theta.dtype), shared_EK[:-1])
            for b in blocks
            for s in range(b.start, b.stop, CHUNK_ROWS)
        ]
        return torch.cat(parts)

    def back_project(self, model: int, rows_NK: torch.Tensor) -> torch.Tensor:
        """(D, K) mean over a model's training rows of its standardised features times `rows_NK`, a row for each."""
        shared_DK = torch.zeros(self.z_ND.shape[1], rows_NK.shape[1], dtype=rows_NK.dtype, device=rows_NK.device)
        done = 0
        for block in self.train_blocks(model):
            for start in range(block.start, block.stop, CHUNK_ROWS):
                stop = min(start + CHUNK_ROWS, block.stop)
                part_BK = rows_NK[done : done + stop - start]
                shared_DK.addmm_(self.z_ND[start:stop].to(rows_NK.dtype).T, part_BK)
                done += stop - start
        summed_EK = torch.cat([shared_DK, rows_NK.sum(0, keepdim=True)])
        return self._own_gradient(model, summed_EK, done)[:-1]


def _softmax_in_place(logit_BIK: torch.Tensor, y_BI1: torch.Tensor) -> torch.Tensor:
    """Turn logits into probabilities in place and return the (B, I) cross-entropy; one exponential an entry."""
    top_BI1 = logit_BIK.amax(2, keepdim=True)
    logit_BIK.sub_(top_BI1)
    chosen_BI1 = logit_BIK.gather(2, y_BI1)
    logit_BIK.exp_()
    total_BI1 = logit_BIK.sum(2, keepdim=True)
    logit_BIK.div_(total_BI1)
    return (total_BI1.log() - chosen_BI1)[..., 0]


def _above_zero(weight_DK: torch.Tensor) -> torch.Tensor:
    return torch.cat([weight_DK, torch.zeros_like(weight_DK[:1])])


def standardisation(f_ND: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, and which columns are constant.

    Constant are columns with one value only, or with a spread below four roundings of their mean, which is no signal;
    their standard deviation is given as 1.

    Args:
        f_ND: (N, D) features, finite.

    Returns:
        (D,) float64 mean, (D,) float64 positive standard deviation, (D,) bool constant.

    Example:
        >>> mean_D, scale_D, constant_D = standardisation(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> mean_D.tolist(), scale_D.tolist(), constant_D.tolist()
        ([2.0, 5.0], [1.0, 1.0], [False, True])
    """
    n, starts = len(f_ND), range(0, len(f_ND), CHUNK_ROWS)
    mean_D = sum(f_ND[s : s + CHUNK_ROWS].sum(0, dtype=np.float64) for s in starts) / n
    square_D = sum(np.square(f_ND[s : s + CHUNK_ROWS] - mean_D).sum(0) for s in starts) / n
    scale_D = np.sqrt(square_D)
    noise = ROUNDINGS * np.finfo(f_ND.dtype).eps
    constant_D = (f_ND.min(0) == f_ND.max(0)) | (scale_D <= noise * np.abs(mean_D))
    return mean_D, np.where(constant_D, 1.0, scale_D), constant_D
