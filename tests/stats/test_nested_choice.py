"""A choice measured where it did not look: against brute force, and unbiased where there is nothing to choose."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.stats.nested_choice import alignment_within_folds, concept_folds, nested_choice
from humanlike.stats.regression import alignment_r2

CONDITIONS = np.array([4.0, 8.0, 16.0, 32.0])


def study(num_concepts, replicates, candidates, seed=0, signal=()):
    """People's cells are noise around a concept's own value; candidates are noise, or noisy copies of people."""
    rng = np.random.default_rng(seed)
    shape = (replicates, num_concepts * len(CONDITIONS))
    people = rng.normal(size=shape)
    models = [rng.normal(size=shape) + dict(signal).get(m, 0.0) * people for m in range(candidates)]
    return people, models, np.tile(CONDITIONS, num_concepts)


def cells(fold_RK):
    return np.repeat(fold_RK, len(CONDITIONS), axis=1)


def adjusted_r2(people_C, model_C, condition_C):
    """By the normal equations, cells with NaN left out."""
    known = np.isfinite(people_C) & np.isfinite(model_C)
    y, m, t = people_C[known], model_C[known], condition_C[known]
    x = np.stack([np.ones_like(m), m, t, m * t], 1)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return 1 - (residual @ residual / (len(y) - 4)) / (y.var() * len(y) / (len(y) - 1))


def test_every_fold_is_that_of_brute_force():
    people, models, condition_C = study(11, 3, 4, signal={1: 0.2, 3: 0.2})
    models[0][:, 5] = np.nan
    people[:, 9] = np.nan
    fold_RK = concept_folds(11, folds=3, repeats=2, seed=4)
    found = nested_choice(people, models, condition_C, cells(fold_RK))
    for b, r, f in np.ndindex(3, 2, 3):
        out = cells(fold_RK)[r] == f
        inner = [adjusted_r2(people[b, ~out], m[b, ~out], condition_C[~out]) for m in models]
        best = int(np.argmax(inner))
        assert found.chosen_BRF[b, r, f] == best
        assert found.inner_BRF[b, r, f] == pytest.approx(inner[best], abs=1e-9)
        held_out = adjusted_r2(people[b, out], models[best][b, out], condition_C[out])
        assert found.held_out_BRF[b, r, f] == pytest.approx(held_out, abs=1e-9)
    np.testing.assert_allclose(found.value_B, found.held_out_BRF.mean((1, 2)))


def test_a_fixed_candidate_is_measured_within_the_same_folds():
    people, models, condition_C = study(9, 2, 1, signal={0: 0.5})
    models[0][1, 3] = np.nan
    fold_RC = cells(concept_folds(9, folds=3, repeats=2, seed=1))
    found = alignment_within_folds(people, models[0], condition_C, fold_RC)
    for b in range(2):
        folds = [row == f for row in fold_RC for f in range(3)]
        expected = np.mean([adjusted_r2(people[b, c], models[0][b, c], condition_C[c]) for c in folds])
        assert found[b] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found, nested_choice(people, models, condition_C, fold_RC).value_B)


def test_the_naive_choice_is_optimistic_and_the_nested_one_is_not():
    """Twelve candidates of pure noise in 400 studies: the adjusted R² of any fixed one has the mean 0."""
    people, models, condition_C = study(24, 400, 12, seed=1)
    found = nested_choice(people, models, condition_C, cells(concept_folds(24, folds=4, repeats=1, seed=0)))
    nested, inner = found.value_B, found.inner_BRF.mean((1, 2))
    standard_error = nested.std(ddof=1) / np.sqrt(len(nested))
    assert abs(nested.mean()) < 4 * standard_error
    assert inner.mean() > 20 * standard_error
    assert (inner > nested).mean() > 0.8
    naive = np.max([alignment_r2(people, m, condition_C) for m in models], axis=0)  # the best on everything
    assert naive.mean() > 20 * naive.std(ddof=1) / np.sqrt(len(naive))


def test_the_best_candidate_is_found():
    people, models, condition_C = study(40, 5, 6, signal={2: 1.0, 4: 3.0})
    found = nested_choice(people, models, condition_C, cells(concept_folds(40, folds=5, repeats=2, seed=0)))
    assert (found.chosen_BRF == 4).all()
    assert (found.value_B > 0.8).all()


def test_replicates_do_not_touch_each_other():
    people, models, condition_C = study(12, 4, 3)
    fold_RC = cells(concept_folds(12, folds=3, repeats=1, seed=0))
    together = nested_choice(people, models, condition_C, fold_RC)
    for b in range(4):
        alone = nested_choice(people[[b]], [m[[b]] for m in models], condition_C, fold_RC)
        np.testing.assert_array_equal(alone.chosen_BRF[0], together.chosen_BRF[b])
        np.testing.assert_allclose(alone.held_out_BRF[0], together.held_out_BRF[b], rtol=1e-12)


def test_what_is_missing_is_not_chosen():
    people, models, condition_C = study(12, 2, 2)
    fold_RC = cells(concept_folds(12, folds=3, repeats=1, seed=0))
    models[0][:] = np.nan
    assert (nested_choice(people, models, condition_C, fold_RC).chosen_BRF == 1).all()
    models[1][1] = np.nan
    found = nested_choice(people, models, condition_C, fold_RC)
    assert (found.chosen_BRF[1] == -1).all()
    assert np.isfinite(found.value_B).tolist() == [True, False]


def test_folds_are_balanced_seeded_and_never_too_small():
    fold_RK = concept_folds(13, folds=5, repeats=3, seed=1)
    assert all(sorted(np.bincount(row)) == [2, 2, 3, 3, 3] for row in fold_RK)
    assert len({tuple(row) for row in fold_RK.tolist()}) == 3
    np.testing.assert_array_equal(fold_RK[:2], concept_folds(13, folds=5, repeats=2, seed=1))
    assert concept_folds(5, folds=5, repeats=1, seed=0).max() == 1
    people, models, condition_C = study(3, 2, 2)
    found = nested_choice(people, models, condition_C, cells(concept_folds(3, folds=5, repeats=1, seed=0)))
    assert np.isnan(found.value_B).all()


@pytest.mark.parametrize(("folds", "repeats"), [(1, 1), (2, 0)])
def test_too_few_folds_or_repeats(folds, repeats):
    with pytest.raises(ValueError, match="2 or more folds"):
        concept_folds(10, folds, repeats, 0)


def test_cells_that_do_not_fit():
    people, models, condition_C = study(4, 2, 2)
    fold_RC = cells(concept_folds(4, 2, 1, 0))
    with pytest.raises(ValueError, match="one shape"):
        nested_choice(people, [models[0][:1]], condition_C, fold_RC)
    with pytest.raises(ValueError, match="one or more candidates"):
        nested_choice(people, [], condition_C, fold_RC)
