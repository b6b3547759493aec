"""Only allowed targets are built, and only with keywords they take."""

from __future__ import annotations

import pytest
import torch

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
