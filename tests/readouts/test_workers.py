"""Work on several threads gives what one thread gives, and leaves torch as it was."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from humanlike.readouts import objective
from humanlike.readouts.problem import folded_problem
from humanlike.readouts.workers import workers


def test_one_worker_is_map_itself():
    with workers(1) as each:
        assert each is map


def test_results_are_in_order_and_the_work_is_shared():
    both = threading.Barrier(2, timeout=10)  # passed only if two threads are at work at once

    def square(i):
        both.wait()
        return i * i, torch.get_num_threads()

    with workers(2) as each:
        assert list(each(square, [1, 2, 3, 4])) == [(1, 1), (4, 1), (9, 1), (16, 1)]


def test_errors_come_through_and_threads_are_restored():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ZeroDivisionError), workers(2) as each:
            list(each(lambda i: 1 / i, [1, 0]))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_pass_over_the_rows_is_the_same_on_two_threads_and_in_tasks_of_any_size(monkeypatch):
    rng = np.random.default_rng(0)
    y_N = np.arange(200) % 4
    problem = folded_problem(rng.normal(size=(200, 6)), y_N, np.arange(200) % 3, 1.0, standardize=True)[0]
    thetas = [torch.from_numpy(rng.normal(size=(7, 4))).float() for _ in range(2)]
    whole = problem.value_and_gradient([0, 2], thetas)
    monkeypatch.setattr(objective, "TASK_ROWS", 10)
    alone = problem.value_and_gradient([0, 2], thetas)
    with workers(2) as each:
        beside = problem.value_and_gradient([0, 2], thetas, each)
    assert alone[0] == beside[0]
    assert all(torch.equal(a, b) for a, b in zip(alone[1], beside[1], strict=True))
    np.testing.assert_allclose(alone[0], whole[0], rtol=1e-6)
    for a, b in zip(alone[1], whole[1], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)
