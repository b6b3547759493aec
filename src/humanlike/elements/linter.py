"""Checks of element lists: countable, visible, drawable parts, one word for each, in the singular.

The words behind the rules are tables in rules.yaml, made to be read and edited by people; a list may break a rule where
its file says so with a reason, and an exception that is not needed is itself a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from humanlike.data.concepts import level
from humanlike.elements.list_files import HEADER, Entry, ListFile, read_list_file
from humanlike.elements.lists import list_paths

FEWEST, MOST = 4, 12
RULES = ("count", "letters", "singular", "duplicate", "synonym", "internal", "unseen", "concept")
WORDS = re.compile(r"[a-z]+(-[a-z]+)*( [a-z]+(-[a-z]+)*)*")


@dataclass(frozen=True)
class Problem:
    """What is wrong with a list, and where.

    Attributes:
        path: File.
        line: Line, from 1.
        concept: Concept of the list, or "" for the file as a whole.
        element: The element, or "" for the list as a whole.
        rule: One of `RULES`, or "file".
        message: What is wrong, and what to do.

    Example:
        >>> print(Problem(Path("mine.yaml"), 3, "owl", "Wings", "singular", "write the singular"))
        mine.yaml:3: owl: Wings: write the singular [singular]
    """

    path: Path
    line: int
    concept: str
    element: str
    rule: str
    message: str

    def __str__(self) -> str:
        words = [w for w in (self.concept, self.element) if w]
        return f"{self.path}:{self.line}: {': '.join([*words, self.message])} [{self.rule}]"


def lint(paths: Iterable[str | Path] | None = None) -> tuple[Problem, ...]:
    """All problems of some files of element lists, in the order of files and lines.

    Args:
        paths: Files; None for those of this package.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file cannot be read as lists, see `read_list_file`.
    """
    files = [read_list_file(path) for path in (list_paths() if paths is None else paths)]
    seen: dict[str, str] = {}
    problems = []
    for file in files:
        problems += file_problems(file)
        for entry in file.entries:
            if entry.concept in seen:
                message = f"has a list already, at {seen[entry.concept]}; keep one"
                problems.append(Problem(file.path, entry.line, entry.concept, "", "file", message))
            seen.setdefault(entry.concept, f"{file.path.name}:{entry.line}")
    return tuple(problems)


def file_problems(file: ListFile) -> list[Problem]:
    """The problems of one file: those of its lists that no exception covers, and those of its header and exceptions."""
    needed = {(e.concept, e.element, e.rule): e for e in file.exceptions}
    used, problems = set(), []
    for key in HEADER:
        if key not in file.header:
            problems.append(Problem(file.path, 1, "", "", "file", f"says no {key}; add it before `concepts:`"))
    for entry in file.entries:
        for problem in entry_problems(entry, file.path):
            address = (problem.concept, problem.element, problem.rule)
            if address in needed:
                used.add(address)
            else:
                problems.append(problem)
    for address, exception in needed.items():
        if exception.rule not in RULES:
            text = f"there is no rule {exception.rule!r}; rules are {RULES}"
        elif address not in used:
            text = "this exception is not needed; remove it"
        else:
            continue
        problems.append(Problem(file.path, exception.line, exception.concept, exception.element, "file", text))
    return sorted(problems, key=lambda p: p.line)


def entry_problems(entry: Entry, path: Path) -> Iterator[Problem]:
    """The problems of one list, exceptions aside."""
    elements = entry.elements
    if not FEWEST <= len(elements) <= MOST:
        text = f"{len(elements)} elements; a list has {FEWEST} to {MOST}"
        yield Problem(path, entry.line, entry.concept, "", "count", text)
    for number, element in enumerate(elements):
        for rule, message in _element_problems(entry.concept, element):
            yield Problem(path, entry.line, entry.concept, element, rule, message)
        if level(element) in {level(e) for e in elements[:number]}:
            yield Problem(path, entry.line, entry.concept, element, "duplicate", "stands twice; keep one")
        for other in elements[:number]:
            if element != other and any({element, other} <= row for row in _rows("synonyms")):
                text = f"means the same as {other!r}; keep one"
                yield Problem(path, entry.line, entry.concept, element, "synonym", text)


def is_plural(noun: str) -> bool:
    """Whether a noun is a plural, by its ending and the tables of rules.yaml.

    Example:
        >>> [is_plural(noun) for noun in ("wings", "feet", "glass", "lens", "proboscis", "cactus", "eye")]
        [True, True, False, False, False, False, False]
    """
    if noun in _words("plural"):
        return True
    if noun in _words("singular") or noun in _words("plural_only"):
        return False
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def _element_problems(concept: str, element: str) -> Iterator[tuple[str, str]]:
    if not WORDS.fullmatch(element):
        yield "letters", "write it in lower-case letters, words separated by one space or a hyphen"
    word = element.lower()
    noun = _head(word)
    if is_plural(noun):
        yield "singular", "write the singular"
    if {word, noun} & _words("internal"):
        yield "internal", "lies inside; name a part that is seen, or state an exception with the reason"
    if {word, noun} & _words("unseen"):
        yield "unseen", "no line of a drawing shows it; name a part"
    if level(element) in {level(concept), level(concept.rstrip("0123456789"))}:
        yield "concept", "is the concept itself; name a part"


def _head(element: str) -> str:
    """The noun that carries the number: the last word, or the one before "of"."""
    words = element.split(" of ")[0].split() or [element]
    return words[-1].split("-")[-1]


@cache
def _rules() -> dict[str, list[list[str]]]:
    path = Path(__file__).with_name("rules.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@cache
def _rows(table: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(row) for row in _rules()[table])


@cache
def _words(table: str) -> frozenset[str]:
    return frozenset().union(*_rows(table))
