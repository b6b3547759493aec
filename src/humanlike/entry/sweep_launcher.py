"""What all launchers of sweeps do alike: skip what is finished, check before starting, and outlive jobs that die.

A launcher says with `run` how it starts tasks; everything else is here. Results come back through the jobs' folders
(`outcome.json`), not through the launcher, so that a job that dies takes nothing with it.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from hydra.core.utils import JobReturn, JobStatus, configure_log, run_job, setup_globals
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf, open_dict

from humanlike.entry.conf import register_resolvers
from humanlike.entry.launch import FAILED, INTERRUPTED, WRONG_USE, settings_digest
from humanlike.entry.outcomes import OUTCOME, is_finished, read_outcome, record_outcome
from humanlike.entry.own_process import processes_a_node
from humanlike.entry.sentences import sentence
from humanlike.entry.slots import Slots, make_slots
from humanlike.entry.termination import deadline, first_cause, notice_the_end

WHOLE = {"max_num_timeout": 0} | dict.fromkeys(
    ("n_jobs", "jobs_per_task", "cpus_per_job", "nodes", "tasks_per_node", "cpus_per_task", "array_parallelism"), 1
)
"""Settings of launchers that are whole numbers → the least that each may be."""
ABOVE_ZERO = ("timeout_min", "mem_gb", "poll_s")


@dataclass(frozen=True)
class SweepJob:
    """One job of a sweep; can be sent to another process.

    Attributes:
        context: Hydra's context.
        function: The task function that Hydra calls.
        master: The sweep's configuration.
        overrides: What makes the job different.
        number: Its position in the sweep.
        state: Hydra's singletons.
    """

    context: Any
    function: Any
    master: DictConfig
    overrides: tuple[str, ...]
    number: int
    state: Any

    def config(self) -> DictConfig:
        """The job's configuration."""
        config = self.context.config_loader.load_sweep_config(self.master, list(self.overrides))
        with open_dict(config):
            config.hydra.job.id = f"{config.hydra.job.name}_{self.number}"
            config.hydra.job.num = self.number
        return config

    def __call__(self) -> None:
        """Run it in this process."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.core.singleton import Singleton

        setup_globals()
        register_resolvers()
        Singleton.set_state(self.state)
        config = self.config()
        HydraConfig.instance().set_config(config)
        run_job(
            hydra_context=self.context,
            config=config,
            task_function=self.function,
            job_dir_key="hydra.sweep.dir",
            job_subdir_key="hydra.sweep.subdir",
        )


@dataclass(frozen=True)
class SweepTask:
    """Jobs that one process runs, one after another.

    Attributes:
        jobs: The jobs.
        slots: Places on the machine, one of which the process takes; None: it uses what it is given.
        timeout_min: Minutes for every job.
    """

    jobs: tuple[SweepJob, ...]
    slots: Slots | None = None
    timeout_min: float | None = None

    def __call__(self) -> None:
        """Run the jobs; called again after an interruption, it skips those that are finished."""
        if "SUBMITIT_EXECUTOR" in os.environ:
            notice_the_end()
        if self.slots is not None:
            self.slots.take()
        if self.timeout_min is not None:
            # An import that a deadline cuts in two cannot be repeated in the same process.
            import_module("pytorch_lightning")
            import_module("humanlike.entry.pipeline")
        for job in self.jobs:
            try:
                with deadline(self.timeout_min):
                    job()
            except Exception as error:
                cause = first_cause(error)
                if cause is error:
                    raise
                # The time was over before the job could say so itself; the launcher names a job without a result.
                print(f"{cause} (while its configuration was read)", file=sys.stderr)

    def checkpoint(self) -> Any:
        """What submitit runs in place of an interrupted task: the same, which goes on from its files."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


@dataclass(frozen=True)
class Planned:
    """A job with what its configuration says, as seen before it is started.

    Attributes:
        job: The job.
        folder: Its folder.
        dirname: Its overrides as the sweep names them.
        settings: Digest of what decides its result.
        trainer: The trainer's configuration.
        resume: Whether a finished job is skipped.
    """

    job: SweepJob
    folder: Path
    dirname: str
    settings: str
    trainer: Mapping[str, Any]
    resume: bool

    @property
    def done(self) -> bool:
        """Whether the job is finished from an earlier run of the sweep."""
        return self.resume and is_finished(self.folder, self.settings)

    def fail(self, why: str) -> None:
        """Record that the job failed without saying so itself."""
        record_outcome(self.folder, FAILED, self.dirname, why, identity=self.settings)


class SweepLauncher(Launcher):
    """Base of the launchers; those that Hydra finds are in `hydra_plugins.humanlike_launchers`.

    Attributes:
        settings: The launcher's configuration as plain values.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = {
            k: OmegaConf.to_container(v) if OmegaConf.is_config(v) else v for k, v in settings.items()
        }

    def setup(self, *, hydra_context: Any, task_function: Any, config: DictConfig) -> None:
        """Remember what the sweep is about."""
        self.context, self.function, self.master = hydra_context, task_function, config

    @property
    def sweep_dir(self) -> Path:
        """The sweep's folder."""
        return Path(str(self.master.hydra.sweep.dir))

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs that are not finished; every one has an outcome in its folder afterwards."""
        setup_globals()
        configure_log(self.master.hydra.hydra_logging, self.master.hydra.verbose)
        try:
            check_numbers(self.settings)
            self.sweep_dir.mkdir(parents=True, exist_ok=True)
            jobs = self._plan(job_overrides, initial_job_idx)
            self._run_missing(jobs)
        except (ValueError, OSError) as error:  # of the launcher: those of jobs stand in their outcomes
            print(f"error: {sentence(error)}", file=sys.stderr)
            sys.exit(WRONG_USE if isinstance(error, ValueError) else FAILED)
        except KeyboardInterrupt:
            print(
                "interrupted: what was computed so far is kept; the same command again runs what is not finished",
                file=sys.stderr,
            )
            sys.exit(INTERRUPTED)
        return [_returned(planned) for planned in jobs]

    def _run_missing(self, jobs: Sequence[Planned]) -> None:
        todo = []
        for planned in jobs:
            if planned.done:
                value = (read_outcome(planned.folder) or {}).get("value")
                record_outcome(planned.folder, 0, planned.dirname, identity=planned.settings, value=value, skipped=True)
            else:
                todo.append(planned)
        print(f"sweep: {len(jobs)} jobs, {len(jobs) - len(todo)} finished before", file=sys.stderr)
        if todo:
            self.check([p.trainer for p in todo])
            self._run_all(todo)

    def check(self, trainers: Sequence[Mapping[str, Any]]) -> None:
        """Raise ValueError for trainers that cannot work under this launcher; here: those of several machines."""
        for trainer in trainers:
            if int(trainer.get("num_nodes") or 1) > 1:
                raise ValueError(
                    f"trainer.num_nodes={trainer['num_nodes']} needs a cluster: hydra/launcher=submitit_slurm "
                    f"hydra.launcher.nodes={trainer['num_nodes']} "
                    f"hydra.launcher.tasks_per_node={processes_a_node(trainer)}"
                )

    @abstractmethod
    def run(self, todo: Sequence[Planned]) -> Mapping[int, str]:
        """Start the jobs and return when none of them runs any more.

        Args:
            todo: Jobs without an outcome.

        Returns:
            Number of a job → why it died, where that is known.
        """

    def local_slots(self, todo: Sequence[Planned]) -> Slots:
        """This machine's devices and cores, shared between as many jobs side by side as the settings say."""
        return make_slots(
            self.sweep_dir,
            self.settings.get("n_jobs"),
            devices=self.settings.get("devices"),
            devices_a_job=devices_a_job(todo),
        )

    def _run_all(self, todo: list[Planned]) -> None:
        """Run until every job has begun; one that began and left no result has died and is not begun again."""
        while todo:
            for planned in todo:
                self.forget(planned)
            why = self.run(todo)
            left = [p for p in todo if (read_outcome(p.folder) or {}).get("status") is None]
            waiting = [p for p in left if read_outcome(p.folder) is None]
            if len(waiting) == len(todo):  # nothing could begin at all, and nothing will
                left, waiting = waiting, []
            for planned in left:
                if planned not in waiting:
                    planned.fail(why.get(planned.job.number, "its process died and left no result"))
            todo = waiting

    def forget(self, planned: Planned) -> None:
        """Remove what an earlier attempt said about its end."""
        (planned.folder / OUTCOME).unlink(missing_ok=True)

    def _plan(self, job_overrides: Sequence[Sequence[str]], first: int) -> list[Planned]:
        from hydra.core.singleton import Singleton

        state = Singleton.get_state()
        found = []
        for number, overrides in enumerate(job_overrides, start=first):
            job = SweepJob(self.context, self.function, self.master, tuple(overrides), number, state)
            config = job.config()
            folder = Path(str(config.hydra.sweep.dir)) / str(config.hydra.sweep.subdir)
            trainer = cast("dict[str, Any]", OmegaConf.to_container(config.trainer)) if "trainer" in config else {}
            dirname, resume = str(config.hydra.job.override_dirname), bool(config.get("resume", False))
            with open_dict(config):
                del config["hydra"]
            known = resume and (folder / OUTCOME).is_file()
            settings = settings_digest(config) if known else ""
            found.append(Planned(job, folder, dirname, settings, trainer, resume))
        return found


def check_numbers(settings: Mapping[str, Any]) -> None:
    """Refuse settings of a launcher that are no numbers, or none that make sense; null leaves the choice open.

    Raises:
        ValueError: With the setting and what it must be.
    """
    for name, value in settings.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None:
            continue
        if name in WHOLE and not (number and value == int(value) and value >= WHOLE[name]):
            raise ValueError(f"hydra.launcher.{name} must be a whole number, {WHOLE[name]} or more, got {value!r}")
        if name in ABOVE_ZERO and not (number and value > 0):
            raise ValueError(f"hydra.launcher.{name} must be a number above 0, got {value!r}")


def in_groups(todo: Sequence[Planned], size: int) -> list[tuple[Planned, ...]]:
    """The jobs in groups of at most `size`, in order."""
    return [tuple(todo[i : i + size]) for i in range(0, len(todo), size)]


def devices_a_job(todo: Sequence[Planned]) -> int:
    """Accelerators that a job uses; 0: all compute on the CPU."""
    return max((processes_a_node(p.trainer) for p in todo if p.trainer.get("accelerator", "cpu") != "cpu"), default=0)


def _returned(planned: Planned) -> JobReturn:
    """What Hydra's sweepers expect of a job."""
    outcome = read_outcome(planned.folder) or {}
    returned = JobReturn(overrides=list(planned.job.overrides), status=JobStatus.COMPLETED)
    returned.return_value = outcome.get("value") if outcome.get("status") == 0 else None
    return returned
