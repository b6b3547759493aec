"""Rates freed of a judge's errors: what share is truly present, when present and absent are both mistaken at times.

Legend: p rate of "present" that a judge gives, π the true rate; Se sensitivity (share of what is present that is called
present), Sp specificity (share of what is absent that is called absent), J = Se + Sp - 1 (Youden's index: 0 for a judge
that looks at nothing). p = π Se + (1 - π)(1 - Sp), so π = (p + Sp - 1)/J.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
from scipy.special import ndtri


@dataclass(frozen=True)
class Rate:
    """A share with the number of judgments that it rests on.

    Attributes:
        value: The share in [0, 1].
        n: Judgments; where they are not independent, the number of independent ones that would vary as much (see
            `effective_size`).

    Raises:
        ValueError: The share lies outside [0, 1], or n is not above 0.
    """

    value: float
    n: float

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1 or not self.n > 0:
            raise ValueError(f"a rate needs a share in [0, 1] of more than 0 judgments, got {self.value} of {self.n}")

    @property
    def variance(self) -> float:
        """Binomial variance of the share."""
        return self.value * (1 - self.value) / self.n


@overload
def rogan_gladen(p: float, sensitivity: float, specificity: float) -> float: ...
@overload
def rogan_gladen(p: np.ndarray, sensitivity: float | np.ndarray, specificity: float | np.ndarray) -> np.ndarray: ...
def rogan_gladen(
    p: float | np.ndarray, sensitivity: float | np.ndarray, specificity: float | np.ndarray
) -> float | np.ndarray:
    """True rate π = (p + Sp - 1)/(Se + Sp - 1) from the rate that a judge gives.

    Nearly unbiased where p, Se and Sp are unbiased. For few judgments it can leave [0, 1]; it is not clipped, because
    the mean of clipped numbers is biased.

    Args:
        p: Rate of "present".
        sensitivity: Se.
        specificity: Sp.

    Returns:
        π; infinite or NaN where Se + Sp = 1.

    References:
        Rogan and Gladen 1978 (American Journal of Epidemiology 107).

    Example:
        >>> rogan_gladen(0.58, 0.8, 0.7)
        0.56
    """
    youden = np.asarray(sensitivity, np.float64) + specificity - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (np.asarray(p, np.float64) + specificity - 1) / youden
    return found if found.ndim else float(np.round(found, 15))


def delta_interval(p: Rate, sensitivity: Rate, specificity: Rate, level: float = 0.95) -> tuple[float, float]:
    """π ± z·se with se² = [var p + π² var Se + (1 - π)² var Sp]/J², the three taken as independent.

    It is too narrow where a rate was estimated as 0 or 1 from few judgments; `adjusted_interval` is not.

    Args:
        p: Rate of "present".
        sensitivity: Se.
        specificity: Sp.
        level: Coverage asked for, in (0, 1).

    References:
        Rogan and Gladen 1978 (American Journal of Epidemiology 107).
    """
    true = rogan_gladen(p.value, sensitivity.value, specificity.value)
    youden = sensitivity.value + specificity.value - 1
    variance = p.variance + true**2 * sensitivity.variance + (1 - true) ** 2 * specificity.variance
    half = _z(level) * math.sqrt(variance) / abs(youden)
    return true - half, true + half


def adjusted_interval(p: Rate, sensitivity: Rate, specificity: Rate, level: float = 0.95) -> tuple[float, float]:
    """Interval of π that covers it for small samples too, because pseudo-observations keep every variance above 0.

    With n' = n + z², p' = (n p + z²/2)/n', and one success and one failure added to what Se and Sp rest on, the centre
    is π' + 2z² [π' Se'(1 - Se')/n_Se' - (1 - π') Sp'(1 - Sp')/n_Sp'] and the variance that of `delta_interval` at the
    primed values. Clipped to [0, 1].

    Args:
        p: Rate of "present".
        sensitivity: Se.
        specificity: Sp.
        level: Coverage asked for, in (0, 1).

    Returns:
        The bounds; (0, 1), which says nothing, where the primed J is not above 0.

    References:
        Lang and Reiczigel 2014 (Preventive Veterinary Medicine 113), "Confidence limits for prevalence of disease
        adjusted for estimated sensitivity and specificity".

    Example:
        >>> low, high = adjusted_interval(Rate(0.58, 200), Rate(0.8, 50), Rate(0.7, 50))
        >>> low < rogan_gladen(0.58, 0.8, 0.7) < high
        True
    """
    z = _z(level)
    p_ = Rate((p.n * p.value + z**2 / 2) / (p.n + z**2), p.n + z**2)
    se, sp = (Rate((r.n * r.value + 1) / (r.n + 2), r.n + 2) for r in (sensitivity, specificity))
    youden = se.value + sp.value - 1
    if youden <= 0:
        return 0.0, 1.0
    true = rogan_gladen(p_.value, se.value, sp.value)
    centre = true + 2 * z**2 * (true * se.variance - (1 - true) * sp.variance)
    half = z * math.sqrt(p_.variance + true**2 * se.variance + (1 - true) ** 2 * sp.variance) / youden
    return min(1.0, max(0.0, centre - half)), max(0.0, min(1.0, centre + half))


def effective_size(value: float, variance: float, n: int) -> float:
    """Number of independent judgments whose share would vary as much; judgments of one sketch are not independent.

    Args:
        value: The share.
        variance: Its variance, from a bootstrap over sketches.
        n: Judgments; what is returned where the share is 0 or 1, whose bootstrap has no variance.

    Example:
        >>> effective_size(0.5, 0.01, 100), effective_size(1.0, 0.0, 40)
        (25.0, 40.0)
    """
    if not 0 < value < 1 or not variance > 0:
        return float(n)
    # Fewer judgments than one half, or more than there are, are noise of the bootstrap.
    return float(min(n, max(0.5, value * (1 - value) / variance)))


def score_interval(rate: Rate, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    Args:
        rate: The share.
        level: Coverage asked for, in (0, 1).

    References:
        Wilson 1927 (Journal of the American Statistical Association 22).
    """
    z, n = _z(level), rate.n
    centre = (rate.value + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(rate.variance + z**2 / (4 * n**2))
    # A share of 0 or 1 is a bound of its own interval, which rounding may miss.
    low = 0.0 if rate.value == 0 else max(0.0, centre - half)
    return low, 1.0 if rate.value == 1 else min(1.0, centre + half)


def _z(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    return float(ndtri(0.5 + level / 2))
