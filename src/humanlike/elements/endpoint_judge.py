"""A judge of presence behind an endpoint: a vision-language model that is shown a sketch and asked for all elements."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from PIL import Image

from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Outcome, Picture, Question
from humanlike.elements.endpoint_judge_answers import presence_answer, presence_schema
from humanlike.elements.presence import ElementsOf, Presence, elements_by_item
from humanlike.elements.prompts import Prompt, listed, spoken
from humanlike.files import sha256_value
from humanlike.types import Features, ImageSource, Sketches

FORMAT = "png/1"


@dataclass(frozen=True)
class EndpointJudge:
    """Asks a model behind an OpenAI-compatible endpoint about all elements of a sketch in one request.

    An answer counts only if it names every element once and nothing else. A reply that does not is asked for once more;
    after that, and after a refusal, all elements of the sketch are missing with the reason, never absent.

    Attributes:
        client: The client.
        prompt: The question, with the blanks {label} and {elements}.
        size: Longest side in pixels that a sketch is shown at; larger ones are reduced, smaller ones stay.
        top_logprobs: Likeliest tokens to ask for, which give probabilities; 0: verdicts without probabilities.
        threshold: Probability from which an element counts as present.

    Raises:
        ValueError: A number is out of range, or the prompt has other blanks.
    """

    client: ChatClient
    prompt: Prompt
    size: int = 512
    top_logprobs: int = 5
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.size < 16 or not 0 <= self.top_logprobs <= 20 or not 0 < self.threshold < 1:
            raise ValueError(
                "an endpoint judge needs size ≥ 16, top_logprobs in 0 … 20 and threshold between 0 and 1; got "
                f"{self.size}, {self.top_logprobs}, {self.threshold}"
            )
        self.prompt.requiring("label", "elements")

    @property
    def source(self) -> str:
        """One line for the record."""
        return f"{self.client.source} at an endpoint, prompt {self.prompt.source}, sketches up to {self.size} px"

    def judge(self, sketches: Sketches, elements: ElementsOf, features: Features | None = None) -> Presence:
        """See `PresenceJudge`; features are not looked at.

        Raises:
            EndpointError: The run cannot go on; see `ChatClient.ask_all`. What was answered is kept.
        """
        del features
        names = elements_by_item(sketches, elements)
        asked = [i for i, row in enumerate(names) if row]
        outcomes: dict[int, Outcome] = {}
        for outcome in self.client.ask_all(self._questions(sketches, names, asked)):
            outcomes[asked[outcome.index]] = outcome
        ids = sketches.table["sketch_id"].tolist()
        rows = [row for i in asked for row in self._rows(ids[i], names[i], outcomes[i])]
        table = pd.DataFrame(rows, columns=["sketch_id", "element", "probability", "decision", "reason"])
        return Presence(table.astype({"decision": "boolean"}), tuple(ids), self.source, self.threshold)

    def questions(self, sketches: Sketches, elements: ElementsOf) -> Iterator[Question]:
        """The questions that `judge` asks, one a sketch with elements, in item order; nothing is sent or read."""
        names = elements_by_item(sketches, elements)
        yield from self._questions(sketches, names, [i for i, row in enumerate(names) if row])

    def _questions(self, sketches: Sketches, names: list[tuple[str, ...]], items: list[int]) -> Iterator[Question]:
        concepts = sketches.table["concept"].tolist()
        logprobs = {"logprobs": True, "top_logprobs": self.top_logprobs} if self.top_logprobs else {}
        for i in items:
            blanks = {"label": spoken(concepts[i]), "elements": listed(names[i])}
            digest = sha256_value([FORMAT, self.size, sketches.images.content_hash(i)])
            yield Question(
                topic="presence",
                user=self.prompt.filled(**blanks),
                system=self.prompt.filled_system(**blanks),
                check=partial(presence_answer, elements=names[i]),
                pictures=(Picture(digest, partial(png, sketches.images, i, self.size)),),
                schema=presence_schema(names[i]),
                parameters=logprobs,
                correction=self.prompt.correction,
            )

    def _rows(self, sketch_id: str, elements: tuple[str, ...], outcome: Outcome) -> Iterator[tuple]:
        for element in elements:
            if outcome.answer is None:
                yield sketch_id, element, np.nan, pd.NA, outcome.reason
                continue
            p = float(outcome.answer["probability"].get(element, np.nan))
            verdict = bool(outcome.answer["present"][element]) if np.isnan(p) else p >= self.threshold
            yield sketch_id, element, p, verdict, ""


def png(images: ImageSource, index: int, size: int) -> bytes:
    """An item as PNG, its longest side at most `size` pixels.

    Raises:
        OSError: The image cannot be read.
    """
    image = images.load(index).convert("RGB")
    if max(image.size) > size:
        scale = size / max(image.size)
        shape = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        image = image.resize(shape, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()
