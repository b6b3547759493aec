"""Lists of elements from a language model: samples merged by vote, internal parts left out by a second question.

Every sample is checked against a schema and kept under model, prompt and class, so that a list is paid for once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from humanlike.elements.client import ChatClient
from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.elements.client_questions import Outcome, Question, Reply
from humanlike.elements.endpoint_judge_answers import presence_answer, presence_schema
from humanlike.elements.extraction_words import normal
from humanlike.elements.lists import ElementLists
from humanlike.elements.prompts import Prompt, listed, spoken

Told = Callable[[str, int, int], None]
"""What is asked ("lists", "inside"), how many of its questions are settled, of how many."""

SEEN, INSIDE = "visible", "inside"
LONGEST_LIST = 60
COLUMNS = ("concept", "element", "votes", "samples", "place", "inside", "kept", "reason")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"elements": {"type": "array", "items": {"type": "string"}}},
    "required": ["elements"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class ExtractedElements:
    """What a model named, what was kept, and why the rest was not.

    Attributes:
        table: One row a (concept, element) that any sample named: `concept`, `element`, `votes` of `samples`, mean
            `place` in the samples that name it (from 0), `inside` (nullable boolean: the answer to the second question,
            <NA> where it was not asked or not answered), `kept`, and `reason` ("" where kept).
        failed: Concept → why it has no list.
        model: Who was asked.
        method: Prompts, samples and votes, in one line.
    """

    table: pd.DataFrame
    failed: Mapping[str, str]
    model: str
    method: str

    @property
    def lists(self) -> ElementLists:
        """The lists of concepts that have one, the element with most votes first.

        Raises:
            ValueError: No concept has a list.
        """
        kept = self.table[self.table["kept"]]
        if not len(kept):
            first = next(iter(self.failed.items()), ("", ""))
            raise ValueError(f"{self.model} gave no list of elements; {first[0]}: {first[1]}")
        found = {str(c): tuple(group) for c, group in kept.groupby("concept", sort=False)["element"]}
        return ElementLists(f"extracted:{self.model}", found, dict.fromkeys(found, f"{self.model}, {self.method}"))


@dataclass(frozen=True)
class ElementExtractor:
    """Asks a language model for the visible parts of things.

    Attributes:
        client: The client.
        prompt: Asks for the parts of a {label}.
        internal_prompt: Asks which of the {elements} of a {label} lie inside; None: nobody asks.
        samples: Number of samples; the first at the client's temperature.
        sample_temperature: Temperature of the others: at 0 they would all be alike.
        share: Share in (0, 1] of the samples that must name an element.
        most: Longest list; the elements with the fewest votes are left out.

    Raises:
        ValueError: A number is out of range, or a prompt has other blanks.
    """

    client: ChatClient
    prompt: Prompt
    internal_prompt: Prompt | None = None
    samples: int = 5
    sample_temperature: float = 0.7
    share: float = 0.5
    most: int = 12

    def __post_init__(self) -> None:
        if self.samples < 1 or not 0 < self.share <= 1 or self.most < 1 or self.sample_temperature < 0:
            raise ValueError(
                "extraction needs samples ≥ 1, share in (0, 1], most ≥ 1 and sample_temperature ≥ 0; got "
                f"{self.samples}, {self.share}, {self.most}, {self.sample_temperature}"
            )
        self.prompt.requiring("label")
        if self.internal_prompt is not None:
            self.internal_prompt.requiring("label", "elements")

    @property
    def method(self) -> str:
        """Prompts, samples and votes in one line."""
        filtered = f", inside by {self.internal_prompt.source}" if self.internal_prompt else ""
        return f"prompt {self.prompt.source}, {self.samples} samples, share {self.share:g}{filtered}"

    def extract(self, concepts: Sequence[str] | Mapping[str, str], told: Told | None = None) -> ExtractedElements:
        """Lists for some concepts.

        Args:
            concepts: Concepts; or concept → how to say it, where a name is not clear ("mouse2": "computer mouse").
            told: Called as questions are settled, from this thread.

        Raises:
            ValueError: Two concepts are said alike.
            EndpointError: The run cannot go on; see `ChatClient.ask_all`. What was answered is kept.
        """
        said = dict(concepts) if isinstance(concepts, Mapping) else {c: spoken(c) for c in concepts}
        self._distinct(said)
        answers, failed = self._sampled(said, told)
        votes = {concept: _votes(named, concept, said[concept]) for concept, named in answers.items()}
        chosen = {concept: self._voted(table) for concept, table in votes.items()}
        inside = self._inside({c: t["element"][t["kept"]].tolist() for c, t in chosen.items()}, said, told)
        tables = [_filtered(table, inside.get(concept)) for concept, table in chosen.items()]
        for concept, table in zip(chosen, tables, strict=True):
            if not table["kept"].any():
                failed[concept] = "nothing was left of what the model named"
        empty = pd.DataFrame({name: [] for name in COLUMNS}).astype({"kept": bool})
        table = pd.concat(tables, ignore_index=True)[list(COLUMNS)] if tables else empty
        return ExtractedElements(table, failed, self.client.source, self.method)

    @staticmethod
    def _distinct(said: Mapping[str, str]) -> None:
        seen: dict[str, str] = {}
        for concept, words in said.items():
            if words in seen:
                raise ValueError(
                    f"{seen[words]} and {concept} are both called {words!r}: the model would be asked the same; say "
                    f"what they are, {{{concept}: 'what it is'}}"
                )
            seen[words] = concept

    def _sampled(self, said: Mapping[str, str], told: Told | None) -> tuple[dict[str, list[list[str]]], dict[str, str]]:
        """Concept → samples, and concept → why there are too few."""
        asked = [(concept, sample) for concept in said for sample in range(self.samples)]
        outcomes = self._outcomes("lists", self._list_questions(asked, said), len(asked), told)
        found: dict[str, list[list[str]]] = {concept: [] for concept in said}
        reasons: dict[str, str] = {}
        for (concept, _), outcome in zip(asked, outcomes, strict=True):
            if outcome.answer is None:
                reasons[concept] = outcome.reason
            else:
                found[concept].append(outcome.answer["elements"])
        enough = {c: s for c, s in found.items() if 2 * len(s) > self.samples}
        failed = {
            c: f"{len(s)} of {self.samples} samples could be used; last: {reasons[c]}"
            for c, s in found.items()
            if c not in enough
        }
        return enough, failed

    def _list_questions(self, asked: Sequence[tuple[str, int]], said: Mapping[str, str]) -> Iterator[Question]:
        for concept, sample in asked:
            yield Question(
                topic="elements",
                user=self.prompt.filled(label=said[concept]),
                system=self.prompt.filled_system(label=said[concept]),
                check=named_elements,
                schema=SCHEMA,
                parameters={"temperature": self.sample_temperature, "seed": sample} if sample else {},
                sample=sample,
                correction=self.prompt.correction,
            )

    def _voted(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with what the votes decide."""
        enough = table["votes"] >= self.share * table["samples"]
        kept = enough & (enough.cumsum() <= self.most)
        reason = np.where(kept, "", np.where(enough, f"more than {self.most} elements", "too few votes"))
        return table.assign(kept=kept, reason=reason)

    def _inside(
        self, elements: Mapping[str, list[str]], said: Mapping[str, str], told: Told | None
    ) -> dict[str, dict[str, bool]]:
        """Concept → element → whether it lies inside; concepts without an answer are left out."""
        if self.internal_prompt is None:
            return {}
        asked = [concept for concept, names in elements.items() if names]
        outcomes = self._outcomes("inside", self._inside_questions(asked, elements, said), len(asked), told)
        return {c: o.answer["present"] for c, o in zip(asked, outcomes, strict=True) if o.answer is not None}

    def _inside_questions(
        self, asked: Sequence[str], elements: Mapping[str, list[str]], said: Mapping[str, str]
    ) -> Iterator[Question]:
        assert self.internal_prompt is not None
        for concept in asked:
            blanks = {"label": said[concept], "elements": listed(elements[concept])}
            yield Question(
                topic="inside",
                user=self.internal_prompt.filled(**blanks),
                system=self.internal_prompt.filled_system(**blanks),
                check=partial(presence_answer, elements=elements[concept], words=(INSIDE, SEEN)),
                schema=presence_schema(elements[concept], words=(INSIDE, SEEN)),
                correction=self.internal_prompt.correction,
            )

    def _outcomes(self, what: str, questions: Iterator[Question], count: int, told: Told | None) -> list[Outcome]:
        """What came of the questions, in their order."""
        found: dict[int, Outcome] = {}
        for outcome in self.client.ask_all(questions):
            found[outcome.index] = outcome
            if told is not None:
                told(what, len(found), count)
        return [found[i] for i in range(count)]


def named_elements(reply: Reply) -> dict[str, Any]:
    """The check of a list: {"elements": [text, …]}, of which at least one names a part.

    Raises:
        InvalidAnswerError: It is something else.

    Example:
        >>> named_elements(Reply('{"elements": ["mane", "tail"]}'))
        {'elements': ['mane', 'tail']}
    """
    said = reply.json()
    elements = said.get("elements")
    if set(said) != {"elements"} or not isinstance(elements, list) or not all(isinstance(e, str) for e in elements):
        raise InvalidAnswerError('the object must be {"elements": [words, …]} and hold nothing else')
    if len(elements) > LONGEST_LIST:
        raise InvalidAnswerError(f"{len(elements)} elements are more than {LONGEST_LIST}")
    if not any(normal(e) for e in elements):
        raise InvalidAnswerError("no element is a part in one to four words")
    return {"elements": elements}


def _votes(samples: Sequence[Sequence[str]], concept: str, said: str) -> pd.DataFrame:
    """Every element that a sample names, most votes first, then the place in the samples."""
    places: dict[str, list[int]] = {}
    for named in samples:
        own = {normal(said), normal(spoken(concept)), ""}
        for place, element in enumerate(e for e in dict.fromkeys(map(normal, named)) if e not in own):
            places.setdefault(element, []).append(place)
    rows = [(concept, e, len(p), len(samples), float(np.mean(p)), pd.NA) for e, p in places.items()]
    table = pd.DataFrame(rows, columns=list(COLUMNS[:6])).astype({"inside": "boolean"})
    return table.sort_values(["votes", "place", "element"], ascending=[False, True, True], ignore_index=True)


def _filtered(table: pd.DataFrame, inside: Mapping[str, bool] | None) -> pd.DataFrame:
    """The table after the second question."""
    if inside is None:
        return table
    lies = table["element"].map(inside).astype("boolean")
    out = table["kept"] & lies.fillna(False).astype(bool)
    reason = table["reason"].mask(out, "lies inside")
    return table.assign(inside=lies, kept=table["kept"] & ~out, reason=reason)
