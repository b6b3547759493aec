"""`python train.py` from outside: a readout is trained, kept, and taken up again."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import torch

SETTINGS = (
    "backbone=random_tiny",
    "dataset.concepts=5",
    "dataset.instances=5",
    "task.batch_size=20",
)


@pytest.mark.slow
def test_a_readout_is_trained_and_taken_up_again(command, tmp_path):
    first = command("train.py", *SETTINGS, "task.max_epochs=2", f"hydra.run.dir={tmp_path}")
    assert first.returncode == 0, first.stderr
    assert "Warning" not in first.stderr
    state = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert state["epoch"] == 1
    longer = command("train.py", *SETTINGS, "task.max_epochs=4", f"hydra.run.dir={tmp_path}")
    assert longer.returncode == 0, longer.stderr
    assert torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)["epoch"] == 3
    straight = command("train.py", *SETTINGS, "task.max_epochs=4", f"hydra.run.dir={tmp_path / 'straight'}")
    assert straight.returncode == 0
    once, twice = (
        torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for folder in (tmp_path / "straight", tmp_path)
    )
    assert all(torch.equal(once[name], twice[name]) for name in once)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics
    assert len(pd.read_csv(next((tmp_path / "loggers").rglob("metrics.csv"))))
