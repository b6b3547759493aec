"""The launchers of humanlike, where Hydra looks for plugins; `conf/hydra/launcher` configures them.

Hydra imports every module of `hydra_plugins` at each start, so that only names are here: what a launcher is made of is
imported when one is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher


class _Deferred(Launcher):
    """A launcher that is imported when it is made."""

    module = ""
    name = ""

    def __init__(self, **settings: Any) -> None:
        from importlib import import_module

        self.inner = getattr(import_module(self.module), self.name)(**settings)

    def setup(self, **about: Any) -> None:
        """Tell the launcher what the sweep is about."""
        self.inner.setup(**about)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs."""
        returned: Sequence[JobReturn] = self.inner.launch(job_overrides, initial_job_idx)
        return returned


class JoblibLauncher(_Deferred):
    """`hydra/launcher=joblib`."""

    module, name = "humanlike.entry.sweep_joblib", "JoblibLauncher"
    needs, extra = "joblib", "joblib"


class SubmititLocalLauncher(_Deferred):
    """`hydra/launcher=submitit_local`."""

    module, name = "humanlike.entry.sweep_submitit", "SubmititLocalLauncher"
    needs, extra = "submitit", "slurm"


class SubmititSlurmLauncher(_Deferred):
    """`hydra/launcher=submitit_slurm`."""

    module, name = "humanlike.entry.sweep_submitit", "SubmititSlurmLauncher"
    needs, extra = "submitit", "slurm"


class RayLauncher(_Deferred):
    """`hydra/launcher=ray`."""

    module, name = "humanlike.entry.sweep_ray", "RayLauncher"
    needs, extra = "ray", "ray"
