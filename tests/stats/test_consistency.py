from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from humanlike.rng import generator
from humanlike.stats import (
    CellDesign,
    CodedResponses,
    PeopleSwitches,
    SplitHalf,
    alignment_r2,
    cell_metrics,
    gap_to_consistency,
    people_statistics,
    split_half_consistency,
)
from humanlike.stats.crossed import PeopleUnderWeights


@pytest.fixture(scope="module")
def people() -> tuple[CellDesign, CodedResponses, np.ndarray]:
    """30 concepts × 4 conditions, one image each, 40 participants who judge everything with a concept-wise skill."""
    rng = np.random.default_rng(0)
    concept, condition = (a.ravel() for a in np.meshgrid(np.arange(30), np.arange(4), indexing="ij"))
    skill_N = np.clip(rng.random(30)[concept] * 0.7 + 0.08 * condition, 0, 1)
    participant, item = (a.ravel() for a in np.meshgrid(np.arange(40) * 3 + 1, np.arange(120), indexing="ij"))
    right = rng.random(len(item)) < skill_N[item]
    guess = np.where(right, concept[item], rng.integers(0, 30, len(item)))
    return (
        CellDesign.from_columns(concept, concept, condition),
        CodedResponses(participant, item, guess[:, None]),
        concept,
    )


def test_halves_are_disjoint_complete_and_fitted_on_each_other(people, monkeypatch):
    design, coded, target_N = people
    seen = []
    original = PeopleUnderWeights.cells

    def spy(self, weights_BP, *images):
        seen.append(weights_BP[:, self._person_R].astype(bool))
        return original(self, weights_BP, *images)

    monkeypatch.setattr(PeopleUnderWeights, "cells", spy)
    result = split_half_consistency(design, coded, target_N, splits=3, seed=4)
    for split in range(3):
        first, second = (rows_SR[split] for rows_SR in seen)
        np.testing.assert_array_equal(first, ~second)
        assert len(np.unique(coded.participant_R[first])) == 20
        assert not set(coded.participant_R[first]) & set(coded.participant_R[second])
        a, b = (
            cell_metrics(design, people_statistics(coded, target_N, rows=rows))["accuracy"][0]
            for rows in (first, second)
        )
        half = result["accuracy"]
        assert half.r2_S[split] == pytest.approx(alignment_r2(a, b, design.condition_C)[0], abs=1e-12)
        r = scipy.stats.pearsonr(a, b).statistic
        assert half.correlation_S[split] == pytest.approx(r, abs=1e-12)
        assert half.spearman_brown_S[split] == pytest.approx(2 * r / (1 + r), abs=1e-12)
    assert np.isnan(result["snp"].mean)
    assert np.isnan(result["snp"].interval().low)


def test_spearman_brown_foretells_the_r2_of_a_perfect_model(people):
    """A model that knows every concept's true accuracy reaches about 2r/(1+r) against all people, not its square."""
    design, coded, target_N = people
    half = split_half_consistency(design, coded, target_N, splits=30, seed=0)["accuracy"]
    rng = np.random.default_rng(0)
    truth_C = np.clip(np.repeat(rng.random(30), 4) * 0.7 + 0.08 * np.tile(np.arange(4), 30), 0, 1)
    everybody = cell_metrics(design, people_statistics(coded, target_N))["accuracy"]
    reached = alignment_r2(everybody, truth_C, design.condition_C)[0]
    assert half.spearman_brown == pytest.approx(reached, abs=0.03)
    assert half.mean < half.spearman_brown
    low_high = half.spearman_brown_interval()
    assert low_high.low <= half.spearman_brown <= low_high.high


def test_splits_have_addresses(people):
    design, coded, target_N = people
    whole = split_half_consistency(design, coded, target_N, splits=4, seed=1)
    part = split_half_consistency(design, coded, target_N, splits=2, seed=1, start=2)
    np.testing.assert_array_equal(part["entropy"].r2_S, whole["entropy"].r2_S[2:])
    assert generator(1, "split_half", 0).random() != generator(2, "split_half", 0).random()
    other = split_half_consistency(design, coded, target_N, splits=4, seed=2)
    assert (other["entropy"].r2_S != whole["entropy"].r2_S).all()


def test_switches_reach_the_halves(study):
    switches = PeopleSwitches("all_labels", "pooled", "chao_shen", "paper", "all", "one")
    a = split_half_consistency(study.design, study.coded, study.target_N, study.ranks_LL, switches, splits=2)
    b = split_half_consistency(study.design, study.coded, study.target_N, study.ranks_LL, splits=2)
    assert all((a[metric].r2_S != b[metric].r2_S).all() for metric in a)


def test_gap_equals_scipy_and_does_not_shrink_with_replicates():
    rng = np.random.default_rng(0)

    def gap(size):
        return gap_to_consistency(0.55, 0.5 + 0.02 * rng.normal(size=size), 0.8 + 0.01 * rng.normal(size=size))

    a, s = 0.5 + 0.02 * rng.normal(size=200), 0.8 + 0.01 * rng.normal(size=100)
    got = gap_to_consistency(0.55, np.append(a, np.nan), s)
    expected = scipy.stats.ttest_ind(s, a, equal_var=False)
    assert got.welch_t == pytest.approx(expected.statistic, rel=1e-12)
    assert got.welch_df == pytest.approx(expected.df, rel=1e-12)
    assert got.welch_p == pytest.approx(expected.pvalue, rel=1e-9)
    assert got.difference == pytest.approx(s.mean() - 0.55, abs=1e-12)
    assert got.interval.n_degenerate == 1
    half = 1.96 * np.hypot(s.std(), 0.55 / a.mean() * a.std())
    assert got.interval.high - got.interval.low == pytest.approx(2 * half, rel=0.1)
    few, many = gap(200), gap(1000)
    assert many.welch_t > 1.8 * few.welch_t
    width = [g.interval.high - g.interval.low for g in (few, many)]
    assert width[1] == pytest.approx(width[0], rel=0.2)


def test_degenerate_input():
    gap = gap_to_consistency(0.5, np.array([np.nan, 0.4]), np.array([0.8, 0.9]))
    assert np.isnan([gap.difference, gap.welch_t, gap.interval.low]).all()
    assert np.isnan(gap_to_consistency(0.5, np.array([0.5, 0.5]), np.array([0.5, 0.5])).welch_t)
    assert np.isnan(SplitHalf(np.array([np.nan]), np.array([-1.0])).spearman_brown)
    coded = CodedResponses(np.array([7, 7]), np.array([0, 0]), np.array([[0], [0]]))
    design = CellDesign.from_columns([0], ["a"], [4])
    with pytest.raises(ValueError, match="at least two participants, got 1"):
        split_half_consistency(design, coded, np.array([0]))
    two = CodedResponses(np.array([7, 8]), np.array([0, 0]), np.array([[0], [0]]))
    with pytest.raises(ValueError, match="splits must be at least 1"):
        split_half_consistency(design, two, np.array([0]), splits=0)
