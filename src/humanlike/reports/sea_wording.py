"""The words of SEA: titles, meanings and flags of its scores, what stands under a sketch, and who made v.

`humanlike.reports.wording` takes the words from here; of the reports only the words of judges are imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from humanlike.reports import judge_wording

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
    **judge_wording.TITLES,
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
    **judge_wording.SHORT_TITLES,
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
    **judge_wording.MEANINGS,
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
    **judge_wording.FLAG_SENTENCES,
    "zero_v": "{count} sketch(es) show none of their concept's elements, as far as the judge sees (v = 0). The formula "
    "rewards that almost without bound (P = 0.2 scores +0.88): look at them before you believe their scores.",
    "sketches_not_judged": "{count} sketch(es) have too few judged elements. They are missing from SEA; none counts as "
    "v = 0.",
    "judgments_missing": "{count} judgment(s) of an element are missing; they count neither as present nor as absent.",
    "judge_reduced_precision": "The judge computed in {count}: its logits are coarse, and an element near the "
    "threshold may be decided otherwise in float32.",
    "judge_runs_remote_code": "The judge ran Python files of the model's own repository, at the stated commit.",
    "judge_mass_outside": "{count} judgment(s) are of answers in which the model had more than half of the probability "
    "on other words than yes and no.",
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


def source_warning(runs: Mapping[str, Mapping[str, Any]], lists: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The sentence that belongs next to several runs whose v was made differently; "" where all made it alike.

    Lists of other concepts are no other lists: runs with lists of one origin, for example the shipped ones, differ
    where a concept of both has other elements.

    Args:
        runs: Name of the run → its `details`.
        lists: Name of the run → concept → its elements, comma-separated; without it the sources are compared.

    Example:
        >>> head, other = {"source": "a head"}, {"source": "a model"}
        >>> lists = {"source": "shipped@01"}
        >>> source_warning({"a": {"judge": head, "elements": lists}, "b": {"judge": other, "elements": lists}})
        'SEA of these runs cannot be compared: v comes from different judges (a: a head; b: a model).'
        >>> source_warning({"a": {"judge": head, "elements": lists}})
        ''
    """
    said = []
    elements = {name: str((details.get("elements") or {}).get("source", "unknown")) for name, details in runs.items()}
    if len(set(elements.values())) > 1 and not _one_list(elements, lists or {}):
        said.append(f"different lists of elements ({_by_source(elements)})")
    judges = {name: _judge(details.get("judge") or {}) for name, details in runs.items()}
    if len(set(judges.values())) > 1:
        said.append(f"different judges ({_by_source(judges)})")
    return f"SEA of these runs cannot be compared: v comes from {' and '.join(said)}." if said else ""


def _judge(judge: Mapping[str, Any]) -> str:
    at = judge.get("threshold")
    return str(judge.get("source", "unknown")) + ("" if at in (None, 0.5) else f", present from {at:g}")


def _one_list(sources: Mapping[str, str], lists: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether all lists are of one origin and no concept has two of them."""
    if len({source.split("@")[0] for source in sources.values()}) > 1 or set(lists) != set(sources):
        return False
    known: dict[str, set[str]] = {}
    return all(
        known.setdefault(concept, set(elements.split(", "))) == set(elements.split(", "))
        for own in lists.values()
        for concept, elements in own.items()
    )


def _by_source(found: Mapping[str, str]) -> str:
    """`a, b: one source; c: another`; of many runs the first are named."""
    groups: dict[str, list[str]] = {}
    for name, source in found.items():
        groups.setdefault(source, []).append(name)
    return "; ".join(
        f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}: {source}"
        for source, names in groups.items()
    )


def comparison_warnings(
    runs: Mapping[str, Mapping[str, Any]],
    lists: Mapping[str, Mapping[str, str]],
    protocols: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    """What keeps scores of several runs from being compared: how v was made, hyperparameters, numbers of labels.

    Args:
        runs: As for `source_warning`.
        lists: As for `source_warning`.
        protocols: Name of the run → its protocol.

    Example:
        >>> few, many = ({"chance": {"accuracy": 1 / n}} for n in (4, 48))
        >>> comparison_warnings({"a": few, "b": many}, {}, {"a": {"delta": 1e-6}, "b": {"delta": 1e-6}})
        ['P is a probability among the labels of a data set, and these have different numbers of them (a: 4; b: 48).']
    """
    said = [source_warning(runs, lists)]
    names = dict.fromkeys(name for protocol in protocols.values() for name in protocol if name != "preset")
    for name in names:
        found = {run: f"{protocol.get(name)}" for run, protocol in protocols.items()}
        if len(set(found.values())) > 1:
            said.append(f"SEA of these runs cannot be compared: {name} differs ({_by_source(found)}).")
    labels = {run: num_labels(details) for run, details in runs.items()}
    known = {run: str(count) for run, count in labels.items() if count is not None}
    if len(set(known.values())) > 1:
        said.append(
            "P is a probability among the labels of a data set, and these have different numbers of them "
            f"({_by_source(known)})."
        )
    return [text for text in said if text]


def num_labels(details: Mapping[str, Any]) -> int | None:
    """Labels of a run's data set, from the level of chance; None where that is not known."""
    chance = (details.get("chance") or {}).get("accuracy")
    return None if not chance else round(1 / chance)


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
