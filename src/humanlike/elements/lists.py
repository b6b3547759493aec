"""Which elements a concept has: the lists E that a sketch's visual ratio v = V/E counts in, and where they came from.

E differs between sources and changes v, and with it every score: `ElementLists.source` goes next to a score, and
`source_difference` gives the sentence that belongs next to two scores of different sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from humanlike.data.concepts import level
from humanlike.data.labels import nearest_labels
from humanlike.elements.list_files import ListFile, read_list_file
from humanlike.files import sha256_value
from humanlike.types import Sketches

FOLDER = Path(str(resources.files("humanlike.elements"))) / "lists"
WAY_OUT = (
    "give a YAML file with lines `concept: [element, element, …]` (benchmark.elements=FILE, ElementLists.from_yaml), "
    "or take the elements that the data set itself is annotated for (ElementLists.from_annotation)"
)


@dataclass(frozen=True)
class ElementLists(Mapping[str, tuple[str, ...]]):
    """Concept → its elements, with their source.

    A concept is found by its key (a THINGS uniqueID in the shipped lists), by an alias, or by a plain word when that
    names one concept only: `bat` is refused where there are `bat1` and `bat2`.

    Attributes:
        origin: "shipped", "annotation:NAME" or "user:FILE".
        elements: Key → elements, none empty, none repeated.
        provenance: Key → one line on where this list came from.
        aliases: Other name → key.

    Raises:
        ValueError: For an empty list, a repeated element or a key without provenance.

    Example:
        >>> lists = ElementLists("user:mine.yaml", {"owl": ("beak", "wing", "eye")}, {"owl": "mine.yaml line 1"})
        >>> lists["Owl"], lists.source
        (('beak', 'wing', 'eye'), 'user:mine.yaml@147eef6aa728')
    """

    origin: str
    elements: Mapping[str, tuple[str, ...]]
    provenance: Mapping[str, str]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for concept, elements in self.elements.items():
            if isinstance(elements, str) or not elements:
                raise ValueError(f"{self.origin}: {concept} needs at least one element, got {elements!r}; {WAY_OUT}")
            repeated = sorted({e for e in elements if list(elements).count(e) > 1})
            if repeated:
                raise ValueError(f"{self.origin}: elements of {concept} stand twice: {repeated}; keep one of each")
            if concept not in self.provenance:
                raise ValueError(f"{self.origin}: nothing says where the elements of {concept} came from")
        object.__setattr__(self, "elements", {str(c): tuple(map(str, e)) for c, e in self.elements.items()})

    @classmethod
    def from_yaml(cls, path: str | Path) -> ElementLists:
        """A user's lists; names of other spelling and for the same thing are known as in the shipped ones.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: See `read_list_file` and `ElementLists`.
        """
        file = read_list_file(path)
        return _of_files(f"user:{file.path.name}", [file])

    @classmethod
    def from_annotation(cls, sketches: Sketches) -> ElementLists:
        """The elements that the sketches of a data set are annotated for, drawn or not, concept by concept.

        Raises:
            ValueError: The data set has no annotation.
        """
        from humanlike.elements.annotation import annotated_elements  # brings torch

        found = annotated_elements(sketches)
        return cls(f"annotation:{sketches.name}", found, dict.fromkeys(found, f"annotation of {sketches.name}"))

    @cached_property
    def content_hash(self) -> str:
        """Hex SHA-256 of concepts and elements; the order of the elements does not count, as it does not in v."""
        return sha256_value({concept: sorted(elements) for concept, elements in self.elements.items()})

    @property
    def source(self) -> str:
        """What goes next to a score: the origin and the first 12 digits of the content hash."""
        return f"{self.origin}@{self.content_hash[:12]}"

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self.elements[self.key(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(self._candidates(name)) == 1

    def key(self, name: str) -> str:
        """The key of the concept that `name` means.

        Raises:
            UnknownConceptError: No list (a KeyError), or several, with what to do.
        """
        found = self._candidates(name)
        if len(found) != 1:
            raise UnknownConceptError(self._refusal(name, found) + ("" if found else f"; {WAY_OUT}"))
        return found[0]

    def for_labels(self, labels: Iterable[str], senses: Mapping[str, str] | None = None) -> ElementLists:
        """The lists of a data set's labels, keyed by label: what judges of presence take.

        Args:
            labels: Label names.
            senses: Label → key, for labels that several concepts share; see `known_senses`.

        Raises:
            ValueError: Labels without a list or with several, each named.
        """
        senses = dict(senses or {})
        keys, refused = {}, []
        for label in labels:
            found = self._candidates(senses.get(label, label))
            if len(found) == 1:
                keys[label] = found[0]
            else:
                refused.append(self._refusal(senses.get(label, label), found))
        if refused:
            first = "; ".join(refused[:5]) + (f"; and {len(refused) - 5} more" if len(refused) > 5 else "")
            raise ValueError(f"no elements for {len(refused)} of {len(keys) + len(refused)} labels: {first}; {WAY_OUT}")
        return ElementLists(
            self.origin,
            {label: self.elements[key] for label, key in keys.items()},
            {label: self.provenance[key] for label, key in keys.items()},
        )

    def completed_by(self, other: ElementLists) -> ElementLists:
        """These lists, and those of `other` for concepts that are not here; the provenance tells them apart."""
        more = [c for c in other.elements if c not in self.elements]
        return ElementLists(
            f"{self.origin}+{other.origin}",
            {**self.elements, **{c: other.elements[c] for c in more}},
            {**self.provenance, **{c: other.provenance[c] for c in more}},
            {**other.aliases, **self.aliases},
        )

    @cached_property
    def _by_word(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for concept in self.elements:
            for word in {level(concept), level(concept.rstrip("0123456789"))}:
                found.setdefault(word, []).append(concept)
        for alias, concept in self.aliases.items():
            if concept in self.elements:
                found.setdefault(level(alias), [concept])
        return {word: tuple(sorted(concepts)) for word, concepts in found.items()}

    def _candidates(self, name: str) -> tuple[str, ...]:
        return (name,) if name in self.elements else self._by_word.get(level(name), ())

    def _refusal(self, name: str, found: tuple[str, ...]) -> str:
        if found:
            choice = f"name the id, or say which with senses={{{name}: {found[0]}}} (benchmark.senses)"
            return f"{name!r} names several things ({', '.join(found)}); {choice}"
        return f"{name!r} has no list in {self.origin} ({nearest_labels(name, tuple(self.elements))})"


class UnknownConceptError(KeyError):
    """A concept without a list, or a name of several concepts."""

    def __str__(self) -> str:
        """The sentence as it is; a KeyError would show it in quotes."""
        return str(self.args[0])


def shipped() -> ElementLists:
    """The lists of this package: SEVA's 128 concepts, the demo's, and those of Quick, Draw! that THINGS knows.

    Example:
        >>> shipped()["violin"][:4], "mouse" in shipped(), shipped()["mouse2"][:2]
        (('body', 'neck', 'string', 'scroll'), False, ('body', 'button'))
    """
    return _shipped()


@cache
def _shipped() -> ElementLists:
    return _of_files("shipped", [read_list_file(path) for path in list_paths()])


def list_paths() -> tuple[Path, ...]:
    """The files of the shipped lists, one a superordinate."""
    return tuple(sorted(FOLDER.glob("*.yaml")))


def known_senses(dataset: str) -> dict[str, str]:
    """What a data set means by its labels of several things; empty for data sets that nobody looked at.

    Example:
        >>> known_senses("doodles")
        {'button': 'button1', 'mouse': 'mouse1', 'tank': 'tank1'}
    """
    return dict(_names()["senses"].get(dataset, {}))


def source_difference(a: ElementLists | str, b: ElementLists | str) -> str:
    """The sentence that belongs next to scores of two sources of elements; "" where the sources are the same.

    Args:
        a: Lists, or the `source` written next to a score.
        b: The other.

    Example:
        >>> source_difference("shipped@0123", "shipped@0123")
        ''
        >>> source_difference("shipped@0123", "annotation:doodles@89ab").split(":")[0]
        'these scores count different elements and cannot be compared'
    """
    one, two = (x if isinstance(x, str) else x.source for x in (a, b))
    if one == two:
        return ""
    text = f"these scores count different elements and cannot be compared: {one} against {two}"
    if isinstance(a, str) or isinstance(b, str):
        return text
    shared = [c for c in a if c in b.elements]
    differing = [c for c in shared if set(a.elements[c]) != set(b.elements[c])]
    only = len(a) + len(b) - 2 * len(shared)
    example = ", for example " + ", ".join(differing[:3]) if differing else ""
    return f"{text}; {len(differing)} of {len(shared)} shared concepts differ{example}; {only} are in one of them only"


@cache
def _names() -> dict[str, dict]:
    return dict(yaml.safe_load((FOLDER.parent / "names.yaml").read_text(encoding="utf-8")))


def _of_files(origin: str, files: Iterable[ListFile]) -> ElementLists:
    elements: dict[str, tuple[str, ...]] = {}
    provenance: dict[str, str] = {}
    for file in files:
        for entry in file.entries:
            if entry.concept in elements:
                raise ValueError(
                    f"{file.path}:{entry.line}: {entry.concept} has a list already ({provenance[entry.concept]})"
                )
            elements[entry.concept] = entry.elements
            provenance[entry.concept] = file.provenance(entry)
    return ElementLists(origin, elements, provenance, _names()["aliases"])
