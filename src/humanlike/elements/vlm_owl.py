"""mPLUG-Owl3, which transformers does not have: its repository's Python files run, if the configuration allows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image

from humanlike.elements.vlm_answers import Ask, Loading, checked_words, log_masses, word_tokens
from humanlike.elements.vlm_loading import load_model, load_tokenizer
from humanlike.elements.vlm_next_token import Inputs, last_only, on_device


@dataclass(frozen=True)
class OwlReader:
    """Reads the first token of an answer of mPLUG-Owl3, by the interface that its repository documents.

    `model.init_processor(tokenizer)` makes the processor, which takes messages with `<|image|>` and cuts the image
    itself; the positions of the cuts belong to one prompt, so questions are asked one by one.

    Attributes:
        yes_words: Words that mean yes; see `ChatReader`.
        no_words: Words that mean no.
        model_class: Class of transformers that the repository registers its model for.

    Raises:
        ValueError: There are no words, or one stands for both.
    """

    yes_words: Sequence[str] = ("yes",)
    no_words: Sequence[str] = ("no",)
    model_class: str = "AutoModel"
    runs_remote_code: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_words(self.yes_words, self.no_words)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `AnswerReader`."""
        return {
            "kind": "owl/1",
            "yes": list(self.yes_words),
            "no": list(self.no_words),
            "model_class": self.model_class,
        }

    def load(self, folder: Path, loading: Loading) -> LoadedOwl:
        """See `AnswerReader`."""
        return LoadedOwl(load_model(folder, loading, self.model_class), load_tokenizer(folder, loading), self)


class LoadedOwl:
    """mPLUG-Owl3 in memory."""

    def __init__(self, model: Any, tokenizer: Any, reader: OwlReader) -> None:
        self.model, self.processor = model, model.init_processor(tokenizer)
        self.yes, self.no = word_tokens(tokenizer, reader.yes_words), word_tokens(tokenizer, reader.no_words)

    @torch.inference_mode()
    def log_masses(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        """See `LoadedReader`."""
        further = last_only(self.model)
        logits = [self.model(**self.inputs(image, q), **further).logits[0, -1].float() for q in questions]
        return log_masses(torch.stack(logits), self.yes, self.no)

    def inputs(self, image: Image.Image, question: Ask) -> Inputs:
        """What the model is given for a question: the image, the question, and an answer that is yet to begin."""
        said = [{"role": "system", "content": question.system}] if question.system else []
        asked = {"role": "user", "content": f"<|image|>\n{question.user}"}
        found = self.processor([*said, asked, {"role": "assistant", "content": ""}], images=[image], videos=None)
        return on_device(found, self.model)
