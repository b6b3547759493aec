"""SEVA by layer: the reference layer's result is SEVA's own, people are computed once, and the choice is honest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks import seva as seva_module
from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.benchmarks.seva_layers import SevaLayersBenchmark
from humanlike.files import json_ready
from humanlike.stats import alignment_r2
from humanlike.types import Features

SMALL = {"replicates": 20, "splits": 4}
DEPTHS = {"early": 0.25, "middle": 0.5, "late": 1.0}


@pytest.fixture(scope="module")
def layers(study) -> dict[str, Features]:
    """Three layers: noise, the signal blurred by noise, the signal."""
    _, signal = study
    rng = np.random.default_rng(3)
    noise = rng.normal(size=signal.f_ND.shape).astype(np.float32)
    made = {"early": noise, "middle": 0.4 * signal.f_ND + noise, "late": signal.f_ND}
    return {name: replace(signal, f_ND=f_ND, layer=name) for name, f_ND in made.items()}


@pytest.fixture
def profile(study, layers, readout):
    return SevaLayersBenchmark(**SMALL).run_layers(study[0], layers, DEPTHS, "middle", readout)


def table(result) -> pd.DataFrame:
    return pd.DataFrame(result.details["layers"]).set_index(["metric", "layer"])


def test_the_result_is_that_of_the_reference_layer(study, layers, readout, profile):
    alone = SevaBenchmark(**SMALL).run(study[0], layers["middle"], readout)
    assert {name: profile.scores[name] for name in alone.scores} == dict(alone.scores)
    assert set(profile.scores) - set(alone.scores) == {f"nested_alignment_{m}" for m in ("accuracy", "entropy", "snp")}
    pd.testing.assert_frame_equal(profile.cells, alone.cells)
    pd.testing.assert_frame_equal(profile.items[alone.items.columns], alone.items)
    assert profile.counts == {**alone.counts, "layers": 3}
    assert set(profile.flags) - set(alone.flags) == {"layer_fixed_beforehand:middle", "layer_nested_over_concepts:4"}


def test_every_layer_has_the_scores_it_has_alone(study, layers, readout, profile):
    rows = table(profile)
    for layer in layers:
        alone = SevaBenchmark(**SMALL).run(study[0], layers[layer], readout)
        for metric in ("accuracy", "snp", "alignment_entropy", "delta_r2_accuracy"):
            row, score = rows.loc[(metric, layer)], alone.scores[metric]
            assert (row["value"], row["ci_low"], row["ci_high"]) == (score.value, score.ci_low, score.ci_high)
            assert row["relative_depth"] == DEPTHS[layer]
        top1 = profile.items[f"top1_index:{layer}"]
        assert top1.dtype.kind == "i"
        assert top1.tolist() == alone.items["top1_index"].tolist()
    assert json.loads(json.dumps(json_ready(profile.details)))["layers"]


def test_the_layer_that_is_like_people_is_chosen_and_the_naive_choice_is_labelled(study, layers, profile):
    rows, choice = table(profile), profile.details["layer_choice"]["accuracy"]
    value = rows.loc["alignment_accuracy"]["value"]
    best = value.idxmax()
    within = choice["fixed_layers_within_folds"]
    optimistic = {"layer": best, "alignment": value.max(), "within_folds": within[best]}
    assert choice["best_on_everything_optimistic"] == optimistic
    assert list(within) == list(layers)
    assert len(choice["folds"]) == 20  # 4 folds of 8 concepts, since 5 would leave one concept alone; 5 repeats
    shares = rows.loc["alignment_accuracy"]["chosen_share"]
    assert {k: v for k, v in shares.items() if v} == choice["chosen_share"]
    assert shares.sum() == pytest.approx(1)
    assert rows.loc["alignment_accuracy"]["chosen"].sum() >= 1
    assert rows.loc["alignment_accuracy"]["chosen"].idxmax() == shares.idxmax()
    assert not rows.loc["accuracy"]["chosen"].any()
    held_out = np.mean([fold["alignment_held_out"] for fold in choice["folds"]])
    assert profile.scores["nested_alignment_accuracy"].value == pytest.approx(held_out) == choice["held_out"]


def test_a_layer_that_answers_as_people_do_is_found_in_every_fold(study, readout):
    """People's own cell accuracies as a layer: nothing can be more alike."""
    data, _ = study
    benchmark = SevaLayersBenchmark(**SMALL)
    share = (
        data.responses.table.assign(
            right=data.responses.table["guess_1"]
            == data.responses.table["sketch_id"].map(data.table.set_index("sketch_id")["concept"])
        )
        .groupby("sketch_id")["right"]
        .mean()
    )
    rng, target = np.random.default_rng(0), data.target_N
    confident = np.where(data.table["sketch_id"].map(share).fillna(0.5) > 0.5, 9.0, 0.0)
    f_ND = rng.normal(size=(len(data), len(data.labels))).astype(np.float32)
    noise = rng.normal(size=f_ND.shape).astype(np.float32)
    f_ND[np.arange(len(data)), target] += confident
    rows = np.arange(len(data))
    layers = {name: Features(f, rows, {}, name, {}) for name, f in (("noise", noise), ("people", f_ND))}
    result = benchmark.run_layers(data, layers, {"noise": 0.5, "people": 1.0}, "noise", readout)
    assert result.details["layer_choice"]["accuracy"]["chosen_share"] == {"people": 1.0}
    cells = result.cells
    choice = result.details["layer_choice"]["accuracy"]
    naive = choice["best_on_everything_optimistic"]
    assert naive["layer"] == "people"
    # The choice is the same everywhere, so nothing was gained by looking.
    assert naive["within_folds"] == pytest.approx(choice["held_out"])
    top1 = result.items.assign(right=result.items["top1_index:people"] == result.items["target_index"])
    own = top1.groupby(["concept", "condition"])["right"].mean()
    order = pd.MultiIndex.from_frame(cells[["concept", "condition"]])
    expected = alignment_r2(
        cells["accuracy_people"].to_numpy(), own.reindex(order).to_numpy(), cells["condition"].to_numpy()
    )
    assert naive["alignment"] == pytest.approx(float(expected[0]))


def test_people_are_computed_once_and_one_layer_is_read_at_a_time(study, layers, readout, monkeypatch):
    calls, people_side = [], seva_module.people_side
    monkeypatch.setattr(seva_module, "people_side", lambda *a: (calls.append(1), people_side(*a))[1])

    class Lazy(Mapping):
        def __init__(self):
            self.read = []

        def __getitem__(self, name):
            self.read.append(name)
            return layers[name]

        def __iter__(self):
            return iter(layers)

        def __len__(self):
            return len(layers)

        def __contains__(self, name):
            return name in layers

    lazy = Lazy()
    SevaLayersBenchmark(**SMALL).run_layers(study[0], lazy, DEPTHS, "late", readout)
    assert calls == [1]
    assert sorted(lazy.read) == ["early", "late", "middle"]


def test_items_that_could_not_be_read_keep_their_rows(study, layers, readout):
    lost = {k: Features(v.f_ND[2:], v.rows[2:], {0: "x", 1: "y"}, k, {}) for k, v in layers.items()}
    items = SevaLayersBenchmark(**SMALL).run_layers(study[0], lost, DEPTHS, "late", readout).items
    assert items["top1_index:late"].tolist() == items["top1_index"].tolist()
    assert (items["top1_index:early"] == -1).tolist() == [True, True, *[False] * (len(items) - 2)]


def test_without_people_there_is_a_profile_but_no_choice(study, layers, readout, without):
    result = SevaLayersBenchmark(**SMALL).run_layers(without(study[0], responses=None), layers, DEPTHS, "late", readout)
    assert result.scores["nested_alignment_accuracy"].value is None
    assert result.details["layer_choice"] == {}
    assert "no_people" in result.flags
    assert table(result).loc["accuracy"]["value"].notna().all()


def test_too_few_concepts_leave_the_choice_undefined(study, layers, readout):
    data, _ = study
    rows = np.flatnonzero(data.table["concept"].isin(sorted(set(data.table["concept"]))[:3]))
    few = {k: Features(v.f_ND[rows], np.arange(len(rows)), {}, k, {}) for k, v in layers.items()}
    result = SevaLayersBenchmark(**SMALL).run_layers(data.select(rows), few, DEPTHS, "late", readout)
    assert "layer_choice_undefined" in result.flags
    assert result.scores["nested_alignment_accuracy"].value is None


@pytest.mark.parametrize("protocol", ["paper_text", "paper_code", "corrected"])
def test_every_protocol_and_the_jackknife_give_an_interval(study, layers, readout, protocol):
    interval = "jackknife" if protocol == "corrected" else None
    benchmark = SevaLayersBenchmark(protocol=protocol, interval=interval, choice_repeats=1, **SMALL)
    score = benchmark.run_layers(study[0], layers, DEPTHS, "late", readout).scores["nested_alignment_entropy"]
    assert score.ci_low < score.ci_high


def test_a_single_layer_is_a_profile_too(study, readout):
    data, features = study
    result = SevaLayersBenchmark(**SMALL).run(data, features, readout)
    assert result.details["layer_choice"]["accuracy"]["chosen_share"] == {"logits": 1.0}


def test_unconverged_layers_are_counted(study, layers, unconverged_readout):
    result = SevaLayersBenchmark(**SMALL).run_layers(study[0], layers, DEPTHS, "late", unconverged_readout)
    assert "layers_not_converged:3" in result.flags


def test_what_does_not_fit_is_said(study, layers, readout):
    benchmark, data = SevaLayersBenchmark(**SMALL), study[0]
    with pytest.raises(ValueError, match="reference layer 'last' is not among"):
        benchmark.run_layers(data, layers, DEPTHS, "last", readout)
    shorter = {
        **layers,
        "early": replace(layers["early"], f_ND=layers["early"].f_ND[1:], rows=layers["early"].rows[1:]),
    }
    with pytest.raises(ValueError, match="layer 'early' has 191 items"):
        benchmark.run_layers(data, shorter, DEPTHS, "late", readout)
    with pytest.raises(ValueError, match="2 or more folds"):
        SevaLayersBenchmark(choice_folds=1)
