"""Lightning checkpoints that are whole or absent, and are read as plain tensors and containers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO

from humanlike.files import atomic_path


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes beside the target and renames, so that a kill leaves the old checkpoint; never unpickles objects."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Write `checkpoint` to `path` atomically."""
        del storage_options
        with atomic_path(path) as temporary:
            torch.save(checkpoint, temporary)

    def load_checkpoint(self, path: str | Path, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read `path` with `weights_only=True`.

        Raises:
            FileNotFoundError: When there is no such file.
            ValueError: When the file is damaged or holds anything but tensors and plain containers.
        """
        kwargs["weights_only"] = True
        kwargs.setdefault("map_location", "cpu")
        if not Path(path).is_file():
            raise FileNotFoundError(f"there is no checkpoint at {path}")
        try:
            return super().load_checkpoint(path, *args, **kwargs)
        except Exception as error:
            raise ValueError(
                f"the checkpoint {path} cannot be read ({str(error).splitlines()[0][:200]}); delete it to start anew"
            ) from error
