"""Compare a replayed score with its record, stage by stage; the first stage that differs is where to look.

Order: data, transform, weights, features, readout, metric; a stage rests on all before it, so that what differs later
may be a consequence. `config` comes last: settings that differ from the recorded ones and changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from humanlike.entry.provenance import SIGNATURE, UNREADABLE
from humanlike.types import Score

STAGES = ("data", "transform", "weights", "features", "readout", "metric", "config")
SETTINGS_OF_READOUT = ("solver", "C", "cv", "standardize", "seed", "tol", "n_splits", "num_classes", "num_features")
"""What of a readout's certificate are settings, not findings."""
PROTOCOL_OF_READOUT = ("rules", "rule", "alpha", "sessions", "encoding", "cv_used")
"""What of a benchmark's protocol says how answers come about, not how they are scored."""
ANSWERS = ("fold", "top1_index", "top1", "probability_target", "recognition", "num_judged", "num_present")
"""Columns of the items table that hold answers of a readout or judge."""
IDS = ("sketch_id", "image_id", "cell", "item_id")


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may be apart and still count as the same.

    Attributes:
        features: Of a signature, relative to the norm of the item's features.
        answers: Share of items whose answer (a whole number or a word) may be another.
        probability: Absolute, of probabilities of answers.
        score: Of scores and cells, relative to the larger of the value and 1.
    """

    features: float
    answers: float
    probability: float
    score: float


SAME_MACHINE = Tolerance(features=1e-6, answers=0.0, probability=1e-6, score=1e-6)
"""Same libraries, same kind of device: only the order of sums may differ."""
OTHER_MACHINE = Tolerance(features=1e-3, answers=0.01, probability=0.01, score=0.01)
"""Other libraries or another device: the last bits of features differ, and with them answers near a boundary."""


@dataclass
class Findings:
    """What differs, by stage.

    Attributes:
        differences: Stage → sentences.
        notes: What has to be said, without being a difference.
        checked: Stages that were compared.
    """

    differences: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    checked: set[str] = field(default_factory=set)

    def add(self, stage: str, *sentences: str) -> None:
        """Note differences of a stage, which counts as checked."""
        self.checked.add(stage)
        if sentences:
            self.differences.setdefault(stage, []).extend(sentences)

    @property
    def first(self) -> str | None:
        """The first stage that differs."""
        return next((stage for stage in STAGES if self.differences.get(stage)), None)


def compare_hash(findings: Findings, stage: str, name: str, recorded: Any, replayed: Any) -> bool:
    """Compare a digest (or a mapping of digests) where both sides have one; whether they are equal."""
    if recorded is None or replayed is None:
        findings.notes.append(f"the record has no hash {name!r} to compare" if recorded is None else f"no {name} hash")
        return True
    same = recorded == replayed
    findings.add(stage, *([] if same else [f"{name}: recorded {_short(recorded)}, now {_short(replayed)}"]))
    return bool(same)


def compare_contents(findings: Findings, recorded: pd.DataFrame, ids: Sequence[str], contents: Sequence[str]) -> None:
    """Compare the content of every item; the first that differs is named."""
    if list(recorded["item_id"]) != list(ids):
        gone = [i for i in recorded["item_id"] if i not in set(ids)]
        new = [i for i in ids if i not in set(recorded["item_id"])]
        said = f"items: {len(recorded)} recorded, {len(ids)} now"
        said += f"; gone: {gone[0]!r}" if gone else ""
        said += f"; new: {new[0]!r}" if new else ""
        findings.add("data", said if gone or new else f"{said}; in another order")
        return
    differing = [i for i, (a, b) in enumerate(zip(recorded["content"], contents, strict=True)) if a != b]
    if not differing:
        findings.add("data")
        return
    first = differing[0]
    now = "cannot be read now" if contents[first] == UNREADABLE else f"content {contents[first][:12]}"
    findings.add(
        "data",
        f"{len(differing)} of {len(ids)} items have other content; the first is {ids[first]!r} "
        f"(recorded content {recorded['content'].iloc[first][:12]}, {now})",
    )


def compare_features(
    findings: Findings, recorded: pd.DataFrame | None, replayed: pd.DataFrame, same_digest: bool, tolerance: Tolerance
) -> None:
    """Compare features by their signatures; with equal digests there is nothing to look for."""
    findings.checked.add("features")
    if same_digest:
        return
    if recorded is None or SIGNATURE[0] not in recorded or SIGNATURE[0] not in replayed:
        findings.add("features", "digests differ, and this benchmark records no features item by item")
        return
    old, new = (t[list(SIGNATURE)].to_numpy(np.float64) for t in (recorded, replayed))
    apart = np.abs(old - new).max(axis=1) / np.maximum(np.abs(old[:, 0]), np.finfo(float).tiny)
    wrong = np.flatnonzero((apart > tolerance.features) | (np.isnan(old[:, 0]) != np.isnan(new[:, 0])))
    if len(wrong):
        first = int(wrong[0])
        findings.add(
            "features",
            f"{len(wrong)} of {len(old)} items have other features; the first is {recorded['item_id'].iloc[first]!r} "
            f"(norm recorded {old[first, 0]:.6g}, now {new[first, 0]:.6g})",
        )
    else:
        findings.notes.append(
            f"features differ in their last bits, by {np.nanmax(apart):.1e} of their norm at most (allowed: "
            f"{tolerance.features:g})"
        )


def compare_scores(findings: Findings, recorded: Score, replayed: Score, tolerance: Tolerance) -> None:
    """Compare what a readout answered and what the metric makes of it."""
    old, new = recorded.result, replayed.result
    certificates = [dict(r.details.get("readout") or {}) for r in (old, new)]
    settings = _mapping([{k: c.get(k) for k in SETTINGS_OF_READOUT} for c in certificates], "readout.", tolerance)
    of_readout = [{k: r.protocol[k] for k in PROTOCOL_OF_READOUT if k in r.protocol} for r in (old, new)]
    of_metric = [{k: v for k, v in r.protocol.items() if k not in PROTOCOL_OF_READOUT} for r in (old, new)]
    answers, others = _items(old.items, new.items, tolerance)
    findings.add("readout", *settings, *_mapping(of_readout, "protocol.", tolerance), *answers)
    scores = [{n: vars(v) for n, v in r.scores.items()} for r in (old, new)]
    findings.add(
        "metric",
        *_mapping(of_metric, "protocol.", tolerance),
        *_mapping([old.counts, new.counts], "counts.", tolerance),
        *_mapping(scores, "scores.", tolerance),
        *_table("cells", old.cells, new.cells, tolerance),
        *others,
    )


def _mapping(sides: Sequence[Mapping[str, Any]], start: str, tolerance: Tolerance) -> list[str]:
    """A sentence for every entry that differs between two mappings, at most five."""
    old, new = sides
    found: list[str] = []
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += _mapping([a, b], f"{start}{key}.", tolerance)
        elif not _same(a, b, tolerance.score):
            found.append(f"{start}{key}: recorded {_short(a)}, now {_short(b)}")
    return found[:5] + ([f"and {len(found) - 5} more below {start}"] if len(found) > 5 else [])


def _same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(_same(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if _is_number(a) and _is_number(b):
        return bool(abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))) or (np.isnan(a) and np.isnan(b))
    missing = [v is None or (_is_number(v) and np.isnan(v)) for v in (a, b)]
    return all(missing) or bool(a == b)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _items(old: pd.DataFrame, new: pd.DataFrame, tolerance: Tolerance) -> tuple[list[str], list[str]]:
    """Differences of answers, and of what follows from them."""
    if len(old) != len(new):
        return [f"items: {len(old)} recorded, {len(new)} now"], []
    answers = [c for c in ANSWERS if c in old and c in new]
    others = [c for c in old.columns if c not in (*ANSWERS, *IDS) and c in new]
    return (
        _columns("items", old, new, answers, tolerance, tolerance.probability),
        _columns("items", old, new, others, tolerance, tolerance.score),
    )


def _table(name: str, old: pd.DataFrame, new: pd.DataFrame, tolerance: Tolerance) -> list[str]:
    if len(old) != len(new):
        return [f"{name}: {len(old)} rows recorded, {len(new)} now"]
    columns = [c for c in old.columns if c in new and c not in IDS]
    return _columns(name, old, new, columns, tolerance, tolerance.score)


def _columns(
    name: str, old: pd.DataFrame, new: pd.DataFrame, columns: Sequence[str], tolerance: Tolerance, floats: float
) -> list[str]:
    found = []
    for column in columns:
        a, b = old[column].to_numpy(object), new[column].to_numpy(object)
        whole = not pd.api.types.is_float_dtype(old[column])
        wrong = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _same(x, y, 0.0 if whole else floats)]
        if len(wrong) > (tolerance.answers * len(a) if whole or name == "items" else 0):
            row = wrong[0]
            what = next((str(old[c].iloc[row]) for c in IDS if c in old), str(row))
            found.append(
                f"{name}.{column}: {len(wrong)} of {len(a)} differ; the first is {what!r} "
                f"(recorded {_short(a[row])}, now {_short(b[row])})"
            )
    return found


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return text if len(text) <= 40 else text[:16] + "…"
