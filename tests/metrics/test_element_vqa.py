from __future__ import annotations

import pytest
import torch

from humanlike.metrics import ElementVQA
from humanlike.metrics.functional import element_vqa_scores

N, E, C = 61, 5, 3


@pytest.fixture
def study():
    g = torch.Generator().manual_seed(0)
    return {
        "predicted_NE": torch.randint(-1, 2, (N, E), generator=g),
        "annotated_NE": torch.randint(0, 2, (N, E), generator=g),
        "mask_NE": torch.rand(N, E, generator=g) < 0.8,
        "class_N": torch.randint(0, C, (N,), generator=g),
    }


def filled(study, average="micro", batch_size=N, order=slice(None)):
    metric = ElementVQA(E, C, average)
    for rows in torch.arange(N)[order].split(batch_size):
        metric.update(**{name: x[rows] for name, x in study.items()})
    return metric


def same(a, b):
    return list(a) == list(b) and all(torch.equal(a[name].nan_to_num(-9), b[name].nan_to_num(-9)) for name in a)


@pytest.mark.parametrize("average", ["micro", "macro_class", "macro_element"])
def test_class_is_the_function_for_every_batch_and_order(study, average):
    expected = element_vqa_scores(**study, average=average)._asdict()
    for batch_size in (1, 3, N):
        assert same(filled(study, average, batch_size).compute(), expected)
        assert same(filled(study, average, batch_size, torch.arange(N).flip(0)).compute(), expected)


@pytest.mark.parametrize("shards", ["uneven", "one_empty", "repeated"])
def test_processes_give_the_same_bits(study, run_processes, shards):
    whole = filled(study, "macro_class")
    if shards == "repeated":
        whole.update(**study)
    expected = whole.compute()

    def job(rank, world_size):
        mine = {
            "uneven": torch.arange(N)[: N // 5] if rank == 0 else torch.arange(N)[N // 5 :],
            "one_empty": torch.arange(N if rank else 0),
            "repeated": torch.arange(N),
        }[shards]
        metric = ElementVQA(E, C, "macro_class")
        metric.update(**{name: x[mine] for name, x in study.items()})
        return metric.compute()

    assert all(same(value, expected) for value in run_processes(job, 2))


def test_narrow_batches_and_one_class():
    metric = ElementVQA(4)
    metric.update(torch.tensor([[1, 0]]), torch.tensor([[1, 1]]))
    metric.update(torch.tensor([[1, 0, 0, 1]]), torch.tensor([[1, 0, 0, 0]]))
    assert metric.compute()["accuracy"].item() == 4 / 6
    assert metric.num_rows == 2


def test_empty_classes_are_named():
    metric = ElementVQA(2, 3)
    assert metric.compute()["f1"].isnan()
    metric.update(torch.tensor([[1, 0]]), torch.tensor([[1, 1]]), class_N=torch.tensor([1]))
    assert metric.empty_cells == [0, 2]
    assert "num_classes=3, num_elements=2, 2 empty classes [0, 2]" in repr(metric)


def test_refusals_add_nothing():
    metric = ElementVQA(2, 2)
    said = torch.tensor([[1, 0]])
    with pytest.raises(ValueError, match="class_N is needed"):
        metric.update(said, said)
    with pytest.raises(ValueError, match="num_elements is 2"):
        metric.update(torch.ones(1, 3), torch.ones(1, 3), class_N=torch.tensor([0]))
    with pytest.raises(ValueError, match="sketch 0, element 1 is 5"):
        metric.update(said, torch.tensor([[0, 5]]), class_N=torch.tensor([0]))
    with pytest.raises(ValueError, match="average must be one of"):
        ElementVQA(2, average="mean")
    assert not metric.table.any()
