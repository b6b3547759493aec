"""Checks on labels and conditions that every data set makes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import numpy as np


def label_order(name: str, concepts: Iterable[str], labels: Sequence[str] | None = None) -> tuple[str, ...]:
    """The label order of a data set.

    Args:
        name: Name of the data set, for messages.
        concepts: Concepts of the items.
        labels: Order asked for, which must hold every concept; default: the concepts, sorted.

    Raises:
        ValueError: For fewer than two labels, repeated labels, or concepts that are no label, with the nearest label.

    Example:
        >>> label_order("demo", ["owl", "bear", "owl"])
        ('bear', 'owl')
    """
    if isinstance(labels, str):
        raise ValueError(f"{name}: labels must be a list of names, got {labels!r}; write [{labels}]")
    found = sorted(set(concepts))
    order = tuple(found) if labels is None else tuple(str(label) for label in labels)
    if len(set(order)) != len(order):
        repeated = sorted({label for label in order if order.count(label) > 1})
        raise ValueError(f"{name}: labels occur more than once: {repeated[:5]}")
    unknown = [c for c in found if c not in set(order)]
    if unknown:
        near = difflib.get_close_matches(unknown[0], order, n=3)
        nearest = f"; nearest labels to {unknown[0]!r}: {near}" if near else ""
        raise ValueError(
            f"{name}: {len(unknown)} concept(s) are not in labels: {unknown[:5]}{nearest}; add them, correct the "
            "spelling, or leave labels out to take the concepts that are there"
        )
    if len(order) < 2:
        raise ValueError(f"{name}: one class only ({list(order)}); recognition needs at least two labels")
    return order


def require_conditions(name: str, wanted: Sequence[float], condition_N: Iterable[float]) -> None:
    """Refuse a data set in which a condition that was asked for has no item.

    Raises:
        ValueError: Naming the empty conditions and those that are there.
    """
    present = np.unique(np.asarray(list(condition_N), dtype=np.float64))
    empty = [c for c in wanted if c not in present]
    if empty:
        raise ValueError(f"{name}: no item in condition(s) {empty}; conditions with items: {present.tolist()}")
