"""A model by Python files of its own: run only when that is allowed, by the interface that mPLUG-Owl3 documents."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from humanlike.elements.vlm_answers import Ask, Loading
from humanlike.elements.vlm_owl import OwlReader

CODE = '''
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast


class TinyOwlConfig(PretrainedConfig):
    model_type = "tiny_owl"

    def __init__(self, size=64, width=16, **further):
        self.size, self.width = size, width
        super().__init__(**further)


class Processor:
    """Takes messages with <|image|>; the last, empty answer is yet to begin."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, messages, images=None, videos=None):
        assert videos is None
        assert messages[-1] == {"role": "assistant", "content": ""}
        assert sum(m["content"].count("<|image|>") for m in messages) == len(images)
        text = " ".join(m["content"].replace("<|image|>", " <|image|> ") for m in messages[:-1]) + " answer :"
        ids = torch.tensor([self.tokenizer(text, add_special_tokens=False)["input_ids"]])
        at = ids[0].tolist().index(self.tokenizer.convert_tokens_to_ids("<|image|>"))
        side = images[0].convert("L").resize((4, 4))
        pixels = torch.frombuffer(bytearray(side.tobytes()), dtype=torch.uint8).float()[None] / 255
        offset = torch.stack([torch.zeros(ids.shape[1]), (torch.arange(ids.shape[1]) > at).float()], 1).long()[None]
        return {"input_ids": ids, "media_offset": offset, "pixel_values": pixels}


class TinyOwlModel(PreTrainedModel):
    config_class = TinyOwlConfig

    def __init__(self, config):
        super().__init__(config)
        self.words = nn.Embedding(config.size, config.width)
        self.eye = nn.Linear(16, config.width)
        self.head = nn.Linear(config.width, config.size)
        self.post_init()

    def init_processor(self, tokenizer):
        return Processor(tokenizer)

    def forward(self, pixel_values=None, input_ids=None, media_offset=None, **further):
        seen = self.eye(pixel_values)[:, None] * (media_offset[..., 1:] > 0)
        hidden = torch.tanh(self.words(input_ids) + seen).cumsum(1)
        return CausalLMOutputWithPast(logits=self.head(hidden))
'''


@pytest.fixture(scope="module")
def owl(tiny, tmp_path_factory):
    """Folder of a model with code of its own."""
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("owl") / "tiny-owl"
    words = tiny.tokenizer()
    words.save_pretrained(folder)
    (folder / "modeling_tiny_owl.py").write_text(CODE)
    where = {"AutoConfig": "modeling_tiny_owl.TinyOwlConfig", "AutoModel": "modeling_tiny_owl.TinyOwlModel"}
    config = {"model_type": "tiny_owl", "size": len(words), "width": 16, "auto_map": where}
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["TinyOwlModel"]}))
    g = torch.Generator().manual_seed(0)
    size = len(words)
    shapes = {
        "words.weight": (size, 16),
        "eye.weight": (16, 16),
        "eye.bias": (16,),
        "head.weight": (size, 16),
        "head.bias": (size,),
    }
    weights = {name: torch.randn(shape, generator=g) * 0.4 for name, shape in shapes.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder, words, weights


def test_code_of_a_models_own_does_not_run_unasked(owl):
    with pytest.raises(ValueError, match=r"runs Python files of its own \(modeling_tiny_owl.py\): read them"):
        OwlReader().load(owl[0], Loading(torch.device("cpu")))


def test_the_judge_says_so_before_anything_is_fetched(tiny):
    from humanlike.elements.prompts import Prompt
    from humanlike.elements.vlm import TransformersJudge

    with pytest.raises(ValueError, match=r"Python files of its repository would run.*trust_remote_code=true"):
        TransformersJudge("lab/owl", OwlReader(), Prompt("p", "{element}?"))


def test_probabilities_are_those_of_the_weights(owl, picture, by_hand, tiny, monkeypatch, tmp_path):
    folder, words, w = owl
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path))
    loaded = OwlReader().load(folder, Loading(torch.device("cpu"), remote_code=True))
    for seed in (0, 3):
        image, questions = picture(seed), ("tail", "left front leg")
        gray = torch.tensor(np.asarray(image.convert("L").resize((4, 4)), dtype=np.float32).ravel() / 255)
        seen = w["eye.weight"] @ gray + w["eye.bias"]
        for question, found in zip(
            questions, np.exp(loaded.log_masses(image, [Ask(f"is the {q} drawn ?") for q in questions])), strict=True
        ):
            ids = words.convert_tokens_to_ids(f"<|image|> is the {question} drawn ? answer :".split())
            hidden = sum(torch.tanh(w["words.weight"][t] + seen * (i > 0)) for i, t in enumerate(ids))
            expected = by_hand(words, w["head.weight"] @ hidden + w["head.bias"], tiny)
            assert found == pytest.approx(expected, abs=1e-5)
