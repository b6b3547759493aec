"""A profile by layer from end to end: one forward pass, the layers asked for, the reference layer among them."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from humanlike import evaluate
from humanlike.backbones.vision import TimmBackbone
from humanlike.benchmarks.seva_layers import SevaLayersBenchmark
from humanlike.data.doodles import doodles
from humanlike.entry.pipeline import run_benchmark
from humanlike.reports.run_folder import read_run

SMALL = {
    "dataset__concepts": ["lion", "snail", "banjo", "vase"],
    "dataset__instances": 5,
    "benchmark__replicates": 10,
    "benchmark__splits": 3,
    "extraction__num_workers": 0,
    "readout__tol": 1e-2,
    "readout__accept": 1.0,
    "report": False,
}


@pytest.fixture
def backbone() -> TimmBackbone:
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HUMANLIKE_CACHE", str(tmp_path / "cache"))


def profile(backbone, **settings):
    return evaluate(backbone, benchmark="seva_layers", **SMALL, **settings)


def test_all_layers_come_from_one_pass(backbone, tmp_path):
    images = []
    backbone.network.conv_stem.register_forward_hook(lambda _m, _i, out: images.append(len(out)))
    score = profile(backbone, benchmark__layers="spread:4", out_dir=tmp_path / "run")
    assert images == [1, 32, 32, 32]  # the layers' shapes; 80 drawings in micro-batches of one size
    assert (score.layer, score.benchmark) == ("pre_logits", "seva_layers")
    rows = pd.DataFrame(score.result.details["layers"])
    facts = pd.DataFrame(score.result.details["layer_facts"])
    assert facts["layer"].iloc[[0, -1]].tolist() == [backbone.layers[0], "pre_logits"]
    assert facts["relative_depth"].is_monotonic_increasing
    assert facts["relative_depth"].iloc[-1] == 1
    channels = {shape.name: shape.shape[0] for shape in backbone.layer_shapes()}
    assert facts["features"].tolist() == [channels[layer] for layer in facts["layer"]]  # averaged over the map
    assert set(rows["metric"]) >= {"accuracy", "alignment_accuracy", "delta_r2_snp"}
    assert score.result.details["extraction"]["reduction"]["pool"] == "average"
    again = read_run(tmp_path / "run")
    assert again.digest == score.digest
    assert len(again.result.details["layers"]) == len(rows)
    record = json.loads((tmp_path / "run" / "score.json").read_text())
    assert "layer_fixed_beforehand:pre_logits" in record["flags"]
    assert record["scores"]["nested_alignment_accuracy"]["unit"] == "R2"


def test_what_is_said_for_the_run_goes_before_the_benchmarks_own(backbone):
    score = profile(
        backbone,
        benchmark__layers=["blocks.?", "conv_stem"],
        layer="blocks.1",
        extraction__pool="none",
        extraction__max_features=50,
    )
    facts = pd.DataFrame(score.result.details["layer_facts"])
    blocks = [layer for layer in backbone.layers if layer.startswith("blocks.") and layer.count(".") == 1]
    assert facts["layer"].tolist() == ["conv_stem", *blocks]
    assert set(facts["features"]) == {50}
    assert score.layer == "blocks.1"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"benchmark__layers": "block.1"}, "nearest are .*blocks.1"),
        ({"benchmark__layers": "spread:1000"}, "asks for 1000"),
        ({"layer": "blocks.77"}, "no layer fits the name 'blocks.77'"),
        ({"benchmark__choice_folds": 1}, "2 or more folds"),
        ({"benchmark__layer": "all"}, "layers"),
        ({"extraction__pool": "max"}, "pool must be one of"),
    ],
)
def test_wrong_settings_are_sentences(backbone, settings, words):
    with pytest.raises(ValueError, match=words):
        profile(backbone, **settings)


def test_class_scores_have_no_layers(backbone):
    class ClassScores:
        reads_class_scores = True

    data = doodles(concepts=["lion", "snail"], instances=2)
    with pytest.raises(ValueError, match="this readout reads class scores of one layer only"):
        run_benchmark(backbone, data, SevaLayersBenchmark(), ClassScores())
