from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from humanlike.metrics import JensenShannonDistance
from humanlike.metrics.functional import jensen_shannon_distance

C, L, N = 5, 8, 90


@pytest.fixture
def answers():
    g = torch.Generator().manual_seed(0)
    labels = [torch.randint(0, L, (N,), generator=g) for _ in range(2)]
    cells = [torch.randint(0, C - 1, (N,), generator=g) for _ in range(2)]  # the last cell stays empty
    return labels, cells


def table(labels, cells):
    return torch.zeros(C, L, dtype=torch.int64).index_put((cells, labels), torch.tensor(1), accumulate=True)


def filled(labels, cells, batch_size=N, order=slice(None), **settings):
    metric = JensenShannonDistance(C, L, **settings)
    for side in (0, 1):
        for start in range(0, N, batch_size):
            batch = torch.arange(N)[order][start : start + batch_size]
            metric.update(labels[side][batch], cells[side][batch], side=side)
    return metric


def test_agrees_with_scipy_and_with_the_function(answers):
    labels, cells = answers
    value = filled(labels, cells, base=2).compute()
    tables = [table(a, b)[: C - 1] for a, b in zip(labels, cells, strict=True)]
    assert torch.equal(value[: C - 1], jensen_shannon_distance(*tables, base=2))
    np.testing.assert_allclose(value[: C - 1], jensenshannon(*(t.numpy() for t in tables), base=2, axis=1), atol=1e-12)
    assert value[C - 1].isnan()


@pytest.mark.parametrize("batch_size", [1, 3, N])
def test_batches_and_order_do_not_matter(answers, batch_size):
    labels, cells = answers
    expected = filled(labels, cells).compute()
    for order in (slice(None), torch.arange(N).flip(0)):
        assert torch.equal(filled(labels, cells, batch_size, order).compute().nan_to_num(), expected.nan_to_num())


def test_probabilities_are_summed_exactly_in_any_order():
    p = torch.rand(2, N, L, generator=torch.Generator().manual_seed(1))
    cells = torch.randint(0, C, (2, N), generator=torch.Generator().manual_seed(2))
    whole = filled(p, cells).compute()
    assert torch.equal(filled(p, cells, 7, torch.arange(N).flip(0)).compute(), whole)
    sums = [torch.zeros(C, L, dtype=torch.float64).index_add(0, cells[s], p[s].double()) for s in (0, 1)]
    torch.testing.assert_close(whole, jensen_shannon_distance(*sums), atol=1e-11, rtol=0)


def test_states_are_whole_numbers_and_sums(answers):
    metric = filled(*answers)
    assert all(state.dtype == torch.int64 for state in metric.metric_state.values())
    assert metric.num_rows == 2 * N


def test_before_any_update_and_with_one_side_only():
    metric = JensenShannonDistance(2, 3)
    assert metric.compute().isnan().all()
    metric.update(torch.tensor([0]), torch.tensor([0]), side=0)
    assert metric.compute().isnan().all()
    metric.update(torch.tensor([0]), torch.tensor([0]), side=1)
    np.testing.assert_array_equal(metric.compute(), [0, np.nan])
    assert "1 empty cells [1]" in repr(metric)


def test_processes_give_the_same_bits(answers, run_processes):
    labels, cells = answers
    expected = filled(labels, cells).compute()

    def job(rank, world_size):
        metric = JensenShannonDistance(C, L)
        for side in (0, 1):  # side 0 is known to the last process only
            mine = torch.arange(rank, N, world_size) if side else torch.arange(N if rank == world_size - 1 else 0)
            metric.update(labels[side][mine], cells[side][mine], side=side)
        return metric.compute()

    for world_size in (2, 3):
        for value in run_processes(job, world_size):
            assert torch.equal(value.nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize(
    ("update", "error", "sentence"),
    [
        ({"side": 2}, ValueError, "side must be 0 or 1"),
        ({"labels_or_probs": torch.tensor([0, 3])}, ValueError, "labels_or_probs .* row 1 is 3"),
        ({"labels_or_probs": torch.tensor([0, -1])}, ValueError, "row 1 is -1"),
        ({"labels_or_probs": torch.tensor([0.0, 1.0])}, TypeError, "integer dtype"),
        ({"labels_or_probs": torch.ones(2, 4)}, ValueError, r"\(N, 3\) rows"),
        ({"labels_or_probs": torch.zeros(2, 3)}, ValueError, "row 0 sums to 0"),
        ({"cells": torch.tensor([0, 2])}, ValueError, "cells .* row 1 is 2"),
        ({"cells": torch.tensor([0])}, ValueError, "1 entries for 2 rows"),
    ],
)
def test_refusals_name_the_place_and_add_nothing(update, error, sentence):
    metric = JensenShannonDistance(2, 3)
    with pytest.raises(error, match=sentence):
        metric.update(**({"labels_or_probs": torch.tensor([0, 1]), "cells": torch.tensor([0, 1]), "side": 0} | update))
    assert all((state == 0).all() for state in metric.metric_state.values())


def test_refusals_of_settings():
    with pytest.raises(ValueError, match="num_cells"):
        JensenShannonDistance(0, 3)
    with pytest.raises(ValueError, match="base"):
        JensenShannonDistance(2, 3, base=1)
