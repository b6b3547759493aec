"""Reads one pickled table of class probabilities and writes plain NumPy files, in a process of its own.

A pickle is a program. This one may call the functions in `ALLOWED` alone, which rebuild pandas tables and NumPy arrays;
any other name is refused before it is imported. The process has limits on memory, time and file size, no network is
asked for, and an audit hook ends the attempt should anything reach for a file, a process or a socket all the same. The
module stands alone (no import of the package), so that it runs with Python's isolated mode.

    python -I published_unpickler.py SOURCE TARGET MEMORY_BYTES SECONDS

Exit status 0 and TARGET/{sketch_id,top1,probability}.npy; or 3 and a sentence on the error stream.
"""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

REFUSED = 3
INDEX = "pandas.core.indexes.base"
BLOCKS = "pandas._libs.internals"


def latin1(text: str, encoding: str = "latin1") -> bytes:
    """Bytes as protocol 2 keeps them; the only codec that they need."""
    if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
        raise pickle.UnpicklingError(f"the codec {encoding!r} is not allowed")
    return text.encode("latin1")


OWN: dict[tuple[str, str], Callable[..., Any]] = {("_codecs", "encode"): latin1}

ALLOWED: dict[tuple[str, str], tuple[str, str]] = {
    ("pandas", "DataFrame"): ("pandas", "DataFrame"),
    ("pandas.core.frame", "DataFrame"): ("pandas", "DataFrame"),
    ("pandas", "Index"): ("pandas", "Index"),
    (INDEX, "Index"): ("pandas", "Index"),
    (INDEX, "_new_Index"): (INDEX, "_new_Index"),
    ("pandas", "RangeIndex"): ("pandas", "RangeIndex"),
    ("pandas.core.indexes.range", "RangeIndex"): ("pandas", "RangeIndex"),
    **{("pandas.core.indexes.numeric", f"{kind}Index"): ("pandas", "Index") for kind in ("Int64", "UInt64", "Float64")},
    ("pandas.core.internals.managers", "BlockManager"): ("pandas.core.internals.managers", "BlockManager"),
    ("pandas.core.internals.blocks", "new_block"): (BLOCKS, "_unpickle_block"),
    (BLOCKS, "_unpickle_block"): (BLOCKS, "_unpickle_block"),
    (BLOCKS, "BlockPlacement"): (BLOCKS, "BlockPlacement"),
    ("numpy", "ndarray"): ("numpy", "ndarray"),
    ("numpy", "dtype"): ("numpy", "dtype"),
    **{
        (f"numpy.{core}.{module}", name): (f"numpy._core.{module}", name)
        for core in ("core", "_core")
        for module, name in (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))
    },
    ("builtins", "slice"): ("builtins", "slice"),
    ("__builtin__", "slice"): ("builtins", "slice"),
}
"""Name in a pickle (of any pandas since 1.0 and any NumPy) → where the function or class is today."""

GLOBALS = {key: getattr(importlib.import_module(module), name) for key, (module, name) in ALLOWED.items()} | OWN

HARMLESS_EVENTS = ("pickle.find_class",)


class TableUnpickler(pickle.Unpickler):
    """An unpickler that knows the names in `ALLOWED` alone."""

    def find_class(self, module: str, name: str) -> Any:
        """The allowed function or class; nothing is imported.

        Raises:
            pickle.UnpicklingError: For any other name.
        """
        if (module, name) not in GLOBALS:
            raise pickle.UnpicklingError(f"it calls {module}.{name}, which rebuilds no table")
        return GLOBALS[module, name]

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to things outside the file.

        Raises:
            pickle.UnpicklingError: Always.
        """
        raise pickle.UnpicklingError("it refers to something outside the file")


def main(arguments: list[str]) -> int:
    """Read, check and write; returns the exit status."""
    source, target, memory, seconds = Path(arguments[0]), Path(arguments[1]), int(arguments[2]), int(arguments[3])
    limit(memory, seconds)
    try:
        ids, top1, p_NL = plain(loaded(source))
    except MemoryError:
        print("it needs more memory than is allowed", file=sys.stderr)
        return REFUSED
    except Exception as error:  # whatever a made-up pickle provokes is a refusal
        print(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr)
        return REFUSED
    for name, value in (("sketch_id", ids), ("top1", top1), ("probability", p_NL)):
        np.save(target / f"{name}.npy", value, allow_pickle=False)
    return 0


def limit(memory: int, seconds: int) -> None:
    """Bound what this process may use; it cannot raise the limits again."""
    import resource

    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, memory),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 32),
    ):
        hard = resource.getrlimit(what)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (bound, bound))


def loaded(source: Path) -> Any:
    """What the pickle holds, with the audit hook in force while it is rebuilt."""
    armed = True

    def watch(event: str, _: Any) -> None:
        if armed and event not in HARMLESS_EVENTS:
            raise pickle.UnpicklingError(f"it reaches for {event}")

    with open(source, "rb") as handle:
        sys.addaudithook(watch)
        try:
            return TableUnpickler(handle).load()
        finally:
            armed = False


def plain(table: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, top-1 answers (as text) and float32 probabilities of a table with one row a sketch.

    Raises:
        ValueError: When it is no such table.
    """
    if type(table) is not pd.DataFrame:
        raise ValueError(f"it holds a {type(table).__name__}, not a pandas table")
    columns = [str(c) for c in table.columns]
    probability = [c for c in columns if c.startswith("proba_")]
    top1 = [c for c in columns if c.startswith("top1_") and not c.startswith("top1_rank")]
    if "sketch_id" not in columns or len(probability) != 1 or len(top1) > 1:
        raise ValueError(f"expected the columns sketch_id, one proba_… and perhaps one top1_…, found {columns[:20]}")
    rows = table[probability[0]].tolist()
    first = np.asarray(rows[0], dtype=np.float32)
    p_NL = np.empty((len(rows), first.size), np.float32)
    for number, row in enumerate(rows):
        row_L = np.asarray(row, dtype=np.float32).reshape(-1)
        if row_L.shape != (first.size,) or not np.isfinite(row_L).all() or (row_L < 0).any():
            raise ValueError(f"row {number + 1} holds no {first.size} probabilities")
        p_NL[number] = row_L
    said = [str(v) for v in table[top1[0]]] if top1 else [""] * len(rows)
    return np.array([str(v) for v in table["sketch_id"]], dtype=np.str_), np.array(said, dtype=np.str_), p_NL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
