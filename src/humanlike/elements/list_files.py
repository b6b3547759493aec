"""Reading a YAML file of element lists with the line of everything in it, so that every message can name the place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped]

TEXT, NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"
_PLAIN = re.compile(r"[a-z][a-z' -]*[a-z]")
HEADER = ("superordinate", "author", "reviewed", "licence")


@dataclass(frozen=True)
class Entry:
    """The list of one concept as it stands in a file.

    Attributes:
        concept: Name or THINGS uniqueID.
        elements: Element → as written, in order; repetitions included.
        line: Line of the concept's name, from 1.
    """

    concept: str
    elements: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class RuleException:
    """An element that breaks a rule for a stated reason.

    Attributes:
        concept: Concept of the list.
        element: The element.
        rule: Name of the rule, see `linter.RULES`.
        reason: Why it stays.
        line: Line in the file, from 1.
    """

    concept: str
    element: str
    rule: str
    reason: str
    line: int


@dataclass(frozen=True)
class ListFile:
    """A file of element lists.

    Attributes:
        path: Where it is.
        header: What the file says of itself: `superordinate`, `author`, `reviewed`, `licence`, all optional.
        entries: The lists, in order.
        exceptions: What is allowed to break a rule.
    """

    path: Path
    header: Mapping[str, str]
    entries: tuple[Entry, ...]
    exceptions: tuple[RuleException, ...] = ()

    def provenance(self, entry: Entry) -> str:
        """One line that says where a list came from.

        Example:
            >>> file = ListFile(Path("mine.yaml"), {"author": "A. Person", "reviewed": "2026-11"}, ())
            >>> file.provenance(Entry("owl", ("beak",), 7))
            'mine.yaml line 7, by A. Person, reviewed 2026-11'
        """
        words = {"author": "by", "reviewed": "reviewed", "licence": "licence"}
        said = [f"{words[key]} {self.header[key]}" for key in words if key in self.header]
        return ", ".join([f"{self.path.name} line {entry.line}", *said])


def read_list_file(path: str | Path) -> ListFile:
    """A file of element lists: `concept: [element, …]`, alone or below `concepts:` with a header and exceptions.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is no YAML, a concept stands twice, or a value is of the wrong kind; with file and line.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            f"no file of element lists at {path}; write one with lines `concept: [element, element]`"
        )
    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a YAML file ({' '.join(str(error).split())})") from error
    if root is None:
        raise ValueError(f"{path}: the file is empty; write lines `concept: [element, element]`")
    fields = dict(_pairs(root, path, "the file"))
    if "concepts" not in fields:
        return ListFile(path, {}, _entries(root, path))
    unknown = sorted(set(fields) - {*HEADER, "concepts", "exceptions"})
    if unknown:
        line = _line(fields[unknown[0]])
        raise ValueError(f"{path}:{line}: unknown field {unknown[0]!r}; fields are {HEADER}, concepts and exceptions")
    header = {key: _text(fields[key], path, key, any_scalar=True) for key in HEADER if key in fields}
    exceptions = _exceptions(fields["exceptions"], path) if "exceptions" in fields else ()
    return ListFile(path, header, _entries(fields["concepts"], path), exceptions)


def list_file_text(entries: Mapping[str, Sequence[str]], header: Mapping[str, str], about: str = "") -> str:
    """A file that `read_list_file` reads.

    Args:
        entries: Concept → elements.
        header: Fields of `HEADER`.
        about: Lines of a comment at its start.

    Example:
        >>> print(list_file_text({"owl": ["beak", "wing"], "off": ["knob"]}, {"author": "A. Person"}), end="")
        author: "A. Person"
        concepts:
          owl: [beak, wing]
          "off": [knob]
    """
    lines = [f"# {line}" for line in about.splitlines()]
    lines += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in header.items()]
    lists = [f"  {scalar(c)}: [{', '.join(map(scalar, elements))}]" for c, elements in entries.items()]
    return "\n".join([*lines, "concepts:", *lists]) + "\n"


def scalar(word: str) -> str:
    """A word as YAML reads it back: in quotes where it would be taken for something else (no, off, 1)."""
    return word if _PLAIN.fullmatch(word) and yaml.safe_load(word) == word else json.dumps(word, ensure_ascii=False)


def _entries(node: yaml.Node, path: Path) -> tuple[Entry, ...]:
    if isinstance(node, yaml.ScalarNode) and node.tag == NULL:
        return ()  # every list is a comment
    found = []
    for concept, value in _pairs(node, path, "concepts"):
        if not isinstance(value, yaml.SequenceNode):
            raise ValueError(f"{path}:{_line(value)}: {concept} needs a list of elements, [element, element, …]")
        elements = tuple(_text(item, path, f"an element of {concept}") for item in value.value)
        found.append(Entry(concept, elements, _line(value)))
    return tuple(found)


def _exceptions(node: yaml.Node, path: Path) -> tuple[RuleException, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise ValueError(f"{path}:{_line(node)}: exceptions must be a list of {{concept, element, rule, reason}}")
    found = []
    for item in node.value:
        fields = {k: _text(v, path, k) for k, v in _pairs(item, path, "an exception")}
        if set(fields) != {"concept", "element", "rule", "reason"}:
            raise ValueError(f"{path}:{_line(item)}: an exception has concept, element, rule and reason; got {fields}")
        found.append(RuleException(**fields, line=_line(item)))
    return tuple(found)


def _pairs(node: yaml.Node, path: Path, what: str) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{path}:{_line(node)}: {what} must be lines `name: value`, got a {node.id}")
    seen: dict[str, int] = {}
    for key, value in node.value:
        name = _text(key, path, "a name")
        if name in seen:
            raise ValueError(f"{path}:{_line(key)}: {name!r} stands twice, first in line {seen[name]}; keep one")
        seen[name] = _line(key)
        yield name, value


def _text(node: yaml.Node, path: Path, what: str, any_scalar: bool = False) -> str:
    if not isinstance(node, yaml.ScalarNode) or (node.tag != TEXT and not any_scalar) or not node.value.strip():
        raise ValueError(
            f"{path}:{_line(node)}: {what} must be a word, got {getattr(node, 'value', None)!r}; put words that YAML "
            "reads otherwise (no, off, 1) into quotes"
        )
    return str(node.value)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
