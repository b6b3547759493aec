from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.doodles import CONCEPTS
from humanlike.data.doodles.hand import shaken, simplified
from humanlike.data.doodles.program import choose_elements, choose_strokes, expected_share, instance, progress
from humanlike.data.doodles.shapes import arc, curve, rect
from humanlike.rng import generator

TIMES = (4.0, 8.0, 16.0, 32.0)


def halved(bezier_42: np.ndarray) -> np.ndarray:
    """De Casteljau's halving."""
    a, b, c, d = bezier_42
    ab, bc, cd = (a + b) / 2, (b + c) / 2, (c + d) / 2
    abc, bcd = (ab + bc) / 2, (bc + cd) / 2
    middle = (abc + bcd) / 2
    return np.array([[a, ab, abc, middle], [middle, bcd, cd, d]])


def test_progress_is_the_logarithm_of_time() -> None:
    assert [progress(t) for t in TIMES] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    shares = [expected_share(t) for t in (1, 2, 4, 8, 16, 32, 64, 1e6)]
    assert shares == sorted(shares)
    assert shares[0] > 0
    assert shares[-1] <= 1
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="positive number of seconds"):
            progress(wrong)


def test_merging_halves_gives_the_whole_back() -> None:
    whole = curve((0.1, 0.2), (0.5, 0.1), (0.8, 0.6))
    halves = np.concatenate([halved(b) for b in whole])
    points, stroke = simplified(halves, np.zeros(4, dtype=np.int64))
    np.testing.assert_allclose(points, whole, atol=1e-12)
    assert stroke.tolist() == [0, 0]


def test_corners_and_circles_survive_simplification() -> None:
    square = rect(0, 0, 1, 1)
    np.testing.assert_array_equal(simplified(square, np.zeros(4, dtype=np.int64))[0], square)
    ring = arc(0, 0, 1, 1, 0, 360)
    once, stroke = simplified(ring, np.zeros(len(ring), dtype=np.int64))
    twice, _ = simplified(once, stroke)
    assert len(once) == len(twice) == 2
    np.testing.assert_allclose(twice[0, 0], ring[0, 0])
    assert np.ptp(twice[..., 1]) > 1


def test_strokes_are_not_merged_with_each_other() -> None:
    joined = np.concatenate([curve((0, 0), (1, 0)), curve((1, 0), (2, 0))])
    assert len(simplified(joined, np.array([0, 1]))[0]) == 2
    assert len(simplified(joined, np.array([0, 0]))[0]) == 1


def test_the_hand_keeps_chains_and_shakes_three_times_more_in_a_hurry() -> None:
    doodle = instance(CONCEPTS[7], 0, 0)
    same = doodle.stroke_K[1:] == doodle.stroke_K[:-1]
    moved = {}
    for seconds in (4.0, 32.0):
        residual = []
        for i in range(60):
            p = shaken(doodle.points_K42, doodle.stroke_K, seconds, generator(0, "hand", i))
            np.testing.assert_allclose(p[:-1, 3][same], p[1:, 0][same], atol=1e-12)
            # Second differences along a Bézier ignore the smooth misjudgement of the sheet and the stroke's place.
            residual.append(p[:, 3] - p[:, 0] - (doodle.points_K42[:, 3] - doodle.points_K42[:, 0]))
        moved[seconds] = np.sqrt(np.mean(np.square(residual)))
    assert 1.8 < moved[4.0] / moved[32.0] < 3.1


def test_less_time_means_fewer_elements_in_order_of_diagnosticity() -> None:
    chosen = {t: np.array([choose_elements(7, t, generator(0, "e", i)) for i in range(400)]) for t in TIMES}
    share = [chosen[t].mean() for t in TIMES]
    assert share == pytest.approx([expected_share(t) for t in TIMES], abs=0.04)
    frequency = chosen[8.0].mean(axis=0)
    assert (np.diff(frequency) < 0).all()
    assert all(chosen[t].any(axis=1).all() for t in TIMES)
    assert choose_elements(5, 1.0, generator(0, "e")).sum() >= 1


def test_strokes_belong_to_drawn_elements() -> None:
    for concept in CONCEPTS:
        doodle = instance(concept, 1, 0)
        drawn = choose_elements(len(doodle.elements), 8.0, generator(0, concept.name))
        kept = choose_strokes(doodle, drawn, 8.0)
        assert set(doodle.element_S[kept]) == set(np.flatnonzero(drawn))
        everything = choose_strokes(doodle, np.ones_like(drawn), 32.0)
        assert everything.all()


def test_instances_fit_the_canvas() -> None:
    for concept in CONCEPTS:
        for number in (None, 0, 1, 2):
            points = instance(concept, number, 3).points_K42
            assert points.min() >= 0.04 - 1e-9
            assert points.max() <= 0.96 + 1e-9
