"""Calibration of a judge of elements: how often it errs, and what v and SEA are without its errors.

Beside the real elements a judge is asked about absent-element controls, parts of other things that no sketch of the
concept shows (`humanlike.elements.controls`); they estimate how often it says "present" to what is not there. A small
annotated set of sketches estimates how often it overlooks what is. Corrected, scores by two judges can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from humanlike.benchmarks.sea_calibration_rates import JudgeRates, SpecificityFrom, judge_rates, resamples
from humanlike.benchmarks.sea_corrected import LEAST_YOUDEN, Corrected, corrected
from humanlike.benchmarks.sea_sketches import JudgedSketches
from humanlike.data.table_elements import read_elements
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.controls import asks_anything, beside, draw_controls
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import ElementsOf, Presence
from humanlike.rng import generator
from humanlike.types import BenchmarkResult, ScoreValue, Sketches

OWN = "own"
BIASED = 0.1
"""A judge is called biased where it errs on more than this share of what is absent (or present), beyond chance."""


@dataclass(frozen=True)
class JudgeCalibration:
    """How a judge is calibrated.

    Attributes:
        annotated: "own": the data set's annotation; or a table `sketch_id, element, drawn` of some of its sketches;
            None: none, so that nothing is known of sensitivity and nothing is corrected.
        sketches: Annotated sketches that are used, drawn with `seed`; None: all.
        controls: Absent-element controls a concept; 0: none. Judges that know a list of elements only are asked none.
        specificity: "both": controls and annotated absent elements pooled, if they agree, else the annotated ones;
            "controls" or "annotated": these alone. Controls are easier than absent elements of the concept may be.
        replicates: Replicates of corrected SEA, at most those of the benchmark.
        seed: Seed of the controls and of the annotated sketches.

    Raises:
        ValueError: A setting is out of range.
    """

    annotated: str | Path | None = OWN
    sketches: int | None = None
    controls: int = 2
    specificity: SpecificityFrom = "both"
    replicates: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if self.specificity not in get_args(SpecificityFrom):
            raise ValueError(
                f"benchmark.calibration.specificity is {self.specificity!r}; it can be both, controls or annotated"
            )
        if self.controls < 0 or self.replicates < 2 or (self.sketches is not None and self.sketches < 1):
            raise ValueError(
                "benchmark.calibration needs controls ≥ 0, replicates ≥ 2 and sketches ≥ 1 or null; got "
                f"{self.controls}, {self.replicates}, {self.sketches}"
            )
        if self.controls == 0 and (self.annotated is None or self.specificity == "controls"):
            raise ValueError(
                "benchmark.calibration has nothing to estimate a specificity from: ask controls (controls: 2), or give "
                "annotated sketches"
            )
        if self.annotated is None and self.specificity == "annotated":
            raise ValueError(
                "benchmark.calibration.specificity is annotated, but annotated is null: give annotated sketches, or "
                "take the specificity from the controls (specificity: controls)"
            )

    @classmethod
    def of(cls, settings: Mapping[str, Any] | JudgeCalibration | None) -> JudgeCalibration | None:
        """From settings by name; None: no calibration.

        Raises:
            ValueError: A setting is unknown or out of range.

        Example:
            >>> JudgeCalibration.of({"controls": 3}).controls, JudgeCalibration.of(None)
            (3, None)
        """
        if settings is None or isinstance(settings, JudgeCalibration):
            return settings
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise ValueError(f"benchmark.calibration has no setting {unknown[0]!r}; it has {', '.join(known)}")
        return cls(**settings)

    def questions(self, judge: Any, elements: ElementsOf) -> tuple[ElementsOf, dict[str, tuple[str, ...]]]:
        """What a judge is asked (elements and controls, shuffled), and which of it are controls.

        Raises:
            ValueError: Too few elements are unlike a concept's own.
        """
        if self.controls == 0 or not asks_anything(judge):
            return elements, {}
        plain = {concept: tuple(elements[concept]) for concept in elements}
        controls = draw_controls(plain, self.controls, self.seed)
        return beside(plain, controls, self.seed), controls

    def truth(self, data: Sketches, elements: ElementLists) -> Presence | None:
        """The annotation of the calibration's sketches; None where there is to be none.

        Raises:
            FileNotFoundError: The table is missing.
            ValueError: There is no annotation, or it is of other elements than are judged.
        """
        if self.annotated is None:
            return None
        if str(self.annotated) == OWN:
            if data.elements is None:
                raise ValueError(
                    f"{data.name} has no annotation of elements to calibrate a judge with: give "
                    "benchmark.calibration.annotated a table sketch_id, element, drawn of some of its sketches, or "
                    "null to know the rate of false positives alone"
                )
            annotated = data
        else:
            table = read_elements(self.annotated, data.table["sketch_id"].tolist())
            annotated = replace(data, elements=table)
        truth = AnnotationJudge().judge(annotated, elements)
        known = truth.table[truth.table["decision"].notna()]
        if not len(known):
            raise ValueError(
                f"the annotation to calibrate with ({self.annotated}) has none of the elements that are judged "
                f"({elements.source}); annotate elements of these lists, or judge the annotation's own "
                "(benchmark.elements=annotation)"
            )
        if self.sketches is not None:
            ids = np.array(sorted(set(known["sketch_id"])), dtype=object)
            order = generator(self.seed, "calibration_sketches").permutation(len(ids))
            known = known[known["sketch_id"].isin(set(ids[order[: self.sketches]]))]
        return replace(truth, table=known, sketch_ids=truth.sketch_ids)

    def applied(
        self,
        result: BenchmarkResult,
        sketches: JudgedSketches,
        presence: Presence,
        truth: Presence | None,
        controls: Presence | None,
        replicates: int,
        seed: int,
    ) -> BenchmarkResult:
        """The result with the judge's rates and, where they allow it, corrected scores beside the raw ones.

        Args:
            result: The result without calibration.
            sketches: The sketches as judged.
            presence: Judgments of their elements.
            truth: See `truth`.
            controls: Answers to the controls; None: none were asked.
            replicates: Bootstrap replicates of rates and v.
            seed: Global seed.
        """
        weight_BN = resamples(sketches, replicates, seed)
        empty = pd.DataFrame({"sketch_id": [], "element": [], "decision": pd.array([], "boolean"), "annotated": []})
        pairs = empty if truth is None else presence.against(truth)
        rates = judge_rates(sketches, pairs, controls, self.specificity, weight_BN)
        refused = _refusal(rates)
        found = None
        if not refused and sketches.scored_N.any():
            found = corrected(sketches, rates, weight_BN, min(self.replicates, replicates), seed)
        said = [*result.details.get("notes", ()), *_notes(rates, found, refused, sketches)]
        record = {
            **asdict(self),
            "annotated": None if self.annotated is None else str(self.annotated),
            "annotated_sketches": 0 if truth is None else int(pairs["sketch_id"].nunique()),
            "annotated_pairs": len(pairs),
            "controls_answered": rates.controls.n,
            "specificity_from": rates.source,
            "refused": refused or None,
        }
        return _with(
            replace(
                result,
                scores={**result.scores, **_scores(rates, found)},
                flags=tuple(dict.fromkeys([*result.flags, *self._flags(rates, refused, controls)])),
                details={**result.details, "notes": said, "calibration": record},
                tables={**result.tables, "calibration": rates.table(), "calibration_conditions": rates.by_condition},
            ),
            found,
        )

    def _flags(self, rates: JudgeRates, refused: str, controls: Presence | None) -> list[str]:
        told = {
            "yes_biased_judge": rates.specificity.n and 1 - rates.specificity.interval[1] > BIASED,
            "no_biased_judge": rates.sensitivity.n and 1 - rates.sensitivity.interval[1] > BIASED,
            "uninformative_judge": refused == "uninformative",
            "calibration_without_annotation": refused == "no annotation",
            "calibration_without_absent": refused == "nothing absent",
            "controls_not_asked": self.controls > 0 and controls is None,
            "controls_unlike_annotation": rates.unlike,
        }
        return [flag for flag, holds in told.items() if holds]


def without_controls(presence: Presence, data: Sketches, controls: ElementsOf) -> tuple[Presence, Presence]:
    """Judgments of the elements, and those of the controls.

    Args:
        presence: Judgments of both.
        data: The sketches.
        controls: Concept → controls.
    """
    concept_of = dict(zip(data.table["sketch_id"], data.table["concept"], strict=True))
    asked = {(concept, e) for concept, row in controls.items() for e in row}
    pairs = zip(presence.table["sketch_id"].map(concept_of), presence.table["element"], strict=True)
    control_M = np.fromiter((pair in asked for pair in pairs), bool, len(presence.table))
    return (
        replace(presence, table=presence.table[~control_M]),
        replace(presence, table=presence.table[control_M]),
    )


def _refusal(rates: JudgeRates) -> str:
    """Why nothing is corrected; "" where it is."""
    if not rates.sensitivity.n:
        return "no annotation"
    if not rates.specificity.n:
        return "nothing absent"
    return "uninformative" if rates.youden <= LEAST_YOUDEN or rates.youden_interval[0] <= 0 else ""


def _scores(rates: JudgeRates, found: Corrected | None) -> dict[str, ScoreValue]:
    scores = {}
    for name, estimate in (("sensitivity", rates.sensitivity), ("specificity", rates.specificity)):
        value = (estimate.value, *estimate.interval) if estimate.n else (np.nan, np.nan, np.nan)
        scores[f"judge_{name}"] = _value(*value, estimate.n, "share")
    for name, unit in (("visual_ratio_corrected", "share"), ("sea_corrected", "sea")):
        scores[name] = ScoreValue(None, unit=unit)
        if found is not None:
            row = found.groups.iloc[0]
            scores[name] = _value(row[name], row[f"{name}_low"], row[f"{name}_high"], row["n"], unit)
    return scores


def _value(value: float, low: float, high: float, n: int, unit: str) -> ScoreValue:
    known = [float(x) if np.isfinite(x) else None for x in (value, low, high)]
    return ScoreValue(known[0], known[1], known[2], n=int(n), unit=unit)


def _notes(rates: JudgeRates, found: Corrected | None, refused: str, sketches: JudgedSketches) -> list[str]:
    v_N = sketches.value_QN["visual_ratio"][sketches.scored_N]
    if refused == "uninformative":
        low, high = rates.youden_interval
        return [
            f"v and SEA are not corrected: the judge calls {rates.sensitivity.value:.1%} of what is present and "
            f"{1 - rates.specificity.value:.1%} of what is absent present. Sensitivity + specificity − 1 is "
            f"{rates.youden:.3f} ({low:.3f} to {high:.3f}), too near 0 to tell the two apart; take another judge or "
            "prompt, or calibrate on more sketches.".replace("-", "−")
        ]
    if refused == "no annotation" and rates.specificity.n and len(v_N):
        least = (float(v_N.mean()) + rates.specificity.value - 1) / max(rates.specificity.value, 1e-12)
        return [
            f"v and SEA are not corrected, because without annotated sketches nobody knows what the judge overlooks. "
            f"It calls {1 - rates.specificity.value:.1%} of absent controls present; if it overlooks nothing, v is "
            f"{max(0.0, least):.3f}, else more."
        ]
    if refused:
        return ["v and SEA are not corrected: no absent element was asked about, so false positives are unknown."]
    if found is None:
        return []
    row = found.groups.iloc[0]
    return [
        f"Freed of the judge's errors (sensitivity {rates.sensitivity.value:.3f}, specificity "
        f"{rates.specificity.value:.3f}), v is {row['visual_ratio_corrected']:.3f} instead of "
        f"{row['visual_ratio']:.3f} and SEA {row['sea_corrected']:.3f} instead of {row['sea']:.3f}.".replace("-", "−")
    ]


def _with(result: BenchmarkResult, found: Corrected | None) -> BenchmarkResult:
    """The tables with columns of corrected values."""
    if found is None:
        return result
    columns = [c for c in found.sketches.columns if c != "sketch_id"]
    by_sketch = found.sketches.set_index("sketch_id").reindex(result.items["sketch_id"])[columns]
    items = result.items.assign(**{c: by_sketch[c].to_numpy() for c in columns})
    items = items[[*(c for c in items.columns if c != "error"), "error"]]
    means = ["visual_ratio_corrected", "sea_corrected"]
    by_cell = items.groupby(["concept", "condition"], as_index=False)[means].mean()
    groups = found.groups[found.groups["condition"].notna()]
    own = [c for c in groups.columns if c.startswith(tuple(means)) and "_bootstrap_" not in c and "_delta_" not in c]
    return replace(
        result,
        items=items,
        cells=result.cells.merge(by_cell, on=["concept", "condition"], how="left"),
        conditions=result.conditions.merge(groups[["condition", *own]], on="condition", how="left"),
        tables={**result.tables, "corrected": found.groups},
    )
