"""Models that continue a prompt: PaliGemma 2 and BLIP-2, against full forward passes made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.elements.vlm_answers import Ask, Loading
from humanlike.elements.vlm_loading import load_model, load_processor
from humanlike.elements.vlm_prompt import PromptReader

QUESTIONS = ("tail", "left front leg", "mane", "back leg", "ear")
BEFORE = {"paligemma2": "<image>", "blip2": "", "blip2_t5": ""}
CPU = Loading(torch.device("cpu"))
# transformers 5.24's own processor of PaliGemma copies a tensor in a way that numpy will drop.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def ids_of(name, tokenizer, question):
    """Token ids of a prompt, put together by hand as the papers' own code does."""
    of = tokenizer.convert_tokens_to_ids
    words = [of(word) for word in question.split()]
    if name == "paligemma2":  # image, begin, prefix, line end (which is white space to this vocabulary)
        return [of("<image>")] * 4 + [of("<s>"), *words]
    return [of("<image>")] * 3 + words


@pytest.mark.slow
@pytest.mark.parametrize("name", BEFORE)
def test_probabilities_are_those_of_single_full_passes(name, saved, picture, by_hand, tiny):
    folder = saved(name)
    processor, model = load_processor(folder, CPU), load_model(folder, CPU, "AutoModelForImageTextToText")
    for seed in (0, 4):
        image = picture(seed)
        pixels = processor.image_processor(image, return_tensors="pt")["pixel_values"]
        expected = []
        for word in QUESTIONS:
            ids = torch.tensor([ids_of(name, processor.tokenizer, f"is the {word} drawn ?")])
            further = {"token_type_ids": torch.zeros_like(ids)} if name == "paligemma2" else {}
            if name == "blip2_t5":
                further = {"decoder_input_ids": torch.tensor([[0]])}
            with torch.no_grad():
                logits = model(input_ids=ids, pixel_values=pixels, **further).logits[0, -1]
            expected.append(by_hand(processor.tokenizer, logits, tiny))
        expected = np.array(expected)
        assert np.ptp(expected[:, 0] / expected.sum(1)) > 1e-3
        asks = [Ask(f"is the {word} drawn ?") for word in QUESTIONS]
        for batch_size in (1, 3, 8):
            loaded = PromptReader(BEFORE[name]).load(folder, Loading(torch.device("cpu"), batch_size=batch_size))
            assert np.exp(loaded.log_masses(image, asks)) == pytest.approx(expected, abs=1e-5)
            assert np.exp(loaded.log_masses(image, asks[::-1]))[::-1] == pytest.approx(expected, abs=1e-5)
    other = np.exp(loaded.log_masses(picture(2), asks))
    assert np.abs(other - expected).max() > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", BEFORE)
def test_the_image_is_encoded_once(name, saved, picture, monkeypatch):
    loaded = PromptReader(BEFORE[name]).load(saved(name), Loading(torch.device("cpu"), batch_size=2))
    inner = getattr(loaded.model, "model", loaded.model)
    tower = inner.vision_tower if name == "paligemma2" else inner.vision_model
    seen, forward = [], tower.forward
    monkeypatch.setattr(tower, "forward", lambda *a, **k: seen.append(1) or forward(*a, **k))
    loaded.log_masses(picture(0), [Ask(f"is the {word} drawn ?") for word in QUESTIONS])
    assert len(seen) == 1


def test_a_chat_model_is_not_asked_by_a_prompt(saved, picture):
    loaded = PromptReader("<image>").load(saved("llava"), CPU)
    with pytest.raises(ValueError, match="cannot ask LlavaForConditionalGeneration; take elements/reader@judge"):
        loaded.log_masses(picture(0), [Ask("is the tail drawn ?")])
