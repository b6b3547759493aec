from __future__ import annotations

import numpy as np
import pytest

from humanlike.data.doodles import CONCEPTS, Drawer, Drawers, doodles
from humanlike.data.doodles.drawer import imagined, misplaced, thinned
from humanlike.data.doodles.extras import EXTRAS, choose_extras
from humanlike.data.doodles.program import instance
from humanlike.data.doodles.shapes import curve, leg, rect
from humanlike.rng import generator

LION = next(concept for concept in CONCEPTS if concept.name == "lion")


def people(variation: float, count: int = 300) -> list[Drawer]:
    return [Drawer.sampled(7, variation, generator(0, "who", i), Drawers()) for i in range(count)]


def test_without_variation_everybody_is_tidy() -> None:
    for who in people(0.0, 20):
        assert (who.clumsy, who.pace, who.detail, who.stick) == (0, 0, 1, False)
        assert (who.roundness, who.gap, who.shaky, who.retrace, who.extra) == (0, 0, 1, 0, 0)
        assert not who.habit_E.any()


def test_people_differ_as_the_record_says() -> None:
    of, crowd = Drawers(), people(1.0)
    assert np.mean([who.stick for who in crowd]) == pytest.approx(of.stick, abs=0.08)
    assert np.mean([who.roundness < 0 for who in crowd]) == pytest.approx(of.angular, abs=0.08)
    assert np.mean([who.roundness > 0 for who in crowd]) == pytest.approx(of.rounded, abs=0.08)
    assert np.mean([who.extra for who in crowd]) == pytest.approx(of.extra, abs=0.06)
    assert np.mean([who.retrace > 0 for who in crowd]) == pytest.approx(1 / 3, abs=0.08)
    assert np.std([who.habit_E for who in crowd]) == pytest.approx(of.habit, rel=0.1)
    assert np.std(np.log([who.shaky for who in crowd])) == pytest.approx(of.shaky, rel=0.15)
    assert all(1 - of.plain <= who.detail <= 1 for who in crowd)


def test_more_variation_bends_more() -> None:
    doodle = instance(LION, None, 0)
    element_K = doodle.element_S[doodle.stroke_K]
    low, high = doodle.points_K42.min(axis=(0, 1)), doodle.points_K42.max(axis=(0, 1))
    tidy = (doodle.points_K42 - (low + high) / 2) / (high - low).max()
    distance = []
    for variation in (0.0, 0.5, 1.0):
        off = []
        for i in range(20):
            who = Drawer.sampled(7, variation, generator(0, "p", i), Drawers(stick=0.0))
            p = imagined(doodle.points_K42, doodle.stroke_K, element_K, who, Drawers(), generator(0, "q", i))
            off.append(np.abs(p - tidy).mean())
        distance.append(np.mean(off))
    assert distance[0] == pytest.approx(0, abs=1e-12)
    assert 1.5 < distance[2] / distance[1] < 2.5


def test_groups_are_misplaced_each_as_a_whole() -> None:
    p = np.concatenate([rect(0, 0, 0.2, 0.2), rect(0.5, 0.5, 0.8, 0.6)])
    group = np.repeat([4, 1], 4)
    q = misplaced(p, group, 1.0, Drawers(growth=0.0, tilt=0.0), generator(0, "m"))
    for part in (slice(0, 4), slice(4, 8)):
        shift = (q - p)[part].reshape(-1, 2)
        np.testing.assert_allclose(shift, np.broadcast_to(shift[0], shift.shape), atol=1e-12)
    assert not np.allclose((q - p)[0, 0], (q - p)[4, 0])


def test_only_limbs_become_lines() -> None:
    limb, body = leg(0.2, 0.0, 0.4, 0.05), rect(-0.5, 0.0, 0.5, 0.1)
    p = thinned(np.concatenate([limb, body]), np.repeat([0, 1], [len(limb), 4]))
    assert np.ptp(p[: len(limb), :, 0]) == pytest.approx(0, abs=1e-9)
    np.testing.assert_array_equal(p[len(limb) :], body)
    bow = curve((0.0, 0.0), (0.2, 0.2), (0.4, 0.0))
    np.testing.assert_array_equal(thinned(bow, np.zeros(2, dtype=np.int64)), bow)


def test_additions_come_with_time_and_stay_on_the_sheet() -> None:
    number = {t: np.mean([len(choose_extras(0.6, t, generator(0, "x", i))) for i in range(500)]) for t in (4.0, 32.0)}
    assert number[4.0] < 0.2 < number[32.0]
    assert number[32.0] == pytest.approx(0.6, abs=0.1)
    for extra in EXTRAS:
        for i in range(20):
            added = extra.draw([rect(0.1, 0.1, 0.9, 0.97), rect(0.3, 0.3, 0.4, 0.4)], generator(0, "y", i))
            assert len(added) == extra.strokes
            points = np.concatenate(added)[:, [0, 3]]
            assert points.min() >= 0.02 - 1e-9
            assert points.max() <= 0.98 + 1e-9


def test_conditions_are_drawn_by_one_person_and_instances_by_many() -> None:
    assert instance(LION, 2, 0).drawer is instance(LION, 2, 0).drawer
    assert len({instance(LION, i, 0).drawer.shaky for i in range(16)}) == 16
    tidy = doodles(["lion", "taxi"], instances=2, judgments=0, variation=0.0)
    assert all(s.element is not None for i in range(len(tidy)) for s in tidy.images.drawing(i).strokes)
