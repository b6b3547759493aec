"""train_readout: files, resumption, both ways of serving features."""

from __future__ import annotations

import json

import pytest
import torch

from humanlike.entry.train_readout import train_readout

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not have many workers.*",
    "ignore:.*srun.*command is available.*",
    "ignore:.*LeafSpec.*is deprecated.*:FutureWarning",
)
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


def test_val_fold_must_exist(tiny_backbone, noise_sketches, tmp_path):
    with pytest.raises(ValueError, match=r"val_fold must be one of the folds .*, got 5"):
        train(tiny_backbone, noise_sketches, tmp_path, val_fold=5)
