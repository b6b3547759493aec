"""Searches with Optuna: what they go by, what they count, and how they go on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from omegaconf import OmegaConf

from humanlike.entry import sweep_optuna
from humanlike.entry.sweep_optuna import OptunaSweeper


@pytest.fixture
def search(tmp_path, monkeypatch):
    """Search the minimum of (x - 0.3)² through a launcher that computes it; `calls` are the x that were computed."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="pip install 'humanlike[optuna]'")
    calls = []

    class Launcher:
        fails = 0

        def launch(self, job_overrides, initial_job_idx):
            from hydra.core.utils import JobReturn, JobStatus

            returned = []
            for overrides in job_overrides:
                x = float(dict(o.split("=") for o in overrides)["x"])
                calls.append(x)
                value = None if len(calls) <= Launcher.fails else (x - 0.3) ** 2
                returned.append(JobReturn(status=JobStatus.COMPLETED, overrides=list(overrides)))
                returned[-1].return_value = value
            return returned

    from hydra.core.plugins import Plugins

    monkeypatch.setattr(Plugins.instance(), "instantiate_launcher", lambda **about: Launcher(), raising=False)

    def run(n_trials, **fixed):
        settings = {"direction": "minimize", "n_trials": n_trials, "n_jobs": 1, "seed": 0, "n_startup_trials": 5}
        storage = f"sqlite:///{tmp_path}/study.db"
        sweeper = OptunaSweeper(**settings, study_name="search", storage=storage, params={"x": "interval(0.0, 1.0)"})
        config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}, "objective": "loss", "x": 0.5, **fixed})
        sweeper.setup(hydra_context="context", task_function=print, config=config)
        before = len(calls)
        sweeper.sweep([])
        return calls[before:]

    run.launcher = Launcher
    run.folder = tmp_path
    return run


def test_a_search_finds_the_minimum_and_goes_on_where_it_was(search, capsys):
    first = search(6)
    assert len(first) == 6
    second = search(20)
    assert len(second) == 14, "trials of both calls count"
    assert not set(first) & set(second), "a seed does not repeat its random trials"
    assert search(20) == []
    best = OmegaConf.load(search.folder / "optimization_results.yaml")
    assert best.best_params.x == min([*first, *second], key=lambda x: (x - 0.3) ** 2)
    assert abs(best.best_params.x - 0.3) < 0.1
    said = capsys.readouterr().err
    assert "6 trials done, 14 to go" in said
    assert f"best of 20 trials: loss={best.best_value:.6g} with x=" in said


def test_trials_that_failed_or_were_killed_are_tried_again_first(search):
    search.launcher.fails = 2
    first = search(4)
    import optuna

    study = optuna.load_study(study_name=name_of(search.folder), storage=f"sqlite:///{search.folder}/study.db")
    assert [t.state.name for t in study.trials] == ["FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    killed = study.ask({"x": optuna.distributions.UniformDistribution(0.0, 1.0)}).params["x"]
    again = search(6)
    assert again[:3] == [*first[:2], killed]
    assert len(again) == 4
    assert search(6) == []


def name_of(folder):
    import optuna

    (summary,) = optuna.get_all_study_summaries(f"sqlite:///{folder}/study.db")
    return summary.study_name


def test_trials_of_other_settings_are_no_evidence(search):
    search(3)
    assert len(search(3, dataset="other")) == 3
    assert search(3) == []


def test_a_search_without_an_objective_is_refused(search, capsys):
    with pytest.raises(SystemExit) as left:
        search(3, objective=None)
    assert left.value.code == 2
    assert "a search needs a number to go by: objective=NAME" in capsys.readouterr().err


def test_two_processes_do_not_search_one_study(search, capsys):
    from filelock import FileLock

    with FileLock(search.folder / ".search.lock"), pytest.raises(SystemExit):
        search(3)
    assert "another process searches in" in capsys.readouterr().err


def test_a_library_that_cannot_store_is_named(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.1.9")
    with pytest.raises(ValueError, match=r"needs SQLAlchemy<2 with this version of Optuna, found 2\.1\.9"):
        sweep_optuna._check_storage("sqlite:///x.db")


@pytest.fixture
def readout_setting(tmp_path):
    """What `validate_readout` says of settings, on doodles and a small random network."""
    from humanlike.data.doodles import doodles
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build
    from humanlike.entry.tune_readout import validate_readout

    data = doodles(concepts=4, instances=6)
    backbone = build(compose("train", ["backbone=random_tiny"]).backbone)

    def run(**settings):
        settings = {"n_splits": 3, "inner_splits": 2, **settings}
        return validate_readout(backbone, data, tmp_path, cache_dir=tmp_path / "cache", **settings)

    run.data, run.backbone, run.folder = data, backbone, tmp_path
    return run


def test_settings_are_judged_without_the_test_fold(readout_setting, monkeypatch):
    """The same as scikit-learn on the same rows, and blind to what the test fold holds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from humanlike.backbones.features import extract_features
    from humanlike.readouts import stratified_group_folds

    got = readout_setting(C=0.1, layer="norm", test_fold=1, measure_test=True)
    data = readout_setting.data
    features = extract_features(readout_setting.backbone, data, ["norm"], cache_dir=readout_setting.folder / "cache")
    f_ND, label_N = features["norm"].f_ND.astype(float), data.target_N
    group_N = data.table["image_id"].to_numpy()
    test_N = stratified_group_folds(data.table["concept"].to_numpy(), group_N, 3, 0) == 1
    f_MD, label_M = f_ND[~test_N], label_N[~test_N]
    fold_M = stratified_group_folds(label_M, group_N[~test_N], 2, 0)

    def loss(train, test):
        scaler = StandardScaler().fit(train[0])
        fitted = LogisticRegression(C=0.1, tol=1e-9, max_iter=20000).fit(scaler.transform(train[0]), train[1])
        p = fitted.predict_proba(scaler.transform(test[0]))
        return -np.log(p[np.arange(len(test[1])), np.searchsorted(fitted.classes_, test[1])])

    inner = [loss((f_MD[fold_M != k], label_M[fold_M != k]), (f_MD[fold_M == k], label_M[fold_M == k])) for k in (0, 1)]
    assert got["inner_loss"] == pytest.approx(np.concatenate(inner).mean(), rel=1e-4)
    assert got["test_loss"] == pytest.approx(loss((f_MD, label_M), (f_ND[test_N], label_N[test_N])).mean(), rel=1e-4)
    assert (got["num_train"], got["num_test"]) == (int((~test_N).sum()), int(test_N.sum()))
    assert json.loads((readout_setting.folder / "metrics.json").read_text())["inner_loss"] == got["inner_loss"]

    without = readout_setting(C=0.1, layer="norm", test_fold=1)
    assert "test_loss" not in without
    assert without["inner_loss"] == got["inner_loss"]


def test_a_fold_that_is_none_is_refused(readout_setting):
    with pytest.raises(ValueError, match=r"one of the folds 0 … 2, got 3"):
        readout_setting(test_fold=3)


def test_the_development_judge_is_not_the_evaluating_one():
    from humanlike.entry.conf import compose

    tuned = compose("train", ["experiment=tune_generator"])
    plain = compose("train", ["task=generator"])
    import inspect

    from humanlike.elements.critic_scratch import doodle_judge

    evaluating = plain.task.judge.get("seed", inspect.signature(doodle_judge).parameters["seed"].default)
    assert tuned.task.judge.seed != evaluating
    assert tuned.objective == "after.judge.sea"


def test_too_many_folds_name_the_setting_of_the_task(readout_setting):
    with pytest.raises(ValueError, match=r"class airplane has 6 sources for 7 folds .*; use task\.n_splits=6, add sou"):
        readout_setting(n_splits=7)
    with pytest.raises(ValueError, match=r"has 4 sources for 5 folds .*; use task\.inner_splits=4, add sources"):
        readout_setting(inner_splits=5)
