"""Means over levels and their tests, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.stats.learning_one_shot import OneShotPeople, one_shot_score
from humanlike.stats.learning_one_shot_counts import OneShotCounts
from humanlike.stats.learning_transformations import transformation_means

KINDS = ["blur", "blur", "noise", "noise", "noise"]
SESSIONS = 120


@pytest.fixture(scope="module")
def sides():
    rng = np.random.default_rng(3)
    people = OneShotPeople.from_estimates([0.9, 0.8, 0.7, 0.7, 0.6], np.full(5, 0.02), 400, 0)
    condition_NT = rng.integers(0, 5, (SESSIONS, 10))
    correct_NT = rng.random((SESSIONS, 10)) < np.array([0.6, 0.6, 0.7, 0.7, 0.6])[condition_NT]
    return one_shot_score(OneShotCounts.from_trials(correct_NT, condition_NT, (), 5), people), people


def test_means_intervals_and_tests_by_hand(sides):
    score, people = sides
    table = transformation_means(score, people, KINDS).set_index("transformation")
    assert list(table.index) == ["blur", "noise"]
    assert table["levels"].tolist() == [2, 3]
    assert table.loc["blur", "accuracy"] == pytest.approx(score.p_C[:2].mean())
    assert table.loc["noise", "accuracy_people"] == pytest.approx(2 / 3)
    drawn = score.replicate_BC[:, :2].mean(axis=1) - people.replicate_BC[:, :2].mean(axis=1)
    difference = score.p_C[:2].mean() - 0.85
    low, high = np.quantile(drawn, (0.025, 0.975)) - drawn.mean()
    assert table.loc["blur", "difference_ci_low"] == pytest.approx(difference - high)
    assert table.loc["blur", "difference_ci_high"] == pytest.approx(difference - low)
    p = (1 + sum(abs(d - difference) >= abs(difference) for d in drawn)) / (len(drawn) + 1)
    assert table.loc["blur", "p_value"] == pytest.approx(p)
    assert table.loc["blur", "p_value"] < 0.05 < table.loc["noise", "p_value"]


def test_conditions_must_fit(sides):
    with pytest.raises(ValueError, match="4 transformations for 5 conditions"):
        transformation_means(*sides, KINDS[:4])
