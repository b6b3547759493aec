"""The key of an endpoint: where it comes from, and that it is shown nowhere."""

from __future__ import annotations

import json
import logging
import pickle
import sys

import pytest

from humanlike.elements.client import ChatClient
from humanlike.elements.client_credential import Credential, credential
from humanlike.elements.client_errors import CredentialError, EndpointError


def test_the_key_is_in_no_log_error_cache_or_pickle(chat_server, chat_client, question, chat_key, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    client = chat_client(cache=tmp_path / "answers.sqlite", concurrency=1)
    chat_server.plan = [("status", 500), ("echo", None), ("echo", None)]
    outcome = client.ask(question("q0"))
    assert outcome.answer is None
    chat_server.plan = [("say", "ok " + chat_key), ("say", json.dumps({"eye": chat_key}))]
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
        assert chat_key not in text
    assert "***" in str(caught.value)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Credential(chat_key))


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


def test_a_key_goes_over_no_open_line_and_in_no_address(monkeypatch, chat_key):
    monkeypatch.setenv("JUDGE_TEST_KEY", chat_key)
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


def test_missing_httpx_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'humanlike\[judges\]'"):
        ChatClient("m", "http://localhost:1/v1", None)
