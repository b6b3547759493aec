"""Contrastive presence: is a sketch nearer to "a sketch of a lion with mane" than to the same sentence "without mane"?

Shapes: B sketches, E the most elements of a concept, P (concept, element) pairs, D width of the common space.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from humanlike.backbones.clip import EMBEDDING, OpenClipBackbone
from humanlike.backbones.clip_text import TextTower
from humanlike.backbones.features import extract_features
from humanlike.backbones.gradient import differentiable_features
from humanlike.elements.presence import ElementsOf, Presence, elements_by_item, feature_rows, presence_of
from humanlike.elements.presence_pairs import ElementPairs
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone
from humanlike.readouts.linear_probe import freeze
from humanlike.types import Features, Sketches

WITH = ("a sketch of a {label} with {element}",)
WITHOUT = ("a sketch of a {label} without {element}",)


class TextEmbedding(Protocol):
    """A text tower: `humanlike.backbones.clip_text.TextTower`, or anything like it."""

    weights_hash: str

    @property
    def logit_scale(self) -> float:
        """What cosines are multiplied by."""

    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        """(M, D) vectors of length 1."""


class ContrastivePresence(nn.Module):
    """Presence from a language-image model, without training: softmax over "with" and "without" at the model's scale.

    logit = s · (f · t_with - f · t_without), f the normalised image vector, t the normalised mean of the normalised
    vectors of the prompts, s the model's logit scale; sigmoid(logit) is the softmax over the two. It is differentiable
    to the pixels. Such models hardly read negation, so that probabilities huddle around some value that is not ½: use
    `bias`, or a threshold, found on annotated sketches.

    Args:
        image: The image tower.
        text: The text tower of the same model.
        layer: Layer of the image tower that is compared with texts.
        with_prompts: Sentences with {label} and {element}; several are an ensemble.
        without_prompts: Their opposites, as many or not.
        logit_scale: s; None: the model's own.
        bias: Added to every logit.
        threshold: Probability from which an element counts as present.
        cache_dir: Folder of feature caches.

    Raises:
        ValueError: There is no prompt, or one has other fields than {label} and {element}.
    """

    def __init__(
        self,
        image: Backbone,
        text: TextEmbedding,
        layer: str = EMBEDDING,
        with_prompts: Sequence[str] = WITH,
        without_prompts: Sequence[str] = WITHOUT,
        logit_scale: float | None = None,
        bias: float = 0.0,
        threshold: float = 0.5,
        cache_dir: str | Path | None = None,
    ) -> None:
        super().__init__()
        self.prompts = {"with": _checked(with_prompts), "without": _checked(without_prompts)}
        self._image, self._text = (freeze(image),), (text,)  # in tuples: frozen, and no part of a state dict
        self.layer = layer
        self.logit_scale = float(text.logit_scale if logit_scale is None else logit_scale)
        self.bias, self.threshold, self.cache_dir = float(bias), threshold, cache_dir
        self._direction: dict[tuple[str, str], torch.Tensor] = {}

    @classmethod
    def of_model(
        cls,
        architecture: str,
        weights: str | Path | None,
        backbone: Backbone | None = None,
        *,
        offline: bool | None = None,
        seed: int = 0,
        texts_dir: str | Path | None = None,
        **settings: Any,
    ) -> ContrastivePresence:
        """Both towers of an open_clip model as a judge.

        Args:
            architecture: open_clip's name.
            weights: open_clip's tag, the path of a whole model's state dict, or None for random ones.
            backbone: The model's image tower, where it is at hand; another network is no such tower, and the tower is
                built then.
            offline: True: never download.
            seed: Seed of random weights.
            texts_dir: Where vectors of texts are kept.
            settings: Further arguments of this class.

        Raises:
            ValueError: Architecture and weights are of no language-image model, as those of most backbones are.
        """
        if not isinstance(weights, str | Path | None):
            raise ValueError(
                f"judge=contrastive compares images with sentences, and {architecture} reads none: take a "
                "language-image model as the backbone (backbone=clip_vit_b32), or name one for the judge alone "
                "(judge.architecture=ViT-B-32-quickgelu judge.weights=openai)"
            )
        text = TextTower(architecture, weights, offline=offline, seed=seed, cache_dir=texts_dir)
        own = isinstance(backbone, OpenClipBackbone) and backbone.architecture == architecture
        image = backbone if own else OpenClipBackbone(architecture, weights, offline=offline, seed=seed)
        assert image is not None
        return cls(image, text, **settings)

    @property
    def backbone(self) -> Backbone:
        """The image tower."""
        backbone = self._image[0]
        assert backbone is not None
        return backbone

    @property
    def record(self) -> dict[str, Any]:
        """All that decides a verdict: towers, layer, prompts, scale, bias."""
        return {
            "image": self.backbone.name,
            "image_weights": self.backbone.weights_hash,
            "text_weights": self._text[0].weights_hash,
            "layer": self.layer,
            "prompts": {name: list(texts) for name, texts in self.prompts.items()},
            "logit_scale": self.logit_scale,
            "bias": self.bias,
        }

    @property
    def source(self) -> str:
        """One line for the record, with a digest of `record`."""
        return (
            f"contrastive presence by {self.backbone.name}, {self.prompts['with'][0]!r} against "
            f"{self.prompts['without'][0]!r} (settings {sha256_value(self.record)[:12]})"
        )

    def directions(self, pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        """(P, D) t_with - t_without of (concept, element) pairs; texts are embedded once."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._direction]
        if new:
            positive_PD, negative_PD = (self._mean(self.prompts[side], new) for side in ("with", "without"))
            self._direction |= dict(zip(new, positive_PD - negative_PD, strict=True))
        return torch.stack([self._direction[pair] for pair in pairs])

    def _mean(self, prompts: tuple[str, ...], pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        """(P, D) normalised means over an ensemble of prompts."""
        texts = [p.format(label=_spoken(c), element=_spoken(e)) for c, e in pairs for p in prompts]
        return normalize(normalize(self._text[0].embed(texts), dim=1).unflatten(0, (len(pairs), -1)).mean(1), dim=1)

    def logits_of(self, f_BD: torch.Tensor, pairs: Sequence[Sequence[tuple[str, str]]]) -> torch.Tensor:
        """(B, E) logits of each row's own pairs, 0 where a row has fewer.

        Args:
            f_BD: (B, D) image vectors, not normalised.
            pairs: (concept, element) pairs of every row.
        """
        width = max((len(row) for row in pairs), default=0)
        unit_BD = normalize(f_BD.float(), dim=1)
        column = {pair: j for j, pair in enumerate(dict.fromkeys(p for row in pairs for p in row))}
        if not column:
            return unit_BD.new_zeros(len(f_BD), width)
        logit_BP = self.logit_scale * unit_BD @ self.directions(list(column)).to(unit_BD).T + self.bias
        index = torch.tensor([[column[p] for p in row] + [0] * (width - len(row)) for row in pairs])
        mask = torch.tensor([[True] * len(row) + [False] * (width - len(row)) for row in pairs])
        return torch.where(mask.to(unit_BD.device), logit_BP.gather(1, index.to(unit_BD.device)), 0.0)

    def bound(self, elements: ElementsOf) -> BoundContrast:
        """The same for fixed lists of elements: what a training loss needs."""
        return BoundContrast(self, ElementPairs(elements))

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; an unreadable image is missing.

        Args:
            sketches: The sketches.
            elements: Concept → elements.
            features: Image vectors of the layer; None: computed (and cached) here.
        """
        if features is None:
            features = extract_features(self.backbone, sketches, [self.layer], cache_dir=self.cache_dir)[self.layer]
        row_N = feature_rows(sketches, features, self.layer, self.backbone.weights_hash)
        names = elements_by_item(sketches, elements)
        p: list[list[float]] = [[np.nan] * len(row) for row in names]
        for concept in dict.fromkeys(sketches.table["concept"]):
            items = np.flatnonzero((sketches.table["concept"] == concept).to_numpy() & (row_N >= 0))
            if len(items) == 0 or not names[items[0]]:
                continue
            own = [(str(concept), e) for e in names[items[0]]]
            f_BD = torch.from_numpy(np.asarray(features.f_ND[row_N[items]], dtype=np.float32))
            with torch.no_grad():
                p_BE = torch.sigmoid(self.logits_of(f_BD, [own] * len(items)).double())
            for i, row in zip(items, p_BE.tolist(), strict=True):
                p[i] = row
        ids = sketches.table["sketch_id"].tolist()
        reasons = {(ids[i], e): "the image could not be read" for i in np.flatnonzero(row_N < 0) for e in names[i]}
        return presence_of(ids, names, p, self.source, self.threshold, reasons)


class BoundContrast(nn.Module):
    """`ContrastivePresence` for fixed lists of elements, a `DifferentiablePresence`.

    Args:
        contrast: The judge.
        pairs: Concepts and their elements.
    """

    def __init__(self, contrast: ContrastivePresence, pairs: ElementPairs) -> None:
        super().__init__()
        self.contrast, self.pairs = contrast, pairs

    def presence_logits(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """See `DifferentiablePresence`.

        Raises:
            ValueError: A concept has no elements.
        """
        unknown = [c for c in concepts if c not in self.pairs]
        if unknown:
            raise ValueError(f"there are no elements of {unknown[0]!r}; there are of {list(self.pairs)[:8]}")
        rows = [[(c, e) for e in self.pairs[c]] for c in concepts]
        f_BD = differentiable_features(self.contrast.backbone, x_B3HW, self.contrast.layer)
        logit_BE = self.contrast.logits_of(f_BD, rows)
        size_B = torch.tensor([len(row) for row in rows], device=logit_BE.device)
        return logit_BE, torch.arange(logit_BE.shape[1], device=logit_BE.device) < size_B[:, None]


def _checked(prompts: Sequence[str]) -> tuple[str, ...]:
    if isinstance(prompts, str) or not prompts:
        raise ValueError(f"prompts must be a list of one or more sentences, got {prompts!r}")
    for prompt in prompts:
        try:
            if prompt.format(label="\0", element="\1").count("\1") == 0:
                raise ValueError(f"the prompt {prompt!r} does not name the {{element}}")
        except (KeyError, IndexError) as error:
            raise ValueError(f"the prompt {prompt!r} may name {{label}} and {{element}}, not {error}") from error
    return tuple(prompts)


def _spoken(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")
