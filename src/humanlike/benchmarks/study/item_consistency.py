"""Do models err on the same sketches as people, and as each other? With intervals over images and participants.

Legend: M models, N items.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from humanlike.benchmarks.seva_agreement import kappa_of_counts
from humanlike.benchmarks.seva_item_consistency import consistency_with_people
from humanlike.stats import CellDesign, CodedResponses
from humanlike.stats.crossed import Resample


def consistency_table(
    correct: Mapping[str, np.ndarray],
    responses: CodedResponses,
    target_N: np.ndarray,
    design: CellDesign,
    *,
    answered: Mapping[str, np.ndarray] | None = None,
    resample: Resample = "images",
    replicates: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Error consistency of every model with people, its interval and its ceiling.

    Args:
        correct: Observer → (N,) whether it was right.
        responses: People's coded answers; of repeated judgments of an item by one person the first counts.
        target_N: (N,) label index of every item's concept.
        design: The study's items.
        answered: Observer → (N,) whether it saw the item; judgments of the others are left out. None: all.
        resample: What the interval is over.
        replicates: Number B.
        seed: Global seed.
        level: Coverage of the interval.

    Returns:
        A row a model: `observer, estimate, ci_low, ci_high, ceiling, ceiling_kind, pairs_mean, each_with_others,
        participants, n_replicates`; for the interval see `consistency_with_people`.
    """
    options = (target_N, design, resample, replicates, seed, level)
    partly = {name: seen_N for name, seen_N in (answered or {}).items() if not np.all(seen_N)}
    found = consistency_with_people({n: c for n, c in correct.items() if n not in partly}, responses, *options)
    for name, seen_N in partly.items():
        rows = np.asarray(seen_N, bool)[responses.item_R]
        seen = CodedResponses(responses.participant_R[rows], responses.item_R[rows], responses.guess_RG[rows])
        found |= consistency_with_people({name: correct[name]}, seen, *options)
    table = []
    for name in correct:
        own, interval = found[name]
        row = {
            "observer": name,
            "estimate": own.value,
            "ci_low": interval.low,
            "ci_high": interval.high,
            "ceiling": own.ceiling,
            "ceiling_kind": own.ceiling_kind,
            "pairs_mean": own.pairs_mean,
            "each_with_others": own.each_with_others,
            "participants": own.participants,
            "n_replicates": replicates - interval.n_degenerate,
        }
        table.append(row)
    return pd.DataFrame(table)


def models_consistency(
    correct: Mapping[str, np.ndarray], answered: Mapping[str, np.ndarray] | None = None
) -> pd.DataFrame:
    """κ of every pair of models on their hard labels: do they err on the same sketches?

    Args:
        correct: Observer → (N,) whether it was right.
        answered: Observer → (N,) whether it saw the item; items that one of a pair did not see are left out. None: all.

    Returns:
        A square table, observers as index and columns; 1 on the diagonal, NaN where κ is not defined.

    Example:
        >>> models_consistency({"a": np.array([1, 1, 0, 0]), "b": np.array([1, 1, 0, 1])}).round(2).to_numpy().tolist()
        [[1.0, 0.5], [0.5, 1.0]]
    """
    names = list(correct)
    right_MN = np.stack([np.asarray(correct[name], bool) for name in names]).astype(np.float64)
    seen_MN = np.ones_like(right_MN)
    if answered is not None:
        seen_MN = np.stack([np.asarray(answered[name], bool) for name in names]).astype(np.float64)
    right_MN = right_MN * seen_MN
    right_a = right_MN @ seen_MN.T  # of the items that both saw, those that the first has right
    kappa = kappa_of_counts(right_MN @ right_MN.T, right_a, right_a.T, seen_MN @ seen_MN.T)
    return pd.DataFrame(kappa, index=names, columns=names)
