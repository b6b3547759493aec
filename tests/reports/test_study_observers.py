from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

import humanlike.reports
from humanlike.reports.study_observers import FAMILIES, Observers, family_of, spread


def _referee(wanted: np.ndarray, gap: float, low: float, high: float) -> float:
    """Least sum of squared moves, by a general solver."""
    order = np.argsort(wanted, kind="stable")
    n = len(wanted)
    steps = np.diff(np.eye(n), axis=0)
    start = np.linspace(low, high, n)
    found = minimize(
        lambda x: ((x - wanted[order]) ** 2).sum(), start, jac=lambda x: 2 * (x - wanted[order]), method="SLSQP",
        bounds=[(low, high)] * n, constraints=[LinearConstraint(steps, gap, np.inf)], options={"ftol": 1e-14},
    )  # fmt: skip
    return float(found.fun)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-0.2, 1.2), min_size=2, max_size=8), st.floats(0.01, 0.13))
def test_labels_move_least_and_keep_their_distance_and_order(wanted, gap):
    wanted = np.array(wanted)
    places = spread(wanted, gap, 0.0, 1.0)
    ordered = places[np.argsort(wanted, kind="stable")]
    assert (np.diff(ordered) >= gap - 1e-9).all()
    assert places.min() >= -1e-12
    assert places.max() <= 1 + 1e-12
    assert ((places - wanted) ** 2).sum() <= _referee(wanted, gap, 0.0, 1.0) + 1e-6


def test_labels_that_do_not_fit_stand_at_equal_distances():
    np.testing.assert_allclose(spread([3.0, 1.0, 2.0], 5.0, 0.0, 1.0), [1.0, 0.0, 0.5])
    assert spread([], 1, 0, 1).shape == (0,)
    assert spread([7.0], 1, 0, 1).tolist() == [1.0]
    assert spread([0.3], 9, 0, 1).tolist() == [0.3]


@pytest.mark.parametrize(
    ("paradigm", "name"),
    [
        ("supervised, aligned with people's attention", "supervised"),
        ("self-supervised, contrastive", "self-supervised"),
        ("semi-weakly supervised", "semi-supervised"),
        ("Language-image contrastive, sigmoid loss", "language-image"),
        ("untrained", "untrained"),
        ("evolved", "other"),
        (None, "other"),
        (float("nan"), "other"),
        ("", "other"),
    ],
)
def test_families(paradigm, name):
    assert family_of(paradigm).name == name


def test_families_differ_in_more_than_colour_and_can_carry_text():
    looks = [(f.marker, f.line) for f in FAMILIES]
    assert len({marker for marker, _ in looks}) == len({str(line) for _, line in looks}) == len(FAMILIES)
    for family in FAMILIES:
        channel = np.array([int(family.colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.5, family.name


def test_every_colour_has_a_dark_side_on_the_page():
    folder = Path(humanlike.reports.__file__).parent / "templates"
    sheet = (folder / "style.css.j2").read_text() + (folder / "study.css.j2").read_text()
    for family in FAMILIES:
        assert sheet.count(f"{family.variable}:") >= 3, family.variable  # light, dark, print


def test_simulated_observers_say_so_once():
    models = pd.DataFrame({"observer": ["a", "simulated_b"], "paradigm": ["supervised", None], "simulated": [True] * 2})
    observers = Observers.of(models, {"people"})
    assert [observers.label(o) for o in ("people", "a", "simulated_b")] == [
        "simulated people", "a (simulated)", "simulated_b",
    ]  # fmt: skip
    assert observers.family("a").name == "simulated model"
    assert Observers.of(None).label("people") == "people"
    assert [f.name for f in observers.families(["a", "people"])] == ["simulated people", "simulated model"]
