"""The mixture of bivariate normal distributions against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from humanlike.generators.sketch_rnn import component_kl
from humanlike.generators.sketch_rnn_mixture import Mixture, mixture_log_prob, mixture_of, mixture_sample


def component(mixture: Mixture, row: int, m: int):
    """Mean and covariance of one component in float64."""
    sx, sy = mixture.log_scale[row, m].double().exp().tolist()
    rho = float(mixture.correlation[row, m])
    return mixture.mean[row, m].double().numpy(), np.array([[sx**2, rho * sx * sy], [rho * sx * sy, sy**2]])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5))
def test_log_density_is_that_of_scipy(seed, components):
    random = torch.Generator().manual_seed(seed)
    mixture = mixture_of(torch.randn(3, 6 * components, generator=random))
    offset = torch.randn(3, 2, generator=random)
    ours = mixture_log_prob(mixture, offset)
    for row in range(3):
        each = [
            float(mixture.log_weight[row, m])
            + multivariate_normal.logpdf(offset[row].double().numpy(), *component(mixture, row, m))
            for m in range(components)
        ]
        assert float(ours[row]) == pytest.approx(logsumexp(each), rel=2e-4, abs=2e-4)


def test_the_density_integrates_to_one():
    mixture = mixture_of(torch.randn(1, 18, generator=torch.Generator().manual_seed(1)))
    axis = torch.linspace(-14, 14, 561)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)
    total = mixture_log_prob(mixture, grid).exp().double().sum() * (axis[1] - axis[0]).double() ** 2
    assert float(total) == pytest.approx(1, abs=2e-3)


def test_the_order_of_components_does_not_matter():
    mixture = mixture_of(torch.randn(4, 24))
    turned = Mixture(*(x.flip(1) for x in mixture))
    offset = torch.randn(4, 2)
    torch.testing.assert_close(mixture_log_prob(mixture, offset), mixture_log_prob(turned, offset))


def test_samples_have_the_moments_of_the_mixture():
    mixture = mixture_of(torch.randn(1, 18, generator=torch.Generator().manual_seed(3)))
    n = 200_000
    random = torch.Generator().manual_seed(0)
    wide = Mixture(*(x.expand(n, *x.shape[1:]) for x in mixture))
    sample = mixture_sample(wide, torch.rand(n, generator=random), torch.randn(n, 2, generator=random)).double()
    weight = mixture.log_weight[0].double().exp().numpy()
    parts = [component(mixture, 0, m) for m in range(3)]
    mean = sum(w * mu for w, (mu, _) in zip(weight, parts, strict=True))
    covariance = sum(w * (c + np.outer(mu - mean, mu - mean)) for w, (mu, c) in zip(weight, parts, strict=True))
    np.testing.assert_allclose(sample.mean(0).numpy(), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(sample.numpy().T), covariance, rtol=0.03, atol=0.02)


def test_a_low_temperature_shrinks_the_spread():
    mixture = mixture_of(torch.zeros(1, 6))
    normal = torch.ones(1, 2)
    near = mixture_sample(mixture, torch.zeros(1), normal, temperature=0.25)
    torch.testing.assert_close(near, 0.5 * mixture_sample(mixture, torch.zeros(1), normal))


def test_samples_have_gradients_to_the_chosen_component_alone():
    raw = torch.randn(1, 12, requires_grad=True)
    mixture_sample(mixture_of(raw), torch.tensor([0.0]), torch.randn(1, 2)).sum().backward()
    slopes = raw.grad.view(6, 2)
    assert bool((slopes[1:, 0] != 0).any())
    assert bool((slopes[:, 1] == 0).all())


def test_the_kl_of_one_component_is_the_textbook_one():
    p, q = (mixture_of(torch.randn(1, 6, generator=torch.Generator().manual_seed(s))) for s in (5, 6))
    (mu_p, cov_p), (mu_q, cov_q) = component(p, 0, 0), component(q, 0, 0)
    inverse, gap = np.linalg.inv(cov_q), mu_q - mu_p
    expected = 0.5 * (
        np.trace(inverse @ cov_p) + gap @ inverse @ gap - 2 + np.log(np.linalg.det(cov_q) / np.linalg.det(cov_p))
    )
    assert float(component_kl(p, q)[0]) == pytest.approx(float(expected), rel=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31))
def test_the_bound_is_zero_for_equals_and_above_monte_carlo(seed):
    random = torch.Generator().manual_seed(seed)
    raw = torch.randn(2, 18, generator=random)
    p, q = mixture_of(raw[:1]), mixture_of(raw[1:])
    assert float(component_kl(p, p)[0]) == pytest.approx(0, abs=1e-5)
    n = 20_000
    wide = Mixture(*(x.expand(n, *x.shape[1:]) for x in p))
    x = mixture_sample(wide, torch.rand(n, generator=random), torch.randn(n, 2, generator=random))
    gaps = (mixture_log_prob(p, x) - mixture_log_prob(q, x)).double()
    assert float(component_kl(p, q)[0]) >= float(gaps.mean() - 5 * gaps.std() / n**0.5)


def test_a_wrong_number_of_outputs_is_named():
    with pytest.raises(ValueError, match="6 numbers a component, got 7"):
        mixture_of(torch.zeros(7))
