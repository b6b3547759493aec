"""Checks of the metrics' arguments; every refusal is a sentence that names the row, cell or label at fault."""

from __future__ import annotations

from typing import Any, get_args

import torch
from torch import Tensor

INTEGER_DTYPES = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})


def require_tensor(x: Tensor, name: str) -> None:
    """Refuse whatever is not a tensor, with the way to make one."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}; wrap an array with torch.from_numpy")


def require_choice(value: object, name: str, choices: Any) -> None:
    """Refuse a value that is none of those of `choices`, a `Literal`."""
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {list(get_args(choices))}, got {value!r}")


def nonnegative_table(x_BL: Tensor, name: str) -> Tensor:
    """A table of counts or probabilities, checked for finite entries ≥ 0 and made contiguous.

    Rows are reduced one by one, and an operation on strided memory may round otherwise than the same operation on
    contiguous memory; a contiguous copy makes a row's result independent of how the table was cut.

    Args:
        x_BL: (B, L), any real dtype.
        name: The argument's name, for the error.

    Returns:
        The table, contiguous, with its gradient and its dtype (bool becomes int64).

    Raises:
        TypeError: If it is no tensor, or complex.
        ValueError: If it is not two-dimensional, or an entry is negative, infinite or NaN (the first such row is
            named).
    """
    require_tensor(x_BL, name)
    if x_BL.is_complex():
        raise TypeError(f"{name} must hold real numbers, got dtype {x_BL.dtype}")
    if x_BL.ndim != 2:
        raise ValueError(f"{name} must have two dimensions (rows, labels), got shape {tuple(x_BL.shape)}")
    if x_BL.dtype == torch.bool:
        x_BL = x_BL.long()
    # NaN fails both comparisons, so this one expression finds NaN, ±inf and negative entries.
    bad_BL = ~((x_BL >= 0) & (x_BL < torch.inf)) if x_BL.is_floating_point() else x_BL < 0
    if bool(bad_BL.any()):
        row, label = (int(i) for i in bad_BL.nonzero()[0])
        raise ValueError(
            f"{name} must hold finite numbers ≥ 0 (counts or probabilities, not logits); row {row}, label {label} is "
            f"{x_BL[row, label].item()!r}"
        )
    return x_BL.contiguous()


def index_vector(x_N: Tensor, name: str, upper: int) -> Tensor:
    """(N,) indices in [0, upper) as int64.

    Raises:
        TypeError: If it is no tensor or not of an integer dtype.
        ValueError: If it is not one-dimensional or an entry lies outside [0, upper) (the first such row is named).
    """
    require_tensor(x_N, name)
    if x_N.dtype not in INTEGER_DTYPES:
        raise TypeError(f"{name} must be of an integer dtype, got {x_N.dtype}; convert indices with .long()")
    if x_N.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {tuple(x_N.shape)}")
    x_N = x_N.long()
    bad_N = (x_N < 0) | (x_N >= upper)
    if bool(bad_N.any()):
        row = int(bad_N.nonzero()[0])
        raise ValueError(f"{name} must lie in [0, {upper}); row {row} is {int(x_N[row])}")
    return x_N


def require_length(x: Tensor, name: str, length: int, owner: str) -> None:
    """Refuse a tensor whose first dimension differs from that of its companion `owner`."""
    if len(x) != length:
        raise ValueError(f"{name} has {len(x)} rows for {length} rows of {owner}; they must be paired row by row")


def require_positive_rows(x_BL: Tensor, name: str) -> None:
    """Refuse a table with a row that sums to zero, because such a row is no distribution."""
    bad_B = ~(x_BL > 0).any(dim=-1)
    if bool(bad_B.any()):
        row = int(bad_B.nonzero()[0])
        raise ValueError(f"{name} must have a positive sum in every row; row {row} sums to 0, leave such rows out")


def require_integer_valued(x_BL: Tensor, name: str, why: str) -> None:
    """Refuse a table with fractional entries where only counts have a meaning."""
    if not x_BL.is_floating_point():
        return
    bad_BL = x_BL != x_BL.round()
    if bool(bad_BL.any()):
        row, label = (int(i) for i in bad_BL.nonzero()[0])
        raise ValueError(
            f"{name} must hold integer counts {why}; row {row}, label {label} is {x_BL[row, label].item()!r}"
        )
