"""How much of what people expect to see in a drawing is drawn, from judgments of its elements or from their counts.

Legend: B sketches, E element columns; V elements present of the E of a sketch's class, v = V/E the visual ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import require_tensor
from humanlike.metrics.functional.element_vqa import ABSENT, PRESENT, UNPARSEABLE, judgment_codes


class VisualRatio(NamedTuple):
    """How much of what people expect is drawn, sketch by sketch.

    Attributes:
        v_B: float64 visual ratio, NaN where the judgment is missing or the class has no element.
        present_B: int64 number V of elements judged present.
        judged_B: int64 number of elements with a judgment.
        elements_B: int64 number E of elements of the sketch's class.
    """

    v_B: Tensor
    present_B: Tensor
    judged_B: Tensor
    elements_B: Tensor


def visual_ratio(
    present: Tensor | tuple[Tensor, Tensor],
    mask_BE: Tensor | None = None,
    *,
    min_judged: float = 1.0,
    names: Sequence[str] | None = None,
) -> VisualRatio:
    """Visual ratio v = V/E of every sketch, missing where the judgment failed.

    Args:
        present: (B, E) judgments: bool; integers 0, 1 and -1 for a missing one; or floats 0, 1 and NaN for a missing
            one. Or two (B,) tensors (V, E) of whole numbers, V NaN or -1 where the judgment is missing.
        mask_BE: (B, E) bool, True for columns that are elements of the sketch's class; all by default. Only with
            judgments.
        min_judged: Share in (0, 1] of a sketch's elements that must have a judgment, else the sketch is missing. Below
            1, v is the share of the judged elements, which assumes that judgments fail whatever is drawn.
        names: What the sketches are called in an error; their row numbers by default.

    Returns:
        `VisualRatio`; v is NaN for missing sketches and for E = 0.

    Raises:
        TypeError: If tensors are wanted and something else comes.
        ValueError: If V > E, a number is negative or no whole number (the sketch is named), a judgment is none of the
            codes (a probability must be thresholded first), or shapes do not fit.

    Example:
        >>> visual_ratio(torch.tensor([[1, 0, 0, 1], [1, 1, -1, 0]])).v_B.tolist()
        [0.5, nan]
        >>> visual_ratio((torch.tensor([2, 0]), torch.tensor([8, 0]))).v_B.tolist()
        [0.25, nan]
    """
    if not 0 < min_judged <= 1:
        raise ValueError(f"min_judged must lie in (0, 1], got {min_judged!r}")
    if isinstance(present, tuple):
        if mask_BE is not None:
            raise ValueError("mask_BE goes with (B, E) judgments; with counts (V, E) leave it out")
        present_B, judged_B, elements_B = _from_counts(*present, names)
    else:
        present_B, judged_B, elements_B = _from_judgments(present, mask_BE)
    enough_B = (judged_B > 0) & (judged_B.double() >= min_judged * elements_B)
    v_B = torch.where(enough_B, present_B.double() / judged_B, torch.nan)
    return VisualRatio(v_B, present_B, judged_B, elements_B)


def named(row: int | tuple[int, ...], names: Sequence[str] | None) -> str:
    """What to call a sketch in a sentence."""
    if names is not None and isinstance(row, int):
        return f"sketch {names[row]!r} (row {row})"
    return f"sketch {row}"


def _from_counts(present: Tensor, elements: Tensor, names: Sequence[str] | None) -> tuple[Tensor, Tensor, Tensor]:
    """(V, judged, E) as int64 from counts."""
    for name, x in (("V", present), ("E", elements)):
        require_tensor(x, name)
        if x.ndim != 1 or x.shape != present.shape:
            raise ValueError(f"{name} must have one entry a sketch, got shape {tuple(x.shape)}; V and E are paired")
    missing_B = present.isnan() | (present == -1)
    present_B, elements_B = torch.where(missing_B, 0, present), elements
    for name, x in (("V", present_B), ("E", elements_B)):
        bad_B = ~((x >= 0) & (x < 2**31) & (x == x.double().round()))
        if bool(bad_B.any()):
            row = int(bad_B.nonzero()[0])
            raise ValueError(f"{name} must be a whole number ≥ 0; that of {named(row, names)} is {x[row].item()!r}")
    present_B, elements_B = present_B.long(), elements_B.long()
    bad_B = present_B > elements_B
    if bool(bad_B.any()):
        row = int(bad_B.nonzero()[0])
        raise ValueError(
            f"V cannot exceed E: {named(row, names)} has {int(present_B[row])} elements present of "
            f"{int(elements_B[row])}; count each element of the class once, and none that is not in its list"
        )
    return present_B, torch.where(missing_B, 0, elements_B), elements_B


def _from_judgments(present_BE: Tensor, mask_BE: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(V, judged, E) as int64 from judgments."""
    codes_BE = judgment_codes(present_BE, "present_BE", mask_BE)
    present_B = (codes_BE == PRESENT).sum(dim=1)
    judged_B = present_B + (codes_BE == ABSENT).sum(dim=1)
    return present_B, judged_B, judged_B + (codes_BE == UNPARSEABLE).sum(dim=1)
