"""The benchmark's configuration files hold its constructor's keywords and its protocol's switches, all of them."""

import inspect

import pytest
import yaml

from humanlike.benchmarks.protocol import switch_values
from humanlike.benchmarks.seva import SevaBenchmark


@pytest.fixture
def conf(repository):
    """Read a file of conf/."""
    return lambda name: yaml.safe_load((repository / "conf" / f"{name}.yaml").read_text(encoding="utf-8"))


def test_benchmark_keys_are_the_keywords_with_their_defaults(conf):
    keys = conf("benchmark/seva")
    assert keys.pop("_target_") == "humanlike.benchmarks.seva.SevaBenchmark"
    assert "metric" in keys.pop("metric")
    parameters = inspect.signature(SevaBenchmark).parameters
    # The preset has a short name of its own at the top of the command's configuration.
    assert keys.pop("protocol") == "${protocol}"
    keys["protocol"] = conf("evaluate")["protocol"]
    assert {**keys, "metric": None} == {name: p.default for name, p in parameters.items()}


def test_metric_keys_are_the_switches_and_keep_the_preset(conf):
    keys = conf("metric/response")
    assert set(keys) == set(switch_values())
    assert set(keys.values()) == {None}
    assert SevaBenchmark(metric=keys).protocol == SevaBenchmark().protocol


def test_every_switch_and_value_is_explained(repository, conf):
    deviations = (repository / "DEVIATIONS.md").read_text(encoding="utf-8")
    comments = (repository / "conf" / "metric" / "response.yaml").read_text(encoding="utf-8")
    for switch, values in switch_values().items():
        assert f"| `{switch}` |" in deviations
        line = next(line for line in comments.splitlines() if line.startswith(f"{switch}:"))
        assert line.split("# ")[1].split(" | ") == list(values)
