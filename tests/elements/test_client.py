"""The client against a real server that rate-limits, fails, hangs, drips, lies and refuses."""

from __future__ import annotations

import time

import pytest

from humanlike.elements.client_errors import EndpointDownError, EndpointError
from humanlike.elements.client_questions import Picture


def test_request_is_as_documented_and_the_answer_is_kept(chat_server, chat_client, question, chat_key, good_answer):
    client = chat_client(parameters={"temperature": 0, "seed": None})
    asked = question(system="Be brief.", pictures=(Picture("abc", lambda: b"\x89PNG"),))
    first, second = client.ask(asked), client.ask(asked)
    assert first.answer == second.answer == good_answer
    assert (first.kept, second.kept, chat_server.count) == (False, True, 1)
    path, headers, body = chat_server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {chat_key}"
    assert body == {
        "model": "test-model",
        "temperature": 0,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "is there an eye?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                ],
            },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "presence", "strict": True, "schema": asked.schema},
        },
    }
    assert client.counts == {"requests": 1, "tokens": 100, "answered": 1, "kept": 1, "replies": 1}


@pytest.mark.parametrize(
    "plan",
    [
        [("status", 500)],
        [("status", 503), ("status", 502)],
        [("rate_limit", None)],
        [("broken", None)],
        [("raw", '{"choices": [{"mess')],
        [("raw", "[1, 2]")],
        [("raw", '{"choices": []}')],
        [("raw", "[" * 100_000)],
        [("raw", "\udcff".encode("utf-8", "surrogateescape").decode("latin-1"))],
        [("html", None)],
        [("huge", None)],
        [("hang", 0.0)],
    ],
)
def test_failures_that_pass_are_tried_again(chat_server, chat_client, question, good_answer, plan):
    chat_server.plan = list(plan)
    assert chat_client().ask(question()).answer == good_answer
    assert chat_server.count == len(plan) + 1


def test_retry_after_is_honoured_by_all_threads_and_changes_no_answer(chat_server, chat_client, question, good_answer):
    chat_server.plan = [("rate_limit", 0.5)]
    outcomes = list(chat_client(concurrency=1).ask_all(question(f"q{i}") for i in range(3)))
    assert [o.answer for o in outcomes] == [good_answer] * 3
    assert chat_server.times[1] - chat_server.times[0] >= 0.5
    chat_server.times.clear()
    chat_server.plan = [("rate_limit", 0.6)]
    list(chat_client(concurrency=4).ask_all(question(f"q{i}") for i in range(12)))
    # what was on its way in the first moments was answered; nobody began anything in the rest of the pause
    late = [t - chat_server.times[0] for t in chat_server.times]
    assert [t for t in late if 0.3 < t < 0.6] == []
    assert max(late) >= 0.6


def test_a_wait_longer_than_allowed_stops_the_run(chat_server, chat_client, question):
    chat_server.plan = [("rate_limit", 3600)]
    with pytest.raises(EndpointDownError, match="asks to wait 3600 s, longer than max_wait=120"):
        chat_client().ask(question())
    assert chat_server.count == 1


@pytest.mark.parametrize("behaviour", ["hang", "drip"])
def test_hanging_and_dripping_replies_end_at_the_time_out(chat_server, chat_client, question, behaviour):
    chat_server.plan = [(behaviour, 20)]
    started = time.monotonic()
    outcome = chat_client(timeout=0.3, max_attempts=1).ask(question())
    assert outcome.answer is None
    assert "within 0.3 s" in outcome.reason
    assert time.monotonic() - started < 3


def test_failures_to_the_end_are_missing_and_asked_again_later(chat_server, chat_client, question, tmp_path):
    chat_server.plan = [("status", 500)] * 3
    client = chat_client(max_attempts=3, cache=tmp_path / "a.sqlite")
    outcome = client.ask(question())
    assert outcome.answer is None
    assert outcome.reason.startswith("HTTP 500")
    assert outcome.reason.endswith("after 3 attempts")
    assert client.ask(question()).answer is not None


UNUSABLE = [
    "I can see an eye in this drawing.",
    '{"eye": "pres',
    "{}",
    "[]",
    "null",
    "",
    '{"eye": "present", "horn": "absent"}',
    '{"eye": "present", "eye": "absent"}',
    '{"eye": NaN}',
    'Sure! {"eye": "present"}',
]


@pytest.mark.parametrize("content", UNUSABLE)
def test_an_unusable_reply_is_asked_for_once_more_with_the_reason(
    chat_server, chat_client, question, chat_module, good_answer, content
):
    chat_server.plan = [("say", content)]
    client = chat_client()
    assert client.ask(question()).answer == good_answer
    again = chat_module.text_of(chat_server.requests[1][2])
    assert again.startswith("is there an eye?\n\nYour last reply could not be used: ")
    assert chat_server.count == 2
    assert client.cache.failure(question().key("test-model", "", {}, "json_schema")) is None


@pytest.mark.parametrize("content", UNUSABLE)
def test_twice_unusable_is_missing_never_an_answer(chat_server, chat_client, question, content):
    chat_server.plan = [("say", content)] * 2
    client = chat_client()
    outcome = client.ask(question())
    assert (outcome.answer, len(client.cache), chat_server.count) == (None, 0, 2)
    assert outcome.reason
    assert client.ask(question()) == type(outcome)(0, None, outcome.reason, kept=True)
    assert chat_server.count == 2  # asked in vain twice: not asked again


def test_a_fenced_object_is_an_answer(chat_server, chat_client, question):
    chat_server.plan = [("say", '```json\n{"eye": "absent"}\n```')]
    assert chat_client().ask(question()).answer == {"eye": "absent"}


def test_a_reply_cut_at_the_limit_of_tokens_is_unusable(chat_server, chat_client, question):
    chat_server.plan = [("cut", None)] * 2
    assert chat_client().ask(question()).reason == "the reply was cut off at the limit of tokens"


@pytest.mark.parametrize("behaviour", ["refuse", "filtered"])
def test_a_refusal_is_final_until_one_wants_to_try_again(chat_server, chat_client, question, behaviour, tmp_path):
    chat_server.plan = [(behaviour, None)]
    file = tmp_path / "answers.sqlite"
    first = chat_client(cache=file).ask(question())
    assert first.reason.startswith("the model refused")
    assert chat_client(cache=file).ask(question()).reason == first.reason
    assert chat_server.count == 1
    assert chat_client(cache=file, retry_failures=True).ask(question()).answer is not None
    assert chat_client(cache=file).ask(question()).answer is not None
    assert chat_server.count == 2


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (("status", 401), "the key is not accepted"),
        (("status", 403), "may not use this model"),
        (("status", 404), "see base_url"),
        (("quota", None), "no quota left"),
        (("redirect", "http://127.0.0.1:9/steal"), "redirects are not followed"),
    ],
)
def test_what_fails_for_all_stops_the_run_at_once(chat_server, chat_client, question, chat_key, behaviour, says):
    chat_server.behave = lambda body: behaviour
    with pytest.raises(EndpointError, match=says) as caught:
        list(chat_client(concurrency=2).ask_all(question(f"q{i}") for i in range(50)))
    assert chat_server.count <= 2
    assert chat_key not in str(caught.value)


def test_one_rejected_request_is_missing_but_nothing_else_than_rejections_stops(chat_server, chat_client, question):
    client = chat_client(concurrency=1)
    chat_server.behave = lambda body: ("status", 400) if "q3" in str(body) else None
    outcomes = list(client.ask_all(question(f"q{i}") for i in range(6)))
    assert [o.index for o in outcomes if o.answer is None] == [3]
    chat_server.behave = lambda body: ("status", 400)
    with pytest.raises(EndpointError, match=r"rejected the first 5 requests.*structured=json_object"):
        list(chat_client(concurrency=1, cache=None).ask_all(question(f"q{i}") for i in range(9)))


def test_rejections_do_not_stop_a_run_that_is_started_again(chat_server, chat_client, question, tmp_path):
    chat_server.behave = lambda body: ("status", 413) if text_of(body) >= "q2" else None
    for _ in range(2):
        client = chat_client(concurrency=1, cache=tmp_path / "a.sqlite")
        outcomes = list(client.ask_all(question(f"q{i}") for i in range(9)))
        assert [o.index for o in outcomes if o.answer is None] == [2, 3, 4, 5, 6, 7, 8]


def text_of(body):
    return body["messages"][-1]["content"]


def test_a_picture_that_cannot_be_read_is_missing_and_nothing_is_sent(chat_server, chat_client, question):
    def load():
        raise OSError("cow.png is truncated")

    outcome = chat_client().ask(question(pictures=(Picture("d", load),)))
    assert outcome.reason == "the image could not be read: cow.png is truncated"
    assert chat_server.count == 0
