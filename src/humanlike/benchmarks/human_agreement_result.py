"""What a comparison of scores with people's judgments gives, and what rankings and ratings have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from humanlike.stats.comparison import compare_pairs
from humanlike.stats.intervals import percentile

LEAST_PARTICIPANTS = 5
"""With fewer, an interval over participants says little."""


@dataclass(frozen=True)
class AgreementSettings:
    """How intervals are made.

    Attributes:
        replicates: Crossed resamples of participants and items.
        splits: Random halves of the participants, for the reliability of ratings.
        bins: Groups of sketches by score, for mean ratings.
        seed: Global seed.
        level: Coverage.
    """

    replicates: int = 1000
    splits: int = 200
    bins: int = 4
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.replicates < 2 or self.splits < 1 or self.bins < 1:
            raise ValueError(
                f"replicates must be 2 or more, splits and bins 1 or more, got {self.replicates}, {self.splits} and "
                f"{self.bins}"
            )
        if not 0 < self.level < 1:
            raise ValueError(f"level must lie between 0 and 1, for example 0.95, got {self.level}")


DEFAULTS = AgreementSettings()


@dataclass(frozen=True)
class HumanAgreement:
    """Scores held against people.

    Attributes:
        kind: "ranking", "rating" or "acceptance".
        agreement: One row a score and measure: `score, measure, value, ci_low, ci_high, std_error, chance, ceiling,
            ceiling_high, n`.
        tables: Further tables by name; see `ranking_agreement`, `rating_agreement` and `acceptance_agreement`.
        counts: What was used and what was left out.
        flags: Sentences to read before the results.
        settings: How intervals were made.
    """

    kind: str
    agreement: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]
    counts: Mapping[str, int]
    flags: tuple[str, ...] = ()
    settings: AgreementSettings = field(default_factory=AgreementSettings)

    def value(self, score: str, measure: str) -> float:
        """One number.

        Raises:
            KeyError: When there is no such score or measure.
        """
        own = self.agreement[(self.agreement["score"] == score) & (self.agreement["measure"] == measure)]
        if len(own) != 1:
            known = sorted(set(zip(self.agreement["score"], self.agreement["measure"], strict=True)))
            raise KeyError(f"there is no {measure!r} of {score!r}; there are {known}")
        return float(own["value"].iloc[0])


def coded(values: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct values, and the position of every entry among them."""
    names, code = np.unique(values.to_numpy(dtype=object).astype(str), return_inverse=True)
    return names, code.reshape(-1)


def judged_scores(scores: pd.DataFrame, sketch_ids: Sequence[str]) -> pd.DataFrame:
    """The scores of the sketches that people judged, in that order.

    Args:
        scores: Index sketch id, a column a score.
        sketch_ids: Sketches.

    Raises:
        ValueError: When a sketch is not among the scores, or stands there twice.
    """
    if scores.index.has_duplicates:
        raise ValueError(f"scores have the sketch {scores.index[scores.index.duplicated()][0]!r} twice")
    absent = sorted(map(str, set(sketch_ids) - set(scores.index)))
    if absent:
        raise ValueError(
            f"{len(absent)} judged sketch(es) are not among the scores, for example {absent[0]!r}; are these answers "
            "to the sketches of another run?"
        )
    return scores.loc[list(sketch_ids)].astype(np.float64)


def comparisons(
    estimates: Mapping[str, Mapping[str, float]],
    replicates: Mapping[str, Mapping[str, np.ndarray]],
    measures: Sequence[str],
    level: float,
) -> pd.DataFrame:
    """Every two scores by several measures, on the same resamples; p adjusted by Holm within a measure.

    Args:
        estimates: Score → measure → value.
        replicates: Score → measure → (B,) replicates.
        measures: Which.
        level: Coverage.

    Returns:
        `a, b, measure, difference, ci_low, ci_high, std_error, p_value, p_adjusted, n` (replicates).
    """
    names = list(estimates)
    tables = []
    for measure in measures if len(names) > 1 else ():
        found = compare_pairs(
            np.array([estimates[name][measure] for name in names]),
            np.stack([replicates[name][measure] for name in names]),
            centring="basic",
            level=level,
        )
        tables.append(
            pd.DataFrame(
                {
                    "a": [names[i] for i in found.a_Q],
                    "b": [names[i] for i in found.b_Q],
                    "measure": measure,
                    "difference": found.difference_Q,
                    "ci_low": found.low_Q,
                    "ci_high": found.high_Q,
                    "std_error": found.std_error_Q,
                    "p_value": found.p_Q,
                    "p_adjusted": found.p_adjusted_Q,
                    "n": found.n_Q,
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def shares_interval(replicates_B: np.ndarray, shape_PI: tuple[int, int], level: float) -> dict[str, float]:
    """`ci_low` and `ci_high`, percentiles of crossed replicates; NaN below two participants or two items.

    Args:
        replicates_B: Replicates.
        shape_PI: Numbers of participants and items.
        level: Coverage.
    """
    interval = percentile(replicates_B, level)
    several = min(shape_PI) > 1
    return {"ci_low": interval.low if several else np.nan, "ci_high": interval.high if several else np.nan}


def people_flags(counts: Mapping[str, int]) -> list[str]:
    """What to know of the people before reading results."""
    said = []
    if counts["participants_excluded"]:
        said.append(
            f"{counts['participants_excluded']} participant(s) failed attention checks and are left out, with "
            f"{counts['judgments_excluded']} judgment(s)."
        )
    if counts["participants_incomplete"]:
        said.append(f"{counts['participants_incomplete']} participant(s) did not finish; what they answered counts.")
    if counts["participants"] < LEAST_PARTICIPANTS:
        said.append(
            f"There are {counts['participants']} participant(s) only: intervals over people say little, and are "
            "missing below two."
        )
    return said


def as_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a table."""
    return pd.DataFrame([dict(row) for row in rows])
