"""Sweeps under launchers of this machine, started as a user starts them."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(1700)

NETWORKS = """
import os, pathlib, torch
HERE = pathlib.Path(__file__).parent

def make(number):
    weight = torch.randn(192, 8, generator=torch.Generator().manual_seed(number))
    return lambda images: torch.nn.functional.adaptive_avg_pool2d(images, 8).flatten(1) @ weight

def deadly(images):
    if (HERE / "deadly").exists():
        os.kill(os.getpid(), 9)
    return make(99)(images)

fine0, fine1, fine2 = make(0), make(1), make(2)
"""


@pytest.fixture
def sweep(command, small, tmp_path):
    """Run a sweep of the demo with networks of one's own; `deadly` kills its process while the file `deadly` exists."""
    (tmp_path / "networks.py").write_text(NETWORKS)
    settings = [s for s in small if not s.startswith("backbone=")]

    def run(*arguments, networks=None, **environment):
        own = ["backbone=random_tiny"]
        if networks:
            own = ["backbone=callable", f"backbone.path={','.join(f'networks:{n}' for n in networks)}"]
            own += ["backbone.transform.size=32"]
        line = [
            sys.executable, str(command.repository / "evaluate.py"), "-m", *settings, *own, "logger=none",
            "report=false", f"paths.output_dir={tmp_path / 'out'}", *arguments,
        ]  # fmt: skip
        around = {**command.environment, "PYTHONPATH": str(tmp_path), **environment}
        return subprocess.run(
            line, cwd=command.home, env=around, capture_output=True, text=True, timeout=800, check=False
        )

    run.folder = tmp_path / "out" / "sweeps" / "evaluate"
    run.home = tmp_path
    return run


def outcomes(folder):
    found = [json.loads(path.read_text()) for path in folder.glob("*/outcome.json")]
    return {re.search(r"networks\\?:(\w+)", o["overrides"])[1]: o for o in found}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_jobs_share_devices_outlive_a_dying_neighbour_and_are_not_repeated(launcher, sweep):
    pytest.importorskip("submitit" if launcher.startswith("submitit") else "joblib")
    (sweep.home / "deadly").touch()
    arguments = ("trainer.accelerator=auto", f"hydra/launcher={launcher}")
    done = sweep(*arguments, networks=["fine0", "deadly", "fine1", "fine2"], CUDA_VISIBLE_DEVICES="4,7")
    assert done.returncode == 3, done.stderr
    found = outcomes(sweep.folder)
    assert {name: o["status"] for name, o in found.items()} == {"fine0": 0, "fine1": 0, "fine2": 0, "deadly": 1}
    assert "left no result" in found["deadly"]["why"]
    assert "1 of 4 jobs did not end well" in done.stderr
    # one device a job, and the map says which
    assert {o["devices"] for o in found.values()} <= {"4", "7"}
    assert "process 0: device 4, core" in done.stderr
    assert "process 1: device 7, core" in done.stderr

    (sweep.home / "deadly").unlink()
    scores = {path: path.stat().st_mtime_ns for path in sweep.folder.glob("*/score.json")}
    assert len(scores) == 3
    again = sweep(*arguments, networks=["fine0", "deadly", "fine1", "fine2"], CUDA_VISIBLE_DEVICES="4,7")
    assert again.returncode == 0, again.stderr
    assert "4 jobs, 3 finished before" in again.stderr
    assert len(list(sweep.folder.glob("*/score.json"))) == 4
    assert all(path.stat().st_mtime_ns == when for path, when in scores.items())


@pytest.mark.slow
def test_four_jobs_of_two_processes_at_once_have_a_folder_and_a_port_each(sweep):
    done = sweep("hydra/launcher=joblib", "hydra.launcher.n_jobs=4", "trainer=ddp", "seed=0,1,2,3")
    assert done.returncode == 0, done.stderr
    found = [json.loads(path.read_text()) for path in sweep.folder.glob("*/outcome.json")]
    assert [o["status"] for o in found] == [0, 0, 0, 0]
    assert len(list(sweep.folder.glob("*/score.json"))) == 4
    assert len([p for p in sweep.folder.iterdir() if p.is_dir()]) == 4
    one = sweep("seed=0", "hydra/launcher=basic", f"paths.output_dir={sweep.home / 'one'}")
    assert one.returncode == 0, one.stderr
    (single,) = (sweep.home / "one").rglob("score.json")
    digests = {json.loads(p.read_text())["digest"] for p in sweep.folder.glob("*/score.json")}
    assert json.loads(single.read_text())["digest"] in digests


@pytest.mark.slow
def test_a_sweep_of_jobs_on_several_processes_makes_one_folder_a_job(sweep):
    done = sweep("trainer=ddp", "seed=0,1,2")
    assert done.returncode == 0, done.stderr
    assert len(list(sweep.folder.glob("*/score.json"))) == 3
    assert len([p for p in sweep.folder.iterdir() if p.is_dir()]) == 3
    again = sweep("trainer=ddp", "seed=0,1,2")
    assert again.stdout.count("already finished, skipped") == 3


@pytest.mark.slow
def test_a_job_that_takes_too_long_is_ended_and_named(sweep):
    done = sweep("hydra/launcher=joblib", "hydra.launcher.timeout_min=0.02", "seed=0,1")
    assert done.returncode == 3
    assert "longer than hydra.launcher.timeout_min=0.02" in done.stderr or "left no result" in done.stderr


@pytest.mark.ray
def test_three_jobs_on_ray(sweep):
    pytest.importorskip("ray", reason="pip install 'humanlike[ray]'")
    done = sweep("hydra/launcher=ray", "hydra.launcher.cpus_per_job=1", networks=["fine0", "fine1", "fine2"])
    assert done.returncode == 0, done.stderr
    assert {name: o["status"] for name, o in outcomes(sweep.folder).items()} == {"fine0": 0, "fine1": 0, "fine2": 0}
    again = sweep("hydra/launcher=ray", "hydra.launcher.cpus_per_job=1", networks=["fine0", "fine1", "fine2"])
    assert "3 jobs, 3 finished before" in again.stderr


@pytest.mark.ray
def test_a_job_that_dies_on_ray_is_named(sweep):
    pytest.importorskip("ray", reason="pip install 'humanlike[ray]'")
    (sweep.home / "deadly").touch()
    done = sweep("hydra/launcher=ray", "hydra.launcher.cpus_per_job=1", networks=["fine0", "deadly"])
    assert done.returncode == 3, done.stderr
    assert "its Ray task died" in outcomes(sweep.folder)["deadly"]["why"]
    assert outcomes(sweep.folder)["fine0"]["status"] == 0


def test_what_cannot_run_is_refused_before_anything_starts(sweep):
    done = sweep("hydra/launcher=joblib", "trainer=ddp_nodes", "trainer.num_nodes=3", "seed=0,1")
    assert done.returncode == 2
    assert "trainer.num_nodes=3 needs a cluster: hydra/launcher=submitit_slurm" in done.stderr
    assert not list(sweep.folder.glob("*/score.json"))
