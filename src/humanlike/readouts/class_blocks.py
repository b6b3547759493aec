"""The Hessian's block of every class, whole: what pays where there are many rows. Shapes as in `preconditioner`.

With rows by the hundred for every feature the curvature of a class is spread over hundreds or thousands of them. The
few rows that `HardRows` can hold are then a small part of it, and the D × D block is what there is to know:

    A_k = Σ_hard v x xᵀ / n + (Σ_others v / n) G + λ I,

with the 2 D rows of largest v exactly, x centred on μ_k, and for the others G, the covariance over 8 D rows of all
folds. One set of blocks serves all folds, at the mean of their parameters: four of the five were trained on any row, so
a row left out counts as those see it. With few rows of a class for each feature that is wrong (the rows that a model
has not seen are its hardest), and such problems keep `HardRows`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from humanlike.readouts.objective import CHUNK_ROWS, FoldedProblem
from humanlike.readouts.preconditioner import ClassCurvature, definite_inverse, strided_rows
from humanlike.readouts.workers import Each

ROWS_A_FEATURE = 2  # hard rows of a class; more of them save no steps
BLOCK_BYTES = 2**29  # for the blocks of all classes
CLASS_ROWS_A_FEATURE = 0.6  # mean rows of a class for each feature from which on the blocks pay
MANY_ROWS = 10_000  # with fewer a fit is quick anyway
PANELS = 4  # a block's lower triangle is multiplied in that many panels, which saves 3/8 of the products


def blocks_pay(problem: FoldedProblem) -> bool:
    """Whether there are rows enough for whole blocks, and memory."""
    n, d = problem.z_ND.shape
    enough = n >= max(MANY_ROWS, CLASS_ROWS_A_FEATURE * problem.num_classes * d)
    return enough and 4 * problem.num_classes * d**2 <= BLOCK_BYTES


class ClassBlocks(ClassCurvature):
    """(A_k)⁻¹ of every class for all models; see the module's docstring.

    Args:
        problem: Features, labels and folds.
        thetas: Model → its (D+1, K) parameters; the curvature is taken at their mean.
        each: `map`, or one that works side by side.
    """

    def __init__(
        self,
        problem: FoldedProblem,
        thetas: Mapping[int, torch.Tensor],
        each: Each = map,
    ) -> None:
        n, d = problem.z_ND.shape
        lam = sum(problem.penalty(m) for m in thetas) / len(thetas)
        scale_D = problem.scale_MD.mean(0).float()
        curvature_NK, summed_DK = _curvature(problem, thetas, each)
        mean_K = curvature_NK.mean(0)
        centre_DK = summed_DK / (n * mean_K) / scale_D[:, None]
        some_RD = strided_rows(problem.z_ND, 8 * d) / scale_D
        others_DD = some_RD.T @ some_RD / len(some_RD)
        hard_rows = min(n, ROWS_A_FEATURE * d)
        self._inverse_KDD = problem.z_ND.new_empty(problem.num_classes, d, d)

        def invert(k: int) -> None:
            hard_R, position_R = curvature_NK[:, k].contiguous().topk(hard_rows)
            x_RD = problem.z_ND[position_R].div_(scale_D).sub_(centre_DK[:, k])
            x_RD *= (hard_R / n).sqrt_()[:, None]
            rest = max(float(mean_K[k]) - float(hard_R.sum()) / n, 0.0)
            block_DD = torch.add(_lower_gram(x_RD), others_DD, alpha=rest).double()
            block_DD.diagonal().add_(lam)
            self._inverse_KDD[k] = definite_inverse(block_DD)

        for _ in each(invert, range(problem.num_classes)):
            pass
        super().__init__(centre_DK, mean_K, lam)

    def _solve(self, centred_KD: torch.Tensor) -> torch.Tensor:
        return (self._inverse_KDD @ centred_KD[..., None])[..., 0]


def _curvature(
    problem: FoldedProblem, thetas: Mapping[int, torch.Tensor], each: Each
) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, K) v at the mean of the parameters, and (D, K) sum of v z over the rows."""
    shared = [problem.on_shared_rows(m, theta.float()) for m, theta in thetas.items()]
    mean_EK = torch.stack(shared).mean(0)
    curvature_NK = problem.z_ND.new_empty(len(problem.z_ND), problem.num_classes)

    def fill(start: int) -> torch.Tensor:
        rows = slice(start, start + CHUNK_ROWS)
        p_BK = torch.softmax(torch.addmm(mean_EK[-1], problem.z_ND[rows], mean_EK[:-1]), 1)
        curvature_NK[rows] = p_BK.mul_(1 - p_BK).clamp_(min=torch.finfo(p_BK.dtype).tiny)
        return problem.z_ND[rows].T @ curvature_NK[rows]

    parts = each(fill, range(0, len(curvature_NK), CHUNK_ROWS))
    summed_DK = torch.zeros_like(mean_EK[:-1])
    for part_DK in parts:
        summed_DK += part_DK
    return curvature_NK, summed_DK


def _lower_gram(x_RD: torch.Tensor) -> torch.Tensor:
    """The lower triangle of XᵀX; what is above it is partly zero."""
    d = x_RD.shape[1]
    gram_DD = x_RD.new_zeros(d, d)
    width = -(-d // PANELS)
    for start in range(0, d, width):
        stop = min(start + width, d)
        gram_DD[start:, start:stop] = x_RD[:, start:].T @ x_RD[:, start:stop]
    return gram_DD
