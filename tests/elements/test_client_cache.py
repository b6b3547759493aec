"""Answers that are kept: under what, in which file, and through the death of a run."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from humanlike.elements.cache import AnswerCache
from humanlike.elements.client_questions import Picture


def test_the_key_of_an_answer_holds_all_that_decides_it(question):
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


def test_a_cache_that_cannot_be_written_says_which_file(tmp_path):
    path = tmp_path / "a.sqlite"
    with AnswerCache(path) as cache:
        cache._db.execute("PRAGMA query_only=ON")
        with pytest.raises(OSError, match=r"cannot use the cache of answers .*a\.sqlite"):
            cache.put("k", {}, "m", "t")
        cache._db.execute("PRAGMA query_only=OFF")
        cache.put("k", {}, "m", "t")
        assert len(cache) == 1


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
