"""Functions that are compiled when first called, and kept on disk where there is a place for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function, compiled for the types that it is called with, without the interpreter's lock.

    Numba refuses to compile at all where it finds no folder for its cache (a container whose home cannot be written);
    here such a process compiles for itself. Its cache is stale when the file of `function` has changed, not when
    another file has: what a compiled function calls or reads should stand beside it.

    Args:
        function: Of numbers and arrays.
        options: Further options of `numba.njit`.
    """
    import numba

    made = numba.njit(nogil=True, **options)(function)
    with suppress(RuntimeError, OSError):
        made.enable_caching()
    return made
