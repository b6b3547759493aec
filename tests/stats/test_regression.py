from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.stats import alignment_r2, condition_model_r2, condition_r2, delta_r2, paired_cells, split_correlation

K, CONDITIONS = 9, np.array([4.0, 8.0, 16.0, 32.0])
T_C = np.tile(CONDITIONS, K)


def adjusted_by_lstsq(y: np.ndarray, columns: list[np.ndarray]) -> float:
    """One fit by numpy.linalg, rank by its singular values."""
    keep = np.isfinite(y) & np.all([np.isfinite(c) for c in columns], axis=0)
    x, y = np.column_stack([np.ones(len(y)), *columns])[keep], y[keep]
    if len(y) == 0 or np.ptp(y) == 0:
        return np.nan
    scale = np.abs(x).max(axis=0)
    x = x / np.where(scale > 0, scale, 1)
    rank = np.linalg.matrix_rank(x, tol=1e-9)
    if len(y) <= rank:
        return np.nan
    fitted = x @ np.linalg.lstsq(x, y, rcond=1e-10)[0]
    return 1 - (((y - fitted) ** 2).sum() / (len(y) - rank)) / (((y - y.mean()) ** 2).sum() / (len(y) - 1))


def factor(t: np.ndarray) -> list[np.ndarray]:
    return [(t == value).astype(float) for value in np.unique(t)[1:]]


def study(seed: int, replicates: int = 6, missing: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    model = rng.normal(size=(replicates, len(T_C)))
    people = 0.4 * model + np.sqrt(T_C) * 0.3 + rng.normal(size=model.shape)
    people[rng.random(people.shape) < missing] = np.nan
    model[rng.random(model.shape) < missing] = np.nan
    return people, model


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.2, 0.7, 0.9]), constant=st.booleans())
def test_batched_fits_equal_numpy_lstsq(seed, missing, constant):
    people, model = study(seed, missing=missing)
    if constant:
        model[1], people[2] = 1.958, 0.3
    expected = [adjusted_by_lstsq(y, [m, T_C, m * T_C]) for y, m in zip(people, model, strict=True)]
    np.testing.assert_allclose(alignment_r2(people, model, T_C), expected, atol=1e-9)
    alone = [
        adjusted_by_lstsq(np.where(np.isfinite(m), y, np.nan), factor(T_C)) for y, m in zip(people, model, strict=True)
    ]
    np.testing.assert_allclose(condition_r2(people, T_C, model), alone, atol=1e-9)
    full = [adjusted_by_lstsq(y, [*factor(T_C), m, m * T_C]) for y, m in zip(people, model, strict=True)]
    np.testing.assert_allclose(condition_model_r2(people, model, T_C), full, atol=1e-9)
    np.testing.assert_allclose(delta_r2(people, model, T_C), np.subtract(full, alone), atol=1e-9)
    np.testing.assert_array_equal(paired_cells(people, model), (np.isfinite(people) & np.isfinite(model)).sum(axis=1))


def test_a_single_condition_drops_out_of_the_model():
    people, model = study(0, missing=0.0)
    expected = [adjusted_by_lstsq(y, [m]) for y, m in zip(people, model, strict=True)]
    one = np.full(len(T_C), 4.0)
    np.testing.assert_allclose(alignment_r2(people, model, one), expected, atol=1e-9)
    np.testing.assert_allclose(delta_r2(people, model, one), expected, atol=1e-9)
    np.testing.assert_allclose(condition_r2(people, one), 0.0, atol=1e-12)


def test_laws_of_alignment():
    people, model = study(1)
    r2 = alignment_r2(people, model, T_C)
    assert (r2 <= 1).all()
    np.testing.assert_allclose(alignment_r2(3 * people - 7, 1e4 * model + 5, T_C), r2, atol=1e-9)
    order = np.random.default_rng(0).permutation(len(T_C))
    np.testing.assert_allclose(alignment_r2(people[:, order], model[:, order], T_C[order]), r2, atol=1e-12)
    np.testing.assert_allclose(alignment_r2(2 + 0.5 * model * T_C - T_C, model, T_C), 1.0, atol=1e-12)
    np.testing.assert_allclose(alignment_r2(people[0], model, T_C)[0], r2[0], atol=1e-12)


def test_a_concept_blind_model_adds_nothing_over_the_condition():
    rng = np.random.default_rng(0)
    t = np.tile(CONDITIONS, 400)
    people = np.log(t) + 0.5 * rng.normal(size=t.size)
    blind = np.tile([0.1, 0.2, 0.4, 0.8], 400)
    assert alignment_r2(people, blind, t)[0] > 0.5
    assert abs(delta_r2(people, blind, t)[0]) < 1e-9


def test_too_few_cells_and_equal_cells_give_nan():
    t = np.array([4.0, 8.0, 16.0, 32.0])
    x = np.array([0.1, 0.5, 0.2, 0.9])
    assert np.isnan(alignment_r2(x, x**2, t)).all()  # four cells, rank four
    assert np.isnan(alignment_r2(np.full(4, 0.1), x, np.full(4, 4.0))).all()
    assert np.isnan(alignment_r2(np.full(4, np.nan), x, t)).all()
    assert np.isnan(split_correlation(np.full(4, 0.1), x)).all()
    assert np.isnan(split_correlation(x, [np.nan, np.nan, np.nan, 1.0])).all()


def test_correlation_equals_numpy():
    a, b = study(4)
    for got, x, y in zip(split_correlation(a, b), a, b, strict=True):
        keep = np.isfinite(x) & np.isfinite(y)
        assert got == pytest.approx(np.corrcoef(x[keep], y[keep])[0, 1], abs=1e-12)


def test_wrong_input_is_named():
    people, model = study(0)
    with pytest.raises(ValueError, match="need the same cells"):
        alignment_r2(people, model[:, :3], T_C)
    with pytest.raises(ValueError, match="6 replicates and the model 2"):
        alignment_r2(people, model[:2], T_C)
    with pytest.raises(ValueError, match="finite or NaN"):
        alignment_r2(np.full_like(people, np.inf), model, T_C)
