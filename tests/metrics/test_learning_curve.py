from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.metrics import LearningCurve
from humanlike.metrics.functional import MSEN_CONVENTIONS, binomial_variance, msen

S, T, N = 4, 6, 60


@pytest.fixture
def sessions():
    g = torch.Generator().manual_seed(0)
    correct = torch.rand(N, T, generator=g) < torch.linspace(0.5, 0.95, T)
    subtask = torch.arange(N) % S
    return correct, subtask[torch.randperm(N, generator=g)]


@pytest.fixture
def people():
    return {"human_k": torch.arange(S * T).reshape(S, T) % 9, "human_n": torch.tensor([9, 9, 10, 8])}


def filled(sessions, batch_size=N, order=slice(None), **settings):
    metric = LearningCurve(S, T, **settings)
    for start in range(0, N, batch_size):
        batch = torch.arange(N)[order][start : start + batch_size]
        metric.update(sessions[0][batch], sessions[1][batch])
    return metric


def same(a, b):
    return all(torch.equal(a[name].nan_to_num(-1), b[name].nan_to_num(-1)) for name in a) and list(a) == list(b)


def test_values_are_those_of_numpy_and_of_the_functions(sessions, people):
    value = filled(sessions, **people).compute()
    correct, subtask = (x.numpy() for x in sessions)
    k = np.stack([correct[subtask == s].sum(axis=0) for s in range(S)])
    n = np.bincount(subtask)
    np.testing.assert_array_equal(value["p_hat"], k / n[:, None])
    np.testing.assert_array_equal(value["var_p_hat"], binomial_variance(k, n))
    np.testing.assert_allclose(value["mean_curve"], (k / n[:, None]).mean(axis=0), atol=1e-15)
    assert value["accuracy"].item() == pytest.approx((k / n[:, None]).mean(), abs=1e-15)
    for key, name in (("msen", "paper"), ("msen_v2", "v2"), ("msen_paper_text", "paper_text")):
        switches = MSEN_CONVENTIONS[name]
        expected = msen(k, n, people["human_k"], people["human_n"], **vars(switches))
        assert torch.equal(value[key], expected.value)
    expected = msen(k, n, people["human_k"], people["human_n"])
    assert torch.equal(value["lapse_rate"], expected.lapse_rate)
    assert torch.equal(value["noise_floor"], expected.noise_floor)


@pytest.mark.parametrize("batch_size", [1, 7, N])
def test_batches_order_and_dtype_do_not_matter(sessions, people, batch_size):
    expected = filled(sessions, **people).compute()
    for order in (slice(None), torch.arange(N).flip(0)):
        assert same(filled(sessions, batch_size, order, **people).compute(), expected)
    as_numbers = (sessions[0].to(torch.uint8), sessions[1].int())
    assert same(filled(as_numbers, batch_size, **people).compute(), expected)


def test_states_are_whole_numbers_and_sums(sessions, people):
    metric = filled(sessions, **people)
    assert all(state.dtype == torch.int64 for state in metric.metric_state.values())
    assert metric.num_rows == N
    assert {"k", "n"} < set(metric.metric_state)


def test_what_is_missing_is_nan():
    metric = LearningCurve(3, 2, human_k=torch.ones(3, 2, dtype=torch.int64), human_n=4)
    assert all(v.isnan().all() for name, v in metric.compute().items() if name != "noise_floor")
    assert metric.compute()["noise_floor"].item() == pytest.approx(0.25 * 0.75 / 3)
    metric.update(torch.tensor([[0, 1], [1, 1], [0, 1]]), torch.tensor([0, 0, 1]))
    value = metric.compute()
    np.testing.assert_array_equal(value["p_hat"], [[0.5, 1], [0, 1], [np.nan, np.nan]])
    np.testing.assert_array_equal(value["var_p_hat"], [[0.25, 0], [np.nan, np.nan], [np.nan, np.nan]])
    assert value["msen"].isnan()
    assert metric.empty_cells == [2]
    assert "num_subtasks=3, num_trials=2, 1 empty subtasks [2]" in repr(metric)
    metric.reset()
    assert metric.empty_cells == [0, 1, 2]


def test_without_people_there_are_curves_but_no_scores(sessions):
    value = filled(sessions).compute()
    assert not value["p_hat"].isnan().any()
    assert all(value[name].isnan() for name in ("msen", "msen_v2", "msen_paper_text", "lapse_rate", "noise_floor"))


@pytest.mark.parametrize("shards", ["uneven", "one_empty", "shuffled"])
def test_processes_give_the_same_bits(sessions, people, run_processes, shards):
    expected = filled(sessions, **people).compute()

    def job(rank, world_size):
        mine = {
            "uneven": torch.arange(N)[rank * rank * 5 : (rank + 1) ** 2 * 5 if rank < world_size - 1 else N],
            "one_empty": torch.arange(rank - 1, N, world_size - 1) if rank else torch.arange(0),
            "shuffled": torch.arange(N).flip(0)[rank::world_size],
        }[shards]
        metric = LearningCurve(S, T, **people)
        for part in mine.split(4) if len(mine) else [mine]:
            metric.update(sessions[0][part], sessions[1][part])
        first = metric.compute()
        metric.update(sessions[0][:0], sessions[1][:0])  # asked again after nothing new came: the sums must not double
        return [first, metric.compute()]

    for world_size in (2, 3):
        for values in run_processes(job, world_size):
            for value in values:
                assert same(value, expected)


def test_repeated_sessions_count_as_often_as_they_are_given(sessions, run_processes):
    expected = filled(sessions).compute()["p_hat"]

    def job(rank, world_size):
        metric = LearningCurve(S, T)
        metric.update(*sessions)  # every process has the whole: shares stay, sessions multiply
        value = metric.compute()
        return [value["p_hat"], value["var_p_hat"]]

    counts = np.bincount(sessions[1].numpy())[:, None]
    for p_hat, var in run_processes(job, 2):
        assert torch.equal(p_hat, expected)
        torch.testing.assert_close(var, p_hat * (1 - p_hat) / torch.from_numpy(2 * counts - 1), atol=1e-15, rtol=0)


@pytest.mark.parametrize(
    ("update", "error", "sentence"),
    [
        ({"correct_BT": torch.zeros(2, 4, dtype=torch.bool)}, ValueError, "equal length, got shape"),
        ({"correct_BT": torch.tensor([[0, 1, 2]] * 2)}, ValueError, "session 0, trial 2 is 2"),
        ({"correct_BT": torch.tensor([[0, 1, -1]] * 2)}, ValueError, "session 0, trial 2 is -1"),
        ({"correct_BT": torch.rand(2, 3)}, TypeError, "bool or integers"),
        ({"correct_BT": [[0, 1, 1]]}, TypeError, "correct_BT must be a torch.Tensor"),
        ({"subtask_B": torch.tensor([0, 2])}, ValueError, "row 1 is 2"),
        ({"subtask_B": torch.tensor([0])}, ValueError, "paired row by row"),
        ({"subtask_B": torch.tensor([0.0, 1.0])}, TypeError, "integer dtype"),
    ],
)
def test_refusals_name_the_place_and_add_nothing(update, error, sentence):
    metric = LearningCurve(2, 3)
    good = {"correct_BT": torch.zeros(2, 3, dtype=torch.bool), "subtask_B": torch.tensor([0, 1])}
    with pytest.raises(error, match=sentence):
        metric.update(**(good | update))
    assert all((state == 0).all() for state in metric.metric_state.values())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_subtasks": 0}, "num_cells"),
        ({"human_k": torch.ones(2, 3)}, "give both"),
        ({"human_k": torch.ones(2, 4), "human_n": 3}, "human_k must have shape"),
        ({"human_k": torch.full((2, 3), 4), "human_n": 3}, "between 0 and n"),
        ({"human_k": torch.ones(2, 3), "human_n": 1}, "at least 2"),
    ],
)
def test_refusals_of_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        LearningCurve(**({"num_subtasks": 2, "num_trials": 3} | settings))
