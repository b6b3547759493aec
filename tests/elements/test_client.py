"""The client against a real server that rate-limits, fails, hangs, drips, lies and refuses."""

from __future__ import annotations

import json
import logging
import pickle
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

from humanlike.elements.cache import AnswerCache
from humanlike.elements.client import ChatClient
from humanlike.elements.client_credential import Credential, credential
from humanlike.elements.client_errors import (
    BudgetError,
    CredentialError,
    EndpointDownError,
    EndpointError,
    InvalidAnswerError,
)
from humanlike.elements.client_limits import CircuitBreaker
from humanlike.elements.client_questions import Picture, Question
from humanlike.elements.client_transport import retry_after

SCHEMA = {
    "type": "object",
    "properties": {"eye": {"type": "string", "enum": ["present", "absent"]}},
    "required": ["eye"],
    "additionalProperties": False,
}
KEY = "sk-test/0123456789abcdef"


def check(reply):
    said = reply.json()
    if set(said) != {"eye"}:
        raise InvalidAnswerError(f"it has {sorted(said)}, not eye alone")
    return said


def question(text="is there an eye?", **fields):
    return Question("presence", text, check, **{"schema": SCHEMA, **fields})


def good(chat_module):
    return json.loads(chat_module.good_answer({"response_format": {"json_schema": {"schema": SCHEMA}}}))


def test_request_is_as_documented_and_the_answer_is_kept(chat_server, chat_client, chat_module):
    client = chat_client(parameters={"temperature": 0, "seed": None})
    asked = question(system="Be brief.", pictures=(Picture("abc", lambda: b"\x89PNG"),))
    first, second = client.ask(asked), client.ask(asked)
    assert first.answer == second.answer == good(chat_module)
    assert (first.kept, second.kept, chat_server.count) == (False, True, 1)
    path, headers, body = chat_server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
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
            "json_schema": {"name": "presence", "strict": True, "schema": SCHEMA},
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
def test_failures_that_pass_are_tried_again(chat_server, chat_client, chat_module, plan):
    chat_server.plan = list(plan)
    assert chat_client().ask(question()).answer == good(chat_module)
    assert chat_server.count == len(plan) + 1


def test_retry_after_is_honoured_by_all_threads_and_changes_no_answer(chat_server, chat_client, chat_module):
    chat_server.plan = [("rate_limit", 0.5)]
    outcomes = list(chat_client(concurrency=1).ask_all(question(f"q{i}") for i in range(3)))
    assert [o.answer for o in outcomes] == [good(chat_module)] * 3
    assert chat_server.times[1] - chat_server.times[0] >= 0.5
    chat_server.times.clear()
    chat_server.plan = [("rate_limit", 0.6)]
    list(chat_client(concurrency=4).ask_all(question(f"q{i}") for i in range(12)))
    # what was on its way in the first moments was answered; nobody began anything in the rest of the pause
    late = [t - chat_server.times[0] for t in chat_server.times]
    assert [t for t in late if 0.3 < t < 0.6] == []
    assert max(late) >= 0.6


def test_a_wait_longer_than_allowed_stops_the_run(chat_server, chat_client):
    chat_server.plan = [("rate_limit", 3600)]
    with pytest.raises(EndpointDownError, match="asks to wait 3600 s, longer than max_wait=120"):
        chat_client().ask(question())
    assert chat_server.count == 1


@pytest.mark.parametrize("behaviour", ["hang", "drip"])
def test_hanging_and_dripping_replies_end_at_the_time_out(chat_server, chat_client, behaviour):
    chat_server.plan = [(behaviour, 20)]
    started = time.monotonic()
    outcome = chat_client(timeout=0.3, max_attempts=1).ask(question())
    assert outcome.answer is None
    assert "within 0.3 s" in outcome.reason
    assert time.monotonic() - started < 3


def test_failures_to_the_end_are_missing_and_asked_again_later(chat_server, chat_client, tmp_path):
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
def test_an_unusable_reply_is_asked_for_once_more_with_the_reason(chat_server, chat_client, chat_module, content):
    chat_server.plan = [("say", content)]
    client = chat_client()
    assert client.ask(question()).answer == good(chat_module)
    again = chat_module.text_of(chat_server.requests[1][2])
    assert again.startswith("is there an eye?\n\nYour last reply could not be used: ")
    assert chat_server.count == 2
    assert client.cache.failure(question().key("test-model", "", {}, "json_schema")) is None


@pytest.mark.parametrize("content", UNUSABLE)
def test_twice_unusable_is_missing_never_an_answer(chat_server, chat_client, content):
    chat_server.plan = [("say", content)] * 2
    client = chat_client()
    outcome = client.ask(question())
    assert (outcome.answer, len(client.cache), chat_server.count) == (None, 0, 2)
    assert outcome.reason
    assert client.ask(question()) == type(outcome)(0, None, outcome.reason, kept=True)
    assert chat_server.count == 2  # asked in vain twice: not asked again


def test_a_fenced_object_is_an_answer(chat_server, chat_client):
    chat_server.plan = [("say", '```json\n{"eye": "absent"}\n```')]
    assert chat_client().ask(question()).answer == {"eye": "absent"}


def test_a_reply_cut_at_the_limit_of_tokens_is_unusable(chat_server, chat_client):
    chat_server.plan = [("cut", None)] * 2
    assert chat_client().ask(question()).reason == "the reply was cut off at the limit of tokens"


@pytest.mark.parametrize("behaviour", ["refuse", "filtered"])
def test_a_refusal_is_final_until_one_wants_to_try_again(chat_server, chat_client, behaviour, tmp_path):
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
def test_what_fails_for_all_stops_the_run_at_once(chat_server, chat_client, behaviour, says):
    chat_server.behave = lambda body: behaviour
    with pytest.raises(EndpointError, match=says) as caught:
        list(chat_client(concurrency=2).ask_all(question(f"q{i}") for i in range(50)))
    assert chat_server.count <= 2
    assert KEY not in str(caught.value)


def test_one_rejected_request_is_missing_but_nothing_else_than_rejections_stops(chat_server, chat_client):
    client = chat_client(concurrency=1)
    chat_server.behave = lambda body: ("status", 400) if "q3" in str(body) else None
    outcomes = list(client.ask_all(question(f"q{i}") for i in range(6)))
    assert [o.index for o in outcomes if o.answer is None] == [3]
    chat_server.behave = lambda body: ("status", 400)
    with pytest.raises(EndpointError, match=r"rejected the first 5 requests.*structured=json_object"):
        list(chat_client(concurrency=1, cache=None).ask_all(question(f"q{i}") for i in range(9)))


def test_rejections_do_not_stop_a_run_that_is_started_again(chat_server, chat_client, tmp_path):
    chat_server.behave = lambda body: ("status", 413) if chat_module_text(body) >= "q2" else None
    for _ in range(2):
        client = chat_client(concurrency=1, cache=tmp_path / "a.sqlite")
        outcomes = list(client.ask_all(question(f"q{i}") for i in range(9)))
        assert [o.index for o in outcomes if o.answer is None] == [2, 3, 4, 5, 6, 7, 8]


def chat_module_text(body):
    return body["messages"][-1]["content"]


def test_concurrency_is_bounded_and_questions_are_taken_as_they_are_sent(chat_server, chat_client):
    chat_server.latency = 0.01
    taken = []
    outcomes = chat_client(concurrency=4).ask_all(taken.append(i) or question(f"q{i}") for i in range(200))
    next(outcomes)
    time.sleep(0.5)  # nobody takes the outcomes: the queue of 8 fills, 4 more are in hand
    assert len(taken) <= 4 + 8 + 4 + 1
    assert sorted([0, *(o.index for o in outcomes)])[-1] == 199
    assert chat_server.most == 4


def test_the_same_question_at_once_is_sent_once(chat_server, chat_client):
    chat_server.latency = 0.05
    outcomes = list(chat_client().ask_all(question() for _ in range(10)))
    assert len(outcomes) == 10
    assert chat_server.count == 1


def test_an_error_in_the_questions_reaches_the_caller_and_leaves_no_thread(chat_client):
    def questions():
        yield question("q0")
        raise KeyError("no such item")

    with pytest.raises(KeyError, match="no such item"):
        list(chat_client().ask_all(questions()))
    outcomes = chat_client().ask_all(question(f"q{i}") for i in range(100))
    next(outcomes)
    outcomes.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ask-")]


def test_a_picture_that_cannot_be_read_is_missing_and_nothing_is_sent(chat_server, chat_client):
    def load():
        raise OSError("cow.png is truncated")

    outcome = chat_client().ask(question(pictures=(Picture("d", load),)))
    assert outcome.reason == "the image could not be read: cow.png is truncated"
    assert chat_server.count == 0


def test_budget_of_requests_counts_every_attempt(chat_server, chat_client, tmp_path):
    chat_server.plan = [("status", 500)]
    client = chat_client(budget_requests=5, concurrency=2, cache=tmp_path / "a.sqlite")
    with pytest.raises(BudgetError, match="budget of 5 requests is used up"):
        list(client.ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == 5
    assert len(client.cache) == 4
    list(chat_client(cache=tmp_path / "a.sqlite").ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == 5 + 16  # goes on where it stopped


def test_budget_of_tokens_stops_before_it_is_exceeded(chat_server, chat_client):
    estimate = question("q0").estimated_tokens({"max_tokens": 50})
    client = chat_client(budget_tokens=1000, concurrency=1, parameters={"max_tokens": 50})
    with pytest.raises(BudgetError, match="1000 tokens"):
        list(client.ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == (1000 - estimate) // 100 + 1
    assert client.counts["tokens"] <= 1000


def test_breaker_stops_asking_and_gives_up(chat_server, chat_client):
    chat_server.behave = lambda body: ("status", 503)
    breaker = CircuitBreaker(failures=3, pause=0.05, trials=2)
    with pytest.raises(EndpointDownError, match="failed 5 times in a row, and at 2 later trials"):
        list(chat_client(breaker=breaker, concurrency=1).ask_all(question(f"q{i}") for i in range(50)))
    assert chat_server.count == 5


def test_breaker_closes_when_the_endpoint_is_back(chat_server, chat_client, chat_module):
    chat_server.plan = [("status", 503)] * 4
    client = chat_client(breaker=CircuitBreaker(failures=3, pause=0.05, trials=3), concurrency=1)
    outcomes = list(client.ask_all(question(f"q{i}") for i in range(5)))
    assert [o.answer for o in outcomes] == [good(chat_module)] * 5


def test_breaker_by_a_clock():
    now = [0.0]
    breaker = CircuitBreaker(failures=2, pause=10.0, trials=3, clock=lambda: now[0])
    breaker.failed()
    assert breaker.wait_time() == 0
    breaker.failed()
    assert breaker.wait_time() == 10
    now[0] = 10.0
    assert breaker.wait_time() == 0  # the trial
    assert breaker.wait_time() > 0  # everybody else waits for it
    breaker.failed()
    assert breaker.wait_time() == 20
    now[0] = 30.0
    assert breaker.wait_time() == 0
    breaker.worked()
    assert [breaker.wait_time() for _ in range(3)] == [0, 0, 0]


def test_the_key_is_in_no_log_error_cache_or_pickle(chat_server, chat_client, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    client = chat_client(cache=tmp_path / "answers.sqlite", concurrency=1)
    chat_server.plan = [("status", 500), ("echo", None), ("echo", None)]
    outcome = client.ask(question("q0"))
    assert outcome.answer is None
    chat_server.plan = [("say", "ok " + KEY), ("say", json.dumps({"eye": KEY}))]
    assert client.ask(question("q1")).answer == {"eye": "***"}
    chat_server.plan = [("status", 401)]
    with pytest.raises(EndpointError) as caught:
        client.ask(question("q2"))
    chain, error = [], caught.value
    while error is not None:
        chain.append(f"{error!r} {error.__dict__}")
        error = error.__cause__ or error.__context__
    client.close()
    files = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    held = repr([vars(client), vars(client._transport), client._transport._client.headers])
    for text in (caplog.text, outcome.reason, "".join(chain), files.decode("latin-1"), held):
        assert KEY not in text
    assert "***" in str(caught.value)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Credential(KEY))


def test_without_a_key_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("JUDGE_TEST_KEY", raising=False)
    for env in ("JUDGE_TEST_KEY", None):
        with pytest.raises(CredentialError, match=r"needs a key and there is none.*nothing was sent"):
            ChatClient("gpt-4o", "https://api.example.com/v1", env)
    monkeypatch.setenv("JUDGE_TEST_KEY", " \n")
    with pytest.raises(CredentialError, match="set the environment variable JUDGE_TEST_KEY"):
        ChatClient("gpt-4o", "https://api.example.com/v1", "JUDGE_TEST_KEY")
    with pytest.raises(CredentialError, match="nothing was sent"):
        credential("http://localhost:8000/v1", "JUDGE_TEST_KEY", needed=True)
    assert not credential("http://localhost:8000/v1", "JUDGE_TEST_KEY")


@pytest.mark.parametrize("mistake", ["sk-proj-abcdef", "hf_abcdef123456"])
def test_a_key_in_the_place_of_a_name_is_not_repeated(mistake):
    with pytest.raises(CredentialError, match="name of an environment variable") as caught:
        ChatClient("gpt-4o", credential_env=mistake)
    assert mistake not in str(caught.value)


def test_a_key_goes_over_no_open_line_and_in_no_address(monkeypatch):
    monkeypatch.setenv("JUDGE_TEST_KEY", KEY)
    with pytest.raises(CredentialError, match="not encrypted"):
        ChatClient("gpt-4o", "http://api.example.com/v1", "JUDGE_TEST_KEY")
    for address in (
        "https://me:secretword@host/v1",
        "https://host/v1?api-key=secretword",
        "https://host/v1#secretword",
    ):
        with pytest.raises(ValueError, match="plain address") as caught:
            ChatClient("gpt-4o", address, None)
        assert "secretword" not in str(caught.value)


def test_the_key_of_an_answer_holds_all_that_decides_it():
    def key(model="m", revision="", parameters=None, structured="json_schema", **fields):
        return question(**fields).key(model, revision, parameters or {}, structured)

    keys = [
        key(),
        key(model="n"),
        key(revision="q4"),
        key(parameters={"temperature": 0}),
        key(structured="none"),
        key(text="another"),
        key(system="s"),
        key(schema=None),
        key(sample=1),
        key(correction="again"),
        key(parameters={"temperature": 1}),
        key(pictures=(Picture("a", bytes),)),
        key(pictures=(Picture("b", bytes),)),
    ]
    assert len(set(keys)) == len(keys)
    assert key() == key()


def test_a_date_to_wait_for():
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert retry_after({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, now) == 90
    assert retry_after({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, now) == 0
    assert [retry_after({"retry-after": said}, now) for said in ("-5", "nan", "inf", "", "x")] == [0, *[None] * 4]


def test_a_cache_that_cannot_be_written_says_which_file(tmp_path):
    path = tmp_path / "a.sqlite"
    with AnswerCache(path) as cache:
        cache._db.execute("PRAGMA query_only=ON")
        with pytest.raises(OSError, match=r"cannot use the cache of answers .*a\.sqlite"):
            cache.put("k", {}, "m", "t")
        cache._db.execute("PRAGMA query_only=OFF")
        cache.put("k", {}, "m", "t")
        assert len(cache) == 1


def test_missing_httpx_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'humanlike\[judges\]'"):
        ChatClient("m", "http://localhost:1/v1", None)


def test_cache_refuses_files_of_another_kind(tmp_path):
    (tmp_path / "text").write_text("not a data base, but long enough to be taken for one" * 30)
    with pytest.raises(ValueError, match="is not a cache of answers"):
        AnswerCache(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(ValueError, match="another kind of file"):
        AnswerCache(tmp_path / "other")


def test_cache_serves_two_at_once(tmp_path):
    with AnswerCache(tmp_path / "a.sqlite") as one, AnswerCache(tmp_path / "a.sqlite") as two:
        one.put("k", {"x": 1}, "m", "t")
        two.put("k", {"x": 2}, "m", "t")
        assert one.get("k") == two.get("k") == {"x": 1}


RUN = """
import sys
from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Question
client = ChatClient("m", sys.argv[1], None, cache=sys.argv[2], concurrency=8)
questions = (Question("t", f"question {i}", lambda reply: reply.json()) for i in range(100))
for outcome in client.ask_all(questions):
    assert outcome.answer == {}, outcome
print(client.counts["answered"], client.counts.get("kept", 0))
"""


def test_a_run_killed_at_60_percent_repeats_no_request(chat_server, killed_after, tmp_path):
    file = tmp_path / "answers.sqlite"
    command = [sys.executable, "-c", RUN, chat_server.base_url, str(file)]
    killed_after(60, command, file)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert said == ["40", "60"]
    assert len(chat_server.answered) == 100
    assert set(chat_server.answered.values()) == {1}
