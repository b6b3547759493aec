"""A chat endpoint that behaves as told, a client of it that does not wait long, and a run that is killed."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from humanlike.elements.cache import AnswerCache
from humanlike.elements.client import ChatClient
from humanlike.elements.client_errors import InvalidAnswerError
from humanlike.elements.client_limits import Backoff
from humanlike.elements.client_questions import Question

KEY = "sk-test/0123456789abcdef"
SCHEMA = {
    "type": "object",
    "properties": {"eye": {"type": "string", "enum": ["present", "absent"]}},
    "required": ["eye"],
    "additionalProperties": False,
}


@pytest.fixture(scope="session")
def chat_module() -> ModuleType:
    """The module of the server."""
    spec = importlib.util.spec_from_file_location("chat_server", Path(__file__).with_name("chat_server.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def chat_server(chat_module):
    """A running server."""
    with chat_module.ChatServer() as server:
        yield server


@pytest.fixture
def killed_after(chat_server):
    """Runs a command that keeps answers in a file, and kills it when that holds so many of them."""

    def run(answers: int, command: list[str], file: Path) -> None:
        lock, passed, enough = threading.Lock(), [0], threading.Event()

        def behave(body):
            with lock:
                passed[0] += 1
                if passed[0] <= answers:
                    return None
            enough.set()
            return ("hang", 60)  # on their way when the process dies: never answered

        chat_server.behave = behave
        process = subprocess.Popen(command)
        assert enough.wait(60)
        with AnswerCache(file) as cache:
            deadline = time.monotonic() + 20
            while len(cache) < answers and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            assert len(cache) == answers
        chat_server.behave = None

    return run


@pytest.fixture
def chat_client(chat_server, monkeypatch):
    """Makes clients of the server; arguments override those of an impatient client."""
    monkeypatch.setenv("JUDGE_TEST_KEY", KEY)
    made = []

    def make(**arguments) -> ChatClient:
        settings = {
            "model": "test-model",
            "base_url": chat_server.base_url,
            "credential_env": "JUDGE_TEST_KEY",
            "backoff": Backoff(base=0.01, longest=0.05),
            "timeout": 5.0,
            "concurrency": 4,
        }
        made.append(ChatClient(**{**settings, **arguments}))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def chat_key() -> str:
    """The key of `chat_client`."""
    return KEY


@pytest.fixture(scope="session")
def question() -> Callable[..., Question]:
    """Makes questions whether there is an eye."""

    def check(reply):
        said = reply.json()
        if set(said) != {"eye"}:
            raise InvalidAnswerError(f"it has {sorted(said)}, not eye alone")
        return said

    def make(text="is there an eye?", **fields) -> Question:
        return Question("presence", text, check, **{"schema": SCHEMA, **fields})

    return make


@pytest.fixture
def good_answer(chat_module) -> dict[str, str]:
    """What the server says to a question about an eye when nothing is wrong."""
    return json.loads(chat_module.good_answer({"response_format": {"json_schema": {"schema": SCHEMA}}}))
