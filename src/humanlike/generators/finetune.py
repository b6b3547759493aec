"""Fine-tuning a generator against SEA: a frozen critic reads its rasterised strokes, and the gradient goes back.

Legend: B sketches a step and process, V views, S pixels a side.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import pytorch_lightning as pl
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from humanlike.data.strokes import Strokes
from humanlike.generators.augment import Views
from humanlike.generators.diversity import DiversityLoss
from humanlike.generators.drawn import Drawn, Generator
from humanlike.generators.exemplars import Exemplars, tilted
from humanlike.generators.gates import chosen_curves, gate_loss
from humanlike.generators.rasterizer import DEFAULT_SOFTNESS, rasterize
from humanlike.losses import SEALoss
from humanlike.rng import generator as addressed

READ_AT_ONCE = 32
"""Exemplars a critic looks at in one pass."""


class SketchCritic(Protocol):
    """What reads pictures with a gradient to the pixels; `humanlike.elements.critic.Critic` is one."""

    name: str

    @property
    def concepts(self) -> tuple[str, ...]:
        """What it can recognise."""

    def __call__(self, x_B3HW: torch.Tensor, concepts: Sequence[str]) -> Any:
        """`log_p_B`, `presence_logits_BE`, `mask_BE` of pictures in [0, 1]."""


class FineTuning(pl.LightningModule):
    """Generator → strokes → canvas → views → critic → loss.

        loss = SEALoss + w_stay · distance from the pre-trained drawing + w_diversity · DiversityLoss

    Every term is a mean over sketches (and views). The critic and a copy of the generator as it was are frozen. Step s
    asks for sketches number s·B·R … s·B·R + B·R - 1 (R processes), two or more of each concept side by side; what is
    drawn depends on the number alone, so that 10 steps are 5 and 5 steps after a restart, bit by bit.

    Parameters that drawing does not use (an encoder) are frozen here, so that DDP waits for none.

    Logged: `loss`, its parts, `critic_p` (mean P), `critic_v` (mean visual ratio, of probabilities), `curves` (drawn).

    Args:
        generator: The pre-trained generator, a module.
        critic: Frozen; it must know all concepts of the generator.
        loss: None: `SEALoss()`.
        diversity: None: `DiversityLoss()`.
        views: Random views that the loss is averaged over; None: one slightly tilted and cropped.
        size: S of the canvas that the critic sees.
        sketches: B.
        per_concept: Sketches of one concept side by side; B must be a multiple.
        stay_weight: w_stay.
        diversity_weight: w_diversity.
        softness: Of the pen's edge in training, pixels; see `rasterize`.
        tuned: Beginnings of names of the generator's parameters that are trained; None: all that drawing uses. Those
            that belong to a concept and slot alone move with the mean over the concept's drawings; the gradient of
            shared ones is steep and rough (a critic's loss changes by 1 within a hundredth of the canvas).
        optimizer: None: AdamW, learning rate 3e-4, no weight decay.
        schedule_steps: Steps over which the learning rate falls to a tenth, after a rise over the first 20; None: it
            stays.
        gate_flips: Curves of every sketch and step whose gate is turned to see what that does, see `gates`; 0: gates
            learn by slopes passed straight through, if at all.
        exemplar_share: Share of its exemplars that a generator which has any (see `Exemplars`) is left with: every
            `weigh_every` steps their prior is `tilted` by the loss of each. 1: all stay equally likely.
        weigh_every: Steps.
        seed: Of what is drawn and how it is viewed.

    Raises:
        TypeError: `generator` is no module.
        ValueError: The critic does not know a concept, numbers do not fit, or `tuned` names nothing.
    """

    steps_done: torch.Tensor

    def __init__(
        self,
        generator: Generator,
        critic: SketchCritic,
        loss: SEALoss | None = None,
        diversity: DiversityLoss | None = None,
        views: Views | None = None,
        size: int = 128,
        sketches: int = 8,
        per_concept: int = 2,
        stay_weight: float = 0.1,
        diversity_weight: float = 0.5,
        softness: float = DEFAULT_SOFTNESS,
        tuned: Sequence[str] | None = None,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        schedule_steps: int | None = None,
        gate_flips: int = 0,
        exemplar_share: float = 1.0,
        weigh_every: int = 100,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not isinstance(generator, nn.Module):
            raise TypeError(f"a generator must be a torch module, got {type(generator).__name__}")
        unknown = sorted(set(generator.concepts) - set(critic.concepts))
        if unknown:
            raise ValueError(
                f"the critic {critic.name} does not know {unknown[:5]}; fit it on sketches of all concepts"
            )
        if sketches < 1 or sketches % per_concept:
            raise ValueError(f"sketches must be a multiple of per_concept, got {sketches} and {per_concept}")
        self.generator: Any = generator
        self._freeze_unused(tuned)
        # In tuples, so that they are no modules of this one, which `train()` would reach and checkpoints hold.
        self._reference = (copy.deepcopy(generator).requires_grad_(False).eval(),)
        self._critic = (critic,)
        self.loss = loss or SEALoss()
        self.diversity = diversity or DiversityLoss()
        self.views = views or Views(1, distortion=0.1, crop=(0.85, 1.0))
        self.size, self.sketches, self.per_concept, self.seed = size, sketches, per_concept, seed
        self.stay_weight, self.diversity_weight, self.softness = stay_weight, diversity_weight, softness
        self._make_optimizer = optimizer or partial(torch.optim.AdamW, lr=3e-4, weight_decay=0.0)
        self.schedule_steps = schedule_steps
        self.gate_flips, self.exemplar_share, self.weigh_every = gate_flips, exemplar_share, weigh_every
        self.register_buffer("steps_done", torch.zeros((), dtype=torch.int64))

    @property
    def critic(self) -> Any:
        """The frozen critic."""
        return self._critic[0]

    @property
    def reference(self) -> Any:
        """The generator as it was before fine-tuning, frozen."""
        return self._reference[0]

    def requests(self, step: int, rank: int = 0, world_size: int = 1) -> tuple[list[int], torch.Tensor]:
        """Numbers of the sketches of a step, and (B,) the concepts asked for.

        Concepts come in an order that is new in every round.
        """
        first = (step * world_size + rank) * self.sketches
        numbers = list(range(first, first + self.sketches))
        C = len(self.generator.concepts)
        concepts = []
        for number in numbers:
            round_, place = divmod(number // self.per_concept, C)
            concepts.append(int(addressed(self.seed, "finetune", "order", round_).permutation(C)[place]))
        return numbers, torch.tensor(concepts, device=self.device)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Draw, look, judge."""
        del batch, batch_idx
        step = int(self.steps_done)
        if self.exemplar_share < 1 and step % self.weigh_every == 0 and isinstance(self.generator, Exemplars):
            self._weigh_exemplars(step)
        self.steps_done += 1
        numbers, concept_B = self.requests(step, self.global_rank, self.trainer.world_size)
        noise = self.generator.noise(numbers, self.seed, "finetune")
        drawn = self.generator.draw(concept_B, noise)
        with torch.no_grad():
            same = self.generator.equally(concept_B, noise) if isinstance(self.generator, Exemplars) else noise
            reference = self.reference.draw(concept_B, same)
            reference_canvas = rasterize(reference.for_training(), self.size, softness=self.softness)
        parts = self.losses(drawn, reference, reference_canvas, concept_B, step)
        if self.gate_flips:
            curves = chosen_curves(drawn, self.gate_flips, self.seed, step, numbers)
            parts["loss"] = parts["loss"] + gate_loss(drawn, curves, partial(self._loss_of_each, concept_B, step))
        self.log_dict({k: v.detach() for k, v in parts.items()}, sync_dist=True, batch_size=self.sketches)
        return parts["loss"]

    def losses(
        self, drawn: Drawn, reference: Drawn, reference_canvas: torch.Tensor, concept_B: torch.Tensor, step: int
    ) -> dict[str, torch.Tensor]:
        """The loss, its parts and what the critic saw, as means."""
        canvas = rasterize(drawn.for_training(through=not self.gate_flips), self.size, softness=self.softness)
        seen = self.views(canvas, self.seed, step)
        names = [self.generator.concepts[c] for c in concept_B.tolist()] * len(seen)
        reading = self.critic(seen.flatten(0, 1).expand(-1, 3, -1, -1), names)
        sea = self.loss(reading.log_p_B, reading.presence_logits_BE, reading.mask_BE)
        stay = self.generator.distance(drawn, reference).mean()
        apart = self.diversity(canvas, reference_canvas, concept_B)
        present = torch.where(reading.mask_BE, reading.presence_logits_BE.sigmoid(), 0.0).sum(1)
        return {
            "loss": sea + self.stay_weight * stay + self.diversity_weight * apart,
            "sea_loss": sea,
            "stay": stay,
            "diversity": apart,
            "critic_p": reading.log_p_B.exp().mean(),
            "critic_v": (present / reading.mask_BE.sum(1)).mean(),
            "curves": (drawn.on_logit_BK > 0).float().sum(1).mean(),
        }

    @torch.no_grad()
    def _loss_of_each(self, concept_B: torch.Tensor, step: int, strokes: Strokes, owner: list[int]) -> torch.Tensor:
        """(n,) SEA loss of sketches in the step's views, each of the concept that its owner has."""
        loss_of_each = copy.copy(self.loss)
        loss_of_each.reduction = "none"
        names = [self.generator.concepts[c] for c in concept_B[owner].tolist()]
        canvas = rasterize(strokes, self.size, softness=self.softness)
        readings = [self.critic(view.expand(-1, 3, -1, -1), names) for view in self.views(canvas, self.seed, step)]
        return torch.stack([loss_of_each(r.log_p_B, r.presence_logits_BE, r.mask_BE) for r in readings]).mean(0)

    @torch.no_grad()
    def _weigh_exemplars(self, step: int) -> None:
        """Tilt the prior over exemplars by the loss of each; all processes find the same."""
        concept_N, drawn = self.generator.exemplars()
        parts = []
        for rows in torch.arange(len(concept_N), device=self.device).split(READ_AT_ONCE):
            parts.append(self._loss_of_each(concept_N, step, drawn.at(rows).for_training(), rows.tolist()))
        self.generator.weigh(tilted(torch.cat(parts), concept_N, self.exemplar_share))

    @torch.no_grad()
    def draw(self, number_B: Sequence[int], concept_B: torch.Tensor, address: str, before: bool = False) -> Drawn:
        """Sketches from noise that training never uses, by the generator or as it was before."""
        network = self.reference if before else self.generator
        was_training = network.training
        network.to(self.device).eval()
        drawn = network.draw(concept_B.to(self.device), network.noise(number_B, self.seed, address))
        network.train(was_training)
        return drawn

    def on_fit_start(self) -> None:
        """Bring critic and reference to the device."""
        self.reference.to(self.device)
        if isinstance(self.critic, nn.Module):
            self.critic.to(self.device)

    def configure_optimizers(self) -> Any:
        """The optimiser of what is tuned, and its schedule."""
        optimizer = self._make_optimizer([p for p in self.generator.parameters() if p.requires_grad])
        if self.schedule_steps is None:
            return optimizer
        total = max(self.schedule_steps, 1)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / 20) * (1 - 0.9 * min(step / total, 1.0))
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the reference: a restart may find another pre-trained generator, or none."""
        checkpoint["reference"] = self.reference.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the reference; refuse a checkpoint of another generator."""
        ours, theirs = self.state_dict(), checkpoint.get("state_dict", {})
        differing = [k for k in ours if k not in theirs or theirs[k].shape != ours[k].shape]
        if differing or "reference" not in checkpoint:
            raise ValueError(
                f"the checkpoint belongs to another generator ({len(differing)} tensors differ, first "
                f"{differing[:1]}); use the same settings, another folder, or resume=false to start anew"
            )
        self.reference.load_state_dict(checkpoint["reference"])

    def _freeze_unused(self, tuned: Sequence[str] | None) -> None:
        concept = torch.zeros(1, dtype=torch.int64, device=self.generator.device)
        drawn = self.generator.draw(concept, self.generator.noise([0], 0, "probe"))
        total = drawn.points_BK42.sum() + drawn.width_BK.sum() + drawn.on_logit_BK.sum()
        named = dict(self.generator.named_parameters())
        slopes = torch.autograd.grad(total, list(named.values()), allow_unused=True)
        for (name, parameter), slope in zip(named.items(), slopes, strict=True):
            wanted = tuned is None or name.startswith(tuple(tuned))
            parameter.requires_grad_(slope is not None and wanted)
        if not any(p.requires_grad for p in named.values()):
            raise ValueError(f"tuned={list(tuned or ())} names no parameter that drawing uses; there are {list(named)}")


class StepsLoader(DataLoader):
    """As many empty batches as there are steps; what a step draws follows from its number, so that nothing is lost.

    Having the two methods of a loader that can go on inside an epoch tells Lightning so.
    """

    def state_dict(self) -> dict[str, int]:
        """Nothing: the module counts its steps."""
        return {}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Nothing to restore."""


def steps_loader(steps: int) -> StepsLoader:
    """A loader for `steps` steps."""
    return StepsLoader(range(steps), batch_size=None)  # type: ignore[arg-type]
