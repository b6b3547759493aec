"""How well one half of the people predicts the other: the baseline that a model's alignment is held against.

Legend: S splits, P participants, R judgments, C cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind

from humanlike.rng import generator
from humanlike.stats.cell_bootstrap import METRICS, cell_metrics
from humanlike.stats.cell_design import CellDesign
from humanlike.stats.coded_responses import CodedResponses
from humanlike.stats.intervals import Interval, basic, percentile, ratio_centred, recentred
from humanlike.stats.regression import alignment_r2, split_correlation
from humanlike.stats.sketch_statistics import people_statistics
from humanlike.stats.switches import PeopleSwitches


@dataclass(frozen=True)
class SplitHalf:
    """Consistency of one metric over random halves of the participants.

    Attributes:
        r2_S: (S,) adjusted R² of the alignment fit with one half as people and the other as the model.
        correlation_S: (S,) correlation of the halves' cells.
    """

    r2_S: np.ndarray
    correlation_S: np.ndarray

    @property
    def spearman_brown_S(self) -> np.ndarray:
        """(S,) 2r/(1+r): the R² that a perfect model could reach against all people; not squared."""
        r = self.correlation_S
        return np.divide(2 * r, 1 + r, out=np.full(r.shape, np.nan), where=r > -1)

    @property
    def mean(self) -> float:
        """Mean of `r2_S` over splits, NaN if none is usable."""
        return _mean(self.r2_S)

    @property
    def spearman_brown(self) -> float:
        """Mean of `spearman_brown_S` over splits, NaN if none is usable."""
        return _mean(self.spearman_brown_S)

    def interval(self, level: float = 0.95) -> Interval:
        """Quantiles of `r2_S` over splits."""
        return percentile(self.r2_S, level)

    def spearman_brown_interval(self, level: float = 0.95) -> Interval:
        """Quantiles of `spearman_brown_S` over splits."""
        return percentile(self.spearman_brown_S, level)


@dataclass(frozen=True)
class ConsistencyGap:
    """How far a model stays below people's consistency.

    Attributes:
        difference: Consistency minus alignment, full-sample values; above 0 where people agree better with one another.
        interval: Of the difference; its width does not depend on the number of replicates.
        welch_t: t of Welch's test between the split and the bootstrap distribution, as in the paper. It grows with the
            square root of the number of replicates, which is a free choice, so it is no evidence by itself; and because
            the replicates of an R² lie below it, t can be positive where `difference` is negative.
        welch_df: Its degrees of freedom.
        welch_p: Its two-sided p.
    """

    difference: float
    interval: Interval
    welch_t: float
    welch_df: float
    welch_p: float


def split_half_consistency(
    design: CellDesign,
    coded: CodedResponses,
    target_N: np.ndarray,
    ranks_LL: np.ndarray | None = None,
    switches: PeopleSwitches | None = None,
    *,
    splits: int = 100,
    seed: int = 0,
    start: int = 0,
) -> dict[str, SplitHalf]:
    """Split the participants in random halves, compute both halves' cells, fit one on the other.

    Args:
        design: The study.
        coded: People's judgments of its items.
        target_N: As in `people_statistics`.
        ranks_LL: As in `people_statistics`.
        switches: As in `people_statistics`.
        splits: Number of splits S.
        seed: Global seed; split s has its own address, so that any of them can be drawn again alone.
        start: Number of the first split.

    Returns:
        Metric → SplitHalf. With an odd number of participants the halves differ by one.

    Raises:
        ValueError: If there are fewer than two participants or `splits` is below 1.

    References:
        Mukherjee et al. 2023 (SEVA), Section 3.2. Spearman 1910; Brown 1910.
    """
    participants = coded.participants_P
    if len(participants) < 2:
        raise ValueError(f"split-half consistency needs at least two participants, got {len(participants)}")
    if splits < 1:
        raise ValueError(f"splits must be at least 1, got {splits}")
    person_R = np.searchsorted(participants, coded.participant_R)
    halves: list[list[dict[str, np.ndarray]]] = [[], []]
    for split in range(start, start + splits):
        shuffled = generator(seed, "split_half", split).permutation(len(participants))
        first_R = (shuffled < len(participants) // 2)[person_R]
        for side, rows in enumerate((first_R, ~first_R)):
            half = people_statistics(coded, target_N, ranks_LL, switches, rows)
            halves[side].append(cell_metrics(design, half))
    result = {}
    for metric in METRICS:
        a_SC, b_SC = (np.concatenate([cells[metric] for cells in side]) for side in halves)
        result[metric] = SplitHalf(alignment_r2(a_SC, b_SC, design.condition_C), split_correlation(a_SC, b_SC))
    return result


def gap_to_consistency(
    alignment: float, alignment_B: np.ndarray, consistency_S: np.ndarray, level: float = 0.95
) -> ConsistencyGap:
    """The gap between a model's alignment and people's consistency, tested as in the paper and measured fairly.

    The interval takes every pair of a split and a replicate (replicates moved to the full-sample alignment as
    `ratio_centred` does): more replicates make it more exact, not narrower.

    Args:
        alignment: Alignment on the full sample.
        alignment_B: (B,) its bootstrap replicates, NaN where degenerate.
        consistency_S: (S,) people's consistency, one value per split.
        level: Coverage of the interval.

    Returns:
        ConsistencyGap; all NaN where one side has fewer than two usable values.

    Example:
        >>> gap = gap_to_consistency(0.5, np.array([0.4, 0.5, 0.6]), np.array([0.8, 0.9]))
        >>> round(gap.difference, 6), gap.welch_t > 0
        (0.35, True)
    """
    a = np.asarray(alignment_B, dtype=np.float64)
    s = np.asarray(consistency_S, dtype=np.float64)
    lost = int(np.isnan(a).sum() + np.isnan(s).sum())
    a_known, s_known = a[np.isfinite(a)], s[np.isfinite(s)]
    if len(a_known) < 2 or len(s_known) < 2:
        return ConsistencyGap(np.nan, Interval(np.nan, np.nan, "ratio_centred", lost), np.nan, np.nan, np.nan)
    difference = float(s_known.mean() - alignment)
    pairs = np.subtract.outer(s_known, recentred(alignment, a_known)).ravel()
    spread = basic(difference, pairs, level)
    if np.ptp(a_known) == 0 and np.ptp(s_known) == 0:  # no spread, no test
        t, df, p = np.nan, np.nan, np.nan
    else:
        welch = ttest_ind(s_known, a_known, equal_var=False)
        t, df, p = float(welch.statistic), float(welch.df), float(welch.pvalue)
    kind = ratio_centred(alignment, a_known).kind
    return ConsistencyGap(difference, Interval(spread.low, spread.high, kind, lost), t, df, p)


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")
