"""Crossed resampling against brute force, and its width against studies simulated again and again."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.stats.two_way_bootstrap import (
    CrossedWeights,
    crossed_means,
    crossed_weights,
    judgment_matrix,
    two_way_std_error,
)


def test_a_replicate_is_the_mean_over_the_drawn_people_and_items():
    rng = np.random.default_rng(0)
    value_PI = np.where(rng.random((6, 9)) < 0.2, np.nan, rng.random((6, 9)))
    weights = crossed_weights(6, 9, 20, seed=4)
    for people, items, found in zip(
        weights.participants_BP, weights.items_BI, crossed_means(value_PI, weights), strict=True
    ):
        drawn = value_PI[np.repeat(np.arange(6), people)][:, np.repeat(np.arange(9), items)]
        assert found == pytest.approx(np.nanmean(drawn))
    assert not np.array_equal(crossed_weights(9, 9, 20, 4).participants_BP, crossed_weights(9, 9, 20, 4).items_BI)
    again, other = crossed_weights(6, 9, 20, 4), crossed_weights(6, 9, 20, 5)
    assert (again.items_BI == weights.items_BI).all()
    assert (other.items_BI != weights.items_BI).any()


def test_a_replicate_without_a_judgment_has_no_mean():
    weights = CrossedWeights(np.array([[2, 0], [0, 2]]), np.array([[1], [1]]))
    assert crossed_means(np.array([[np.nan], [0.25]]), weights).tolist() == pytest.approx([np.nan, 0.25], nan_ok=True)
    with pytest.raises(ValueError, match=r"\(2, 2\) participants × items, the draws \(2, 1\)"):
        crossed_means(np.zeros((2, 2)), weights)


def test_two_judgments_of_one_item_by_one_person_are_refused():
    with pytest.raises(ValueError, match="two judgments of one item"):
        judgment_matrix(np.ones(2), np.array([0, 0]), np.array([1, 1]), (1, 2))


def test_the_standard_error_sums_over_pairs_that_share_a_person_or_an_item():
    rng = np.random.default_rng(7)
    value_PI = rng.normal(size=(8, 1)) + rng.normal(size=(1, 13)) + rng.normal(size=(8, 13))
    value_PI[rng.random((8, 13)) < 0.15] = np.nan
    person, item = np.nonzero(np.isfinite(value_PI))
    error = (value_PI[person, item] - np.nanmean(value_PI)) / len(person)
    products = np.outer(error, error)
    same_person, same_item = person[:, None] == person, item[:, None] == item
    expected = (
        products[same_person].sum() * 8 / 7
        + products[same_item].sum() * 13 / 12
        - products[same_person & same_item].sum() * len(person) / (len(person) - 1)
    )
    assert two_way_std_error(value_PI) == pytest.approx(np.sqrt(expected))
    assert np.isnan(two_way_std_error(value_PI[:1]))
    assert np.isnan(two_way_std_error(value_PI[:, :1]))


def test_both_widths_match_studies_that_are_repeated():
    """27 people × 160 triples: the spread of the estimate over 300 studies, and what one study says of it."""
    rng = np.random.default_rng(1)
    means, errors, widths = [], [], []
    for study in range(300):
        chance = 0.85 + rng.normal(0, 0.05, (27, 1)) + rng.normal(0, 0.1, (1, 160))
        value_PI = (rng.random((27, 160)) < chance).astype(float)
        means.append(value_PI.mean())
        errors.append(two_way_std_error(value_PI))
        if study < 60:
            widths.append(crossed_means(value_PI, crossed_weights(27, 160, 200, study)).std())
    truth = np.std(means)  # known to 4%
    assert np.mean(errors) == pytest.approx(truth, rel=0.12)
    assert 0.95 * truth < np.mean(widths) < 1.35 * truth
