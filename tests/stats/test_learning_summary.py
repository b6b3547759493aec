from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import permutation_test, spearmanr, ttest_ind

from humanlike.metrics.functional import MSEN_CONVENTIONS
from humanlike.stats.learning_individuals import better_than_model, individual_variation, participants
from humanlike.stats.learning_phases import (
    PHASES,
    PHASES_PAPER_TEXT,
    bootstrap_test,
    difficulty_quartile,
    phase_table,
)
from humanlike.stats.learning_resampling import PeopleReplicates, draw_sessions
from humanlike.stats.learning_summary import (
    consistency_ceiling,
    curve_summary,
    mean_by_group,
    random_guess_score,
    rank_correlation,
    resampled_accuracy,
    strong_baselines,
)

S, T, B = 8, 12, 60


@pytest.fixture(scope="module")
def published(shared_data):
    rows = (shared_data / "hobj_human" / "highvar_human_correct_counts.csv").read_text().splitlines()[1:]
    numbers = np.array([[int(v) for v in row.split(",")[-101:]] for row in rows])
    return numbers[:, 1:], numbers[:, 0]


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    p_ST = np.linspace(0.55, 0.9, S)[:, None] * np.ones(T)
    model = [rng.random((60, T)) < p - 0.05 for p in p_ST]
    people = [rng.random((20, T)) < p for p in p_ST]
    return model, people


def test_published_figures_of_people(published):
    k, n = published
    summary = curve_summary(k, n)
    assert summary.accuracy == pytest.approx(0.82, abs=0.006)
    assert summary.mean_curve_T[1] == pytest.approx(0.65, abs=0.005)
    assert summary.mean_curve_T[99] == pytest.approx(0.87, abs=0.005)
    assert summary.hardest_decile == pytest.approx(0.65, abs=0.01)
    assert (summary.examples_to_75, summary.examples_to_90_percent) == (4, 6)
    assert summary.mean_curve_T[PHASES["early"]].mean() == pytest.approx(0.7255, abs=5e-5)
    assert summary.mean_curve_T[PHASES_PAPER_TEXT["early"]].mean() == pytest.approx(0.670, abs=5e-4)
    assert summary.mean_curve_T[PHASES["late"]].mean() == pytest.approx(0.854, abs=5e-4)
    guess = random_guess_score(k, n, MSEN_CONVENTIONS["v2"])
    assert guess.value.item() == pytest.approx(0.1134, abs=0.0005)
    assert random_guess_score(k, n).value.item() == pytest.approx(((0.5 - k / n[:, None]) ** 2).mean(), abs=1e-15)


def test_published_curve_and_its_standard_error(published, shared_data):
    k, n = published
    table = np.genfromtxt(shared_data / "hobj_human" / "highvar_human_mean_curve.csv", delimiter=",", skip_header=1)
    np.testing.assert_allclose(curve_summary(k, n).mean_curve_T, table[:, 1], atol=2e-6)
    drawn = PeopleReplicates.from_counts(k, n, 400, 0).replicate_SBT / n[:, None, None]
    np.testing.assert_allclose(drawn.mean(axis=0).std(axis=0), table[:, 2], rtol=0.2)


def test_ceiling_of_consistency_from_published_counts(published):
    k, n = published
    first, second = (PeopleReplicates.from_counts(k, n, 300, 0, role) for role in ("people", "again"))
    ceiling = consistency_ceiling(first, second)
    assert ceiling.mean == pytest.approx(0.988, abs=0.002)
    assert ceiling.range.low < ceiling.mean < ceiling.range.high <= 1
    assert ceiling.flags == ("within_session_correlation_ignored",)
    with pytest.raises(ValueError, match="same draws"):
        consistency_ceiling(first, first)


def test_rank_correlation_is_that_of_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, size=(2, 5, 20))
    expected = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(rank_correlation(a, b), expected, atol=1e-14)
    assert np.isnan(rank_correlation(np.ones(4), np.arange(4)))


def test_strong_baselines_are_the_lowest_scores():
    assert strong_baselines(np.array([0.3, 0.1, np.nan, 0.2, 0.1]), 0.5).tolist() == [1, 4, 3]
    assert len(strong_baselines(np.arange(2408.0))) == 25
    with pytest.raises(ValueError, match="share"):
        strong_baselines(np.arange(3.0), 0)


def test_mean_by_transformation():
    drawn = np.random.default_rng(0).normal([0.9, 0.7, 0.5], 0.01, size=(4000, 3))
    means = mean_by_group(np.array([0.9, 0.7, 0.5]), drawn, np.array(["blur", "blur", "noise"]))
    assert list(means) == ["blur", "noise"]
    value, interval = means["blur"]
    assert value == pytest.approx(0.8)
    assert interval.high - value == pytest.approx(1.96 * 0.01 / np.sqrt(2), rel=0.1)


def test_difficulty_quartiles_are_equal_and_ordered():
    accuracy = np.random.default_rng(0).random(64)
    quartile = difficulty_quartile(accuracy)
    assert np.bincount(quartile).tolist() == [0, 16, 16, 16, 16]
    assert all(accuracy[quartile == q].min() > accuracy[quartile == q + 1].max() for q in (1, 2, 3))


def test_phases_match_resampled_sessions(sides):
    model, people_sessions = sides
    people = PeopleReplicates.from_sessions(people_sessions, B, 0)
    draws = draw_sessions(np.array([60] * S), B, 0, "model")
    table = phase_table(model, draws, people, {"early": slice(1, 4), "all": slice(None)})
    assert table["quartile"].tolist() == [0, 1, 2, 3, 4] * 2
    early = table[(table["phase"] == "early") & (table["quartile"] == 0)].iloc[0]
    assert early["model"] == pytest.approx(np.mean([t[:, 1:4].mean() for t in model]))
    assert early["people"] == pytest.approx(np.mean([t[:, 1:4].mean() for t in people_sessions]))
    drawn = [
        np.mean([t[np.repeat(np.arange(60), w[b])][:, 1:4].mean() for t, w in zip(model, draws.times, strict=True)])
        - people.replicate_SBT[:, b, 1:4].mean() / 20
        for b in range(B)
    ]
    difference = early["model"] - early["people"]
    assert early["difference"] == pytest.approx(difference)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert early["difference_low"] == pytest.approx(difference - (high - np.mean(drawn)))
    assert early["difference_high"] == pytest.approx(difference + (np.mean(drawn) - low))
    deviation = np.array(drawn) - difference
    assert early["p_below"] == (1 + (deviation <= difference).sum()) / (B + 1)
    np.testing.assert_allclose(resampled_accuracy(people), people.replicate_SBT.mean(axis=2).T / 20)
    whole = table[(table["phase"] == "all") & (table["quartile"] == 0)].iloc[0]
    assert whole["p_below"] < 0.05


def test_bootstrap_test_is_uniform_under_no_difference():
    rng = np.random.default_rng(0)
    d = rng.normal(size=2000)
    p = np.array([bootstrap_test(x, rng.normal(x, 1, size=199))["p_below"] for x in d])
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert p.mean() == pytest.approx(0.5, abs=0.03)


def test_refusals_of_phases(sides):
    model, people_sessions = sides
    people = PeopleReplicates.from_sessions(people_sessions, B, 0)
    draws = draw_sessions(np.array([60] * S), B, 0, "model")
    with pytest.raises(ValueError, match="'late'"):
        phase_table(model, draws, people)
    with pytest.raises(ValueError, match="subtasks"):
        phase_table(model[:2], draws, people)


def test_permutation_test_agrees_with_scipy():
    rng = np.random.default_rng(0)
    accuracy = rng.normal(0.8, 0.05, size=(3, 4)) + np.array([0.03, 0.0, -0.02])[:, None]
    ours = individual_variation(accuracy, 20_000)
    assert ours.variance == pytest.approx(np.var(accuracy.mean(axis=1), ddof=1))
    subtasks = tuple(accuracy.T)

    def variance(*columns, axis=0):
        return np.mean(columns, axis=0).var(axis=axis, ddof=1)

    reference = permutation_test(
        subtasks, variance, permutation_type="pairings", alternative="greater", n_resamples=20_000, rng=0
    )
    assert ours.p_value == pytest.approx(reference.pvalue, abs=0.015)


def test_permutation_test_finds_people_who_differ_and_counts_ties():
    rng = np.random.default_rng(0)
    better = rng.normal(0.8, 0.05, size=(22, 64)) + np.linspace(-0.05, 0.05, 22)[:, None]
    assert individual_variation(better, 2000).p_value == 1 / 2001
    assert individual_variation(np.full((3, 5), 0.8), 50).p_value == 1.0
    for bad in (np.ones((1, 3)), np.array([[1.0, np.nan], [0.5, 0.5]])):
        with pytest.raises(ValueError, match="at least two participants"):
            individual_variation(bad)


def test_participants_are_gathered_and_compared_with_a_model():
    rng = np.random.default_rng(0)
    who, subtask = (x.ravel() for x in np.meshgrid(["b", "a", "c"], np.arange(16), indexing="ij"))
    skill = np.where(who == "a", 0.95, 0.7)
    correct = (rng.random((48, 100)) < skill[:, None]).astype(np.int8)
    keep = ~((who == "c") & (subtask == 3))
    people = participants(correct[keep], subtask[keep], who[keep], 16)
    assert people.name_P.tolist() == ["a", "b", "c"]
    assert np.isnan(people.accuracy_PS[2, 3])
    assert people.accuracy_PS[1, 5] == correct[(who == "b") & (subtask == 5)].mean()
    assert people.complete.name_P.tolist() == ["a", "b"]
    model = rng.normal(0.85, 0.03, size=16)
    table = better_than_model(people.complete, model)
    assert table["better"].tolist() == [True, False]
    for row, accuracy in zip(table.itertuples(), people.complete.accuracy_PS, strict=True):
        expected = ttest_ind(accuracy, model, equal_var=False, alternative="greater")
        assert row.p_value == pytest.approx(expected.pvalue)
        assert row.p_bonferroni == pytest.approx(min(1, 2 * expected.pvalue))
    with pytest.raises(ValueError, match="each of the model's subtasks"):
        better_than_model(people, model)
    with pytest.raises(ValueError, match="'b' did subtask 0 2 times"):
        participants(correct[[0, 0]], subtask[[0, 0]], who[[0, 0]], 16)
    with pytest.raises(ValueError, match="0 or 1"):
        participants(-correct, subtask, who, 16)
