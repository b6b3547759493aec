"""Preconditioners against inverses written down in float64 with numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from humanlike.readouts import preconditioner
from humanlike.readouts.preconditioner import HardRows, WoodburyPreconditioner, starting_preconditioner
from humanlike.readouts.problem import folded_problem

N, D, K, C = 60, 5, 4, 3.0


def make_problem(d=D, standardize=True):
    rng = np.random.default_rng(0)
    y_N, fold_N = np.arange(N) % K, np.arange(N) // K % 3
    f_ND = rng.normal(size=(N, d)) * rng.uniform(0.5, 2, d) + 0.5 * y_N[:, None]
    problem, _, _, _ = folded_problem(f_ND, y_N, fold_N, C, standardize)
    train = fold_N != 1
    own_scale_D = f_ND[train].std(0) if standardize else np.ones(d)
    x_ND = (f_ND[train] - f_ND[train].mean(0)) / own_scale_D
    return problem, x_ND


def block_inverses(x_ND, theta, lam):
    """(K, D+1, D+1) inverses of the diagonal blocks of the Hessian, intercept last."""
    p_NK = softmax(x_ND @ theta[:-1] + theta[-1], axis=1)
    x_NE = np.column_stack([x_ND, np.ones(len(x_ND))])
    ridge_EE = np.diag([lam] * x_ND.shape[1] + [0.0])
    return np.array([np.linalg.inv(x_NE.T @ (x_NE * (p * (1 - p))[:, None]) / len(x_ND) + ridge_EE) for p in p_NK.T])


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_hard_rows_are_the_exact_blocks_when_all_rows_are_held(monkeypatch, standardize, dtype):
    monkeypatch.setattr(preconditioner, "HARD_ROWS", N)
    problem, x_ND = make_problem(standardize=standardize)
    rng = np.random.default_rng(1)
    theta, gradient = rng.normal(size=(D + 1, K)), rng.normal(size=(D + 1, K))
    gradient[-1] -= gradient[-1].mean()
    lam = problem.penalty(1)
    mean_E1 = gradient.mean(1, keepdims=True)
    step = np.einsum("kde,ek->dk", block_inverses(x_ND, theta, lam), gradient - mean_E1)
    expected = step - step.mean(1, keepdims=True) + mean_E1 / lam
    actual = HardRows(problem, 1, torch.from_numpy(theta))(torch.from_numpy(gradient).to(dtype))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@given(size=st.floats(0.0, 30.0), rows=st.integers(1, N), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=30)
def test_hard_rows_are_symmetric_and_positive(size, rows, seed):
    problem, _ = make_problem()
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preconditioner, "HARD_ROWS", rows)
        operator = HardRows(problem, 0, size * torch.from_numpy(rng.normal(size=(D + 1, K))))
    a, b = torch.from_numpy(rng.normal(size=(2, D + 1, K)))
    a[-1] -= a[-1].mean()  # as gradients of a softmax have it
    b[-1] -= b[-1].mean()
    ab, ba, aa, bb = ((left * operator(right)).sum().item() for left, right in ((a, b), (b, a), (a, a), (b, b)))
    assert aa > 0
    assert bb > 0
    assert ab == pytest.approx(ba, abs=1e-4 * (aa * bb) ** 0.5)


def test_curvature_of_the_intercepts():
    problem, x_ND = make_problem()
    theta = np.random.default_rng(2).normal(size=(D + 1, K))
    p_NK = softmax(x_ND @ theta[:-1] + theta[-1], axis=1)
    curvature_K = HardRows(problem, 1, torch.from_numpy(theta)).intercept_curvature_K
    np.testing.assert_allclose(curvature_K, (p_NK * (1 - p_NK)).mean(0), rtol=1e-5)


def test_rows_held_fit_in_the_memory_allowed(monkeypatch):
    problem, _ = make_problem()
    monkeypatch.setattr(preconditioner, "HARD_ROWS_BYTES", 4 * problem.num_models * K * D * 7)
    assert HardRows(problem, 0, torch.zeros(D + 1, K))._x_KRD.shape == (K, 7, D)
    monkeypatch.setattr(preconditioner, "HARD_ROWS_BYTES", 1)
    assert HardRows(problem, 0, torch.zeros(D + 1, K))._x_KRD.shape == (K, 1, D)


@pytest.mark.parametrize("d", [D, 2 * N])
def test_start_is_the_inverse_at_zero_weights(d):
    problem, _ = make_problem(d)
    operator = starting_preconditioner(problem)
    assert isinstance(operator, WoodburyPreconditioner) == (d > N)
    gradient = np.random.default_rng(3).normal(size=(d + 1, K))
    x_ND = problem.z_ND.double().numpy() / problem.scale_MD.mean(0).numpy()
    curvature = 1 / K * (1 - 1 / K)
    hessian = curvature * x_ND.T @ x_ND / N + np.mean([problem.penalty(m) for m in range(3)]) * np.eye(d)
    expected = np.vstack([np.linalg.solve(hessian, gradient[:-1]), gradient[-1:] / curvature])
    np.testing.assert_allclose(operator(torch.from_numpy(gradient)), expected, rtol=1e-3, atol=1e-3)
