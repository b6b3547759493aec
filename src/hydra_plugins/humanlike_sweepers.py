"""The sweeper of humanlike, where Hydra looks for plugins; `conf/hydra/sweeper/optuna.yaml` configures it.

Hydra imports this module at each start, so that what the sweeper is made of is imported when one is made.
"""

from __future__ import annotations

from typing import Any

from hydra.plugins.sweeper import Sweeper


class OptunaSweeper(Sweeper):
    """`hydra/sweeper=optuna`."""

    needs, extra = "hydra_plugins.hydra_optuna_sweeper", "optuna"

    def __init__(self, **settings: Any) -> None:
        from humanlike.entry.sweep_optuna import OptunaSweeper as Search

        self.inner = Search(**settings)

    def setup(self, **about: Any) -> None:
        """Tell the sweeper what is searched."""
        self.inner.setup(**about)

    def sweep(self, arguments: list[str]) -> None:
        """Search."""
        self.inner.sweep(arguments)
