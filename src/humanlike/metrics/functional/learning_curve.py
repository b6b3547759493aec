"""Distance between a model's and people's learning curves: MSE_n, its lapse rate and its noise floor.

Legend: S subtasks, T trials, "..." any leading dimensions (rules, replicates). A cell is one trial of one subtask, or
one condition of the one-shot experiment.

MSE_n needs five sums over cells, with a = p_model - ½ and b = p_people - ½: Σa², Σab, Σb² and the two sums of
variances. `CurveSums` holds them, for one comparison or for thousands of replicates at once, so that point estimates,
bootstrap and null test share one formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import require_choice

LapseObjective = Literal["mse", "msen"]
"""What the fitted lapse rate minimises: the raw mean squared error, or MSE_n itself."""


@dataclass(frozen=True)
class MSEnSwitches:
    """How MSE_n is computed from learning curves.

    Attributes:
        lapse_objective: What the lapse rate minimises.
        subtract_human_noise: Whether the variance of people's curves is subtracted as well.
    """

    lapse_objective: LapseObjective = "mse"
    subtract_human_noise: bool = False


MSEN_CONVENTIONS: Mapping[str, MSEnSwitches] = MappingProxyType(
    {
        "paper": MSEnSwitches("mse", False),
        "v2": MSEnSwitches("mse", True),
        "paper_text": MSEnSwitches("msen", False),
    }
)
"""The three published definitions: code at publication, current code, the paper's words."""


@dataclass(frozen=True)
class MSEn:
    """The bias-corrected mean squared error of learning curves; float64 tensors of equal shape, scalars as a rule.

    Attributes:
        value: MSE_n, in squared units of accuracy; below 0 where noise was over-subtracted.
        lapse_rate: γ in [0, 1], 0 where none was fitted.
        noise_floor: Mean variance of people's shares σ²_h: what a perfect model scores when people's noise is left in.
        model_noise: Mean variance of the model's shares after the lapse, which was subtracted.
    """

    value: Tensor
    lapse_rate: Tensor
    noise_floor: Tensor
    model_noise: Tensor

    @property
    def root_value(self) -> Tensor:
        """√MSE_n in units of accuracy; 0 where MSE_n is negative."""
        return self.value.clamp(min=0).sqrt()

    @property
    def root_noise_floor(self) -> Tensor:
        """σ_h, the usual deviation of people's shares over repetitions of the experiment, in units of accuracy."""
        return self.noise_floor.sqrt()


@dataclass(frozen=True)
class CurveSums:
    """Sums over cells that MSE_n is a function of; float64 tensors whose shapes broadcast.

    Attributes:
        aa: Σ (p_model - ½)².
        ab: Σ (p_model - ½)(p_people - ½).
        bb: Σ (p_people - ½)².
        var_model: Sum of the variances of the model's shares.
        var_people: Sum of the variances of people's shares.
        cells: Number of cells.
    """

    aa: Tensor
    ab: Tensor
    bb: Tensor
    var_model: Tensor
    var_people: Tensor
    cells: int

    @classmethod
    def from_shares(cls, model: Tensor, people: Tensor, var_model: Tensor, var_people: Tensor) -> CurveSums:
        """Sums over the last dimension of shares in [0, 1] and of their variances."""
        a, b = (p.double() - 0.5 for p in (model, people))
        return cls(
            (a * a).sum(-1),
            (a * b).sum(-1),
            (b * b).sum(-1),
            var_model.double().sum(-1),
            var_people.double().sum(-1),
            a.shape[-1],
        )

    def lapse_rate(self, objective: LapseObjective = "mse") -> Tensor:
        """γ in [0, 1]; see `fit_lapse_rate`."""
        require_choice(objective, "the lapse objective", LapseObjective)
        return _lapse_rate(self.aa, self.ab, self.var_model if objective == "msen" else torch.zeros_like(self.aa))

    def msen(self, switches: MSEnSwitches | None = None, *, fit_lapse: bool = True) -> MSEn:
        """MSE_n under the switches (default: the paper's); see `humanlike.metrics.functional.msen`."""
        switches = switches or MSEnSwitches()
        zero = torch.zeros_like(self.ab + self.aa)
        lapse = self.lapse_rate(switches.lapse_objective) + zero if fit_lapse else zero
        q = 1 - lapse
        model_noise = q * q * self.var_model / self.cells
        floor = self.var_people / self.cells + zero
        value = (q * q * self.aa - 2 * q * self.ab + self.bb) / self.cells - model_noise
        return MSEn(value - floor if switches.subtract_human_noise else value, lapse, floor, model_noise)


def binomial_variance(k: Any, n: Any) -> Tensor:
    """Unbiased estimate of the variance of a share k/n: p̂(1 - p̂)/(n - 1).

    Args:
        k: Number of correct choices, integers in [0, n]; tensor, array or number, any shape.
        n: Number of choices, at least 2; of the shape of k, a number, or of k's leading dimensions (one n for all
            trials of a subtask).

    Returns:
        float64 of the shape of k, in [0, 1/(4(n - 1))].

    Raises:
        ValueError: If n < 2, k lies outside [0, n] or is no whole number (the first such cell is named), or shapes do
            not fit.

    References:
        Lee and DiCarlo, "Statistical model of learning behaviour": σ²_h.

    Example:
        >>> binomial_variance(torch.tensor([[1, 2], [0, 3]]), torch.tensor([2, 3])).tolist()
        [[0.25, 0.0], [0.0, 0.0]]
    """
    k, n = _counts(k, n, "k", "n")
    return k * (n - k) / (n * n * (n - 1))


def fit_lapse_rate(
    model: Tensor, human: Tensor, objective: LapseObjective = "mse", model_variance: Tensor | None = None
) -> Tensor:
    """Lapse rate γ that brings the model's curve M' = (1 - γ)M + γ/2 nearest to people's H.

    With a = M - ½ and b = H - ½: γ* = clip(1 - Σab/Σa², 0, 1) minimises mean (M' - H)². `objective="msen"` minimises
    that less the variance of M', γ* = clip(1 - Σab/(Σa² - Σ var M), 0, 1); where the denominator D is not positive the
    parabola has its minimum at an end: 0 if D < 2Σab, else 1. An objective that does not depend on γ (a model at ½
    everywhere) gives 0.

    Args:
        model: Shares in [0, 1], any shape.
        human: People's shares, of the same shape.
        objective: "mse" or "msen".
        model_variance: Variances of the model's shares, of the same shape; needed by "msen" only.

    Returns:
        float64 scalar in [0, 1].

    Raises:
        ValueError: If shapes differ, there is no cell, a share is NaN or outside [0, 1], or "msen" lacks the variance.

    References:
        Lee and DiCarlo, "Lapse rate correction".

    Example:
        >>> round(fit_lapse_rate(torch.tensor([1.0, 0.9]), torch.tensor([0.9, 0.82])).item(), 6)
        0.2
    """
    require_choice(objective, "the lapse objective", LapseObjective)
    model, human = (torch.as_tensor(p).double() for p in (model, human))
    for name, p in (("model", model), ("human", human)):
        bad = ~((p >= 0) & (p <= 1))
        if bool(bad.any()):
            where = tuple(bad.nonzero()[0].tolist())
            raise ValueError(f"{name} must hold shares in [0, 1]; cell {where} is {p[where].item()!r}")
    if model.shape != human.shape or not model.numel():
        raise ValueError(f"model and human must pair their cells, got shapes {(*model.shape,)} and {(*human.shape,)}")
    if objective == "msen" and model_variance is None:
        raise ValueError("objective='msen' needs model_variance, the variances of the model's shares")
    variance = torch.zeros_like(model) if model_variance is None else torch.as_tensor(model_variance).double()
    if variance.shape != model.shape:
        raise ValueError(f"model_variance must have the model's shape {(*model.shape,)}, got {(*variance.shape,)}")
    sums = CurveSums.from_shares(model.flatten(), human.flatten(), variance.flatten(), torch.zeros(model.numel()))
    return sums.lapse_rate(objective)


def msen(
    k_model: Any,
    n_model: Any,
    k_human: Any,
    n_human: Any,
    *,
    fit_lapse: bool = True,
    lapse_objective: LapseObjective = "mse",
    subtract_human_noise: bool = False,
) -> MSEn:
    """Bias-corrected mean squared error between a model's and people's shares of correct choices.

    MSE_n = mean (M' - H)² - mean var M' [- mean var H], M' = (1 - γ)M + γ/2 and var M' = (1 - γ)² var M. Subtracting
    the model's sampling noise makes the score independent of the number of simulations. People's noise is left in by
    the paper, so that a perfect model scores `noise_floor`; with `subtract_human_noise` it scores 0.

    Args:
        k_model: Correct choices of the model in every cell, whole numbers, any shape.
        n_model: Simulations: of the same shape, a number, or one per subtask (leading dimensions of k_model).
        k_human: Correct choices of people, of k_model's shape.
        n_human: Sessions of people, as n_model.
        fit_lapse: Whether to fit γ (see `fit_lapse_rate`); else it is 0.
        lapse_objective: What γ minimises.
        subtract_human_noise: See above.

    Returns:
        MSEn of float64 scalars.

    Raises:
        ValueError: If a count is out of range, an n is below 2, or shapes do not fit.

    References:
        Lee and DiCarlo, "Comparing model learning with human learning".

    Example:
        >>> k = torch.tensor([[5, 8, 10]])
        >>> score = msen(10 * k, 100, k, 10, subtract_human_noise=True)
        >>> round(score.value.item(), 6), score.lapse_rate.item(), round(score.noise_floor.item(), 6)
        (-0.016566, 0.0, 0.015185)
    """
    switches = MSEnSwitches(lapse_objective, subtract_human_noise)
    return sums_from_counts(k_model, n_model, k_human, n_human).msen(switches, fit_lapse=fit_lapse)


def sums_from_counts(k_model: Any, n_model: Any, k_human: Any, n_human: Any) -> CurveSums:
    """`CurveSums` over all cells of two tables of counts; arguments as of `msen`."""
    k_model, n_model = _counts(k_model, n_model, "k_model", "n_model")
    k_human, n_human = _counts(k_human, n_human, "k_human", "n_human")
    if k_model.shape != k_human.shape or not k_model.numel():
        shapes = f"{(*k_model.shape,)} and {(*k_human.shape,)}"
        raise ValueError(f"k_model and k_human must pair their cells, got shapes {shapes}")
    shares = (k_model / n_model, k_human / n_human)
    variances = (binomial_variance(k_model, n_model), binomial_variance(k_human, n_human))
    return CurveSums.from_shares(*(x.flatten() for x in (*shares, *variances)))


def _lapse_rate(aa: Tensor, ab: Tensor, variance: Tensor) -> Tensor:
    steepness = aa - variance
    inside = (1 - ab / torch.where(steepness > 0, steepness, torch.ones_like(steepness))).clamp(0, 1)
    flat = (steepness == 0) & (ab == 0)
    at_an_end = torch.where((steepness < 2 * ab) | flat, 0.0, 1.0).double()
    return torch.where(steepness > 0, inside, at_an_end)


def _counts(k: Any, n: Any, name_k: str, name_n: str) -> tuple[Tensor, Tensor]:
    """Both as float64 of the shape of k, checked; whole numbers below 2²⁶ have exact products there."""
    k, n = torch.as_tensor(k).double(), torch.as_tensor(n).double()
    if n.shape != k.shape:
        if n.shape != k.shape[: n.ndim]:
            raise ValueError(
                f"{name_n} must be a number, or have the shape of {name_k} or of its leading dimensions; got shapes "
                f"{(*n.shape,)} and {(*k.shape,)}"
            )
        n = n.reshape(n.shape + (1,) * (k.ndim - n.ndim)).expand(k.shape)
    for bad, sentence in (
        (~(n >= 2), f"{name_n} must be at least 2, because one choice says nothing about its variance"),
        (~((k >= 0) & (k <= n)), f"{name_k} must lie between 0 and {name_n}"),
        (k != k.round(), f"{name_k} must hold whole numbers of correct choices, not shares"),
    ):
        if bool(bad.any()):
            where = tuple(bad.nonzero()[0].tolist())
            raise ValueError(f"{sentence}; cell {where} has {k[where].item():g} of {n[where].item():g}")
    return k, n
