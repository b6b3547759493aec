"""Visual ratio and SEA freed of the judge's errors, raw and corrected side by side.

v of a group of sketches is Rogan and Gladen's: (mean v + Sp - 1)/J, which is unbiased. Of a single sketch that is a
noisy number that can leave [0, 1], and SEA, a curved function, of a noisy number is biased; so a sketch has a posterior
over its true count of elements (`humanlike.stats.present_counts`), its v and SEA are means over that, and SEA of a
group is the mean over its sketches.

Legend: N scored sketches, T conditions, G groups (all, then conditions), X counts of elements, B replicates.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.sea_calibration_rates import JudgeRates, RateEstimate
from humanlike.benchmarks.sea_sketches import JudgedSketches
from humanlike.metrics.functional.sea import sea
from humanlike.stats import basic
from humanlike.stats.misclassification import adjusted_interval, delta_interval, rogan_gladen
from humanlike.stats.present_counts import ObservedCounts

LEAST_YOUDEN = 0.1
"""Sensitivity + specificity - 1 at or below which nothing is corrected: errors would be multiplied by ten and more."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """What is left when the judge's errors are taken off.

    Attributes:
        sketches: `sketch_id, visual_ratio_corrected` (posterior mean) with `_low` and `_high` (95% of the posterior),
            `sea_corrected` and its `_sd` over the posterior; one row a scored sketch.
        groups: One row for all sketches (condition NaN), then one a condition: `condition, n, visual_ratio,
            visual_ratio_corrected` and its bounds `_low, _high` (adjusted for the small samples that the rates rest
            on), `_bootstrap_low, _bootstrap_high`, `_delta_low, _delta_high`; `sea, sea_corrected, _low, _high`.
    """

    sketches: pd.DataFrame
    groups: pd.DataFrame


def corrected(
    sketches: JudgedSketches, rates: JudgeRates, weight_BN: np.ndarray, sea_replicates: int, seed: int
) -> Corrected:
    """Correct v and SEA of the scored sketches.

    Args:
        sketches: The sketches as judged.
        rates: The judge's rates; J must be above `LEAST_YOUDEN`.
        weight_BN: (B, N) resamples, those that the rates' replicates are of.
        sea_replicates: Replicates of SEA, the first of B; a posterior is computed for each.
        seed: Global seed.
    """
    rows = np.flatnonzero(sketches.scored_N)
    design = sketches.items.design
    counts = ObservedCounts(
        sketches.judged_N[rows],
        sketches.present_N[rows],
        pd.factorize(design.condition_N[rows], sort=True)[0],
        sketches.value_QN["recognition"][rows],
    )
    sea_NX = _sea_of_counts(sketches, rows, counts)
    se, sp = rates.sensitivity.value, rates.specificity.value
    posterior_NX = counts.posterior(se, sp)
    sea_N = (posterior_NX * sea_NX).sum(axis=1)
    inside_GN = [np.ones(len(rows), bool), *(design.condition_N[rows] == t for t in range(design.num_conditions))]
    names = [np.nan, *design.conditions_T]
    by_replicate_BN = _resampled_sea(counts, sea_NX, rates, weight_BN[:sea_replicates, rows], seed)
    groups = [
        {
            "condition": name,
            "n": int(inside_N.sum()),
            **_visual_ratio(sketches, rows[inside_N], rates, weight_BN),
            **_sea(sketches.value_QN["sea"][rows], sea_N, by_replicate_BN, weight_BN[:sea_replicates, rows], inside_N),
        }
        for name, inside_N in zip(names, inside_GN, strict=True)
        if inside_N.any()
    ]
    ids = sketches.items.table["sketch_id"].to_numpy(dtype=object)[rows]
    return Corrected(_by_sketch(ids, counts, posterior_NX, sea_NX), pd.DataFrame(groups))


def _sea_of_counts(sketches: JudgedSketches, rows: np.ndarray, counts: ObservedCounts) -> np.ndarray:
    """(N, X) SEA that a sketch would have with 0 … X - 1 elements."""
    x_X = np.arange(int(counts.elements_N.max(initial=0)) + 1)
    v_NX = np.minimum(x_X / counts.elements_N[:, None], 1.0)
    P_NX = np.broadcast_to(counts.covariate_N[:, None], v_NX.shape)
    return sea(torch.from_numpy(P_NX.copy()), torch.from_numpy(v_NX), **asdict(sketches.parameters)).numpy()


def _by_sketch(ids: np.ndarray, counts: ObservedCounts, posterior_NX: np.ndarray, sea_NX: np.ndarray) -> pd.DataFrame:
    cumulative_NX = posterior_NX.cumsum(axis=1)
    low_N, high_N = ((cumulative_NX < tail - 1e-12).sum(axis=1) for tail in (0.025, 0.975))
    mean_N = (posterior_NX * sea_NX).sum(axis=1)
    return pd.DataFrame(
        {
            "sketch_id": ids,
            "visual_ratio_corrected": posterior_NX @ np.arange(posterior_NX.shape[1]) / counts.elements_N,
            "visual_ratio_corrected_low": low_N / counts.elements_N,
            "visual_ratio_corrected_high": high_N / counts.elements_N,
            "sea_corrected": mean_N,
            "sea_corrected_sd": np.sqrt((posterior_NX * (sea_NX - mean_N[:, None]) ** 2).sum(axis=1)),
        }
    )


def _visual_ratio(
    sketches: JudgedSketches, rows: np.ndarray, rates: JudgeRates, weight_BN: np.ndarray
) -> dict[str, float]:
    v_n, weight_Bn = sketches.value_QN["visual_ratio"][rows], weight_BN[:, rows]
    p = float(v_n.mean())
    with np.errstate(invalid="ignore", divide="ignore"):
        p_B = weight_Bn @ v_n / weight_Bn.sum(axis=1)
    called = RateEstimate(p, int(sketches.judged_N[rows].sum()), p_B).rate
    se, sp = rates.sensitivity, rates.specificity
    true = float(rogan_gladen(p, se.value, sp.value))
    true_B = np.asarray(rogan_gladen(p_B, se.value_B, sp.value_B))
    drawn = basic(true, np.where(np.isfinite(true_B), true_B, np.nan))
    low, high = adjusted_interval(called, se.rate, sp.rate)
    delta_low, delta_high = delta_interval(called, se.rate, sp.rate)
    return {
        "visual_ratio": p,
        "visual_ratio_corrected": true,
        "visual_ratio_corrected_low": low,
        "visual_ratio_corrected_high": high,
        "visual_ratio_corrected_bootstrap_low": drawn.low,
        "visual_ratio_corrected_bootstrap_high": drawn.high,
        "visual_ratio_corrected_delta_low": delta_low,
        "visual_ratio_corrected_delta_high": delta_high,
    }


def _sea(
    raw_N: np.ndarray, sea_N: np.ndarray, by_replicate_BN: np.ndarray, weight_BN: np.ndarray, inside_N: np.ndarray
) -> dict[str, float]:
    weight_Bn = weight_BN[:, inside_N]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_B = (weight_Bn * by_replicate_BN[:, inside_N]).sum(axis=1) / weight_Bn.sum(axis=1)
    value = float(sea_N[inside_N].mean())
    drawn = basic(value, mean_B)
    return {
        "sea": float(raw_N[inside_N].mean()),
        "sea_corrected": value,
        "sea_corrected_low": drawn.low,
        "sea_corrected_high": drawn.high,
    }


def _resampled_sea(
    counts: ObservedCounts, sea_NX: np.ndarray, rates: JudgeRates, weight_BN: np.ndarray, seed: int
) -> np.ndarray:
    """(B, N) corrected SEA of every sketch under resampled sketches and rates; NaN where the rates say nothing."""
    se_B, sp_B = rates.sensitivity.smoothed_B(seed, "sensitivity"), rates.specificity.smoothed_B(seed, "specificity")
    out_BN = np.full(weight_BN.shape, np.nan)
    for b, weight_N in enumerate(weight_BN.astype(np.float64)):
        if se_B[b] + sp_B[b] - 1 > LEAST_YOUDEN / 2:
            out_BN[b] = (counts.posterior(float(se_B[b]), float(sp_B[b]), weight_N) * sea_NX).sum(axis=1)
    return out_BN
