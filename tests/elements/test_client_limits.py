"""What bounds a client: requests at a time, the budget, an endpoint that is down, and a date to wait for."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import pytest

from humanlike.elements.client_errors import BudgetError, EndpointDownError
from humanlike.elements.client_limits import CircuitBreaker
from humanlike.elements.client_transport import retry_after


def test_concurrency_is_bounded_and_questions_are_taken_as_they_are_sent(chat_server, chat_client, question):
    chat_server.latency = 0.01
    taken = []
    outcomes = chat_client(concurrency=4).ask_all(taken.append(i) or question(f"q{i}") for i in range(200))
    next(outcomes)
    time.sleep(0.5)  # nobody takes the outcomes: the queue of 8 fills, 4 more are in hand
    assert len(taken) <= 4 + 8 + 4 + 1
    assert sorted([0, *(o.index for o in outcomes)])[-1] == 199
    assert chat_server.most == 4


def test_the_same_question_at_once_is_sent_once(chat_server, chat_client, question):
    chat_server.latency = 0.05
    outcomes = list(chat_client().ask_all(question() for _ in range(10)))
    assert len(outcomes) == 10
    assert chat_server.count == 1


def test_an_error_in_the_questions_reaches_the_caller_and_leaves_no_thread(chat_client, question):
    def questions():
        yield question("q0")
        raise KeyError("no such item")

    with pytest.raises(KeyError, match="no such item"):
        list(chat_client().ask_all(questions()))
    outcomes = chat_client().ask_all(question(f"q{i}") for i in range(100))
    next(outcomes)
    outcomes.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("ask-")]


def test_budget_of_requests_counts_every_attempt(chat_server, chat_client, question, tmp_path):
    chat_server.plan = [("status", 500)]
    client = chat_client(budget_requests=5, concurrency=2, cache=tmp_path / "a.sqlite")
    with pytest.raises(BudgetError, match="budget of 5 requests is used up"):
        list(client.ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == 5
    assert len(client.cache) == 4
    list(chat_client(cache=tmp_path / "a.sqlite").ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == 5 + 16  # goes on where it stopped


def test_budget_of_tokens_stops_before_it_is_exceeded(chat_server, chat_client, question):
    estimate = question("q0").estimated_tokens({"max_tokens": 50})
    client = chat_client(budget_tokens=1000, concurrency=1, parameters={"max_tokens": 50})
    with pytest.raises(BudgetError, match="1000 tokens"):
        list(client.ask_all(question(f"q{i}") for i in range(20)))
    assert chat_server.count == (1000 - estimate) // 100 + 1
    assert client.counts["tokens"] <= 1000


def test_breaker_stops_asking_and_gives_up(chat_server, chat_client, question):
    chat_server.behave = lambda body: ("status", 503)
    breaker = CircuitBreaker(failures=3, pause=0.05, trials=2)
    with pytest.raises(EndpointDownError, match="failed 5 times in a row, and at 2 later trials"):
        list(chat_client(breaker=breaker, concurrency=1).ask_all(question(f"q{i}") for i in range(50)))
    assert chat_server.count == 5


def test_breaker_closes_when_the_endpoint_is_back(chat_server, chat_client, question, good_answer):
    chat_server.plan = [("status", 503)] * 4
    client = chat_client(breaker=CircuitBreaker(failures=3, pause=0.05, trials=3), concurrency=1)
    outcomes = list(client.ask_all(question(f"q{i}") for i in range(5)))
    assert [o.answer for o in outcomes] == [good_answer] * 5


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


def test_a_date_to_wait_for():
    now = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    assert retry_after({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, now) == 90
    assert retry_after({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, now) == 0
    assert [retry_after({"retry-after": said}, now) for said in ("-5", "nan", "inf", "", "x")] == [0, *[None] * 4]
