"""Errors as a person reads them."""

from __future__ import annotations

import errno

import pytest
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from humanlike.data.images import BadImageError
from humanlike.entry.sentences import sentence


def test_an_interpolation_failure_names_the_full_key():
    config = OmegaConf.create({"a": {"b": "${nowhere.c}"}})
    with pytest.raises(OmegaConfBaseException) as caught:
        _ = config.a.b
    assert "'a.b'" in sentence(caught.value)


def test_a_setting_without_default_is_asked_for():
    config = OmegaConf.create({"a": {"b": "???"}})
    with pytest.raises(OmegaConfBaseException) as caught:
        _ = config.a.b
    assert sentence(caught.value).endswith("a.b=VALUE")


def test_a_setting_without_default_is_asked_for_by_its_own_name():
    config = OmegaConf.create({"a": {"b": "???", "name": "${.b}"}})
    with pytest.raises(OmegaConfBaseException) as caught:
        _ = config.a.name
    assert sentence(caught.value) == "a.b has no default: give it on the command line, a.b=VALUE"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("the sketch table lacks x"), "the sketch table lacks x"),
        (FileNotFoundError("no folder data/"), "no folder data/"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (BadImageError("a.png", "truncated"), "a.png: truncated; mend or remove it (extraction.on_bad_image=skip"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "Permission denied: '/x'"),
        (ValueError("first\nsecond"), "first second"),
        (MemoryError(), "not enough memory"),
        (KeyError("no score 'x'"), "no score 'x'"),
        (RuntimeError("strange"), "RuntimeError: strange (unexpected; run again with debug=true"),
    ],
)
def test_sentences(error, words):
    assert sentence(error).startswith(words)


def test_the_way_to_a_traceback_is_that_of_the_command():
    assert "run again with X=1 for the traceback" in sentence(RuntimeError("strange"), "X=1")
