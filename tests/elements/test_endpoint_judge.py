"""The judge behind an endpoint: what it shows, what it believes, and what it leaves missing."""

from __future__ import annotations

import base64
import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.benchmarks.sea import SeaBenchmark
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.elements.client_questions import Reply, TokenChoice
from humanlike.elements.endpoint_judge import EndpointJudge, png
from humanlike.elements.endpoint_judge_answers import presence_answer
from humanlike.elements.presence import PresenceJudge
from humanlike.elements.prompts import Prompt
from humanlike.entry.conf import hydra_session
from humanlike.types import Sketches

PROMPT = Prompt("test", "A drawing of: {label}. Parts:\n{elements}", "Look well.")


@pytest.fixture(scope="module")
def sketches():
    return doodles(["lion", "taxi", "mouse"], instances=1, judgments=0)


@pytest.fixture
def judge(chat_client):
    return lambda **settings: EndpointJudge(chat_client(), PROMPT, **settings)


def without_order(presence):
    return presence.table.set_index(["sketch_id", "element"]).sort_index()


def test_all_elements_of_a_sketch_in_one_request(chat_server, judge, sketches):
    elements = annotated_elements(sketches)
    presence = judge(size=64).judge(sketches, elements)
    assert isinstance(judge(), PresenceJudge)
    assert chat_server.count == len(sketches)
    assert presence.coverage == 1
    assert presence.table["probability"].isna().all()  # no tokens were offered: verdicts alone
    by_text = {chat_server_text(body): body for _, _, body in chat_server.requests}
    assert len(by_text) == 3
    for concept, spoken in (("lion", "lion"), ("taxi", "taxi"), ("mouse", "mouse")):
        text = f"A drawing of: {spoken}. Parts:\n" + "\n".join(f"- {e}" for e in elements[concept])
        body = by_text[text]
        assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
        assert body["messages"][0] == {"role": "system", "content": "Look well."}
        schema = body["response_format"]["json_schema"]["schema"]
        assert schema["required"] == list(elements[concept])
        assert schema["additionalProperties"] is False
        says = json.loads(chat_server.answer(body))
        rows = presence.table[presence.table["sketch_id"].isin(ids_of(sketches, concept))]
        assert (rows["decision"] == rows["element"].map(says).eq("present")).all()
    assert presence.source.startswith("test-model at an endpoint, prompt test@")


def chat_server_text(body):
    return body["messages"][-1]["content"][0]["text"]


def ids_of(sketches, concept):
    return set(sketches.table["sketch_id"][sketches.table["concept"] == concept])


def test_the_model_sees_the_sketch_itself(chat_server, judge, sketches):
    one = sketches.select([0])
    judge(size=4096).judge(one, annotated_elements(one))
    url = chat_server.requests[0][2]["messages"][-1]["content"][1]["image_url"]["url"]
    head, data = url.split(",")
    assert head == "data:image/png;base64"
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    np.testing.assert_array_equal(seen, np.asarray(one.images.load(0).convert("RGB")))
    small = Image.open(io.BytesIO(png(one.images, 0, 50)))
    assert max(small.size) == 50
    assert small.getpixel((0, 0)) == (255, 255, 255)


BAD = [
    "The drawing shows a mane.",
    '{"mane": "pre',
    "{}",
    "refuse",
    "filtered",
    "unknown",
    "twice",
    "unsure",
    "lacking",
]


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_answer_is_missing_and_never_absent(chat_server, judge, sketches, kind):
    elements = annotated_elements(sketches)

    def behave(body):
        if "lion" not in chat_server_text(body):
            return None
        good = chat_server.answer(body)
        changed = {
            "unknown": good[:-1] + ', "horn": "absent"}',
            "twice": good[:-1] + f', "{elements["lion"][0]}": "absent"}}',
            "unsure": good.replace("present", "unsure", 1) if "present" in good else good.replace("absent", "no", 1),
            "lacking": json.dumps(dict(list(json.loads(good).items())[1:])),
        }
        return (kind, None) if kind in ("refuse", "filtered") else ("say", changed.get(kind, kind))

    chat_server.behave = behave
    presence = judge().judge(sketches, elements)
    lions = presence.table["sketch_id"].isin(ids_of(sketches, "lion"))
    assert presence.table["decision"][lions].isna().all()
    assert presence.table["reason"][lions].str.len().min() > 10
    assert presence.table["decision"][~lions].notna().all()
    ratio = presence.visual_ratio.set_index("sketch_id").loc[sorted(ids_of(sketches, "lion"))]
    assert ratio["v"].isna().all()  # not V = 0, which SEA would reward
    assert (ratio["coverage"] == 0).all()
    per_lion = 1 if kind in ("refuse", "filtered") else 2
    others = len(sketches) - len(ids_of(sketches, "lion"))
    assert chat_server.count == others + per_lion * len(ids_of(sketches, "lion"))


def test_again_nothing_is_sent_and_the_record_is_the_same(chat_server, chat_client, sketches, tmp_path):
    elements = annotated_elements(sketches)
    chat_server.plan = [("rate_limit", 0.01), ("status", 500), ("refuse", None)]
    records = []
    for concurrency in (4, 1):
        client = chat_client(cache=tmp_path / "answers.sqlite", concurrency=concurrency)
        records.append(EndpointJudge(client, PROMPT).judge(sketches, elements))
    pd.testing.assert_frame_equal(records[0].table, records[1].table)
    assert chat_server.count == len(sketches) + 2
    # another size, prompt or model asks anew
    judges = [
        EndpointJudge(chat_client(cache=tmp_path / "answers.sqlite"), PROMPT, size=100),
        EndpointJudge(chat_client(cache=tmp_path / "answers.sqlite"), Prompt("b", PROMPT.user)),
        EndpointJudge(chat_client(cache=tmp_path / "answers.sqlite", model="other"), PROMPT),
    ]
    for number, other in enumerate(judges, start=2):
        other.judge(sketches, elements)
        assert chat_server.count == number * len(sketches) + 2


def test_an_unreadable_image_is_missing(chat_server, judge, sketches):
    class Torn:
        def __len__(self):
            return len(sketches)

        def content_hash(self, index):
            return sketches.images.content_hash(index)

        def describe(self, index):
            return f"row {index}"

        def load(self, index):
            if index == 1:
                raise OSError("lion.png: image file is truncated")
            return sketches.images.load(index)

    torn = Sketches("torn", sketches.table, sketches.labels, Torn(), sketches.condition_unit)
    presence = judge().judge(torn, annotated_elements(sketches))
    assert list(presence.missing) == ["the image could not be read: lion.png: image file is truncated"]
    assert chat_server.count == len(sketches) - 1


def test_sketches_without_elements_are_not_asked_about(chat_server, judge, sketches):
    presence = judge().judge(sketches, {"lion": ["mane"]})
    assert chat_server.count == len(ids_of(sketches, "lion"))
    assert len(presence.sketch_ids) == len(sketches)


def tokens(*spelled):
    """Tokens of one reply: text, or (text, log-probability, {other: log-probability})."""
    return tuple(
        TokenChoice(*t[:2], tuple(t[2].items())) if isinstance(t, tuple) else TokenChoice(t, 0.0) for t in spelled
    )


def replied(*spelled):
    made = tokens(*spelled)
    return Reply("".join(t.text for t in made), "stop", made)


def test_probabilities_are_the_odds_of_the_two_words():
    reply = replied(
        '{"',
        "ear",
        '":',
        (' "', -0.1, {' "': -0.1, "absent": -0.2}),
        ("present", math.log(0.6), {"present": math.log(0.6), "abs": math.log(0.2), "pres": math.log(0.1), "x": -0.1}),
        '",',
        '"tail": "',
        ("abs", math.log(0.9), {"present": math.log(0.05)}),
        "ent",
        '"}',
    )
    answer = presence_answer(reply, ["ear", "tail"])
    assert answer["present"] == {"ear": True, "tail": False}
    assert answer["probability"]["ear"] == pytest.approx(0.7 / 0.9)
    assert answer["probability"]["tail"] == pytest.approx(0.05 / 0.95)


def test_probabilities_where_the_quote_is_part_of_the_token():
    likely = (' "absent', math.log(0.75), {' "present': math.log(0.25), '"present': math.log(0.5)})
    answer = presence_answer(replied('{"ear":', likely, '"}'), ["ear"])
    assert answer["probability"]["ear"] == pytest.approx(0.25)


def test_tokens_that_do_not_add_up_give_no_probabilities():
    made = tokens('{"ear": "', "present", '"}')
    assert presence_answer(Reply('{"ear":  "present"}', "stop", made), ["ear"])["probability"] == {}
    coarse = replied('{"ear": "', ("p", -9.0, {"q": -0.1}), "resent", '", "tail": "absent"}')
    assert presence_answer(coarse, ["ear", "tail"])["probability"] == {"ear": 1.0, "tail": 0.0}


def test_names_are_read_without_regard_to_case_and_refused_otherwise():
    assert presence_answer(Reply('{"Nose Pad": "Present"}'), ["nose pad"])["present"] == {"nose pad": True}
    with pytest.raises(InvalidAnswerError, match="answered twice"):
        presence_answer(Reply('{"Ear": "present", "ear": "absent"}'), ["ear"])
    with pytest.raises(InvalidAnswerError, match=r"'tail' is not answered \(1 of 2 are not\)"):
        presence_answer(Reply('{"ear": "present"}'), ["ear", "tail"])


def test_log_probabilities_reach_the_record(chat_server, judge, sketches, chat_module):
    def behave(body):
        content = chat_server.answer(body)
        pieces = content.replace('"present"', '"|present|"').replace('"absent"', '"|absent|"').split("|")
        listed = []
        for piece in pieces:
            p = {"present": 0.8, "absent": 0.7}.get(piece, 1.0)
            other = {"present": "absent", "absent": "present"}.get(piece, "x")
            top = [{"token": piece, "logprob": math.log(p)}, {"token": other, "logprob": math.log(max(1 - p, 1e-9))}]
            listed.append({"token": piece, "logprob": math.log(p), "top_logprobs": top})
        return ("raw", chat_module.completion(content, logprobs={"content": listed}))

    chat_server.behave = behave
    presence = judge().judge(sketches, annotated_elements(sketches))
    expected = presence.table["decision"].map({True: 0.8, False: 0.3}).astype(float)
    np.testing.assert_allclose(presence.table["probability"], expected)
    assert presence.at(0.9).table["decision"].eq(False).all()


def test_a_benchmark_of_sea_takes_the_judge(chat_server, judge, sketches):
    benchmark = SeaBenchmark(judge=judge())
    assert isinstance(benchmark.judge, PresenceJudge)


def test_a_prompt_needs_its_blanks(chat_client):
    with pytest.raises(ValueError, match=r"needs the blanks \{label\}, \{elements\}, it has \{label\}"):
        EndpointJudge(chat_client(), Prompt("p", "What is on this {label}?"))
    with pytest.raises(ValueError, match="size ≥ 16"):
        EndpointJudge(chat_client(), PROMPT, size=1)


def test_the_configuration_builds_it(chat_server, monkeypatch, tmp_path):
    from hydra import compose
    from omegaconf import OmegaConf

    from humanlike.entry.targets import build

    given = {"model": "gpt-4o", "base_url": chat_server.base_url, "cache": tmp_path / "answers.sqlite"}
    with hydra_session():
        overrides = [f"judge.client.{name}={value}" for name, value in given.items()]
        config = compose("evaluate", overrides=["benchmark=sea", "judge=endpoint", "seed=7", *overrides])
        judged = OmegaConf.to_container(config.judge, resolve=True)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    built = build(judged)
    assert built.client.source == "gpt-4o"
    assert built.client.parameters == {"temperature": 0, "max_tokens": 1000, "seed": 7}
    assert built.prompt.name == "presence/1"
    built.client.close()
    judged["client"]["base_url"] = "https://api.example.com/v1"
    with pytest.raises(ValueError, match="set the environment variable OPENAI_API_KEY"):
        build(judged)
