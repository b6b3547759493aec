"""Presence heads as judges: one that was trained before, and one that is trained on the very data set, out of fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from humanlike.backbones.features import extract_features
from humanlike.elements.grid import GridPool
from humanlike.elements.presence import ElementsOf, Presence, elements_by_item, feature_rows, presence_of
from humanlike.elements.presence_file import load_presence_head
from humanlike.elements.presence_fit import out_of_fold_presence, predict_presence
from humanlike.elements.presence_head import PresenceHead
from humanlike.interfaces import Backbone
from humanlike.types import Features, Sketches


@dataclass(frozen=True)
class HeadJudge:
    """A fitted presence head as a `PresenceJudge`.

    Attributes:
        head: The head; with a backbone where images are to be judged.
        threshold: Probability from which an element counts as present.
        on_seen: What to do with sketches whose source the head was trained on: leave their judgments "missing" (with
            that reason), "raise", or "allow" them.
        extraction: Further arguments of `extract_features`, for example `cache_dir`.
    """

    head: PresenceHead
    threshold: float = 0.5
    on_seen: Literal["missing", "raise", "allow"] = "missing"
    extraction: dict[str, Any] = field(default_factory=dict)
    open_vocabulary: ClassVar[bool] = False  # it knows the elements that it was trained on

    @property
    def backbone(self) -> Backbone | None:
        """The network that the head reads."""
        return self.head.backbone

    @property
    def layer(self) -> str | None:
        """Its layer."""
        return self.head.layer

    @classmethod
    def from_file(
        cls,
        file: str | Path,
        backbone: Backbone | None = None,
        threshold: float = 0.5,
        on_seen: Literal["missing", "raise", "allow"] = "missing",
    ) -> HeadJudge:
        """A head that `train.py task=presence` saved; see `load_presence_head` and the attributes."""
        if on_seen not in ("missing", "raise", "allow"):
            raise ValueError(f"on_seen is {on_seen!r}; it can be missing, raise or allow")
        return cls(load_presence_head(file, backbone), threshold, on_seen)

    @property
    def source(self) -> str:
        """One line for the record."""
        trained = self.head.trained_on.get("dataset", "unnamed data")
        facts = self.head.hparams
        known = f"weights {str(facts['backbone_hash'])[:12]}, head {self.head.digest[:12]}"
        return f"presence head on {facts['backbone_name']} {self.head.layer} ({known}), trained on {trained}"

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; an element that the head does not know for the concept is missing.

        Raises:
            ValueError: The features are others than the head reads, there is neither backbone nor features, or a source
                was trained on and `on_seen` is "raise".
        """
        head = self.head
        if features is None:
            if head.backbone is None or head.layer is None:
                raise ValueError("this presence head has no backbone: give features, or load it with its backbone")
            features = extract_features(head.backbone, sketches, [head.layer], **self.extraction)[head.layer]
        row_N = feature_rows(sketches, features, head.layer, head.hparams["backbone_hash"])
        concept_N = head.pairs.concept_positions(sketches.table["concept"].tolist())
        p_nE = predict_presence(head, features, concept_N[features.rows])
        column = {(c, e): j for c, row in head.pairs.items() for j, e in enumerate(row)}
        seen_N = self._seen(sketches)
        p, reasons = [], {}
        names = elements_by_item(sketches, elements)
        for i, (sketch_id, concept) in enumerate(
            zip(sketches.table["sketch_id"], sketches.table["concept"], strict=True)
        ):
            known = [column.get((concept, e)) for e in names[i]]
            why = (
                "the image could not be read"
                if row_N[i] < 0
                else "the head was trained on this source"
                if seen_N[i]
                else ""
            )
            p.append([np.nan if why or j is None else float(p_nE[row_N[i], j]) for j in known])
            reasons.update(
                {
                    (sketch_id, e): why or "the head does not know it"
                    for e, x in zip(names[i], p[-1], strict=True)
                    if x != x
                }
            )
        return presence_of(sketches.table["sketch_id"].tolist(), names, p, self.source, self.threshold, reasons)

    def _seen(self, sketches: Sketches) -> np.ndarray:
        """(N,) whether the head was trained on an item's source, as far as that counts."""
        if self.on_seen == "allow" or self.head.trained_on.get("dataset") != sketches.name:
            return np.zeros(len(sketches), dtype=bool)
        seen_N = sketches.table["image_id"].astype(str).isin(self.head.trained_on["sources"]).to_numpy()
        if seen_N.any() and self.on_seen == "raise":
            first = sketches.table["image_id"].iloc[int(np.flatnonzero(seen_N)[0])]
            raise ValueError(
                f"the presence head was trained on {int(seen_N.sum())} of these sketches, for example source "
                f"{first!r}; judge others, or use CrossFittedJudge, which trains a head a fold"
            )
        return seen_N


@dataclass(frozen=True)
class CrossFittedJudge:
    """Trains presence heads on the annotation of the data set itself and judges every sketch by one that never saw it.

    Folds are grouped by source (`image_id`), so that no other cut, copy or view of what is judged was trained on.

    Attributes:
        backbone: The frozen network; may be None where features are always given and not pooled.
        layer: Its layer; None: the default.
        side: Cells a side of the grid that the layer's map is pooled to; None: no pooling.
        C: Inverse strength of the penalty.
        share: How much pairs with the same element name share.
        n_splits: Number of folds.
        seed: Seed of the folds.
        threshold: Probability from which an element counts as present.
        cache_dir: Folder of feature caches.
    """

    backbone: Backbone | None = None
    layer: str | None = None
    side: int | None = None
    C: float = 0.01
    share: float = 1.0
    n_splits: int = 5
    seed: int = 0
    threshold: float = 0.5
    cache_dir: str | Path | None = None
    open_vocabulary: ClassVar[bool] = False  # it knows the elements that are annotated

    def __post_init__(self) -> None:
        if self.layer is None and self.backbone is not None:
            object.__setattr__(self, "layer", self.backbone.default_layer)

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; an element that no other source is annotated for is missing.

        Raises:
            ValueError: The data set has no annotation, the features are others than asked for, or there is no backbone
                where one is needed.
        """
        layer = self.layer
        if self.backbone is None and (features is None or self.side is not None):
            raise ValueError("CrossFittedJudge needs a backbone to read images or to pool a layer's map")
        if features is None:
            assert self.backbone is not None
            assert layer is not None
            features = extract_features(self.backbone, sketches, [layer], cache_dir=self.cache_dir)[layer]
        row_N = feature_rows(sketches, features, layer, None if self.backbone is None else self.backbone.weights_hash)
        pool = None if self.backbone is None else GridPool.of(self.backbone, layer, self.side)
        names = elements_by_item(sketches, elements)
        p_NE, _ = out_of_fold_presence(
            sketches, features, elements, C=self.C, share=self.share, pool=pool, n_splits=self.n_splits, seed=self.seed
        )
        ids = sketches.table["sketch_id"].tolist()
        p = [p_NE[i, : len(row)].tolist() for i, row in enumerate(names)]
        reasons = {
            (ids[i], e): "the image could not be read" if row_N[i] < 0 else "no training item is annotated for it"
            for i, row in enumerate(names)
            for e, x in zip(row, p[i], strict=True)
            if x != x
        }
        name = features.layer if self.backbone is None else f"{self.backbone.name} {features.layer}"
        grid = "" if pool is None else f" pooled to {self.side} × {self.side}"
        chosen = f"C {self.C:g}, share {self.share:g}"
        source = f"presence head on {name}{grid} ({chosen}), out of {self.n_splits} folds of {sketches.name} by source"
        return presence_of(ids, names, p, source, self.threshold, reasons)
