"""Answers of a model about the elements of a sketch: their form, their check, and probabilities out of tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from humanlike.data.concepts import level
from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.elements.client_questions import Reply, TokenChoice

WORDS = ("present", "absent")  # the word for yes, the word for no; neither begins with the other


def presence_schema(elements: Sequence[str], words: tuple[str, str] = WORDS) -> dict[str, Any]:
    """JSON schema of an answer: an object with every element, each one of two words, and nothing else."""
    return {
        "type": "object",
        "properties": {e: {"type": "string", "enum": list(words)} for e in elements},
        "required": list(elements),
        "additionalProperties": False,
    }


def presence_answer(reply: Reply, elements: Sequence[str], words: tuple[str, str] = WORDS) -> dict[str, Any]:
    """The verdict on every element.

    Args:
        reply: The reply.
        elements: The elements that were asked about.
        words: The word for yes and the word for no.

    Returns:
        `present`: element → whether it is; `probability`: element → probability of being present, where the tokens of
        the reply give one.

    Raises:
        InvalidAnswerError: The reply is no JSON object, or an element is unknown, stands twice, lacks, or has
            neither word. Nothing of such a reply is used.

    Example:
        >>> presence_answer(Reply('{"ear": "present", "tail": "absent"}'), ["ear", "tail"])
        {'present': {'ear': True, 'tail': False}, 'probability': {}}
    """
    said = reply.json()
    own = {level(e): e for e in elements}
    present: dict[str, bool] = {}
    for name, verdict in said.items():
        element = name if name in elements else own.get(level(name))
        if element is None:
            raise InvalidAnswerError(f"{name!r} was not asked about")
        if element in present:
            raise InvalidAnswerError(f"{element!r} is answered twice")
        if not isinstance(verdict, str) or verdict.strip().lower() not in words:
            raise InvalidAnswerError(f"{element!r} must be {words[0]!r} or {words[1]!r}")
        present[element] = verdict.strip().lower() == words[0]
    lacking = [e for e in elements if e not in present]
    if lacking:
        raise InvalidAnswerError(f"{lacking[0]!r} is not answered ({len(lacking)} of {len(elements)} are not)")
    probability = token_probabilities(reply, {name: own.get(level(name), name) for name in said}, words)
    return {"present": {e: present[e] for e in elements}, "probability": probability}


def token_probabilities(
    reply: Reply, element_of: Mapping[str, str], words: tuple[str, str] = WORDS
) -> dict[str, float]:
    """P(yes) = p(yes) / (p(yes) + p(no)) at the token where the verdict on an element begins.

    Args:
        reply: A reply that passed the check.
        element_of: Name in the reply → element.
        words: The word for yes and the word for no.

    Returns:
        Element → probability; elements are left out where the tokens do not add up to the content, or where none of the
        likeliest tokens begins one of the two words.
    """
    if "".join(t.text for t in reply.tokens) != reply.content or not reply.tokens:
        return {}
    starts, at = [], 0
    for token in reply.tokens:
        starts.append(at)
        at += len(token.text)
    found = {}
    for name, element in element_of.items():
        pattern = rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:\s*\"\s*(?={words[0]}|{words[1]})"
        places = [m.end() for m in re.finditer(pattern, reply.content, flags=re.IGNORECASE)]
        if len(places) != 1:
            continue  # a name that is written with escapes, or that occurs elsewhere
        index = max(i for i, start in enumerate(starts) if start <= places[0])
        p = _probability(reply.tokens[index], places[0] - starts[index], words)
        if p is not None:
            found[element] = p
    return found


def _probability(token: TokenChoice, skipped: int, words: tuple[str, str]) -> float | None:
    """P(yes) at a token whose first `skipped` characters stand before the word."""
    before = token.text[:skipped]
    mass = dict.fromkeys(words, 0.0)
    for text, logprob in {**dict(token.others), token.text: token.logprob}.items():
        rest = text[skipped:].strip().lower()
        word = next((w for w in mass if rest and (w.startswith(rest) or rest.startswith(w))), None)
        if text[:skipped] == before and word is not None:
            mass[word] += math.exp(min(logprob, 0.0))
    total = sum(mass.values())
    return mass[words[0]] / total if total > 0 else None
