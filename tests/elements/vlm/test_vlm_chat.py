"""Chat models: probabilities against forward passes made by hand, whatever is shared, batched or reordered."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.elements.vlm_answers import Ask, Loading
from humanlike.elements.vlm_chat import ChatReader
from humanlike.elements.vlm_loading import load_model, load_processor

# Class → its placeholder for an image in the chat template. SmolVLM2's processor needs one more package.
PLACEHOLDERS = {
    "llava": "<image>",
    "idefics3": "<image>",
    "smolvlm": "<image>",
    "internvl": "<IMG_CONTEXT>",
    "qwen2_5_vl": "<|vision_start|><|image_pad|><|vision_end|>",
    "molmo2": "<|image|>",
}
HEAVY = [name for name in PLACEHOLDERS if name != "llava"]
QUESTIONS = ("tail", "left front leg", "mane", "back leg", "ear")


def asks(words=QUESTIONS, system=""):
    return [Ask(f"is the {word} of the lion drawn ?", system) for word in words]


def reference(folder, image, placeholder, words, by_hand, tiny):
    """One full forward pass a question, from a prompt written out here."""
    processor = load_processor(folder, Loading(torch.device("cpu")))
    model = load_model(folder, Loading(torch.device("cpu")), "AutoModelForImageTextToText")
    found = []
    for word in words:
        text = f"{placeholder} is the {word} of the lion drawn ? answer :"
        inputs = processor(text=[text], images=[image], return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).logits[0, -1]
        found.append(by_hand(processor.tokenizer, logits, tiny))
    return np.array(found)


def masses(folder, image, batch_size=8, words=QUESTIONS, **settings):
    loaded = ChatReader(**settings).load(folder, Loading(torch.device("cpu"), batch_size=batch_size))
    return np.exp(loaded.log_masses(image, asks(words)))


def test_llava_by_hand_down_to_the_tokens(saved, picture, by_hand, tiny):
    folder, image = saved("llava"), picture(1)
    processor = load_processor(folder, Loading(torch.device("cpu")))
    model = load_model(folder, Loading(torch.device("cpu")), "LlavaForConditionalGeneration")
    pixels = processor.image_processor(image, return_tensors="pt")["pixel_values"]
    text = 4 * "<image> " + "is the left front leg of the lion drawn ? answer :"
    ids = [processor.tokenizer.convert_tokens_to_ids(w) for w in text.split()]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), pixel_values=pixels).logits[0, -1]
    expected = by_hand(processor.tokenizer, logits, tiny)
    assert masses(folder, image, words=["left front leg"])[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["llava", *(pytest.param(n, marks=pytest.mark.slow) for n in HEAVY)])
def test_probabilities_are_those_of_single_full_passes(name, saved, picture, by_hand, tiny):
    if name == "smolvlm":
        pytest.importorskip("num2words")
    folder = saved(name)
    for seed in (0, 4):
        image = picture(seed, (56, 40))
        expected = reference(folder, image, PLACEHOLDERS[name], QUESTIONS, by_hand, tiny)
        assert np.ptp(expected[:, 0] / expected.sum(1)) > 1e-3  # the questions are told apart
        for share in (True, False):
            for batch_size in (1, 3, 8):
                assert masses(folder, image, batch_size, share_prefix=share) == pytest.approx(expected, abs=1e-5)
        backwards = masses(folder, image, 3, QUESTIONS[::-1])
        assert backwards[::-1] == pytest.approx(expected, abs=1e-5)
    other = masses(folder, picture(2, (56, 40)))
    assert np.abs(other - expected).max() > 1e-4  # the image is seen


def test_what_is_common_is_computed_once(saved, picture, monkeypatch):
    loaded = ChatReader().load(saved("llava"), Loading(torch.device("cpu"), batch_size=2))
    loaded.log_masses(picture(0), asks())  # the first image is computed both ways
    seen = []
    vision = loaded.model.model.vision_tower.forward
    monkeypatch.setattr(
        loaded.model.model.vision_tower, "forward", lambda *a, **k: seen.append("image") or vision(*a, **k)
    )
    layer = loaded.model.model.language_model.layers[0].forward
    monkeypatch.setattr(
        loaded.model.model.language_model.layers[0],
        "forward",
        lambda h, *a, **k: seen.append(tuple(h.shape[:2])) or layer(h, *a, **k),
    )
    loaded.log_masses(picture(1), asks())
    head = 4 + 2  # the image and "is the"
    tails = [len(f"{word} of the lion drawn ? answer :".split()) for word in QUESTIONS]
    assert seen == ["image", (1, head), (2, max(tails[:2])), (2, max(tails[2:4])), (1, tails[4])]


def test_a_model_that_reads_ahead_is_not_shared_silently(saved, picture):
    reader = ChatReader()
    loaded = reader.load(saved("llava"), Loading(torch.device("cpu")))
    apart = loaded._apart
    loaded._apart = lambda image, questions: apart(image, questions) + np.array([0.0, 0.1])
    with pytest.raises(ValueError, match=r"LlavaForConditionalGeneration does not allow .*\.share_prefix=false"):
        loaded.log_masses(picture(0), asks())


def test_a_template_with_the_image_last_cannot_be_shared_but_read(saved, picture, tiny, tmp_path, by_hand):
    processor = load_processor(saved("llava"), Loading(torch.device("cpu")))
    model = load_model(saved("llava"), Loading(torch.device("cpu")), "LlavaForConditionalGeneration")
    processor.chat_template = (
        "{% for m in messages %}{% for c in m['content']|reverse %}{% if c['type'] == 'image' %}"
        "<image> {% else %}{{ c['text'] }} {% endif %}{% endfor %}{% endfor %}answer :"
    )
    folder = tmp_path / "turned"
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    with pytest.raises(ValueError, match="its prompt does not end with the question"):
        masses(folder, picture(0))
    found = masses(folder, picture(0), share_prefix=False)
    inputs = processor(
        text=["is the tail of the lion drawn ? <image> answer :"], images=[picture(0)], return_tensors="pt"
    )
    with torch.no_grad():
        expected = by_hand(processor.tokenizer, model(**inputs).logits[0, -1], tiny)
    assert found[0] == pytest.approx(expected, abs=1e-6)


def test_the_system_message_is_said(saved, picture):
    loaded = ChatReader().load(saved("llava"), Loading(torch.device("cpu")))
    plain = loaded.log_masses(picture(0), asks(["tail"]))
    told = loaded.log_masses(picture(0), asks(["tail"], "you look at drawings"))
    assert np.abs(plain - told).max() > 1e-3


def test_bfloat16_is_near(saved, picture):
    folder, image = saved("llava"), picture(1)
    loading = Loading(torch.device("cpu"), torch.bfloat16)
    found = np.exp(ChatReader().load(folder, loading).log_masses(image, asks()))
    exact = masses(folder, image)
    assert found[:, 0] / found.sum(1) == pytest.approx(exact[:, 0] / exact.sum(1), abs=0.05)


def test_a_processor_without_a_template_is_refused(saved):
    with pytest.raises(ValueError, match="tiny-blip has no chat template"):
        ChatReader().load(saved("blip"), Loading(torch.device("cpu")))
