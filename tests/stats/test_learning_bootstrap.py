from __future__ import annotations

import numpy as np
import pytest

from humanlike.metrics.functional import MSEN_CONVENTIONS, msen
from humanlike.rng import generator
from humanlike.stats.learning_bootstrap import bootstrap_sums, interval_of_msen
from humanlike.stats.learning_null import null_distribution, p_value
from humanlike.stats.learning_resampling import (
    WITHIN_SESSION_CORRELATION_IGNORED,
    PeopleReplicates,
    draw_sessions,
    sessions_by_subtask,
)
from humanlike.stats.packed_counts import PackedColumns, resampled_counts

S, T, B = 3, 8, 30


def curves(rng):
    return np.clip(0.5 + rng.uniform(0.1, 0.45, size=(S, 1)) * (1 - np.exp(-np.arange(T) / 2)), 0, 1)


def simulate(rng, p_ST, n):
    return [rng.random((n, T)) < p for p in p_ST]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p_ST = curves(rng)
    model = [np.stack([a, b]) for a, b in zip(simulate(rng, p_ST, 40), simulate(rng, p_ST * 0.9, 40), strict=True)]
    return model, simulate(rng, p_ST, 12)


def drawn(table, times):
    """Sessions written out as often as they were drawn."""
    return table[np.repeat(np.arange(len(table)), times)]


def test_draws_are_uniform_addressed_and_a_prefix_of_longer_ones():
    draws = draw_sessions(np.array([7, 300]), 400, 1, "model")
    for times, n in zip(draws.times, (7, 300), strict=True):
        assert times.dtype == np.uint8
        assert (times.sum(axis=1, dtype=int) == n).all()
        total = times.sum(axis=0, dtype=int)  # 400 n draws over n sessions: mean 400, s.d. below 20
        assert np.abs(total - 400).max() < 100
        assert abs(times.var() - (1 - 1 / n)) < 0.05
    assert (draw_sessions(np.array([7, 300]), 20, 1, "model").times[1] == draws.times[1][:20]).all()
    assert (draw_sessions(np.array([7, 300]), 20, 1, "people").times[1] != draws.times[1][:20]).any()
    assert (draw_sessions(np.array([300, 300]), 20, 1, "model").times[0] != draws.times[1][:20]).any()


def test_many_draws_of_few_sessions_do_not_overflow():
    draws = draw_sessions(np.array([2]), 10, 0, draws_S=np.array([5000]))
    assert (draws.times[0].sum(axis=1, dtype=int) == 5000).all()
    assert draws.times[0].max() > 255


@pytest.mark.parametrize(("size", "drawn"), [(1, 4), (2, 5), (50, 50), (500, 500), (40_000, 300), (70_000, 90)])
def test_draws_are_those_of_numpys_integers(size, drawn):
    (times,) = draw_sessions(np.array([size]), 30, 7, "model", draws_S=np.array([drawn])).times
    random = generator(7, "learning", "sessions", "model", 0)
    index_type = np.uint16 if size < 65_536 else np.uint32
    index_BD = random.integers(0, size, size=(30, drawn), dtype=index_type)
    np.testing.assert_array_equal(times, [np.bincount(row, minlength=size) for row in index_BD])


@pytest.mark.parametrize(("largest", "sign", "parts"), [(1, 1, 4), (1, -1, 1), (3, 1, 3), (5000, 1, 1)])
def test_columns_that_share_a_number_are_exact(largest, sign, parts):
    rng = np.random.default_rng(largest)
    times_BN = rng.multinomial(63, np.full(63, 1 / 63), size=600)
    for columns in (1, 5, 7, 100):
        values_NM = rng.integers(min(0, sign * largest), largest + 1, size=(63, columns))
        values_NM[0] = largest
        packed = PackedColumns.pack(values_NM, 63)
        assert packed.parts == min(parts, columns)
        np.testing.assert_array_equal(resampled_counts(times_BN, values_NM), times_BN @ values_NM)


def test_products_are_exact_counts(data):
    _, people = data
    draws = draw_sessions(np.array([12] * S), B, 0, "people")
    for times, table in zip(draws.times, people, strict=True):
        expected = [drawn(table, w).sum(axis=0) for w in times]
        np.testing.assert_array_equal(resampled_counts(times, table), expected)
    with pytest.raises(ValueError, match="2²⁴"):
        resampled_counts(np.full((1, 2), 200, dtype=np.uint8), np.full((2, 1), 1 << 20))


@pytest.mark.parametrize("convention", list(MSEN_CONVENTIONS))
def test_every_replicate_is_the_score_of_its_resampled_sessions(data, convention):
    model, sessions = data
    people = PeopleReplicates.from_sessions(sessions, B, 5)
    times_people = draw_sessions(np.array([12] * S), B, 5, "people").times
    draws = draw_sessions(np.array([40] * S), B, 5, "model")
    sums = bootstrap_sums(model, people, draws)
    estimates = interval_of_msen(sums, MSEN_CONVENTIONS[convention])
    switches = vars(MSEN_CONVENTIONS[convention])
    for r, estimate in enumerate(estimates):
        k_model = np.stack([t[r].sum(axis=0) for t in model])
        k_people = np.stack([t.sum(axis=0) for t in sessions])
        full = msen(k_model, 40, k_people, 12, **switches)
        for name in ("value", "lapse_rate", "noise_floor", "model_noise"):
            assert getattr(estimate.score, name).item() == pytest.approx(getattr(full, name).item(), abs=1e-15)
        for b in range(B):
            k_m = np.stack([drawn(t[r], w[b]).sum(axis=0) for t, w in zip(model, draws.times, strict=True)])
            k_p = np.stack([drawn(t, w[b]).sum(axis=0) for t, w in zip(sessions, times_people, strict=True)])
            one = msen(k_m, 40, k_p, 12, **switches)
            assert estimate.replicates_B[b] == pytest.approx(one.value.item(), abs=1e-12)
        low, high = np.quantile(estimate.replicates_B, [0.025, 0.975])
        mean = estimate.replicates_B.mean()
        assert estimate.interval.low == pytest.approx(full.value.item() - (high - mean), abs=1e-12)
        assert estimate.interval.high == pytest.approx(full.value.item() + (mean - low), abs=1e-12)
        assert 0 <= estimate.lapse_interval.low <= estimate.lapse_interval.high <= 1
        assert estimate.diagnostic.kind == "percentile"
    assert sums.flags == ()


def test_standard_error_of_peoples_mean_curve_is_that_of_the_replicates(data):
    uneven = [table[: 12 - s] for s, table in enumerate(data[1])]
    people = PeopleReplicates.from_sessions(uneven, B, 0)
    share_SBT = np.stack([drawn / len(table) for drawn, table in zip(people.replicate_SBT, uneven, strict=True)])
    np.testing.assert_allclose(people.curve_std_error_T, np.std(share_SBT.mean(axis=0), axis=0, ddof=1), atol=1e-15)


def test_models_share_draws_and_do_not_depend_on_company(data):
    model, sessions = data
    people = PeopleReplicates.from_sessions(sessions, B, 5)
    together = interval_of_msen(bootstrap_sums(model, people, seed=3))
    alone = interval_of_msen(bootstrap_sums([t[1] for t in model], people, seed=3))
    np.testing.assert_array_equal(together[1].replicates_B, alone[0].replicates_B)


def test_subtasks_may_differ_in_sessions(data):
    model, sessions = data
    uneven_model = [t[:1, : 40 - 7 * s] for s, t in enumerate(model)]
    uneven = [t[: 12 - s] for s, t in enumerate(sessions)]
    people = PeopleReplicates.from_sessions(uneven, B, 0)
    estimate = interval_of_msen(bootstrap_sums(uneven_model, people))[0]
    k_model, k_people = (np.stack([t.reshape(-1, T).sum(axis=0) for t in x]) for x in (uneven_model, uneven))
    expected = msen(k_model, np.array([40, 33, 26]), k_people, np.array([12, 11, 10]))
    assert estimate.score.value.item() == pytest.approx(expected.value.item(), abs=1e-15)


def test_counts_without_sessions_are_binomial_and_flagged(data):
    model, _ = data
    k_ST, n_S = np.tile(np.arange(2, 2 + T), (S, 1)), np.array([12] * S)
    people = PeopleReplicates.from_counts(k_ST, n_S, 3000, 0)
    assert bootstrap_sums(model, PeopleReplicates.from_counts(k_ST, n_S, B, 0)).flags == (
        WITHIN_SESSION_CORRELATION_IGNORED,
    )
    p = k_ST / 12
    np.testing.assert_allclose(people.replicate_SBT.mean(axis=1), k_ST, atol=0.2)
    np.testing.assert_allclose(people.replicate_SBT.var(axis=1), 12 * p * (1 - p), rtol=0.15)


def test_sessions_are_sorted_by_subtask():
    correct = np.arange(6)[:, None] % 2 == np.arange(3) % 2
    tables = sessions_by_subtask(correct.astype(np.int8), np.array([1, 0, 1, 0, 1, 0]), 2)
    np.testing.assert_array_equal(tables[0], correct[[1, 3, 5]])
    np.testing.assert_array_equal(tables[1], correct[[0, 2, 4]])


@pytest.mark.parametrize(
    ("correct", "subtask", "sentence"),
    [
        ([[0, 1], [1, -1]], [0, 0], "session 1, trial 1 is -1"),
        ([[0, 1], [1, 1]], [0, 1], "subtask 0 has 1 sessions"),
        ([[0, 1], [1, 1]], [0, 2], "must lie in"),
        ([[0, 1], [1, 1]], [0], "one subtask a session"),
    ],
)
def test_refusals_of_sessions(correct, subtask, sentence):
    with pytest.raises(ValueError, match=sentence):
        sessions_by_subtask(np.array(correct), np.array(subtask), 2)


def test_refusals_of_the_bootstrap(data):
    model, sessions = data
    people = PeopleReplicates.from_sessions(sessions, B, 0)
    with pytest.raises(ValueError, match="sessions of 2 subtasks, people of 3"):
        bootstrap_sums(model[:2], people)
    with pytest.raises(ValueError, match="subtask 1: choices must have shape"):
        bootstrap_sums([model[0], model[1][..., :4], model[2]], people)
    with pytest.raises(ValueError, match="at least 2 are needed"):
        bootstrap_sums([t[:, :1] for t in model], people)
    with pytest.raises(ValueError, match="draws must hold"):
        bootstrap_sums(model, people, draw_sessions(np.array([40] * S), B + 1, 0))
    for k, n, sentence in (
        ([[3]], [2], "3 correct choices of 2"),
        ([[1]], [1], "at least 2"),
        ([[1]], [2, 2], "one n"),
    ):
        with pytest.raises(ValueError, match=sentence):
            PeopleReplicates.from_counts(np.array(k), np.array(n), B, 0)


def test_null_replicates_are_scores_of_resampled_people(data):
    _, sessions = data
    people = PeopleReplicates.from_sessions(sessions, B, 2)
    null = null_distribution(people, np.array([100] * S), sessions=sessions, seed=2)
    draws = draw_sessions(np.array([12] * S), B, 2, "null", draws_S=np.array([100] * S))
    values = null.values_B("refitted")
    bare = []
    for b in range(B):
        k_model = np.stack([drawn(t, w[b]).sum(axis=0) for t, w in zip(sessions, draws.times, strict=True)])
        counts = k_model, 100, people.replicate_SBT[:, b], 12
        assert values[b] == pytest.approx(msen(*counts, subtract_human_noise=True).value.item(), abs=1e-12)
        bare.append(msen(*counts, fit_lapse=False, subtract_human_noise=True).value.item())
    np.testing.assert_allclose(null.values_B("paper"), np.array(bare) - np.mean(bare), atol=1e-12)
    np.testing.assert_allclose(null.values_B("refitted", fit_lapse=False), bare, atol=1e-12)
    full = msen(people.k_ST, 12, people.k_ST, 12)
    assert null.noise_floor == pytest.approx(full.noise_floor.item(), abs=1e-15)
    assert null.flags == ("null_test_conservative",)


def test_null_mean_is_zero_with_sessions_and_with_counts():
    rng = np.random.default_rng(1)
    sessions = simulate(rng, curves(rng), 50)
    people = PeopleReplicates.from_sessions(sessions, 2000, 0)
    counts = PeopleReplicates.from_counts(people.k_ST, people.n_S, 2000, 0)
    for null in (null_distribution(people, 500, sessions=sessions), null_distribution(counts, 500)):
        values = null.values_B("refitted", fit_lapse=False)
        assert abs(values.mean()) < 4 * values.std() / np.sqrt(2000)
    assert null.flags == (WITHIN_SESSION_CORRELATION_IGNORED,)


def test_p_value_counts_the_observation_itself():
    assert p_value(np.arange(999.0), 1e9) == 1 / 1000
    assert p_value(np.arange(999.0), -1.0) == 1.0
    assert np.isnan(p_value(np.arange(3.0), np.nan))


def test_refusals_of_the_null_test(data):
    _, sessions = data
    people = PeopleReplicates.from_sessions(sessions, B, 2)
    with pytest.raises(ValueError, match="at least 2 simulations"):
        null_distribution(people, 1)
    with pytest.raises(ValueError, match="counts were made from"):
        null_distribution(people, 10, sessions=[~t for t in sessions])
    with pytest.raises(ValueError, match="convention"):
        null_distribution(people, 10).values_B("v2")


@pytest.mark.slow
def test_basic_interval_covers_and_the_percentile_interval_does_not():
    """Model and people differ; the truth is the expected MSE of their curves, without a lapse."""
    rng = np.random.default_rng(7)
    p_ST, q_ST = rng.uniform(0.5, 0.9, size=(2, 12, 20))
    q_ST = 0.8 * p_ST + 0.2 * q_ST
    truth = ((p_ST - q_ST) ** 2).mean()
    inside = {"basic": 0, "percentile": 0, "null": 0}
    runs = 150
    for seed in range(runs):
        sessions = [rng.random((50, 20)) < p for p in p_ST]
        people = PeopleReplicates.from_sessions(sessions, 400, seed)
        sums = bootstrap_sums([rng.random((200, 20)) < q for q in q_ST], people, seed=seed)
        estimate = interval_of_msen(sums, MSEN_CONVENTIONS["v2"], fit_lapse=False)[0]
        inside["basic"] += estimate.interval.low <= truth <= estimate.interval.high
        inside["percentile"] += estimate.diagnostic.low <= truth <= estimate.diagnostic.high
        # a perfect model is rejected in at most about 5% of experiments
        perfect = bootstrap_sums([rng.random((200, 20)) < p for p in p_ST], people, seed=seed)
        observed = interval_of_msen(perfect, MSEN_CONVENTIONS["v2"])[0].score.value.item()
        null = null_distribution(people, 200, sessions=sessions, seed=seed)
        inside["null"] += p_value(null.values_B("refitted"), observed) > 0.05
    assert inside["basic"] >= 0.90 * runs
    assert inside["percentile"] <= 0.3 * runs
    assert inside["null"] >= 0.90 * runs
