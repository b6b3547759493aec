"""BLIP VQA: sequences scored by the decoder, against token-by-token sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.elements.vlm_answers import Ask, Loading
from humanlike.elements.vlm_loading import load_model, load_processor
from humanlike.elements.vlm_sequence import SequenceReader

QUESTIONS = ("tail", "left front leg", "mane", "back leg", "ear")
CPU = Loading(torch.device("cpu"))


def teacher_forced(model, tokenizer, pixels, question, answer):
    """log P(answer), one decoder pass a prefix, by the model's own whole forward pass."""
    ids = torch.tensor([[tokenizer.convert_tokens_to_ids(w) for w in question.split()]])
    seen = model.vision_model(pixel_values=pixels)[0]
    read = model.text_encoder(input_ids=ids, encoder_hidden_states=seen)[0]
    sequence = [2, *(tokenizer.convert_tokens_to_ids(w) for w in answer.split()), 3]
    total = 0.0
    for t in range(1, len(sequence)):
        logits = model.text_decoder(input_ids=torch.tensor([sequence[:t]]), encoder_hidden_states=read).logits[0, -1]
        total += float(torch.log_softmax(logits.double(), dim=-1)[sequence[t]])
    return total


@torch.no_grad()
def test_sequences_are_scored_token_by_token(saved, picture):
    folder = saved("blip")
    processor, model = load_processor(folder, CPU), load_model(folder, CPU, "BlipForQuestionAnswering")
    asks = [Ask(f"is the {word} drawn ?") for word in QUESTIONS]
    yes, no = ("yes", "the wing is drawn"), ("no", "not drawn")
    for seed in (0, 3):
        pixels = processor.image_processor(picture(seed), return_tensors="pt")["pixel_values"]
        expected = np.array(
            [
                [
                    np.logaddexp.reduce(
                        [teacher_forced(model, processor.tokenizer, pixels, a.user, x) for x in answers]
                    )
                    for answers in (yes, no)
                ]
                for a in asks
            ]
        )
        assert np.ptp(expected[:, 0] - expected[:, 1]) > 1e-2
        for batch_size in (1, 3, 8):
            loaded = SequenceReader(yes, no).load(folder, Loading(torch.device("cpu"), batch_size=batch_size))
            assert loaded.log_masses(picture(seed), asks) == pytest.approx(expected, abs=1e-5)
            assert loaded.log_masses(picture(seed), asks[::-1])[::-1] == pytest.approx(expected, abs=1e-5)


@torch.no_grad()
def test_scores_are_those_of_the_models_own_loss(saved, picture):
    """The loss of the whole model with labels is the mean of -log P over the answer's tokens."""
    folder = saved("blip")
    processor, model = load_processor(folder, CPU), load_model(folder, CPU, "BlipForQuestionAnswering")
    inputs = processor(images=picture(1), text="is the tail drawn ?", return_tensors="pt")
    of = processor.tokenizer.convert_tokens_to_ids
    labels = torch.tensor([[2, of("yes"), 3]])
    loss = float(model(**inputs, labels=labels).loss)
    loaded = SequenceReader().load(folder, CPU)
    assert loaded.log_masses(picture(1), [Ask("is the tail drawn ?")])[0, 0] == pytest.approx(-2 * loss, abs=1e-4)


def test_the_image_is_encoded_once(saved, picture, monkeypatch):
    loaded = SequenceReader().load(saved("blip"), Loading(torch.device("cpu"), batch_size=2))
    seen, forward = [], loaded.model.vision_model.forward
    monkeypatch.setattr(loaded.model.vision_model, "forward", lambda *a, **k: seen.append(1) or forward(*a, **k))
    loaded.log_masses(picture(0), [Ask(f"is the {word} drawn ?") for word in QUESTIONS])
    assert len(seen) == 1


def test_one_word_cannot_mean_both():
    with pytest.raises(ValueError, match="words for yes and other words for no"):
        SequenceReader(("yes",), ("Yes ",))
