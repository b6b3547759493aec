"""`python train.py` from outside: heads are trained, kept, taken up again, and judge."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from humanlike.data.doodles import doodles
from humanlike.entry.head_training import folds_of
from humanlike.entry.train_generator import train_generator
from humanlike.entry.train_presence import train_presence
from humanlike.entry.train_readout import train_readout

SETTINGS = (
    "backbone=random_tiny",
    "dataset.concepts=5",
    "dataset.instances=5",
    "task.batch_size=20",
)


@pytest.mark.parametrize(
    ("train", "settings", "words"),
    [
        (train_readout, {"max_epochs": 0}, "max_epochs must be at least 1, got 0"),
        (train_presence, {"max_epochs": -1}, "max_epochs must be at least 1, got -1"),
        (train_generator, {"pretrain_steps": -1}, "pretrain_steps must be at least 0, got -1"),
        (train_generator, {"judge_every": 0}, "judge_every must be at least 1, got 0"),
    ],
)
def test_a_training_without_steps_or_end_is_refused_before_anything_is_made(train, settings, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        train(None, None, tmp_path, **settings)
    assert not list(tmp_path.iterdir())


def test_too_many_folds_name_the_setting_of_the_task():
    data = doodles(concepts=["lion", "vase"], instances=3, judgments=0)
    with pytest.raises(ValueError, match=r"has 3 sources for 4 folds .*; use task\.n_splits=3, add sources"):
        folds_of(data, np.arange(len(data)), 4, 0)


@pytest.mark.slow
def test_a_readout_is_trained_and_taken_up_again(command, tmp_path):
    first = command("train.py", "task=readout", *SETTINGS, "task.max_epochs=2", f"hydra.run.dir={tmp_path}")
    assert first.returncode == 0, first.stderr
    assert "Warning" not in first.stderr
    state = torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)
    assert state["epoch"] == 1
    longer = command("train.py", "task=readout", *SETTINGS, "task.max_epochs=4", f"hydra.run.dir={tmp_path}")
    assert longer.returncode == 0, longer.stderr
    assert torch.load(tmp_path / "checkpoints" / "last.ckpt", weights_only=True)["epoch"] == 3
    straight = command(
        "train.py", "task=readout", *SETTINGS, "task.max_epochs=4", f"hydra.run.dir={tmp_path / 'straight'}"
    )
    assert straight.returncode == 0
    once, twice = (
        torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for folder in (tmp_path / "straight", tmp_path)
    )
    assert all(torch.equal(once[name], twice[name]) for name in once)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics
    assert len(pd.read_csv(next((tmp_path / "loggers").rglob("metrics.csv"))))


@pytest.mark.slow
def test_a_presence_head_is_trained_taken_up_again_and_judges(command, tmp_path):
    """In one process and in two, the same head; then doodles of another seed are judged by it."""
    own = ("task=presence", *SETTINGS, "dataset.judgments=0", "task.max_epochs=2")
    one = command("train.py", *own, f"hydra.run.dir={tmp_path / 'one'}")
    assert one.returncode == 0, one.stderr
    assert "Warning" not in one.stderr
    again = command("train.py", *own, "task.max_epochs=3", f"hydra.run.dir={tmp_path / 'one'}")
    assert again.returncode == 0, again.stderr
    assert torch.load(tmp_path / "one" / "checkpoints" / "last.ckpt", weights_only=True)["epoch"] == 2
    two = command("train.py", *own, "task.max_epochs=3", "trainer=ddp", "task.batch_size=10",
                  f"hydra.run.dir={tmp_path / 'two'}")  # fmt: skip
    assert two.returncode == 0, two.stderr
    metrics, of_two = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("one", "two"))
    assert metrics["resumed"]
    assert metrics["epochs"] == of_two["epochs"] == 3
    assert of_two["val_loss"] == pytest.approx(metrics["val_loss"], abs=1e-5)
    assert of_two["num_train"] + of_two["num_val"] == 100
    judged = command(
        "evaluate.py", "benchmark=sea", *SETTINGS[:3], "dataset.judgments=0", "dataset.seed=1",
        "judge=saved_presence_head", f"judge.file={tmp_path / 'one' / 'presence_head.safetensors'}",
        "benchmark.replicates=20", "benchmark.sensitivity_draws=0", "report=false",
        f"hydra.run.dir={tmp_path / 'sea'}",
    )  # fmt: skip
    assert judged.returncode == 0, judged.stderr
    counts = json.loads((tmp_path / "sea" / "score.json").read_text())["counts"]
    assert counts["items_scored"] == counts["items_total"] == 100
