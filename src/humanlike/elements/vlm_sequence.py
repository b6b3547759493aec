"""BLIP VQA: a decoder that writes the answer, so that "yes" and "no" are scored as whole sequences.

Legend: Q questions about one image, T tokens, D width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from humanlike.elements.vlm_answers import Ask, Loading, checked_words
from humanlike.elements.vlm_loading import load_model, load_processor
from humanlike.elements.vlm_next_token import Inputs, equal_lengths, on_device


@dataclass(frozen=True)
class SequenceReader:
    """Scores answers of `BlipForQuestionAnswering`: log P(answer) = Σ log P(token | before), end included.

    The image is encoded once for all questions about it.

    Attributes:
        yes_words: Answers that mean yes; their probabilities are added.
        no_words: Answers that mean no.

    Raises:
        ValueError: There are no answers, or one stands for both.
    """

    yes_words: Sequence[str] = ("yes",)
    no_words: Sequence[str] = ("no",)

    def __post_init__(self) -> None:
        checked_words(self.yes_words, self.no_words)

    @property
    def identity(self) -> Mapping[str, Any]:
        """See `AnswerReader`."""
        return {"kind": "sequence/1", "yes": list(self.yes_words), "no": list(self.no_words)}

    def load(self, folder: Path, loading: Loading) -> LoadedSequence:
        """See `AnswerReader`."""
        model = load_model(folder, loading, "BlipForQuestionAnswering")
        return LoadedSequence(model, load_processor(folder, loading), self, loading.batch_size)


class LoadedSequence:
    """A BLIP model for questions, in memory."""

    def __init__(self, model: Any, processor: Any, reader: SequenceReader, batch_size: int) -> None:
        self.model, self.processor, self.batch_size = model, processor, batch_size
        self.answers = [self._answer_tokens(reader.yes_words), self._answer_tokens(reader.no_words)]

    def _answer_tokens(self, answers: Sequence[str]) -> list[list[int]]:
        """Begin, words, end, as the model was trained."""
        begin, end = self.model.decoder_start_token_id, self.model.config.text_config.sep_token_id
        found = [self.processor.tokenizer(a.strip(), add_special_tokens=False)["input_ids"] for a in answers]
        return [[begin, *ids, end] for ids in {tuple(ids): None for ids in found}]

    @torch.inference_mode()
    def log_masses(self, image: Image.Image, questions: Sequence[Ask]) -> np.ndarray:
        """See `LoadedReader`."""
        rows = [self.inputs(image, question) for question in questions]
        seen_1TD = self.model.vision_model(pixel_values=rows[0]["pixel_values"]).last_hidden_state
        found = np.empty((len(rows), 2))
        for group in equal_lengths([row["input_ids"].shape[1] for row in rows], self.batch_size):
            read_QTD = self._read(seen_1TD, torch.cat([rows[i]["input_ids"] for i in group]))
            for column, answers in enumerate(self.answers):
                scores = torch.stack([self._score(read_QTD, answer) for answer in answers])
                found[group, column] = torch.logsumexp(scores, dim=0).cpu().numpy()
        return found

    def inputs(self, image: Image.Image, question: Ask) -> Inputs:
        """What the model is given for a question."""
        return on_device(self.processor(images=image, text=question.text, return_tensors="pt"), self.model)

    def _read(self, seen_1TD: torch.Tensor, ids_QT: torch.Tensor) -> torch.Tensor:
        """(Q, T, D) what the text encoder makes of questions of one length about the image."""
        seen_QTD = seen_1TD.expand(len(ids_QT), -1, -1)
        return self.model.text_encoder(
            input_ids=ids_QT,
            attention_mask=torch.ones_like(ids_QT),
            encoder_hidden_states=seen_QTD,
            encoder_attention_mask=torch.ones(seen_QTD.shape[:2], dtype=torch.long, device=ids_QT.device),
        )[0]

    def _score(self, read_QTD: torch.Tensor, answer: Sequence[int]) -> torch.Tensor:
        """(Q,) log-probability of an answer."""
        ids_QT = torch.tensor(answer, device=read_QTD.device).expand(len(read_QTD), -1)
        logits_QTV = self.model.text_decoder(
            input_ids=ids_QT[:, :-1],
            encoder_hidden_states=read_QTD,
            encoder_attention_mask=torch.ones(read_QTD.shape[:2], dtype=torch.long, device=read_QTD.device),
        ).logits
        logp_QTV = torch.log_softmax(logits_QTV.double(), dim=-1)
        return logp_QTV.gather(-1, ids_QT[:, 1:, None])[..., 0].sum(1)
