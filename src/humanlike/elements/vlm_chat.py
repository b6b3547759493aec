"""Chat models: LLaVA, Qwen2.5-VL, InternVL, SmolVLM, Molmo 2 and all others whose processor has a chat template.

Legend: Q questions about one image, T tokens, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from humanlike.elements.vlm_answers import Ask, Loading, checked_words, log_masses, word_tokens
from humanlike.elements.vlm_loading import load_model, load_processor
from humanlike.elements.vlm_next_token import Inputs, last_only, next_token_logits, on_device

TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.1}
"""Largest difference in P(yes) between the two ways of computing it; logits of narrow types are 1/8 apart."""


@dataclass(frozen=True)
class ChatReader:
    """Reads the token that a chat model would say first.

    The prompt is the chat template's: the image, then the question. Questions about one image begin alike, so that the
    image and all tokens up to where they part are computed once (`share_prefix`). At the first image both ways are
    computed and compared, and the run ends with a sentence where they differ.

    Attributes:
        yes_words: Words that mean yes; every token that is one of them counts, in any case, with or without a space
            before.
        no_words: Words that mean no.
        share_prefix: Compute what the questions have in common once; needs causal attention.
        template: Further arguments of the chat template, such as {enable_thinking: false}.
        model_class: Class of transformers that loads the model.

    Raises:
        ValueError: There are no words, or one stands for both.
    """

    yes_words: Sequence[str] = ("yes",)
    no_words: Sequence[str] = ("no",)
    share_prefix: bool = True
    template: Mapping[str, Any] = field(default_factory=dict)
    model_class: str = "AutoModelForImageTextToText"

    def __post_init__(self) -> None:
        checked_words(self.yes_words, self.no_words)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `AnswerReader`; sharing the prefix changes nothing but the last digits."""
        own = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items() if k != "share_prefix"}
        return {"kind": "chat/1", **own}

    def load(self, folder: Path, loading: Loading) -> LoadedChat:
        """See `AnswerReader`.

        Raises:
            ValueError: The processor has no chat template; see also `load_model`.
        """
        processor = load_processor(folder, loading)
        if not getattr(processor, "chat_template", None):
            raise ValueError(
                f"{folder.name} has no chat template; ask it with a prompt reader (see conf/judge/blip2.yaml)"
            )
        return LoadedChat(load_model(folder, loading, self.model_class), processor, self, loading.batch_size)


class LoadedChat:
    """A chat model in memory."""

    def __init__(self, model: Any, processor: Any, reader: ChatReader, batch_size: int) -> None:
        self.model, self.processor, self.reader, self.batch_size = model, processor, reader, batch_size
        self.yes = word_tokens(processor.tokenizer, reader.yes_words)
        self.no = word_tokens(processor.tokenizer, reader.no_words)
        self._compared = False

    @torch.inference_mode()
    def log_masses(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        """See `LoadedReader`.

        Raises:
            ValueError: The model does not allow what is common to be computed once.
        """
        if not self.reader.share_prefix or len(questions) < 2:
            return self._apart(image, questions)
        together = log_masses(self._together(image, questions), self.yes, self.no)
        if not self._compared:
            self._compare(together, self._apart(image, questions))
            self._compared = True
        return together

    def inputs(self, image: Image.Image, question: Ask) -> Inputs:
        """What the model is given for a question."""
        found = self.processor.apply_chat_template(
            self._conversation(question, image),
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **self.reader.template,
        )
        return on_device(found, self.model)

    def _conversation(self, question: Ask, image: Image.Image | None) -> list[dict[str, Any]]:
        shown = {"type": "image"} if image is None else {"type": "image", "image": image}
        user = {"role": "user", "content": [shown, {"type": "text", "text": question.user}]}
        system = {"role": "system", "content": [{"type": "text", "text": question.system}]}
        return [system, user] if question.system else [user]

    def _apart(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        rows = [self.inputs(image, question) for question in questions]
        return log_masses(next_token_logits(self.model, rows, self.batch_size), self.yes, self.no)

    def _together(self, image: Image.Image, questions: Sequence[Ask]) -> torch.Tensor:
        """(Q, V) logits, with the common tokens computed once and kept as keys and values."""
        tokens = [self._tokens(question) for question in questions]
        common = _common_length(tokens)
        tails = [ids[common:] for ids in tokens]
        inputs = self.inputs(image, questions[0])
        length = inputs["input_ids"].shape[1]
        head = length - len(tails[0])
        if inputs["input_ids"][0, head:].tolist() != tails[0]:
            raise self._unshared("its prompt does not end with the question")
        shape = inputs["input_ids"].shape
        start = {k: v[:, :head] if v.shape[:2] == shape else v for k, v in inputs.items()}
        cache = getattr(self.model(**start, **last_only(self.model), use_cache=True), "cache", None)
        if cache is None:
            raise self._unshared("it keeps no keys and values")
        return torch.cat(
            [
                self._after(cache, tails[begin : begin + self.batch_size])
                for begin in range(0, len(tails), self.batch_size)
            ]
        )

    def _after(self, cache: Any, tails: Sequence[list[int]]) -> torch.Tensor:
        """(Q, V) logits after the common tokens and each tail; what fills up short tails stands behind what is read."""
        own = copy.deepcopy(cache)
        own.batch_repeat_interleave(len(tails))
        last_Q = torch.tensor([len(tail) - 1 for tail in tails], device=self.model.device)
        width = int(last_Q.max()) + 1
        ids_QT = torch.tensor([tail + [0] * (width - len(tail)) for tail in tails], device=self.model.device)
        logits_QTV = self.model(input_ids=ids_QT, cache=own, use_cache=True).logits
        return logits_QTV[torch.arange(len(tails), device=last_Q.device), last_Q].float()

    def _tokens(self, question: Ask) -> list[int]:
        """Tokens of a prompt in which the image is one placeholder."""
        text = self.processor.apply_chat_template(
            self._conversation(question, None), add_generation_prompt=True, tokenize=False, **self.reader.template
        )
        return list(self.processor.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _compare(self, together_Q2: np.ndarray, apart_Q2: np.ndarray) -> None:
        p_Q, reference_Q = (1 / (1 + np.exp(m[:, 1] - m[:, 0])) for m in (together_Q2, apart_Q2))
        difference = float(np.abs(p_Q - reference_Q).max())
        if difference > TOLERANCE[self.model.dtype]:
            raise self._unshared(f"probabilities move by {difference:.2g}")

    def _unshared(self, reason: str) -> ValueError:
        return ValueError(
            f"{type(self.model).__name__} does not allow what is common to the questions about an image to be computed "
            f"once ({reason}); set judge.reader.share_prefix=false"
        )


def _common_length(sequences: Sequence[Sequence[int]]) -> int:
    """How many first members all share, at least one being left in each.

    Example:
        >>> _common_length([[1, 2, 3, 4], [1, 2, 5]]), _common_length([[1, 2], [1, 2]])
        (2, 1)
    """
    shared = 0
    for column in zip(*(row[:-1] for row in sequences), strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return shared
