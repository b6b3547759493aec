"""Whole class blocks against inverses in float64 by numpy, and solves with them against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from humanlike.readouts import LogisticReadout, class_blocks, lbfgs
from humanlike.readouts.class_blocks import ClassBlocks, blocks_pay
from humanlike.readouts.problem import folded_problem
from humanlike.readouts.workers import workers

N, D, K, FOLDS = 120, 5, 4, 3


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y_N = np.arange(N) % K
    f_ND = rng.normal(size=(N, D)) * rng.uniform(0.5, 2, D) + 0.5 * y_N[:, None]
    return folded_problem(f_ND, y_N, np.arange(N) // K % FOLDS, 3.0, standardize=True)[0]


@pytest.fixture(scope="module")
def thetas():
    rng = np.random.default_rng(1)
    centre = rng.normal(size=(D + 1, K))
    return {m: torch.from_numpy(centre + 0.1 * rng.normal(size=(D + 1, K))) for m in range(FOLDS)}


def naive_step(problem, thetas, gradient, hard):
    """What `ClassBlocks` documents, class by class in float64."""
    scale_D = problem.scale_MD.numpy().mean(0)
    shared = []
    for m, theta in thetas.items():
        w_DK = theta.numpy()[:-1] / problem.scale_MD[m].numpy()[:, None]
        shared.append(np.vstack([w_DK, theta.numpy()[-1] - problem.shift_MD[m].numpy() @ w_DK]))
    v_DK = np.mean(shared, axis=0)
    z_ND = problem.z_ND.double().numpy()
    x_ND = z_ND / scale_D
    some_RD = x_ND[:: N // (8 * D)]
    p_NK = softmax(z_ND @ v_DK[:-1] + v_DK[-1], axis=1)
    lam = np.mean([problem.penalty(m) for m in thetas])
    mean_E1 = gradient.mean(1, keepdims=True)
    centred = gradient - mean_E1
    step = np.empty_like(gradient)
    for k in range(K):
        v_N = p_NK[:, k] * (1 - p_NK[:, k])
        mu_D = v_N @ x_ND / v_N.sum()
        top = np.argsort(-v_N)[:hard]
        block = (x_ND[top] - mu_D).T @ ((x_ND[top] - mu_D) * v_N[top, None]) / N
        block += (v_N.sum() - v_N[top].sum()) / N * (some_RD.T @ some_RD / len(some_RD)) + lam * np.eye(D)
        step[:-1, k] = np.linalg.solve(block, centred[:-1, k] - mu_D * centred[-1, k])
        step[-1, k] = centred[-1, k] / v_N.mean() - mu_D @ step[:-1, k]
    step -= step.mean(1, keepdims=True)
    step[:-1] += mean_E1[:-1] / lam
    return step


@pytest.mark.parametrize("rows_a_feature", [2, N])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_blocks_are_the_documented_ones(monkeypatch, problem, thetas, rows_a_feature, dtype):
    monkeypatch.setattr(class_blocks, "ROWS_A_FEATURE", rows_a_feature)
    gradient = np.random.default_rng(2).normal(size=(D + 1, K))
    gradient[-1] -= gradient[-1].mean()  # as gradients of a softmax have it
    expected = naive_step(problem, thetas, gradient, hard=min(N, rows_a_feature * D))
    actual = ClassBlocks(problem, thetas)(torch.from_numpy(gradient).to(dtype))
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_blocks_are_symmetric_and_positive(problem, thetas):
    operator = ClassBlocks(problem, thetas)
    a, b = torch.from_numpy(np.random.default_rng(3).normal(size=(2, D + 1, K)))
    a[-1] -= a[-1].mean()
    b[-1] -= b[-1].mean()
    ab, ba, aa, bb = ((left * operator(right)).sum().item() for left, right in ((a, b), (b, a), (a, a), (b, b)))
    assert min(aa, bb) > 0
    assert ab == pytest.approx(ba, abs=1e-4 * (aa * bb) ** 0.5)


def test_threads_change_nothing(problem, thetas, monkeypatch):
    monkeypatch.setattr(class_blocks, "CHUNK_ROWS", 16)
    gradient = torch.from_numpy(np.random.default_rng(4).normal(size=(D + 1, K)))
    with workers(2) as each:
        beside = ClassBlocks(problem, thetas, each)(gradient)
    assert torch.equal(beside, ClassBlocks(problem, thetas)(gradient))


def test_blocks_need_rows_and_memory(problem, monkeypatch):
    assert not blocks_pay(problem)
    monkeypatch.setattr(class_blocks, "MANY_ROWS", N)
    assert blocks_pay(problem)
    monkeypatch.setattr(class_blocks, "CLASS_ROWS_A_FEATURE", 1.01 * N / (K * D))
    assert not blocks_pay(problem)
    monkeypatch.setattr(class_blocks, "CLASS_ROWS_A_FEATURE", 1.0)
    monkeypatch.setattr(class_blocks, "BLOCK_BYTES", 4 * K * D**2 - 1)
    assert not blocks_pay(problem)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("signal", [1.0, 3.0])
def test_optimum_is_scikit_learns_in_fewer_steps(make_sample, monkeypatch, standardize, signal):
    sample = make_sample(n=900, d=40, signal=signal)
    arguments = (sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    other = LogisticReadout(n_splits=3, standardize=standardize)
    other.out_of_fold_proba(*arguments)
    monkeypatch.setattr(class_blocks, "MANY_ROWS", 0)
    monkeypatch.setattr(lbfgs, "BLOCK_PASSES", 5)
    readout = LogisticReadout(n_splits=3, standardize=standardize)
    p_NL = readout.out_of_fold_proba(*arguments)
    assert readout.gap_.max() <= 1e-7
    assert readout.n_iter_.max() < other.n_iter_.max()
    for fold in range(3):
        train = readout.folds_ != fold
        x_ND = sample.f_ND.astype(np.float64)
        if standardize:
            x_ND = (x_ND - x_ND[train].mean(0)) / x_ND[train].std(0)
        model = LogisticRegression(tol=1e-10, max_iter=20_000).fit(x_ND[train], sample.label_N[train])
        own_N = model.predict_proba(x_ND[train])[
            np.arange(train.sum()), np.searchsorted(model.classes_, sample.label_N[train])
        ]
        objective = -np.log(own_N).sum() + 0.5 * np.square(model.coef_).sum()
        assert readout.objective_[fold] == pytest.approx(objective, rel=1e-6)
        assert (p_NL[~train].argmax(1) == model.predict(x_ND[~train])).mean() >= 0.999


def test_float64_goes_on_with_the_blocks(make_sample, monkeypatch):
    sample = make_sample(n=300, d=10)
    monkeypatch.setattr(class_blocks, "MANY_ROWS", 0)
    readout = LogisticReadout(C=100.0, n_splits=3, tol=1e-12)
    readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert readout.gap_.max() <= 1e-12


def test_held_out_rows_have_no_influence_through_shared_blocks(sample, monkeypatch):
    monkeypatch.setattr(class_blocks, "MANY_ROWS", 0)
    arguments = (sample.label_N, sample.num_labels, sample.group_N)
    readout, moved = LogisticReadout(tol=1e-9), LogisticReadout(tol=1e-9)
    readout.out_of_fold_proba(sample.f_ND, *arguments)
    moved_ND = sample.f_ND.copy()
    moved_ND[readout.folds_ == 1] += 100.0
    moved.out_of_fold_proba(moved_ND, *arguments)
    assert moved.objective_[1] == pytest.approx(readout.objective_[1], rel=1e-5)
    assert abs(moved.objective_[0] / readout.objective_[0] - 1) > 1e-4
