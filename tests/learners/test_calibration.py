"""Calibration against its definition with NumPy, on features and on inner products."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.learners import calibrate, calibrate_gram, fit_calibration


@pytest.fixture
def drawn():
    rng = np.random.default_rng(0)
    return 3 + 2 * rng.normal(size=(30, 12)), 3 + rng.normal(size=(100, 12))


@pytest.mark.parametrize("quantile", [0.5, 0.99, 0.999, 1.0])
def test_definition(drawn, quantile):
    x_ND, w_MD = drawn
    radius = np.quantile(np.linalg.norm(w_MD - w_MD.mean(0), axis=1), quantile)
    expected_ND = (x_ND - w_MD.mean(0)) / radius
    expected_ND = np.array([row / max(1, np.linalg.norm(row)) for row in expected_ND])
    calibrated_ND = calibrate(x_ND, w_MD, quantile)
    assert calibrated_ND.dtype == np.float64
    np.testing.assert_allclose(calibrated_ND, expected_ND, rtol=1e-12)
    norm_N = np.linalg.norm(calibrated_ND, axis=1)
    assert norm_N.max() <= 1 + 1e-15
    assert (np.abs(norm_N - 1) < 1e-15).any()


def test_scale_and_origin_do_not_matter(drawn):
    x_ND, w_MD = drawn
    np.testing.assert_allclose(calibrate(5 * x_ND - 2, 5 * w_MD - 2), calibrate(x_ND, w_MD), rtol=1e-9)
    before = x_ND.copy()
    calibrate(x_ND, w_MD)
    np.testing.assert_array_equal(x_ND, before)
    single = calibrate(x_ND.astype(np.float32), w_MD.astype(np.float32))
    np.testing.assert_allclose(single, calibrate(x_ND, w_MD), atol=1e-6)
    assert np.abs(np.einsum("nd,nd->n", single, single).max() - 1) < 1e-12


@pytest.mark.parametrize("quantile", [0.9, 1.0])
def test_inner_products_suffice(drawn, quantile):
    x_ND, w_MD = drawn
    y_ND = calibrate(x_ND, w_MD, quantile)
    gram_NN = calibrate_gram(x_ND @ x_ND.T, x_ND @ w_MD.T, w_MD @ w_MD.T, quantile)
    np.testing.assert_allclose(gram_NN, y_ND @ y_ND.T, atol=1e-12)


def test_an_image_at_the_origin_becomes_zero(drawn):
    _, w_MD = drawn
    assert (calibrate(w_MD.mean(0)[None], w_MD) == 0).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x, w: calibrate(np.where(x > 5, np.nan, x), w), "features_ND holds NaN or infinite values"),
        (lambda x, w: calibrate(x, np.where(w > 5, np.inf, w)), "warmup_MD holds NaN or infinite values"),
        (lambda x, w: calibrate(x, np.full_like(w, 0.1)), "zero norm after centring"),
        (lambda x, w: calibrate(x, w * 0), "zero norm after centring"),
        (lambda x, w: calibrate(x[:, :5], w), "has 5 features, the warm-up images 12"),
        (lambda x, w: calibrate(x, w[:1]), "at least two warm-up images, got 1"),
        (lambda x, w: calibrate(x, w, 0.0), r"norm_quantile must lie in \(0, 1\], got 0.0"),
        (lambda x, w: calibrate(x, w, 99), "norm_quantile"),
        (lambda x, w: calibrate(x[0], w), r"array with two axes, got shape \(12,\)"),
        (lambda x, w: calibrate_gram(x @ x.T, w @ x.T, w @ w.T), "must be of shapes"),
        (lambda x, w: calibrate_gram(x @ x.T, x @ w.T, np.ones((100, 100))), "zero norm after centring"),
    ],
)
def test_bad_features(drawn, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(*drawn)


def test_the_calibration_can_be_kept(drawn):
    x_ND, w_MD = drawn
    calibration = fit_calibration(w_MD)
    np.testing.assert_array_equal(np.concatenate([calibration(x_ND[:7]), calibration(x_ND[7:])]), calibrate(x_ND, w_MD))
