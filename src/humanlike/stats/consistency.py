"""How well one half of the people predicts the other: the baseline that a model's alignment is held against.

Legend: S splits, P participants, R judgments, C cells, B bootstrap replicates.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from humanlike.rng import generator
from humanlike.stats.cell_bootstrap import METRICS, cell_metrics
from humanlike.stats.cell_design import CellDesign
from humanlike.stats.coded_responses import CodedResponses
from humanlike.stats.crossed import PeopleUnderWeights
from humanlike.stats.hypothesis import welch_test
from humanlike.stats.intervals import Interval, basic, known_mean, percentile, ratio_centred, recentred
from humanlike.stats.regression import alignment_r2, split_correlation
from humanlike.stats.sketch_statistics import people_statistics
from humanlike.stats.switches import PeopleSwitches


@dataclass(frozen=True)
class SplitHalf:
    """Consistency of one metric over random halves of the participants.

    Attributes:
        r2_S: (S,) adjusted R² of the alignment fit with one half as people and the other as the model.
        correlation_S: (S,) correlation of the halves' cells.
        correlation_B: (B,) the same on resamples, those of one split after those of another; None if not asked for.
        r2_B: (B,) R² on the same resamples.
        noise_ratio_S: (S,) noise variance of a half's cells over that of all people's: 2, but more where a cell is a
            mean over sketches and the judgments of a sketch fall unequally on the halves. None: 2.
    """

    r2_S: np.ndarray
    correlation_S: np.ndarray
    correlation_B: np.ndarray | None = None
    r2_B: np.ndarray | None = None
    noise_ratio_S: np.ndarray | None = None

    @property
    def spearman_brown_S(self) -> np.ndarray:
        """(S,) 2r/(1+r): the R² that a perfect model could reach against all people; not squared."""
        r = self.correlation_S
        return np.divide(2 * r, 1 + r, out=np.full(r.shape, np.nan), where=r > -1)

    @property
    def reliability_S(self) -> np.ndarray:
        """(S,) κr / (1 + (κ - 1) r), κ the noise ratio: the share of true variance in the cells of all people.

        It is Spearman and Brown's formula for a test made κ times as exact; at κ = 2 it is `spearman_brown_S`.
        """
        return self._stepped_up(self.correlation_S, np.arange(len(self.correlation_S)))

    @property
    def reliability(self) -> float:
        """Mean of `reliability_S` over splits, NaN if none is usable."""
        return known_mean(self.reliability_S)

    @property
    def reliability_B(self) -> np.ndarray:
        """(B,) bootstrap replicates of `reliability`.

        A replicate uses one split only. What this split makes of the full sample is taken off again, so that the
        replicates vary as the mean over splits does and not as single splits do.

        Raises:
            ValueError: If the halves were not resampled.
        """
        correlation_B, split_B = self._of_resamples(self.correlation_B)
        return self.reliability + self._stepped_up(correlation_B, split_B) - self.reliability_S[split_B]

    @property
    def mean_B(self) -> np.ndarray:
        """(B,) bootstrap replicates of `mean`, made as those of the reliability."""
        r2_B, split_B = self._of_resamples(self.r2_B)
        return self.mean + r2_B - self.r2_S[split_B]

    def _of_resamples(self, value_B: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The values and the split of each."""
        if value_B is None:
            raise ValueError("these halves were not resampled; give split_half_consistency its `resamples`")
        return value_B, np.arange(len(value_B)) * len(self.correlation_S) // len(value_B)

    def _stepped_up(self, correlation: np.ndarray, split: np.ndarray) -> np.ndarray:
        times = np.full(len(correlation), 2.0) if self.noise_ratio_S is None else self.noise_ratio_S[split]
        below = 1 + (times - 1) * correlation
        return np.divide(times * correlation, below, out=np.full(correlation.shape, np.nan), where=below > 0)

    @property
    def mean(self) -> float:
        """Mean of `r2_S` over splits, NaN if none is usable."""
        return known_mean(self.r2_S)

    @property
    def spearman_brown(self) -> float:
        """Mean of `spearman_brown_S` over splits, NaN if none is usable."""
        return known_mean(self.spearman_brown_S)

    def interval(self, level: float = 0.95) -> Interval:
        """Quantiles of `r2_S` over splits."""
        return percentile(self.r2_S, level)

    def spearman_brown_interval(self, level: float = 0.95) -> Interval:
        """Quantiles of `spearman_brown_S` over splits."""
        return percentile(self.spearman_brown_S, level)


@dataclass(frozen=True, eq=False)
class HalfResamples:
    """Weights under which the halves are computed again, each split with its share of the replicates.

    Attributes:
        images_BKJ: (B, K, J) weights of images, None for once each.
        participants_BP: (B, P) weights of participants in sorted order, None for once each.
    """

    images_BKJ: np.ndarray | None = None
    participants_BP: np.ndarray | None = None

    def __len__(self) -> int:
        weights = self.images_BKJ if self.images_BKJ is not None else self.participants_BP
        if weights is None:
            raise ValueError("resamples of halves need weights of images, of participants, or both")
        return len(weights)

    def of_split(self, split: int, splits: int) -> HalfResamples:
        """The replicates b of a split: those with b·S // B equal to its number."""
        rows = slice(-(-split * len(self) // splits), -(-(split + 1) * len(self) // splits))
        images = None if self.images_BKJ is None else self.images_BKJ[rows]
        return HalfResamples(images, None if self.participants_BP is None else self.participants_BP[rows])


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
    resamples: HalfResamples | None = None,
    metrics: Collection[str] = METRICS,
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
        resamples: Weights under which each split is computed again, for the reliability's replicates.
        metrics: Which of them.

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
    first_SP = np.stack(
        [
            generator(seed, "split_half", split).permutation(len(participants)) < len(participants) // 2
            for split in range(start, start + splits)
        ]
    )
    sides = (first_SP, ~first_SP)
    weighted = PeopleUnderWeights(design, coded, target_N, ranks_LL, switches, metrics)
    halves = [weighted.cells(half_SP.astype(np.int16)) for half_SP in sides]
    person_R = np.searchsorted(participants, coded.participant_R)
    noise_S = np.array([[_noise_ratio(half_P[person_R], coded.item_R) for half_P in half_SP] for half_SP in sides])
    again: list[list[dict[str, np.ndarray]]] = [[], []]
    shares = [] if resamples is None else [resamples.of_split(split, splits) for split in range(splits)]
    for split, share in enumerate(shares):
        for side, half_SP in enumerate(sides if len(share) else ()):
            if share.participants_BP is not None:
                again[side].append(weighted.cells(share.participants_BP * half_SP[split], share.images_BKJ))
                continue
            half = people_statistics(coded, target_N, ranks_LL, switches, half_SP[split][person_R], metrics)
            again[side].append(cell_metrics(design, half, share.images_BKJ))
    switches = switches or PeopleSwitches()
    means = {"accuracy": switches.accuracy == "first_guess", "entropy": switches.entropy == "per_sketch"}
    over_sketches = {metric for metric, holds in means.items() if holds}
    result = {}
    for metric in (metric for metric in METRICS if metric in metrics):
        a_SC, b_SC = (cells[metric] for cells in halves)
        r2_B = correlation_B = None
        if resamples is not None:
            a_BC, b_BC = (np.concatenate([cells[metric] for cells in side]) for side in again)
            r2_B, correlation_B = alignment_r2(a_BC, b_BC, design.condition_C), split_correlation(a_BC, b_BC)
        result[metric] = SplitHalf(
            r2_S=alignment_r2(a_SC, b_SC, design.condition_C),
            correlation_S=split_correlation(a_SC, b_SC),
            correlation_B=correlation_B,
            r2_B=r2_B,
            noise_ratio_S=noise_S.mean(axis=0) if metric in over_sketches else None,
        )
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
    welch = welch_test(s_known, a_known)
    kind = ratio_centred(alignment, a_known).kind
    return ConsistencyGap(
        difference, Interval(spread.low, spread.high, kind, lost), welch.statistic, welch.df, welch.p_value
    )


def _noise_ratio(half_R: np.ndarray, item_R: np.ndarray) -> float:
    """Noise of a mean over items in a half of the judgments, over that in all: Σ 1/m of the items, m their judgments.

    An item that nobody in the half judged leaves the mean to fewer items.
    """
    all_N = np.bincount(item_R)
    half_N = np.bincount(item_R[half_R], minlength=len(all_N))[all_N > 0]
    all_N = all_N[all_N > 0]
    known_N = half_N > 0
    if not known_N.any():
        return float("nan")
    return float((1 / half_N[known_N]).mean() / known_N.mean() / (1 / all_N).mean())
