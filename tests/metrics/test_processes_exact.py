"""All metrics for 1, 2, 7 and 499 items on 1, 2, 3 and 7 processes, in shuffled order: the states of one process."""

from __future__ import annotations

import inspect

import pytest
import torch
from torchmetrics import Metric

import humanlike.metrics as metrics
from humanlike.metrics import (
    ElementVQA,
    JensenShannonDistance,
    LearningCurve,
    ResponseDistribution,
    SketchAbstractionEfficiency,
)

CELLS, LABELS, SIZES = 3, 4, (1, 2, 7, 499)


def study(num):
    """Made-up rows for every metric."""
    random = torch.Generator().manual_seed(num)
    proba_NL = torch.rand((num, LABELS), generator=random, dtype=torch.float64)
    return {
        "proba_NL": proba_NL / proba_NL.sum(1, keepdim=True),
        "cell_N": torch.randint(CELLS, (num,), generator=random),
        "answer_N": torch.randint(LABELS, (num,), generator=random),
        "side_N": torch.randint(2, (num,), generator=random),
        "correct_NT": torch.randint(2, (num, 5), generator=random).bool(),
        "drawn_NE": torch.randint(2, (num, 6), generator=random).bool(),
        "judged_NE": torch.randint(2, (num, 6), generator=random).bool(),
    }


def computed(data, rows):
    """Metric → (states, results) of the given rows, synchronised over all processes."""
    target_C = torch.arange(CELLS)
    made = {
        "response": ResponseDistribution(CELLS, LABELS, target_C),
        "divergence": JensenShannonDistance(CELLS, LABELS),
        "sea": SketchAbstractionEfficiency(CELLS),
        "curve": LearningCurve(CELLS, 5),
        "elements": ElementVQA(6, CELLS),
    }
    given = {
        "response": lambda r: (data["proba_NL"][r], data["cell_N"][r]),
        "divergence": lambda r: (data["answer_N"][r], data["cell_N"][r], int(data["side_N"][r[0]])),  # one side each
        "sea": lambda r: (data["proba_NL"][r, 0], data["judged_NE"][r], data["cell_N"][r]),
        "curve": lambda r: (data["correct_NT"][r], data["cell_N"][r]),
        "elements": lambda r: (data["judged_NE"][r], data["drawn_NE"][r], None, data["cell_N"][r]),
    }
    found = {}
    for name, metric in made.items():
        sides = data["side_N"][list(rows)] if rows else torch.zeros(0)
        own = torch.tensor(list(rows), dtype=torch.int64)
        for part in (*own[sides == 0].split(50), *own[sides == 1].split(50)):
            if len(part):
                metric.update(*given[name](part))
        if torch.distributed.is_initialized():
            metric.sync()
        states = {state: getattr(metric, state).clone() for state in metric._defaults}
        if torch.distributed.is_initialized():
            metric.unsync()
        value = metric.compute()
        value = value if isinstance(value, dict) else {"value": value}
        found[name] = (states, {k: torch.as_tensor(v).clone() for k, v in value.items()})
    return found


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric:UserWarning")
@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
def test_the_states_are_those_of_one_process(run_processes, world_size):
    studies = {num: study(num) for num in SIZES}

    def job(rank, world_size):
        found = {}
        for num, data in studies.items():
            order = torch.randperm(num, generator=torch.Generator().manual_seed(num + world_size)).tolist()
            found[num] = computed(data, order[rank::world_size])
        return found

    alone = {num: computed(data, range(num)) for num, data in studies.items()}
    for found in run_processes(job, world_size):
        for num, expected in alone.items():
            for name, (states, values) in expected.items():
                own_states, own_values = found[num][name]
                for state, tensor in states.items():
                    assert tensor.dtype == torch.int64, f"{name}.{state} is no integer state"
                    assert torch.equal(own_states[state], tensor), f"{name}.{state} of {num} items"
                for key, value in values.items():
                    torch.testing.assert_close(own_values[key], value, rtol=0, atol=1e-12, equal_nan=True)


def test_no_metric_gathers_items():
    """States are tensors of a size that the number of items does not change, and are summed."""
    classes = [c for _, c in inspect.getmembers(metrics, inspect.isclass) if issubclass(c, Metric)]
    assert len(classes) >= 5
    small, large = (
        {name: {s: t.shape for s, t in states.items()} for name, (states, _) in computed(study(n), range(n)).items()}
        for n in (1, 60)
    )
    assert small == large
    for metric in (ResponseDistribution(CELLS, LABELS, torch.arange(CELLS)), LearningCurve(CELLS, 5)):
        assert {how.__name__ for how in metric._reductions.values()} == {"dim_zero_sum"}
