"""Checks that every data set makes: on labels, conditions and named choices."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import numpy as np

from humanlike.data.concepts import level


def require_choice(value: str, name: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices there are.

    Args:
        value: What was given.
        name: The argument.
        choices: What may be given.

    Raises:
        ValueError: With the choices.

    Example:
        >>> require_choice("ignore", "on_count", ("raise", "warn"))
        Traceback (most recent call last):
        ...
        ValueError: on_count must be 'raise' or 'warn', got 'ignore'
    """
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")


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
        raise ValueError(
            f"{name}: {len(unknown)} concept(s) are not in labels: {unknown[:5]}; {nearest_labels(unknown[0], order)}; "
            "add them, correct the spelling, or leave labels out to take the concepts that are there"
        )
    if len(order) < 2:
        raise ValueError(f"{name}: one class only ({list(order)}); recognition needs at least two labels")
    return order


def nearest_labels(value: str, labels: Sequence[str]) -> str:
    """What to say about a name that is no label: the label it differs from in case or spaces only, or the nearest.

    Example:
        >>> nearest_labels("Hot air balloon", ["owl", "hot-air_balloon"])
        "'Hot air balloon' differs from the label 'hot-air_balloon' in case or in spaces only"
        >>> nearest_labels("Eule", ["owl", "bear"])
        "no label is like 'Eule' (another language?)"
    """
    alike = [label for label in labels if level(label) == level(value)]
    if alike:
        return f"{value!r} differs from the label {alike[0]!r} in case or in spaces only"
    near = difflib.get_close_matches(value, labels, n=3) or difflib.get_close_matches(value.casefold(), labels, n=3)
    return f"nearest labels to {value!r}: {near}" if near else f"no label is like {value!r} (another language?)"


def require_conditions(name: str, wanted: Sequence[float], condition_N: Iterable[float]) -> None:
    """Refuse a data set in which a condition that was asked for has no item.

    Raises:
        ValueError: Naming the empty conditions and those that are there.
    """
    present = np.unique(np.asarray(list(condition_N), dtype=np.float64))
    empty = [c for c in wanted if c not in present]
    if empty:
        raise ValueError(f"{name}: no item in condition(s) {empty}; conditions with items: {present.tolist()}")
