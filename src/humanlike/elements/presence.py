"""Element presence: which of its commonsense elements a sketch shows, whoever judges it.

Shapes: N sketches, E elements of a sketch's concept (ragged over sketches), B batch. An element is *present*, *absent*
or *missing*; missing is what a judge could not say, and is never counted as absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch

from humanlike.types import Features, Sketches

ElementsOf = Mapping[str, Sequence[str]]
"""Concept → its elements."""

COLUMNS = ("sketch_id", "element", "probability", "decision", "reason")


@dataclass(frozen=True)
class Presence:
    """Judgments of N sketches, each about the elements of its concept.

    Attributes:
        table: One row a (sketch, element): `sketch_id`, `element`, `probability` of being present (float in [0, 1]; NaN
            where the judge gave none), `decision` (nullable boolean: present, absent, <NA> for missing) and `reason`
            (why it is missing; "" elsewhere).
        sketch_ids: The N sketches in item order; one without rows has no elements.
        source: Who judged, and with which settings, in one line that goes next to every score.
        threshold: Probability from which an element counts as present.
        facts: What else the judge says of itself, JSON-like, for the record; `flags` in it stand beside the score.

    Raises:
        ValueError: Columns are missing, a pair stands twice or belongs to no sketch, a probability lies outside [0, 1]
            or on the other side of the threshold than its decision, or a missing decision has no reason.

    Example:
        >>> presence = presence_of(["a", "b"], [["ear", "tail"], ["wheel"]], [[0.9, np.nan], [0.2]], source="example")
        >>> presence.visual_ratio[["num_elements", "num_judged", "num_present", "v", "coverage"]].values.tolist()
        [[2.0, 1.0, 1.0, 1.0, 0.5], [1.0, 1.0, 0.0, 0.0, 1.0]]
    """

    table: pd.DataFrame
    sketch_ids: tuple[str, ...]
    source: str
    threshold: float = 0.5
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lacking = [c for c in COLUMNS if c not in self.table.columns]
        if lacking:
            raise ValueError(f"the presence table lacks the column(s) {lacking}; it needs {COLUMNS}")
        if not 0 < self.threshold < 1:
            raise ValueError(f"threshold must lie between 0 and 1, got {self.threshold}")
        if len(set(self.sketch_ids)) != len(self.sketch_ids):
            raise ValueError("sketch_ids names a sketch twice")
        table = self.table.astype({"probability": np.float64, "decision": "boolean"})
        self._check(table)
        object.__setattr__(self, "table", table[list(COLUMNS)].reset_index(drop=True))

    def _check(self, table: pd.DataFrame) -> None:
        p, decision = table["probability"], table["decision"]
        self._refuse(table, table.duplicated(["sketch_id", "element"]), "stands twice")
        self._refuse(table, ~table["sketch_id"].isin(self.sketch_ids), "is of no sketch in sketch_ids")
        self._refuse(table, p.notna() & ~p.between(0, 1), "has a probability outside [0, 1]")
        decided = decision.notna()
        self._refuse(table, p.notna() & ~decided, "has a probability, but no decision")
        other_side = p.notna() & decided & ((p >= self.threshold) != decision.fillna(False).astype(bool))
        self._refuse(table, other_side, f"is decided against its probability (threshold {self.threshold:g})")
        reason = table["reason"].astype(str).str.len() > 0
        self._refuse(table, ~decided & ~reason, "is missing without a reason")
        self._refuse(table, decided & reason, "is decided, but has a reason for being missing")

    @staticmethod
    def _refuse(table: pd.DataFrame, wrong: pd.Series, what: str) -> None:
        if wrong.any():
            row = table[wrong.to_numpy()].iloc[0]
            raise ValueError(
                f"presence of {row['element']!r} in sketch {row['sketch_id']!r} {what} (probability "
                f"{row['probability']}, decision {row['decision']}; {int(wrong.sum())} such rows)"
            )

    @property
    def visual_ratio(self) -> pd.DataFrame:
        """Visual ratio v = V / E of every sketch over the elements that were judged, in item order.

        Columns: `sketch_id`, `num_elements` E, `num_judged`, `num_present` V, `v` = V / num_judged (NaN where nothing
        was judged), `mean_probability` (of those with a probability; NaN where none has), and `coverage` =
        num_judged / E (NaN where E = 0). A `coverage` below 1 says that v rests on a part of E.
        """
        decision = self.table["decision"]
        rows = pd.DataFrame(
            {
                "sketch_id": self.table["sketch_id"],
                "judged": decision.notna(),
                "present": decision.fillna(False).astype(bool),
                "probability": self.table["probability"],
            }
        )
        grouped = rows.groupby("sketch_id", sort=False)
        found = pd.DataFrame(
            {
                "num_elements": grouped.size(),
                "num_judged": grouped["judged"].sum(),
                "num_present": grouped["present"].sum(),
                "mean_probability": grouped["probability"].mean(),
            }
        ).reindex(pd.Index(self.sketch_ids, name="sketch_id"))
        counts = ["num_elements", "num_judged", "num_present"]
        found[counts] = found[counts].fillna(0).astype(np.int64)
        found["v"] = found["num_present"] / found["num_judged"].where(found["num_judged"] > 0)
        found["coverage"] = found["num_judged"] / found["num_elements"].where(found["num_elements"] > 0)
        return found.reset_index()[["sketch_id", *counts, "v", "mean_probability", "coverage"]]

    @property
    def coverage(self) -> float:
        """Share of all (sketch, element) pairs that were judged; NaN without pairs."""
        return float(self.table["decision"].notna().mean()) if len(self.table) else float("nan")

    @property
    def missing(self) -> Mapping[str, int]:
        """Reason → number of missing judgments."""
        reasons = self.table["reason"][self.table["decision"].isna()]
        return {str(k): int(n) for k, n in reasons.value_counts().items()}

    def at(self, threshold: float) -> Presence:
        """The same probabilities decided at another threshold; judgments without a probability stay as they are."""
        decision = self.table["decision"].mask(
            self.table["probability"].notna(), self.table["probability"] >= threshold
        )
        return replace(self, table=self.table.assign(decision=decision), threshold=threshold)

    def against(self, truth: Presence) -> pd.DataFrame:
        """These judgments beside the true ones, for the pairs whose truth is known.

        Returns:
            `sketch_id`, `element`, `probability`, `decision` (nullable), `annotated` (bool), in the order of the truth.
            A pair that was not asked about has decision <NA>.
        """
        known = truth.table[truth.table["decision"].notna()]
        annotated = known[["sketch_id", "element"]].assign(annotated=known["decision"].astype(bool))
        return annotated.merge(
            self.table[["sketch_id", "element", "probability", "decision"]],
            on=["sketch_id", "element"],
            how="left",
            validate="one_to_one",
        )[["sketch_id", "element", "probability", "decision", "annotated"]]


def presence_of(
    sketch_ids: Sequence[str],
    elements: Sequence[Sequence[str]],
    probability: Sequence[Sequence[float] | np.ndarray],
    source: str,
    threshold: float = 0.5,
    reasons: Mapping[tuple[str, str], str] | None = None,
) -> Presence:
    """A record from probabilities; NaN is missing.

    Args:
        sketch_ids: The N sketches.
        elements: Elements of every sketch.
        probability: Probability of every element, in the same shape.
        source: Who judged.
        threshold: Probability from which an element counts as present.
        reasons: (sketch, element) → why the judgment is missing; "no probability" where it is not named.

    Raises:
        ValueError: See `Presence`, or lists of different lengths.
    """
    names = [e for row in elements for e in row]
    p = np.array([x for row in probability for x in row], dtype=np.float64)
    sizes = [len(row) for row in elements]
    if len(sizes) != len(sketch_ids) or sizes != [len(row) for row in probability]:
        raise ValueError(
            f"presence needs a list of elements and one of probabilities for each of the {len(sketch_ids)} sketches, "
            f"equally long; got {len(sizes)} and {len(probability)} lists"
        )
    ids = np.repeat(np.asarray(sketch_ids, dtype=object), sizes)
    known = ~np.isnan(p)
    given = reasons or {}
    reason = ["" if k else given.get((s, e), "no probability") for k, s, e in zip(known, ids, names, strict=True)]
    decision = pd.array(p >= threshold, dtype="boolean")
    decision[~known] = pd.NA
    table = pd.DataFrame({"sketch_id": ids, "element": names, "probability": p, "decision": decision, "reason": reason})
    return Presence(table, tuple(sketch_ids), source, threshold)


@runtime_checkable
class PresenceJudge(Protocol):
    """Someone who says which elements sketches show: an annotation, a network, a language-image model, an endpoint."""

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """Judge every sketch about the elements of its concept.

        Args:
            sketches: The sketches; a concept that `elements` lacks has none.
            elements: Concept → elements.
            features: Features of the sketches, for judges that read features; others take the images.
        """


@runtime_checkable
class DifferentiablePresence(Protocol):
    """A judge whose verdict has a gradient with respect to the pixels, for training against it."""

    def presence_logits(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, E) logits of "present" of each image's elements, padded, and the (B, E) mask of those that are real.

        Where the mask is False the logit is 0. v of an image is the mean of sigmoid(logit) over its mask.
        """


def elements_by_item(sketches: Sketches, elements: ElementsOf) -> list[tuple[str, ...]]:
    """The elements of every item's concept, in item order; empty where the concept has none."""
    own = {concept: tuple(str(e) for e in elements[concept]) for concept in sketches.labels if concept in elements}
    return [own.get(concept, ()) for concept in sketches.table["concept"]]


def feature_rows(sketches: Sketches, features: Features, layer: str | None, weights_hash: str | None) -> np.ndarray:
    """(N,) row of `features` of every item, -1 for items without one, after a check that they are the right ones.

    Raises:
        ValueError: Features of another layer or of other weights than asked for, or of items that do not exist.
    """
    if layer is not None and features.layer != layer:
        raise ValueError(f"the features are of layer {features.layer!r}, the judge reads {layer!r}; extract that one")
    theirs: Any = features.hashes.get("weights")
    if weights_hash is not None and theirs is not None and theirs != weights_hash:
        raise ValueError(
            f"the features come from weights {str(theirs)[:12]}…, the judge was made for {weights_hash[:12]}…: extract "
            "them with the judge's own backbone"
        )
    row_N = np.full(len(sketches), -1, dtype=np.int64)
    if len(features.rows) and int(features.rows.max()) >= len(sketches):
        raise ValueError(f"features of item {int(features.rows.max())} are of no item: {len(sketches)} sketches")
    row_N[features.rows] = np.arange(len(features.rows))
    return row_N
