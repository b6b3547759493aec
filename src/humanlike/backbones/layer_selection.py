"""Which layers are meant: names, glob patterns, so many spread evenly over depth, or all."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Sequence

ALL = "all"
_SPREAD = re.compile(r"spread:\s*(\d+)")


def select_layers(layers: Sequence[str], wanted: str | Sequence[str]) -> tuple[str, ...]:
    """The layers that are meant, each once, in depth order.

    Args:
        layers: All layers of a backbone in depth order.
        wanted: One or several of: a layer's name; a glob pattern with `*`, `?` or `[…]` (`*` matches dots too);
            `spread:N`, N layers evenly over depth, the first and the last among them (`spread:1` is the last);
            `all`.

    Returns:
        A selection of `layers` in their order.

    Raises:
        ValueError: Nothing is asked for, a name or pattern fits no layer (the nearest are named), or N is 0 or more
            than there are.

    Example:
        >>> layers = ("stem", "blocks.0", "blocks.1", "blocks.2", "norm", "pre_logits")
        >>> select_layers(layers, "blocks.*")
        ('blocks.0', 'blocks.1', 'blocks.2')
        >>> select_layers(layers, ["spread:3", "norm"])
        ('stem', 'blocks.1', 'norm', 'pre_logits')
    """
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    if not asked:
        raise ValueError("no layer is asked for; give names, patterns such as blocks.*, spread:8 or all")
    chosen = {layer for entry in asked for layer in _meant(tuple(layers), str(entry))}
    return tuple(layer for layer in layers if layer in chosen)


def _meant(layers: tuple[str, ...], entry: str) -> tuple[str, ...]:
    if entry in layers:  # before the patterns: a layer's own name may look like one
        return (entry,)
    if entry == ALL:
        return layers
    if (spread := _SPREAD.fullmatch(entry)) is not None:
        return _spread(layers, int(spread[1]))
    if entry.startswith("spread"):
        raise ValueError(f"layers={entry!r} is no spread; write spread:N with a whole number N, for example spread:8")
    if any(sign in entry for sign in "*?[") and (found := fnmatch.filter(layers, entry)):
        return tuple(found)
    near = difflib.get_close_matches(entry, layers, n=3, cutoff=0.4) or [layers[0], layers[-1]]
    kind = "pattern" if any(sign in entry for sign in "*?[") else "name"
    raise ValueError(
        f"no layer fits the {kind} {entry!r}; nearest are {', '.join(near)} (`python -m humanlike layers` lists all; "
        "spread:N and all are understood too)"
    )


def _spread(layers: tuple[str, ...], number: int) -> tuple[str, ...]:
    if not 1 <= number <= len(layers):
        raise ValueError(
            f"layers='spread:{number}' asks for {number} layer(s) of {len(layers)}; ask for 1 … or for all"
        )
    if number == 1:
        return layers[-1:]
    last = len(layers) - 1
    # In whole numbers, halves rounded down, so that the choice is the same everywhere.
    return tuple(layers[(2 * i * last + number - 2) // (2 * (number - 1))] for i in range(number))
