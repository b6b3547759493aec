"""Lists from a model: votes counted by hand, the second question, the review file, and what is asked again."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.elements.client_questions import Reply
from humanlike.elements.extraction import ElementExtractor, named_elements
from humanlike.elements.extraction_review import review_text, write_review
from humanlike.elements.extraction_words import head, lemma, normal
from humanlike.elements.lists import ElementLists, shipped
from humanlike.elements.prompts import Prompt
from humanlike.entry.conf import hydra_session

LIST = Prompt("list", "Parts of: {label}")
INSIDE = Prompt("inside", "About: {label}\n{elements}")
SAMPLES = {
    "lion": [
        ["Manes", "tail", "four legs", "heart", "lion"],
        ["a mane", "Tail", "leg", "heart"],
        ["mane", "mane", "legs", "heart", "whisker"],
    ],
    "owl": [["beak", "wing"], ["beaks", "wings"], ["beak", "eye"]],
}


@pytest.fixture
def model(chat_server):
    """Plays a language model with the samples above, in the order in which they are asked for by seed."""

    def behave(body):
        text = body["messages"][-1]["content"]
        concept = text.split(": ")[1].split("\n")[0]
        if text.startswith("About"):
            names = body["response_format"]["json_schema"]["schema"]["required"]
            return ("say", json.dumps({n: "inside" if n == "heart" else "visible" for n in names}))
        return ("say", json.dumps({"elements": SAMPLES[concept][body.get("seed", 0)]}))

    chat_server.behave = behave
    return chat_server


def extractor(client, **settings):
    return ElementExtractor(client, LIST, **{"internal_prompt": INSIDE, "samples": 3, **settings})


def test_votes_and_the_second_question(model, chat_client):
    found = extractor(chat_client()).extract(["lion", "owl"])
    lion = found.table[found.table["concept"] == "lion"].set_index("element")
    assert lion["votes"].to_dict() == {"mane": 3, "leg": 3, "heart": 3, "tail": 2, "whisker": 1}
    assert lion["place"].to_dict() == {"mane": 0, "leg": 5 / 3, "heart": 8 / 3, "tail": 1, "whisker": 3}
    assert lion["reason"][lion["reason"] != ""].to_dict() == {"heart": "lies inside", "whisker": "too few votes"}
    assert dict(found.lists) == {"lion": ("mane", "leg", "tail"), "owl": ("beak", "wing")}
    assert found.failed == {}
    assert found.lists.source.startswith("extracted:test-model@")
    assert "3 samples" in found.lists.provenance["lion"]
    asked = [body for _, _, body in model.requests if "Parts" in str(body)]
    assert len(asked) == 6
    assert (
        sorted((b.get("temperature"), b.get("seed")) for b in asked if b.get("seed")) == [(0.7, 1)] * 2 + [(0.7, 2)] * 2
    )
    assert len(model.requests) == 6 + 2


def test_share_and_length_of_a_list(model, chat_client):
    whole = extractor(chat_client(), share=1.0, internal_prompt=None).extract(["lion"]).lists["lion"]
    assert whole == ("mane", "leg", "heart")
    short = extractor(chat_client(), most=2, share=0.1).extract(["lion"])
    assert short.lists["lion"] == ("mane", "leg")
    assert "more than 2 elements" in set(short.table["reason"])


def test_a_list_is_paid_for_once(model, chat_client, tmp_path):
    for _ in range(2):
        extractor(chat_client(cache=tmp_path / "a.sqlite")).extract(["lion"])
        assert model.count == 4
    extractor(chat_client(cache=tmp_path / "a.sqlite")).extract(["lion", "owl"])
    assert model.count == 8
    extractor(chat_client(cache=tmp_path / "a.sqlite", model="other")).extract(["lion"])
    assert model.count == 12


def test_a_concept_without_usable_samples_has_no_list_and_says_why(model, chat_client, tmp_path):
    behave = model.behave
    model.behave = lambda body: ("refuse", None) if "lion" in str(body) else behave(body)
    found = extractor(chat_client()).extract(["lion", "owl"])
    assert list(found.lists) == ["owl"]
    assert found.failed["lion"].startswith("0 of 3 samples could be used; last: the model refused")
    write_review(tmp_path / "r.yaml", found)
    assert dict(ElementLists.from_yaml(tmp_path / "r.yaml")) == {"owl": ("beak", "wing")}
    assert "# lion: 0 of 3 samples" in (tmp_path / "r.yaml").read_text()
    with pytest.raises(ValueError, match="gave no list of elements; lion: 0 of 3"):
        extractor(chat_client()).extract(["lion"]).lists  # noqa: B018


def test_without_an_answer_about_what_lies_inside_elements_stay_and_the_review_says_so(model, chat_client):
    behave = model.behave
    model.behave = lambda body: ("say", "Well.") if "About" in str(body) else behave(body)
    found = extractor(chat_client()).extract(["lion"])
    assert found.lists["lion"] == ("mane", "leg", "heart", "tail")
    assert review_text(found).count("nobody said whether it lies inside") == 4


def test_the_review_file_is_edited_by_hand_and_read_back(model, chat_client, tmp_path):
    found = extractor(chat_client()).extract(["lion", "owl"])
    path = tmp_path / "review.yaml"
    write_review(path, found)
    lists = ElementLists.from_yaml(path)
    assert dict(lists) == dict(found.lists)
    assert lists.provenance["lion"].startswith("review.yaml line 8, by test-model, prompt list@")
    edited = path.read_text().replace("    # - heart  #", "    - heart  #").replace("    - leg  # 3 of 3\n", "")
    path.write_text(edited.replace("not yet", "2026-11"))
    assert ElementLists.from_yaml(path)["lion"] == ("mane", "heart", "tail")
    with pytest.raises(FileExistsError, match="perhaps reviewed"):
        write_review(path, found)
    write_review(path, found, overwrite=True)


def test_words_that_yaml_takes_for_something_else_survive(chat_server, chat_client, tmp_path):
    words = ["true", "no", "on", "null", "o'clock", "f-hole"]
    chat_server.behave = lambda body: ("say", json.dumps({"elements": words}))
    found = extractor(chat_client(), internal_prompt=None).extract({"off": "a switch", "mouse2": "computer mouse"})
    write_review(tmp_path / "r.yaml", found)
    assert dict(ElementLists.from_yaml(tmp_path / "r.yaml")) == dict(found.lists)
    assert set(found.lists["off"]) == set(words)


def test_concepts_that_are_said_alike_are_refused(chat_server, chat_client):
    with pytest.raises(ValueError, match="mouse1 and mouse2 are both called 'mouse'"):
        extractor(chat_client()).extract(["mouse1", "mouse2"])
    assert chat_server.count == 0


@pytest.mark.parametrize(
    "content",
    [
        "mane, tail",
        '{"elements": "mane"}',
        '{"elements": []}',
        '{"elements": [1]}',
        '{"elements": ["mane"], "more": 1}',
        '{"elements": ["it is used to hunt for food in the savannah"]}',
        json.dumps({"elements": ["leg"] * 61}),
        '{"elements": ["mane"]',
    ],
)
def test_what_is_no_list_is_refused(content):
    with pytest.raises(InvalidAnswerError):
        named_elements(Reply(content))


def test_words_of_the_shipped_lists_are_in_their_spelling_already():
    words = {e for row in shipped().values() for e in row}
    assert {w: normal(w) for w in words if normal(w) != w} == {}


REGULAR = re.compile(r"[a-z]+([^isu]|ss)")


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted({e for row in shipped().values() for e in row if REGULAR.fullmatch(e)})))
def test_regular_plurals_come_back(noun):
    if noun.endswith(("ss", "x", "sh", "ch")):
        plural = noun + "es"
    elif noun.endswith("y") and noun[-2] not in "aeiou":
        plural = noun[:-1] + "ies"
    else:
        plural = noun + "s"
    assert lemma(plural) == noun


def test_spelling_by_examples():
    pairs = {"teeth": "tooth", "hooves": "hoof", "valves": "valve", "gloves": "glove", "glasses": "glass"}
    assert {w: lemma(w) for w in pairs} == pairs
    said = {
        "Has a pair of big Eyes.": "big eye",
        "its tail": "tail",
        "2 wheels": "wheel",
        "tail fins": "tail fin",
        "oneness": "oneness",
    }
    assert {w: normal(w) for w in said} == said
    assert head("two long tail-fins") == "fin"


def test_the_configuration_builds_it(tmp_path):
    from hydra import compose
    from omegaconf import OmegaConf

    from humanlike.entry.targets import build

    at = "elements.extraction.client"
    given = {f"{at}.model": "m", f"{at}.base_url": "http://localhost:1/v1", f"{at}.cache": tmp_path / "a.sqlite"}
    with hydra_session():
        overrides = [f"{name}={value}" for name, value in given.items()]
        config = compose("evaluate", overrides=["+elements/extraction=default", *overrides])
        plain = OmegaConf.to_container(config.elements.extraction, resolve=True)
    built = build(plain)
    assert (built.prompt.name, built.internal_prompt.name, built.samples) == ("list/1", "internal/1", 5)
    for text in (built.prompt.user, built.prompt.correction):  # a model that repeats the form has not answered
        with pytest.raises(InvalidAnswerError):
            named_elements(Reply(text[text.index('{"elements"') :].strip()))
    built.client.close()
