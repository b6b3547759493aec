"""A multi-label readout on a frozen backbone: which elements of its concept a sketch shows.

Shapes: B items, D features, P (concept, element) pairs, U element names, E the most elements of a concept, L labels of
a data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus
from torch.optim import Optimizer
from torchmetrics import MeanMetric

from humanlike.backbones.gradient import differentiable_features
from humanlike.elements.grid import GridPool
from humanlike.elements.presence_pairs import MISSING, ElementPairs
from humanlike.interfaces import Backbone
from humanlike.metrics.element_vqa import ElementVQA
from humanlike.readouts.linear_probe import (
    Batch,
    Standardize,
    check_finite,
    freeze,
    refuse_other_settings,
    statistics_batches,
)
from humanlike.types import Sketches

LOGGED = ("f1", "balanced_accuracy", "precision", "recall", "present_rate_bias")


class PresenceHead(pl.LightningModule):
    """Frozen backbone → (pooled to a grid) → standardised features z → one logit a (concept, element) pair.

    logit_p = (w_p + √ρ u_e(p)) · z + b_p: w_p is the pair's own, u_e is shared by all pairs whose element has the same
    name e ("leg" of a chair and of a dog), and ρ = `share` says how much (0: not at all). The loss, with M known
    (sketch, element) pairs in training, is

        (1/M) [Σ_known BCE + Σ_p ½ (softplus(b_p) + softplus(-b_p))] + (‖w‖² + ‖u‖²) / (2 C M).

    Only the elements of an item's own concept count, and missing ones do not. The middle term is one pseudo-observation
    a pair at the mean features, half present and half absent: it keeps b_p finite for an element that is always drawn.
    `presence_fit.fit_presence` goes to the same optimum on features in memory; this module also trains on a stream.

    The backbone is no part of the module, as in `LinearProbe`: `train()` does not reach it and checkpoints do not hold
    it. `attach(sketches)` gives the targets before a fit. Logged: `train_loss`, `val_loss` (mean BCE over known pairs)
    and, as `val_…`, F1, balanced accuracy, precision, recall and present-rate bias over all pairs.

    Args:
        num_features: D, after pooling.
        elements: Concept → elements.
        C: Inverse strength of the penalty.
        share: ρ.
        pool: Pools the layer's map to a grid first; None: features as they are.
        backbone: Image network; None where inputs are features already.
        layer: Layer of the backbone; None: its default.
        optimizer: Makes the optimiser; weight decay belongs to the loss, so leave it 0.
        backbone_hash: Hash of the weights that made the features, where there is no backbone.
        backbone_name: Its name.

    Raises:
        ValueError: C is not positive or share negative.
    """

    pair_KE: torch.Tensor
    name_P: torch.Tensor
    target_NE: torch.Tensor
    known_pairs: torch.Tensor
    concept_L: torch.Tensor

    def __init__(
        self,
        num_features: int,
        elements: Mapping[str, Sequence[str]],
        C: float = 0.01,
        share: float = 1.0,
        pool: GridPool | None = None,
        backbone: Backbone | None = None,
        layer: str | None = None,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        backbone_hash: str | None = None,
        backbone_name: str | None = None,
    ) -> None:
        super().__init__()
        if not C > 0 or not share >= 0:
            raise ValueError(f"C must be positive and share 0 or more, got C={C}, share={share}")
        self.pairs = elements if isinstance(elements, ElementPairs) else ElementPairs(elements)
        self._backbone = (freeze(backbone),)  # in a tuple, so that it is not registered as a submodule
        self.layer = layer or (backbone.default_layer if backbone is not None else None)
        self.pool = pool
        self._make_optimizer = optimizer or partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.0)
        self.C, self.share = float(C), float(share)
        self.trained_on: dict[str, Any] = {}
        self.save_hyperparameters(
            {
                "num_features": num_features,
                "elements": {concept: list(row) for concept, row in self.pairs.items()},
                "C": self.C,
                "share": self.share,
                "pool": None if pool is None else pool.record(),
                "layer": self.layer,
                "backbone_hash": backbone.weights_hash if backbone is not None else backbone_hash,
                "backbone_name": backbone.name if backbone is not None else backbone_name,
            }
        )
        self.standardize = Standardize(num_features)
        self.weight_PD = nn.Parameter(torch.zeros(len(self.pairs.pairs), num_features))
        self.bias_P = nn.Parameter(torch.zeros(len(self.pairs.pairs)))
        names = len(self.pairs.names) if share > 0 else 0
        self.shared_UD = nn.Parameter(torch.zeros(names, num_features), requires_grad=share > 0)
        self.register_buffer("known_pairs", torch.zeros((), dtype=torch.int64))
        for name, value in (
            ("pair_KE", torch.from_numpy(self.pairs.pair_KE)),
            ("name_P", torch.from_numpy(self.pairs.name_P)),
            ("target_NE", torch.zeros(0, self.pairs.pair_KE.shape[1], dtype=torch.int8)),
            ("concept_L", torch.zeros(0, dtype=torch.int64)),
        ):
            self.register_buffer(name, value, persistent=False)
        self.val_loss = MeanMetric()
        self.val_scores = ElementVQA(self.pairs.pair_KE.shape[1])

    @property
    def backbone(self) -> Backbone | None:
        """The frozen backbone."""
        return self._backbone[0]

    @property
    def effective_weight(self) -> torch.Tensor:
        """(P, D) w_p + √ρ u_e(p)."""
        if self.share == 0:
            return self.weight_PD
        return self.weight_PD + self.share**0.5 * self.shared_UD[self.name_P]

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what a judgment depends on: weights, biases and the statistics of the features."""
        parts = (self.effective_weight, self.bias_P, self.standardize.mean_D, self.standardize.inverse_scale_D)
        content = hashlib.sha256()
        for part in parts:
            content.update(part.detach().cpu().contiguous().numpy().tobytes())
        return content.hexdigest()

    def attach(self, sketches: Sketches) -> PresenceHead:
        """Take the targets of a data set, whose item and label indices the batches of a fit then carry."""
        self.target_NE = torch.from_numpy(self.pairs.targets(sketches)).to(self.device)
        self.concept_L = torch.from_numpy(self.pairs.concept_positions(sketches.labels)).to(self.device)
        return self

    def features(self, x: torch.Tensor, gradient: bool = False) -> torch.Tensor:
        """(B, D) pooled features of images (B, 3, H, W), or of features where there is no backbone.

        Args:
            x: Images or features.
            gradient: Whether a gradient reaches the pixels.
        """
        if self.backbone is not None and self.layer is not None and x.ndim == 4:
            if gradient:
                x = differentiable_features(self.backbone, x, self.layer)
            else:
                with torch.no_grad():
                    x = self.backbone.features(x, [self.layer])[self.layer]
                x = x.clone() if x.is_inference() else x  # an inference tensor cannot enter a gradient
        return x if self.pool is None else self.pool(x)

    def forward(self, x: torch.Tensor, concept_B: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, E) logits and (B, E) bool mask of the real columns; see `of_features`."""
        return self.of_features(self.features(x), concept_B)

    def of_features(self, f_BD: torch.Tensor, concept_B: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of the elements of each item's concept.

        Args:
            f_BD: (B, D) pooled features.
            concept_B: (B,) positions in `pairs.concepts`; -1 is a concept without columns.

        Returns:
            (B, E) logits, 0 in columns that the concept does not have, and (B, E) bool, the real columns.
        """
        logit_BP = self.standardize(f_BD) @ self.effective_weight.T + self.bias_P
        pair_BE = torch.where(concept_B[:, None] < 0, -1, self.pair_KE[concept_B.clamp(min=0)])
        mask_BE = pair_BE >= 0
        logit_BE = logit_BP.gather(1, pair_BE.clamp(min=0))
        return torch.where(mask_BE, logit_BE, 0.0), mask_BE

    def presence_logits(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DifferentiablePresence`: logits with a gradient to the pixels, and their mask.

        Raises:
            ValueError: A concept has no elements here, or there is no backbone to take images.
        """
        if self.backbone is None:
            raise ValueError("presence_logits takes images, but this head has no backbone; give it one when it is made")
        concept_B = self.pairs.concept_positions(concepts)
        if (concept_B < 0).any():
            unknown = concepts[int(np.flatnonzero(concept_B < 0)[0])]
            raise ValueError(
                f"this presence head knows no elements of {unknown!r}; it knows {', '.join(self.pairs.concepts[:8])} …"
            )
        self._place_backbone(x_B3HW.device)
        f_BD = self.features(x_B3HW, gradient=True)
        return self.of_features(f_BD, torch.from_numpy(concept_B).to(x_B3HW.device))

    def penalty(self) -> torch.Tensor:
        """The terms of the loss that do not depend on the items, for M = `known_pairs`."""
        squares = self.weight_PD.square().sum() + self.shared_UD.square().sum()
        prior = 0.5 * (softplus(self.bias_P) + softplus(-self.bias_P)).sum()
        return (squares / (2 * self.C) + prior) / self.known_pairs

    def on_fit_start(self) -> None:
        """Statistics of the training items, unless they came with a checkpoint."""
        self._place_backbone(self.device)
        if len(self.target_NE) == 0:
            raise RuntimeError("PresenceHead has no targets; call head.attach(sketches) before the fit")
        if int(self.standardize.count) == 0:
            self.compute_statistics(statistics_batches(self))

    def on_validation_start(self) -> None:
        """Bring the backbone to the device."""
        self._place_backbone(self.device)

    @torch.no_grad()
    def compute_statistics(self, batches: Iterable[Batch]) -> None:
        """Mean and spread of the features, and M, over the items of all processes; every item once."""
        pooled = ((self.features(x.to(self.device)), index_B) for x, _, index_B in batches)
        self.take_statistics(pooled, over_processes=True)

    @torch.no_grad()
    def take_statistics(
        self, batches: Iterable[tuple[torch.Tensor, torch.Tensor]], over_processes: bool = False
    ) -> None:
        """`compute_statistics` from (B, D) pooled features and (B,) item indices.

        Args:
            batches: Features and indices.
            over_processes: Add up what all processes were given; else this process has everything, and others need not
                come here at all.
        """
        D = self.standardize.mean_D.shape[0]
        sums = torch.zeros(2 * D + 2, dtype=torch.float64, device=self.device)
        for pooled_BD, index_B in batches:
            f_BD = pooled_BD.double()
            check_finite(f_BD, index_B)
            known = (self.target_NE[index_B.to(self.device)] != MISSING).sum()
            sums += torch.cat([f_BD.sum(0), f_BD.square().sum(0), f_BD.new_tensor([len(f_BD), float(known)])])
        if over_processes and torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(sums)
        if sums[-1] == 0:
            raise ValueError("none of the training items is annotated for an element that this head knows")
        self.standardize.set_statistics(int(sums[-2]), sums[:D], sums[D : 2 * D])
        self.known_pairs.fill_(int(sums[-1]))

    def training_step(self, batch: Batch, batch_idx: int) -> torch.Tensor:
        """The masked cross-entropy of the batch, an unbiased estimate of the mean over known pairs, plus the rest."""
        del batch_idx
        x, label_B, index_B = batch
        bce_BE, _, _, known_BE = self._losses(x, label_B, index_B)
        pairs_an_item = self.known_pairs / self.standardize.count
        loss = torch.where(known_BE, bce_BE, 0.0).sum() / (len(x) * pairs_an_item) + self.penalty()
        self.log("train_loss", loss.detach(), on_step=False, on_epoch=True, sync_dist=True, batch_size=len(x))
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Gather cross-entropy and decisions at ½."""
        del batch_idx
        x, label_B, index_B = batch
        bce_BE, logit_BE, mask_BE, known_BE = self._losses(x, label_B, index_B)
        if known_BE.any():
            self.val_loss.update(bce_BE[known_BE])
        self.val_scores.update(logit_BE >= 0, self.target_NE[index_B].long(), mask_BE)
        self.log("val_loss", self.val_loss, on_step=False, on_epoch=True, batch_size=len(x))

    def on_validation_epoch_end(self) -> None:
        """Log the scores over all processes."""
        scores = self.val_scores.compute()
        self.log_dict({f"val_{name}": scores[name].float() for name in LOGGED}, sync_dist=True)
        self.val_scores.reset()

    def configure_optimizers(self) -> Optimizer:
        """The optimiser of the head."""
        return self._make_optimizer([p for p in self.parameters() if p.requires_grad])

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Refuse a checkpoint of another head: other elements, penalty, layer or backbone weights."""
        refuse_other_settings(checkpoint, self.hparams, "presence head")

    def _losses(self, x: torch.Tensor, label_B: torch.Tensor, index_B: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(B, E) cross-entropy, logits, real columns, and columns whose target is known."""
        logit_BE, mask_BE = self(x, self.concept_L[label_B])
        target_BE = self.target_NE[index_B]
        known_BE = mask_BE & (target_BE != MISSING)
        wanted_BE = (target_BE > 0).to(logit_BE.dtype)
        return binary_cross_entropy_with_logits(logit_BE, wanted_BE, reduction="none"), logit_BE, mask_BE, known_BE

    def _place_backbone(self, device: torch.device) -> None:
        if isinstance(self.backbone, nn.Module):
            self.backbone.to(device)
