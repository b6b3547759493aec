"""Measure how human-like a vision model is, and tune sketch generators towards it.

`humanlike.evaluate(...)` scores a model; everything else is imported from its module, so that importing the package
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate"]

if TYPE_CHECKING:
    from humanlike.entry.api import evaluate


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from humanlike.entry.api import evaluate

        return evaluate
    raise AttributeError(f"module 'humanlike' has no attribute {name!r}")
