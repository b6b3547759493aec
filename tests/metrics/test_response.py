from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.stats
import torch
from torch.utils.data.distributed import DistributedSampler
from torchmetrics import MetricCollection

from humanlike.metrics import ResponseDistribution
from humanlike.metrics.functional import (
    response_entropy,
    row_entropy,
    semantic_neighbour_preference,
    semantic_ranks,
    top1_accuracy,
)

C, L, N = 6, 10, 83
SIZES = (1, 2, 7, 65, 499)


def draw(rows, seed=0):
    """Probability rows and their cells; the last cell stays empty."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(L, 0.3), size=rows)
    p[rng.random(p.shape) < 0.2] = 0
    p[:, 0] += p.sum(1) == 0
    return torch.from_numpy(p), torch.from_numpy(rng.integers(0, C - 1, rows))


@pytest.fixture
def ranks():
    return semantic_ranks(torch.from_numpy(np.random.default_rng(1).normal(size=(L, 4))))


TARGET = torch.arange(C)


def equal(a, b):
    return all(torch.equal(a[k].isnan(), b[k].isnan()) and torch.equal(a[k].nan_to_num(), b[k].nan_to_num()) for k in b)


def test_a_models_rows_agree_with_numpy_and_scipy(ranks):
    p, cells = draw(N)
    metric = ResponseDistribution(C, L, TARGET, ranks)
    metric.update(p, cells)
    value = metric.compute()
    for c in range(C - 1):
        rows = p[cells == c].numpy()
        assert value["accuracy"][c].item() == pytest.approx((rows.argmax(1) == c).mean(), abs=1e-15)
        assert value["entropy"][c].item() == pytest.approx(scipy.stats.entropy(rows, axis=1).mean(), abs=1e-11)
        counts = np.bincount(rows.argmax(1), minlength=L)
        np.testing.assert_array_equal(metric.counts[c], counts)
    assert metric.counts.dtype == torch.int64
    assert torch.equal(value["snp"][:-1], semantic_neighbour_preference(metric.counts, TARGET, ranks)[:-1])
    assert all(v[C - 1].isnan() and v.dtype == torch.float64 for v in value.values())
    np.testing.assert_allclose(metric.label_sums[0], p[cells == 0].sum(0), atol=1e-11)


def test_peoples_rows_use_all_guesses_for_entropy_and_first_guesses_for_the_rest(ranks):
    rng = np.random.default_rng(4)
    cells = torch.from_numpy(rng.integers(0, C, 40))
    people = rng.integers(1, 9, 40)  # judgments of each sketch: not the same number for all
    first = torch.from_numpy(np.stack([rng.multinomial(n, np.full(L, 0.1)) for n in people]))
    every = first + torch.from_numpy(rng.poisson(0.5, size=(40, L)))
    metric = ResponseDistribution(C, L, TARGET, ranks, snp_variant="exact")
    metric.update(every, cells, top1_NL=first)
    pooled = ResponseDistribution(C, L, TARGET, ranks, entropy_estimator="pooled", accuracy="pooled")
    pooled.update(every, cells, top1_NL=first)
    for c in range(C):
        mine, firsts = every[cells == c].numpy(), first[cells == c].numpy()
        shares = firsts[:, c] / firsts.sum(1)
        assert metric.compute()["accuracy"][c].item() == pytest.approx(shares.mean(), abs=1e-11)
        entropy = scipy.stats.entropy(mine, axis=1).mean()
        assert metric.compute()["entropy"][c].item() == pytest.approx(entropy, abs=1e-11)
        assert pooled.compute()["accuracy"][c].item() == firsts[:, c].sum() / firsts.sum()
        assert pooled.compute()["entropy"][c].item() == pytest.approx(scipy.stats.entropy(mine.sum(0)), abs=1e-12)
        np.testing.assert_array_equal(metric.counts[c], firsts.sum(0))
        np.testing.assert_array_equal(metric.label_sums[c], mine.sum(0))
    assert torch.equal(metric.compute()["snp"], semantic_neighbour_preference(metric.counts, TARGET, ranks, "exact"))


@pytest.mark.parametrize("estimator", ["pooled", "miller_madow", "chao_shen"])
def test_hard_labels_equal_the_functions_bit_for_bit(ranks, estimator):
    p, cells = draw(N)
    labels = p.argmax(1)
    metric = ResponseDistribution(C, L, TARGET, ranks, entropy_estimator=estimator)
    metric.update(labels, cells)
    counts = torch.zeros(C, L, dtype=torch.int64).index_put((cells, labels), torch.tensor(1), accumulate=True)
    assert torch.equal(metric.counts, counts)
    expected = {
        "accuracy": top1_accuracy(counts, TARGET),
        "entropy": response_entropy(counts, estimator),
        "snp": semantic_neighbour_preference(counts, TARGET, ranks),
    }
    assert equal(metric.compute(), expected)


@pytest.mark.parametrize(
    ("mode", "estimator"), [("per_sketch_miller_madow", "miller_madow"), ("per_sketch_chao_shen", "chao_shen")]
)
def test_corrected_per_sketch_entropy_is_the_mean_of_corrected_rows(mode, estimator):
    rng = np.random.default_rng(8)
    n, cells = torch.from_numpy(rng.poisson(1.0, (30, L))), torch.from_numpy(rng.integers(0, C, 30))
    n[:, 1] += 1
    metric = ResponseDistribution(C, L, TARGET, entropy_estimator=mode)
    metric.update(n, cells)
    rows = response_entropy(n, estimator)
    expected = [rows[cells == c].mean().item() for c in range(C)]
    np.testing.assert_allclose(metric.compute()["entropy"], expected, atol=1e-11)
    with pytest.raises(ValueError, match="integer counts"):
        metric.update(torch.full((1, L), 0.1), torch.tensor([0]))


@pytest.mark.parametrize("batch_size", [1, 3, N])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_batches_order_and_memory_layout_do_not_matter(ranks, batch_size, dtype):
    p, cells = draw(N)
    p = p.to(dtype)
    whole = ResponseDistribution(C, L, TARGET, ranks)
    whole.update(p, cells)
    for order in (torch.arange(N), torch.arange(N).flip(0)):
        metric = ResponseDistribution(C, L, TARGET, ranks)
        for batch in order.split(batch_size):
            metric.update(p.T.contiguous().T[batch], cells[batch])
        assert equal(metric.compute(), whole.compute())
        assert torch.equal(metric.labels, whole.labels)


def test_ties_take_the_lowest_index():
    metric = ResponseDistribution(1, 4, torch.tensor([1]))
    metric.update(torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.25] * 4]), torch.tensor([0, 0]))
    assert metric.counts.tolist() == [[1, 1, 0, 0]]


def test_defined_and_silent_before_any_update(ranks):
    metric = ResponseDistribution(C, L, TARGET, ranks)
    assert all(v.isnan().all() for v in metric.compute().values())
    metric.update(torch.zeros(0, L), torch.zeros(0, dtype=torch.int64))
    metric.update(torch.tensor([]), torch.tensor([]))
    assert all(v.isnan().all() for v in metric.compute().values())
    assert metric.num_rows == 0
    assert f"{C} empty cells [0, 1, 2, 3, 4, 5]" in repr(metric)
    for copied in (copy.deepcopy(metric), pickle.loads(pickle.dumps(ResponseDistribution(C, L, TARGET)))):
        assert copied.compute()["accuracy"].isnan().all()


def test_repr_names_the_empty_cells_and_reset_empties_all():
    p, cells = draw(N)
    metric = ResponseDistribution(C, L, TARGET)
    metric.update(p, cells)
    assert "1 empty cells [5]" in repr(metric)
    metric.update(p[:1], torch.tensor([5]))
    assert "no empty cells" in repr(metric)
    assert metric.empty_cells == []
    metric.compute()
    metric.reset()
    assert metric.empty_cells == list(range(C))
    many = ResponseDistribution(100, L, torch.zeros(100, dtype=torch.int64))
    assert "100 empty cells [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …]" in repr(many)


def test_forward_gives_the_batch_and_adds_to_the_whole(ranks):
    p, cells = draw(N)
    metric, batch = (ResponseDistribution(C, L, TARGET, ranks) for _ in range(2))
    batch.update(p[:20], cells[:20])
    assert equal(metric(p[:20].requires_grad_(), cells[:20]), batch.compute())
    metric(p[20:], cells[20:])
    whole = ResponseDistribution(C, L, TARGET, ranks)
    whole.update(p, cells)
    assert equal(metric.compute(), whole.compute())


def test_collections_do_not_merge_metrics_that_begin_alike():
    # After this first batch all four have equal tables; after the second they must differ.
    settings = ({}, {"entropy_estimator": "pooled"}, {"snp_variant": "exact"}, {"target": torch.tensor([1, 0])})
    metrics = {
        f"m{i}": ResponseDistribution(**({"num_cells": 2, "num_labels": 3, "target": torch.tensor([0, 0])} | s))
        for i, s in enumerate(settings)
    }
    alone = {name: copy.deepcopy(metric) for name, metric in metrics.items()}
    collection = MetricCollection(metrics)
    batches = [
        (torch.tensor([[0.0, 0, 1]]), torch.tensor([0])),
        (torch.tensor([[0.7, 0.3, 0], [0, 1, 0]]), torch.tensor([0, 1])),
    ]
    for batch in batches:
        collection.update(*batch)
        for metric in alone.values():
            metric.update(*batch)
    assert len(collection.compute_groups) == len(settings)
    together = collection.compute()
    for name, metric in alone.items():
        for key, expected in metric.compute().items():
            torch.testing.assert_close(together[f"{name}_{key}"], expected, rtol=0, atol=0, equal_nan=True)


def test_memory_is_flat_and_small_at_full_size():
    metric = ResponseDistribution(512, 1854, torch.zeros(512, dtype=torch.int64))
    states = metric.metric_state.values()
    assert all(isinstance(state, torch.Tensor) and state.dtype == torch.int64 for state in states)
    assert sum(state.nbytes for state in states) < 16 * 2**20
    before = [state.data_ptr() for state in states]
    p, cells = torch.full((64, 1854), 1 / 1854), torch.arange(64)
    for _ in range(5):
        metric.update(p, cells)
    assert [state.data_ptr() for state in metric.metric_state.values()] == before


@pytest.mark.parametrize("sharding", ["interleaved", "blocks", "one_process"])
def test_any_number_of_processes_gives_the_same_bits(ranks, run_processes, sharding):
    def indices(size, rank, world_size):
        if sharding == "interleaved":
            return torch.arange(size)[rank::world_size]
        if sharding == "blocks":  # uneven
            cut = [size * r**2 // world_size**2 for r in range(world_size + 1)]
            return torch.arange(cut[rank], cut[rank + 1])
        return torch.arange(size if rank == world_size - 1 else 0)

    def job(rank, world_size):
        values = []
        for size in SIZES:
            p, cells = draw(size, seed=size)
            metric = ResponseDistribution(C, L, TARGET, ranks)
            for batch in indices(size, rank, world_size).split(16):  # no update at all where there is nothing
                metric.update(p[batch], cells[batch])
            values.append(metric.compute() | {"empty": torch.tensor(metric.empty_cells)})
            with metric.sync_context():
                values[-1]["seen"] = torch.tensor(metric.num_rows)
        return values

    alone = job(0, 1)
    assert [v["seen"].item() for v in alone] == list(SIZES)
    for world_size in (2, 3):
        for values in run_processes(job, world_size):
            for size, value, expected in zip(SIZES, values, alone, strict=True):
                assert equal(value, expected), size


def test_an_item_given_twice_counts_twice_so_samplers_must_not_repeat(run_processes):
    p, cells = draw(65)

    def job(rank, world_size):
        metric = ResponseDistribution(C, L, TARGET)
        padded = torch.tensor(list(DistributedSampler(range(65), world_size, rank, shuffle=False)))
        metric.update(p[padded], cells[padded])
        with metric.sync_context():
            return torch.tensor(metric.num_rows), metric.sketches

    repeated = ResponseDistribution(C, L, TARGET)
    repeated.update(torch.cat([p, p[:1]]), torch.cat([cells, cells[:1]]))
    for seen, sketches in run_processes(job, 2):
        assert seen.item() == 66
        assert torch.equal(sketches, repeated.sketches)


def test_a_process_without_new_data_does_not_answer_from_its_cache(run_processes):
    p, cells = draw(40)

    def job(rank, _):
        metric = ResponseDistribution(C, L, TARGET)
        first = metric.compute()
        if rank == 1:
            metric.update(p, cells)
        return first, metric.compute(), metric.compute()

    alone = ResponseDistribution(C, L, TARGET)
    alone.update(p, cells)
    for first, second, third in run_processes(job, 2):
        assert first["accuracy"].isnan().all()
        assert equal(second, alone.compute())
        assert equal(third, alone.compute())


@pytest.mark.parametrize(
    ("update", "error", "sentence"),
    [
        ({"labels_or_probs": torch.tensor([0, 1])}, ValueError, "hard labels came"),
        (
            {"labels_or_probs": torch.tensor([[0.1, 0.2, 0.7], [0.5, -0.5, 1]])},
            ValueError,
            "logits.* row 1, label 1",
        ),
        ({"labels_or_probs": torch.tensor([[1.0, 0, 0], [0, 0, 0]])}, ValueError, "row 1 sums to 0"),
        ({"labels_or_probs": torch.ones(2, 4)}, ValueError, r"\(N, 3\) rows"),
        ({"labels_or_probs": np.ones((2, 3))}, TypeError, r"torch\.from_numpy"),
        ({"cells": torch.tensor([0, 2])}, ValueError, r"cells must lie in \[0, 2\); row 1 is 2"),
        ({"cells": torch.tensor([-1, 1])}, ValueError, "row 0 is -1"),
        ({"cells": torch.tensor([0, 1, 1])}, ValueError, "3 entries for 2 rows"),
        ({"cells": torch.tensor([0.0, 1])}, TypeError, "integer dtype"),
        ({"cells": []}, TypeError, r"torch\.Tensor"),
        ({"cells": torch.tensor(0)}, ValueError, "one dimension"),
        ({"top1_NL": torch.ones(2, 3)}, TypeError, "integer dtype"),
        ({"top1_NL": torch.ones(1, 3).long()}, ValueError, "1 rows for 2 rows"),
        ({"top1_NL": torch.tensor([[1, 0, 0], [0, 0, 0]])}, ValueError, "top1_NL .* row 1 sums to 0"),
        ({"top1_NL": torch.tensor([0, 3])}, ValueError, "row 1 is 3"),
    ],
)
def test_refusals_name_the_place_and_add_nothing(update, error, sentence):
    metric = ResponseDistribution(2, 3, torch.tensor([0, 1]))
    good = {"labels_or_probs": torch.ones(2, 3), "cells": torch.tensor([0, 1])}
    with pytest.raises(error, match=sentence):
        metric.update(**(good | update))
    assert all((state == 0).all() for state in metric.metric_state.values())


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"target": torch.tensor([0, 3])}, ValueError, r"target must lie in \[0, 3\); row 1 is 3"),
        ({"target": torch.tensor([0])}, ValueError, "1 rows for 2 rows of cells"),
        ({"target": [0, 1]}, TypeError, r"torch\.Tensor"),
        ({"ranks": torch.zeros(3, 3).long()}, ValueError, r"ranks_LL\[0, 1\] is 0"),
        ({"snp_variant": "papr"}, ValueError, "snp_variant must be one of"),
        ({"entropy_estimator": "plugin"}, ValueError, "entropy_estimator must be one of"),
        ({"accuracy": "top5"}, ValueError, "accuracy must be one of"),
        ({"num_labels": 0}, ValueError, "num_labels"),
        ({"colour": 1}, ValueError, "Unexpected keyword"),
    ],
)
def test_refusals_of_settings(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        ResponseDistribution(**({"num_cells": 2, "num_labels": 3, "target": torch.tensor([0, 1])} | settings))


def test_an_overflowing_cell_is_refused():
    metric = ResponseDistribution(1, 2, torch.tensor([0]), entropy_estimator="pooled")
    for _ in range(2):
        metric.update(torch.tensor([[2**22, 0]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="overflowed"):
        metric.compute()


def test_per_sketch_entropy_equals_the_function_to_the_fixed_points_unit():
    p, cells = draw(N)
    metric = ResponseDistribution(C, L, TARGET)
    metric.update(p, cells)
    rows = row_entropy(p)
    expected = torch.stack([rows[cells == c].mean() for c in range(C - 1)])
    assert (metric.compute()["entropy"][:-1] - expected).abs().max() <= 2.0**-40


@pytest.mark.parametrize("row", [[2**24, 5, 1], [2.0**23, 0.0, 0.0], [1e-14, 1e-14, 0.0], [0.0, 2.0**-41, 0.0]])
def test_rows_that_fixed_point_cannot_hold_are_refused_and_add_nothing(row):
    """2²⁴ responses of one label would come out as none, and a row of 10⁻¹⁴ as an empty cell."""
    metric = ResponseDistribution(1, 3, torch.tensor([0]), entropy_estimator="pooled")
    rows = torch.tensor([[1, 1, 1], row], dtype=torch.float64 if isinstance(row[0], float) else torch.int64)
    with pytest.raises(ValueError, match=r"between 2⁻⁴¹ and 2²³ .* row 1 .* rescale"):
        metric.update(rows, torch.tensor([0, 0]))
    assert metric.num_rows == 0
    assert metric.compute()["entropy"].isnan().all()
