"""What every launcher does around starting jobs."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from humanlike.entry.job_folder import job_folder
from humanlike.entry.launch import settings_digest
from humanlike.entry.outcomes import read_outcome, record_outcome, record_start
from humanlike.entry.sweep_launcher import SweepLauncher, SweepTask, devices_a_job, in_groups
from humanlike.entry.termination import deadline


class Context:
    """In place of Hydra's: composes a configuration from overrides `key=value`."""

    def __init__(self, folder):
        self.folder = folder
        self.config_loader = self

    def load_sweep_config(self, master, overrides):
        name = ",".join(overrides)
        hydra = {
            "job": {"name": "evaluate", "override_dirname": name},
            "sweep": {"dir": str(self.folder), "subdir": job_folder(name)},
        }
        settings = dict(o.split("=") for o in overrides)
        return OmegaConf.create({"hydra": hydra, "resume": True, "trainer": {"devices": 1}, **settings})


class Script(SweepLauncher):
    """Runs jobs as told: `ok` ends well, `bad` fails, `dies` begins and ends without a word and stops the batch."""

    def __init__(self, fates):
        super().__init__()
        self.fates, self.batches = fates, []

    def run(self, todo):
        self.batches.append([p.job.number for p in todo])
        for planned in todo:
            fate = self.fates[planned.dirname]
            if fate == "never":
                continue
            config = planned.job.config()
            del config["hydra"]
            settings = settings_digest(config)
            record_start(planned.folder, planned.dirname, settings)
            if fate == "dies":
                return {planned.job.number: "killed by signal 9"}
            (planned.folder / "score.json").write_text("{}")
            status, value = (0, float(planned.job.number)) if fate == "ok" else (1, None)
            record_outcome(planned.folder, status, planned.dirname, "no" * status, identity=settings, value=value)
        return {}


def launcher(folder, fates):
    made = Script(fates)
    master = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}, "hydra_logging": None, "verbose": False}})
    made.setup(hydra_context=Context(folder), task_function=print, config=master)
    return made


JOBS = [["seed=0"], ["seed=1"], ["seed=2"], ["seed=3"]]


def test_a_job_that_dies_is_named_and_the_others_go_on(tmp_path):
    made = launcher(tmp_path, {"seed=0": "ok", "seed=1": "dies", "seed=2": "bad", "seed=3": "ok"})
    returned = made.launch(JOBS, 0)
    assert made.batches == [[0, 1, 2, 3], [2, 3]], "the dead one is not begun again"
    assert [r.return_value for r in returned] == [0.0, None, None, 3.0]
    dead = read_outcome(tmp_path / "seed=1")
    assert (dead["status"], dead["why"]) == (1, "killed by signal 9")


def test_the_same_sweep_again_runs_only_what_did_not_end_well(tmp_path, capsys):
    launcher(tmp_path, {"seed=0": "ok", "seed=1": "dies", "seed=2": "bad", "seed=3": "ok"}).launch(JOBS, 0)
    again = launcher(tmp_path, dict.fromkeys(("seed=0", "seed=1", "seed=2", "seed=3"), "ok"))
    returned = again.launch(JOBS, 0)
    assert again.batches == [[1, 2]]
    assert [r.return_value for r in returned] == [0.0, 1.0, 2.0, 3.0]
    assert read_outcome(tmp_path / "seed=0")["skipped"]
    assert "4 jobs, 2 finished before" in capsys.readouterr().err


def test_jobs_that_cannot_begin_do_not_loop(tmp_path):
    made = launcher(tmp_path, {"seed=0": "never", "seed=1": "never", "seed=2": "ok", "seed=3": "never"})
    made.launch(JOBS, 0)
    assert made.batches == [[0, 1, 2, 3], [0, 1, 3]]
    assert {read_outcome(tmp_path / f"seed={i}")["status"] for i in (0, 1, 3)} == {1}


def test_several_machines_need_a_cluster(tmp_path, capsys):
    made = launcher(tmp_path, {})
    with pytest.raises(ValueError, match=r"num_nodes=2 needs a cluster: .* hydra.launcher.tasks_per_node=4"):
        made.check([{"num_nodes": 2, "devices": 4}])


def test_a_deadline_ends_what_takes_too_long():
    started = time.monotonic()
    with pytest.raises(TimeoutError, match=r"longer than hydra.launcher.timeout_min=0.001"), deadline(0.001):
        time.sleep(5)
    assert time.monotonic() - started < 4
    with deadline(0.001):
        pass
    time.sleep(0.08)
    with deadline(None):
        pass


def test_groups_and_devices():
    assert in_groups([1, 2, 3, 4, 5], 2) == [(1, 2), (3, 4), (5,)]
    jobs = [SimpleNamespace(trainer={"accelerator": "cpu", "devices": 4}), SimpleNamespace(trainer={"devices": 3})]
    assert devices_a_job(jobs) == 0
    assert devices_a_job([*jobs, SimpleNamespace(trainer={"accelerator": "gpu", "devices": 2})]) == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_jobs": 0}, "hydra.launcher.n_jobs must be a whole number, 1 or more, got 0"),
        ({"n_jobs": "two"}, "hydra.launcher.n_jobs must be a whole number, 1 or more, got 'two'"),
        ({"jobs_per_task": 1.5}, "hydra.launcher.jobs_per_task must be a whole number, 1 or more, got 1.5"),
        ({"timeout_min": -1}, "hydra.launcher.timeout_min must be a number above 0, got -1"),
        ({"mem_gb": True}, "hydra.launcher.mem_gb must be a number above 0, got True"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(settings, said, tmp_path, capsys):
    made = launcher(tmp_path, {"seed=0": "ok"})
    made.settings = settings
    with pytest.raises(SystemExit) as left:
        made.launch(JOBS[:1], 0)
    assert left.value.code == 2
    assert capsys.readouterr().err == f"error: {said}\n"
    assert made.batches == []


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (ValueError("every job uses 2 devices and 1 can be shared"), 2, "error: every job uses 2 devices"),
        (ConnectionError("no cluster at ray://a:1"), 1, "error: no cluster at ray://a:1"),
        (KeyboardInterrupt(), 130, "interrupted: what was computed so far is kept; the same command again"),
    ],
)
def test_a_launcher_that_cannot_work_or_is_stopped_says_so_in_one_sentence(raised, status, said, tmp_path, capsys):
    made = launcher(tmp_path, {"seed=0": "ok"})

    def run(todo):
        raise raised

    made.run = run
    with pytest.raises(SystemExit) as left:
        made.launch(JOBS[:1], 0)
    assert left.value.code == status
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(said)


def test_a_deadline_within_the_reading_of_a_configuration_ends_that_job_alone(capsys):
    """OmegaConf wraps what is raised while it resolves a value; the other jobs of the process still run."""
    done = []

    def slow():
        OmegaConf.register_new_resolver("slow", lambda: time.sleep(5), replace=True)
        try:
            OmegaConf.to_container(OmegaConf.create({"a": "${slow:}"}), resolve=True)
        finally:
            OmegaConf.clear_resolver("slow")

    SweepTask((slow, lambda: done.append(1)), timeout_min=0.2 / 60)()
    assert done == [1]
    assert "longer than hydra.launcher.timeout_min=0.00333333" in capsys.readouterr().err

    def wrong():
        raise KeyError("no such setting")

    with pytest.raises(KeyError, match="no such setting"):
        SweepTask((wrong,), timeout_min=1)()
