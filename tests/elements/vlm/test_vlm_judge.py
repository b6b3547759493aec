"""The judge around a reader: probabilities, missing answers, the cache, a killed run, and what is refused at once."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from humanlike.elements.presence import PresenceJudge
from humanlike.elements.prompts import Prompt
from humanlike.elements.vlm import TransformersJudge
from humanlike.elements.vlm_answers import word_tokens

PROMPT = Prompt("test", "is the {element} of the {label} drawn ?")
ELEMENTS = {"lion": ("tail", "mane", "ear"), "taxi": ("wheel", "door")}
YES_OF = {"tail": 0.9, "mane": 0.2, "ear": 0.05, "wheel": 0.5, "door": 0.01}
NO_OF = {"tail": 0.05, "mane": 0.6, "ear": 0.01, "wheel": 0.5, "door": 0.03}


@dataclasses.dataclass(frozen=True)
class Table:
    """A reader that knows its answers, counts questions, and breaks off when it is told to."""

    asked: list = dataclasses.field(default_factory=list)
    stop_after: float = math.inf
    identity = {"kind": "table/1"}  # noqa: RUF012

    def load(self, folder, loading):
        return self

    def log_masses(self, image, questions):
        if len(self.asked) + len(questions) > self.stop_after:
            raise KeyboardInterrupt
        words = [q.user.split()[2] for q in questions]
        self.asked.extend((image.tobytes(), w) for w in words)
        with np.errstate(divide="ignore"):
            return np.log([[YES_OF[w], NO_OF[w]] for w in words])


@pytest.fixture
def table_judge(tmp_path):
    """Makes a judge that reads a table; its "model" is a folder with two files."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")

    def make(reader=None, **settings):
        settings = {"device": "cpu", "threads": 1, "progress": False, **settings}
        prompt = settings.pop("prompt", PROMPT)
        return TransformersJudge(str(folder), Table() if reader is None else reader, prompt, **settings)

    return make


def test_probabilities_and_what_is_missing(table_judge, sketches):
    presence = table_judge(min_mass=0.1).judge(sketches(count=2), ELEMENTS)
    table = presence.table.set_index("element")
    for word in ("tail", "mane", "wheel"):
        assert table.loc[word, "probability"] == pytest.approx(YES_OF[word] / (YES_OF[word] + NO_OF[word]))
    assert table.loc[["tail", "mane", "wheel"], "decision"].tolist() == [True, False, True]
    assert table.loc[["ear", "door"], "decision"].isna().all()
    assert set(table.loc[["ear", "door"], "reason"]) == {"yes and no have less than 0.1 of the probability"}
    outside = [1 - YES_OF[w] - NO_OF[w] for w in YES_OF]
    assert presence.facts["mass_outside_mean"] == pytest.approx(np.mean(outside))
    assert presence.facts["mass_outside_max"] == pytest.approx(0.96)
    assert presence.facts["below_min_mass"] == 2
    assert presence.facts["flags"] == ["judge_mass_outside:2"]
    assert isinstance(table_judge(), PresenceJudge)


def test_a_floor_never_makes_v_zero(table_judge, sketches):
    ratio = table_judge(min_mass=0.99).judge(sketches(count=2), ELEMENTS).visual_ratio
    assert ratio["num_judged"].tolist() == [0, 1]
    assert math.isnan(ratio["v"][0])
    assert ratio["v"][1] == 1.0


def test_numbers_that_are_none_are_missing_and_not_kept(table_judge, sketches, tmp_path, monkeypatch):
    monkeypatch.setitem(YES_OF, "tail", math.nan)
    judge = table_judge(cache=tmp_path / "a.sqlite")
    presence = judge.judge(sketches(count=1), ELEMENTS)
    assert presence.table["reason"].tolist()[0] == "the model gave no number"
    monkeypatch.setitem(YES_OF, "tail", 0.9)
    assert judge.judge(sketches(count=1), ELEMENTS).table["probability"][0] == pytest.approx(0.9 / 0.95)


def test_an_image_that_cannot_be_read_is_missing(table_judge, sketches, picture):
    presence = table_judge(min_mass=0).judge(sketches([picture(0), None]), ELEMENTS)
    assert presence.missing == {"the image could not be read": 2}


def test_a_killed_run_repeats_nothing_and_a_finished_one_loads_nothing(table_judge, sketches, tmp_path):
    data, cache = sketches(count=6), tmp_path / "a.sqlite"
    killed, resumed = Table(stop_after=9), Table()
    with pytest.raises(KeyboardInterrupt):
        table_judge(killed, cache=cache).judge(data, ELEMENTS)
    assert len(killed.asked) == 8
    found = table_judge(resumed, cache=cache).judge(data, ELEMENTS)
    assert len(resumed.asked) == 15 - 8
    assert not set(killed.asked) & set(resumed.asked)
    nobody = Table(stop_after=0)
    again = table_judge(nobody, cache=cache, batch_size=1).judge(data, ELEMENTS)
    assert again.table.equals(found.table)
    assert again.facts == found.facts


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"processor": {"max_pixels": 100}},
        {"prompt": Prompt("test", "is the {element} of that {label} drawn ?")},
        {"prompt": Prompt("test", "is the {element} of the {label} drawn ?", system="look")},
        {"weights": b"others"},
        {"picture": 9},
    ],
    ids=lambda c: next(iter(c)),
)
def test_whatever_changes_an_answer_is_in_the_key(change, table_judge, sketches, tmp_path, picture):
    judge = table_judge(cache=tmp_path / "a.sqlite")
    judge.judge(sketches(count=1), ELEMENTS)
    shown = [picture(change.pop("picture"))] if "picture" in change else None
    if "weights" in change:
        (judge.files.folder / "model.safetensors").write_bytes(change.pop("weights"))
    reader = Table()
    table_judge(reader, cache=tmp_path / "a.sqlite", **change).judge(sketches(shown, count=1), ELEMENTS)
    assert len(reader.asked) == 3


def test_other_thresholds_and_floors_ask_nothing(table_judge, sketches, tmp_path):
    table_judge(cache=tmp_path / "a.sqlite").judge(sketches(), ELEMENTS)
    reader = Table(stop_after=0)
    judge = table_judge(reader, cache=tmp_path / "a.sqlite", threshold=0.9, min_mass=0.0)
    assert judge.judge(sketches(), ELEMENTS).coverage == 1.0


def test_the_record_names_model_revision_and_prompt(table_judge, sketches):
    judge = table_judge(dtype="bfloat16")
    presence = judge.judge(sketches(count=1), ELEMENTS)
    assert presence.facts["revision"] == judge.files.revision
    assert judge.files.revision.startswith("files:")
    assert presence.facts["flags"] == ["judge_reduced_precision:bfloat16", "judge_mass_outside:1"]
    assert judge.files.revision[:18] in presence.source
    assert PROMPT.source in presence.source
    assert str(judge.files.folder.parent) not in presence.source


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size ≥ 1"),
        ({"min_mass": 1.0}, r"min_mass in \[0, 1\)"),
        ({"dtype": "float8"}, "dtype must be one of float32, bfloat16, float16"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"device": "abacus"}, "it can be auto, cpu, cuda"),
        ({"prompt": Prompt("p", "is it drawn?")}, r"needs the blanks \{element\}, it has none"),
        ({"prompt": Prompt("p", "{element} {label} {colour}")}, "needs the blanks"),
        ({"revision": "main"}, "is a folder, which has no revisions"),
    ],
)
def test_settings_are_refused_with_a_sentence(settings, message, table_judge):
    with pytest.raises(ValueError, match=message):
        table_judge(**settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_here_is_named(table_judge):
    with pytest.raises(ValueError, match="device=cuda:1 is not on this machine; use device=cpu, or auto"):
        table_judge(device="cuda:1")


def test_an_image_that_the_model_refuses_is_named(table_judge, sketches):
    class Refusing(Table):
        def log_masses(self, image, questions):
            raise ValueError("aspect ratio must be smaller than 200")

    with pytest.raises(ValueError, match="model at picture 0: aspect ratio"):
        table_judge(Refusing()).judge(sketches(), ELEMENTS)


def test_too_little_memory_is_said(table_judge, sketches):
    class Large(Table):
        def log_masses(self, image, questions):
            raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(RuntimeError, match=r"at picture 0: lower judge.batch_size \(now 8\)"):
        table_judge(Large()).judge(sketches(), ELEMENTS)


def test_the_missing_extra_is_named(table_judge, monkeypatch):
    monkeypatch.setattr("humanlike.elements.vlm_loading.importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'humanlike\[vlm\]'"):
        table_judge()


def test_all_forms_of_a_word_are_found(tiny):
    words = tiny.tokenizer()
    for wanted, forms in (("yes", tiny.YES), ("no", tiny.NO)):
        assert word_tokens(words, [wanted]) == tuple(sorted(words.convert_tokens_to_ids(list(forms))))
    with pytest.raises(ValueError, match=r"no token for 'ja': choose other words"):
        word_tokens(words, ["ja"])


@pytest.mark.parametrize("name", ["llava", "blip"])
def test_a_real_class_behind_the_judge(name, judge_of, sketches, tmp_path):
    from humanlike.elements.vlm_chat import ChatReader
    from humanlike.elements.vlm_sequence import SequenceReader

    reader = {"llava": ChatReader(), "blip": SequenceReader()}[name]
    data = sketches(count=4)
    one = judge_of(name, reader, batch_size=1, cache=tmp_path / "a.sqlite").judge(data, ELEMENTS)
    turned = {concept: row[::-1] for concept, row in ELEMENTS.items()}
    other = judge_of(name, reader, batch_size=8).judge(data, turned)
    order = ["sketch_id", "element"]
    p, q = (x.table.sort_values(order)["probability"].to_numpy() for x in (one, other))
    assert p == pytest.approx(q, abs=1e-5)
    assert np.ptp(p) > 1e-3
    assert one.coverage == 1.0
    assert 0 < one.facts["mass_outside_mean"] < 1
