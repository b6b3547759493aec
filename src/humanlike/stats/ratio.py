"""The interval of a ratio of two estimates that are known by their intervals alone."""

from __future__ import annotations

import math


def ratio_interval(
    value: float, low: float, high: float, divisor: float, divisor_low: float, divisor_high: float
) -> tuple[float, float]:
    """Interval of `value / divisor` from an interval of each, both of the same level, as if they were independent.

    The method of variance estimates recovery: with (l, u) around θ and (L, U) around φ > 0,

        low  = (θφ - √((θφ)² - l U (2θ - l)(2φ - U))) / (U (2φ - U))
        high = (θφ + √((θφ)² - u L (2θ - u)(2φ - L))) / (L (2φ - L))

    which is Fieller's interval where both intervals are symmetric, and (l/φ, u/φ) where φ is known exactly.

    Args:
        value: θ.
        low: Lower end of its interval, at most θ.
        high: Upper end, at least θ.
        divisor: φ, above 0.
        divisor_low: Lower end of its interval, at most φ.
        divisor_high: Upper end, at least φ.

    Returns:
        (low, high); NaN twice where the divisor's interval reaches 0, so that the ratio is not bounded, or where an
        end is not known.

    References:
        Donner & Zou 2012 (Statistical Methods in Medical Research 21), Section 2.3; Fieller 1954 (JRSS B 16).

    Example:
        >>> [round(end, 6) for end in ratio_interval(0.4, 0.3, 0.5, 0.8, 0.8, 0.8)]
        [0.375, 0.625]
    """
    ends = (value, low, high, divisor, divisor_low, divisor_high)
    if not all(map(math.isfinite, ends)) or divisor_low <= 0 or divisor_high >= 2 * divisor:
        return math.nan, math.nan
    product = value * divisor

    def end(edge: float, other: float, sign: int) -> float:
        scale = other * (2 * divisor - other)
        inside = product**2 - edge * (2 * value - edge) * scale
        return (product + sign * math.sqrt(max(inside, 0.0))) / scale

    return end(low, divisor_high, -1), end(high, divisor_low, 1)
