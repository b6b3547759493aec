"""Jobs on several processes: how they start, where they write, and that one of them dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl

from humanlike import processes
from humanlike.data.doodles import doodles
from humanlike.data.svg import drawing_to_svg
from humanlike.entry.conf import compose
from humanlike.entry.environment import is_first_process
from humanlike.entry.evaluate import config_hash, score_from_config
from humanlike.entry.several_processes import event_log, guard, moment, require_machines, start_by_fork, watch_children
from humanlike.entry.targets import build
from humanlike.reports.config_record import masked_config

CPU = {"accelerator": "cpu", "devices": 2, "strategy": "auto"}
FOREIGN = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "NODE_RANK",
    "SLURM_STEP_ID",
    "SLURM_NTASKS",
    "SLURM_PROCID",
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


@pytest.mark.parametrize(
    ("settings", "words", "fine"),
    [
        (CPU, {}, True),
        (CPU | {"num_nodes": 2}, {}, False),
        (CPU | {"num_nodes": 2}, {"NODE_RANK": "0"}, True),
        (CPU | {"num_nodes": 2}, {"SLURM_NTASKS": "4"}, True),
        (CPU | {"num_nodes": 2}, {"TORCHELASTIC_RUN_ID": "none", "RANK": "0", "WORLD_SIZE": "4"}, True),
    ],
)
def test_machines_that_nobody_starts_are_not_waited_for(environment, settings, words, fine):
    environment(words)
    with contextlib.nullcontext() if fine else pytest.raises(ValueError, match="num_nodes=2 waits for 1 more"):
        require_machines(settings)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ({}, True),
        ({"RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"RANK": "2", "LOCAL_RANK": "0"}, False),
        ({"LOCAL_RANK": "1"}, False),
        ({"NODE_RANK": "0", "LOCAL_RANK": "0"}, True),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"SLURM_PROCID": "1"}, False),
    ],
)
def test_one_process_of_all_machines_is_the_first(environment, words, first):
    environment(words)
    assert is_first_process() is first


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
    environment({"WORLD_SIZE": "0", "LOCAL_RANK": "0", "NODE_RANK": "1"})
    event_log(tmp_path).write("started")
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.jsonl")) == [
        "log.jsonl",
        "processes/1.jsonl",
        "processes/1000.jsonl",
    ]
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_a_process_that_was_started_by_hand_outlives_its_shell(environment, tmp_path):
    environment({"NODE_RANK": "1", "LOCAL_RANK": "0"})
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", logger=False)
    guard(trainer, tmp_path)
    assert not {"humanlike-parent-watch", "humanlike-process-watch"} & {t.name for t in threading.enumerate()}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted under Linux")
def test_the_log_of_the_run_before_is_closed(environment, tmp_path):
    event_log(tmp_path / "first").write("started")
    before = len(os.listdir("/proc/self/fd"))
    for i in range(4):
        event_log(tmp_path / str(i)).write("started")
    assert len(os.listdir("/proc/self/fd")) == before


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
    "fixed_labels": settings_of("benchmark=fixed_labels", "readout=logistic", "readout.n_splits=3"),
    "object_learning": [
        *("benchmark=object_learning", "dataset=novel_objects", "backbone=random_tiny", "dataset.subtasks=3"),
        *("dataset.images=12", "dataset.warmup=8", "dataset.size=48", "dataset.people=none", "benchmark.size=48"),
        *("benchmark.layers=spread:2", "benchmark.sessions=20", "benchmark.replicates=10", "benchmark.num_features=64"),
    ],
    "generation": [
        *("benchmark=generation", "backbone=random_tiny", "dataset.concepts=[airplane,lion,taxi]"),
        *("dataset.instances=5", "dataset.judgments=0", "benchmark.judges.doodle_judge.instances=4"),
        *("benchmark.judges.doodle_judge.steps=10", "benchmark.replicates=20", "benchmark.sizes=[64]"),
        "benchmark.credit=1",
    ],
}


def scored(settings, devices, cache, data=None):
    """The score of an evaluation on so many processes."""
    more = [f"trainer.devices={devices}", f"paths.cache={cache}"]
    more += ["extraction.num_workers=0", "extraction.micro_batch=4"]
    return score_from_config(compose("evaluate", [*settings, *more]), data=data)[0]


def assert_equal_scores(score, expected):
    assert score.digest == expected.digest
    assert score.result.scores.keys() == expected.result.scores.keys()
    for key, one in expected.result.scores.items():
        for name in ("value", "ci_low", "ci_high", "ceiling"):
            found, wanted = getattr(score.result.scores[key], name), getattr(one, name)
            assert found is None if wanted is None else found == pytest.approx(wanted, rel=0, abs=1e-12, nan_ok=True), (
                f"{key}.{name}"
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_on_several_processes_has_the_digest_and_scores_of_one(name, tmp_path):
    settings = BENCHMARKS[name]
    if name == "generation":
        (tmp_path / "drawn").mkdir()
        drawn = doodles(["airplane", "lion", "taxi"], instances=2, conditions=[32], judgments=0, seed=3)
        for i, concept in enumerate(drawn.table["concept"]):
            text = drawing_to_svg(drawn.images.drawing(i))
            (tmp_path / "drawn" / f"{concept}-{i:02d}.svg").write_text(text)
        settings = [*settings, f"sketches={tmp_path}/drawn"]
    one = scored(settings, 1, tmp_path / "1")
    for devices in (2, 3, 7):
        score = scored(settings, devices, tmp_path / str(devices))
        assert score.result.details["extraction"].get("processes", devices) == devices
        assert score.hashes == one.hashes
        assert_equal_scores(score, one)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["seva", "sea"])
def test_the_order_of_items_decides_nothing(name, tmp_path):
    """Other items share a micro-batch, a shard and a process, and rows of every table come in another order."""
    data = build(compose("evaluate", BENCHMARKS[name]).dataset)
    mixed = data.select(np.random.default_rng(1).permutation(len(data)))
    assert list(mixed.table["sketch_id"]) != list(data.table["sketch_id"])
    one, two = scored(BENCHMARKS[name], 1, tmp_path / "1", data), scored(BENCHMARKS[name], 2, tmp_path / "2", mixed)
    assert_equal_scores(two, one)
    assert two.hashes["data"] != one.hashes["data"], "the order is part of what is recorded of the data"


def settings_hash(*overrides, command="evaluate"):
    return config_hash(masked_config(compose(command, list(overrides))))


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        (["trainer=ddp", "trainer.devices=4"], True),
        (["trainer=ddp", "+trainer.num_nodes=2"], True),
        (["extraction.num_workers=0"], True),
        (["trainer=gpu"], False),
        (["extraction.threads=2"], False),
        (["extraction.micro_batch=16"], False),
    ],
)
def test_a_finished_run_is_finished_whoever_shares_its_images(settings, same):
    assert (settings_hash() == settings_hash(*settings)) == same


def test_a_training_on_more_processes_is_another_one():
    assert settings_hash(command="train") != settings_hash("trainer.devices=2", command="train")


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
    finished = command("evaluate.py", *arguments, "trainer=ddp", "trainer.devices=2")
    assert finished.returncode == 0, finished.stderr
    assert "already finished, skipped" in finished.stdout
