"""The command line, taken apart and put into an order that Hydra takes."""

from __future__ import annotations

import pytest

from humanlike.entry.arguments import parse_arguments
from humanlike.entry.overrides import OverrideError


def test_flags_go_before_settings():
    line = parse_arguments(["dataset=doodles", "-m", "seed=0,1", "--config-dir", "my conf", "~report", "-cd=other"])
    assert line.arguments == [
        *("-m", "--config-dir", "my conf", "-cd=other"),
        *("dataset=doodles", "seed=0,1", "~report"),
    ]
    assert line.config_dirs == ("my conf", "other")
    assert line.multirun
    assert not line.other_config


def test_what_is_asked_of_hydra():
    assert parse_arguments(["--info", "config"]).about_hydra
    assert parse_arguments(["-cn", "mine", "a=1"]).other_config
    assert parse_arguments(["hydra.mode=MULTIRUN"]).multirun
    assert parse_arguments(["--cfg", "job", "seed=1"]).arguments == ["--cfg", "job", "seed=1"]
    assert parse_arguments(["debug=true"]).overrides == ("debug=traceback",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seed", "=", "1"], "'seed' is not understood: settings are written key=value"),
        (["--multirn", "seed=0,1"], "no flag '--multirn': did you mean '--multirun'"),
        (["--seed=1"], "no flag '--seed': settings have no dashes, 'seed=1'"),
        (["--seed", "1"], "no flag '--seed': settings are written seed=VALUE"),
        (["seed=1", "--config-dir"], "--config-dir needs a value"),
    ],
)
def test_what_is_not_understood(arguments, words):
    with pytest.raises(OverrideError, match=words):
        parse_arguments(arguments)
