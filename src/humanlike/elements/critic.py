"""A critic: a frozen network that says, differentiably, what a drawing shows and which elements it has.

The critic that trains a generator and the judge that evaluates it are both of this class, on different networks.
Shapes: B drawings, L labels, K labels that the readout was fitted on, E the most elements of a concept, D features.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from humanlike.backbones.features import extract_features
from humanlike.backbones.gradient import differentiable_features
from humanlike.backbones.pixels import PixelTransform
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.presence_fit import fit_presence
from humanlike.elements.presence_head import PresenceHead
from humanlike.interfaces import Backbone
from humanlike.readouts.linear_probe import freeze
from humanlike.readouts.logistic import LogisticReadout
from humanlike.types import Sketches


class Reading(NamedTuple):
    """What a critic reads from B drawings in one pass through its network.

    Attributes:
        log_p_B: (B,) log P of the concept that the drawing is meant to show.
        presence_logits_BE: (B, E) logits of "present", 0 where the concept has no such element.
        mask_BE: (B, E) bool, the real columns.
    """

    log_p_B: torch.Tensor
    presence_logits_BE: torch.Tensor
    mask_BE: torch.Tensor


class Critic(nn.Module):
    """A frozen backbone with a readout of labels and a head of elements, differentiable to the pixels.

    Pictures are RGB in [0, 1] of any size; they are resized and normalised as the backbone's transform says, with a
    gradient. The backbone is no part of the module's state, and moves to the device of what it is shown. Probabilities
    are computed in float32 under autocast too.

    Args:
        backbone: The network; frozen and set to evaluation here.
        labels: The L names.
        coef_KD: Weights of the readout for raw features.
        intercept_K: Its intercepts.
        classes_K: Positions in `labels` of the K labels that it was fitted on.
        head: A presence head on the same backbone and layer; None: the critic knows no elements.
        layer: The layer that is read; None: the backbone's default one.
        name: Name in results; the backbone's if None.
        record: Facts about the fit: data, certificate, settings.

    Raises:
        ValueError: Shapes do not fit, or the head reads another layer.
    """

    def __init__(
        self,
        backbone: Backbone,
        labels: Sequence[str],
        coef_KD: torch.Tensor,
        intercept_K: torch.Tensor,
        classes_K: Sequence[int],
        head: PresenceHead | None = None,
        layer: str | None = None,
        name: str | None = None,
        record: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.name = name or backbone.name
        self.labels, self.classes = tuple(labels), tuple(int(k) for k in classes_K)
        self.layer = layer or backbone.default_layer
        if not len(coef_KD) == len(intercept_K) == len(self.classes) or max(self.classes) >= len(self.labels):
            raise ValueError(
                f"a critic needs a row of weights and an intercept for each of its {len(self.classes)} classes among "
                f"{len(self.labels)} labels, got {tuple(coef_KD.shape)} and {tuple(intercept_K.shape)}"
            )
        if head is not None and head.layer != self.layer:
            raise ValueError(f"the readout reads layer {self.layer!r}, the presence head {head.layer!r}; use one layer")
        self._backbone = (freeze(backbone),)  # in a tuple: frozen, and no part of a state dict
        self.pixels = PixelTransform(backbone.transform)
        self.head = head if head is None else head.requires_grad_(False)
        self.record = dict(record or {})
        # In one layout in memory, or a critic read from its file would add up in another order than the fitted one.
        self.register_buffer("coef_KD", coef_KD.detach().float().contiguous())
        self.register_buffer("intercept_K", intercept_K.detach().float())
        self._position = {self.labels[k]: i for i, k in enumerate(self.classes)}

    coef_KD: torch.Tensor
    intercept_K: torch.Tensor

    @property
    def backbone(self) -> Backbone:
        """The frozen network."""
        backbone = self._backbone[0]
        assert backbone is not None
        return backbone

    @property
    def concepts(self) -> tuple[str, ...]:
        """The labels that have a probability, in label order."""
        return tuple(self.labels[k] for k in self.classes)

    @property
    def elements(self) -> dict[str, tuple[str, ...]]:
        """Concept → elements that it judges; empty without a head."""
        return {} if self.head is None else {c: tuple(row) for c, row in self.head.pairs.items()}

    def forward(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> Reading:
        """Log P and presence of the given concepts, from one pass: half the work of asking for both in turn."""
        f_BD = self.features(x_B3HW)
        return Reading(self._log_p(f_BD, concepts), *self.presence_logits_of(f_BD, concepts))

    def log_p(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> torch.Tensor:
        """(B,) log P of each picture's own concept.

        Raises:
            ValueError: The readout was not fitted on a concept, or there is not one a picture.
        """
        return self._log_p(self.features(x_B3HW), concepts)

    def log_proba(self, x_B3HW: torch.Tensor) -> torch.Tensor:
        """(B, L) log probabilities in the order of `labels`; -inf for labels that the readout was not fitted on."""
        logp_BK = self.log_proba_of(self.features(x_B3HW))
        if len(self.classes) == len(self.labels) and self.classes == tuple(range(len(self.labels))):
            return logp_BK
        full_BL = logp_BK.new_full((len(logp_BK), len(self.labels)), -torch.inf)
        return full_BL.index_copy(1, torch.tensor(self.classes, device=logp_BK.device), logp_BK)

    def presence_logits(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DifferentiablePresence`.

        Raises:
            ValueError: The critic knows no elements of a concept.
        """
        return self.presence_logits_of(self.features(x_B3HW), concepts)

    def features(self, x_B3HW: torch.Tensor) -> torch.Tensor:
        """(B, D) float32 activations of the layer for pictures in [0, 1]."""
        backbone = self.backbone
        if isinstance(backbone, nn.Module):
            backbone.to(x_B3HW.device)
        return differentiable_features(backbone, self.pixels(x_B3HW), self.layer)

    def log_proba_of(self, f_BD: torch.Tensor) -> torch.Tensor:
        """(B, K) log probabilities of `concepts` from features."""
        with torch.autocast(f_BD.device.type, enabled=False):
            logit_BK = f_BD.float() @ self.coef_KD.to(f_BD.device).T + self.intercept_K.to(f_BD.device)
            return torch.log_softmax(logit_BK, dim=1)

    def _log_p(self, f_BD: torch.Tensor, concepts: Sequence[str]) -> torch.Tensor:
        if len(concepts) != len(f_BD):
            raise ValueError(f"give a concept for each of the {len(f_BD)} pictures, got {len(concepts)}")
        unknown = [c for c in concepts if c not in self._position]
        if unknown:
            raise ValueError(f"the critic {self.name} was fitted without {unknown[0]!r}; it knows {self.concepts[:8]}…")
        position_B = torch.tensor([self._position[c] for c in concepts], device=f_BD.device)
        return self.log_proba_of(f_BD).gather(1, position_B[:, None])[:, 0]

    def presence_logits_of(self, f_BD: torch.Tensor, concepts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """`presence_logits` from features."""
        if self.head is None:
            raise ValueError(f"the critic {self.name} has no presence head; fit it on sketches with annotated elements")
        concept_B = self.head.pairs.concept_positions(concepts)
        if (concept_B < 0).any():
            unknown = next(c for c in concepts if c not in self.head.pairs)
            raise ValueError(f"the critic {self.name} knows no elements of {unknown!r}")
        with torch.autocast(f_BD.device.type, enabled=False):
            self.head.to(f_BD.device)
            pooled_BD = f_BD if self.head.pool is None else self.head.pool(f_BD)
            return self.head.of_features(pooled_BD, torch.from_numpy(concept_B).to(f_BD.device))


def fit_critic(
    backbone: Backbone,
    sketches: Sketches,
    layer: str | None = None,
    cache_dir: str | Path | None = None,
    seed: int = 0,
    *,
    C: float = 1.0,
    presence_C: float = 0.01,
    share: float = 1.0,
    name: str | None = None,
    **extraction: Any,
) -> Critic:
    """A critic on a frozen backbone: logistic readout of all labels, and a presence head where there is an annotation.

    Args:
        backbone: The network.
        sketches: What is trained on, with `elements` if elements are to be judged.
        layer: Layer; None: the default one.
        cache_dir: Where features are kept.
        seed: Seed of the readout.
        C: Inverse strength of the readout's penalty.
        presence_C: That of the presence head.
        share: How much elements of one name share over concepts, see `PresenceHead`.
        name: Name in results.
        extraction: Further arguments of `extract_features`.

    Raises:
        ValueError: One concept only, or features that are not finite.
    """
    freeze(backbone)
    layer = layer or backbone.default_layer
    features = extract_features(backbone, sketches, [layer], cache_dir=cache_dir, progress=False, **extraction)[layer]
    readout = LogisticReadout(C=C, seed=seed)
    readout.fit(features.f_ND, sketches.target_N[features.rows], len(sketches.labels))
    head = None
    if sketches.elements is not None:
        head = PresenceHead(
            features.f_ND.shape[1], annotated_elements(sketches), presence_C, share, backbone=backbone, layer=layer
        )
        fit_presence(head, sketches, features)
    record = {
        "dataset": sketches.name,
        "items": len(features.rows),
        "sources": sorted({str(s) for s in sketches.table["image_id"]}),
        "hashes": dict(features.hashes),
        "C": C,
        "presence_C": presence_C,
        "share": share,
        "seed": seed,
        "readout": readout.certificate(),
    }
    return Critic(
        backbone,
        sketches.labels,
        torch.as_tensor(readout.coef_),
        torch.as_tensor(readout.intercept_),
        readout.classes_.tolist(),
        head,
        layer,
        name,
        record,
    )
