"""`humanlike layers` for every adapter, with no weights on the machine."""

from __future__ import annotations

import sys

import pytest

from humanlike.entry import cli


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["resnet50"], ["layer4.2", "2048 × 7 × 7", "pre_logits"]),
        (["googlenet"], ["inception5b", "1024 × 7 × 7", "pre_logits"]),
        (["clip_vit_b32"], ["transformer.resblocks.11", "50 × 768", "embedding"]),
        (["cornet_s"], ["decoder.avgpool", "512 × 1 × 1", "pre_logits"]),
        (["ipcl_alexnet"], ["conv_block_5", "256 × 6 × 6", "fc7", "output"]),
        (["harmonization_vit_b16"], ["blocks.11", "197 × 768", "pre_logits"]),
        (["checkpoint", "backbone.architecture=test_resnet"], ["layer4", "pre_logits"]),
        (["torchvision", "backbone.architecture=regnet_x_400mf"], ["trunk_output", "400 × 7 × 7"]),
    ],
    ids=lambda value: value[0],
)
def test_layers_are_listed_without_weights(monkeypatch, capsys, tmp_path, arguments, expected):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["humanlike", "layers", *arguments, "offline=true"])
    cli.main()
    said = capsys.readouterr()
    assert all(text in said.out for text in expected)
    assert "no weights were loaded" in said.err
    assert not list(tmp_path.iterdir())
