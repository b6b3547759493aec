"""Questions to a chat endpoint, their replies, and the key under which an answer is kept."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.files import sha256_value

Structured = Literal["json_schema", "json_object", "none"]
KEY_VERSION = 1  # raise it when the meaning of a kept answer changes
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(?P<inside>.*)\n\s*```\s*", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """An image of a question, read only if the question is really sent.

    Attributes:
        digest: Hash of its content, and of how it is encoded.
        load: Gives the bytes of the file.
        media_type: What the bytes are.
    """

    digest: str
    load: Callable[[], bytes] = field(repr=False)
    media_type: str = "image/png"

    def data_url(self) -> str:
        """The picture as an address that holds it."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.load()).decode('ascii')}"


@dataclass(frozen=True)
class TokenChoice:
    """One token of a reply.

    Attributes:
        text: The token.
        logprob: Its log-probability.
        others: The likeliest tokens at this place with their log-probabilities.
    """

    text: str
    logprob: float
    others: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Reply:
    """What a model replied.

    Attributes:
        content: The text.
        finish: Why it ended: "stop", "length", …; "" where the endpoint does not say.
        tokens: The tokens with log-probabilities; empty where they are not offered.
        used: Tokens of prompt and reply together; None where the endpoint does not say.
    """

    content: str
    finish: str = ""
    tokens: tuple[TokenChoice, ...] = ()
    used: int | None = None

    def json(self) -> dict[str, Any]:
        """The content as a JSON object, alone or in one fenced block.

        Raises:
            InvalidAnswerError: It was cut off, is prose, no JSON, no object, or names a field twice.

        Example:
            >>> Reply('{"eye": "present"}').json()
            {'eye': 'present'}
        """
        if self.finish == "length":
            raise InvalidAnswerError("the reply was cut off at the limit of tokens")
        fenced = _FENCED.fullmatch(self.content)
        try:
            value = json.loads(
                fenced["inside"] if fenced else self.content, object_pairs_hook=_once, parse_constant=_no_number
            )
        except InvalidAnswerError:
            raise
        except (ValueError, RecursionError):
            raise InvalidAnswerError("the reply is not a JSON object and nothing else") from None
        if not isinstance(value, dict):
            raise InvalidAnswerError(f"the reply is a JSON {type(value).__name__}, not an object")
        return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidAnswerError(f"the reply names {twice!r} twice")
    return found


def _no_number(name: str) -> float:
    raise InvalidAnswerError(f"the reply holds {name}, which is no JSON")


@dataclass(frozen=True)
class Question:
    """One question, with the check that its answer must pass.

    Attributes:
        topic: What kind of question it is, a word.
        user: The text.
        check: Makes JSON-like values of a reply, or raises `InvalidAnswerError`.
        system: The system message; "" for none.
        pictures: Images that go with it.
        schema: JSON schema of the answer, an object; None for free text.
        parameters: Parameters of the request beside those of the client, for example temperature.
        sample: Number of the sample; samples of one question are asked for and kept apart.
        correction: Sentence that is added when a reply could not be used, with {reason}.
    """

    topic: str
    user: str
    check: Callable[[Reply], dict[str, Any]] = field(repr=False, compare=False)
    system: str = ""
    pictures: tuple[Picture, ...] = ()
    schema: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sample: int = 0
    correction: str = "Your last reply could not be used: {reason}. Reply with the JSON object alone."

    def key(self, model: str, revision: str, parameters: Mapping[str, Any], structured: Structured) -> str:
        """Hash of everything that decides the answer: model, texts, contents of the pictures, schema, parameters.

        Args:
            model: Name of the model.
            revision: What else distinguishes it: a quantisation, a date.
            parameters: Parameters of the client.
            structured: How the form of the answer is asked for.
        """
        return sha256_value(
            {
                "version": KEY_VERSION,
                "model": [model, revision],
                "texts": [self.topic, self.system, self.user, self.correction],
                "pictures": [[p.media_type, p.digest] for p in self.pictures],
                "schema": None if self.schema is None else [structured, self.schema],
                "parameters": {**parameters, **self.parameters},
                "sample": self.sample,
            }
        )

    def body(
        self, model: str, parameters: Mapping[str, Any], structured: Structured, reason: str = ""
    ) -> dict[str, Any]:
        """The JSON body of the request.

        Args:
            model: Name of the model.
            parameters: Parameters of the client.
            structured: How the form of the answer is asked for.
            reason: Why the last reply could not be used; "" at the first attempt.
        """
        text = f"{self.user}\n\n{self.correction.replace('{reason}', reason)}" if reason else self.user
        content: Any = text
        if self.pictures:
            pictures = [{"type": "image_url", "image_url": {"url": p.data_url()}} for p in self.pictures]
            content = [{"type": "text", "text": text}, *pictures]
        messages = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {"model": model, "messages": [*messages, {"role": "user", "content": content}]}
        if self.schema is not None and structured == "json_schema":
            form = {"name": self.topic, "strict": True, "schema": dict(self.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif self.schema is not None and structured == "json_object":
            body["response_format"] = {"type": "json_object"}
        return {**body, **parameters, **self.parameters}

    def estimated_tokens(self, parameters: Mapping[str, Any]) -> int:
        """A generous guess: three characters a token, 1,000 tokens a picture, and the longest reply that is allowed."""
        both = {**parameters, **self.parameters}
        longest = int(both.get("max_completion_tokens") or both.get("max_tokens") or 500)
        text = len(self.system) + len(self.user) + len(json.dumps(self.schema) if self.schema else "")
        return text // 3 + 1000 * len(self.pictures) + longest


@dataclass(frozen=True)
class Outcome:
    """What came of a question.

    Attributes:
        index: Position of the question, from 0.
        answer: The validated answer; None where there is none.
        reason: Why there is none; "" where there is one.
        kept: Whether it came from the cache.
    """

    index: int
    answer: dict[str, Any] | None
    reason: str = ""
    kept: bool = False
