"""Preconditioned L-BFGS for several folds at once: every pass over the rows serves all folds that still need one."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from humanlike.readouts.class_blocks import ClassBlocks, blocks_pay
from humanlike.readouts.objective import FoldedProblem
from humanlike.readouts.preconditioner import HardRows, Preconditioner
from humanlike.readouts.workers import Each

MEMORY = 20
REFRESH_PASSES = 20  # a refresh costs about three passes of one model, and all curvature pairs but one
BLOCK_PASSES = 8  # the same where blocks of classes pay: they are worth having early
SETTLED = 1e-2  # relative gap below which the curvature changes little more
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-6
PATIENCE = {torch.float32: 10, torch.float64: 150}  # passes without progress before rounding is blamed
LOSS_NOISE = {torch.float32: 1e-7, torch.float64: 1e-14}  # relative rounding of the loss


@dataclass
class Path:
    """Where the search for one model's optimum stands.

    Attributes:
        model: Index of the model.
        theta: (D+1, K) parameters.
        precondition: H₀ in use.
        value: Objective F at `theta`.
        gradient: Gradient at `theta`.
        gap: Estimated relative gap at `theta`.
        iterations: Accepted steps.
        passes: Passes over the rows, this model's share of them.
        done: The estimated gap is small enough.
        stalled: Nothing more can be gained in this precision.
    """

    model: int
    theta: torch.Tensor
    precondition: Preconditioner
    value: float = math.inf
    gradient: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    gap: float = math.inf
    iterations: int = 0
    passes: int = 0
    done: bool = False
    stalled: bool = False
    _preconditioned: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    _direction: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    _slope: float = 0.0
    _step: float = 1.0
    _best_gap: float = math.inf
    _best_value: float = math.inf
    _passes_at_best: int = 0
    _refreshed_at: int = 0
    _gap_at_refresh: float = math.inf
    _pairs: deque[tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]] = field(
        default_factory=lambda: deque(maxlen=MEMORY)
    )

    def resumed(self, theta: torch.Tensor) -> Path:
        """A search that goes on at `theta`, close to where this one ended, in the precision of `theta`.

        It keeps H₀ and the curvature pairs: without pairs the first steps near an optimum are far too long in the
        directions where H₀ is too large, and lose what was gained.
        """
        path = Path(self.model, theta, self.precondition, _gap_at_refresh=self._gap_at_refresh)
        for step, change, preconditioned, rho in self._pairs:
            path._pairs.append((step.to(theta), change.to(theta), preconditioned.to(theta), rho))
        return path

    def trial(self) -> torch.Tensor:
        """The point to evaluate next."""
        return self.theta if self.iterations == self.passes == 0 else self.theta + self._step * self._direction

    def receive(self, value: float, gradient: torch.Tensor) -> None:
        """Take in the objective at `trial()`: move there, or shorten the step."""
        self.passes += 1
        if self.passes == 1:
            self._move(self.theta, value, gradient, self.precondition(gradient))
        elif self._acceptable(value, gradient):
            self.iterations += 1
            new, preconditioned = self.trial(), self.precondition(gradient)
            step, change = new - self.theta, gradient - self.gradient
            curvature = _dot(step, change)
            if curvature > 0:
                self._pairs.append((step, change, preconditioned - self._preconditioned, 1.0 / curvature))
            self._move(new, value, gradient, preconditioned)
        elif self._step > SHORTEST_STEP:
            self._step *= 0.5 if math.isfinite(value) else 0.1
        elif self._pairs:
            self._pairs.clear()
            self._aim()
        else:
            self.stalled = True

    def outdated(self, passes: int) -> bool:
        """H₀ is that many passes old, and from where the curvature was still changing; not inside a line search."""
        old = self.passes - self._refreshed_at >= passes
        return old and self._gap_at_refresh > SETTLED and self._step == 1.0

    def refresh(self, precondition: Preconditioner) -> None:
        """Go on with another H₀. Of the curvature pairs, made with the old one, the last stays: it sets the scale."""
        self.precondition, self._refreshed_at, self._gap_at_refresh = precondition, self.passes, self.gap
        self._preconditioned = precondition(self.gradient)
        kept = [(step, change, precondition(change), rho) for step, change, _, rho in list(self._pairs)[-1:]]
        self._pairs = deque(kept, maxlen=MEMORY)
        self._aim()

    def check(self, gap: float, target: float) -> None:
        """Stop when the estimated relative gap is at the target, or nothing has improved for long."""
        self.gap, self.done = gap, gap <= target
        if gap < 0.9 * self._best_gap or self.value < 0.999 * self._best_value:
            self._best_gap, self._best_value = min(gap, self._best_gap), self.value
            self._passes_at_best = self.passes
        elif self.passes - self._passes_at_best > PATIENCE[self.theta.dtype]:
            self.stalled = True

    def _acceptable(self, value: float, gradient: torch.Tensor) -> bool:
        if value <= self.value + SUFFICIENT_DECREASE * self._step * self._slope:
            return True
        # Close to the optimum the decrease drowns in the rounding of the loss; the gradient along the line still tells.
        flat = value <= self.value + LOSS_NOISE[self.theta.dtype] * abs(self.value)
        return flat and abs(_dot(gradient, self._direction)) <= 0.9 * abs(self._slope)

    def _move(self, theta: torch.Tensor, value: float, gradient: torch.Tensor, preconditioned: torch.Tensor) -> None:
        self.theta, self.value, self.gradient, self._preconditioned = theta, value, gradient, preconditioned
        self._aim()

    def _aim(self) -> None:
        """The L-BFGS direction, by the two-loop recursion with H₀ in its middle.

        H₀q is put together from H₀g and the stored H₀y, so that an iteration applies H₀ once.
        """
        q, hq = self.gradient.clone(), self._preconditioned.clone()
        alphas = []
        for step, change, preconditioned_change, rho in reversed(self._pairs):
            alpha = rho * _dot(step, q)
            q.sub_(change, alpha=alpha)
            hq.sub_(preconditioned_change, alpha=alpha)
            alphas.append(alpha)
        if self._pairs:
            _, change, preconditioned_change, rho = self._pairs[-1]
            size = rho * _dot(change, preconditioned_change)
            if size > 0:
                hq.div_(size)
        for (step, change, _, rho), alpha in zip(self._pairs, reversed(alphas), strict=True):
            hq.add_(step, alpha=alpha - rho * _dot(change, hq))
        self._direction, self._step = hq.neg_(), 1.0
        self._slope = _dot(self._direction, self.gradient)
        if not self._slope < 0:  # rounding spoilt the curvature pairs
            self._pairs.clear()
            self._direction = -self.gradient
            self._slope = _dot(self._direction, self.gradient)


def minimise(
    problem: FoldedProblem,
    paths: dict[int, Path],
    target: float,
    max_passes: int,
    report: Callable[[float], None] | None = None,
    each: Each = map,
) -> None:
    """Run L-BFGS for the models in `paths` until every estimated relative gap is at `target`.

    The estimate is (‖g_W‖²/2λ + ½ Σ_k g_bk² / s_k) / F from the gradient in the precision of the search, s_k being the
    curvature of the intercepts in H₀; `certificate.certify` gives the bound that counts.

    H₀ is renewed every few passes until the search is close to the optimum: as a model gets sure of its rows the
    curvature falls, a hundredfold where features separate the classes, and an H₀ from elsewhere makes the search slow.

    Args:
        problem: Features, labels and folds.
        paths: Model → its search, at its start; the dtype of its θ is the precision. Moved in place; `done` tells
            whether the target was reached.
        target: Relative gap to stop at.
        max_passes: Passes over the rows after which the search ends, wherever it is.
        report: Called after every pass with the largest estimated gap (infinite: not known yet).
        each: `map`, or one that works side by side.
    """
    whole_blocks = blocks_pay(problem)
    for _ in range(max_passes):
        active = [path for path in paths.values() if not (path.done or path.stalled)]
        if not active:
            break
        values, gradients = problem.value_and_gradient([p.model for p in active], [p.trial() for p in active], each)
        for _ in each(Path.receive, active, values, gradients):
            pass
        for path in active:
            path.check(_estimated_gap(problem, path), target)
        going_on = [path for path in active if not (path.done or path.stalled)]
        _refresh(problem, going_on, whole_blocks, each)
        if report is not None:
            report(max(path.gap for path in active))


def _refresh(problem: FoldedProblem, paths: list[Path], whole_blocks: bool, each: Each) -> None:
    """Renew H₀ where it is outdated: of one search, or where blocks of classes pay of all that go on, at once."""
    if not whole_blocks:
        outdated = [path for path in paths if path.outdated(REFRESH_PASSES)]
        for _ in each(lambda path: path.refresh(HardRows(problem, path.model, path.theta)), outdated):
            pass
    elif any(path.outdated(BLOCK_PASSES) for path in paths):
        shared = ClassBlocks(problem, {path.model: path.theta for path in paths}, each)
        for _ in each(lambda path: path.refresh(shared), paths):
            pass


def _estimated_gap(problem: FoldedProblem, path: Path) -> float:
    weight_DK, bias_K = path.gradient[:-1].double(), path.gradient[-1].double()
    gap = float(weight_DK.square().sum()) / (2 * problem.penalty(path.model))
    gap += float((bias_K.square() / path.precondition.intercept_curvature_K).sum()) / 2
    return gap / max(path.value - gap, torch.finfo(torch.float64).tiny) if gap < path.value else math.inf


def _dot(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.dot(a.flatten(), b.flatten()))
