from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
import pytest
import torch

from humanlike.metrics import SketchAbstractionEfficiency
from humanlike.metrics.exact_moments import DIGITS, add_moments, means_and_deviations
from humanlike.metrics.functional import diagnosis, sea_terms
from humanlike.metrics.sea import QUANTITIES

N, E, G = 203, 9, 4


@pytest.fixture
def sketches():
    g = torch.Generator().manual_seed(0)
    P = torch.rand(N, generator=g, dtype=torch.float64) ** 2
    mask = torch.arange(E) < torch.randint(3, E + 1, (N, 1), generator=g)
    present = torch.randint(0, 2, (N, E), generator=g) * torch.randint(0, 2, (N, 1), generator=g)
    present[torch.rand(N, generator=g) < 0.1, 0] = -1
    mask[17] = False
    return {"P_B": P, "present": present, "group_B": torch.arange(N) % G, "mask_BE": mask}


def take(sketches, rows):
    return {name: x[rows] for name, x in sketches.items()}


def filled(sketches, batch_size=N, order=slice(None), **settings):
    metric = SketchAbstractionEfficiency(G, **settings)
    for rows in torch.arange(N)[order].split(batch_size):
        metric.update(**take(sketches, rows))
    return metric


def same(a, b):
    return list(a) == list(b) and all(torch.equal(a[name].nan_to_num(-9), b[name].nan_to_num(-9)) for name in a)


@pytest.fixture
def table(sketches):
    """Per sketch, by NumPy: V, E, and whether it is scored."""
    mask, present = sketches["mask_BE"].numpy(), sketches["present"].numpy()
    elements = mask.sum(1)
    missing = ((present == -1) & mask).any(1)
    scored = ~missing & (elements > 0)
    return (present * mask).sum(1), elements, missing, scored


@pytest.mark.parametrize("settings", [{}, {"delta": 1e-7, "gamma": 2.0}])
def test_values_are_those_of_numpy_over_the_function(sketches, table, settings):
    value = filled(sketches, **settings).compute()
    V, elements, missing, scored = table
    assert 0 < missing.sum() < N
    for group in range(G):
        rows = (sketches["group_B"].numpy() == group) & scored
        P, v = sketches["P_B"].numpy()[rows], V[rows] / elements[rows]
        terms = sea_terms(P, v, **settings)
        columns = (terms.sea, terms.reward, terms.penalty, terms.u, terms.g, v, P)
        for name, column in zip(QUANTITIES, columns, strict=True):
            assert value[name][group].item() == pytest.approx(np.mean(np.asarray(column)), abs=1e-12), name
            assert value[f"{name}_sd"][group].item() == pytest.approx(np.std(np.asarray(column), ddof=1), abs=1e-12)
        codes = np.bincount(diagnosis(P, v, **settings), minlength=3)
        assert [value[name][group].item() for name in ("efficient", "overdrawn", "not_recognisable")] == codes.tolist()
        assert value["scored"][group].item() == rows.sum()
        assert value["zero_v"][group].item() == (V[rows] == 0).sum() > 0
        of_group = sketches["group_B"].numpy() == group
        lost = (missing & of_group).sum()
        assert value["missing"][group].item() == lost
        assert value["coverage"][group].item() == rows.sum() / (rows.sum() + lost)
        assert value["without_elements"][group].item() == (elements[of_group] == 0).sum()


def test_counts_and_judgments_agree(sketches, table):
    V, elements, missing, _ = table
    V = torch.from_numpy(np.where(missing, np.nan, V))
    by_count = SketchAbstractionEfficiency(G)
    by_count.update(sketches["P_B"], (V, torch.from_numpy(elements)), sketches["group_B"])
    value, expected = by_count.compute(), filled(sketches).compute()
    # A missing count says nothing of single judgments; all else is the same.
    assert value.pop("judgment_coverage").tolist() != expected.pop("judgment_coverage").tolist()
    assert same(value, expected)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_batches_order_and_dtype_of_judgments_do_not_matter(sketches, batch_size):
    expected = filled(sketches).compute()
    assert same(filled(sketches, batch_size).compute(), expected)
    assert same(filled(sketches, batch_size, torch.arange(N).flip(0)).compute(), expected)
    floats = {**sketches, "present": torch.where(sketches["present"] < 0, torch.nan, sketches["present"].float())}
    assert same(filled(floats, batch_size).compute(), expected)


def test_failed_judgments_are_missing_and_never_v_0():
    metric = SketchAbstractionEfficiency()
    metric.update(torch.tensor([0.8, 0.8]), torch.tensor([[1, 0, 0, 0], [-1, -1, -1, -1]]))
    value = metric.compute()
    assert value["sea"].item() == pytest.approx(sea_terms(torch.tensor(0.8), 0.25).sea.item(), abs=1e-12)
    assert (value["zero_v"].item(), value["missing"].item(), value["coverage"].item()) == (0, 1, 0.5)
    assert value["judgment_coverage"].item() == 0.5
    blank = SketchAbstractionEfficiency()
    blank.update(torch.tensor([0.8]), torch.zeros(1, 4))
    assert (blank.compute()["zero_v"].item(), blank.compute()["sea"].item()) == (1, 1.0)


def test_a_share_of_judgments_can_do():
    metric = SketchAbstractionEfficiency(min_judged=0.5)
    metric.update(torch.tensor([0.8, 0.8]), torch.tensor([[1, 0, -1, -1], [1, -1, -1, -1]]))
    value = metric.compute()
    assert value["visual_ratio"].item() == 0.5
    assert value["missing"].item() == 1
    assert value["judgment_coverage"].item() == 3 / 8


def test_a_class_without_elements_has_no_score_and_is_named(caplog):
    metric = SketchAbstractionEfficiency(2, group_names=["mug", "fog"])
    with caplog.at_level(logging.WARNING):
        metric.update(
            torch.tensor([0.5, 0.5]), (torch.tensor([1, 0]), torch.tensor([4, 0])), torch.tensor([0, 1]),
            names=["mug_1", "fog_1"],
        )  # fmt: skip
    assert "'fog_1' (row 1) of group 'fog'" in caplog.text
    value = metric.compute()
    assert value["without_elements"].tolist() == [0, 1]
    assert value["sea"][1].isnan()
    assert value["coverage"].tolist()[0] == 1
    assert value["coverage"][1].isnan()
    assert "groups empty: 'fog'" in repr(metric)
    assert "groups with classes without elements: 'fog'" in repr(metric)
    assert "delta=1e-06" in repr(metric)


def test_nothing_is_nan_with_counts_of_0():
    metric = SketchAbstractionEfficiency(2)
    value = metric.compute()
    assert all(value[name].isnan().all() for name in (*QUANTITIES, "sea_sd", "coverage", "judgment_coverage"))
    assert value["scored"].tolist() == value["efficient"].tolist() == [0, 0]
    assert metric.empty_cells == [0, 1]
    metric.update(torch.zeros(0), torch.zeros(0, 3), torch.zeros(0))
    metric.update(torch.tensor([0.5]), torch.tensor([[1, 0]]), torch.tensor([1]))
    value = metric.compute()
    assert value["sea_sd"].isnan().all()
    assert value["sea"].isnan().tolist() == [True, False]


def test_states_are_whole_numbers_and_sums(sketches):
    metric = filled(sketches)
    assert all(state.dtype == torch.int64 for state in metric.metric_state.values())
    assert metric.num_rows == N
    # Different settings never share a state in a MetricCollection.
    assert (
        len(set(metric.metric_state) & set(filled(sketches, delta=1e-7).metric_state)) == len(metric.metric_state) - 1
    )


@pytest.mark.parametrize("shards", ["uneven", "one_empty", "shuffled"])
def test_processes_give_the_same_bits(sketches, run_processes, shards):
    expected = filled(sketches).compute()

    def job(rank, world_size):
        mine = {
            "uneven": torch.arange(N)[rank * rank * 30 : (rank + 1) ** 2 * 30 if rank < world_size - 1 else N],
            "one_empty": torch.arange(rank - 1, N, world_size - 1) if rank else torch.arange(0),
            "shuffled": torch.arange(N).flip(0)[rank::world_size],
        }[shards]
        metric = SketchAbstractionEfficiency(G)
        for rows in mine.split(7) if len(mine) else [mine]:
            metric.update(**take(sketches, rows))
        first = metric.compute()
        metric.update(**take(sketches, torch.arange(0)))  # asked again after nothing new came: nothing must double
        return [first, metric.compute()]

    for world_size in (2, 3):
        for values in run_processes(job, world_size):
            assert all(same(value, expected) for value in values)


def test_repeated_shards_are_one_process_that_saw_them_twice(sketches, run_processes):
    twice = SketchAbstractionEfficiency(G)
    for _ in range(2):
        twice.update(**sketches)
    expected = twice.compute()

    def job(rank, world_size):
        metric = SketchAbstractionEfficiency(G)
        metric.update(**sketches)
        return metric.compute()

    assert all(same(value, expected) for value in run_processes(job, 2))


@pytest.mark.parametrize(
    ("update", "error", "sentence"),
    [
        ({"P_B": torch.tensor([0.5, 1.5])}, ValueError, "sketch 'b' .row 1. has P = 1.5"),
        ({"P_B": torch.tensor([0.5, torch.nan])}, ValueError, "sketch 'b' .row 1. has P = nan"),
        ({"P_B": torch.rand(2, 2)}, ValueError, "P_B must have one entry"),
        ({"P_B": [0.5, 0.5]}, TypeError, "P_B must be a torch.Tensor"),
        ({"present": (torch.tensor([1, 4]), torch.tensor([3, 3]))}, ValueError, "V cannot exceed E: sketch 'b'"),
        ({"present": torch.tensor([[0.2, 1.0], [0.0, 1.0]])}, ValueError, "sketch 0, element 0 is 0.2"),
        ({"present": torch.tensor([[0, 1]])}, ValueError, "present has 1 rows for 2 rows of P_B"),
        ({"group_B": torch.tensor([0, 2])}, ValueError, "group_B must lie in"),
        ({"group_B": torch.tensor([0])}, ValueError, "group_B has 1"),
        ({"group_B": None}, ValueError, "group_B is needed"),
    ],
)
def test_refusals_name_the_sketch_and_add_nothing(update, error, sentence):
    metric = SketchAbstractionEfficiency(2)
    good = {"P_B": torch.rand(2), "present": torch.tensor([[0, 1], [1, 1]]), "group_B": torch.tensor([0, 1])}
    with pytest.raises(error, match=sentence):
        metric.update(**(good | update), names=["a", "b"])
    assert all((state == 0).all() for state in metric.metric_state.values())


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"num_groups": 0}, ValueError, "num_cells"),
        ({"min_judged": 1.5}, ValueError, "min_judged"),
        ({"delta": 0}, ValueError, "delta"),
        ({"group_names": ["a"], "num_groups": 2}, ValueError, "group_names"),
        ({"detla": 1e-7}, ValueError, "detla"),
    ],
)
def test_refusals_of_settings(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        SketchAbstractionEfficiency(**settings)


def test_moments_are_exact():
    g = np.random.default_rng(1)
    values = np.concatenate([g.normal(size=400) * 10.0 ** g.integers(-9, 3, 400), [0.0, -1.0, 999.0, -999.0]])
    values = np.clip(values, -1000, 1000)
    group = g.integers(0, 3, len(values))
    digits = torch.zeros(DIGITS, 1, 4, dtype=torch.int64)
    add_moments(digits, torch.from_numpy(group), torch.from_numpy(values)[None])
    mean, deviation = means_and_deviations(digits, torch.from_numpy(np.bincount(group, minlength=4)))
    for k in range(3):
        exact = [Fraction(round(Fraction(x) * 2**40), 2**40) for x in values[group == k].tolist()]
        center = sum(exact) / len(exact)
        assert mean[0, k].item() == float(center)
        variance = sum((x - center) ** 2 for x in exact) / (len(exact) - 1)
        assert deviation[0, k].item() == np.sqrt(float(variance))
    assert mean[0, 3].isnan()


def test_equal_values_have_a_deviation_of_0():
    metric = SketchAbstractionEfficiency()
    metric.update(torch.full((1001,), 0.3), torch.ones(1001, 7))
    assert metric.compute()["sea_sd"].item() == 0


def test_moments_refuse_what_they_cannot_hold():
    digits = torch.zeros(DIGITS, 1, 1, dtype=torch.int64)
    for x in (1024.0, float("nan"), float("-inf")):
        with pytest.raises(ValueError, match=r"below 1,024"):
            add_moments(digits, torch.tensor([0]), torch.tensor([[x]]))
    assert not digits.any()


def test_half_a_million_blank_drawings_do_not_overflow():
    metric = SketchAbstractionEfficiency()
    for _ in range(8):
        metric.update(torch.ones(2**16), (torch.zeros(2**16), torch.full((2**16,), 5)))
    value = metric.compute()
    # The sum of u, 7.2 million, is near the limit of one 2⁻⁴⁰ counter, that of its squares beyond.
    assert value["u"].item() == pytest.approx(13.815511557963774, abs=1e-12)
    assert value["u_sd"].item() == 0
    assert value["zero_v"].item() == 2**19
