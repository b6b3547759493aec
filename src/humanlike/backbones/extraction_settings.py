"""How features are extracted: checked once, and named in the cache's key where it can change a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from humanlike.backbones.arithmetic import DTYPES, device_name
from humanlike.backbones.reduction import Reduction
from humanlike.cores import own_cores

ON_BAD_IMAGE = ("raise", "skip")


@dataclass(frozen=True)
class ExtractionSettings:
    """How to extract features; the attributes are the arguments of `extract_features`, with its defaults.

    Raises:
        ValueError: On a value out of range.
    """

    micro_batch: int = 32
    micro_batches_per_shard: int = 8
    num_workers: int = 0
    on_bad_image: str = "raise"
    dtype: str = "float32"
    channels_last: bool = True
    threads: int | None = None
    progress: bool = True
    pool: str | None = None
    max_features: int | None = None
    projection_seed: int = 0
    projection: str = "gaussian"
    projection_by_layer: bool = False

    def __post_init__(self) -> None:
        for name, least in (("micro_batch", 1), ("micro_batches_per_shard", 1), ("threads", 1), ("num_workers", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if self.on_bad_image not in ON_BAD_IMAGE:
            raise ValueError(f"on_bad_image must be one of {ON_BAD_IMAGE}, got {self.on_bad_image!r}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {sorted(DTYPES)}, got {self.dtype!r}")
        _ = self.reduction  # which checks its own

    @property
    def cpu_threads(self) -> int:
        """Threads inside one operator."""
        return self.threads if self.threads is not None else max(1, len(own_cores()) // 2)

    @property
    def reduction(self) -> Reduction:
        """What is done to every layer."""
        return Reduction(
            self.pool or "none", self.max_features, self.projection_seed, self.projection, self.projection_by_layer
        )

    def arithmetic(self, device: torch.device) -> dict[str, Any]:
        """What of the settings can change the last bits of a feature."""
        return {
            "dtype": self.dtype,
            "micro_batch": self.micro_batch,
            "channels_last": self.channels_last,
            "threads": self.cpu_threads,
            "device": device_name(device),
        }
