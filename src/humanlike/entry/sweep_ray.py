"""`hydra/launcher=ray`: jobs as tasks of a Ray cluster, or of this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from humanlike.entry.sweep_launcher import Planned, SweepLauncher, SweepTask, devices_a_job


class RayLauncher(SweepLauncher):
    """Runs every job as a Ray task with the cores and devices that it asks for; Ray sets CUDA_VISIBLE_DEVICES."""

    def run(self, todo: Sequence[Planned]) -> Mapping[int, str]:
        """See `SweepLauncher.run`."""
        from importlib import import_module

        ray = import_module("ray")
        address = self.settings.get("address")
        if address is None:  # a cluster of this process alone, on loopback, for as long as it lives
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        started = not ray.is_initialized()
        if started:
            ray.init(address=address, **self._init(address))
        try:
            return self._wait(ray, todo)
        finally:
            if started:
                ray.shutdown()

    def _init(self, address: str | None) -> dict[str, Any]:
        given: dict[str, Any] = {"log_to_driver": True, "include_dashboard": False, "configure_logging": False}
        if address is not None:
            return {"log_to_driver": True}
        n_jobs, cores = self.settings.get("n_jobs"), int(self.settings.get("cpus_per_job") or 1)
        return {**given, "num_cpus": None if n_jobs is None else n_jobs * cores}

    def _wait(self, ray: Any, todo: Sequence[Planned]) -> Mapping[int, str]:
        minutes, devices = self.settings.get("timeout_min"), devices_a_job(todo)
        gpus = self.settings.get("gpus_per_job")
        options = {
            "num_cpus": int(self.settings.get("cpus_per_job") or 1),
            "num_gpus": devices if gpus is None else gpus,
            "max_retries": 0,
        }
        have = ray.cluster_resources()
        for name, wanted in (("CPU", options["num_cpus"]), ("GPU", options["num_gpus"])):
            if wanted > have.get(name, 0):
                raise ValueError(
                    f"every job asks Ray for {wanted} {name} and the cluster has {have.get(name, 0):g}: set "
                    f"hydra.launcher.{name.lower()}s_per_job"
                )
        print(
            f"{len(todo)} jobs on Ray, each with {options['num_cpus']} CPU, {options['num_gpus']} GPU", file=sys.stderr
        )
        start = ray.remote(_call).options(**options)
        waiting = {start.remote(SweepTask((p.job,), None, minutes)): p for p in todo}
        why = {}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            planned = waiting.pop(ready[0])
            try:
                ray.get(ready[0])
            except ray.exceptions.RayError as error:
                why[planned.job.number] = f"its Ray task died: {' '.join(str(error).split())[:300]}"
        return why


def _call(task: SweepTask) -> None:
    task()
