from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from humanlike.stats.learning_one_shot import OneShotPeople, one_shot_null, one_shot_score
from humanlike.stats.learning_one_shot_counts import (
    ONE_SHOT_CONVENTIONS,
    OneShotCounts,
    OneShotSwitches,
    corrected_accuracy,
)

C, T = 4, 20
CATCH = (9, 14, 19)
P = np.array([0.97, 0.9, 0.75, 0.6])


def sessions(rng, n, p_C=P, lapse=0.0):
    """Choices and conditions of n sessions: ten support trials, then test trials but for the catch trials."""
    condition = np.full((n, T), -1)
    tested = [t for t in range(10, T) if t not in CATCH]
    condition[:, tested] = rng.integers(-1, C, size=(n, len(tested)))
    right = rng.random((n, T)) < np.where(condition >= 0, p_C[condition], 1.0)
    coin = rng.random((n, T)) < 0.5
    correct = np.where(rng.random((n, T)) < lapse, coin, right)
    correct[:, :9] = coin[:, :9]
    return correct.astype(np.int8), condition


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    correct, condition = sessions(rng, 120, lapse=0.1)
    worker = np.array([f"w{i}" for i in rng.integers(0, 15, size=120)])
    return correct, condition, worker, np.arange(120) % 6


def brute(correct, condition, catch_trials, catch_rows=None, clip=False):
    """Corrected accuracies and variances by explicit loops."""
    rows = range(len(correct)) if catch_rows is None else catch_rows
    caught = [correct[i, t] for i in rows for t in catch_trials]
    gamma = 2 - 2 * sum(map(int, caught)) / len(caught)
    p, variance = [], []
    for c in range(C):
        right = [int(x) for x in correct[condition == c]]
        share = sum(right) / len(right)
        value = (share - gamma / 2) / (1 - gamma)
        p.append(min(1, max(0, value)) if clip else value)
        variance.append(share * (1 - share) / (len(right) - 1) / (1 - gamma) ** 2)
    return np.array(p), np.array(variance), gamma


@pytest.mark.parametrize("convention", ["paper", "v2", "paper_text", "compat"])
def test_point_estimates_match_explicit_loops(data, convention):
    correct, condition, worker, subtask = data
    compat = OneShotSwitches(CATCH, True, "workers", "analytic", True, compat=True)
    switches = ONE_SHOT_CONVENTIONS.get(convention, compat)
    counts = OneShotCounts.from_trials(correct, condition, switches.catch_trials, C)
    people = OneShotPeople.from_sessions(counts, worker, subtask, switches, 200, 0)
    last = list({w: i for i, w in enumerate(worker)}.values()) if switches.compat else None
    p, variance, gamma = brute(correct, condition, switches.catch_trials, last, switches.clip)
    np.testing.assert_allclose(people.p_C, p, atol=1e-14)
    assert people.lapse_rate == pytest.approx(gamma, abs=1e-14)
    if switches.human_variance == "analytic":
        np.testing.assert_allclose(people.variance_C, variance, atol=1e-15)
    else:
        np.testing.assert_allclose(people.variance_C, people.replicate_BC.var(axis=0, ddof=1), atol=1e-15)
        assert (people.variance_C / variance < 4).all()
        assert (people.variance_C / variance > 0.5).all()
    assert people.noise_floor == pytest.approx(people.variance_C.mean())
    assert people.flags == (("catch_rate_of_last_sessions_only",) if switches.compat else ())


def test_resamples_of_workers_take_all_their_sessions(data):
    """With one session a worker, resampling workers or sessions is the same experiment; few workers vary more."""
    correct, condition, _, _ = data
    counts = OneShotCounts.from_trials(correct, condition, CATCH, C)
    strata, alone = np.zeros(120, dtype=int), np.array([f"{i:03d}" for i in range(120)])

    def spread(worker, resampling):
        switches = OneShotSwitches(CATCH, False, resampling)
        return OneShotPeople.from_sessions(counts, worker, strata, switches, 2000, 0).variance_C

    session = spread(alone, "sessions")
    np.testing.assert_allclose(spread(alone, "workers"), session, rtol=0.2)
    np.testing.assert_allclose(spread(alone, "worker_then_session"), session, rtol=0.2)
    by_quality = np.argsort(np.argsort(correct[:, 10:].sum(axis=1), kind="stable")) // 20
    assert (spread(by_quality.astype(str), "workers")[2:] > 1.5 * session[2:]).all()
    # a worker with one session and one with 119 are drawn equally often
    uneven = np.array(["a"] + ["b"] * 119)
    switches = OneShotSwitches(CATCH, False, "worker_then_session")
    drawn = OneShotPeople.from_sessions(counts, uneven, strata, switches, 500, 0).replicate_BC.mean(axis=0)
    weight = np.array([0.5] + [0.5 / 119] * 119)
    k_C, n_C = weight @ counts.k_NC, weight @ counts.n_NC
    p_catch = weight @ counts.catch_k_N / (weight @ counts.catch_n_N)
    np.testing.assert_allclose(drawn, corrected_accuracy(k_C / n_C, p_catch), atol=0.02)


def test_the_model_is_scored_as_its_definition_says(data):
    correct, condition, worker, subtask = data
    rng = np.random.default_rng(1)
    model_correct, model_condition = sessions(rng, 300, P - 0.05)
    model = OneShotCounts.from_trials(model_correct, model_condition, CATCH, C)
    for name, switches in ONE_SHOT_CONVENTIONS.items():
        counts = OneShotCounts.from_trials(correct, condition, switches.catch_trials, C)
        people = OneShotPeople.from_sessions(counts, worker, subtask, switches, 100, 0)
        result = one_shot_score(model, people, subtract_human_noise=switches.subtract_human_noise)
        m = np.array([model_correct[model_condition == c].mean() for c in range(C)])
        n = np.array([(model_condition == c).sum() for c in range(C)])
        expected = ((m - people.p_C) ** 2).mean() - (m * (1 - m) / (n - 1)).mean()
        expected -= people.variance_C.mean() if switches.subtract_human_noise else 0
        assert result.score.value.item() == pytest.approx(expected, abs=1e-14), name
        assert result.score.lapse_rate == 0
        np.testing.assert_allclose(result.p_C, m, atol=1e-15)
        assert result.interval.low < result.interval.high
        assert all(i.low <= p <= i.high for i, p in zip(result.condition_intervals, m, strict=True))


def test_replicates_are_scores_of_the_drawn_sessions():
    """Model of identical sessions within each stratum: every resample within strata is the full sample."""
    rng = np.random.default_rng(3)
    correct, condition = sessions(rng, 4)
    model = OneShotCounts.from_trials(np.repeat(correct, 5, axis=0), np.repeat(condition, 5, axis=0), CATCH, C)
    people = OneShotPeople.from_estimates(P, np.zeros(C), 50, 0)
    within = one_shot_score(model, people, stratum_N=np.repeat(np.arange(4), 5))
    np.testing.assert_allclose(within.replicates_B, within.score.value.item(), atol=1e-15)
    assert one_shot_score(model, people).replicates_B.std() > 0


def test_published_estimates_are_normal_and_flagged():
    se = np.array([0.01, 0.02, 0.03, 0.0])
    people = OneShotPeople.from_estimates(P, se, 4000, 0)
    assert people.flags == ("published_standard_errors",)
    assert people.noise_floor == pytest.approx((se**2).mean())
    for interval, p, s in zip(people.intervals(), P, se, strict=True):
        assert interval.low == pytest.approx(norm.ppf(0.025, p, s) if s else p, abs=0.1 * s + 1e-12)
        assert interval.high == pytest.approx(norm.ppf(0.975, p, s) if s else p, abs=0.1 * s + 1e-12)


def test_correction_recovers_what_people_without_lapses_would_do():
    rng = np.random.default_rng(5)
    correct, condition = sessions(rng, 20_000, lapse=0.2)
    counts = OneShotCounts.from_trials(correct, condition, CATCH, C)
    ids = np.arange(20_000)
    people = OneShotPeople.from_sessions(counts, ids, ids % 6, ONE_SHOT_CONVENTIONS["v2"], 2, 0)
    assert people.lapse_rate == pytest.approx(0.2, abs=0.01)
    np.testing.assert_allclose(people.p_C, P, atol=0.02)
    np.testing.assert_allclose(corrected_accuracy(0.8 * P + 0.1, 0.9), P, atol=1e-14)


def test_null_is_centred_and_a_poor_model_lies_outside(data):
    correct, condition, worker, subtask = data
    counts = OneShotCounts.from_trials(correct, condition, (14, 19), C)
    people = OneShotPeople.from_sessions(counts, worker, subtask, ONE_SHOT_CONVENTIONS["paper"], 400, 0)
    null = one_shot_null(counts, people, 600)
    assert null.shape == (400,)
    assert abs(null.mean()) < 1e-15
    model = OneShotCounts.from_trials(*sessions(np.random.default_rng(1), 600, np.full(C, 0.5)), CATCH, C)
    assert one_shot_score(model, people, subtract_human_noise=True).score.value.item() > null.max()


def test_resamples_that_cannot_be_corrected_are_counted():
    rng = np.random.default_rng(2)
    correct, condition = sessions(rng, 12)
    condition[:, 10:14] = np.arange(4)  # every condition is there
    correct[:, list(CATCH)] = np.arange(12)[:, None] < 7
    counts = OneShotCounts.from_trials(correct, condition, CATCH, C)
    ids = np.arange(12)
    people = OneShotPeople.from_sessions(counts, ids, ids, ONE_SHOT_CONVENTIONS["v2"], 200, 0)
    assert people.intervals()[0].n_degenerate == np.isnan(people.replicate_BC[:, 0]).sum() > 0


@pytest.mark.parametrize("p_catch", [0.5, 0.3, 1.01, np.nan])
def test_correction_needs_people_better_than_chance_on_catch_trials(p_catch, data):
    with pytest.raises(ValueError, match="above ½"):
        corrected_accuracy(P, p_catch)
    correct, condition, worker, subtask = data
    correct[:60, [14, 19]] = 0
    correct[60:, [14, 19]] = 1
    counts = OneShotCounts.from_trials(correct, condition, (14, 19), C)
    with pytest.raises(ValueError, match="half of the catch trials"):
        OneShotPeople.from_sessions(counts, worker, subtask, ONE_SHOT_CONVENTIONS["paper"], 10, 0)


def test_refusals(data):
    correct, condition, worker, subtask = data
    for arguments, sentence in (
        ((correct, condition[:, :5], CATCH, C), "equal"),
        ((correct, condition, CATCH, 3), "conditions must lie"),
        ((correct + 1, condition, CATCH, C), "choices must be"),
        ((correct, condition, (20,), C), "0-based"),
        ((correct, np.zeros_like(condition), CATCH, C), "session 0 shows a transformed image"),
    ):
        with pytest.raises(ValueError, match=sentence):
            OneShotCounts.from_trials(*arguments)
    counts = OneShotCounts.from_trials(correct, condition, CATCH, C + 1)
    with pytest.raises(ValueError, match="condition 4 has 0 trials of people"):
        OneShotPeople.from_sessions(counts, worker, subtask, ONE_SHOT_CONVENTIONS["v2"], 10, 0)
    with pytest.raises(ValueError, match="condition 4 has 0 trials of the model"):
        one_shot_score(counts, OneShotPeople.from_estimates(np.ones(C + 1), np.ones(C + 1), 5, 0))
    with pytest.raises(ValueError, match="5 conditions, people 4"):
        one_shot_score(counts, OneShotPeople.from_estimates(P, P, 5, 0))
    with pytest.raises(ValueError, match="as many workers"):
        OneShotPeople.from_sessions(counts, worker[:3], subtask, ONE_SHOT_CONVENTIONS["v2"], 10, 0)
    with pytest.raises(ValueError, match="finite numbers"):
        OneShotPeople.from_estimates(P, -P, 5, 0)
    with pytest.raises(ValueError, match="people_resampling must be one of"):
        OneShotSwitches(people_resampling="all")
    with pytest.raises(ValueError, match="compat repeats a fault"):
        OneShotSwitches(compat=True)
