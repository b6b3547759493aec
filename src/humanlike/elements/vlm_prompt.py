"""Models without a chat: the answer follows a prompt, such as PaliGemma's prefix or BLIP-2's "Question: … Answer:"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from humanlike.elements.vlm_answers import Ask, Loading, checked_words, log_masses, word_tokens
from humanlike.elements.vlm_loading import load_model, load_processor
from humanlike.elements.vlm_next_token import Inputs, next_token_logits, on_device


@dataclass(frozen=True)
class PromptReader:
    """Reads the token after a prompt; the image is encoded once for all questions about it.

    In a language model with an encoder (BLIP-2 with Flan-T5) it is the first token of the decoder.

    Attributes:
        before: What stands before the question, such as a processor's placeholder for the image.
        yes_words: Words that mean yes; see `ChatReader`.
        no_words: Words that mean no.
        model_class: Class of transformers that loads the model.

    Raises:
        ValueError: There are no words, or one stands for both.
    """

    before: str = ""
    yes_words: Sequence[str] = ("yes",)
    no_words: Sequence[str] = ("no",)
    model_class: str = "AutoModelForImageTextToText"

    def __post_init__(self) -> None:
        checked_words(self.yes_words, self.no_words)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `AnswerReader`."""
        words = {"yes": list(self.yes_words), "no": list(self.no_words)}
        return {"kind": "prompt/1", "before": self.before, "model_class": self.model_class, **words}

    def load(self, folder: Path, loading: Loading) -> LoadedPrompt:
        """See `AnswerReader`."""
        model, processor = load_model(folder, loading, self.model_class), load_processor(folder, loading)
        return LoadedPrompt(model, processor, self, loading.batch_size)


class LoadedPrompt:
    """A model in memory that continues a prompt."""

    def __init__(self, model: Any, processor: Any, reader: PromptReader, batch_size: int) -> None:
        self.model, self.processor, self.reader, self.batch_size = model, processor, reader, batch_size
        self.yes = word_tokens(processor.tokenizer, reader.yes_words)
        self.no = word_tokens(processor.tokenizer, reader.no_words)

    @torch.inference_mode()
    def log_masses(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        """See `LoadedReader`."""
        rows = [self.inputs(image, question) for question in questions]
        seen = self.model.get_image_features(pixel_values=rows[0]["pixel_values"], return_dict=True)
        if not isinstance(seen.pooler_output, torch.Tensor):
            raise ValueError(
                f"the prompt reader cannot ask {type(self.model).__name__}; take elements/reader@judge.reader=chat"
            )
        for row in rows:
            del row["pixel_values"]
        logits_QV = next_token_logits(_SeenOnce(self.model, seen), rows, self.batch_size)
        return log_masses(logits_QV, self.yes, self.no)

    def inputs(self, image: Image.Image, question: Ask) -> Inputs:
        """What the model is given for a question."""
        text = f"{self.reader.before}{question.text}"
        found = on_device(self.processor(images=image, text=text, return_tensors="pt"), self.model)
        text_config = self.model.config.get_text_config()
        if getattr(text_config, "is_encoder_decoder", False):
            found["decoder_input_ids"] = torch.full_like(found["input_ids"][:, :1], text_config.decoder_start_token_id)
        return found


class _SeenOnce:
    """A model whose forward pass takes the features of one image for every row of a batch."""

    def __init__(self, model: Any, seen: Any) -> None:
        self.model, self.seen, self.forward = model, seen, model.forward

    def __call__(self, input_ids: torch.Tensor, **inputs: Any) -> Any:
        seen = type(self.seen)(**dict(self.seen.items()))
        one = self.seen.pooler_output
        seen["pooler_output"] = one.expand(len(input_ids), *one.shape[1:])
        return self.model(input_ids=input_ids, pixel_values=None, mm_encoder_outputs={"image": seen}, **inputs)
