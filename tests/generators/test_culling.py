"""Chords and slabs: the stated error holds, no pixel is lost, few are visited in vain."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.generators.culling import portions, rows_of, turns
from humanlike.generators.flattening import flatten, pull_back, segments_needed

SIZE = 48


def curves(seed: int, count: int, spread: float) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    centre = torch.rand(count, 1, 2, generator=g, dtype=torch.float64) * SIZE
    return centre + spread * torch.randn(count, 4, 2, generator=g, dtype=torch.float64)


def bezier(points: np.ndarray, t: np.ndarray) -> np.ndarray:
    p0, p1, p2, p3 = points
    t = t[:, None]
    return (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t**2 * p2 + t**3 * p3


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000), st.floats(0.5, 60), st.floats(0.01, 2))
def test_chords_stay_within_the_tolerance(seed, spread, tolerance):
    points = curves(seed, 1, spread)
    n = int(segments_needed(points, tolerance)[0])
    t = np.linspace(0, 1, 20 * n + 1)
    chords = bezier(points[0].numpy(), np.linspace(0, 1, n + 1))
    along = np.stack([np.interp(t, np.linspace(0, 1, n + 1), chords[:, axis]) for axis in (0, 1)], 1)
    assert np.linalg.norm(along - bezier(points[0].numpy(), t), axis=1).max() <= tolerance


def test_straight_lines_are_one_segment():
    ends = torch.rand(50, 2, 2) * 224
    t = torch.tensor([0, 1 / 3, 2 / 3, 1])[None, :, None]
    lines = ends[:, :1] * (1 - t) + ends[:, 1:] * t
    assert (segments_needed(lines, 0.05) == 1).all()


def test_gradients_of_ends_go_back_to_the_control_points():
    points = curves(0, 3, 10.0).requires_grad_()
    segments = flatten(points.detach(), 0.1)
    g = torch.Generator().manual_seed(1)
    start, end = (torch.randn(len(segments), 2, generator=g, dtype=torch.float64) for _ in range(2))
    total, s = 0.0, 0
    for c, n in enumerate(segments.count_C.tolist()):
        t = torch.linspace(0, 1, n + 1, dtype=torch.float64)[:, None]
        p0, p1, p2, p3 = points[c]
        vertices = (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t**2 * p2 + t**3 * p3
        total = total + (vertices[:-1] * start[s : s + n]).sum() + (vertices[1:] * end[s : s + n]).sum()
        s += n
    (expected,) = torch.autograd.grad(total, points)
    torch.testing.assert_close(pull_back(segments, start, end), expected)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.floats(0.0, 30), st.floats(0.3, 12))
def test_every_pixel_in_reach_meets_its_nearest_segment(seed, spread, radius):
    points = curves(seed, 2, spread)
    points[1, 0] = points[0, 3]  # the second curve goes on where the first one ends, around a sharp corner
    segments = flatten(points, 0.2)
    radius_S = torch.full((len(segments),), radius, dtype=torch.float64)
    rows = rows_of(segments, radius_S, turns(segments, torch.zeros(2, 1)), SIZE)
    a = torch.stack([segments.x_S, segments.y_S], 1).numpy()
    ab = (torch.stack([segments.tx_S, segments.ty_S], 1) * segments.length_S[:, None]).numpy()
    y, x = np.mgrid[:SIZE, :SIZE]
    p = np.stack([x, y], -1)[None] + 0.5
    ap = p - a[:, None, None]
    share = (ap * ab[:, None, None]).sum(-1) / np.maximum((ab**2).sum(-1), 1e-300)[:, None, None]
    distance = np.linalg.norm(ap - share.clip(0, 1)[..., None] * ab[:, None, None], axis=-1)
    visited = np.full_like(distance, np.inf)
    columns = (rows.segment_R, rows.y_R, rows.x_R, rows.count_R, rows.u0_R, rows.v0_R, rows.tx_R, rows.ty_R)
    for s, line, first, count, u0, v0, tx, ty in zip(*(c.tolist() for c in columns), strict=True):
        here = np.arange(first, first + count)
        u, v = u0 + tx * here, v0 - ty * here
        du = u - np.clip(u, 0, float(segments.length_S[s]))
        np.testing.assert_allclose(np.hypot(du, v), distance[s, line, here], atol=1e-9)
        visited[s, line, here] = distance[s, line, here]
    nearest = distance.min(0)
    np.testing.assert_allclose(visited.min(0)[nearest <= radius], nearest[nearest <= radius], atol=1e-9)


def test_few_pixels_are_visited_in_vain():
    points = curves(4, 20, 10.0)
    for tolerance in (0.2, 0.02, 0.002):
        segments = flatten(points, tolerance)
        radius_S = torch.full((len(segments),), 4.0, dtype=torch.float64)
        rows = rows_of(segments, radius_S, turns(segments, torch.arange(20)[:, None]), SIZE)
        length = float(segments.length_S.sum())
        # The band along the strokes and a square at each end, whatever the number of segments; corners add some.
        assert int(rows.count_R.sum()) < 1.35 * (length * 8.2 + 20 * 8.2 * 8.2)


def test_portions_cover_all_rows_within_the_limit():
    rng = np.random.default_rng(0)
    count, group = torch.tensor(rng.integers(1, 9, 200)), torch.tensor(np.sort(rng.integers(0, 30, 200)))
    for limit in (1, 20, 100, 10_000):
        parts = portions(count, group, limit)
        assert [p.start for p in parts] == [0, *(p.stop for p in parts[:-1])]
        assert parts[-1].stop == 200
        assert all(int(count[p].sum()) <= limit or p.stop == p.start + 1 for p in parts)
        if limit == 100:  # no group alone is larger
            assert all(group[p.start] != group[p.start - 1] for p in parts[1:])
