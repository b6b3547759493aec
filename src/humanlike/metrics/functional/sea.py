"""Sketch abstraction efficiency (SEA): recognisable with few of the elements that people expect to see.

Legend: B sketches, E element columns. P probability of the true class, q = 1 - P; of the E commonsense elements of the
class V are drawn, v = V/E is the visual ratio; u economy, g gate; Z = reward - penalty.

Score every sketch and average then: SEA of the mean P and v is another number (.72 instead of .43 on the published
32 s sketches).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from humanlike.metrics.functional.visual_ratio import named

DIAGNOSES = ("efficient", "overdrawn", "not_recognisable")
"""What `diagnosis` says of a sketch, in the order of its codes."""


class SEAKeywords(TypedDict, total=False):
    """The hyperparameters by name, for functions that hand them on; see `SEAParameters`."""

    alpha: float
    beta: float
    lam: float
    eta: float
    k: float
    tau: float
    r: float
    gamma: float
    delta: float


@dataclass(frozen=True)
class SEAParameters:
    """The nine hyperparameters of SEA with the published values.

    Attributes:
        alpha: α > 0, sensitivity about Z = 0.
        beta: β > 0, steepness of the gate about the self-consistency line v = P.
        lam: λ ≥ 0, weight of the penalty on much drawn and little recognised.
        eta: η > 0, its growth with v.
        k: k > 0, its growth with 1 - P.
        tau: τ ≥ 0, weight of the penalty on what is not recognised, however little is drawn.
        r: r > 0, its growth with 1 - P.
        gamma: γ > 0, how much a low P suppresses the reward.
        delta: δ > 0, what keeps the logarithms finite. The paper's notation says 10⁻⁶, its experiments 10⁻⁷; only
            sketches with v = 0 or P = 0 notice (P = .1, v = 0 scores -.129 or -.028).

    Raises:
        ValueError: If one is no finite number in its range.
    """

    alpha: float = 2.2
    beta: float = 8.0
    lam: float = 1.0
    eta: float = 0.8
    k: float = 2.3
    tau: float = 0.4
    r: float = 1.7
    gamma: float = 1.7
    delta: float = 1e-6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            may_be_zero = name in ("lam", "tau")
            if not (math.isfinite(value) and (value > 0 or (may_be_zero and value == 0))):
                raise ValueError(f"{name} must be a finite number {'≥' if may_be_zero else '>'} 0, got {value!r}")


PARAMETER_NAMES = tuple(field.name for field in fields(SEAParameters))


class SEATerms(NamedTuple):
    """What SEA is made of; tensors of one shape.

    Attributes:
        u: Economy log((1 + δ)/(v + δ)), 0 for v = 1, 13.8 for v = 0 (δ = 10⁻⁶).
        g: Gate tanh(β/2 · log((P + δ)/(v + δ))): 0 on the line v = P, above 0 where less is drawn.
        reward: P^γ · u · g.
        penalty: λ v^η (1 - P)^k + τ (1 - P)^r ≥ 0.
        z: reward - penalty, the efficiency before it is squashed.
        sea: tanh(α z).
    """

    u: Tensor
    g: Tensor
    reward: Tensor
    penalty: Tensor
    z: Tensor
    sea: Tensor


def terms_from_logs(P: Tensor, q: Tensor, log_P: Tensor, v: Tensor, log_v: Tensor, c: SEAParameters) -> SEATerms:
    """SEA from probabilities and logarithms that the caller has computed without losing digits or gradients.

    The one place of the formula, for `sea_terms` and for `humanlike.losses.SEALoss`; nothing is checked.

    Args:
        P: Probability of the true class.
        q: 1 - P, ≥ 0.
        log_P: log((P + δ)/(1 + δ)).
        v: Visual ratio.
        log_v: log((v + δ)/(1 + δ)).
        c: Hyperparameters.
    """
    u = -log_v
    g = torch.tanh(0.5 * c.beta * (log_P - log_v))
    reward = power(P, c.gamma) * u * g
    overdrawn, unrecognised = _penalties(q, v, c)
    penalty = overdrawn + unrecognised
    z = reward - penalty
    return SEATerms(u, g, reward, penalty, z, torch.tanh(c.alpha * z))


def sea_terms(
    P: ArrayLike | Tensor,
    v: ArrayLike | Tensor,
    *,
    names: Sequence[str] | None = None,
    **parameters: Unpack[SEAKeywords],
) -> SEATerms:
    """Sketch abstraction efficiency of every sketch, with its parts.

    reward = P^γ u g and penalty = λ v^η (1 - P)^k + τ (1 - P)^r give Z = reward - penalty and SEA = tanh(α Z). Above 0:
    recognised with little drawn; below: overdrawn or not recognised (`diagnosis` says which).

    v = 0 is rewarded almost without bound (P = .2, v = 0 scores .88): it is scored as the formula says, and whoever
    reports it counts such sketches. A failed judgment must be left out, never be given as v = 0. As a training loss the
    formula fails (its gradient is infinite at v = 0); `humanlike.losses.SEALoss` is made for that.

    Args:
        P: (...) probabilities in [0, 1] of the true class.
        v: (...) visual ratios in [0, 1]; shapes broadcast.
        names: What the sketches are called in an error; their row numbers by default.
        **parameters: α `alpha`, β `beta`, λ `lam`, η `eta`, k, τ `tau`, r, γ `gamma`, δ `delta`: see `SEAParameters`.

    Returns:
        `SEATerms` of float64; SEA in [-1, 1], where ±1 is reached by rounding.

    Raises:
        ValueError: If P or v lies outside [0, 1] or is NaN (the sketch is named), or a parameter is out of range.

    References:
        SEA (CVPR 2026), "Sketch abstraction efficiency".

    Example:
        >>> terms = sea_terms(torch.tensor([0.17, 0.75]), torch.tensor([0.22, 0.45]))
        >>> [round(x, 3) for x in terms.sea.tolist()], [round(x, 3) for x in terms.penalty.tolist()]
        ([-0.832, 0.721], [0.485, 0.06])
    """
    c = SEAParameters(**parameters)
    P, v = _on_square(P, v, names)
    log_P, log_v = (torch.log((x + c.delta) / (1 + c.delta)) for x in (P, v))
    return terms_from_logs(P, 1 - P, log_P, v, log_v, c)


def sea(
    P: ArrayLike | Tensor,
    v: ArrayLike | Tensor,
    *,
    names: Sequence[str] | None = None,
    **parameters: Unpack[SEAKeywords],
) -> Tensor:
    """SEA alone; arguments and errors as for `sea_terms`.

    Example:
        >>> [round(x, 3) for x in sea([0.37, 0.64], [0.31, 0.40]).tolist()]
        [-0.388, 0.568]
    """
    return sea_terms(P, v, names=names, **parameters).sea


def diagnosis(
    P: ArrayLike | Tensor,
    v: ArrayLike | Tensor,
    *,
    names: Sequence[str] | None = None,
    **parameters: Unpack[SEAKeywords],
) -> Tensor:
    """Why a sketch scores as it does, as an index into `DIAGNOSES`.

    "efficient" where Z > 0; else "overdrawn" where what is charged for the drawing, λ v^η (1 - P)^k + max(0, -reward),
    exceeds what is charged for not being recognised, τ (1 - P)^r; else "not_recognisable".

    Args:
        P: As for `sea_terms`.
        v: As for `sea_terms`.
        names: As for `sea_terms`.
        **parameters: As for `sea_terms`.

    Returns:
        int64 codes: 0 efficient, 1 overdrawn, 2 not recognisable.

    Raises:
        ValueError: As for `sea_terms`.

    Example:
        >>> [DIAGNOSES[code] for code in diagnosis([0.9, 0.3, 0.0], [0.3, 0.9, 0.1])]
        ['efficient', 'overdrawn', 'not_recognisable']
    """
    terms = sea_terms(P, v, names=names, **parameters)
    P, v = _on_square(P, v, names)
    return diagnosis_of_terms(terms, P, v, SEAParameters(**parameters))


def diagnosis_of_terms(terms: SEATerms, P: Tensor, v: Tensor, c: SEAParameters) -> Tensor:
    """`diagnosis` where the terms are at hand already; nothing is checked."""
    overdrawn, unrecognised = _penalties(1 - P, v, c)
    charged_for_drawing = overdrawn + (-terms.reward).clamp_min(0)
    code = torch.where(charged_for_drawing > unrecognised, 1, 2)
    return torch.where(terms.z > 0, 0, code)


def power(x: Tensor, exponent: float) -> Tensor:
    """x^exponent for x ≥ 0 and an exponent > 0, the same bits in any batch, with a gradient of 0 at x = 0.

    `torch.pow` rounds the last entries of a batch, too few for a vector register, unlike the others: sums over shards
    would differ. And its gradient at 0 is infinite for an exponent below 1.
    """
    above = x > 0
    # Both branches are differentiated: the one not taken must be finite as well.
    return torch.where(above, torch.exp(exponent * torch.log(torch.where(above, x, 1.0))), 0.0)


def _penalties(q: Tensor, v: Tensor, c: SEAParameters) -> tuple[Tensor, Tensor]:
    """What is charged for much drawn and little recognised, and for little recognised alone."""
    return c.lam * power(v, c.eta) * power(q, c.k), c.tau * power(q, c.r)


def _on_square(P: ArrayLike | Tensor, v: ArrayLike | Tensor, names: Sequence[str] | None) -> tuple[Tensor, Tensor]:
    """P and v as float64 of one shape, in [0, 1]; contiguous, because strided memory may round otherwise."""
    given = [x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x, np.float64)) for x in (P, v)]
    try:
        both = [x.double().contiguous() for x in torch.broadcast_tensors(*given)]
    except RuntimeError as error:
        shapes = " and ".join(str(tuple(x.shape)) for x in given)
        raise ValueError(f"P and v must have shapes that broadcast, got {shapes}") from error
    for name, x in zip(("P", "v"), both, strict=True):
        bad = ~((x >= 0) & (x <= 1))  # NaN fails both comparisons
        if bool(bad.any()):
            where = tuple(int(i) for i in bad.nonzero()[0])
            told = named(where[0] if len(where) == 1 else where, names) if where else "it"
            raise ValueError(
                f"{name} must lie in [0, 1]; {told} has {name} = {x[where].item()!r}; leave a sketch without a "
                "judgment out, and give probabilities, not logits or percent"
            )
    return both[0], both[1]
