"""The spread that resampled images hide, against a brute-force mean of what they show and simulated studies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from humanlike.stats import CellDesign, cell_metrics, image_weights, model_statistics
from humanlike.stats.hidden_spread import hidden_variance
from humanlike.stats.intervals import widened
from humanlike.stats.sketch_statistics import NeighbourStatistics, SparseCounts

LABELS = 40


def neighbours(items, ranks, counts, num_items, no_error_cell="missing"):
    table = SparseCounts(np.array(items, int), np.array(ranks, int), np.array(counts, float))
    return NeighbourStatistics(table, np.ones(num_items), LABELS, "exact", no_error_cell, 0)


def design_of(images):
    return CellDesign(np.zeros(images, int), np.arange(images), np.zeros(images, int), np.array([4.0]))


@pytest.mark.parametrize("counts", [(1, 1), (1, 1, 1, 1), (3, 1, 1), (4, 2)])
def test_it_is_what_the_replicates_lack_on_average(counts):
    """Over all values that independent images can take, shown + hidden = the true variance of the cell's mean."""
    n, design = len(counts), design_of(len(counts))
    values = (3.0, 9.0, 20.0)
    share = np.array(counts) / sum(counts)
    true = (share**2).sum() * np.var(values)
    shown, whole = [], []
    for drawn in product(values, repeat=n):
        x = np.array(drawn)
        shown.append((share**2 * (x - share @ x) ** 2).sum())
        whole.append(hidden_variance(design, neighbours(range(n), x.astype(int), counts, n)) * (LABELS - 2) ** 2)
    widening = design.resampling_spread**2 * np.array(shown)
    ratio = true / np.mean(shown)  # what all that is shown has to be multiplied by
    np.testing.assert_allclose(whole, np.maximum(ratio * np.array(shown) - widening, 0), atol=1e-12)


def test_cells_with_one_error_take_the_spread_of_their_concept():
    concept, image, condition = (a.ravel() for a in np.indices((2, 3, 2)))
    design = CellDesign(concept, image, condition, np.array([4.0, 8.0]), np.array(["cat", "dog"], dtype=object))
    item = np.arange(12).reshape(2, 3, 2)
    wrong = [item[0, 0, 0], item[0, 1, 0], item[0, 2, 1], item[1, 0, 0], item[1, 2, 0]]
    side = neighbours(wrong, [3, 9, 5, 7, 7], [1] * 5, 12)
    # concept 0: cell of two shows (6/2)²/2 of σ²/2 with g = 1/4, so σ² = 18; its cell of one lacks all of it
    sigma2, shown = 18.0, 4.5
    wanted = (sigma2 / 2 + sigma2 - 1.5 * shown) / (3 * (LABELS - 2)) ** 2
    assert hidden_variance(design, side) == pytest.approx(wanted)
    one = neighbours(wrong, [3, 9, 5, 7, 7], [1] * 5, 12, no_error_cell="one")
    assert hidden_variance(design, one) == pytest.approx(wanted * 9 / 16)


@pytest.mark.parametrize("answers", [(2, 2, 2), (4, 1)])
def test_answers_to_one_image_have_a_spread_of_their_own(answers):
    """Over all values of images and of deviations of single answers, shown + hidden = the true variance."""
    design, between, within = design_of(len(answers)), (10.0, 30.0), (-2.0, 0.0, 5.0)
    share = np.array(answers) / sum(answers)
    item = np.repeat(np.arange(len(answers)), answers)
    shown, means, told = [], [], []
    rng = np.random.default_rng(0)
    for _ in range(4000):
        rank = rng.choice(between, len(answers))[item] + rng.choice(within, len(item))
        x = np.bincount(item, weights=rank) / answers
        means.append(share @ x)
        shown.append((share**2 * (x - means[-1]) ** 2).sum())
        side = neighbours(item, rank, [1] * len(item), len(answers))
        told.append(hidden_variance(design, side) * (LABELS - 2) ** 2 + design.resampling_spread**2 * shown[-1])
    true = (share**2).sum() * np.var(between) + np.var(within) / sum(answers)
    assert np.var(means) == pytest.approx(true, rel=0.1)
    assert np.mean(shown) < 0.75 * true
    # never below what is shown, so that the mean lies a little above
    assert 0.95 * true < np.mean(told) < 1.15 * true


@pytest.mark.parametrize(("items", "ranks"), [([], []), ([0], [4]), ([0, 1], [5, 5])])
def test_nothing_is_invented(items, ranks):
    assert hidden_variance(design_of(3), neighbours(items, ranks, [1] * len(items), 3)) == 0


def test_intervals_get_the_width_of_repeated_studies():
    """The spread of mean preference over independent studies, with one wrong answer in six."""
    rng = np.random.default_rng(2)
    concept, image, condition = (a.ravel() for a in np.indices((10, 12, 3)))
    design = CellDesign(concept, image, condition, np.arange(3.0))
    means, plain, whole = [], [], []
    for seed in range(120):
        wrong = rng.random(len(design)) < 1 / 6
        items = np.flatnonzero(wrong)
        side = neighbours(items, 1 + rng.geometric(0.1, len(items)).clip(max=LABELS - 2), [1] * len(items), len(design))
        statistics = model_statistics(np.eye(LABELS)[concept], concept)
        statistics = type(statistics)(statistics.accuracy_sum_N, statistics.accuracy_weight_N, statistics.entropy, side)
        again = np.nanmean(cell_metrics(design, statistics, image_weights(design, 60, seed))["snp"], axis=1)
        means.append(np.nanmean(cell_metrics(design, statistics)["snp"]))
        plain.append(widened(again, design.resampling_spread).var())
        whole.append(widened(again, design.resampling_spread, hidden_variance(design, side)).var())
    true = np.std(means)
    assert np.sqrt(np.mean(plain)) < 0.88 * true
    assert 0.88 * true < np.sqrt(np.mean(whole)) < 1.2 * true
