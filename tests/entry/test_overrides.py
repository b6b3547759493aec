"""Misspelt settings are answered with the nearest valid ones."""

from __future__ import annotations

import pytest

from humanlike.entry.conf import compose
from humanlike.entry.overrides import OverrideError, check_overrides, normalise


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("sed=1", r"no setting 'sed' .*'seed'"),
        ("benchmark=sevaa", "no benchmark named 'sevaa'; did you mean 'seva'"),
        ("datset=doodles", "no setting 'datset' .*'dataset'"),
        ("trainer.devces=2", r"'trainer\.devices'"),
        ("benchmark.replicate=5", r"'benchmark\.replicates'"),
        ("+optimzer.lr=1", "nothing reads the added setting 'optimzer.lr'"),
        ("+extractoin.micro_batch=1", r"'extraction\.micro_batch'"),
        ("seed=[1", r"cannot read the override 'seed=\[1'"),
        ("logger=[csv,wandbb]", "no logger named 'wandbb'; did you mean 'wandb'"),
        ("backbone=tf_efficientnet_lite0,resnet5", "no backbone named 'resnet5'; did you mean 'resnet50'"),
        ("experiment=x", "no experiment named 'x'"),
    ],
)
def test_the_nearest_name_is_offered(override, words):
    with pytest.raises(OverrideError, match=words):
        check_overrides("evaluate", [override])


@pytest.mark.parametrize(
    "override",
    [
        "seed=1,2,3",
        "backbone=tf_efficientnet_lite0,resnet50",
        "+trainer.num_nodes=1",
        "logger=[csv,wandb]",
        "logger=none",
        "hydra/launcher=joblib",
        "extraction.on_bad_image=skip",
        "~report",
    ],
)
def test_valid_settings_pass(override):
    check_overrides("evaluate", [override])


def test_debug_shorthand():
    assert normalise(["debug=true", "seed=1", "debug=false"]) == ["debug=traceback", "seed=1"]
    assert compose("evaluate", normalise(["debug=true"])).tracebacks is True


def test_composition_works_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert compose("evaluate", ["dataset=doodles"]).benchmark._target_.startswith("humanlike.")


def test_an_outer_hydra_session_survives():
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    from humanlike.entry.conf import conf_dir

    with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
        check_overrides("evaluate", ["seed=3"])
        assert hydra_compose("evaluate", ["seed=4"]).seed == 4
