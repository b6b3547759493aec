from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.doodles import choice_probability, population_alignment, sample_labels, simulate_model
from humanlike.types import Sketches


def adjusted_r2(data: Sketches, proba_NL: np.ndarray) -> float:
    """Adjusted R² of people's true cell accuracies on 1 + model + t + model·t, by pandas and numpy.linalg.lstsq."""
    rows = np.arange(len(data))
    table = data.table.assign(people=choice_probability(data)[rows, data.target_N], model=proba_NL[rows, data.target_N])
    cells = table.groupby(["concept", "condition"])[["people", "model"]].mean().reset_index()
    t, model, people = (cells[c].to_numpy() for c in ("condition", "model", "people"))
    design = np.stack([np.ones_like(t), model, t, model * t], axis=1)
    residual = people - design @ np.linalg.lstsq(design, people, rcond=None)[0]
    n, k = design.shape
    return float(1 - (residual @ residual / (n - k)) / (((people - people.mean()) ** 2).sum() / (n - 1)))


@pytest.mark.parametrize(("alignment", "seed"), [(0.4, 0), (0.6, 0), (0.6, 7), (0.85, 1), (0.999, 2)])
def test_the_knob_is_the_population_value(demo: Sketches, alignment: float, seed: int) -> None:
    proba = simulate_model(demo, alignment, seed)
    assert adjusted_r2(demo, proba) == pytest.approx(alignment, abs=1e-10)
    assert population_alignment(demo, proba) == pytest.approx(alignment, abs=1e-10)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert proba.min() >= 0
    assert proba.max() <= 1


def test_full_alignment_is_the_people_themselves(demo: Sketches) -> None:
    people = choice_probability(demo)
    np.testing.assert_array_equal(simulate_model(demo, 1.0), people)
    assert adjusted_r2(demo, people) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(simulate_model(demo, 1 - 1e-12), people, atol=1e-4)


def test_errors_keep_peoples_distribution(demo: Sketches) -> None:
    rows = np.arange(len(demo))
    people, twin = choice_probability(demo), simulate_model(demo, 0.6, 3)
    for p in (people, twin):
        p[rows, demo.target_N] = 0
        p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(twin, people, atol=1e-9)


def test_seeds_give_different_twins(demo: Sketches) -> None:
    assert not np.allclose(simulate_model(demo, 0.6, 0), simulate_model(demo, 0.6, 1))
    np.testing.assert_array_equal(simulate_model(demo, 0.6, 1), simulate_model(demo, 0.6, 1))


def test_impossible_alignments_are_refused_with_the_range(demo: Sketches) -> None:
    for wrong in (0.1, 1.2):
        with pytest.raises(ValueError, match=r"must lie above 0\.3"):
            simulate_model(demo, wrong)
    with pytest.raises(ValueError, match="got NaN"):
        simulate_model(demo, float("nan"))


def test_sampled_labels_follow_the_rows() -> None:
    row = np.array([0.5, 0.0, 0.3, 0.2])
    labels = sample_labels(np.tile(row, (40_000, 1)), seed=4)
    np.testing.assert_allclose(np.bincount(labels, minlength=4) / 40_000, row, atol=0.01)
    assert labels.dtype == np.int64
    assert (labels != 1).all()
