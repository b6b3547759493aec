"""Random projections to fewer dimensions that keep squared distances on average, seeded and of bounded memory.

Shape legend: B rows, D features, K outputs.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import IO

import numpy as np
import torch
from scipy.fft import next_fast_len

from humanlike.rng import generator

BLOCK_ROWS = 2048
ROWS_AT_ONCE = 4
FREE_SPACE = 3
"""A matrix goes into a temporary file where the disk has room for so many of its size."""


class Projection(ABC):
    """A linear map of (B, D) rows to (B, K) that depends on D, K and its seed alone.

    Args:
        num_features: D.
        num_outputs: K.
        seed: Seed of the map.
        keep: Keep what was drawn (`nbytes`) between calls.
    """

    def __init__(self, num_features: int, num_outputs: int, seed: int = 0, keep: bool = True) -> None:
        self.num_features, self.num_outputs, self.seed, self.keep = num_features, num_outputs, seed, keep

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size of what is kept between calls, in bytes."""

    @abstractmethod
    def __call__(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, K) projection of (B, D) float32 rows, computed in float32 whatever autocast says."""


class GaussianProjection(Projection):
    """x (B, D) → x G (B, K), entries of G independent normal with variance 1/K: squared distances are kept on average.

    G is drawn in blocks of rows, each with its own address below the seed, so that it depends on D, K and the seed
    alone. A matrix that is not kept in memory is drawn once and read back from a temporary file, or, where the disk has
    no room for it, drawn again for every batch; both give the same bits.

    Args:
        num_features: D.
        num_outputs: K.
        seed: Seed of the matrix.
        keep: Keep the matrix (4 D K bytes) between calls.

    References:
        Johnson and Lindenstrauss (1984).
    """

    def __init__(self, num_features: int, num_outputs: int, seed: int = 0, keep: bool = True) -> None:
        super().__init__(num_features, num_outputs, seed, keep)
        self._kept: dict[int, torch.Tensor] = {}
        self._file: IO[bytes] | None = None
        self._written = 0

    @property
    def nbytes(self) -> int:
        """Size of the matrix in float32."""
        return 4 * self.num_features * self.num_outputs

    def __call__(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, K) projection of (B, D) float32 rows, computed in float32 whatever autocast says."""
        y_BK = x_BD.new_zeros(len(x_BD), self.num_outputs)
        with torch.autocast(x_BD.device.type, enabled=False):
            for block, start in enumerate(range(0, self.num_features, BLOCK_ROWS)):
                y_BK += x_BD[:, start : start + BLOCK_ROWS] @ self._block(block, x_BD.device)
        return y_BK

    def _block(self, block: int, device: torch.device) -> torch.Tensor:
        if block not in self._kept:
            rows = min(BLOCK_ROWS, self.num_features - block * BLOCK_ROWS)
            if block < self._written:
                return self._read(block, rows).to(device)
            random = generator(self.seed, "gaussian_projection", self.num_features, self.num_outputs, block)
            normal = random.standard_normal((rows, self.num_outputs), dtype="float32")
            matrix = torch.from_numpy(normal) / self.num_outputs**0.5
            if not self.keep:
                self._write(block, matrix)
                return matrix.to(device)
            self._kept[block] = matrix
        self._kept[block] = self._kept[block].to(device)
        return self._kept[block]

    def _write(self, block: int, matrix: torch.Tensor) -> None:
        if block != self._written:
            return
        if self._file is None:
            if shutil.disk_usage(tempfile.gettempdir()).free < FREE_SPACE * self.nbytes:
                return
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the projection; gone with it)
            weakref.finalize(self, self._file.close)
        self._file.write(matrix.numpy().tobytes())
        self._file.flush()
        self._written += 1

    def _read(self, block: int, rows: int) -> torch.Tensor:
        """A block in the file, mapped: its pages belong to the system's cache, not to this process."""
        assert self._file is not None
        offset = 4 * block * BLOCK_ROWS * self.num_outputs
        mapped = np.memmap(self._file, np.float32, "c", offset, (rows, self.num_outputs))
        return torch.from_numpy(mapped)


class StructuredProjection(Projection):
    """Subsampled randomised Fourier transform: random signs, a real FFT, and K/2 of its bins drawn at random.

    y = √(2/K) (Re X_k, Im X_k) over the drawn bins k, X = rfft(signs · x, padded with zeros to a length that is
    fast). Squared distances are kept on average and with about the spread of a Gaussian matrix; it needs O(D log D)
    a row and O(D) memory in the place of O(D K) of both. Not the matrix of the paper.

    Args:
        num_features: D.
        num_outputs: K, even.
        seed: Seed of signs and bins.
        keep: Without effect; what is kept is small.

    Raises:
        ValueError: When K is odd.

    References:
        Ailon and Chazelle (2009); Tropp (2011).

    Example:
        >>> StructuredProjection(5000, 64)(torch.ones(2, 5000)).shape
        torch.Size([2, 64])
    """

    def __init__(self, num_features: int, num_outputs: int, seed: int = 0, keep: bool = True) -> None:
        super().__init__(num_features, num_outputs, seed, keep)
        if num_outputs % 2 or num_outputs < 2:
            raise ValueError(f"projection=srft gives an even number of features, got max_features={num_outputs}")
        # The bins of frequency 0 and of the Nyquist frequency are real, and are left out.
        self.length = transform_length(max(num_features, num_outputs + 2))
        bins = (self.length - 1) // 2
        random = generator(seed, "structured_projection", num_features, num_outputs)
        self._signs_D = torch.from_numpy(random.integers(0, 2, num_features).astype(np.float32) * 2 - 1)
        self._bins = torch.from_numpy(1 + np.sort(random.choice(bins, num_outputs // 2, replace=False)))

    @property
    def nbytes(self) -> int:
        """Size of signs and bins."""
        return 4 * self.num_features + 4 * self.num_outputs

    def __call__(self, x_BD: torch.Tensor) -> torch.Tensor:
        """(B, K) projection of (B, D) float32 rows."""
        if self._signs_D.device != x_BD.device:
            self._signs_D, self._bins = self._signs_D.to(x_BD.device), self._bins.to(x_BD.device)
        with torch.autocast(x_BD.device.type, enabled=False):
            # A few rows at a time stay in the processor's cache, and need little memory beside the batch.
            parts = [
                torch.fft.rfft(part * self._signs_D, n=self.length)[:, self._bins] for part in x_BD.split(ROWS_AT_ONCE)
            ]
        y_BK = torch.view_as_real(torch.cat(parts)).flatten(1)
        return y_BK * (2 / self.num_outputs) ** 0.5


def transform_length(needed: int) -> int:
    """The least length ≥ `needed` that is 1024 times a product of 2, 3 and 5 (short ones: such a product).

    Transforms of lengths with many factors 2 are up to four times faster than others of about their length.

    Example:
        >>> transform_length(100_352), transform_length(1000)
        (102400, 1000)
    """
    step = 1024 if needed > 8 * 1024 else 1
    return step * int(next_fast_len(-(-needed // step), real=True))


PROJECTIONS: Mapping[str, Callable[[int, int, int], Projection]] = {
    "gaussian": GaussianProjection,
    "srft": StructuredProjection,
}
"""Name in configurations → the projection."""
