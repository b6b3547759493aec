from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from humanlike.stats.crossed import participant_weights
from humanlike.stats.power import VarianceComponents, needed_size, power_of, variance_components


@pytest.mark.parametrize(("difference", "variance", "alpha"), [(0.1, 1e-3, 0.05), (-0.3, 0.04, 0.01), (0.0, 1.0, 0.05)])
def test_power_is_the_two_tails_of_the_normal(difference, variance, alpha):
    z = scipy.stats.norm(difference / np.sqrt(variance))
    limit = scipy.stats.norm.isf(alpha / 2)
    assert power_of(difference, variance, alpha) == pytest.approx(z.sf(limit) + z.cdf(-limit), rel=1e-12)


def test_needed_sizes_reach_the_power_and_one_less_does_not():
    components = VarianceComponents(images=4e-4, participants=5e-5, judgments=2e-4)
    size = needed_size(0.05, components, images=16, participants=200)
    assert size.power == pytest.approx(power_of(0.05, components.total))
    assert size.power < 0.8
    for images, participants in ((size.images, 200), (16, size.participants), (size.images_both, None)):
        scale = (images / 16, images / 16 if participants is None else participants / 200)
        if not np.isfinite(images * (participants or 1)):
            continue
        assert power_of(0.05, components.scaled(*scale)) >= 0.8
    smaller = components.scaled(images=(size.images - 1) / 16)
    assert power_of(0.05, smaller) < 0.8
    assert size.participants == np.inf  # images alone leave too much


def test_what_images_alone_cannot_do_is_infinite():
    size = needed_size(0.01, VarianceComponents(1e-4, 1e-4, 0.0), images=16, participants=100)
    assert size.images == size.participants == np.inf
    assert np.isfinite(size.images_both)
    assert needed_size(0.0, VarianceComponents(1e-4, 0, 0), 16, 100).images == np.inf
    assert np.isnan(needed_size(np.nan, VarianceComponents(1e-4, 0, 0), 16, 100).images)


def test_components_are_found_again_from_three_bootstraps():
    """A crossed array with known components; the mean is the statistic, 4,000 replicates of each kind."""
    rng = np.random.default_rng(3)
    images, people = 50, 40
    image, person = rng.normal(0, 1.0, images), rng.normal(0, 0.7, people)
    table = image[:, None] + person[None] + rng.normal(0, 4.0, (images, people))
    row, column = participant_weights(images, 4000, seed=1), participant_weights(people, 4000, seed=2)
    one_row, one_column = np.ones_like(row), np.ones_like(column)

    def variance(weight_row: np.ndarray, weight_column: np.ndarray) -> float:
        return (np.einsum("bi,ij,bj->b", weight_row, table, weight_column, optimize=True) / table.size).var()

    found = variance_components(variance(row, one_column), variance(one_row, column), variance(row, column))
    # Of the effects in this table: the means of rows and columns hold noise, and the components take it out again.
    mean_square_rows = people * table.mean(axis=1).var(ddof=1)
    mean_square_columns = images * table.mean(axis=0).var(ddof=1)
    residual = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    noise = (residual**2).sum() / ((images - 1) * (people - 1))
    assert found.images == pytest.approx((mean_square_rows - noise) / table.size, rel=0.2)
    assert found.participants == pytest.approx((mean_square_columns - noise) / table.size, rel=0.2)
    assert found.judgments == pytest.approx(noise / table.size, rel=0.2)


def test_components_are_never_negative_and_keep_the_sums():
    found = variance_components(2.0, 1.0, 2.5)
    assert found == VarianceComponents(2.0, 1.0, 0.0)
    assert variance_components(2.0, 0.5, 9.0) == VarianceComponents(1.5, 0.0, 0.5)
    assert variance_components(2.0) == VarianceComponents(2.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="over_images"):
        variance_components(-1.0)
    with pytest.raises(ValueError, match="alpha and power"):
        needed_size(0.1, found, 16, 10, power=0.01)
    with pytest.raises(ValueError, match="images must"):
        needed_size(0.1, found, 0, 10)
