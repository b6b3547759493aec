"""What a study can say about its models with confidence: alignment with ceilings, pairs of models, ranks, power.

Pure functions from estimates and their bootstrap replicates, all models on the same resamples, to tables.

Legend: B replicates, C cells, {metric: {observer: value}} throughout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from humanlike.stats import METRICS, SketchStatistics, SplitHalf, alignment_r2, cell_metrics, image_weights
from humanlike.stats.comparison import Adjustment, Centring, PairedComparisons, compare_pairs
from humanlike.stats.crossed import PeopleUnderWeights, Resample, resample_people
from humanlike.stats.intervals import Interval, ratio_centred
from humanlike.stats.noise_correction import noise_corrected
from humanlike.stats.power import needed_size, variance_components
from humanlike.stats.rank_groups import rank_groups

Estimates = Mapping[str, Mapping[str, float]]
"""Metric → observer → value on the full sample."""
Replicates = Mapping[str, Mapping[str, np.ndarray]]
"""Metric → observer → (B,) replicates, the same resamples for all observers."""


def alignment_table(
    estimates: Estimates,
    replicates: Replicates,
    consistency: Mapping[str, SplitHalf] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Alignment of every model with its interval, noise-corrected, and as a fraction of people's own consistency.

    Args:
        estimates: Alignment R².
        replicates: Their replicates.
        consistency: Metric → people's halves, computed again on the same resamples (`HalfResamples`); metrics that are
            missing have no ceiling. Halves that were not resampled give ceilings, and no interval of what they divide.
        level: Coverage of the intervals.

    Returns:
        A row a metric and observer. `estimate, ci_low, ci_high, interval, degenerate`: alignment and its interval.
        `corrected, corrected_low, corrected_high, reliability`: see `humanlike.stats.noise_correction`.
        `ceiling, ceiling_low, ceiling_high`: mean split-half R² and its quantiles over splits.
        `fraction_of_ceiling, fraction_low, fraction_high`: estimate / ceiling; it can exceed 1, since one half of the
        people is a weaker predictor than a good model may be. `note`: why something is missing.
    """
    rows = []
    for metric, observer, estimate, values_B in _observers(estimates, replicates):
        interval = ratio_centred(estimate, values_B, level)
        row = {
            "observer": observer,
            "metric": metric,
            "estimate": estimate,
            "ci_low": interval.low,
            "ci_high": interval.high,
            "interval": interval.kind,
            "degenerate": interval.n_degenerate,
        }
        rows.append(row | _beside_ceiling(estimate, values_B, (consistency or {}).get(metric), level))
    return pd.DataFrame(rows, columns=[*_ALIGNMENT_COLUMNS])


_ALIGNMENT_COLUMNS = (
    *("observer", "metric", "estimate", "ci_low", "ci_high", "interval", "degenerate"),
    *("corrected", "corrected_low", "corrected_high", "reliability", "ceiling", "ceiling_low", "ceiling_high"),
    *("fraction_of_ceiling", "fraction_low", "fraction_high", "note"),
)


def _beside_ceiling(estimate: float, values_B: np.ndarray, split: SplitHalf | None, level: float) -> dict:
    if split is None:
        return {"note": "people's halves are not known"}
    corrected, ceiling = noise_corrected(estimate, values_B, split, level), split.interval(level)
    fraction = estimate / split.mean if split.mean > 0 else np.nan
    around = Interval(np.nan, np.nan, "none", 0)
    if split.r2_B is not None:
        positive = split.mean_B > 0
        ratio_B = np.where(positive, values_B / np.where(positive, split.mean_B, 1.0), np.nan)
        around = ratio_centred(fraction, ratio_B, level)
    notes = {
        "people's cells are too unreliable to correct for their noise": np.isnan(corrected.value),
        "people's halves do not predict each other": np.isnan(fraction),
    }
    return {
        "corrected": corrected.value,
        "corrected_low": corrected.interval.low,
        "corrected_high": corrected.interval.high,
        "reliability": corrected.reliability,
        "ceiling": split.mean,
        "ceiling_low": ceiling.low,
        "ceiling_high": ceiling.high,
        "fraction_of_ceiling": fraction,
        "fraction_low": around.low,
        "fraction_high": around.high,
        "note": "; ".join(note for note, holds in notes.items() if holds and np.isfinite(estimate)),
    }


def comparisons_table(
    estimates: Estimates,
    replicates: Replicates,
    *,
    centring: Centring = "ratio_centred",
    adjustment: Adjustment = "holm",
    level: float = 0.95,
) -> pd.DataFrame:
    """All pairs of models by metric; the family of an adjustment is the pairs of one metric.

    Args:
        estimates: A score on the full sample.
        replicates: Its replicates.
        centring: "ratio_centred" for an R²; "basic" for a mean over cells.
        adjustment: "holm", "benjamini_hochberg" or "none".
        level: Coverage of the intervals.

    Returns:
        A row a metric and pair: `metric, a, b, difference` (a - b), `std_error, statistic` (z), `ci_low, ci_high,
        p_value, p_adjusted, adjustment, separable` (adjusted p ≤ 1 - level), `n` (replicates used).
    """
    tables = []
    for metric, names, pairs in _compared(estimates, replicates, centring, adjustment, level):
        spread = pairs.std_error_Q > 0
        z_Q = np.divide(pairs.difference_Q, pairs.std_error_Q, out=np.full(len(spread), np.nan), where=spread)
        columns = {
            "metric": metric,
            "a": names[pairs.a_Q],
            "b": names[pairs.b_Q],
            "difference": pairs.difference_Q,
            "std_error": pairs.std_error_Q,
            "statistic": z_Q,
            "ci_low": pairs.low_Q,
            "ci_high": pairs.high_Q,
            "p_value": pairs.p_Q,
            "p_adjusted": pairs.p_adjusted_Q,
            "adjustment": adjustment,
            "separable": pairs.separable(len(names))[pairs.a_Q, pairs.b_Q],
            "n": pairs.n_Q,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def rank_groups_table(
    estimates: Estimates,
    replicates: Replicates,
    *,
    centring: Centring = "ratio_centred",
    adjustment: Adjustment = "holm",
    level: float = 0.95,
) -> pd.DataFrame:
    """Ranks of the models by metric, best first; see `humanlike.stats.rank_groups` for what a shared rank means.

    Args:
        estimates: A score on the full sample, higher is better.
        replicates: Its replicates.
        centring: As in `comparisons_table`.
        adjustment: As in `comparisons_table`.
        level: 1 - level is the size of the tests.

    Returns:
        A row a metric and observer: `metric, observer, estimate, rank, rank_high, letters`. A model without a value has
        rank 0 and stands last.
    """
    tables = []
    for metric, names, pairs in _compared(estimates, replicates, centring, adjustment, level):
        estimate_M = np.array([estimates[metric][name] for name in names], np.float64)
        groups = rank_groups(estimate_M, pairs.separable(len(names)))
        order = np.argsort(-estimate_M, kind="stable")
        columns = {
            "metric": metric,
            "observer": names[order],
            "estimate": estimate_M[order],
            "rank": groups.rank_M[order],
            "rank_high": groups.rank_high_M[order],
            "letters": [groups.letters_M[m] for m in order],
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def power_table(
    estimates: Estimates,
    over_images: Replicates,
    over_participants: Replicates,
    over_both: Replicates | None = None,
    *,
    images: int,
    participants: int,
    centring: Centring = "ratio_centred",
    power: float = 0.8,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """How large a study would tell each pair of models apart, one pair at a time; see `humanlike.stats.power`.

    Args:
        estimates: A score on the full sample.
        over_images: Replicates on resampled images.
        over_participants: On resampled participants; see `resampled_alignments`.
        over_both: On both at once, or None (the sizes are then on the large side).
        images: Images a concept in this study.
        participants: Participants in this study.
        centring: As in `comparisons_table`.
        power: Wanted power.
        alpha: Size of the test.

    Returns:
        A row a metric and pair: `metric, a, b, difference, power` (of a study of this size), `images, participants`
        (needed, the other number held), `images_both, participants_both` (growing in proportion),
        `variance_images, variance_participants, variance_judgments`. Infinite where no number suffices.
    """
    rows = []
    for metric, names, pairs in _compared(estimates, over_images, centring, "none", 1 - alpha):
        spreads = [pairs.std_error_Q]
        for others in (over_participants, over_both):
            if others is not None:
                [(_, again, other)] = _compared({metric: estimates[metric]}, others, centring, "none", 1 - alpha)
                assert list(again) == list(names)  # both follow the order of the estimates
                spreads.append(other.std_error_Q)
        for q, (a, b) in enumerate(zip(names[pairs.a_Q], names[pairs.b_Q], strict=True)):
            variances = [float(spread[q] ** 2) for spread in spreads]
            row = {"metric": metric, "a": a, "b": b, "difference": float(pairs.difference_Q[q])}
            if np.isfinite(variances).all():
                parts = variance_components(*variances)
                size = needed_size(row["difference"], parts, images, participants, power, alpha)
                row |= {
                    "power": size.power,
                    "images": size.images,
                    "participants": size.participants,
                    "images_both": size.images_both,
                    "participants_both": size.participants_both,
                    "variance_images": parts.images,
                    "variance_participants": parts.participants,
                    "variance_judgments": parts.judgments,
                }
            rows.append(row)
    return pd.DataFrame(rows, columns=[*_POWER_COLUMNS])


_POWER_COLUMNS = (
    *("metric", "a", "b", "difference", "power", "images", "participants", "images_both", "participants_both"),
    *("variance_images", "variance_participants", "variance_judgments"),
)


def resampled_alignments(
    people: PeopleUnderWeights,
    models: Mapping[str, SketchStatistics],
    resample: Resample,
    replicates: int = 200,
    seed: int = 0,
) -> dict[str, dict[str, np.ndarray]]:
    """Replicates of every model's alignment under another way of resampling, as `power_table` needs them.

    Weights of participants repeat answers, which inflates the noise of entropy (see `humanlike.stats.crossed`): the
    sizes for the alignment of entropy come out too large rather than too small.

    Args:
        people: People's judgments.
        models: Observer → statistics of the same items.
        resample: What is drawn anew.
        replicates: Number B; 200 are plenty for a variance.
        seed: Global seed.

    Returns:
        Metric → observer → (B,) alignment R².
    """
    design = people.design
    weights = None if resample == "participants" else image_weights(design, replicates, seed)
    if resample == "images":
        ones_BP = np.ones((replicates, len(people.participants_P)), dtype=np.int16)
        people_cells = people.cells(ones_BP, weights)
    else:
        people_cells = resample_people(people, resample, replicates, seed)
    out: dict[str, dict[str, np.ndarray]] = {metric: {} for metric in METRICS}
    for name, statistics in models.items():
        model_cells = cell_metrics(design, statistics, weights)
        for metric in METRICS:
            out[metric][name] = alignment_r2(people_cells[metric], model_cells[metric], design.condition_C)
    return out


def _observers(estimates: Estimates, replicates: Replicates) -> Iterator[tuple[str, str, float, np.ndarray]]:
    for metric, by_observer in estimates.items():
        for observer, estimate in by_observer.items():
            yield metric, observer, float(estimate), _replicates_of(replicates, metric, observer)


def _replicates_of(replicates: Replicates, metric: str, observer: str) -> np.ndarray:
    if observer not in replicates.get(metric, {}):
        raise ValueError(f"{observer} has an estimate of {metric} and no replicates of it; give both for each observer")
    return np.asarray(replicates[metric][observer], np.float64)


def _compared(
    estimates: Estimates, replicates: Replicates, centring: Centring, adjustment: Adjustment, level: float
) -> Iterator[tuple[str, np.ndarray, PairedComparisons]]:
    """Metric, names of its observers and all their pairs."""
    for metric, by_observer in estimates.items():
        names = np.array(list(by_observer), dtype=object)
        if not len(names):
            continue
        values_MB = np.stack([_replicates_of(replicates, metric, name) for name in names])
        estimate_M = np.array([by_observer[name] for name in names], np.float64)
        yield metric, names, compare_pairs(estimate_M, values_MB, centring=centring, adjustment=adjustment, level=level)
