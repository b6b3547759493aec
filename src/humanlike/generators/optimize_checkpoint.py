"""The state of an optimisation as a file: whole or absent, tensors and plain values only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from humanlike.files import atomic_path, sha256_value
from humanlike.generators.trajectory import Trajectory

if TYPE_CHECKING:
    from humanlike.generators.optimize import _Run

SCHEMA = "humanlike.sketch_optimization/1"


def save_state(path: str | Path, run: _Run) -> None:
    """Write the state after a step, atomically."""
    state = {
        "schema": SCHEMA,
        "identity": sha256_value(run.identity),
        "step": run.step,
        "parameters": run.parameters.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "losses": torch.stack(run.losses),
        "bad_B": run.bad_B,
        "row_B": run.row_B,
        "trajectory": run.trajectory.tensors(),
    }
    with atomic_path(path) as temporary:
        torch.save(state, temporary)


def load_state(path: str | Path, run: _Run) -> None:
    """Put a run into the state of a file.

    Raises:
        ValueError: The file is damaged, or of other settings, targets or networks.
    """
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu")
        if state["schema"] != SCHEMA:
            raise ValueError(f"its schema is {state['schema']!r}")
    except Exception as error:
        raise ValueError(
            f"the checkpoint {path} cannot be read ({str(error).splitlines()[0][:200]}); delete it to start anew"
        ) from error
    if state["identity"] != sha256_value(run.identity):
        raise ValueError(
            f"the checkpoint {path} belongs to other settings, targets or weights; use the same ones, another folder, "
            "or resume=false to start anew"
        )
    run.parameters.load_state_dict(state["parameters"])
    run.optimizer.load_state_dict(state["optimizer"])
    run.step = int(state["step"])
    run.losses = list(state["losses"])
    run.bad_B, run.row_B = state["bad_B"], state["row_B"]
    run.trajectory = Trajectory(**state["trajectory"])
