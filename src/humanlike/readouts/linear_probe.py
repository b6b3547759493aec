"""A linear readout trained by gradient descent on a stream, for data too large to hold as one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

from humanlike.interfaces import Backbone
from humanlike.readouts.objective import ROUNDINGS, penalty_strength

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Standardize(nn.Module):
    """(f - mean) / std with statistics of the training items, computed once; constant features become 0.

    Args:
        num_features: D.
    """

    mean_D: torch.Tensor
    inverse_scale_D: torch.Tensor
    count: torch.Tensor

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.register_buffer("mean_D", torch.zeros(num_features))
        self.register_buffer("inverse_scale_D", torch.ones(num_features))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def set_statistics(self, count: int, total_D: torch.Tensor, square_D: torch.Tensor) -> None:
        """Take float64 sums of the features and of their squares over `count` items."""
        mean_D = total_D / count
        scale_D = (square_D / count - mean_D.square()).clamp(min=0).sqrt()
        constant_D = scale_D <= ROUNDINGS * torch.finfo(torch.float32).eps * mean_D.abs()
        self.mean_D.copy_(mean_D)
        self.inverse_scale_D.copy_(torch.where(constant_D, 0.0, 1.0 / torch.where(constant_D, 1.0, scale_D)))
        self.count.fill_(count)

    def forward(self, f_BD: torch.Tensor) -> torch.Tensor:
        """(B, D) standardised features."""
        return (f_BD - self.mean_D) * self.inverse_scale_D


class LinearProbe(pl.LightningModule):
    """Frozen backbone → standardised features → linear head over the labels that occur.

    The loss is the objective of `LogisticReadout` divided by C·n: mean cross-entropy + (λ/2)‖W‖² with λ = 1/(C n), n
    the number of training items (see `readouts.objective`), so that both readouts have the same optimum. The head
    starts at 0.

    The backbone is no part of the module: `train()` does not reach it, checkpoints do not hold it, and its hash is
    among the hyperparameters, which a checkpoint must match. Statistics for standardisation are computed once, before
    the first epoch, from the data module's `statistics_dataloader()`, and are stored with the weights. Logged:
    `train_loss`, `val_loss` (cross-entropy without the penalty) and `val_accuracy` (top-1), both exact under several
    processes if every item is visited once, as `SketchDataModule` does.

    Args:
        num_features: D.
        num_labels: L.
        present_labels: The K labels that occur in training; the others get probability exactly 0.
        C: Inverse strength of the penalty.
        backbone: Image network; None where batches hold features already.
        layer: Layer of the backbone; None: its default.
        optimizer: Makes the optimiser from the parameters; weight decay belongs to the loss, so leave it 0.
        backbone_hash: Hash of the weights that made the features, where there is no backbone.
    """

    position_L: torch.Tensor
    present_K: torch.Tensor

    def __init__(
        self,
        num_features: int,
        num_labels: int,
        present_labels: Sequence[int],
        C: float = 1.0,
        backbone: Backbone | None = None,
        layer: str | None = None,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        backbone_hash: str | None = None,
    ) -> None:
        super().__init__()
        present = sorted({int(label) for label in present_labels})
        if len(present) < 2 or present[0] < 0 or present[-1] >= num_labels:
            raise ValueError(f"present_labels must be two or more of 0 … {num_labels - 1}, got {present[:10]}")
        if not C > 0:
            raise ValueError(f"C, the inverse strength of the penalty, must be positive, got {C}")
        self._backbone = (freeze(backbone),)  # in a tuple, so that it is not registered as a submodule
        self._layer = layer or (backbone.default_layer if backbone is not None else None)
        self._make_optimizer = optimizer or partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.0)
        plain = {
            "num_features": num_features,
            "num_labels": num_labels,
            "present_labels": present,
            "C": float(C),
            "layer": self._layer,
            "backbone_hash": backbone.weights_hash if backbone is not None else backbone_hash,
        }
        self.save_hyperparameters(plain)
        self.C, self.num_labels = float(C), num_labels
        self.standardize = Standardize(num_features)
        self.head = nn.Linear(num_features, len(present))
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)
        position_L = torch.full((num_labels,), -1)
        position_L[present] = torch.arange(len(present))
        self.register_buffer("position_L", position_L, persistent=False)
        self.register_buffer("present_K", torch.tensor(present), persistent=False)
        self.val_loss = MeanMetric()
        self.val_accuracy = MulticlassAccuracy(num_classes=len(present), average="micro")

    @property
    def backbone(self) -> Backbone | None:
        """The frozen backbone."""
        return self._backbone[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, K) logits of images (B, 3, H, W), or of features (B, D) where there is no backbone."""
        logit_BK: torch.Tensor = self.head(self.standardize(self.features(x)))
        return logit_BK

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """(B, D) float32 features, without gradient."""
        if self.backbone is None or self._layer is None:
            return x
        with torch.no_grad():
            f_BD = self.backbone.features(x, [self._layer])[self._layer]
        return f_BD.clone() if f_BD.is_inference() else f_BD  # an inference tensor cannot enter a gradient

    def predict_proba(self, x: torch.Tensor) -> torch.Tensor:
        """(B, L) probabilities; exactly 0 for labels that did not occur in training."""
        p_BK = torch.softmax(self(x), 1)
        p_BL = p_BK.new_zeros(len(p_BK), self.num_labels)
        p_BL[:, self.present_K] = p_BK
        return p_BL

    def on_fit_start(self) -> None:
        """Compute the statistics for standardisation, unless they came with a checkpoint."""
        self._place_backbone()
        if int(self.standardize.count) == 0:
            self.compute_statistics(statistics_batches(self))

    def on_validation_start(self) -> None:
        """See `on_fit_start`."""
        self._place_backbone()

    def on_predict_start(self) -> None:
        """See `on_fit_start`."""
        self._place_backbone()

    @torch.no_grad()
    def compute_statistics(self, batches: Iterable[Batch]) -> None:
        """Mean and standard deviation over the items of all processes; each gives its share, every item once."""
        D = self.standardize.mean_D.shape[0]
        sums = torch.zeros(2 * D + 1, dtype=torch.float64, device=self.device)
        for x, _, index_B in batches:
            f_BD = self.features(x.to(self.device)).double()
            check_finite(f_BD, index_B)
            sums += torch.cat([f_BD.sum(0), f_BD.square().sum(0), f_BD.new_tensor([len(f_BD)])])
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        self.standardize.set_statistics(int(sums[-1]), sums[:D], sums[D : 2 * D])

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        """Mean cross-entropy of the batch plus the penalty."""
        del batch_idx
        x, label_B, _ = batch
        lam = penalty_strength(self.C, int(self.standardize.count), len(self.present_K))
        penalty = 0.5 * lam * self.head.weight.square().sum()
        loss: torch.Tensor = cross_entropy(self(x), self._positions(label_B)) + penalty
        self.log("train_loss", loss.detach(), on_step=False, on_epoch=True, sync_dist=True, batch_size=len(x))
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Gather cross-entropy and top-1 accuracy."""
        del batch_idx
        x, label_B, _ = batch
        logit_BK, target_B = self(x), self._positions(label_B)
        self.val_loss.update(cross_entropy(logit_BK, target_B, reduction="none"))
        self.val_accuracy.update(logit_BK, target_B)
        self.log("val_loss", self.val_loss, on_step=False, on_epoch=True, batch_size=len(x))
        self.log("val_accuracy", self.val_accuracy, on_step=False, on_epoch=True, batch_size=len(x))

    def predict_step(self, batch: Batch, batch_idx: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(B,) item indices and (B, L) probabilities."""
        del batch_idx
        x, _, index_B = batch
        return index_B, self.predict_proba(x)

    def configure_optimizers(self) -> Optimizer:
        """The optimiser of the head."""
        return self._make_optimizer(self.head.parameters())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse a checkpoint of another probe: other labels, penalty, layer or backbone weights."""
        refuse_other_settings(checkpoint, self.hparams, "readout")

    def _positions(self, label_B: torch.Tensor) -> torch.Tensor:
        position_B = self.position_L[label_B]
        if (position_B < 0).any():
            raise ValueError(
                f"label {int(label_B[position_B < 0][0])} does not occur in training, so this readout cannot know it; "
                "leave its items out or choose other folds"
            )
        return position_B

    def _place_backbone(self) -> None:
        if isinstance(self.backbone, nn.Module):
            self.backbone.to(self.device)


def statistics_batches(head: pl.LightningModule) -> Iterable[Batch]:
    """The share of this process in all training items, each once, from the data module that a head is fitted with.

    Raises:
        RuntimeError: It is fitted with other data.
    """
    datamodule = getattr(head.trainer, "datamodule", None)
    if datamodule is None or not hasattr(datamodule, "statistics_dataloader"):
        raise RuntimeError(
            f"{type(head).__name__} standardises features with statistics of the training items: fit it with a "
            "SketchDataModule, or call its compute_statistics(loader) with every training item once before"
        )
    batches: Iterable[Batch] = datamodule.statistics_dataloader()
    return batches


def refuse_other_settings(checkpoint: Mapping[str, Any], settings: Mapping[str, Any], what: str) -> None:
    """Refuse a checkpoint of a head that was made with other settings.

    Args:
        checkpoint: What Lightning read.
        settings: Of the head that is to go on.
        what: What kind of head it is, for the message.

    Raises:
        ValueError: Naming the settings that differ.
    """
    theirs = checkpoint.get("hyper_parameters", {})
    differing = [f"{k}: {theirs.get(k)!r:.60} there, {v!r:.60} here" for k, v in settings.items() if theirs.get(k) != v]
    if differing:
        raise ValueError(
            f"the checkpoint belongs to another {what} ({'; '.join(differing)[:300]}); use the same settings, another "
            "folder, or resume=false to start anew"
        )


def freeze(backbone: Backbone | None) -> Backbone | None:
    """The same backbone; if it is a module, in evaluation mode and without gradients from now on."""
    if isinstance(backbone, nn.Module):
        backbone.requires_grad_(False).eval()
    return backbone


def check_finite(f_BD: torch.Tensor, index_B: torch.Tensor) -> None:
    """Raise ValueError, naming the first item whose features are not all finite numbers."""
    bad_B = ~f_BD.isfinite().all(1)
    if bad_B.any():
        raise ValueError(f"item {int(index_B[bad_B.to(index_B.device)][0])} has NaN or infinite features")
