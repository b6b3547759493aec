"""A model whose true alignment with the simulated participants is known, so that statistics meet the truth.

Legend: N sketches, L labels, C cells (concept × condition).
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from humanlike.data.doodles.participants import Observer, choice_probability
from humanlike.rng import generator
from humanlike.stats.regression import alignment_r2
from humanlike.types import Sketches

LARGEST_NOISE = 64.0
"""Noise in log-odds at which nothing of people's accuracy is left in the model's."""


def cell_means(data: Sketches, value_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of a value over the sketches of every (concept, condition) cell.

    Args:
        data: The data set.
        value_N: (N,) a number a sketch.

    Returns:
        (C,) means, (C,) condition of the cells, and (N,) cell of every sketch; cells in order of label, then condition.
    """
    condition_N = data.table["condition"].to_numpy(np.float64)
    cells = pd.MultiIndex.from_arrays([data.target_N, condition_N])
    cell_N, unique = pd.factorize(cells, sort=True)
    sums = np.bincount(cell_N, weights=value_N, minlength=len(unique))
    condition_C = unique.get_level_values(1).to_numpy(np.float64)
    return sums / np.bincount(cell_N, minlength=len(unique)), condition_C, cell_N


def simulate_model(
    data: Sketches, alignment: float = 0.6, seed: int = 0, observer: Observer | None = None
) -> np.ndarray:
    """Choice distributions of a model whose *population* alignment on accuracy is exactly `alignment`.

    The model's true cell accuracies are people's, displaced in log-odds by addressed normal noise whose scale is solved
    by bisection, so that the adjusted R² of people's true cell accuracies on 1 + model + t + model·t is the wanted
    value. Within a cell the sketches keep people's order of difficulty, and errors keep people's distribution. 1 gives
    the simulated people themselves; the smallest possible value, about 0.33 on the whole demo, is what time alone
    explains.

    Answers drawn from the rows (`sample_labels`) have these accuracies in expectation; the most probable label of a row
    is another model.

    Args:
        data: The doodles, or a selection of them with more than four cells.
        alignment: The true adjusted R², at most 1.
        seed: Seed of the noise.
        observer: The simulated people's perception; default `Observer()`.

    Returns:
        (N, L) float64, rows sum to 1.

    Raises:
        ValueError: When no noise gives this alignment; the sentence names the range.
    """
    people_NL = choice_probability(data, observer)
    if alignment == 1:
        return people_NL
    rows = np.arange(len(data))
    correct_N = people_NL[rows, data.target_N]
    people_C, condition_C, cell_N = cell_means(data, correct_N)
    noise_C = generator(seed, "doodles", "twin", "noise").standard_normal(len(people_C))
    model_C = _displaced(people_C, _noise_scale(people_C, condition_C, noise_C, alignment) * noise_C)
    # Scaling the right answers down, or the wrong ones down, keeps every sketch in [0, 1] and the cell's mean exact.
    down_C = model_C / people_C
    up_C = (1 - model_C) / (1 - people_C)
    wanted_N = np.where((model_C <= people_C)[cell_N], correct_N * down_C[cell_N], 1 - (1 - correct_N) * up_C[cell_N])
    proba_NL = people_NL.copy()
    proba_NL[rows, data.target_N] = 0.0
    proba_NL *= ((1 - wanted_N) / proba_NL.sum(axis=1))[:, None]
    proba_NL[rows, data.target_N] = wanted_N
    return proba_NL


def population_alignment(data: Sketches, proba_NL: np.ndarray, observer: Observer | None = None) -> float:
    """True alignment on accuracy between the simulated people and a model with these choice distributions.

    Args:
        data: The doodles, or a selection of them.
        proba_NL: (N, L) the model's probability of every answer.
        observer: The simulated people's perception; default `Observer()`.

    Returns:
        Adjusted R² over cells; at most 1.
    """
    rows = np.arange(len(data))
    people_C, condition_C, _ = cell_means(data, choice_probability(data, observer)[rows, data.target_N])
    model_C, _, _ = cell_means(data, np.asarray(proba_NL)[rows, data.target_N])
    return float(alignment_r2(people_C, model_C, condition_C)[0])


def sample_labels(proba_NL: np.ndarray, seed: int = 0) -> np.ndarray:
    """(N,) int64, one answer a sketch drawn from its choice distribution.

    Example:
        >>> sample_labels(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
        [1, 0]
    """
    cumulative = np.cumsum(np.asarray(proba_NL, dtype=np.float64), axis=1)
    threshold = generator(seed, "doodles", "twin", "answers").random(len(cumulative)) * cumulative[:, -1]
    return (cumulative <= threshold[:, None]).sum(axis=1).astype(np.int64)


def _noise_scale(people_C: np.ndarray, condition_C: np.ndarray, noise_C: np.ndarray, alignment: float) -> float:
    if math.isnan(alignment):
        raise ValueError("the alignment must be a number, got NaN")

    def excess(scale: float) -> float:
        return float(alignment_r2(people_C, _displaced(people_C, scale * noise_C), condition_C)[0]) - alignment

    lowest = excess(LARGEST_NOISE) + alignment
    if not lowest < alignment < 1:
        raise ValueError(
            f"an alignment of {alignment} cannot be made on these {len(people_C)} cells: it must lie above "
            f"{lowest:.4f}, of which the condition alone explains most, and at most at 1"
        )
    low, high = 0.0, LARGEST_NOISE
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return min((low, high), key=lambda scale: abs(excess(scale)))


def _displaced(accuracy_C: np.ndarray, shift_C: np.ndarray) -> np.ndarray:
    log_odds = np.log(accuracy_C) - np.log1p(-accuracy_C) + shift_C
    return 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
