"""The bound holds for any parameters; the referee is an optimum found by scipy in float64 on the plain objective."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp

from humanlike.readouts.certificate import certify, optimal_intercept
from humanlike.readouts.problem import folded_problem

N, D, K = 60, 4, 3


def plain_objective(x_ND, y_N, theta, C):
    """C·Σ CE + ½‖W‖² and its gradient, written down naively."""
    theta = theta.reshape(-1, K)
    logit = x_ND @ theta[:-1] + theta[-1]
    log_p = logit - logsumexp(logit, axis=1, keepdims=True)
    residual = np.exp(log_p)
    residual[np.arange(len(y_N)), y_N] -= 1
    gradient = np.concatenate([C * x_ND.T @ residual + theta[:-1], C * residual.sum(0, keepdims=True)])
    return -C * log_p[np.arange(len(y_N)), y_N].sum() + 0.5 * (theta[:-1] ** 2).sum(), gradient.ravel()


@pytest.fixture(scope="module", params=[0.1, 1.0, 100.0])
def case(request):
    rng = np.random.default_rng(1)
    y_N = np.arange(N) % K
    f_ND = rng.normal(size=(N, D)) + 0.7 * y_N[:, None]
    fold_N = np.arange(N) // K % 4
    problem, _, _, _ = folded_problem(f_ND, y_N, fold_N, request.param, standardize=True)
    train = fold_N != 2
    x_ND = (f_ND[train] - f_ND[train].mean(0)) / f_ND[train].std(0)
    best = minimize(
        lambda t: plain_objective(x_ND, y_N[train], t, request.param),
        np.zeros((D + 1) * K),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-10, "maxiter": 5000},
    )
    return problem, x_ND, y_N[train], request.param, best


def test_value_and_gradient_equal_the_naive_objective(case):
    problem, x_ND, y_N, C, _ = case
    theta = torch.from_numpy(np.random.default_rng(0).normal(size=(D + 1, K)))
    values, gradients = problem.value_and_gradient([0, 2], [theta * 0.5, theta])
    expected, slope = plain_objective(x_ND, y_N, theta.numpy(), C)
    assert values[1] * C * len(y_N) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(gradients[1].numpy().ravel() * C * len(y_N), slope, rtol=1e-5, atol=1e-5 * C)


@given(size=st.floats(1e-6, 1.0), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_bound_is_never_below_the_true_gap(case, size, seed):
    problem, x_ND, y_N, C, best = case
    noise = np.random.default_rng(seed).normal(size=(D + 1, K))
    fit = certify(problem, 2, torch.from_numpy(best.x.reshape(D + 1, K) + size * noise))
    value, _ = plain_objective(x_ND, y_N, fit.theta.numpy(), C)
    assert fit.objective == pytest.approx(value, rel=1e-6)
    assert fit.gap >= value / best.fun - 1 - 1e-7  # the rows are held in float32


def test_bound_is_tight_at_the_optimum(case):
    problem, _, _, _, best = case
    fit = certify(problem, 2, torch.from_numpy(best.x.reshape(D + 1, K)))
    assert fit.gap < 1e-8
    assert fit.bias_grad_norm < 1e-14


def test_intercept_reaches_the_class_shares():
    rng = np.random.default_rng(0)
    logit_NK = torch.from_numpy(rng.normal(size=(200, 5)))
    share_K = torch.tensor([0.1, 0.4, 0.2, 0.25, 0.05], dtype=torch.float64)
    move_K = optimal_intercept(logit_NK, share_K)
    np.testing.assert_allclose(torch.softmax(logit_NK + move_K, 1).mean(0), share_K, atol=1e-15)
    assert float(move_K.mean()) == pytest.approx(0, abs=1e-15)


def test_bound_holds_where_the_intercept_cannot_be_moved(case, monkeypatch):
    """With the intercept left wrong the slack of the free direction must cover what is lost."""
    problem, x_ND, y_N, C, best = case
    monkeypatch.setattr("humanlike.readouts.certificate.NEWTON_STEPS", 0)
    theta = best.x.reshape(D + 1, K).copy()
    theta[-1] += [1e-3, -2e-3, 1e-3]
    fit = certify(problem, 2, torch.from_numpy(theta))
    value, _ = plain_objective(x_ND, y_N, theta, C)
    assert fit.bias_grad_norm > 1e-6
    assert value / best.fun - 1 - 1e-7 <= fit.gap < 1.0
