"""What stands behind the objects: seeded 1/f noise, or photographs of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

from humanlike.data.images import IMAGE_SUFFIXES, decode_image
from humanlike.files import sha256_file

GRAY = 0.5
"""Background of one-shot support images; the contrast transformation leaves it as it is."""


class Backgrounds(Protocol):
    """A source of backgrounds: the same generator gives the same background."""

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """(size, size) float64 gray in [0, 1]."""

    def fingerprint(self, rng: np.random.Generator) -> Any:
        """JSON-like facts that change whenever what `draw` gives for this generator can change."""


@dataclass(frozen=True)
class NoiseBackgrounds:
    """Gaussian noise whose amplitude falls with spatial frequency as f^-exponent, as in natural scenes.

    Attributes:
        exponent: Slope of the amplitude spectrum. Natural scenes have 0.8 to 1.5; but their phases make smooth
            regions that noise lacks, so the default is at the smooth end, where small objects can be seen.
        mean: Mean gray; the published images have 0.44.
        sd: Standard deviation of gray before it is clipped to [0, 1].
    """

    exponent: float = 1.5
    mean: float = 0.44
    sd: float = 0.13

    def __post_init__(self) -> None:
        if not 0 <= self.exponent <= 4 or not 0 <= self.mean <= 1 or self.sd < 0:
            raise ValueError(
                "exponent must lie in [0, 4], mean in [0, 1] and sd at 0 or above, "
                f"got {self.exponent}, {self.mean}, {self.sd}"
            )

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """See Backgrounds; mean and sd hold for every single field."""
        white = np.fft.rfft2(rng.standard_normal((size, size)))
        frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None])
        frequency[0, 0] = np.inf
        field = np.fft.irfft2(white * frequency**-self.exponent, s=(size, size))
        return np.clip(self.mean + self.sd * field / field.std(), 0, 1)

    def fingerprint(self, rng: np.random.Generator) -> Any:
        """See Backgrounds."""
        return ["noise", 1, self.exponent, self.mean, self.sd]


@dataclass(frozen=True)
class PhotographBackgrounds:
    """Random square cuts of the images in a folder, in gray.

    Attributes:
        folder: Where they lie; folders below it count, too.
        least: Side of the smallest cut as a fraction of the shorter side, in (0, 1].
    """

    folder: str | Path
    least: float = 0.7

    def __post_init__(self) -> None:
        if not 0 < self.least <= 1:
            raise ValueError(f"least must lie in (0, 1], got {self.least}")

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The images, sorted by their path.

        Raises:
            FileNotFoundError: When there is none.
        """
        root = Path(self.folder).expanduser()
        found = sorted(p for p in root.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES and p.is_file())
        if not found:
            raise FileNotFoundError(f"backgrounds: no image in {root}; give a folder of photographs ({IMAGE_SUFFIXES})")
        return tuple(found)

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """See Backgrounds; raises BadImageError for a file that cannot be read."""
        gray = decode_image(self._chosen(rng)).image.convert("L")
        side = max(1, round(min(gray.size) * rng.uniform(self.least, 1)))
        left, top = (int(rng.integers(extent - side + 1)) for extent in gray.size)
        box = (left, top, left + side, top + side)
        cut = gray.resize((size, size), Image.Resampling.BILINEAR, box=box)
        return np.asarray(cut, dtype=np.float64) / 255

    def fingerprint(self, rng: np.random.Generator) -> Any:
        """See Backgrounds."""
        return ["photograph", 1, sha256_file(self._chosen(rng)), self.least]

    def _chosen(self, rng: np.random.Generator) -> Path:
        return self.files[int(rng.integers(len(self.files)))]
