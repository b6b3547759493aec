"""The words of SEA: titles, meanings and flags of its scores, what stands under a sketch, and who made v.

`humanlike.reports.wording` takes the words from here; nothing else of the reports is imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

_JUDGED = {
    "f1": ("F1", "harmonic mean of precision and recall; high already for a judge that always says present"),
    "balanced_accuracy": ("balanced accuracy", "mean of recall and specificity; 0.5 for a judge that looks at nothing"),
    "precision": ("precision", "share of the elements called present that the annotation has"),
    "recall": ("recall", "share of the annotated elements that the judge sees"),
    "specificity": ("specificity", "share of the elements not drawn that the judge calls absent"),
    "accuracy": ("accuracy", "share of judgments of elements that agree with the annotation"),
    "present_rate_bias": (
        "bias to present",
        "rate of \u201cpresent\u201d, judge − annotation; above 0 it sees too much",
    ),
}

TITLES: Mapping[str, str] = {
    "sea": "Sketch abstraction efficiency",
    "reward": "Reward",
    "penalty": "Penalty",
    "visual_ratio": "Visual ratio v",
    "recognition": "Recognition P",
    "economy": "Economy u",
    "gate": "Gate g",
    "sea_annotated": "SEA by the annotation",
    "visual_ratio_annotated": "Visual ratio v by the annotation",
    **{f"presence_{name}": f"Judge of elements, {title}" for name, (title, _) in _JUDGED.items()},
}

SHORT_TITLES: Mapping[str, str] = {
    "sea": "SEA",
    "sea_annotated": "SEA, annotation",
    "visual_ratio_annotated": "v, annotation",
    **{f"presence_{name}": f"Judge, {title}" for name, (title, _) in _JUDGED.items()},
    "num_elements": "Elements E",
    "num_judged": "Judged",
    "num_present": "Present V",
    "n_scored": "Scored",
    "n_efficient": "Efficient",
    "n_overdrawn": "Overdrawn",
    "n_not_recognisable": "Not recognisable",
    "n_zero_v": "v = 0",
    "n_missing": "Not judged",
}

MEANINGS: Mapping[str, str] = {
    "sea": "recognisable with few of the expected elements; in (−1, 1), above 0 efficient; sketches are scored, then "
    "averaged",
    "reward": "for being recognised with little drawn; below 0 where more is drawn than recognised (v > P)",
    "penalty": "for much drawn and little recognised, and for not being recognised at all",
    "visual_ratio": "share V/E of a concept's elements that the judge sees in the sketch",
    "recognition": "probability that the model gives to the sketch's concept",
    "economy": "log (1 + δ)/(v + δ): 0 where everything is drawn, 13.8 (δ = 10⁻⁶) where nothing is",
    "gate": "above 0 where recognition exceeds the visual ratio (v < P), 0 on the line v = P",
    "sea_annotated": "the same with the annotation's elements in place of the judge's",
    "visual_ratio_annotated": "share of a concept's elements that the annotation has",
    **{f"presence_{name}": meaning for name, (_, meaning) in _JUDGED.items()},
}

UNITS: Mapping[str, str] = {"sea": "", "probability": ""}

FLAG_SENTENCES: Mapping[str, str] = {
    "zero_v": "{count} sketch(es) show none of their concept's elements, as far as the judge sees (v = 0). The formula "
    "rewards that almost without bound (P = 0.2 scores +0.88): look at them before you believe their scores.",
    "sketches_not_judged": "{count} sketch(es) have too few judged elements. They are missing from SEA; none counts as "
    "v = 0.",
    "judgments_missing": "{count} judgment(s) of an element are missing; they count neither as present nor as absent.",
    "sketches_without_elements": "{count} sketch(es) are of a concept without a list of elements and have no SEA.",
}


def source_notes(details: Mapping[str, Any]) -> list[str]:
    """Which judge and which lists of elements made v, and what a judge that looks at nothing would reach.

    Args:
        details: `details` of a result; without `judge` and `elements` there is nothing to say.

    Example:
        >>> notes = source_notes({"judge": {"source": "a head"}, "elements": {"source": "shipped@01", "concepts": 2}})
        >>> notes[0].split(". ")[0]
        'The visual ratio v is of the elements in shipped@01 (2 concepts), judged by a head'
    """
    judge, elements = details.get("judge") or {}, details.get("elements") or {}
    if not (judge and elements):
        return []
    lists = f"{elements.get('source')} ({elements.get('concepts')} concepts)"
    text = f"The visual ratio v is of the elements in {lists}, judged by {judge.get('source')}."
    if judge.get("threshold") is not None:
        text += f" An element counts as present from a probability of {judge['threshold']:g}."
    coverage = judge.get("coverage")
    if coverage is not None and not pd.isna(coverage) and coverage < 1:
        text += f" {100 * coverage:.1f}% of the elements could be judged."
    notes = [f"{text} Scores by another judge or of other lists cannot be compared with these."]
    if judge.get("always_present_f1") is not None:
        notes.append(
            f"The annotation has {100 * judge['present_rate']:.1f}% of the elements present: a judge that always says "
            f"present reaches F1 {judge['always_present_f1']:.3f} and balanced accuracy 0.5."
        )
    return notes


def source_warning(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """The sentence that belongs next to several runs whose v was made differently; "" where all made it alike.

    Args:
        runs: Name of the run → its `details`.

    Example:
        >>> head, other = {"source": "a head"}, {"source": "a model"}
        >>> lists = {"source": "shipped@01"}
        >>> source_warning({"a": {"judge": head, "elements": lists}, "b": {"judge": other, "elements": lists}})
        'SEA of these runs cannot be compared: v comes from different judges (a: a head; b: a model).'
        >>> source_warning({"a": {"judge": head, "elements": lists}})
        ''
    """
    said = []
    for part, words in (("elements", "different lists of elements"), ("judge", "different judges")):
        found = {name: str((details.get(part) or {}).get("source", "unknown")) for name, details in runs.items()}
        if len(set(found.values())) > 1:
            said.append(f"{words} ({'; '.join(f'{name}: {source}' for name, source in found.items())})")
    return f"SEA of these runs cannot be compared: v comes from {' and '.join(said)}." if said else ""


def sketch_caption(row: Mapping[str, Any]) -> str | None:
    """What stands under a sketch: SEA, P and V/E; None where the row is not one of SEA.

    Args:
        row: A row of the items table.

    Example:
        >>> counts = {"num_elements": 8, "num_judged": 8, "num_present": 3}
        >>> sketch_caption({"sea": 0.5684, "recognition": 0.64, **counts})
        'SEA 0.57, P 0.64, V/E 3/8'
        >>> sketch_caption({"sea": float("nan"), "recognition": 0.64, **counts, "num_judged": 2})
        'SEA missing (2 of 8 judged), P 0.64'
    """
    if "sea" not in row or "num_elements" not in row:
        return None
    P = f"P {row['recognition']:.2f}"
    present, judged, elements = (int(row[f"num_{name}"]) for name in ("present", "judged", "elements"))
    if pd.isna(row["sea"]):
        return f"SEA missing ({judged} of {elements} judged), {P}"
    ratio = f"V/E {present}/{elements}" if judged == elements else f"V/judged {present}/{judged}"
    return f"SEA {row['sea']:.2f}, {P}, {ratio}".replace("-", "−")


SYMBOLS: Mapping[str, str] = {
    "alpha": "α", "beta": "β", "lam": "λ", "eta": "η", "k": "k", "tau": "τ", "r": "r", "gamma": "γ", "delta": "δ",
}  # fmt: skip
"""Hyperparameter → its letter."""


def parameter_label(name: str, values: Sequence[float]) -> str:
    """A hyperparameter's letter with the range of its values.

    Example:
        >>> parameter_label("lam", [0.5, 1.0, 2.0]), parameter_label("delta", [1e-8, 1e-4])
        ('λ 0.5 to 2', 'δ 1e−08 to 0.0001')
    """
    low, high = (f"{v:.3g}".replace("-", "−") for v in (min(values), max(values)))
    return f"{SYMBOLS.get(name, name)} {low}" + (f" to {high}" if low != high else "")
