"""The effect of a narrower type on features is measured and said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from humanlike.backbones import precision
from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.precision import relative_deviation
from humanlike.entry.pipeline import run_benchmark
from humanlike.reports.wording import flag_sentence
from humanlike.types import BenchmarkResult

SMALL = {"micro_batch": 4, "micro_batches_per_shard": 2, "progress": False, "threads": 1}


@pytest.fixture
def network() -> NetworkBackbone:
    def build() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())

    return NetworkBackbone(build, "3", {"size": 16}, name="tiny")


def by_hand(narrow_ND: np.ndarray, full_ND: np.ndarray) -> np.ndarray:
    pairs = zip(narrow_ND.tolist(), full_ND.tolist(), strict=True)
    return np.array(
        [sum((a - b) ** 2 for a, b in zip(*p, strict=True)) ** 0.5 / sum(b**2 for b in p[1]) ** 0.5 for p in pairs]
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_deviation_is_that_of_the_first_items_from_their_float32_features(network, noise, monkeypatch, dtype):
    monkeypatch.setattr(precision, "ITEMS", 9)  # three micro-batches of four
    data = noise(19, broken=(2,))
    options = {**SMALL, "on_bad_image": "skip"}
    full = extract_features(network, data, ["0", "3"], **options)
    narrow = extract_features(network, data, ["0", "3"], dtype=dtype, **options)
    for layer in ("0", "3"):
        assert "deviation_from_float32" not in full[layer].info
        expected_N = by_hand(narrow[layer].f_ND[:11], full[layer].f_ND[:11])
        found = narrow[layer].info["deviation_from_float32"]
        assert found["items"] == 11
        assert found["max"] == pytest.approx(expected_N.max(), rel=1e-5)
        assert found["median"] == pytest.approx(np.median(expected_N), rel=1e-5)
        assert 0 < found["median"] <= found["max"] < 0.05


def test_the_deviation_is_kept_with_the_features(network, noise, tmp_path, monkeypatch):
    options = {**SMALL, "dtype": "bfloat16", "cache_dir": tmp_path}
    first = extract_features(network, noise(6), **options)["3"].info["deviation_from_float32"]
    calls = []
    network.network[0].register_forward_hook(lambda *_: calls.append(1))
    assert extract_features(network, noise(6), **options)["3"].info["deviation_from_float32"] == first
    assert not calls
    (path,) = tmp_path.rglob("deviation_from_float32.json")
    path.write_text("{")
    monkeypatch.setattr(precision, "write_json", refuse)
    assert extract_features(network, noise(6), **options)["3"].info["deviation_from_float32"] == first
    assert len(calls) == 2
    assert json.loads(json.dumps(first)) == first


def refuse(*_):
    raise PermissionError(13, "read-only")


def test_a_network_that_autocast_leaves_alone_does_not_deviate(noise):
    backbone = CallableBackbone(lambda x: x.mean((2, 3)), lambda _: torch.ones(3, 8, 8), name="mean")
    found = extract_features(backbone, noise(5), dtype="bfloat16", **SMALL)["output"].info["deviation_from_float32"]
    assert found == {"items": 5, "max": 0.0, "median": 0.0}


def test_rows_of_zero_have_no_relative_deviation():
    assert relative_deviation(np.ones((2, 3)), np.zeros((2, 3))) == {"items": 0, "max": None, "median": None}
    assert relative_deviation(np.array([[1.0], [3.0]]), np.array([[0.0], [2.0]]))["max"] == 0.5


class Nothing:
    """A benchmark that measures nothing."""

    identifier, version, bibtex = "nothing", "1", ""

    def run(self, data, features, readout, *, seed):
        empty, items = pd.DataFrame(), pd.DataFrame({"sketch_id": data.table["sketch_id"]})
        return BenchmarkResult({}, empty, items, empty, {"items_total": len(data)}, flags=("no_people",))


@pytest.mark.parametrize(("dtype", "flags"), [("float32", ()), ("bfloat16", ("reduced_precision:bfloat16",))])
def test_a_score_says_the_type_in_flags_and_details(network, noise, dtype, flags):
    score = run_benchmark(network, noise(5), Nothing(), None, extraction={**SMALL, "dtype": dtype})
    assert score.result.flags == ("no_people", *flags)
    details = score.result.details["extraction"]
    assert details["dtype"] == dtype
    assert details.get("deviation_from_float32", {"items": 5})["items"] == 5
    assert ("deviation_from_float32" in details) == bool(flags)


def test_the_flag_is_a_sentence():
    (flag,) = precision.precision_flags({"dtype": "bfloat16"})
    assert flag_sentence(flag).startswith("Features were computed in bfloat16 instead of float32")
