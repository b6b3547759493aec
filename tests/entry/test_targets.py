"""Only allowed targets are built, and only with keywords they take."""

from __future__ import annotations

import pytest
import torch
from omegaconf import OmegaConf

from humanlike.entry.conf import compose
from humanlike.entry.targets import TargetError, build


def test_builds_nested_objects_with_plain_containers():
    made = build({"_target_": "torch.nn.Linear", "in_features": 3, "out_features": 2}, bias=False)
    assert isinstance(made, torch.nn.Linear)
    assert made.bias is None


@pytest.mark.parametrize(
    "target", ["os.system", "subprocess.run", "builtins.eval", "torch.load", "torch.hub.load", "torchx.nn.A"]
)
def test_other_targets_are_refused(target):
    with pytest.raises(TargetError, match=f"asks for '{target}', which is not allowed"):
        build({"_target_": target, "command": "true"})


def test_a_nested_target_is_refused_with_its_place():
    with pytest.raises(TargetError, match=r"'os\.system' \(at layers\[0\]\.inner\)"):
        build({"_target_": "torch.nn.Linear", "layers": [{"inner": {"_target_": "os.system"}}]})


@pytest.mark.parametrize(
    ("target", "leads_to"),
    [
        ("humanlike.files.os.remove", "os"),
        ("humanlike.elements.critic.torch.hub.load", "torch"),
        ("torch.nn.modules.module.functools.partial", "functools"),
        ("humanlike.entry.conf.Path", "Path"),
        ("mylab_for_a_test.os.remove", "os"),
    ],
)
def test_a_name_that_leads_out_of_its_package_is_refused(target, leads_to, monkeypatch, tmp_path):
    (tmp_path / "mylab_for_a_test.py").write_text("import os\nfrom fractions import Fraction\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HUMANLIKE_ALLOW_TARGETS", "mylab_for_a_test")
    kept = tmp_path / "kept"
    kept.touch()
    with pytest.raises(TargetError, match=rf"leads out of \w+, to '{leads_to}' of another package"):
        build({"_target_": target, "_args_": [str(kept)]})
    assert kept.exists()
    # A package that the environment names may hand on what others made.
    assert build({"_target_": "mylab_for_a_test.Fraction", "numerator": 1}) == 1


def test_own_packages_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("HUMANLIKE_ALLOW_TARGETS", "fractions, statistics")
    assert build({"_target_": "fractions.Fraction", "numerator": 1, "denominator": 2}) * 2 == 1
    with pytest.raises(TargetError):
        build({"_target_": "fractionsx.Fraction"})


def test_a_wrong_keyword_is_answered_with_the_nearest():
    with pytest.raises(TargetError, match="takes no 'in_feature'; did you mean 'in_features'"):
        build({"_target_": "torch.nn.Linear", "in_feature": 3, "out_features": 2})


def test_a_missing_module_is_named():
    with pytest.raises(TargetError, match=r"'humanlike\.nowhere\.Thing' cannot be imported"):
        build({"_target_": "humanlike.nowhere.Thing"})


def test_the_constructors_own_error_comes_through(monkeypatch):
    monkeypatch.setenv("HUMANLIKE_ALLOW_TARGETS", "fractions")
    with pytest.raises(ZeroDivisionError):
        build({"_target_": "fractions.Fraction", "numerator": 1, "denominator": 0})


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["dataset=image_folder", "dataset.root=null"], r"dataset\.root must be a word or a path, got None"),
        (
            ["dataset=image_folder", "dataset.root=x", "dataset.svg_size=big"],
            r"dataset\.svg_size must be a whole number",
        ),
        (["dataset=image_folder", "dataset.root=x", "dataset.labels=owl"], r"dataset\.labels must be a list \(every"),
        (
            ["dataset=image_folder", "dataset.root=x", "dataset.condition_values=7"],
            r"must be a mapping .* or null, got 7",
        ),
        (
            ["dataset=image_folder", "dataset.root=x", "dataset.semantic_space=s.csv"],
            r"a mapping .* or null, got 's\.csv'",
        ),
        (
            ["dataset=quickdraw", "dataset.root=x", "dataset.time_cuts=4"],
            r"time_cuts must be a list .*a number.*, got 4",
        ),
        (["dataset=quickdraw", "dataset.root=x", "dataset.time_cuts=[4s]"], r"time_cuts must be a list .*got \['4s'\]"),
        (["dataset.concepts=[lion]", "dataset.seed=true"], r"dataset\.seed must be a whole number, got True"),
    ],
)
def test_values_of_a_wrong_type_are_named_with_their_key(overrides, words):
    with pytest.raises(TargetError, match=words):
        build(compose("evaluate", overrides).dataset)
    with pytest.raises(TargetError, match=r"readout\.C must be a number, got 'abc'"):
        build(compose("evaluate", ["readout.C=abc"]).readout)


def test_the_group_of_a_refused_target_is_named():
    with pytest.raises(TargetError, match=r"asks for 'os\.system' \(at backbone\)"):
        build(compose("evaluate", ["backbone._target_=os.system"]).backbone)


def test_what_has_no_default_is_named_in_full():
    whole = OmegaConf.create({"judge": {"_target_": "humanlike.elements.prompts.Prompt", "name": "n", "user": "???"}})
    with pytest.raises(TargetError, match=r"^judge\.user has no default: give it on the command line, judge\.user="):
        build(whole.judge)
    assert build(whole.judge, user="u").user == "u"
