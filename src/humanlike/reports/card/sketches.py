"""Example sketches of the card: those that the runs' own reports show, each picture once, with all models' answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from humanlike.reports.card.groups import Group

_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")
MOST = 24
"""Pictures shown for a group."""


@dataclass
class Picture:
    """A sketch, and what was said of it.

    Attributes:
        source: The picture as a `data:` address.
        text: What it shows, in words.
        heading: Its condition.
        people: What people said, or "".
        answers: (label of a model, its answer, whether that is right, what else is said).
    """

    source: str
    text: str
    heading: str
    people: str = ""
    answers: list[tuple[str, str, bool, str]] = field(default_factory=list)

    @property
    def right(self) -> int:
        """Number of models whose answer is right."""
        return sum(correct for _, _, correct, _ in self.answers)

    @property
    def commonest(self) -> tuple[str, int]:
        """The answer of most models, the first in the alphabet on a tie, and how many gave it."""
        said = [answer for _, answer, _, _ in self.answers]
        best = max(map(said.count, said), default=0)
        return min((a for a in said if said.count(a) == best), default=""), best


def pictures(group: Group, most: int = MOST) -> list[Picture]:
    """The pictures in the reports of a group's runs, those that most models were asked about first.

    Args:
        group: Runs that can be compared; those without a report, or whose report has no sketches, are passed over.
        most: Number of pictures kept.
    """
    found: dict[str, Picture] = {}
    if "study" in group.facts:  # its page says how many models were right, not what each of them said
        return []
    for entry in group.entries:
        for figure in _figures(Path(str(entry.first.run_dir)) / "report.html"):
            key = hashlib.sha256((figure.source + figure.text).encode()).hexdigest()
            picture = found.setdefault(key, Picture(figure.source, figure.text, figure.heading))
            answer, others = figure.answer, figure.others
            picture.people = picture.people or next((o for o in others if "people:" in o), "")
            rest = "; ".join(o for o in others if "people:" not in o)
            picture.answers.append((entry.label, answer.removeprefix("model: ").rstrip(" ✓✗"), "✓" in answer, rest))
    # Sorting keeps the order of the report among pictures that as many models were asked about.
    return sorted(found.values(), key=lambda picture: -len(picture.answers))[:most]


@dataclass
class _Figure:
    source: str = ""
    text: str = ""
    heading: str = ""
    answer: str = ""
    others: Sequence[str] = ()


def _figures(report: Path) -> Iterator[_Figure]:
    """Sketches in the gallery of a run's report; none where it has no such section."""
    if not report.is_file():
        return
    text = report.read_text(encoding="utf-8", errors="replace")
    start = text.find('<section aria-labelledby="sketches">')
    if start < 0:
        return
    reader = _Gallery()
    reader.feed(text[start : text.find("</section>", start)])
    yield from (f for f in reader.found if _PICTURE.fullmatch(f.source))


class _Gallery(HTMLParser):
    """Reads the figures of class `sketch` that `templates/report.html.j2` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Figure] = []
        self._into = ""
        self._said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "figure" and "sketch" in given.get("class", "").split():
            self.found.append(_Figure())
            self._said = []
        elif self.found and tag == "img":
            self.found[-1].source, self.found[-1].text = given.get("src", ""), given.get("alt", "")
        elif self.found and tag == "b":
            self._into = "heading"
        elif self.found and tag == "span":
            self._into = "said"
            self._said.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("b", "span"):
            self._into = ""
        if tag == "figure" and self.found:
            said = [" ".join(text.split()) for text in self._said]
            self.found[-1].answer = said[0] if said else ""
            self.found[-1].others = said[1:]

    def handle_data(self, data: str) -> None:
        if self._into == "heading":
            self.found[-1].heading += data.strip()
        elif self._into == "said":
            self._said[-1] += data
