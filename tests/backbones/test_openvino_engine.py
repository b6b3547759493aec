"""OpenVINO gives torch's features."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.openvino_engine import OpenVinoBackbone
from humanlike.backbones.vision import TimmBackbone

SMALL = {"micro_batch": 4, "micro_batches_per_shard": 2, "progress": False, "threads": 1}


def convolutions() -> nn.Module:
    """With a ReLU that overwrites what the layer before it gave."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 16, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class DependsOnValues(nn.Module):
    """Another path for dark images, which a trace cannot hold."""

    def forward(self, x_B3HW: torch.Tensor) -> torch.Tensor:
        f_BD = x_B3HW.mean((2, 3))
        return f_BD if float(x_B3HW.sum()) > 0 else f_BD * 2


def backbone(build=convolutions, layer="5") -> NetworkBackbone:
    return NetworkBackbone(build, layer, {"size": 16}, name="tiny")


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.parametrize(
    ("make", "layers"),
    [
        (backbone, ["0", "1", "2", "3", "5", "output"]),
        (lambda: TimmBackbone("test_efficientnet", weights=None, transform={"size": 32}), ["blocks.0", "pre_logits"]),
        (lambda: TimmBackbone("test_vit", weights=None), ["blocks.0", "pre_logits"]),
    ],
    ids=["convolutions", "efficientnet", "vit"],
)
def test_several_layers_are_those_of_torch_to_1e_5(noise, make, layers):
    pytest.importorskip("openvino")
    data, network = noise(10), make()
    expected = extract_features(network, data, layers, **SMALL)
    found = extract_features(network, data, layers, engine="openvino", **SMALL)
    for layer in layers:
        assert found[layer].f_ND.dtype == np.float32
        assert relative(found[layer].f_ND, expected[layer].f_ND) < 1e-5
        assert np.abs(found[layer].f_ND - expected[layer].f_ND).max() < 1e-5 * np.abs(expected[layer].f_ND).max()
        assert found[layer].hashes["weights"] == expected[layer].hashes["weights"]
    assert found[layers[0]].info["engine"].startswith("openvino 2")
    assert expected[layers[0]].info["engine"] == "torch"


def test_the_key_names_engine_version_and_type(noise, tmp_path, monkeypatch):
    openvino = pytest.importorskip("openvino")
    data, network, options = noise(5), backbone(), {**SMALL, "cache_dir": tmp_path}
    keys = {extract_features(network, data, **options)["5"].info["cache_key"]}
    first = extract_features(network, data, engine="openvino", **options)["5"]
    again = extract_features(network, data, engine="openvino", **options)["5"]
    assert again.info["from_cache"]
    assert np.array_equal(again.f_ND, first.f_ND)
    keys.add(first.info["cache_key"])
    monkeypatch.setattr(openvino, "__version__", "2999.1")
    keys.add(extract_features(network, data, engine="openvino", **options)["5"].info["cache_key"])
    assert len(keys) == 3
    architectures = {OpenVinoBackbone(network, dtype).architecture for dtype in ("float32", "bfloat16")}
    assert architectures == {"tiny, openvino 2999.1, float32", "tiny, openvino 2999.1, bfloat16"}


def test_bfloat16_is_near_and_measured_or_refused(noise):
    pytest.importorskip("openvino")
    try:
        found = extract_features(backbone(), noise(5), dtype="bfloat16", engine="openvino", **SMALL)["5"]
    except ValueError as error:
        assert "on this CPU instead of bf16" in str(error)  # noqa: PT017
        return
    assert 1e-5 < found.info["deviation_from_float32"]["max"] < 0.05


def test_a_network_that_a_trace_cannot_hold_is_refused():
    pytest.importorskip("openvino")
    wrapped = OpenVinoBackbone(backbone(DependsOnValues, "output"))
    with pytest.raises(ValueError, match=r"features of layer 'output' are 1.0e\+00 from torch's, more than 0.0001"):
        wrapped.features(torch.ones(2, 3, 16, 16), ["output"])


def test_features_that_differ_from_torch_are_an_error(monkeypatch):
    pytest.importorskip("openvino")
    wrapped = OpenVinoBackbone(backbone())
    infer = OpenVinoBackbone._infer
    monkeypatch.setattr(OpenVinoBackbone, "_infer", lambda *a: {n: f + 0.01 for n, f in infer(*a).items()})
    with pytest.raises(ValueError, match=r"tiny: OpenVINO's features of layer '5' are .* from torch's"):
        wrapped.features(torch.ones(2, 3, 16, 16), ["5"])


def test_without_openvino_the_extra_is_named(noise, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'humanlike\[openvino\]'"):
        extract_features(backbone(), noise(2), engine="openvino", **SMALL)


def test_what_it_cannot_run_is_said(noise):
    with pytest.raises(ValueError, match="networks of torch modules, got CallableBackbone"):
        OpenVinoBackbone(CallableBackbone(lambda x: x, lambda _: torch.ones(3, 8, 8), name="mine"))
    with pytest.raises(ValueError, match="dtype must be one of"):
        OpenVinoBackbone(backbone(), "float16")
    with pytest.raises(ValueError, match="engine must be one of"):
        extract_features(backbone(), noise(2), engine="onnx", **SMALL)
    trainer = pl.Trainer(
        devices=2,
        strategy="ddp_fork",
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    with pytest.raises(ValueError, match=r"2 process\(es\) on cpu"):
        extract_features(backbone(), noise(2), engine="openvino", trainer=trainer, **SMALL)
