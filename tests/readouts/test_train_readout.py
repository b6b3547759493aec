"""train_readout: files, resumption, both ways of serving features."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from humanlike.entry.train_readout import train_readout
from humanlike.readouts import stratified_group_folds
from humanlike.readouts.linear_probe import LinearProbe

TRAINER = {"accelerator": "cpu", "devices": 1, "enable_progress_bar": False}


def train(backbone, data, folder, **keywords):
    keywords = {"max_epochs": 4, "batch_size": 16, "precompute": False, "trainer_kwargs": TRAINER, **keywords}
    return train_readout(backbone, data, folder, **keywords)


def test_files_and_resumption(tiny_backbone, noise_sketches, tmp_path):
    whole = train(tiny_backbone, noise_sketches, tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "metrics.json").read_text()) == whole
    assert whole["num_train"] + whole["num_val"] == 90
    assert sorted(p.name for p in (tmp_path / "whole" / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]

    half = train(tiny_backbone, noise_sketches, tmp_path / "parts", max_epochs=2)
    assert half["epochs"] == 2
    assert not half["resumed"]
    resumed = train(tiny_backbone, noise_sketches, tmp_path / "parts")
    assert resumed["resumed"]
    assert resumed["epochs"] == 4
    assert (resumed["val_loss"], resumed["val_accuracy"]) == (whole["val_loss"], whole["val_accuracy"])
    states = [torch.load(p / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"] for p in tmp_path.iterdir()]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])

    again = train(tiny_backbone, noise_sketches, tmp_path / "parts")  # finished: nothing left to train
    assert again["val_loss"] == whole["val_loss"]
    with pytest.raises(ValueError, match=r"C: 1.0 there, 5.0 here"):
        train(tiny_backbone, noise_sketches, tmp_path / "parts", C=5.0)
    anew = train(tiny_backbone, noise_sketches, tmp_path / "parts", C=5.0, resume=False, max_epochs=1)
    assert not anew["resumed"]


def test_backbone_is_unchanged(tiny_backbone, noise_sketches, tmp_path):
    before = tiny_backbone.train().weights_hash
    train(tiny_backbone, noise_sketches, tmp_path, max_epochs=1)
    assert tiny_backbone.weights_hash == before


def test_val_fold_must_exist(tiny_backbone, noise_sketches, tmp_path):
    with pytest.raises(ValueError, match=r"val_fold must be one of the folds .*, got 5"):
        train(tiny_backbone, noise_sketches, tmp_path, val_fold=5)


def test_precomputed_features_give_the_same_readout(tiny_backbone, noise_sketches, tmp_path):
    streamed = train(tiny_backbone, noise_sketches, tmp_path / "streamed")
    computed = train(
        tiny_backbone, noise_sketches, tmp_path / "computed", precompute=True, cache_dir=tmp_path / "cache"
    )
    assert computed["val_loss"] == pytest.approx(streamed["val_loss"], rel=1e-4)
    assert computed["val_accuracy"] == streamed["val_accuracy"]


SCRIPT = """
import importlib.util, sys, warnings
spec = importlib.util.spec_from_file_location("fixtures", sys.argv[1])
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)
from humanlike.entry.train_readout import train_readout
train_readout(
    fixtures.TinyBackbone(), fixtures.make_noise_sketches(), sys.argv[2], max_epochs=2, batch_size=7, precompute=False,
    trainer_kwargs={"accelerator": "cpu", "devices": 2, "strategy": "ddp_fork", "enable_progress_bar": False},
)
"""


@pytest.mark.slow
def test_two_processes_validate_every_item_once(tiny_backbone, noise_sketches, tmp_path):
    conftest = Path(__file__).with_name("conftest.py")
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(conftest), str(tmp_path)]
    done = subprocess.run(
        command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((tmp_path / "metrics.json").read_text())
    probe = LinearProbe.load_from_checkpoint(result["checkpoint_best"], weights_only=True, backbone=tiny_backbone)
    assert int(probe.standardize.count) == result["num_train"]
    fold_N = stratified_group_folds(noise_sketches.table["concept"], noise_sketches.table["image_id"].to_numpy(), 5)
    rows = np.flatnonzero(fold_N == 0)
    assert len(rows) == result["num_val"]
    x = torch.stack([tiny_backbone.transform(noise_sketches.images.load(int(i))) for i in rows])
    with torch.no_grad():
        p_BL = probe.predict_proba(x).double()
    target_B = torch.tensor(noise_sketches.target_N[rows])
    assert result["val_loss"] == pytest.approx(-float(p_BL[range(len(rows)), target_B].log().mean()), rel=1e-5)
    assert result["val_accuracy"] == pytest.approx(float((p_BL.argmax(1) == target_B).double().mean()))
