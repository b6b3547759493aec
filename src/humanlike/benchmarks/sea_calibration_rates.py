"""How often a judge of elements errs: sensitivity and specificity from annotated sketches and absent-element controls.

Legend: N used items, M judgments, B replicates (source images resampled within concepts), J = Se + Sp - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from humanlike.benchmarks.sea_sketches import JudgedSketches
from humanlike.elements.presence import Presence
from humanlike.rng import generator
from humanlike.stats import basic, image_weights
from humanlike.stats.misclassification import Rate, effective_size, score_interval

SpecificityFrom = Literal["both", "controls", "annotated"]
SEPARATE = 2.58
"""Standard errors between the specificities of controls and of the annotation from which they are not pooled (1%)."""


@dataclass(frozen=True, eq=False)
class RateEstimate:
    """A share of judgments with its replicates.

    Attributes:
        value: The share; NaN without a judgment.
        n: Judgments.
        value_B: (B,) replicates.
    """

    value: float
    n: int
    value_B: np.ndarray

    @property
    def rate(self) -> Rate:
        """The share and the number of independent judgments that would vary as much."""
        return Rate(self.value, effective_size(self.value, float(np.nanvar(self.value_B)), self.n))

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval at the effective number of judgments; NaN without a judgment."""
        return score_interval(self.rate) if self.n else (np.nan, np.nan)

    def smoothed_B(self, seed: int, name: str) -> np.ndarray:
        """(B,) replicates; of a share of 0 or 1, which no resample can move, draws from Jeffreys' posterior."""
        if 0 < self.value < 1:
            return self.value_B
        hits = self.value * self.n
        drawn = generator(seed, "calibration", name).beta(hits + 0.5, self.n - hits + 0.5, len(self.value_B))
        return drawn if self.n else self.value_B


@dataclass(frozen=True, eq=False)
class JudgeRates:
    """What is known of a judge.

    Attributes:
        sensitivity: Share of what is annotated present that it calls present; n = 0 without an annotation.
        specificity: Share of what is absent that it calls absent; n = 0 where nothing absent was asked about.
        annotated: The same from the annotation's absent elements alone.
        controls: The same from the absent-element controls alone.
        source: Where the specificity is from: "both", "controls" or "annotated".
        unlike: Whether controls and annotation differ by more than chance, so that they were not pooled.
        by_condition: `condition, sensitivity, n_present, specificity, n_absent` from the annotated elements.
    """

    sensitivity: RateEstimate
    specificity: RateEstimate
    annotated: RateEstimate
    controls: RateEstimate
    source: str
    unlike: bool
    by_condition: pd.DataFrame

    @property
    def youden(self) -> float:
        """J = Se + Sp - 1."""
        return self.sensitivity.value + self.specificity.value - 1

    @property
    def youden_interval(self) -> tuple[float, float]:
        """Its interval from the replicates; what a rate of 0 or 1 hides is taken from Wilson's interval."""
        replicates_B = self.sensitivity.value_B + self.specificity.value_B - 1
        found = basic(self.youden, replicates_B)
        low, high = found.low, found.high
        for estimate in (self.sensitivity, self.specificity):
            if estimate.n and estimate.value in (0.0, 1.0):
                low, high = low - (estimate.value - estimate.interval[0]), high + estimate.interval[1] - estimate.value
        return low, high

    def table(self) -> pd.DataFrame:
        """One row a rate: `rate, value, ci_low, ci_high, n, n_effective`."""
        named = {
            "sensitivity": self.sensitivity,
            "specificity": self.specificity,
            "specificity, annotated elements": self.annotated,
            "specificity, controls": self.controls,
        }
        rows: list[dict[str, Any]] = [
            {
                "rate": name,
                "value": estimate.value,
                "ci_low": estimate.interval[0],
                "ci_high": estimate.interval[1],
                "n": estimate.n,
                "n_effective": estimate.rate.n if estimate.n else np.nan,
            }
            for name, estimate in named.items()
        ]
        low, high = self.youden_interval
        rows.append({"rate": "sensitivity + specificity − 1", "value": self.youden, "ci_low": low, "ci_high": high,
                     "n": self.sensitivity.n + self.specificity.n, "n_effective": np.nan})  # fmt: skip
        return pd.DataFrame(rows)


def judge_rates(
    sketches: JudgedSketches,
    pairs: pd.DataFrame,
    controls: Presence | None,
    wanted: SpecificityFrom,
    weight_BN: np.ndarray,
) -> JudgeRates:
    """Estimate the rates.

    Args:
        sketches: The used sketches.
        pairs: Annotated pairs: `sketch_id, element, decision` (nullable), `annotated` (bool); unanswered ones are left
            out.
        controls: Answers to absent-element controls; None: there are none.
        wanted: Where the specificity is to come from.
        weight_BN: (B, N) resamples of the sketches.
    """
    counts_N4 = _counts(sketches, pairs)
    true_positive_N, false_negative_N, true_negative_N, false_positive_N = counts_N4.T
    control_N2 = np.zeros((len(sketches.items), 2))
    if controls is not None:
        control_N2 = _counts(sketches, controls.table.assign(annotated=False))[:, 2:]
    sensitivity = _share(true_positive_N, false_negative_N, weight_BN)
    annotated = _share(true_negative_N, false_positive_N, weight_BN)
    asked = _share(control_N2[:, 0], control_N2[:, 1], weight_BN)
    both = _share(true_negative_N + control_N2[:, 0], false_positive_N + control_N2[:, 1], weight_BN)
    unlike = bool(wanted == "both" and annotated.n and asked.n and _apart(annotated, asked))
    if wanted == "controls" or (wanted == "both" and not annotated.n):
        source, specificity = "controls", asked
    elif wanted == "annotated" or unlike or not asked.n:
        source, specificity = "annotated", annotated
    else:
        source, specificity = "both", both
    return JudgeRates(sensitivity, specificity, annotated, asked, source, unlike, _by_condition(sketches, counts_N4))


def resamples(sketches: JudgedSketches, replicates: int, seed: int) -> np.ndarray:
    """(B, N) float32: how often each sketch is drawn when source images are resampled within their concepts."""
    design = sketches.items.design
    return design.weights_GB(image_weights(design, replicates, seed))[design.slot_N].T.astype(np.float32)


def _counts(sketches: JudgedSketches, pairs: pd.DataFrame) -> np.ndarray:
    """(N, 4) answered pairs of every sketch: present called present, absent; absent called absent, present."""
    row_of = {sketch: row for row, sketch in enumerate(sketches.items.table["sketch_id"])}
    known = pairs[pairs["decision"].notna() & pairs["sketch_id"].isin(row_of)]
    row_M = known["sketch_id"].map(row_of).to_numpy(np.int64)
    drawn_M = known["annotated"].to_numpy(bool)
    right_M = known["decision"].astype(bool).to_numpy() == drawn_M
    code_M = np.where(drawn_M, 0, 2) + np.where(right_M, 0, 1)
    return np.bincount(row_M * 4 + code_M, minlength=4 * len(row_of)).reshape(-1, 4).astype(np.float64)


def _share(right_N: np.ndarray, wrong_N: np.ndarray, weight_BN: np.ndarray) -> RateEstimate:
    n = int(right_N.sum() + wrong_N.sum())
    right_B, wrong_B = weight_BN @ right_N, weight_BN @ wrong_N
    with np.errstate(invalid="ignore", divide="ignore"):
        return RateEstimate(float(right_N.sum() / n) if n else np.nan, n, right_B / (right_B + wrong_B))


def _apart(a: RateEstimate, b: RateEstimate) -> bool:
    """Whether two rates differ by more than chance; the variance of a rate of 0 or 1 is that of one half error more."""
    spread = np.nanvar(a.value_B - b.value_B)
    for estimate in (a, b):
        if estimate.value in (0.0, 1.0):
            spread += 0.5 / (estimate.n + 1) ** 2
    return bool(abs(a.value - b.value) > SEPARATE * np.sqrt(spread))


def _by_condition(sketches: JudgedSketches, counts_N4: np.ndarray) -> pd.DataFrame:
    design = sketches.items.design
    tp_T, fn_T, tn_T, fp_T = (design.in_condition_TN @ counts_N4).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(
            {
                "condition": design.conditions_T,
                "sensitivity": tp_T / (tp_T + fn_T),
                "n_present": (tp_T + fn_T).astype(np.int64),
                "specificity": tn_T / (tn_T + fp_T),
                "n_absent": (tn_T + fp_T).astype(np.int64),
            }
        )
