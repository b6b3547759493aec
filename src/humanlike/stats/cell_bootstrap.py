"""Cell metrics under image weights, for a thousand replicates at once.

Every cell metric is a function of weighted counts, and the weights of a replicate (how often each source image was
drawn) enter linearly: counts of all replicates are one product of a sparse matrix of per-image counts with the matrix
of weights. Blocks of replicates and cells keep the temporary arrays in the cache.

Legend: C cells, G source images, B replicates, E entries (one label or rank of one cell).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_matrix

from humanlike.metrics.functional.neighbour_preference import exact_preference, paper_terms
from humanlike.rng import generator
from humanlike.stats.cell_design import CellDesign
from humanlike.stats.count_entropy import group_sums, grouped_entropy, ratio
from humanlike.stats.sketch_statistics import (
    METRICS,
    MeanEntropy,
    NeighbourStatistics,
    PooledEntropy,
    SketchStatistics,
    SparseCounts,
)

REPLICATES_PER_DRAW = 64
_BLOCK_ELEMENTS = 1 << 15
_BLOCK_REPLICATES = 32


def cell_metrics(
    design: CellDesign, side: SketchStatistics, weights_BKJ: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Accuracy, entropy and SNP of every cell, for every replicate.

    Args:
        design: Where every item stands.
        side: Statistics of the model or of people, items in the same order.
        weights_BKJ: (B, K, J) weight of every source image (see `image_weights`); None gives the
            full sample, B = 1.

    Returns:
        {"accuracy", "entropy", "snp"}: (B, C) float64 each; NaN where a cell has nothing to compute it from.

    Raises:
        ValueError: If design and side differ in the number of items, or weights do not fit.

    Example:
        >>> from humanlike.stats.sketch_statistics import model_statistics
        >>> design = CellDesign.from_columns([0, 0, 1], ["a", "b", "c"], [4, 4, 4])
        >>> side = model_statistics(np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]), np.array([0, 0, 1]))
        >>> cell_metrics(design, side)["accuracy"].tolist()
        [[0.5, 0.0]]
    """
    if len(side) != len(design):
        raise ValueError(f"the statistics are of {len(side)} items, the design of {len(design)}")
    return metrics_under_weights(design, side, design.weights_GB(weights_BKJ))


def metrics_under_weights(design: CellDesign, side: SketchStatistics, weights_GB: np.ndarray) -> dict[str, np.ndarray]:
    """`cell_metrics` for weights that stand ready: (G, B) float64, one row per slot of `design.slot_N`."""
    accuracy = _weighted_mean(design, side.accuracy_sum_N, side.accuracy_weight_N, weights_GB)
    if isinstance(side.entropy, MeanEntropy):
        entropy = _weighted_mean(design, side.entropy.sum_N, side.entropy.weight_N, weights_GB)
    else:
        entropy = _pooled_entropy(design, side.entropy, weights_GB)
    snp = np.full_like(accuracy, np.nan)
    if side.neighbours is not None:
        snp = _snp(design, side.neighbours, weights_GB)
    return {
        name: np.ascontiguousarray(value_CB.T) for name, value_CB in zip(METRICS, (accuracy, entropy, snp), strict=True)
    }


def image_weights(design: CellDesign, replicates: int, seed: int, start: int = 0) -> np.ndarray:
    """How often each source image is drawn when the images of every concept are resampled with replacement.

    A replicate draws J_k of the J_k images of concept k; an image brings its items of all conditions and both sides.
    Replicates have addresses: asking for replicates 500 … 599 gives the same as asking for 1,000 and looking there.

    Args:
        design: The study.
        replicates: Number of replicates B.
        seed: Global seed; equal seeds give equal draws, so that models are compared on the same resamples.
        start: Number of the first replicate.

    Returns:
        (B, K, J) int16 counts; row sums over J are J_k.

    Raises:
        ValueError: If `replicates` is below 1 or `start` below 0.
    """
    if replicates < 1 or start < 0:
        raise ValueError(f"replicates must be at least 1 and start at least 0, got {replicates} and {start}")
    drawn = design.image_mask_KJ
    k, j = drawn.shape
    out = np.empty((replicates, k, j), dtype=np.int16)
    for block in range(start // REPLICATES_PER_DRAW, (start + replicates - 1) // REPLICATES_PER_DRAW + 1):
        uniform = generator(seed, "image_bootstrap", block).random((REPLICATES_PER_DRAW, k, j))
        image = (uniform * design.images_K[:, None]).astype(np.int64)
        row = np.arange(REPLICATES_PER_DRAW * k).reshape(REPLICATES_PER_DRAW, k, 1) * j
        counts = np.bincount((row + image)[:, drawn].ravel(), minlength=REPLICATES_PER_DRAW * k * j)
        first = block * REPLICATES_PER_DRAW - start
        low, high = max(first, 0), min(first + REPLICATES_PER_DRAW, replicates)
        out[low:high] = counts.reshape(REPLICATES_PER_DRAW, k, j)[low - first : high - first]
    return out


def left_out_images(design: CellDesign) -> tuple[np.ndarray, np.ndarray]:
    """The replicates of the stratified jackknife: one source image left out at a time, within its concept.

    Concepts with a single image are passed over: leaving it out would leave the concept empty, and in a stratified
    jackknife it contributes nothing.

    Returns:
        concept_B, image_B: (B,) concept code and image code of what was left out, one replicate an image.
    """
    concept_B, image_B = np.nonzero(design.image_mask_KJ & (design.images_K > 1)[:, None])
    return concept_B, image_B


def left_out_metrics(design: CellDesign, side: SketchStatistics) -> dict[str, np.ndarray]:
    """`cell_metrics` without one image at a time, in the order of `left_out_images`; (B, C) each.

    An image is in the cells of its concept alone: J replicates, each without one image of every concept, hold all that
    changes, and the rest of a row is the full sample.
    """
    concept_B, image_B = left_out_images(design)
    k, j = design.image_mask_KJ.shape
    weights_JKJ = np.broadcast_to(1 - np.eye(j, dtype=np.int16)[:, None, :], (j, k, j)).copy()
    weights_JKJ[:, design.images_K < 2] = 1
    full, without = cell_metrics(design, side), cell_metrics(design, side, weights_JKJ)
    own_BC = concept_B[:, None] == design.concept_code_C[None, :]
    return {metric: np.where(own_BC, without[metric][image_B], full[metric]) for metric in METRICS}


def _weighted_mean(design: CellDesign, sum_N: np.ndarray, weight_N: np.ndarray, weights_GB: np.ndarray) -> np.ndarray:
    """(C, B) Σ w·sum / Σ w·weight."""
    shape = (design.num_cells, len(weights_GB))
    where = (design.cell_N, design.slot_N)
    return ratio(
        csr_matrix((sum_N, where), shape=shape) @ weights_GB, csr_matrix((weight_N, where), shape=shape) @ weights_GB
    )


@dataclass(frozen=True)
class _Block:
    """Whole cells of a histogram: entry keys, the cells, their sums, and the (E, G) per-image counts."""

    key_E: np.ndarray
    cell_S: np.ndarray
    sums_SE: csr_matrix
    counts_EG: csr_matrix


def _blocks(design: CellDesign, counts: SparseCounts, num_images: int, num_replicates: int) -> Iterator[_Block]:
    """The histogram of every cell over the keys that occur in it, sorted by key, in blocks of whole cells."""
    width = int(counts.key_E.max(initial=0)) + 1
    code_E = design.cell_N[counts.item_E] * width + counts.key_E
    code_U, entry_E = np.unique(code_E, return_inverse=True)
    where = (entry_E, design.slot_N[counts.item_E])
    counts_UG = csr_matrix((counts.count_E, where), shape=(len(code_U), num_images))
    cell_S, start_S = np.unique(code_U // width, return_index=True)
    end_S = np.append(start_S[1:], len(code_U))
    rows = max(_BLOCK_ELEMENTS // min(num_replicates, _BLOCK_REPLICATES), 1)
    first = 0
    while first < len(cell_S):
        last = max(int(np.searchsorted(end_S, start_S[first] + rows, side="right")), first + 1)
        low, high = start_S[first], end_S[last - 1]
        yield _Block(
            key_E=code_U[low:high] % width,
            cell_S=cell_S[first:last],
            sums_SE=group_sums(start_S[first:last] - low, high - low),
            counts_EG=counts_UG[low:high],
        )
        first = last


def _columns(weights_GB: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Groups of replicates, each with its own contiguous copy of the weights."""
    for start in range(0, weights_GB.shape[1], _BLOCK_REPLICATES):
        columns = slice(start, start + _BLOCK_REPLICATES)
        yield columns, np.ascontiguousarray(weights_GB[:, columns])


def _pooled_entropy(design: CellDesign, pooled: PooledEntropy, weights_GB: np.ndarray) -> np.ndarray:
    out_CB = np.full((design.num_cells, weights_GB.shape[1]), np.nan)
    blocks = list(_blocks(design, pooled.labels, *weights_GB.shape))
    for columns, weights in _columns(weights_GB):
        for block in blocks:
            n_EB = block.counts_EG @ weights
            out_CB[block.cell_S, columns] = grouped_entropy(n_EB, block.sums_SE, pooled.estimator)
    return out_CB


def _snp(design: CellDesign, neighbours: NeighbourStatistics, weights_GB: np.ndarray) -> np.ndarray:
    """(C, B) semantic neighbour preference; see `humanlike.metrics.functional.semantic_neighbour_preference`."""
    if neighbours.variant == "exact":
        snp_CB = _snp_exact(design, neighbours, weights_GB)
    else:
        snp_CB = _snp_paper(design, neighbours, weights_GB)
    undefined = neighbours.variant == "exact" and neighbours.num_labels < 3  # with or without errors
    if neighbours.no_error_cell == "missing" or undefined:
        return snp_CB
    shape = (design.num_cells, len(weights_GB))
    answered_CB = csr_matrix((neighbours.answered_N, (design.cell_N, design.slot_N)), shape=shape) @ weights_GB
    return np.where(np.isnan(snp_CB) & (answered_CB > 0), 1.0, snp_CB)


def _snp_exact(design: CellDesign, neighbours: NeighbourStatistics, weights_GB: np.ndarray) -> np.ndarray:
    """`exact_preference` of the cells' mean ranks."""
    ranks, num_items = neighbours.ranks, len(design)
    rank_sum_N = ranks.per_item(num_items, ranks.key_E.astype(np.float64))
    mean_CB = _weighted_mean(design, rank_sum_N, ranks.per_item(num_items), weights_GB)
    return exact_preference(torch.from_numpy(mean_CB), torch.tensor(neighbours.num_labels, dtype=torch.float64)).numpy()


def _snp_paper(design: CellDesign, neighbours: NeighbourStatistics, weights_GB: np.ndarray) -> np.ndarray:
    """Trapezoid area under (position/L, cumulative share) at the observed positions ≥ 1, then (1, 1).

    The terms are `paper_terms`; here they are summed over the entries of many cells, for all replicates.
    """
    out_CB = np.full((design.num_cells, weights_GB.shape[1]), np.nan)
    position = neighbours.ranks.key_E - 1
    kept = position > 0
    counts = SparseCounts(neighbours.ranks.item_E[kept], position[kept], neighbours.ranks.count_E[kept])
    num_labels = neighbours.num_labels
    num_labels_t = torch.tensor(num_labels, dtype=torch.float64)
    blocks = list(_blocks(design, counts, *weights_GB.shape))
    for columns, weights in _columns(weights_GB):
        for block in blocks:
            n_EB = block.counts_EG @ weights
            total_SB = block.sums_SE @ n_EB
            gap_EB = _gap_to_previous(n_EB, block, num_labels)
            n, at, gap = (torch.from_numpy(x) for x in (n_EB, block.key_E[:, None], gap_EB))
            area_SB = block.sums_SE @ paper_terms(n, at, gap, num_labels_t).numpy()
            out_CB[block.cell_S, columns] = ratio(area_SB, total_SB * num_labels)
    return out_CB


def _gap_to_previous(n_EB: np.ndarray, block: _Block, num_labels: int) -> np.ndarray:
    """(E, B) distance from an entry's position to the previous observed one of its cell and replicate, 0 if none."""
    # Cells follow one another on one axis, 2L apart, so that one running maximum serves them all.
    entries_S = np.diff(block.sums_SE.indptr)
    place_E = block.key_E + np.repeat(np.arange(len(entries_S)) * (2.0 * num_labels), entries_S)
    last_EB = np.where(n_EB > 0, place_E[:, None], -np.inf)
    np.maximum.accumulate(last_EB, axis=0, out=last_EB)
    gap_EB = np.empty_like(last_EB)
    gap_EB[0] = 0.0
    np.subtract(place_E[1:, None], last_EB[:-1], out=gap_EB[1:])
    return np.where(gap_EB < num_labels, gap_EB, 0.0)
