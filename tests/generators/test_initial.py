"""Initial points: frequencies as the weights say, apart, never twice, each sketch by its own name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from humanlike.generators.initial import curves_from, sample_points, scattered_points


def test_the_first_point_is_drawn_in_proportion_to_the_weight():
    weight = torch.tensor([[0.1, 0.2], [0.3, 0.4]]).expand(2000, 2, 2)
    points = sample_points(weight, 1, seed=3, names=[str(i) for i in range(2000)])[:, 0]
    cell = (points[:, 1] > 0.5) * 2 + (points[:, 0] > 0.5)
    counts = np.bincount(cell.long().numpy(), minlength=4)
    assert stats.chisquare(counts, 2000 * np.array([0.1, 0.2, 0.3, 0.4])).pvalue > 0.001


def test_points_are_apart_as_long_as_there_is_room_and_never_equal():
    weight = torch.rand(2, 40, 40, generator=torch.Generator().manual_seed(0))
    points = sample_points(weight, 16, seed=0, names=["a", "b"], spacing=0.1)
    assert (torch.cdist(points, points) + torch.eye(16)).min() > 0.1
    all_of_them = sample_points(torch.ones(1, 3, 3), 9, seed=0, names=["a"], spacing=0.5)
    assert len(torch.unique(all_of_them[0], dim=0)) == 9


def test_points_lie_where_there_is_weight():
    weight = torch.zeros(1, 20, 20)
    weight[0, 5:9, 10:15] = 1.0
    x, y = sample_points(weight, 6, seed=0, names=["a"])[0].T
    assert ((x > 0.5) & (x < 0.75) & (y > 0.25) & (y < 0.45)).all()
    assert sample_points(torch.zeros(1, 4, 4), 3, seed=0, names=["blank"]).shape == (1, 3, 2)


def test_a_sketch_is_drawn_by_its_name_not_by_its_company():
    weight = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(0))
    names = ["a", "b", "c"]
    together = curves_from(sample_points(weight, 5, 7, names), 7, names)
    alone = curves_from(sample_points(weight[2:], 5, 7, ["c"]), 7, ["c"])
    assert torch.equal(together[2:], alone)
    assert not torch.equal(together, curves_from(sample_points(weight, 5, 8, names), 8, names))
    assert torch.equal(scattered_points(4, 0, names)[1], scattered_points(4, 0, ["b"])[0])


def test_curves_begin_at_their_points_and_stay_near():
    points = scattered_points(6, 0, ["a"])
    curves = curves_from(points, 0, ["a"], radius=0.05)
    assert torch.equal(curves[:, :, 0], points)
    assert (curves[:, :, 1:] - curves[:, :, :-1]).abs().max() <= 0.05
    assert ((points > 0.08) & (points < 0.92)).all()


@pytest.mark.parametrize(
    ("weight", "num", "names", "words"),
    [
        (torch.ones(2, 4, 4), 1, ["a"], "2 maps, 1 names"),
        (torch.ones(1, 2, 2), 5, ["a"], r"\[1, 4\], the number of pixels, got 5"),
        (torch.full((1, 2, 2), -1.0), 1, ["cat"], "sketch 'cat'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(weight, num, names, words):
    with pytest.raises(ValueError, match=words):
        sample_points(weight, num, 0, names)
