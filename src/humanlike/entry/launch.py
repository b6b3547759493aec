"""Run a Hydra application as people expect: one sentence on errors, meaningful exit status, sweeps that go on.

Exit status: 0 done; 1 failed; 2 wrong use; 3 finished with losses beyond the allowed; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.arguments import HELP, parse_arguments
from humanlike.entry.conf import conf_dir, register_resolvers
from humanlike.entry.environment import is_first_process
from humanlike.entry.outcomes import OUTCOME
from humanlike.entry.overrides import OverrideError, check_overrides

if TYPE_CHECKING:
    from omegaconf import DictConfig

FAILED, WRONG_USE, LOSSES = 1, 2, 3
INTERRUPTED = 130  # as shells have it: 128 + SIGINT


class LossesError(RuntimeError):
    """The run finished, but lost more items than `max_failures` allows; everything computed is written."""


def launch(config_name: str, task: Callable[[DictConfig, Path], Any]) -> None:
    """Run `task(config, folder)` under Hydra with the overrides of the command line, then exit.

    Args:
        config_name: Name of the top configuration in conf/.
        task: Does the work; its folder is Hydra's run folder. It must be importable, because launchers send it to
            other processes.
    """
    if HELP & set(sys.argv[1:]):
        from humanlike.entry.help import help_text

        print(help_text(config_name))
        sys.exit(0)
    try:
        line = parse_arguments(sys.argv[1:])
        sys.argv[1:] = line.arguments
        if not (line.about_hydra or line.other_config):
            check_overrides(config_name, line.overrides, multirun=line.multirun, config_dirs=line.config_dirs)
    except OverrideError as error:
        _leave(str(error), WRONG_USE)
    import hydra

    register_resolvers()
    job = Job(task)
    try:
        hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=config_name)(job)()
    except KeyboardInterrupt:  # the job has said so
        sys.exit(INTERRUPTED)
    sys.exit(_exit_status())


class Job:
    """One job: runs the task, turns exceptions into a sentence and an outcome that outlives the process."""

    outcomes: tuple[int, ...] = ()

    def __init__(self, task: Callable[[DictConfig, Path], Any]) -> None:
        self.task = task
        self.why = ""
        self.value: float | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrive in a launcher's worker process, which resolves the folder of the job next."""
        register_resolvers()
        self.__dict__.update(state)

    def __call__(self, config: DictConfig) -> float | None:
        """Run the task in the folder that Hydra chose; returns the value of `objective`, if that is configured."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        from humanlike.entry.own_process import OVERRIDES

        hydra = HydraConfig.get()
        folder = Path(hydra.runtime.output_dir)
        if hydra.mode == RunMode.MULTIRUN:
            self.in_sweep(config, folder, hydra.job.override_dirname)
        elif OVERRIDES in os.environ:
            Job.outcomes = (*Job.outcomes, self.recorded(config, folder, os.environ[OVERRIDES]))
        else:
            Job.outcomes = (*Job.outcomes, self.run(config, folder))
        return self.value

    def in_sweep(self, config: DictConfig, folder: Path, overrides: str) -> int:
        """Run as a job of a sweep: not again where it is finished, and alone where it starts processes itself."""
        from humanlike.entry.outcomes import is_finished, read_outcome, record_outcome
        from humanlike.entry.own_process import needs_own_process, run_alone

        settings = settings_digest(config)
        if config.get("resume") and is_finished(folder, settings):
            print(f"already finished, skipped: {folder}")
            self.value = (read_outcome(folder) or {}).get("value")
            if is_first_process():
                record_outcome(folder, 0, overrides, identity=settings, value=self.value, skipped=True)
            return 0
        if not needs_own_process(config.get("trainer") or {}):
            return self.recorded(config, folder, overrides)
        from hydra.core.hydra_config import HydraConfig

        hydra = HydraConfig.get()
        dirs = [s.path for s in hydra.runtime.config_sources if s.provider == "command-line"]
        (folder / OUTCOME).unlink(missing_ok=True)
        try:
            self.why = ending(run_alone(self.task.__module__, [*hydra.overrides.task], dirs, folder, overrides))
        except TimeoutError as error:
            self.why = str(error)
        outcome = read_outcome(folder) or {}
        self.value = outcome.get("value")
        if outcome.get("status") is None:
            self.why = f"its process left no result: {self.why}"
            record_outcome(folder, FAILED, overrides, self.why, identity=settings)
        return FAILED if outcome.get("status") is None else int(outcome["status"])

    def recorded(self, config: DictConfig, folder: Path, overrides: str) -> int:
        """Run, and write beginning and end into the folder, from the first of several processes."""
        from humanlike.entry.outcomes import record_outcome, record_start

        settings = settings_digest(config)
        if is_first_process():
            record_start(folder, overrides, settings)
        status = self.run(config, folder)
        if is_first_process():
            record_outcome(folder, status, overrides, self.why, identity=settings, value=self.value)
        return status

    def run(self, config: DictConfig, folder: Path) -> int:
        """Run the task in `folder`; an exception becomes a sentence on the standard error and an exit status."""
        self.why, self.value, as_lines = "", None, warnings.formatwarning
        warnings.formatwarning = _warning_line
        try:
            from humanlike.entry.outcomes import objective_of

            result = self.task(config, folder)
            if isinstance(result, int | float):
                self.value = float(result)
            elif is_first_process():  # which alone has written the results
                self.value = objective_of(folder, config.get("objective"))
        except LossesError as error:
            self.why = str(error)
            print(f"warning: {error}", file=sys.stderr)
            return LOSSES
        except KeyboardInterrupt:
            print(
                "interrupted: what was computed so far is kept; run the same command again to go on",
                file=sys.stderr,
            )
            raise
        except Exception as error:
            from humanlike.entry.sentences import sentence
            from humanlike.entry.several_processes import leave
            from humanlike.entry.termination import first_cause, leave_if_told

            leave_if_told()
            error = first_cause(error)
            leave(error)
            if config.get("tracebacks") or os.environ.get("HYDRA_FULL_ERROR") == "1":
                traceback.print_exc()
            self.why = sentence(error)
            print(f"error: {self.why}", file=sys.stderr)
            return FAILED
        finally:
            from humanlike.entry.several_processes import leave

            leave()
            warnings.formatwarning = as_lines
        return 0


def settings_digest(config: DictConfig) -> str:
    """Digest of the settings that decide the result of a job; empty where they cannot be resolved."""
    from omegaconf.errors import OmegaConfBaseException

    from humanlike.entry.evaluate import config_hash
    from humanlike.reports.config_record import masked_config

    try:
        return config_hash(masked_config(config))
    except OmegaConfBaseException:  # the run will say which, as a sentence
        return ""


def ending(status: int) -> str:
    """How a process ended, in words.

    Example:
        >>> ending(-9), ending(4)
        ('signal 9 (SIGKILL)', 'exit status 4')
    """
    import signal

    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {-status} ({signal.Signals(-status).name})"
    except ValueError:
        return f"signal {-status}"


def _warning_line(message: Warning | str, *where: object, **line: object) -> str:
    """A warning without the line of code that gave it."""
    return f"warning: {' '.join(str(message).split())}\n"


def _exit_status() -> int:
    from humanlike.entry.sweeps import SweepSummary

    return SweepSummary.status if SweepSummary.status is not None else max(Job.outcomes, default=0)


def _leave(message: str, status: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
