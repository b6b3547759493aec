"""The interval of a ratio against Fieller's theorem, which it must equal where both intervals are symmetric."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.stats.ratio import ratio_interval


def fieller(a, half_a, b, half_b):
    """Roots of (a - r b)² = half_a² + r² half_b² in r: half widths are z times independent standard errors."""
    A, B, C = b**2 - half_b**2, -2 * a * b, a**2 - half_a**2
    root = math.sqrt(B**2 - 4 * A * C)
    return (-B - root) / (2 * A), (-B + root) / (2 * A)


@given(
    st.floats(-1, 1), st.floats(1e-3, 0.5), st.floats(0.2, 1), st.floats(0, 0.9),
)  # fmt: skip
@settings(deadline=None, max_examples=30)
def test_symmetric_intervals_give_fieller(value, half, divisor, share):
    spread = share * divisor * 0.99
    ends = ratio_interval(value, value - half, value + half, divisor, divisor - spread, divisor + spread)
    assert ends == pytest.approx(fieller(value, half, divisor, spread), rel=1e-7, abs=1e-7)


@given(st.floats(-1, 1), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0.2, 1))
@settings(deadline=None, max_examples=30)
def test_an_exact_divisor_divides_the_ends(value, below, above, divisor):
    ends = ratio_interval(value, value - below, value + above, divisor, divisor, divisor)
    assert ends == pytest.approx(((value - below) / divisor, (value + above) / divisor), abs=1e-7)


def test_a_divisor_that_may_be_0_bounds_nothing():
    assert all(math.isnan(end) for end in ratio_interval(0.5, 0.4, 0.6, 0.1, -0.01, 0.3))
    assert all(math.isnan(end) for end in ratio_interval(0.5, math.nan, 0.6, 0.8, 0.7, 0.9))


def test_uncertainty_of_the_divisor_widens():
    exact = ratio_interval(0.5, 0.4, 0.6, 0.8, 0.8, 0.8)
    uncertain = ratio_interval(0.5, 0.4, 0.6, 0.8, 0.7, 0.9)
    assert uncertain[0] < exact[0] < 0.625 < exact[1] < uncertain[1]
