"""Run a Hydra application as people expect: one sentence on errors, meaningful exit status, sweeps that go on.

Exit status: 0 done; 1 failed; 2 wrong use; 3 finished with losses beyond the allowed.
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
from humanlike.entry.overrides import OverrideError, check_overrides

if TYPE_CHECKING:
    from omegaconf import DictConfig

FAILED, WRONG_USE, LOSSES = 1, 2, 3


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
    hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=config_name)(job)()
    sys.exit(_exit_status())


class Job:
    """One job: runs the task, turns exceptions into a sentence and an outcome that outlives the process."""

    outcomes: tuple[int, ...] = ()

    def __init__(self, task: Callable[[DictConfig, Path], Any]) -> None:
        self.task = task
        self.why = ""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrive in a launcher's worker process, which resolves the folder of the job next."""
        register_resolvers()
        self.__dict__.update(state)

    def __call__(self, config: DictConfig) -> int:
        """Run the task in the folder that Hydra chose; returns the exit status of the job."""
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        folder = Path(HydraConfig.get().runtime.output_dir)
        multirun = HydraConfig.get().mode == RunMode.MULTIRUN
        status = self.run(config, folder)
        if multirun:
            from humanlike.entry.sweeps import record_outcome

            record_outcome(folder, status, HydraConfig.get().job.override_dirname, self.why)
        else:
            Job.outcomes = (*Job.outcomes, status)
        return status

    def run(self, config: DictConfig, folder: Path) -> int:
        """Run the task in `folder`; an exception becomes a sentence on the standard error and an exit status."""
        self.why, as_lines = "", warnings.formatwarning
        warnings.formatwarning = _warning_line
        try:
            self.task(config, folder)
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

            if config.get("tracebacks") or os.environ.get("HYDRA_FULL_ERROR") == "1":
                traceback.print_exc()
            self.why = sentence(error)
            print(f"error: {self.why}", file=sys.stderr)
            return FAILED
        finally:
            warnings.formatwarning = as_lines
        return 0


def _warning_line(message: Warning | str, *where: object, **line: object) -> str:
    """A warning without the line of code that gave it."""
    return f"warning: {' '.join(str(message).split())}\n"


def _exit_status() -> int:
    from humanlike.entry.sweeps import SweepSummary

    return SweepSummary.status if SweepSummary.status is not None else max(Job.outcomes, default=0)


def _leave(message: str, status: int) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(status)
