"""Progress of a training: what is left, counted from where it goes on, and a last line whatever ends it."""

from __future__ import annotations

import io

import pytest
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from humanlike.backbones.progress import Progress
from humanlike.entry import step_progress
from humanlike.entry.step_progress import StepProgress


class Line(pl.LightningModule):
    """A slope that is fitted by steps of one number; fails at a step, if told to."""

    def __init__(self, fails_at=None):
        super().__init__()
        self.slope, self.fails_at = torch.nn.Linear(1, 1), fails_at

    def training_step(self, batch, batch_idx):
        if self.global_step == self.fails_at:
            raise RuntimeError("out of luck")
        return self.slope(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


@pytest.fixture
def written(monkeypatch):
    """What progress writes, a line a step."""
    stream = io.StringIO()

    def told_at_once(*arguments, **keywords):
        return Progress(*arguments, **keywords, stream=stream, interval_s=0.0)

    monkeypatch.setattr(step_progress, "Progress", told_at_once)
    return stream


def fit(module, folder, ckpt_path=None, **lengths):
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[StepProgress("training")],
        default_root_dir=str(folder),
        **lengths,
    )
    loader = DataLoader(torch.ones(6, 1), batch_size=2)
    trainer.fit(module, loader, ckpt_path=ckpt_path, weights_only=None if ckpt_path is None else True)
    return trainer


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
@pytest.mark.parametrize("lengths", [{"max_steps": 4, "max_epochs": -1}, {"max_epochs": 2}])
def test_steps_are_counted_to_the_end(written, tmp_path, lengths):
    fit(Line(), tmp_path, **lengths)
    total = lengths.get("max_steps", 6)
    lines = written.getvalue().splitlines()
    assert [line.split(" steps")[0] for line in lines[:total]] == [
        f"training {step}/{total}" for step in range(1, total + 1)
    ]


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
def test_what_goes_on_counts_what_is_left(written, tmp_path):
    fit(Line(), tmp_path, max_steps=3, max_epochs=-1).save_checkpoint(tmp_path / "half.ckpt")
    written.truncate(0)
    fit(Line(), tmp_path, tmp_path / "half.ckpt", max_steps=8, max_epochs=-1)
    assert "training 5/5 steps" in written.getvalue()
    assert "/8" not in written.getvalue()


@pytest.mark.filterwarnings("ignore:.*does not have many workers")
def test_a_failure_leaves_how_far_it_came(written, tmp_path):
    with pytest.raises(RuntimeError, match="out of luck"):
        fit(Line(fails_at=2), tmp_path, max_steps=4, max_epochs=-1)
    assert written.getvalue().splitlines()[-1].startswith("training 2/4 steps")
