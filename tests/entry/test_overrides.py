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


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("~sed", r"no setting 'sed' \(~sed\); did you mean 'seed'"),
        ("~dataset.lables", r"no setting 'dataset\.lables'"),
        ("~layer", "layer is not set, so '~layer' has nothing to take away"),
        ("+readout=logistic", "a readout is chosen already, so nothing is added: write 'readout=logistic'"),
        ("hydra.run.dri=x", r"no setting 'hydra\.run\.dri' .*'hydra\.run\.dir'"),
        ("hydra/launcher=jobli", "no hydra/launcher named 'jobli'; did you mean 'joblib'"),
        ("paths.cache=/data/a=b", r"cannot read the override .*stands in quotes inside quotes: 'paths\.cache=\"…\"'"),
        ("hydra.launcher._target_=os.system", r"asks for 'os\.system' \(at hydra\.launcher\), which is not allowed"),
        ("hydra.callbacks.sweep_summary._target_=hydra._internal.utils.os.remove", r"leads out of hydra, to 'os'"),
        (
            "+hydra.callbacks.x={_target_: humanlike.files.os.remove}",
            r"\(at hydra\.callbacks\.x\) leads out of humanlike",
        ),
        ("+hydra.callbacks.x={_target_: mylab.run}", r"asks for 'mylab\.run' \(at hydra\.callbacks\.x\)"),
    ],
)
def test_deletions_additions_and_hydras_own_settings_are_checked(override, words):
    with pytest.raises(OverrideError, match=words):
        check_overrides("evaluate", [override])


def test_a_setting_of_another_choice_is_named():
    with pytest.raises(OverrideError, match=r"with dataset=image_folder there is no setting 'dataset\.instances'"):
        check_overrides("evaluate", ["dataset.instances=5", "dataset=image_folder"])


def test_several_values_need_a_sweep():
    with pytest.raises(OverrideError, match=r"add -m to run every one, or write seed=\[0,1\] for a list"):
        check_overrides("evaluate", ["seed=0,1"], multirun=False)
    check_overrides("evaluate", ["seed=0,1"])


def test_a_folder_of_ones_own_configurations(tmp_path):
    (tmp_path / "backbone").mkdir()
    (tmp_path / "backbone" / "mine.yaml").write_text("_target_: mylab.models.mine\nwidth: 3\n")
    check_overrides("evaluate", ["backbone=mine", "backbone.width=4"], config_dirs=[str(tmp_path)])
    with pytest.raises(OverrideError, match="no backbone named 'mime'; did you mean 'mine'"):
        check_overrides("evaluate", ["backbone=mime"], config_dirs=[str(tmp_path)])
    with pytest.raises(OverrideError, match=r"no setting 'backbone\.widht' .*'backbone\.width'"):
        check_overrides("evaluate", ["backbone=mine", "backbone.widht=4"], config_dirs=[str(tmp_path)])
    with pytest.raises(OverrideError, match=r"there is no folder '.*nowhere'"):
        check_overrides("evaluate", [], config_dirs=[str(tmp_path / "nowhere")])


def test_an_interval_needs_a_sweeper_that_searches():
    with pytest.raises(OverrideError, match=r"readout.C=.*has no end of values to try; .* hydra/sweeper=optuna"):
        check_overrides("evaluate", ["readout.C=interval(0.1,1)"])
    check_overrides("evaluate", ["readout.C=tag(log,interval(0.1,1))", "hydra/sweeper=optuna"])
    with pytest.raises(OverrideError, match=r"no setting 'readout\.D'"):
        check_overrides("evaluate", ["readout.D=interval(0.1,1)", "hydra/sweeper=optuna"])


@pytest.mark.parametrize(
    ("chosen", "needs", "extra"),
    [
        ("hydra/launcher=joblib", "joblib", "joblib"),
        ("hydra/launcher=submitit_local", "submitit", "slurm"),
        ("hydra/launcher=submitit_slurm", "submitit", "slurm"),
        ("hydra/launcher=ray", "ray", "ray"),
        ("hydra/sweeper=optuna", "hydra_plugins.hydra_optuna_sweeper", "optuna"),
    ],
)
def test_a_launcher_without_its_extra_says_what_to_install(chosen, needs, extra, monkeypatch):
    import importlib.util

    here = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == needs else here(name, *more))
    with pytest.raises(OverrideError, match=rf"{chosen} needs the package {needs}: pip install 'humanlike\[{extra}\]'"):
        check_overrides("evaluate", [chosen])
    check_overrides("evaluate", [chosen], multirun=False)  # a single run has no use for it
