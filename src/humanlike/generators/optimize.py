"""Optimise strokes: a batch of sketches in one program, each as if it were alone.

Every sketch has its own loss, its own rows of the parameters and of Adam's state, and initial strokes drawn from its
name; views are shared. So the result of a sketch depends on seed, settings and its target, not on its company (but for
the rounding of sums in the network). Randomness has no state: what step t draws follows from seed and t, so that a run
that was stopped goes on to the same bits.

Legend: B sketches, K strokes, T steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from humanlike.backbones.arithmetic import reused_memory
from humanlike.data.strokes import DEFAULT_WIDTH
from humanlike.generators.augment import Views
from humanlike.generators.optimize_checkpoint import load_state, save_state
from humanlike.generators.optimize_objectives import Objective, StrokeEconomy, Verdict
from humanlike.generators.optimize_parameters import Rates, StrokeParameters
from humanlike.generators.rasterizer import DEFAULT_SOFTNESS, rasterize
from humanlike.generators.trajectory import Trajectory

Watch = Callable[[int, dict[str, float]], None]
"""Called with a step and its means over sketches."""


@dataclass(frozen=True)
class Optimization:
    """Settings of an optimisation; see `optimize_sketches`.

    Attributes:
        steps: T ≥ 1 steps of Adam.
        size: Pixels a side of the canvas that the objectives see.
        width: Pen width to begin with, a fraction of the side.
        learn_number: Whether each stroke has an on-logit, so that at most K strokes are drawn.
        economy: Weight of the economy of strokes; see `StrokeEconomy`.
        on_logit: On-logit to begin with.
        temperature: What on-logits are divided by, at the first step and at the last; low ones make strokes be on or
            off, not pale, and decide long before the last step, so that the others can make up for those that left.
        rates: Learning rates.
        betas: Adam's decay rates of the mean and the square of the gradient.
        views: How the canvas is seen.
        softness: Of the pen's edge, pixels, at the first step and at the last.
        max_bad_steps: A sketch whose loss or gradient is not finite for so many steps on end is left as it was.
        frames: Pictures of the trajectory, evenly spaced.
        seed: Global seed.

    Raises:
        ValueError: A number is out of range.
    """

    steps: int = 200
    size: int = 128
    width: float = DEFAULT_WIDTH
    learn_number: bool = False
    economy: float = 0.0
    on_logit: float = 1.0
    temperature: tuple[float, float] = (1.0, 0.01)
    rates: Rates = field(default_factory=Rates)
    betas: tuple[float, float] = (0.9, 0.95)
    views: Views = field(default_factory=Views)
    softness: tuple[float, float] = (0.4, DEFAULT_SOFTNESS)
    max_bad_steps: int = 10
    frames: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("temperature", "betas", "softness"):
            object.__setattr__(self, name, tuple(float(x) for x in getattr(self, name)))
        for name in ("steps", "size", "max_bad_steps", "frames"):
            value = getattr(self, name)
            if int(value) != value or value < 1:
                raise ValueError(f"{name} must be a whole number, 1 or more, got {value}")
        for name in ("temperature", "softness"):
            if len(getattr(self, name)) != 2 or not min(getattr(self, name)) > 0:
                raise ValueError(f"{name} must be two positive numbers, first and last, got {getattr(self, name)}")
        if not self.economy >= 0:
            raise ValueError(f"economy must be 0 or more, got {self.economy}")
        if self.economy > 0 and not self.learn_number:
            raise ValueError("economy weighs the number of strokes, which is fixed: set learn_number=true")

    def between(self, name: str, step: int) -> float:
        """The value at a step of a setting that moves geometrically from its first to its last value."""
        first, last = getattr(self, name)
        return float(first * (last / first) ** (step / max(self.steps - 1, 1)))

    def record(self) -> dict[str, Any]:
        """Everything that fixes the result, as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Optimized:
    """What came out.

    Attributes:
        parameters: The strokes at the last step.
        loss_TB: (T, B) loss of every sketch at every step, NaN where it was not finite.
        bad_B: (B,) int64 steps that were left out.
        stopped_B: (B,) bool, sketches that were given up.
        first: Verdict on the initial strokes, seen as they are.
        last: Verdict on the strokes that are drawn at the end, seen as they are.
        trajectory: The way there; its last frame holds the strokes that are drawn.
    """

    parameters: StrokeParameters
    loss_TB: torch.Tensor
    bad_B: torch.Tensor
    stopped_B: torch.Tensor
    first: Verdict
    last: Verdict
    trajectory: Trajectory


def optimize_sketches(
    points_BK42: torch.Tensor,
    objectives: Sequence[Objective],
    settings: Optimization | None = None,
    *,
    checkpoint: str | Path | None = None,
    every: int = 50,
    until: int | None = None,
    identity: Any = None,
    watch: Watch | None = None,
) -> Optimized:
    """Optimise B sketches of K strokes for the sum of objectives.

    Args:
        points_BK42: Strokes to begin with.
        objectives: What for.
        settings: How.
        checkpoint: File of the state, from which an earlier run of the same settings goes on; None: none is kept.
        every: Steps between two writes of it.
        until: Stop before this step, the state written.
        identity: JSON-like facts about targets and networks; a checkpoint of others is refused.
        watch: Told the means of every step.

    Raises:
        ValueError: No objective, a checkpoint of other settings, or every sketch had to be given up.
    """
    settings = settings or Optimization()
    if not objectives:
        raise ValueError("a sketch needs something to be optimised for: a picture or a concept")
    on_logit = settings.on_logit if settings.learn_number else None
    parameters = StrokeParameters(points_BK42, settings.width, on_logit)
    run = _Run(parameters, objectives, settings, [settings.record(), list(points_BK42.shape), identity])
    if checkpoint is not None and Path(checkpoint).is_file():
        load_state(checkpoint, run)
    stop = settings.steps if until is None else min(until, settings.steps)
    with reused_memory():
        while run.step < stop:
            means = run.advance()
            if watch is not None:
                watch(run.step, means)
            if checkpoint is not None and (run.step % every == 0 or run.step == stop):
                save_state(checkpoint, run)
    if bool(run.stopped_B.all()):
        raise ValueError(
            f"every sketch was given up after {settings.max_bad_steps} steps on end without a finite loss and "
            "gradient; check the pictures and the critic for NaN, or lower rates.points"
        )
    first = run.verdict(StrokeParameters(points_BK42, settings.width).drawn())
    return Optimized(
        parameters,
        torch.stack(run.losses),
        run.bad_B,
        run.stopped_B,
        first,
        run.verdict(parameters.drawn()),
        run.trajectory.and_then(parameters.drawn()),
    )


class _Run:
    """The state of an optimisation between two steps."""

    def __init__(
        self, parameters: StrokeParameters, objectives: Sequence[Objective], settings: Optimization, identity: Any
    ) -> None:
        self.parameters, self.objectives, self.settings, self.identity = parameters, objectives, settings, identity
        self.optimizer = torch.optim.Adam(parameters.groups(settings.rates), betas=settings.betas)
        self.economy = StrokeEconomy(settings.economy)
        batch = len(parameters.points)
        self.step = 0
        self.losses: list[torch.Tensor] = []
        self.bad_B, self.row_B = torch.zeros(batch, dtype=torch.int64), torch.zeros(batch, dtype=torch.int64)
        self.trajectory = Trajectory.of(parameters.strokes())

    @property
    def stopped_B(self) -> torch.Tensor:
        """Sketches that are no longer moved."""
        return self.row_B >= self.settings.max_bad_steps

    def advance(self) -> dict[str, float]:
        """One step; the means over sketches of loss and parts."""
        s, at = self.settings, self.step
        for group in self.optimizer.param_groups:
            group["lr"] = group["base"] * s.rates.factor(at, s.steps)
        self.optimizer.zero_grad(set_to_none=True)
        strokes = self.parameters.strokes(s.between("temperature", at))
        canvas = rasterize(strokes, s.size, softness=s.between("softness", at))
        loss_B, verdicts = self._loss(canvas, lambda x: s.views(x, s.seed, at), strokes.on_logit_BK)
        fine_B = loss_B.detach().isfinite()
        torch.where(fine_B, loss_B, 0.0).sum().backward()
        self._move(fine_B & ~self.stopped_B.to(fine_B.device))
        kept_B = torch.where(fine_B, loss_B.detach(), torch.nan).cpu()
        self.losses.append(kept_B)
        self.step += 1
        if self.step in self._frames():
            with torch.no_grad():
                self.trajectory = self.trajectory.and_then(self.parameters.strokes(s.between("temperature", at)))
        parts = {name: float(x.nanmean()) for v in verdicts for name, x in v.parts.items()}
        return {"loss": float(kept_B.nanmean()), **parts}

    @torch.no_grad()
    def verdict(self, strokes: Any) -> Verdict:
        """What all objectives say of strokes drawn with a sharp pen and seen as they are."""
        canvas = rasterize(strokes, self.settings.size)
        loss_B, verdicts = self._loss(canvas, lambda x: x[None], None)
        parts = {name: x for v in verdicts for name, x in v.parts.items()}
        return Verdict(loss_B, torch.stack([v.log_likeness_B for v in verdicts]).mean(dim=0), parts)

    def _loss(self, canvas: torch.Tensor, look: Any, on_logit_BK: Any) -> tuple[torch.Tensor, list[Verdict]]:
        verdicts = [objective(canvas, look) for objective in self.objectives]
        loss_B = torch.stack([v.loss_B for v in verdicts]).sum(dim=0)
        likeness_B = torch.stack([v.log_likeness_B for v in verdicts]).mean(dim=0)
        return loss_B + self.economy(likeness_B, on_logit_BK), verdicts

    def _move(self, fine_B: torch.Tensor) -> None:
        """Adam's step for sketches whose numbers are finite; the rows of the others stay as they are."""
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for p in parameters:
            if p.grad is None:  # a blank canvas has no gradient at all
                p.grad = torch.zeros_like(p)
            fine_B = fine_B & p.grad.flatten(1).isfinite().all(dim=1)
        still_B = ~fine_B
        any_still = bool(still_B.any())
        kept = []
        if any_still:
            for p in parameters:
                p.grad[still_B] = 0.0
                state = self.optimizer.state[p]
                tensors = [p, *(state[name] for name in ("exp_avg", "exp_avg_sq") if name in state)]
                kept += [(x, x.detach()[still_B].clone()) for x in tensors]
        self.optimizer.step()
        with torch.no_grad():
            for x, rows in kept:
                x[still_B] = rows
        self.parameters.project()
        still_B = still_B.cpu() & ~self.stopped_B
        self.bad_B += still_B
        self.row_B = torch.where(still_B | self.stopped_B, self.row_B + still_B, 0)

    def _frames(self) -> set[int]:
        n = min(self.settings.frames, self.settings.steps)
        return {round((i + 1) * self.settings.steps / n) for i in range(n)}
