"""`humanlike gather` for object learning: run folders in, one folder out; runs that differ are refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from humanlike.entry import cli, gather_object_learning
from humanlike.entry.gather import main
from humanlike.entry.gather_object_learning import joined_tables
from humanlike.entry.gathered_folder import found_runs, of_one_benchmark

RULES = ("square", "hinge")
LAYERS = 3


def read_runs(folders):
    _, runs = of_one_benchmark(found_runs(folders), "object_learning", ["object_learning"])
    return gather_object_learning.read_runs(runs)


def models_of(backbone, experiment, shift=0.0):
    rows = [
        {"experiment": experiment, "backbone": backbone, "layer": f"l{k}", "relative_depth": k / (LAYERS - 1),
         "rule": rule, "msen_paper": 0.05 - 0.02 * k + 0.001 * r + shift, "msen_v2": 0.047 - 0.02 * k + shift,
         "noise_floor": 0.003, "random_guess_paper": 0.11}
        for k in range(LAYERS) for r, rule in enumerate(RULES)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def write_run(folder, backbone, *, experiment="high_variation", shift=0.0, seed=0, in_table=True, **record):
    folder.mkdir(parents=True)
    models = models_of(backbone, experiment, shift)
    rng = np.random.default_rng(0)
    values = models["msen_paper"].to_numpy()[:, None] + rng.normal(0, 1e-4, 50)
    key = ["experiment", "backbone", "layer", "rule"]
    replicates = pd.concat([models[key], pd.DataFrame(values, columns=[f"r{b}" for b in range(50)])], axis=1)
    curves = pd.concat(
        [models[key[1:]].assign(trial=t, accuracy=0.5 + 0.01 * t, accuracy_people=0.5 + 0.02 * t) for t in (1, 2, 3)]
    )
    pairs = ["a,b", "c,d", "e,f"]
    subtasks = pd.concat([models[key].assign(subtask=s, accuracy=0.6 + 0.1 * k) for k, s in enumerate(pairs)])
    participants = pd.DataFrame(
        [(f"p{p}", s, 0.5 + 0.1 * p + 0.1 * k) for p in (1, 2) for k, s in enumerate(pairs)],
        columns=["participant", "subtask", "accuracy"],
    )
    tables = {"models": models, "replicates": replicates, "curves": curves}
    if experiment == "high_variation":
        tables |= {"subtasks": subtasks, "participants": participants}
    for name, table in tables.items():
        kept = table if in_table else table.drop(columns="experiment", errors="ignore")
        kept.to_parquet(folder / f"{name}.parquet")
    score = {
        "schema": "humanlike.score/1", "benchmark": "object_learning", "benchmark_version": "1",
        "dataset": "novel_objects", "backbone": backbone, "layer": "l2", "digest": backbone * 8,
        "hashes": {"data": "d"}, "seeds": {"seed": seed}, "protocol": {"preset": "paper"},
        "flags": ["simulated_participants"], "details": {"object_learning": {"experiment": experiment}},
    }  # fmt: skip
    (folder / "score.json").write_text(json.dumps(score | record))
    return folder


@pytest.fixture
def sweep(tmp_path):
    for name, shift in (("net_a", 0.01), ("net_b", 0.0)):
        write_run(tmp_path / "sweep" / name, name, shift=shift)
        write_run(tmp_path / "sweep" / f"{name}_1", name, experiment="one_shot", shift=2 * shift, in_table=False)
    (tmp_path / "sweep" / "other").mkdir()
    other = {"schema": "humanlike.score/1", "benchmark": "seva"}
    (tmp_path / "sweep" / "other" / "score.json").write_text(json.dumps(other))
    return tmp_path / "sweep"


def test_a_sweep_becomes_one_folder(sweep, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["humanlike", "gather", str(sweep), "--output", str(out), "--ranked", "4",
                                      "--benchmark", "object_learning"])  # fmt: skip
    cli.main()
    said = capsys.readouterr().out
    assert "high_variation: 12 models" in said
    assert "1. 0.01000  net_b, l2, square" in said
    record = json.loads((out / "sweep.json").read_text())
    assert record["counts"]["one_shot_models"] == 12
    assert record["simulated_people"]
    board = pd.read_parquet(out / "tables" / "leaderboard.parquet")
    assert board["backbone"].iloc[0] == "net_b"
    assert len(pd.read_csv(out / "tables" / "rank_groups.csv")) == 8
    assert len(pd.read_parquet(out / "tables" / "experiments.parquet")) == 12
    people = pd.read_parquet(out / "tables" / "individuals.parquet")
    assert people[["backbone", "layer", "rule"]].drop_duplicates().to_numpy().tolist() == [["net_b", "l2", "square"]]
    assert people["accuracy"].tolist() == pytest.approx([0.7, 0.8])
    assert people["accuracy_model"].tolist() == pytest.approx([0.7, 0.7])
    page = (out / "report.html").read_text()
    assert "Nothing on this page says anything about human beings" in page
    for name in ("scores_one_shot", "depth_high_variation", "curves", "experiments"):
        assert (out / "figures" / f"{name}.svg").is_file()
        assert f'id="{name}-figure_1"' in page
    assert not (out / "gather.json").exists()
    assert "p, null test" not in page
    assert "phases_strong" in record["missing"]
    assert "Early and late in learning" in page


def test_runs_are_given_once_and_seeds_become_a_column(sweep, tmp_path):
    runs = read_runs([sweep, sweep / "net_a"])
    assert len(runs) == 4
    tables = joined_tables(runs, "paper")
    assert "seed" not in tables["models"]
    assert len(tables["replicates"]) == 24
    assert "replicates" not in joined_tables(runs, "v2")
    write_run(tmp_path / "more" / "again", "net_a", seed=1)
    tables = joined_tables(read_runs([sweep, tmp_path / "more"]), "paper")
    assert sorted(tables["models"]["seed"].unique()) == [0, 1]


def test_runs_of_other_layers_and_rules_stand_together_and_a_shared_model_once(tmp_path):
    for name, layers in (("one", "spread:2"), ("two", "blocks.*")):
        protocol = {
            "preset": "paper",
            "rules": [name],
            "encoding": {"layers": layers, "widest": len(layers), "size": 224},
        }
        write_run(tmp_path / name, "net_a", protocol=protocol)
    tables = joined_tables(read_runs([tmp_path]), "paper")
    assert len(tables["models"]) == len(models_of("net_a", "high_variation"))
    assert not tables["curves"].duplicated(["layer", "rule", "trial"]).any()
    protocol = {"preset": "paper", "encoding": {"size": 128}}
    write_run(tmp_path / "small", "net_a", protocol=protocol)
    with pytest.raises(ValueError, match="differ in protocol"):
        read_runs([tmp_path])


def test_one_name_for_two_models_is_refused(tmp_path):
    write_run(tmp_path / "one", "net_a")
    write_run(tmp_path / "two", "net_a", shift=0.01)
    with pytest.raises(ValueError, match=r"both hold net_a, l0, square .*give one of the networks another"):
        joined_tables(read_runs([tmp_path]), "paper")


def test_phases_over_all_subtasks_come_from_the_models(tmp_path):
    folder = write_run(tmp_path / "run", "net")
    models = models_of("net", "high_variation").assign(
        early_accuracy=0.6, late_accuracy=0.8, early_accuracy_people=0.7, late_accuracy_people=0.85
    )
    models.to_parquet(folder / "models.parquet")
    phases = joined_tables(read_runs([folder]), "paper")["phases"]
    assert len(phases) == 2 * len(models)
    assert phases.groupby("phase")["accuracy_people"].first().to_dict() == {"early": 0.7, "late": 0.85}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"dataset": "hobj"}, "differ in dataset"),
        ({"hashes": {"data": "e"}}, "differ in people and images"),
        ({"protocol": {"preset": "v2"}}, "differ in protocol"),
    ],
)
def test_runs_of_other_people_are_refused(sweep, tmp_path, record, said):
    other = write_run(tmp_path / "apart", "net_c", **record)
    with pytest.raises(ValueError, match=said):
        read_runs([sweep, other])


def test_wrong_folders_are_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(FileNotFoundError, match="holds no finished run"):
        read_runs([tmp_path])
    monkeypatch.setattr(sys, "argv", ["humanlike", "gather", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert "error: " in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main(["--convention", "other", "x"])
    assert left.value.code == 2


def test_a_run_must_say_its_experiment(tmp_path):
    write_run(tmp_path / "run", "net", in_table=False, details={})
    with pytest.raises(ValueError, match="does not say of which experiment"):
        read_runs([tmp_path])
