"""Sweeps on a real Slurm: arrays, devices, cancelled and dying jobs, requeues."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1500)]

NETWORKS = """
import os, pathlib, time, torch
HERE = pathlib.Path(__file__).parent

def make(number, pause=0.0):
    weight = torch.randn(192, 8, generator=torch.Generator().manual_seed(number))
    def network(images):
        time.sleep(pause)
        return torch.nn.functional.adaptive_avg_pool2d(images, 8).flatten(1) @ weight
    return network

def deadly(images):
    if (HERE / "deadly").exists():
        os._exit(7)
    return make(99)(images)

slow = make(98, pause=1.0)
fast = {f"fast{i}": make(i) for i in range(10)}
globals().update(fast)
"""
PATHS = [*(f"networks:fast{i}" for i in range(10)), "networks:slow", "networks:deadly"]


@pytest.fixture(scope="module")
def sweep(slurm, repository, tmp_path_factory):
    """Start a sweep of the demo on Slurm as a user does; `finish` waits for its end."""
    home = tmp_path_factory.mktemp("sweep")
    (home / "networks.py").write_text(NETWORKS)
    environment = {
        **slurm.environment,
        "PYTHONPATH": str(home),
        "HUMANLIKE_CACHE": str(home / "cache"),
        "OMP_NUM_THREADS": "1",
        "WANDB_MODE": "offline",
        "COLUMNS": "300",
    }

    def start(*arguments, paths=PATHS):
        command = [
            sys.executable, str(repository / "evaluate.py"), "-m", "hydra/launcher=submitit_slurm", "backbone=callable",
            f"backbone.path={','.join(paths)}", "backbone.transform.size=64", "dataset.concepts=4",
            "dataset.instances=5", "dataset.size=64", "benchmark.replicates=20", "benchmark.splits=5", "report=false",
            "extraction.num_workers=0", "extraction.micro_batch=8",
            "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=1", "hydra.launcher.poll_s=0.5",
            f"paths.output_dir={home / 'out'}", *arguments,
        ]  # fmt: skip
        return subprocess.Popen(
            command, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    start.folder = home / "out" / "sweeps" / "evaluate"
    start.home = home
    return start


def outcomes(folder):
    """Name of the network → (folder, outcome) of the jobs of a sweep."""
    found = {}
    for path in folder.glob("*/outcome.json"):
        outcome = json.loads(path.read_text())
        name = next(p for p in outcome["overrides"].split(",") if p.startswith("backbone.path="))
        found[name.partition(":")[2]] = (path.parent, outcome)
    return found


def wait_for(holds, process, seconds=600):
    for _ in range(seconds * 5):
        found = holds()
        if found:
            return found
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.2)
    raise AssertionError("it did not happen in time")


def test_a_sweep_of_twelve_survives_a_death_and_a_cancelled_job(slurm, sweep):
    (sweep.home / "deadly").touch()
    process = sweep("logger=[csv,wandb]", "hydra.launcher.gpus_per_node=1", "hydra.launcher.grace_s=20")

    def slow_at_work():
        folder, outcome = outcomes(sweep.folder).get("slow", (None, {"status": 0}))
        return folder if outcome["status"] is None and list(folder.rglob("offline-run-*")) else None

    folder = wait_for(slow_at_work, process)
    before = json.loads((folder / "outcome.json").read_text())
    job = json.loads((folder / ".slurm.json").read_text())["job"]
    slurm.run("scancel", job)
    wait_for(lambda: "RUNNING" not in slurm.run("squeue", "-h", "-j", job, "-o", "%T", "--states=all"), process)
    wait_for(lambda: slurm.run("scontrol", "requeue", job, check=False) is not None and requeued(slurm, job), process)
    said = process.communicate(timeout=1200)[1]

    assert process.returncode == 3, said
    found = outcomes(sweep.folder)
    assert len(found) == 12
    assert len(list(sweep.folder.glob("*/score.json"))) == 11
    died = [name for name, (_, outcome) in found.items() if outcome["status"] != 0]
    assert died == ["deadly"]
    assert "ended without a result" in found["deadly"][1]["why"]
    assert "1 of 12 jobs did not end well" in said
    # one device a job: Slurm gave each job one of the two
    assert {outcome["devices"] for _, outcome in found.values()} <= {"0", "1"}
    # the cancelled job went on in its own folder, in another process, as the same run
    after = found["slow"][1]
    assert found["slow"][0] == folder
    assert (after["status"], after["process"] != before["process"]) == (0, True)
    runs = {path.name for path in folder.rglob("run-*.wandb") if path.is_file()}
    assert len(runs) == 1

    (sweep.home / "deadly").unlink()
    ends = {name: outcome["finished"] for name, (_, outcome) in found.items() if name != "deadly"}
    scores = {path: path.stat().st_mtime_ns for path in sweep.folder.glob("*/score.json")}
    again = sweep("logger=[csv,wandb]", "hydra.launcher.gpus_per_node=1")
    said = again.communicate(timeout=600)[1]
    assert again.returncode == 0, said
    assert "12 jobs, 11 finished before" in said
    assert "Slurm: 1 tasks, 1 jobs submitted" in said
    assert len(list(sweep.folder.glob("*/score.json"))) == 12
    assert all(path.stat().st_mtime_ns == when for path, when in scores.items())
    assert len(ends) == 11


def requeued(slurm, job):
    state = slurm.run("squeue", "-h", "-j", job, "-o", "%T", "--states=all", check=False)
    return any(word in state for word in ("PENDING", "RUNNING", "CONFIGURING"))


def test_a_launcher_that_is_killed_finds_its_jobs_in_the_queue(slurm, sweep):
    arguments, paths = ("logger=none", "seed=5"), ["networks:fast0", "networks:slow"]
    before, jobs = set(sweep.folder.glob("*")), all_jobs(slurm)
    first = sweep(*arguments, paths=paths)
    wait_for(lambda: len({p.parent for p in sweep.folder.glob("*/.slurm.json")} - before) == 2, first)
    first.kill()
    first.communicate()
    again = sweep(*arguments, paths=paths)
    said = again.communicate(timeout=900)[1]
    assert again.returncode == 0, said
    new = {path.parent for path in sweep.folder.glob("*/outcome.json")} - before
    assert [(folder / "score.json").is_file() for folder in new] == [True, True]
    assert len(all_jobs(slurm) - jobs) == 2, "nothing was submitted twice"


def all_jobs(slurm):
    return set(slurm.run("squeue", "-h", "--array", "--states=all", "-o", "%i").split())


def test_two_tasks_a_node_are_two_processes_of_one_job(slurm, sweep):
    before, jobs = set(sweep.folder.glob("*/score.json")), all_jobs(slurm)
    process = sweep("logger=none", "seed=7", "trainer=ddp", "hydra.launcher.tasks_per_node=2", paths=["networks:fast1"])
    said = process.communicate(timeout=900)[1]
    assert process.returncode == 0, said
    (new,) = set(sweep.folder.glob("*/score.json")) - before
    counts = json.loads(new.read_text())["counts"]
    assert counts["items_used"] == counts["items_total"]
    (job,) = all_jobs(slurm) - jobs
    logs = sorted(path.name for path in (sweep.folder / ".submitit").rglob(f"{job}_*_log.out"))
    assert logs == [f"{job}_0_log.out", f"{job}_1_log.out"]


def test_tasks_that_differ_from_devices_are_refused_before_submission(slurm, sweep):
    def queued():
        return set(slurm.run("squeue", "-h", "-o", "%A").split())

    before = queued()  # a job of the test before may still be ending
    process = sweep("trainer=ddp", paths=["networks:fast0"])
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert "hydra.launcher.tasks_per_node=2" in said
    assert queued() <= before, "no job was submitted"
