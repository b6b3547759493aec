"""Jobs on several processes: how they start, where they write, and that one of them dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from humanlike import processes
from humanlike.entry.conf import compose
from humanlike.entry.evaluate import score_from_config
from humanlike.entry.several_processes import event_log, moment, start_by_fork, watch_children

CPU = {"accelerator": "cpu", "devices": 2, "strategy": "auto"}
FOREIGN = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No starter's words in the environment."""
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def environment(monkeypatch):
    """`environment({...})` sets what a starter would."""

    def put(words):
        for name, value in words.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
@pytest.mark.parametrize(
    ("settings", "words", "forks"),
    [
        (CPU, {}, True),
        (CPU | {"devices": "2"}, {}, True),
        (CPU | {"devices": 1}, {}, False),
        (CPU | {"devices": "auto"}, {}, False),
        (CPU | {"strategy": "ddp"}, {}, False),
        (CPU | {"accelerator": "gpu"}, {}, False),
        (CPU | {"num_nodes": 2}, {}, False),
        (CPU, {"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "2"}, False),
        (CPU, {"SLURM_NTASKS": "2", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, False),
        (CPU, {"SLURM_NTASKS": "1"}, True),
    ],
)
def test_processes_of_one_cpu_are_forked(environment, settings, words, forks):
    environment(words)
    assert start_by_fork(settings).get("strategy") == ("ddp_fork" if forks else None)


def test_all_processes_of_a_run_find_one_folder(environment):
    assert moment("2026-01-31", "12-00-00") == "2026-01-31/12-00-00"
    environment({"TORCHELASTIC_RUN_ID": "none", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"})
    one = moment("2026-01-31", "23-59-59")
    environment({"RANK": "0", "LOCAL_RANK": "0"})
    assert moment("2026-02-01", "00-00-00") == one
    environment({"MASTER_PORT": "29501"})
    assert moment("2026-02-01", "00-00-00") != one


def test_slurm_starts_a_job_again_in_its_folder(environment):
    environment({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1", "SLURM_JOB_ID": "17"})
    first = moment("2026-01-31", "12-00-00")
    environment({"SLURM_RESTART_COUNT": "1", "SLURM_PROCID": "0"})
    assert moment("2026-02-03", "01-00-00") == first == "slurm-17.0"


def test_the_first_process_alone_writes_the_log_of_the_run(environment, tmp_path):
    event_log(tmp_path).write("started")
    environment({"LOCAL_RANK": "1", "WORLD_SIZE": "2"})
    event_log(tmp_path).write("started")
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.jsonl")) == ["log.jsonl", "processes/1.jsonl"]
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", r"process 2 of 3 was killed (SIGKILL); its messages stand above"),
        ("raise SystemExit(4)", r"process 2 of 3 failed (exit status 4); its messages stand above"),
    ],
)
def test_a_child_that_dies_ends_all_with_a_sentence(monkeypatch, code, words):
    monkeypatch.setattr(processes, "GRACE_S", 0.1)
    said = []
    children = [subprocess.Popen([sys.executable, "-c", what]) for what in (code, "import time; time.sleep(60)")]
    watch_children(children, 3, said.append)
    deadline = time.monotonic() + 20
    while not said and time.monotonic() < deadline:
        time.sleep(0.02)
    assert said == [words]
    assert children[1].wait(5) == -signal.SIGKILL


def settings_of(*more):
    return [*more, "backbone=random_tiny", "dataset.concepts=4", "dataset.instances=5", "benchmark.replicates=10"]


BENCHMARKS = {
    "seva": settings_of("benchmark.splits=5"),
    "seva_layers": settings_of("benchmark=seva_layers", "benchmark.layers=spread:3", "benchmark.splits=5"),
    "sea": settings_of("benchmark=sea"),
    "object_learning": [
        *("benchmark=object_learning", "dataset=novel_objects", "backbone=random_tiny", "dataset.subtasks=3"),
        *("dataset.images=12", "dataset.warmup=8", "dataset.size=48", "dataset.people=none", "benchmark.size=48"),
        *("benchmark.layers=spread:2", "benchmark.sessions=20", "benchmark.replicates=10", "benchmark.num_features=64"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_on_several_processes_has_the_digest_and_scores_of_one(name, tmp_path):
    found = {}
    for devices in (1, 2, 3, 7):
        more = [f"trainer.devices={devices}", f"paths.cache={tmp_path}/{devices}"]
        more += ["extraction.num_workers=0", "extraction.micro_batch=4"]
        config = compose("evaluate", [*BENCHMARKS[name], *more])
        score, _ = score_from_config(config)
        assert score.result.details["extraction"]["processes"] == devices
        found[devices] = score
    one = found.pop(1)
    for score in found.values():
        assert score.digest == one.digest
        assert {k: v for k, v in score.hashes.items() if k != "config"} == {
            k: v for k, v in one.hashes.items() if k != "config"
        }
        assert score.result.scores.keys() == one.result.scores.keys()
        for key, expected in one.result.scores.items():
            value = score.result.scores[key].value
            same = value is None if expected.value is None else value == pytest.approx(expected.value, rel=0, abs=1e-12)
            assert same, key


@pytest.fixture(scope="module")
def calm(command, small, tmp_path_factory):
    """The score of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("calm")
    done = command("evaluate.py", *small, "logger=none", "report=false", f"hydra.run.dir={folder}")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "score.json").read_text())


@pytest.mark.slow
def test_torchrun_has_one_folder_one_log_and_the_digest_of_one(command, small, calm, tmp_path):
    arguments = [*small, "report=false", "trainer=ddp", f"paths.output_dir={tmp_path}/out", f"paths.cache={tmp_path}/c"]
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*run, str(command.repository / "evaluate.py"), *arguments],
        cwd=tmp_path,
        env=command.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (score,) = tmp_path.rglob("score.json")
    record = json.loads(score.read_text())
    assert record["digest"] == calm["digest"]
    assert record["details"]["extraction"]["processes"] == 2
    assert len(list((tmp_path / "out").rglob("log.jsonl"))) == 1
    assert len(list(score.parent.rglob("metrics.csv"))) == 1
    events = [json.loads(line)["event"] for line in (score.parent / "log.jsonl").read_text().splitlines()]
    assert events.count("started") == events.count("finished") == 1
    assert done.stdout.count("written to") == 1


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_second_process_ends_the_run_with_its_name_and_the_run_goes_on(command, small, calm, tmp_path):
    folder = tmp_path / "run"
    arguments = [*small, "logger=none", "report=false", f"hydra.run.dir={folder}", f"paths.cache={tmp_path}/cache"]
    process = subprocess.Popen(
        [sys.executable, "evaluate.py", *arguments, "trainer=ddp", "trainer.devices=2"],
        cwd=command.repository,
        env=command.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    second = folder / "processes" / "1.jsonl"  # the second process has begun
    deadline = time.monotonic() + 200
    while not second.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True)
    (child,) = [int(line.split()[0]) for line in children.stdout.splitlines() if "evaluate.py" in line]
    os.kill(child, signal.SIGKILL)
    killed = time.monotonic()
    try:
        said = process.communicate(timeout=60)[1]
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert time.monotonic() - killed < 60
    assert process.returncode == 1, said
    assert "process 2 of 2" in said
    assert "Traceback" not in said
    assert json.loads((folder / "log.jsonl").read_text().splitlines()[-1])["event"] == "failed"
    again = command("evaluate.py", *arguments, "trainer.devices=3")
    assert again.returncode == 0, again.stderr
    assert json.loads((folder / "score.json").read_text())["digest"] == calm["digest"]
