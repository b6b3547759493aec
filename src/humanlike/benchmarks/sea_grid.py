"""A grid of element source × judge × classifier: SEA in every cell, and whether cells rank the same sketches alike.

Legend: N sketches that two cells share, B replicates (source images resampled within concepts).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, spearmanr

from humanlike.stats import CellDesign, basic, image_weights
from humanlike.types import Score

FACTORS = ("elements", "judge", "classifier")
"""What a cell of the grid is made of."""


def cell_of(score: Score) -> dict[str, str]:
    """Element source, judge and classifier of a run, each in one line.

    Args:
        score: A run of SEA.
    """
    details = score.result.details
    judge = details.get("judge") or {}
    threshold = judge.get("threshold")
    at = "" if threshold in (None, 0.5) else f", present from {threshold:g}"
    readout = (details.get("readout") or {}).get("readout", "logistic")
    return {
        "elements": str((details.get("elements") or {}).get("source", "unknown")),
        "judge": f"{judge.get('source', 'unknown')}{at}",
        "classifier": f"{score.backbone} {score.layer}, {readout}",
    }


def grid_table(scores: Mapping[str, Score]) -> pd.DataFrame:
    """One row a run: `run, dataset`, the three factors, `n`, then `sea, visual_ratio, recognition` with intervals.

    Args:
        scores: Name of a run → the run.
    """
    rows = []
    for name, score in scores.items():
        row: dict[str, Any] = {"run": name, "dataset": score.dataset, **cell_of(score), "n": score.scores["sea"].n}
        for quantity in ("sea", "visual_ratio", "recognition", "sea_corrected"):
            value = score.scores.get(quantity)
            if value is not None:
                row |= {quantity: value.value, f"{quantity}_low": value.ci_low, f"{quantity}_high": value.ci_high}
        rows.append(row)
    return pd.DataFrame(rows)


def rank_correlations(scores: Mapping[str, Score], replicates: int = 200, seed: int = 0) -> pd.DataFrame:
    """Do two runs rank sketches alike? Spearman's ρ and Kendall's τ_b of SEA over the sketches that both scored.

    Args:
        scores: Name of a run → the run; pairs on different data sets are passed over.
        replicates: Bootstrap replicates over source images within concepts.
        seed: Global seed.

    Returns:
        One row a pair: `run_a, run_b, dataset, differ` (the factors in which they differ), `n`, `spearman` and
        `kendall`, each with `_low` and `_high`: replicates centred on the estimate on Fisher's scale. A correlation is
        missing below three sketches, or where all sketches of a run score alike.
    """
    rows = []
    for (a, one), (b, other) in itertools.combinations(scores.items(), 2):
        if one.dataset != other.dataset:
            continue
        cells = cell_of(one), cell_of(other)
        rows.append(
            {
                "run_a": a,
                "run_b": b,
                "dataset": one.dataset,
                "differ": ", ".join(f for f in FACTORS if cells[0][f] != cells[1][f]),
                **_correlated(one.result.items, other.result.items, replicates, seed),
            }
        )
    return pd.DataFrame(rows)


def _correlated(a: pd.DataFrame, b: pd.DataFrame, replicates: int, seed: int) -> dict[str, Any]:
    columns = ["sketch_id", "concept", "condition", "image_id", "sea"]
    both = a[columns].merge(b[["sketch_id", "sea"]], on="sketch_id", suffixes=("", "_b"), validate="one_to_one")
    both = both[both["sea"].notna() & both["sea_b"].notna()].sort_values("sketch_id", ignore_index=True)
    a_N, b_N = both["sea"].to_numpy(np.float64), both["sea_b"].to_numpy(np.float64)
    found: dict[str, Any] = {"n": len(both)}
    estimate = _rank_pair(a_N, b_N)
    draws = np.full((replicates, 2), np.nan)
    if len(both) > 2:
        concept_N = pd.factorize(both["concept"], sort=True)[0].astype(np.int64)
        image_N = both["image_id"].astype(str).to_numpy(dtype=object)
        design = CellDesign.from_columns(concept_N, image_N, both["condition"].to_numpy(np.float64))
        weight_BN = design.weights_GB(image_weights(design, replicates, seed))[design.slot_N].T
        for i, weight_N in enumerate(weight_BN):
            drawn = np.repeat(np.arange(len(both)), np.rint(weight_N).astype(np.int64))
            draws[i] = _rank_pair(a_N[drawn], b_N[drawn])
    for i, name in enumerate(("spearman", "kendall")):
        interval = basic(_fisher(estimate[i]), np.array([_fisher(r) for r in draws[:, i]]))
        low, high = math.tanh(interval.low), math.tanh(interval.high)
        # Of a correlation of 1 no resample differs, and artanh is finite only just below 1.
        found |= {name: estimate[i], f"{name}_low": min(low, estimate[i]), f"{name}_high": max(high, estimate[i])}
    return found


def _rank_pair(a_N: np.ndarray, b_N: np.ndarray) -> tuple[float, float]:
    if len(a_N) < 3 or np.ptp(a_N) == 0 or np.ptp(b_N) == 0:
        return math.nan, math.nan
    return float(spearmanr(a_N, b_N).statistic), float(kendalltau(a_N, b_N).statistic)


def _fisher(r: float) -> float:
    return math.atanh(min(max(r, -1 + 1e-12), 1 - 1e-12)) if math.isfinite(r) else math.nan
