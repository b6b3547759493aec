"""A job on several processes: how they are started, one folder and one log for all, and what happens when one dies."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike import processes
from humanlike.place import ALONE, place
from humanlike.processes import LostProcessError, ProcessWatch, end_with_parent

if TYPE_CHECKING:
    import pytorch_lightning as pl

    from humanlike.reports.event_log import EventLog

_watch: ProcessWatch | None = None
_log: EventLog | None = None


def start_by_fork(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of the trainer that start the processes of one machine's CPU by a fork while features are computed.

    Lightning's own choice runs the whole command once a process: all of them import everything and build the data set
    to compute a share of the features. Nothing changes where another strategy is named, or where processes are started
    from outside (torchrun, srun).

    Args:
        settings: `config.trainer`.
    """
    several = str(settings.get("devices", 1)).isdigit() and int(settings.get("devices", 1)) > 1
    asked = settings.get("strategy", "auto") == "auto" and settings.get("accelerator") == "cpu"
    alone = int(settings.get("num_nodes") or 1) == 1 and place() == ALONE
    by_slurm = int(os.environ.get("SLURM_NTASKS", "1")) > 1
    can_fork = sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()
    if not (several and asked and alone and can_fork) or by_slurm or "plugins" in settings:
        return {}
    from pytorch_lightning.plugins.environments import LightningEnvironment

    # Inside an allocation of Slurm, Lightning would take the forked processes for tasks of it.
    return {"strategy": "ddp_fork", "plugins": [LightningEnvironment()]}


def require_machines(settings: Mapping[str, Any]) -> None:
    """Refuse to wait for machines that nobody has started.

    Args:
        settings: `config.trainer`.

    Raises:
        ValueError: `num_nodes` is above 1, and neither srun nor torchrun nor `NODE_RANK` says which machine this is.
    """
    nodes = int(settings.get("num_nodes") or 1)
    if (
        nodes > 1
        and place() == ALONE
        and "NODE_RANK" not in os.environ
        and int(os.environ.get("SLURM_NTASKS", "1")) == 1
    ):
        raise ValueError(
            f"trainer.num_nodes={nodes} waits for {nodes - 1} more: start the command by srun or "
            "torchrun on each, or use hydra/launcher=submitit_slurm (docs/cluster.md); on this machine alone "
            "trainer.num_nodes=1"
        )


def guard(trainer: pl.Trainer, cache: str | Path, log: str | Path = "") -> pl.Trainer:
    """Let the death of one process end the others with a sentence, from now on until `leave`.

    Args:
        trainer: A trainer that has not started processes yet.
        cache: A folder that all processes see.
        log: File with this process's messages.

    Returns:
        The same trainer.
    """
    from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher

    global _watch
    here, launcher = place(), trainer.strategy.launcher
    if trainer.world_size == 1 or _watch is not None:
        return trainer
    if isinstance(launcher, _SubprocessScriptLauncher):
        trainer.strategy._launcher = _watching(launcher)
    if here.starter == "trainer":
        end_with_parent(end)
    elif here.starter in ("torchrun", "srun"):  # which have started all of them, so that all watch
        folder = Path(cache) / "processes" / here.token
        _watch = ProcessWatch(folder, trainer.global_rank, trainer.world_size, log=log, fresh=False, end=end)
        _watch.__enter__()
    return trainer


def leave(error: BaseException | None = None) -> None:
    """Tell the other processes that this one is done, or why it fails."""
    global _watch
    watch, _watch = _watch, None
    if watch is not None:
        watch.__exit__(None, error, None)


def event_log(folder: Path) -> EventLog:
    """The log of a run; processes but the first write into files of their own.

    The log of the run before is closed: a sweep in one process, or a study, has as many as it has runs.
    """
    from humanlike.reports.event_log import EventLog

    global _log
    if _log is not None:
        _log.close()
    rank = place().rank
    _log = EventLog(folder / "log.jsonl" if rank == 0 else folder / "processes" / f"{rank}.jsonl")
    return _log


def end(message: str) -> None:
    """End this process at once, whatever it waits for; its log and the standard error say why."""
    if _log is not None:
        with suppress(OSError):
            _log.write("failed", error=f"{LostProcessError.__name__}: {message}")
    processes.say_and_exit(message)


def moment(day: str, time_of_day: str) -> str:
    """Last part of a run's folder: when it began; the same in all processes that torchrun or srun has started.

    Their clocks may differ. A job that Slurm starts again finds its folder, and goes on there.

    Example:
        >>> moment("2026-01-31", "12-00-00")
        '2026-01-31/12-00-00'
    """
    starter = place().starter
    if starter == "srun":
        return f"slurm-{os.environ.get('SLURM_JOB_ID')}.{os.environ.get('SLURM_STEP_ID')}"
    if starter == "torchrun":
        known = os.environ
        word = [known.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
        if known.get("LOCAL_WORLD_SIZE") == known.get("WORLD_SIZE"):  # one torchrun: which one, and since when
            word += [str(os.getppid()), _started(os.getppid())]
        return f"torchrun-{hashlib.sha256(':'.join(word).encode()).hexdigest()[:12]}"
    return f"{day}/{time_of_day}"


def is_started_alone() -> bool:
    """Whether this process, as far as its environment tells, shares its run's folder with no other from the start.

    The first process of a trainer is alone in this sense: it tells its copies the folder.
    """
    from humanlike.entry.own_process import STARTED_BY_OTHERS

    return place() == ALONE and not any(name in os.environ for name in (*STARTED_BY_OTHERS, "NODE_RANK"))


def _started(pid: int) -> str:
    """When a process of this machine was started, in ticks since the machine was; empty where that is not known."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return ""


def _watching(launcher: Any) -> Any:
    """Lightning's launcher of scripts, which ends with a sentence where the original kills its own process."""
    from lightning_fabric.utilities.distributed import _set_num_threads_if_needed
    from pytorch_lightning.strategies.launchers.subprocess_script import _SubprocessScriptLauncher

    class ScriptLauncher(_SubprocessScriptLauncher):
        def launch(self, function: Callable, *args: Any, trainer: Any = None, **keywords: Any) -> Any:
            self.cluster_environment.validate_settings(num_devices=self.num_processes, num_nodes=self.num_nodes)
            if not self.cluster_environment.creates_processes_externally:
                self._call_children_scripts()
                watch_children(self.procs, self.num_processes * self.num_nodes)
            _set_num_threads_if_needed(num_processes=self.num_processes)
            return function(*args, **keywords)

    return ScriptLauncher(launcher.cluster_environment, launcher.num_processes, launcher.num_nodes)


def watch_children(children: list[subprocess.Popen], world_size: int, end: Callable[[str], None] = end) -> None:
    """End this process, and the children, with a sentence when one of them fails; a thread looks.

    This process has `processes.GRACE_S` to find out and to say so by itself.
    """

    def look() -> None:
        while any(child.poll() is None for child in children) and not any(child.returncode for child in children):
            time.sleep(0.2)
        failed = next((i for i, child in enumerate(children) if child.returncode), None)
        if failed is None:
            return
        time.sleep(processes.GRACE_S)
        for child in children:
            if child.poll() is None:
                child.kill()
        code = int(children[failed].returncode or 0)
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"failed (exit status {code})"
        end(f"process {failed + 2} of {world_size} {how}; its messages stand above")

    threading.Thread(target=look, name="humanlike-children-watch", daemon=True).start()
