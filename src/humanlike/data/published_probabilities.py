"""SEVA's published class probabilities of models, pickles from a shared folder → plain files, without trusting them.

Each pickle is read by `published_unpickler` in a process of its own, which may rebuild tables and nothing else. What it
writes is read here as plain NumPy files (`allow_pickle=False`) and checked like any other data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data import published_unpickler
from humanlike.files import atomic_path

MEMORY_BYTES = 8 << 30
SECONDS = 900
SUM_TOLERANCE = 1e-3
PREFIX = "things_df_human_metrics_neurips_"


@dataclass(frozen=True)
class PublishedModel:
    """A model's class probabilities as they were written.

    Attributes:
        name: The model's name in the file's name.
        sketches: Sketches of the data set with probabilities.
        missing: Sketches of the data set without.
        others: Rows of the file about other sketches, left out.
        path: The table that was written.
    """

    name: str
    sketches: int
    missing: int
    others: int
    path: Path

    def line(self) -> str:
        """The counts as they are printed."""
        return f"model      {self.name}: {self.sketches} sketches, {self.missing} without, {self.others} rows left out"


def convert_probabilities(
    source: str | Path, target: str | Path, sketch_ids: Sequence[str], labels: Sequence[str]
) -> list[PublishedModel]:
    """Every pickle of a folder as `<model>.parquet` and `<model>.npy` in another.

    The table has a row a sketch, in the order given: `sketch_id`, `top1` (label of the largest probability, the first
    of equals), `probability` (its probability) and `entropy` (nats). Row n of the array, (N, L) float32, holds the
    probabilities of that row's sketch; `np.load(path, mmap_mode="r", allow_pickle=False)` reads it without loading all.

    Args:
        source: Folder of .pkl files.
        target: Where the files go.
        sketch_ids: Sketches that are wanted.
        labels: Label order, as published.

    Raises:
        FileNotFoundError: When there is no pickle.
        ValueError: Naming the file: it does more than rebuild a table, or is no table of probabilities of these labels.
    """
    files = sorted(Path(source).expanduser().glob("*.pkl"))
    if not files:
        raise FileNotFoundError(f"no .pkl file in {source}; expected the published class probabilities, one a model")
    return [_converted(file, Path(target), sketch_ids, labels) for file in files]


def model_name(file: Path) -> str:
    """The model that a file is about.

    Example:
        >>> model_name(Path("things_df_human_metrics_neurips_harm-vit_1.0.pkl"))
        'harm-vit'
    """
    return file.stem.removeprefix(PREFIX).partition("_")[0] if file.stem.startswith(PREFIX) else file.stem


def read_pickled(
    file: str | Path, memory_bytes: int = MEMORY_BYTES, seconds: int = SECONDS
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) sketch ids and (N, L) float32 probabilities of one pickle, read in a process of its own.

    Args:
        file: The pickle.
        memory_bytes: Address space that the process may use.
        seconds: Processor time that it may use; twice as long by the clock.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: The pickle was refused, with the reason.
        RuntimeError: On systems without resource limits.
    """
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; expected a pickle of class probabilities")
    if os.name != "posix":
        raise RuntimeError("pickles of class probabilities are only read where a process can be limited (Linux, macOS)")
    with tempfile.TemporaryDirectory(prefix="humanlike-") as folder:
        program = [sys.executable, "-I", "-B", published_unpickler.__file__]
        try:
            done = subprocess.run(
                [*program, str(path), folder, str(memory_bytes), str(seconds)],
                cwd=folder,
                env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2 * seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{path}: refused, it was not read within {2 * seconds} s") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = said[-1][:300] if said else f"its process ended with status {done.returncode}"
            raise ValueError(f"{path}: refused, the pickle is no plain table of class probabilities ({reason})")
        ids, p_NL = (np.load(Path(folder) / f"{n}.npy", allow_pickle=False) for n in ("sketch_id", "probability"))
    if ids.dtype.kind != "U" or p_NL.dtype != np.float32 or p_NL.ndim != 2 or len(ids) != len(p_NL):
        raise ValueError(f"{path}: refused, what was read is no table of probabilities")
    return ids, p_NL


def _converted(file: Path, target: Path, sketch_ids: Sequence[str], labels: Sequence[str]) -> PublishedModel:
    ids, p_NL = read_pickled(file)
    if p_NL.shape[1] != len(labels):
        raise ValueError(f"{file}: a row holds {p_NL.shape[1]} probabilities, expected one a label ({len(labels)})")
    total_N = p_NL.sum(axis=1, dtype=np.float64)
    off = np.flatnonzero(np.abs(total_N - 1) > SUM_TOLERANCE)
    if len(off):
        first = int(off[0])
        raise ValueError(
            f"{file}: the probabilities of {str(ids[first])!r} (row {first + 1}) sum to {total_N[first]:.4g}"
        )
    index = pd.Index(ids)
    if not index.is_unique:
        raise ValueError(f"{file}: sketch {str(index[index.duplicated()][0])!r} occurs more than once")
    row_n = index.get_indexer(pd.Index(list(sketch_ids)))
    found = row_n >= 0
    if not found.any():
        raise ValueError(f"{file}: none of its sketches is in the data set, first {str(ids[0])!r}")
    kept_NL = p_NL[row_n[found]]
    name = model_name(file)
    table = target / f"{name}.parquet"
    with atomic_path(target / f"{name}.npy") as path:
        np.save(path, kept_NL, allow_pickle=False)
    with atomic_path(table) as path:
        _summary(np.asarray(sketch_ids, dtype=object)[found], kept_NL, labels).to_parquet(path, index=False)
    return PublishedModel(name, int(found.sum()), int((~found).sum()), len(ids) - int(found.sum()), table)


def _summary(ids: np.ndarray, p_NL: np.ndarray, labels: Sequence[str]) -> pd.DataFrame:
    """One row a sketch; entropies in float64, block by block."""
    top_N = p_NL.argmax(axis=1)
    entropy_N = np.empty(len(p_NL))
    for start in range(0, len(p_NL), 4096):
        p = p_NL[start : start + 4096].astype(np.float64)
        entropy_N[start : start + 4096] = -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)
    return pd.DataFrame(
        {
            "sketch_id": ids,
            "top1": np.asarray(labels, dtype=object)[top_N],
            "probability": p_NL[np.arange(len(p_NL)), top_N],
            "entropy": entropy_N,
        }
    )
