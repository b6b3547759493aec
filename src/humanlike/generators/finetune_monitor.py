"""How sketches are judged while a generator is fine-tuned, by the critic that trains it and by a judge that does not.

Legend: N sketches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch

from humanlike.data.drawing import Drawing
from humanlike.data.render import Renderer
from humanlike.generators.finetune import FineTuning
from humanlike.metrics.functional.sea import sea

MEANS = ("p", "v", "sea", "recognised", "blank", "num_strokes")
"""What is averaged over sketches."""


@torch.no_grad()
def read_drawings(
    critic: Any, drawings: Sequence[Drawing], concepts: Sequence[str], size: int = 128, batch_size: int = 64
) -> pd.DataFrame:
    """What a critic or judge says of drawings as resvg renders them: hard strokes, no view, no gradient.

    Args:
        critic: See `finetune.SketchCritic`.
        drawings: N drawings.
        concepts: What each is meant to show.
        size: Pixels a side that they are rendered at.
        batch_size: Pictures at once.

    Returns:
        One row a drawing: `concept`, `num_strokes`, `p`, `v` (share of elements more likely present than absent), `sea`
        (of p and v), `recognised` (p above a half) and `blank` (no element present: its `sea` is a jackpot that no
        average should hide).
    """
    renderer = Renderer(size=size)
    device = (
        next((b.device for b in critic.buffers()), torch.device("cpu"))
        if isinstance(critic, torch.nn.Module)
        else torch.device("cpu")
    )
    rows = []
    for start in range(0, len(drawings), batch_size):
        part = slice(start, start + batch_size)
        pixels = np.stack([np.asarray(renderer(d)) for d in drawings[part]]).astype(np.float32) / 255
        names = list(concepts[part])
        reading = critic(torch.from_numpy(pixels).permute(0, 3, 1, 2).to(device), names)
        present = (reading.presence_logits_BE.cpu() > 0) & reading.mask_BE.cpu()
        v = (present.sum(1) / reading.mask_BE.cpu().sum(1)).double()
        p = reading.log_p_B.cpu().double().exp().clamp(max=1)
        rows.append(pd.DataFrame({"concept": names, "p": p.numpy(), "v": v.numpy(), "sea": sea(p, v).numpy()}))
    table = pd.concat(rows, ignore_index=True)
    table.insert(1, "num_strokes", [d.num_strokes for d in drawings])
    return table.assign(recognised=table["p"] > 0.5, blank=table["v"] == 0)


def means(table: pd.DataFrame) -> dict[str, float]:
    """Means over sketches of what `read_drawings` gives."""
    return {name: float(table[name].mean()) for name in MEANS}


class GapMonitor(pl.Callback):
    """Every so many steps: new sketches, judged by critic and judge, and the end of training where the gap opens.

    The sketches are the same ones each time (same concepts and noise, none of training), drawn as they would be kept.
    Hack gap = gain in mean SEA under the critic since the start - gain under the judge: what the critic alone believes.
    Training stops when the gap has been above `largest_gap` for `patience` readings in a row. The judge chooses nothing
    else: the last state is the result, whichever was best.

    Logged, on the first process: `critic/…` and `judge/…` (see `MEANS`), `hack_gap`.

    Args:
        judge: Never used in training; same interface as the critic.
        every_n_steps: Steps between readings; there is one before the first step, and the caller makes the last one.
        per_concept: Sketches a concept.
        largest_gap: In units of SEA.
        patience: Readings.
        size: Pixels a side that sketches are rendered at.
        show: Called with step, drawings and their concepts, for example to log pictures of the same sketches over time.
    """

    def __init__(
        self,
        judge: Any,
        every_n_steps: int = 100,
        per_concept: int = 8,
        largest_gap: float = 0.3,
        patience: int = 2,
        size: int = 224,
        show: Callable[[int, Sequence[Drawing], Sequence[str]], None] | None = None,
    ) -> None:
        super().__init__()
        if every_n_steps < 1 or per_concept < 1 or patience < 1:
            raise ValueError(
                "every_n_steps, per_concept and patience must be 1 or more, got "
                f"{every_n_steps}, {per_concept} and {patience}"
            )
        self.judge, self.every_n_steps, self.per_concept = judge, every_n_steps, per_concept
        self.largest_gap, self.patience, self.size, self.show = largest_gap, patience, size, show
        self.readings: list[dict[str, float]] = []
        self.opened = 0

    def state_dict(self) -> dict[str, Any]:
        """Readings so far, for checkpoints."""
        return {"readings": [dict(r) for r in self.readings], "opened": self.opened}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint's readings."""
        self.readings, self.opened = [dict(r) for r in state_dict["readings"]], int(state_dict["opened"])

    @property
    def stopped(self) -> bool:
        """Whether the gap has opened for good."""
        return self.opened >= self.patience

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The reading before the first step."""
        if not self.readings:
            self._read(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A reading where one is due."""
        del outputs, batch, batch_idx
        if trainer.global_step % self.every_n_steps == 0 and trainer.global_step > self.readings[-1]["step"]:
            self._read(trainer, pl_module)
            trainer.should_stop = trainer.should_stop or self.stopped

    def sketches(self, module: FineTuning, before: bool = False) -> tuple[list[Drawing], list[str]]:
        """The sketches that are judged, and what each is meant to show."""
        concepts = module.generator.concepts
        concept_B = torch.arange(len(concepts)).repeat_interleave(self.per_concept)
        drawn = module.draw(range(len(concept_B)), concept_B, "judged", before)
        return drawn.strokes().to_drawings(), [concepts[c] for c in concept_B.tolist()]

    def _read(self, trainer: pl.Trainer, module: Any) -> None:
        # Every process reads the same sketches, so that all stop together and none waits for another.
        drawings, concepts = self.sketches(module)
        reading: dict[str, float] = {"step": float(trainer.global_step)}
        for who, reader in (("critic", module.critic), ("judge", self.judge)):
            told = means(read_drawings(reader, drawings, concepts, self.size))
            reading |= {f"{who}/{name}": value for name, value in told.items()}
        self.readings.append(reading)
        first = self.readings[0]
        gain = {who: reading[f"{who}/sea"] - first[f"{who}/sea"] for who in ("critic", "judge")}
        reading["hack_gap"] = gain["critic"] - gain["judge"]
        open_now = len(self.readings) > 1 and reading["hack_gap"] > self.largest_gap
        self.opened = self.opened + 1 if open_now else 0
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.log_metrics({k: v for k, v in reading.items() if k != "step"}, step=trainer.global_step)
            if self.show is not None:
                self.show(trainer.global_step, drawings, concepts)
