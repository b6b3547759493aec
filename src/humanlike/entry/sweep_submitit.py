"""`hydra/launcher=submitit_local|submitit_slurm`: jobs in processes of their own, here or on a cluster."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from humanlike.entry.own_process import processes_a_node
from humanlike.entry.sweep_launcher import Planned, SweepLauncher, SweepTask, in_groups
from humanlike.files import write_json

SUBMITTED = ".slurm.json"
ALIVE = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"}
    | {"RESIZING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "RESV_DEL_HOLD"}
)
LARGEST_ARRAY = 1000  # Slurm's own default is 1001
OWN = frozenset({"jobs_per_task", "n_jobs", "devices", "submitit_folder", "poll_s", "grace_s", "max_num_timeout"})
COMMON = frozenset(
    ["timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes", "name", "stderr_to_stdout"]
)


class SubmititLocalLauncher(SweepLauncher):
    """Starts processes on this machine through submitit, a few at a time, each on devices and cores of its own."""

    def run(self, todo: Sequence[Planned]) -> Mapping[int, str]:
        """See `SweepLauncher.run`."""
        import submitit

        slots = self.local_slots(todo)
        count, minutes = len(slots.slots), self.settings.get("timeout_min")
        size = max(1, min(int(self.settings.get("jobs_per_task") or 1), math.ceil(len(todo) / count)))
        print(f"{len(todo)} jobs, {count} processes at a time:\n{slots.describe()}", file=sys.stderr)
        executor = submitit.AutoExecutor(folder=self.settings["submitit_folder"], cluster="local")
        waiting = in_groups(todo, size)
        running: dict[str, tuple[Any, tuple[Planned, ...]]] = {}
        why: dict[int, str] = {}
        try:
            while waiting or running:
                while waiting and len(running) < count:
                    group = waiting.pop(0)
                    if minutes is not None:  # our own deadline comes first and says which job it was
                        executor.update_parameters(timeout_min=math.ceil(minutes * len(group)) + 5)
                    job = executor.submit(SweepTask(tuple(p.job for p in group), slots, minutes))
                    running[job.job_id] = (job, group)
                for name, (job, group) in list(running.items()):
                    if job.done():
                        job.wait()
                        said = f"its process ended and left no result; its last words are in {job.paths.stderr}"
                        why |= {p.job.number: said for p in group}
                        del running[name]
                time.sleep(0.05)
        finally:
            for job, _ in running.values():
                job.cancel(check=False)
        return why


class SubmititSlurmLauncher(SweepLauncher):
    """Submits job arrays to Slurm and waits for them.

    Jobs go on when this process ends; started again, it waits for those that are queued or running instead of
    submitting them twice. A job that ends without a result is left `grace_s` seconds to be requeued before it counts as
    dead.
    """

    def check(self, trainers: Sequence[Mapping[str, Any]]) -> None:
        """Tasks and nodes that are asked of Slurm must be those that Lightning will look for."""
        if shutil.which("sbatch") is None or shutil.which("srun") is None:
            raise ValueError(
                "there is no Slurm on this machine (no sbatch); use hydra/launcher=submitit_local or joblib"
            )
        tasks, nodes = int(self.settings.get("tasks_per_node") or 1), int(self.settings.get("nodes") or 1)
        gpus = self.settings.get("gpus_per_node")
        for trainer in trainers:
            devices, wanted = processes_a_node(trainer), int(trainer.get("num_nodes") or 1)
            strategy = str(trainer.get("strategy", "auto"))
            if (devices, wanted) != (tasks, nodes):
                raise ValueError(
                    f"trainer.devices={trainer.get('devices')} on trainer.num_nodes={wanted} needs one Slurm task a "
                    f"device: set hydra.launcher.tasks_per_node={devices} hydra.launcher.nodes={wanted} (now {tasks} "
                    f"and {nodes})"
                )
            if tasks * nodes > 1 and any(word in strategy for word in ("fork", "spawn", "notebook")):
                raise ValueError(f"under Slurm every task is a process already: trainer.strategy=ddp, not {strategy}")
            if trainer.get("accelerator", "cpu") not in ("cpu", "auto") and gpus is not None and int(gpus) < devices:
                raise ValueError(f"{devices} devices a node need hydra.launcher.gpus_per_node={devices}, got {gpus}")

    def run(self, todo: Sequence[Planned]) -> Mapping[int, str]:
        """See `SweepLauncher.run`."""
        tasks = {**self._submitted_before(todo)}
        known = {p.job.number for _, group in tasks.values() for p in group}
        new = [p for p in todo if p.job.number not in known]
        tasks |= self._submit(new) if new else {}
        print(f"Slurm: {len(tasks)} tasks, {len(new)} jobs submitted, {len(known)} found in the queue", file=sys.stderr)
        poll, grace = float(self.settings.get("poll_s") or 2), float(self.settings.get("grace_s") or 0)
        why: dict[int, str] = {}
        missing: dict[str, float] = {}
        while tasks:
            states = queue_states()
            for name, (result, group) in list(tasks.items()):
                if result.exists():
                    del tasks[name]
                elif states is None or states.get(name, "") in ALIVE:
                    missing.pop(name, None)
                elif time.monotonic() - missing.setdefault(name, time.monotonic()) >= grace:
                    state = states.get(name) or ended_state(name)
                    why |= {p.job.number: f"Slurm job {name} ended without a result: {state}" for p in group}
                    del tasks[name]
            time.sleep(poll if tasks else 0)
        return why

    def forget(self, planned: Planned) -> None:
        """Nothing is forgotten of a job that Slurm still has."""
        if not self._submitted_before([planned]):
            super().forget(planned)
            (planned.folder / SUBMITTED).unlink(missing_ok=True)

    def _submit(self, todo: Sequence[Planned]) -> dict[str, tuple[Path, tuple[Planned, ...]]]:
        import submitit

        size = max(1, int(self.settings.get("jobs_per_task") or 1))
        given = {k: v for k, v in self.settings.items() if k not in OWN and v is not None}
        retries = int(self.settings.get("max_num_timeout") or 0)
        executor = submitit.AutoExecutor(
            folder=self.settings["submitit_folder"], cluster="slurm", slurm_max_num_timeout=retries
        )
        executor.update_parameters(**{k if k in COMMON else f"slurm_{k}": v for k, v in given.items()})
        found = {}
        for groups in in_arrays(in_groups(todo, size)):
            try:
                jobs = executor.submit_array([SweepTask(tuple(p.job for p in group)) for group in groups])
            except submitit.core.utils.FailedJobError as error:
                said = str(error).strip().splitlines() or ["it does not say why"]
                raise ValueError(f"Slurm did not take the jobs: {said[-1]} (settings are hydra.launcher.*)") from error
            for job, group in zip(jobs, groups, strict=True):
                found[job.job_id] = (job.paths.result_pickle, group)
                for planned in group:
                    record = {"job": job.job_id, "result": str(job.paths.result_pickle)}
                    write_json(planned.folder / SUBMITTED, record)
        return found

    def _submitted_before(self, todo: Sequence[Planned]) -> dict[str, tuple[Path, tuple[Planned, ...]]]:
        """Tasks of an earlier launcher that Slurm still has."""
        records = {}
        for planned in todo:
            try:
                records[planned.job.number] = json.loads((planned.folder / SUBMITTED).read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
        states = (queue_states() or {}) if records else {}
        found: dict[str, tuple[Path, tuple[Planned, ...]]] = {}
        for planned in todo:
            record = records.get(planned.job.number)
            if record and states.get(record["job"], "") in ALIVE:
                group = found.get(record["job"], (Path(), ()))[1]
                found[record["job"]] = (Path(record["result"]), (*group, planned))
        return found


def in_arrays(groups: Sequence[tuple[Planned, ...]]) -> Iterator[Sequence[tuple[Planned, ...]]]:
    """Groups of jobs, as many at a time as Slurm takes in one array."""
    for start in range(0, len(groups), LARGEST_ARRAY):
        yield groups[start : start + LARGEST_ARRAY]


def queue_states() -> dict[str, str] | None:
    """Job (`id` or `array_index`) → state, as Slurm's controller knows this user's; None when it is silent."""
    command = ["squeue", "--noheader", "--array", "--states=all", "--format=%i %T", f"--user={os.getuid()}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return {name: state for name, _, state in (line.partition(" ") for line in said.splitlines())}


def ended_state(job: str) -> str:
    """How Slurm's accounting says that a job ended, where there is accounting."""
    command = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=State", "--jobs", job]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split("\n")[0]
    except (OSError, subprocess.SubprocessError):
        said = ""
    return said.strip() or "no longer known to the controller"
