"""Compiled functions that are kept on disk, and compiled anew when any of the sources they are made of has changed.

Numba's cache looks at the file of the function it keeps alone, not at what that function calls or at constants of other
modules; a kernel from before a change there would read its buffers wrongly. Here the text of all modules that take part
belongs to the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_MODULES = ("compilation", "kernels", "lanes", "trials", "update_rules")
_SOURCES = hashlib.sha256(
    b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in _MODULES)
).hexdigest()


class _SourcesCache(FunctionCache):
    """Numba's cache of a function, with the text of the modules in its key."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _SOURCES)


def _keep(function: Any, python: Callable[..., Any]) -> None:
    """Cache on disk where some folder for it is writable; elsewhere every process compiles."""
    try:
        function._cache = _SourcesCache(python)
    except (RuntimeError, OSError):
        return


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: compiled for one signature, to be called from Python."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**OPTIONS)(function)
        _keep(compiled, function)
        compiled.compile(signature)
        compiled.disable_compile()
        return compiled

    return decorate


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: compiled for one signature, to be called by its `address`."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = CFunc(function, (signature.args, signature.return_type), locals={}, options=OPTIONS)
        _keep(compiled, function)
        compiled.compile()
        return compiled

    return decorate
