"""The sweeps in docs/ for `wandb sweep`: read by wandb itself, expanded and run here without a server or an account.

What a server does (choosing the next settings) is done by the few lines of `grid` and `draws`; the command of a job is
put together by wandb's own functions, as its agent does.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args, load_sweep_config

from humanlike.entry.conf import compose
from humanlike.reports.wandb_file import read_wandb_file

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KEYS = {"project", "name", "program", "method", "metric", "parameters", "command", "run_cap"}


@pytest.fixture
def sweep(repository):
    return lambda kind: load_sweep_config(str(repository / "docs" / f"wandb_sweep_{kind}.yaml"))


def grid(config: dict) -> list[dict]:
    values = {name: p.get("values", [p.get("value")]) for name, p in config["parameters"].items()}
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def draws(config: dict, number: int) -> list[dict]:
    rng = np.random.default_rng(0)

    def one(parameter: dict):
        if "values" in parameter:
            return rng.choice(parameter["values"]).item()
        assert parameter["distribution"] == "log_uniform_values"
        return math.exp(rng.uniform(math.log(parameter["min"]), math.log(parameter["max"])))

    return [{name: one(p) for name, p in config["parameters"].items()} for _ in range(number)]


def words(config: dict, chosen: dict) -> list[str]:
    """The command line of a job, as the agent makes it."""
    arguments = create_sweep_command_args({"args": {name: {"value": value} for name, value in chosen.items()}})
    known = {"interpreter": [sys.executable], "program": [config["program"]], "env": [], **arguments}
    line: list[str] = []
    for word in create_sweep_command(list(config["command"])):
        macro = word[2:-1] if word.startswith("${") and word.endswith("}") else ""
        line += known.get(macro, [word])
    return line


@pytest.mark.parametrize(("kind", "command"), [("grid", "evaluate"), ("random", "train")])
def test_every_job_of_a_sweep_composes(sweep, kind, command, monkeypatch):
    monkeypatch.setenv("WANDB_RUN_ID", "abc")
    config = sweep(kind)
    assert set(config) <= KEYS
    assert config["method"] == kind
    assert config["metric"]["goal"] in {"maximize", "minimize"}
    jobs = grid(config) if kind == "grid" else draws(config, 5)
    assert len(jobs) == (6 if kind == "grid" else 5)
    for chosen in jobs:
        interpreter, program, *overrides = words(config, chosen)
        assert (interpreter, program) == (sys.executable, f"{command}.py")
        composed = compose(command, [o for o in overrides if not o.startswith("hydra.run.dir")])
        assert composed.logger.wandb.mode == "online"
        assert "csv" in composed.logger
    if kind == "grid":
        assert {compose(command, words(config, job)[4:7]).protocol for job in jobs} == {"corrected", "paper_code"}


SMALL = {
    "grid": ["backbone=random_tiny", "dataset.concepts=4", "dataset.instances=5", "benchmark.replicates=20",
             "benchmark.splits=5", "extraction.num_workers=0", "report=false"],
    "random": ["backbone=random_tiny", "dataset.concepts=4", "dataset.instances=5", "task.max_epochs=3"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grid", "random"])
def test_two_jobs_of_a_sweep_run_offline_and_tell_the_metric(sweep, kind, command, tmp_path):
    config = sweep(kind)
    jobs = grid(config)[:2] if kind == "grid" else draws(config, 2)
    for number, chosen in enumerate(jobs):
        _, program, *overrides = words(config, chosen)
        done = subprocess.run(
            [sys.executable, str(command.repository / program), *overrides, *SMALL[kind], "offline=true"],
            env={**command.environment, "WANDB_SWEEP_ID": "sweep001", "WANDB_RUN_ID": f"{kind}{number}"},
            cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (file,) = (tmp_path / "outputs" / "wandb" / f"{kind}{number}").rglob("*.wandb")
        run = read_wandb_file(file)
        assert (run.run_id, run.exit_code) == (f"{kind}{number}", 0)
        metric = config["metric"]["name"]
        told = [row[metric] for row in run.history if metric in row]
        assert told
        if kind == "grid":
            score = json.loads((tmp_path / "outputs" / "wandb" / f"{kind}{number}" / "score.json").read_text())
            assert told == [pytest.approx(score["scores"]["alignment_accuracy"]["value"])]
            assert run.config["protocol"] == chosen["protocol"]
