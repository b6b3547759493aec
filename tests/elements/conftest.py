"""A chat endpoint that behaves as told, a client of it that does not wait long, and a run that is killed."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from humanlike.elements.cache import AnswerCache
from humanlike.elements.client import ChatClient
from humanlike.elements.client_limits import Backoff

KEY = "sk-test/0123456789abcdef"


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
