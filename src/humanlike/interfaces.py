"""The four nouns of the project: Backbone, Readout, Learner, Benchmark.

They are protocols: a user's own class fits by having the methods, without inheriting anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image

from humanlike.types import BenchmarkResult, Features, Sketches


@runtime_checkable
class Transform(Protocol):
    """A backbone's own preprocessing, from an RGB image on white to the network's input."""

    def __call__(self, image: Image.Image) -> torch.Tensor:
        """RGB image → (3, H, W) float32 tensor."""

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """JSON-like facts that fix the result: size, crop, interpolation, antialias, mean, std, library."""


@runtime_checkable
class Backbone(Protocol):
    """A frozen image network that gives features."""

    name: str
    transform: Transform
    default_layer: str

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers whose activations can be asked for, in depth order."""

    @property
    def weights_hash(self) -> str:
        """Hex digest over the architecture's name and all parameters and buffers."""

    def features(self, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
        """All requested layers from one forward pass, each flattened to (B, D) float32, without gradient."""


@runtime_checkable
class Readout(Protocol):
    """A classifier on features."""

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: np.ndarray | None = None
    ) -> np.ndarray:
        """(N, L) probabilities, every row from a fit that never saw the row's fold."""

    def fit(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> Readout:
        """Fit on all rows."""

    def predict_proba(self, f_ND: np.ndarray) -> np.ndarray:
        """(N, L) probabilities; labels that were absent from the fit are exactly 0."""


@runtime_checkable
class LabelledReadout(Readout, Protocol):
    """A readout that has to be told what the labels are called, such as a zero-shot one."""

    def for_labels(self, labels: Sequence[str]) -> Readout:
        """The same readout with columns in the order of `labels`."""


@runtime_checkable
class Learner(Protocol):
    """Someone who learns novel objects trial by trial; a session is reset, then respond and feedback in turn."""

    def reset(self, seed: int) -> None:
        """Forget everything."""

    def respond(self, x_D: np.ndarray) -> int:
        """Choose an action for the image with features `x_D`."""

    def give_feedback(self, reward: float) -> None:
        """Hear the reward of the last choice, in [-1, 1]."""


@runtime_checkable
class Benchmark(Protocol):
    """A measurement of how human-like a model is; the version changes whenever its scores can change."""

    identifier: str
    version: str
    bibtex: str

    def run(self, data: Sketches, features: Features, readout: Readout, seed: int = 0) -> BenchmarkResult:
        """Compute everything; nothing is written."""
