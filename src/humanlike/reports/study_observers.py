"""How the observers of a study (people and many models) are named, coloured and marked, in figures and on the page.

A model's colour, marker and line say its family of training paradigms, so that nothing is told by colour alone; its
name stands beside its line or in its row. Observers that are simulated say so in their name, wherever it appears.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from humanlike.reports.figures import INK, MODEL_COLOURS, MUTED, PEOPLE_COLOUR
from humanlike.reports.wording import is_missing

LineStyle = Literal["-", "--", ":"] | tuple[float, Sequence[float]]

PEOPLE = "people"
SIMULATED_SUFFIX = " (simulated)"


@dataclass(frozen=True)
class Family:
    """A group of training paradigms that is drawn alike.

    Attributes:
        name: For legends.
        begins: What the paradigm's text begins with; "" takes what nothing else took.
        colour: On white; at least 4.5 : 1, so that it can carry text.
        variable: CSS variable that stands for the colour on a page, which has a dark side.
        marker: Of points.
        line: Of lines.
    """

    name: str
    begins: str
    colour: str
    variable: str
    marker: str
    line: LineStyle = "-"


SIMULATED_FAMILY = Family("simulated model", "", MUTED, "--muted", "h", (0, (1, 1)))
FAMILIES = (
    Family("supervised", "supervised", MODEL_COLOURS[0], "--model", "o"),
    Family("self-supervised", "self-supervised", "#00755a", "--self", "D", (0, (6, 1))),
    Family("language-image", "language-image", "#9b3f8f", "--language", "^", (0, (5, 1, 1, 1))),
    Family("semi-supervised", "semi-", "#8a6100", "--semi", "v", (0, (3, 1))),
    Family("untrained", "untrained", MUTED, "--muted", "X", (0, (1, 2))),
    Family("other", "", INK, "--ink", "P", (0, (3, 1, 1, 1))),
)


def family_of(paradigm: object) -> Family:
    """The family that a paradigm's text belongs to.

    Example:
        >>> family_of("self-supervised, contrastive").name, family_of(None).name
        ('self-supervised', 'other')
    """
    text = "" if is_missing(paradigm) else str(paradigm).strip().lower()
    return next(f for f in FAMILIES if text.startswith(f.begins) and (text or not f.begins))


@dataclass(frozen=True)
class Observers:
    """The observers of a study and how each is shown.

    Attributes:
        paradigms: Model → text of its training paradigm.
        simulated: Which observers are simulated; may hold "people".
        titles: Model → name to show; the others are shown by their own name.
    """

    paradigms: Mapping[str, object] = field(default_factory=dict)
    simulated: frozenset[str] = frozenset()
    titles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, models: pd.DataFrame | None, simulated: Collection[str] = ()) -> Observers:
        """From a study's table of models.

        Args:
            models: Columns `observer` and, where known, `paradigm` and `simulated` (bool).
            simulated: Observers that are simulated, beside those that the table marks.
        """
        if models is None or "observer" not in models:
            return cls(simulated=frozenset(simulated))
        names = models["observer"].astype(str).tolist()
        paradigms = dict(zip(names, models["paradigm"], strict=True)) if "paradigm" in models else {}
        marked = models["simulated"].fillna(False).astype(bool) if "simulated" in models else [False] * len(names)
        known = {name for name, is_simulated in zip(names, marked, strict=True) if is_simulated}
        return cls(paradigms, frozenset(simulated) | known)

    @property
    def people(self) -> str:
        """What to call people: `people`, or `simulated people`."""
        return "simulated people" if PEOPLE in self.simulated else PEOPLE

    def label(self, observer: str) -> str:
        """An observer's name; that it is simulated is part of it."""
        if observer == PEOPLE:
            return self.people
        name = self.titles.get(observer, observer)
        return name + SIMULATED_SUFFIX if observer in self.simulated and "simulated" not in name else name

    def family(self, observer: str) -> Family:
        """How a model is drawn."""
        if observer == PEOPLE:
            return Family(self.people, "", PEOPLE_COLOUR, "--people", "s", "--")
        return SIMULATED_FAMILY if observer in self.simulated else family_of(self.paradigms.get(observer))

    def families(self, observers: Iterable[str]) -> list[Family]:
        """The families of some observers, each once, in a fixed order, people first."""
        present = {self.family(o) for o in observers}
        order = [self.family(PEOPLE), *FAMILIES, SIMULATED_FAMILY]
        return [family for family in order if family in present]


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """Places for labels: at least `gap` apart, within [low, high], as near to the wanted places as that allows.

    The sum of squared moves is least (isotonic regression of the places less their rank times the gap). Where the
    labels do not fit at all, they stand at equal distances from `low` to `high`.

    Args:
        wanted: (n,) places, in any order.
        gap: Least distance.
        low: Lower end.
        high: Upper end.

    Returns:
        (n,) places in the order of `wanted`.

    Example:
        >>> spread([0.5, 0.5, 0.9], gap=0.2, low=0.0, high=1.0).round(2).tolist()
        [0.4, 0.6, 0.9]
    """
    n = len(wanted)
    if n == 0:
        return np.empty(0)
    order = np.argsort(np.asarray(wanted, dtype=float), kind="stable")
    if gap * (n - 1) >= high - low:
        places = np.linspace(low, high, n) if n > 1 else np.array([(low + high) / 2])
    else:
        steps = gap * np.arange(n)
        level = _isotonic(np.asarray(wanted, dtype=float)[order] - steps)
        # Cutting an isotonic fit at both ends gives the best fit within the ends.
        places = np.clip(level, low, high - steps[-1]) + steps
    out = np.empty(n)
    out[order] = places
    return out


def _isotonic(values: np.ndarray) -> np.ndarray:
    """The non-decreasing sequence nearest to `values` in squares: neighbours that fall are pooled into their mean."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    return np.concatenate([np.full(count, mean) for mean, count in blocks])
