"""`humanlike plan`: what it predicts is compared with what a run then takes; what does not fit is refused."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from humanlike import evaluate
from humanlike.entry import plan_costs
from humanlike.entry.conf import compose
from humanlike.entry.plan import LIMITS, Plan, available_memory, expanded, free_disk, main, plan_job, refusals
from humanlike.readouts import LogisticReadout

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
DOODLES = ["backbone=random_tiny", "dataset.concepts=5", "dataset.instances=5"]
GB = 10**9


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_sweeps_are_expanded_as_hydra_does():
    assert expanded(["seed=0,1", "backbone=a,b"], False) == [["seed=0,1", "backbone=a,b"]]
    jobs = expanded(["seed=range(0,2)", "backbone=a,b", "+x=[1,2]"], True)
    assert jobs == [[f"seed={seed}", f"backbone={backbone}", "+x=[1,2]"] for seed in (0, 1) for backbone in ("a", "b")]


@pytest.mark.slow
def test_disk_is_what_a_run_then_writes_and_nothing_is_planned_twice(tmp_path):
    settings = [*DOODLES, f"paths.cache={tmp_path / 'cache'}", "extraction.pool=none"]
    plan = plan_job(compose("evaluate", settings), "job")
    assert plan.facts["computed"] == 100
    assert not (tmp_path / "cache").exists()  # a plan writes nothing
    evaluate(
        "random_tiny", dataset__concepts=5, dataset__instances=5, benchmark__replicates=20, benchmark__splits=5,
        extraction__num_workers=0, extraction__pool="none", paths__cache=str(tmp_path / "cache"),
    )  # fmt: skip
    written = sum(p.stat().st_size for p in (tmp_path / "cache").rglob("*.safetensors"))
    assert plan.disk - plan_costs.RUN_FOLDER == pytest.approx(written, rel=0.25)
    again = plan_job(compose("evaluate", settings), "job")
    assert again.facts["computed"] == 0
    assert again.disk == plan_costs.RUN_FOLDER
    assert again.minutes < plan.minutes


@pytest.mark.slow
def test_requests_are_one_a_sketch_with_elements_until_they_are_answered(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    settings = [
        *DOODLES, "benchmark=sea", "judge=endpoint", "judge.client.model=m", f"paths.cache={tmp_path}",
        "judge.client.base_url=http://127.0.0.1:9/v1",
    ]  # fmt: skip
    config = compose("evaluate", settings)
    plan = plan_job(config, "job")
    assert plan.requests == 100
    assert 0 < plan.tokens < plan.tokens_at_most
    from humanlike.entry.targets import build

    benchmark, data = build(config.benchmark), build(config.dataset)
    question = next(iter(benchmark.judge.questions(data, benchmark.element_lists(data))))
    client = benchmark.judge.client
    key = question.key(client.model, client.revision, client.parameters, client.structured)
    client.cache.put(key, {"present": {}, "probability": {}}, client.source, question.topic, 10)
    client.close()
    assert plan_job(config, "job").requests == 99


def test_the_cost_of_a_readout_grows_with_its_products():
    small, wide = (plan_costs.readout_seconds(2000, d, 40, 5) for d in (128, 1024))
    assert wide > 2 * small


@pytest.mark.slow
def test_the_time_of_a_readout_is_predicted():
    rng = np.random.default_rng(0)
    label_N = rng.integers(0, 20, 2000)
    f_ND = rng.normal(size=(2000, 600)) + rng.normal(size=(20, 600))[label_N]
    readout = LogisticReadout()
    started = os.times()
    readout.out_of_fold_proba(f_ND.astype(np.float32), label_N, 20)
    ended = os.times()
    taken = ended.user - started.user + ended.system - started.system
    predicted = plan_costs.readout_seconds(2000, 600, 20, 5, int(np.mean(readout.n_iter_)))
    assert 1 / 4 < predicted / taken < 4  # it also standardises, searches along lines and certifies


def made(**changes) -> Plan:
    facts = {"items": 10_000, "computed": 10_000, "widest": 200_704, "batch_bytes": GB, "micro_batch": 32,
             "projection": "gaussian"}  # fmt: skip
    plan = Plan("job", 100.0, 45 * GB, 10 * GB, 500, 10_000, 90_000, (), facts)
    return dataclasses.replace(plan, **changes)


def test_what_does_not_fit_is_refused_with_the_setting_that_does():
    (sentence,) = refusals(made(), {"memory-gb": 12.0, "disk-gb": 100.0}, Path("."))
    width = int(re.search(r"extraction\.max_features=(\d+) would fit", sentence)[1])
    fixed = made().memory - 10_000 * 200_704 * plan_costs.BYTES_OF_FEATURES
    assert fixed + 10_000 * width * plan_costs.BYTES_OF_FEATURES <= 12 * GB
    assert fixed + 10_000 * 2 * width * plan_costs.BYTES_OF_FEATURES > 12 * GB
    (sentence,) = refusals(made(), {"memory-gb": 100.0, "disk-gb": 1.0}, Path("."))
    width = int(re.search(r"extraction\.max_features=(\d+) would fit", sentence)[1])
    assert 10 * GB * width / 200_704 <= 1 * GB


def test_a_large_forward_pass_asks_for_a_smaller_micro_batch():
    facts = {**made().facts, "widest": 100, "batch_bytes": 8 * GB}
    (sentence,) = refusals(made(memory=9 * GB, facts=facts), {"memory-gb": 3.5, "disk-gb": 100.0}, Path("."))
    assert "extraction.micro_batch=8 would fit" in sentence
    (sentence,) = refusals(made(memory=9 * GB, facts=facts), {"memory-gb": 0.5, "disk-gb": 100.0}, Path("."))
    assert "take a smaller backbone" in sentence


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"minutes": 50.0}, "projection=srft"),
        ({"requests": 499.0}, "500 requests, 499 allowed"),
        ({"tokens": 9999.0}, "10000 tokens, 9999 allowed"),
    ],
)
def test_minutes_requests_and_tokens_have_limits_too(limits, said):
    room = {"memory-gb": 100.0, "disk-gb": 100.0}
    (sentence,) = refusals(made(), {**room, **limits}, Path("."))
    assert said in sentence
    assert refusals(made(), {**room, "minutes": 100.0, "requests": 500.0, "tokens": 10_000.0}, Path(".")) == []


def test_this_machine_has_memory_and_disk(tmp_path):
    assert 1e8 < available_memory() < 1e14
    assert free_disk(tmp_path / "not" / "there") == free_disk(tmp_path) > 0


def code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code


@pytest.mark.slow
def test_a_sweep_is_added_up_and_refused(tmp_path, capsys):
    cache = f"paths.cache={tmp_path}"
    assert code("-m", "backbone=random_tiny", "dataset.concepts=3", "dataset.instances=5", "seed=0,1", cache) == 0
    assert "2 jobs, one" in " ".join(capsys.readouterr().out.split())
    assert code("backbone=random_tiny", "dataset.concepts=3", "dataset.instances=5", cache, "--memory-gb", "0.1") == 1
    assert "does not fit: " in capsys.readouterr().err
    assert code("--help") == 0
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in LIMITS)


def test_wrong_use_is_named():
    from humanlike.entry.overrides import OverrideError

    for arguments, said in (
        (["--memory", "3"], "no option '--memory'"),
        (["--minutes", "x"], "needs a number of 0 or more, got 'x'"),
        (["--minutes", "nan"], "needs a number of 0 or more, got 'nan'"),
        (["--tokens=-1"], "needs a number of 0 or more"),
        (["task=generator"], "'task=generator' is a setting of a training"),
    ):
        with pytest.raises(OverrideError, match=said):
            main(arguments)


# Of this program alone: the peak that the system tells of a child includes the process that it was forked from.
PEAK = """
import runpy, sys
sys.argv = sys.argv[1:]
try:
    if sys.argv[0] == "-m":
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def peak_of(program: list[str], environment: dict[str, str], folder: Path) -> tuple[int, str]:
    """Peak memory in bytes of a Python program, and what it printed."""
    command = [sys.executable, "-c", PEAK, *program]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, text=True
    )
    assert done.returncode == 0, done.stdout
    return int(re.search(r"VmHWM:\s*(\d+) kB", done.stdout)[1]) * 1024, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_is_what_a_run_then_takes(command, tmp_path):
    settings = ["backbone=tf_efficientnet_lite0", "dataset.concepts=6", "dataset.instances=6", "benchmark.splits=5",
                "benchmark.replicates=100", "extraction.num_workers=0", f"paths.cache={tmp_path}/cache"]  # fmt: skip
    _, said = peak_of(["-m", "humanlike", "plan", *settings], command.environment, tmp_path)
    predicted = float(re.search(r"([\d.]+) GB", said)[1]) * GB
    run = [str(command.repository / "evaluate.py"), *settings, f"hydra.run.dir={tmp_path / 'run'}"]
    taken, _ = peak_of(run, command.environment, tmp_path)
    assert predicted == pytest.approx(taken, rel=0.5)
    assert bytes_below(tmp_path / "run") < 2 * plan_costs.RUN_FOLDER
