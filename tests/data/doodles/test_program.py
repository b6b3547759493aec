from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.doodles import CONCEPTS
from humanlike.data.doodles.hand import on_the_sheet, shaken, simplified, styled, trimmed
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


def chosen_mask(num_elements: int, seconds: float, rng: np.random.Generator) -> np.ndarray:
    mask = np.zeros(num_elements, dtype=bool)
    mask[choose_elements(num_elements, seconds, rng)] = True
    return mask


def test_less_time_means_fewer_elements_in_order_of_diagnosticity() -> None:
    chosen = {t: np.array([chosen_mask(7, t, generator(0, "e", i)) for i in range(400)]) for t in TIMES}
    share = [chosen[t].mean() for t in TIMES]
    assert share == pytest.approx([expected_share(t) for t in TIMES], abs=0.04)
    frequency = chosen[8.0].mean(axis=0)
    assert (np.diff(frequency) < 0).all()
    assert all(chosen[t].any(axis=1).all() for t in TIMES)
    assert len(choose_elements(5, 1.0, generator(0, "e"))) >= 1


def test_strokes_belong_to_drawn_elements_in_their_order() -> None:
    for concept in CONCEPTS:
        doodle = instance(concept, 1, 0)
        order = choose_elements(len(doodle.elements), 8.0, generator(0, concept.name), doodle.drawer)
        kept = choose_strokes(doodle, order, 8.0)
        assert list(dict.fromkeys(doodle.element_S[kept])) == list(order)
        tidy = instance(concept, 1, 0, variation=0.0)
        everything = choose_strokes(tidy, np.arange(len(tidy.elements)), 32.0)
        assert len(everything) == len(tidy.element_S)


def test_instances_fit_the_canvas() -> None:
    for concept in CONCEPTS:
        for number in (None, 0, 1, 2):
            points = instance(concept, number, 3).points_K42
            assert points.min() >= 0.04 - 1e-9
            assert points.max() <= 0.96 + 1e-9


def test_trimming_keeps_the_middle_of_a_stroke() -> None:
    whole = curve((0.1, 0.2), (0.5, 0.1), (0.8, 0.6), (0.7, 0.9))
    cut = trimmed(whole, np.zeros(3, dtype=np.int64), 0.05, generator(0, "trim"))
    np.testing.assert_array_equal(cut[1], whole[1])
    np.testing.assert_allclose(cut[0, 3], whole[0, 3], atol=1e-12)
    np.testing.assert_allclose(cut[-1, 0], whole[-1, 0], atol=1e-12)
    assert 0 < np.linalg.norm(cut[-1, 3] - whole[-1, 3]) < 0.2
    np.testing.assert_allclose(
        trimmed(whole, np.zeros(3, dtype=np.int64), 0.0, generator(0, "trim")), whole, atol=1e-12
    )


def test_styles_move_handles_only() -> None:
    square, stroke = rect(0, 0, 1, 1), np.zeros(4, dtype=np.int64)
    rounded = styled(square, stroke, 1.0)
    np.testing.assert_array_equal(rounded[:, [0, 3]], square[:, [0, 3]])
    # Smooth where two sides meet: the handles on both sides of a joint lie on one line.
    before, after = rounded[:-1, 3] - rounded[:-1, 2], rounded[1:, 1] - rounded[1:, 0]
    np.testing.assert_allclose(before, after, atol=1e-12)
    ring = arc(0, 0, 1, 1, 0, 360)
    angular = styled(ring, np.zeros(len(ring), dtype=np.int64), -1.0)
    np.testing.assert_allclose(angular[:, 1], (2 * ring[:, 0] + ring[:, 3]) / 3, atol=1e-12)
    assert styled(ring, np.zeros(len(ring), dtype=np.int64), 0.0) is ring


def test_what_leaves_the_sheet_is_put_back() -> None:
    inside = curve((0.2, 0.3), (0.6, 0.5))
    np.testing.assert_allclose(on_the_sheet(inside), inside, atol=1e-12)
    np.testing.assert_allclose(np.diff(on_the_sheet(inside + 0.7), axis=1), np.diff(inside, axis=1), atol=1e-12)
    for p in (inside + 0.7, inside * 4 - 1):
        back = on_the_sheet(p)
        assert back.min() >= 0.03 - 1e-9
        assert back.max() <= 0.97 + 1e-9
