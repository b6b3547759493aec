"""What a doodle concept is: a name, features of its meaning, and a program that draws its named elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from humanlike.data.doodles.shapes import Path

Parts = Mapping[str, Sequence[Path]]

SPREAD = 0.17
"""Default half-width of the variation of a length, as a share of it."""

MOST = 0.4
"""Largest half-width that a factor on the spread leads to."""


class Vary:
    """The choices that make one instance of a concept differ from the next.

    A program calls it for every length that may vary, in a fixed order. Without a generator every choice is the middle
    one, which gives the nominal instance.

    Args:
        rng: Generator addressed by seed, concept and instance, or None for the nominal instance.
        spread: Factor on the spread of every length, up to `MOST`.
    """

    def __init__(self, rng: np.random.Generator | None = None, spread: float = 1.0) -> None:
        self._rng = rng
        self._spread = spread
        self._uniform: Iterator[float] = iter(())

    def _next(self) -> float:
        if self._rng is None:
            return 0.5
        for value in self._uniform:
            return value
        # Numbers are drawn in blocks, because a call of the generator costs as much as ten of them.
        self._uniform = iter(self._rng.random(32).tolist())
        return next(self._uniform)

    def __call__(self, value: float, spread: float = SPREAD) -> float:
        """`value` times a factor in [1 - spread, 1 + spread]."""
        return value * (1 + min(spread * self._spread, max(spread, MOST)) * (2 * self._next() - 1))

    def shift(self, amount: float) -> float:
        """A displacement in [-amount, amount]."""
        return amount * self._spread * (2 * self._next() - 1)

    def count(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + min(int(self._next() * (high - low + 1)), high - low)


@dataclass(frozen=True)
class Concept:
    """One thing that can be doodled.

    Attributes:
        name: Label, as SEVA or QuickDraw spells it.
        features: Words for what it is, separated by spaces; see `features.semantic_space`.
        draw: Program from an instance's choices to the paths of every element, on a board of 100 × 100. The order of
            the elements is the order of diagnosticity: what a hurried person would draw first comes first.
        turn: Standard deviation of the instances' rotation in degrees; small for what stands on a floor.
    """

    name: str
    features: str
    draw: Callable[[Vary], Parts]
    turn: float = 4.0

    @cached_property
    def elements(self) -> tuple[str, ...]:
        """Names of the elements, most diagnostic first."""
        return tuple(self.draw(Vary()))
