"""How a vision-language model is asked for yes or no, and how probabilities are read from its logits.

Legend: Q questions about one image, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from PIL import Image

WORD_STARTS = "Ġ▁"
"""What byte-level and sentence-piece vocabularies write for a space before a word."""


@dataclass(frozen=True)
class Ask:
    """One question about an image.

    Attributes:
        user: The question.
        system: The system message; "" for none.
    """

    user: str
    system: str = ""

    @property
    def text(self) -> str:
        """Both, for models that know no system message."""
        return f"{self.system} {self.user}".strip()


@dataclass(frozen=True)
class Loading:
    """How a model is put into memory and used.

    Attributes:
        device: Where it runs.
        dtype: Type of its weights.
        batch_size: Questions in one forward pass.
        remote_code: Whether Python files of the model's own may run.
        processor: Further arguments of the processor, such as `max_pixels`.
    """

    device: torch.device
    dtype: torch.dtype = torch.float32
    batch_size: int = 8
    remote_code: bool = False
    processor: Mapping[str, Any] = field(default_factory=dict)


class LoadedReader(Protocol):
    """A model in memory that answers yes or no."""

    def log_masses(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        """(Q, 2) log-probability of all forms of "yes" and of all forms of "no"; the rest lies outside both."""


@runtime_checkable
class AnswerReader(Protocol):
    """A way to ask a kind of model: how its inputs are made and where its answer is read."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All settings that can change an answer, as JSON-like values."""

    def load(self, folder: Path, loading: Loading) -> LoadedReader:
        """Put a model into memory."""


def word_tokens(tokenizer: Any, words: Sequence[str]) -> tuple[int, ...]:
    """Ids of all tokens that are one of `words` in any case, with or without a space before.

    Args:
        tokenizer: A tokenizer of transformers.
        words: Lower-case words.

    Raises:
        ValueError: The vocabulary has none.
    """
    wanted = {word.strip().lower() for word in words}
    special = set(tokenizer.all_special_ids)
    found = [i for token, i in tokenizer.get_vocab().items() if token.lstrip(WORD_STARTS).strip().lower() in wanted]
    ids = tuple(sorted(i for i in found if i not in special))
    if not ids:
        raise ValueError(
            f"the vocabulary of this model has no token for {' or '.join(map(repr, sorted(wanted)))}: choose other "
            "words (judge.reader.yes_words, judge.reader.no_words, and a prompt that asks for them)"
        )
    return ids


def log_masses(logits_QV: torch.Tensor, yes: Sequence[int], no: Sequence[int]) -> np.ndarray:
    """(Q, 2) log of the summed softmax probabilities of the tokens `yes` and of the tokens `no`.

    Example:
        >>> logits = torch.log(torch.tensor([[0.1, 0.5, 0.1, 0.3]]))
        >>> np.exp(log_masses(logits, [0, 1], [2])).round(6).tolist()
        [[0.6, 0.1]]
    """
    logp_QV = torch.log_softmax(logits_QV.double(), dim=-1)
    return torch.stack([torch.logsumexp(logp_QV[:, list(ids)], dim=-1) for ids in (yes, no)], dim=-1).cpu().numpy()


def checked_words(yes: Sequence[str], no: Sequence[str]) -> None:
    """Refuse words that cannot be told apart.

    Raises:
        ValueError: A list is empty, or one word stands in both.
    """
    sets = [{word.strip().lower() for word in words} for words in (yes, no)]
    if not all(sets) or "" in sets[0] | sets[1] or sets[0] & sets[1]:
        raise ValueError(f"a reader needs words for yes and other words for no, got {list(yes)} and {list(no)}")
