"""Waits between attempts, and several processes that share one file of answers."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from humanlike.elements.client_limits import Backoff
from humanlike.elements.client_questions import Question


def question(text):
    return Question("t", text, lambda reply: reply.json())


def test_waits_double_up_to_the_longest_and_differ_between_questions():
    wait = Backoff(base=0.5, longest=8.0, seed=3)
    keys = [f"q{i}" for i in range(100)]
    for attempt in range(8):
        nominal = min(8.0, 0.5 * 2**attempt)
        seconds = np.array([wait.seconds(key, attempt) for key in keys])
        assert seconds.min() >= nominal / 2
        assert seconds.max() < nominal
        assert len(set(seconds)) == len(keys)
        assert seconds.mean() == pytest.approx(0.75 * nominal, rel=0.1)  # uniform between a half and the whole
    assert wait.seconds("q0", 2) == wait.seconds("q0", 2)
    assert wait.seconds("q0", 2) != Backoff(base=0.5, longest=8.0, seed=4).seconds("q0", 2)


def test_what_the_endpoint_asks_for_is_waited_for_and_jittered():
    seconds = [Backoff(base=0.5).seconds(f"q{i}", 0, retry_after=20.0) for i in range(50)]
    assert min(seconds) >= 20
    assert max(seconds) < 20.5
    assert len(set(seconds)) == 50


def test_attempts_at_a_failing_endpoint_are_further_and_further_apart(chat_server, chat_client):
    chat_server.plan = [("status", 503)] * 4
    client = chat_client(backoff=Backoff(base=0.1, longest=10.0), max_attempts=5)
    assert client.ask(question("q")).answer is not None
    gaps = np.diff(chat_server.times)
    for n, gap in enumerate(gaps):
        assert gap >= 0.05 * 2**n
    assert gaps[3] > gaps[0]


def test_unavailable_with_a_time_to_wait_is_waited_for(chat_server, chat_client):
    chat_server.plan = [("unavailable", 0.6)]
    assert chat_client().ask(question("q")).answer is not None
    assert chat_server.times[1] - chat_server.times[0] >= 0.6


@pytest.mark.parametrize("kind", ["text/event-stream", "application/jsonl", ""])
def test_replies_of_another_kind_are_no_answers(chat_server, chat_client, kind):
    chat_server.behave = lambda body: ("of_kind", kind)
    client = chat_client(max_attempts=2)
    outcome = client.ask(question("q"))
    assert outcome.answer is None
    assert outcome.reason.startswith(f"the reply is {kind or 'of no stated type'}, not application/json")
    assert (chat_server.count, len(client.cache)) == (2, 0)


def test_a_stream_that_never_ends_stops_no_other_question(chat_server, chat_client):
    chat_server.behave = lambda body: ("drip", None) if "q0" in str(body["messages"]) else None
    started = time.monotonic()
    client = chat_client(timeout=0.5, max_attempts=2, concurrency=2)
    outcomes = {o.index: o for o in client.ask_all(question(f"q{i}.") for i in range(8))}
    assert time.monotonic() - started < 4
    assert outcomes[0].answer is None
    assert "was not complete within 0.5 s" in outcomes[0].reason
    assert [outcomes[i].answer for i in range(1, 8)] == [{}] * 7


RUN = """
import sys
from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Question
address, file, rank, world = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
client = ChatClient("m", address, None, cache=file, concurrency=6)
questions = (Question("t", f"question {i}", lambda reply: reply.json()) for i in range(rank, 100, world))
for outcome in client.ask_all(questions):
    assert outcome.answer == {}, outcome
print(client.counts.get("answered", 0), client.counts.get("kept", 0))
"""


def test_killed_at_60_percent_and_gone_on_with_by_three_processes_at_once(chat_server, killed_after, tmp_path):
    file = tmp_path / "answers.sqlite"
    line = [sys.executable, "-c", RUN, chat_server.base_url, str(file)]
    killed_after(60, [*line, "0", "1"], file)
    others = [subprocess.Popen([*line, str(r), "3"], stdout=subprocess.PIPE, text=True) for r in range(3)]
    said = [process.communicate(timeout=60)[0].split() for process in others]
    assert [process.returncode for process in others] == [0, 0, 0]
    assert sum(int(answered) for answered, _ in said) == 40
    assert sum(int(kept) for _, kept in said) == 60
    assert len(chat_server.answered) == 100
    assert set(chat_server.answered.values()) == {1}
