"""Metrics as torchmetrics classes; the pure functions they call are in `humanlike.metrics.functional`.

The classes are imported when first asked for, because torchmetrics takes seconds to import and the functions do not
need it.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from humanlike.metrics.divergence import JensenShannonDistance
    from humanlike.metrics.element_vqa import ElementVQA
    from humanlike.metrics.learning_curve import LearningCurve
    from humanlike.metrics.response import ResponseDistribution
    from humanlike.metrics.sea import SketchAbstractionEfficiency

__all__ = [
    "ElementVQA",
    "JensenShannonDistance",
    "LearningCurve",
    "ResponseDistribution",
    "SketchAbstractionEfficiency",
]

_HOME = MappingProxyType(
    {
        "ElementVQA": "element_vqa",
        "JensenShannonDistance": "divergence",
        "LearningCurve": "learning_curve",
        "ResponseDistribution": "response",
        "SketchAbstractionEfficiency": "sea",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
