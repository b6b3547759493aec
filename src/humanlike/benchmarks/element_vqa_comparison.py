"""Several judges of elements on the same sketches: which of them can be told apart.

Legend: M judges, N sketches that all of them were asked about, B replicates (source images within concepts).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from humanlike.metrics.functional.element_vqa import scores_from_table
from humanlike.stats import CellDesign, basic, image_weights
from humanlike.stats.rank_groups import rank_groups
from humanlike.types import Score

COUNTS = ("true_absent", "false_present", "unanswered_absent", "false_absent", "true_present", "unanswered_present")
RANKED = ("f1", "accuracy", "balanced_accuracy", "accuracy_over_all")
"""By what judges are ranked; the last counts a question without an answer as wrong."""


def judge_ranks(
    scores: Mapping[str, Score], replicates: int = 1000, seed: int = 0, level: float = 0.95
) -> pd.DataFrame:
    """Ranks of judges with what they could be: judges that cannot be told apart share a letter.

    Two judges are told apart where the interval of the difference of their scores, on the same resamples of the
    sketches that all judges of the data set were asked about, leaves out 0. Intervals are widened for the number of
    pairs (Bonferroni).

    Args:
        scores: Name of a run → the run of element VQA.
        replicates: Bootstrap replicates.
        seed: Global seed.
        level: Coverage over all pairs of a data set.

    Returns:
        One row a run and score: `run, dataset, score, value, rank, rank_high, letters, n_sketches`; value over the
        shared sketches.

    Raises:
        ValueError: Runs of one data set have no sketch in common, or count other pairs for the same sketch.
    """
    by_dataset: dict[str, list[str]] = {}
    for name, score in scores.items():
        by_dataset.setdefault(score.dataset, []).append(name)
    rows = []
    for dataset, names in by_dataset.items():
        table_MN6, items = _shared({name: scores[name].result.items for name in names}, dataset)
        value_M, replicate_MB = _values(table_MN6, items, replicates, seed)
        pairs = list(itertools.combinations(range(len(names)), 2))
        for ranked in RANKED:
            apart_MM = np.zeros((len(names), len(names)), bool)
            for i, j in pairs:
                drawn_B = replicate_MB[ranked][i] - replicate_MB[ranked][j]
                low_high = basic(value_M[ranked][i] - value_M[ranked][j], drawn_B, 1 - (1 - level) / len(pairs))
                apart_MM[i, j] = apart_MM[j, i] = low_high.low > 0 or low_high.high < 0
            groups = rank_groups(value_M[ranked], apart_MM)
            rows += [
                {
                    "run": name,
                    "dataset": dataset,
                    "score": ranked,
                    "value": value_M[ranked][i],
                    "rank": int(groups.rank_M[i]),
                    "rank_high": int(groups.rank_high_M[i]),
                    "letters": groups.letters_M[i],
                    "n_sketches": len(items),
                }
                for i, name in enumerate(names)
            ]
    return pd.DataFrame(rows)


def _shared(items_of: Mapping[str, pd.DataFrame], dataset: str) -> tuple[np.ndarray, pd.DataFrame]:
    """(M, N, 6) counts of the sketches that all runs used, and those sketches."""
    used = {name: t[t["error"].isna() & (t[list(COUNTS)].sum(axis=1) > 0)] for name, t in items_of.items()}
    ids = sorted(set.intersection(*(set(table["sketch_id"]) for table in used.values())))
    if not ids:
        raise ValueError(f"the runs on {dataset} ({', '.join(used)}) have no sketch in common")
    tables = {name: table.set_index("sketch_id").loc[ids] for name, table in used.items()}
    present = {name: table[list(COUNTS[3:])].sum(axis=1).to_numpy() for name, table in tables.items()}
    first = next(iter(tables))
    for name, own in present.items():
        different = np.flatnonzero(own != present[first])
        if len(different):
            raise ValueError(
                f"{first} and {name} are held against other annotations of sketch {ids[different[0]]!r} of {dataset} "
                f"({present[first][different[0]]} and {own[different[0]]} elements present); gather runs on one version"
            )
    counts = np.stack([table[list(COUNTS)].to_numpy(np.int64) for table in tables.values()])
    return counts, tables[first].reset_index()


def _values(
    table_MN6: np.ndarray, items: pd.DataFrame, replicates: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Score → (M,) values, and score → (M, B) replicates on the same resamples."""
    concept_N = pd.factorize(items["concept"], sort=True)[0].astype(np.int64)
    image_N = items["image_id"].astype(str).to_numpy(dtype=object)
    design = CellDesign.from_columns(concept_N, image_N, items["condition"].to_numpy(np.float64))
    weight_NB = design.weights_GB(image_weights(design, replicates, seed))[design.slot_N].astype(np.float64)
    full = scores_from_table(torch.from_numpy(table_MN6.sum(axis=1))[:, None, None, :])
    drawn_MB6 = np.rint(np.einsum("nb,mni->mbi", weight_NB, table_MN6.astype(np.float64), optimize=True))
    drawn = scores_from_table(torch.from_numpy(drawn_MB6.astype(np.int64))[:, :, None, None, :])
    return (
        {name: getattr(full, name).numpy() for name in RANKED},
        {name: getattr(drawn, name).numpy() for name in RANKED},
    )
