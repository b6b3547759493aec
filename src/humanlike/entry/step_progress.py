"""How far a training is: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl

from humanlike.backbones.progress import Progress


class StepProgress(pl.Callback):
    """Shows steps done, their rate and the time left, in the first of several processes.

    Lightning's own bar starts anew every epoch, and writes a line a step where there is no terminal.

    Args:
        label: What is trained.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._bar = Progress(0, label, enabled=False)
        self._done = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count what is left: a training that goes on does not count the steps of before."""
        del pl_module
        self._done, total = trainer.global_step, trainer.estimated_stepping_batches
        left = int(total) - self._done if total != float("inf") else 0
        self._bar = Progress(max(left, 0), self.label, trainer.is_global_zero, unit="steps")

    def on_train_batch_end(self, trainer: pl.Trainer, *others: Any) -> None:
        """Count the steps since the last batch."""
        del others
        self._bar.advance(trainer.global_step - self._done)
        self._done = trainer.global_step

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Leave the last line."""
        del trainer, pl_module
        self._bar.close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Leave the last line, so that the message stands below it."""
        del trainer, pl_module, exception
        self._bar.close()
