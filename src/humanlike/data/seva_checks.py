"""Whether the files that were read hold what SEVA's paper says it has: each count with what is expected and found."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from humanlike.data.concepts import level
from humanlike.types import Sketches

logger = logging.getLogger(__name__)

SKETCHES = 89_797
LABELS = 1_854
CONCEPTS = 128
PHOTOGRAPHS = 16
BUDGETS = 4
JUDGMENTS = 12


@dataclass(frozen=True)
class CountCheck:
    """One count of the published data.

    Attributes:
        what: What is counted.
        expected: The published number, the lowest and the highest where exclusions leave it open.
        found: The number in the files.
        binding: Whether a deviation is an error under `on_count=raise`; else it is only said.
    """

    what: str
    expected: tuple[int, int]
    found: int
    binding: bool = True

    @property
    def ok(self) -> bool:
        """Whether the number is the published one."""
        return self.expected[0] <= self.found <= self.expected[1]

    def line(self) -> str:
        """The check as it is printed.

        Example:
            >>> CountCheck("concepts", (128, 128), 8).line()
            'concepts: 8, expected 128: DEVIATES'
        """
        low, high = self.expected
        wanted = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        return f"{self.what}: {self.found:,}, expected {wanted}{'' if self.ok else ': DEVIATES'}"


@dataclass(frozen=True)
class PublishedSketches(Sketches):
    """A data set from published files, with what was read and whether it is complete.

    Attributes:
        rows_read: File name → rows.
        checks: Counts against the published numbers.
        probabilities: Folder of pickles with models' class probabilities, there or not.
    """

    rows_read: Mapping[str, int] = field(default_factory=dict)
    checks: tuple[CountCheck, ...] = ()
    probabilities: Path | None = None

    def record(self) -> dict[str, Any]:
        """What was read, and every check, as it is stored."""
        checks = [{**asdict(check), "ok": check.ok} for check in self.checks]
        return {"rows_read": dict(self.rows_read), "checks": checks}

    def lines(self) -> list[str]:
        """What was read, and every check, a line each."""
        said = [f"read       {rows:,} rows of {name}" for name, rows in self.rows_read.items()]
        return [*said, *(f"check      {check.line()}" for check in self.checks)]


def exactly(what: str, expected: int, found: int, binding: bool = True) -> CountCheck:
    """A count that must be one number."""
    return CountCheck(what, (expected, expected), int(found), binding)


def study_checks(
    trials: pd.DataFrame, judged: pd.DataFrame, sketches: int, participants: int, excluded: int, unit: str
) -> list[CountCheck]:
    """Counts of a recognition experiment.

    Args:
        trials: Cleaned trials.
        judged: One row a judged sketch.
        sketches: Judged sketches in the published data.
        participants: People that took part.
        excluded: People of these that were excluded, who may be in the file or not.
        unit: Unit of the budgets.
    """
    photographs = judged.groupby("concept")["image_id"].nunique()
    cells = judged.groupby(["concept", "condition"]).size()
    number = trials.groupby("sketch_id").size()
    return [
        exactly("judged sketches", sketches, len(judged)),
        exactly("concepts", CONCEPTS, judged["concept"].nunique()),
        exactly("photographs of the concept with the fewest", PHOTOGRAPHS, photographs.min()),
        exactly("photographs of the concept with the most", PHOTOGRAPHS, photographs.max()),
        exactly(f"budgets ({unit})", BUDGETS, judged["condition"].nunique()),
        exactly("cells (concept × budget)", CONCEPTS * BUDGETS, len(cells)),
        CountCheck("participants", (participants - excluded, participants), trials["subjectID"].nunique()),
        exactly(f"sketches with fewer than {JUDGMENTS} judgments", 0, int((number < JUDGMENTS).sum()), binding=False),
    ]


def name_check(trials: pd.DataFrame, concepts: pd.DataFrame) -> CountCheck:
    """How many concepts go by another name than THINGS gives their uniqueID, capitals and blanks aside.

    Args:
        trials: Rows with `concept` (the name) and `uniqueID`.
        concepts: things_concepts.tsv with `uniqueID` and `Word`.
    """
    word = dict(zip(concepts["uniqueID"], concepts["Word"], strict=True))
    pairs = trials[["concept", "uniqueID"]].drop_duplicates()
    other = [level(str(n)) != level(str(word[u])) for n, u in zip(pairs["concept"], pairs["uniqueID"], strict=True)]
    return exactly("concepts named otherwise than in THINGS", 0, sum(other), binding=False)


def settle(checks: Sequence[CountCheck], on_count: str, where: str) -> tuple[str, ...]:
    """Refuse deviating counts, or warn and return the flag that must stand next to every score.

    Args:
        checks: The counts.
        on_count: "raise", or "warn" for a subset that is meant to be one.
        where: The files, for the message.

    Raises:
        ValueError: With every deviation, under "raise".
    """
    for check in (c for c in checks if not c.ok and not c.binding):
        logger.warning("%s: %s", where, check.line())
    off = [c for c in checks if not c.ok and c.binding]
    if not off:
        return ()
    said = "; ".join(c.line().removesuffix(": DEVIATES") for c in off)
    if on_count == "raise":
        raise ValueError(
            f"{where}: {len(off)} of {len(checks)} counts are not those of the published data: {said}. Fetch the files "
            "again, or set on_count=warn where a part of the data is meant; every score then carries a flag"
        )
    logger.warning("%s: not the whole of the published data: %s", where, said)
    return (f"counts deviate from the published data: {said}",)
