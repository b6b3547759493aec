"""A chat endpoint that behaves as told, and a client of it that does not wait long."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

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
