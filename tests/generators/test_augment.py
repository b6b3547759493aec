"""Views against SciPy's interpolation, torchvision's perspective and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage
from torchvision.transforms.functional import InterpolationMode, perspective

from humanlike.generators.augment import CORNERS, Views, homography, warped


def picture(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_homography_takes_its_corners_where_they_belong():
    target = CORNERS + np.random.default_rng(0).uniform(-0.2, 0.2, (4, 2))
    moved = np.c_[CORNERS, np.ones(4)] @ homography(CORNERS, target).T
    assert np.allclose(moved[:, :2] / moved[:, 2:], target, atol=1e-12)


def test_a_homography_is_scikit_images():
    transform = pytest.importorskip("skimage.transform")
    target = CORNERS + np.random.default_rng(1).uniform(-0.2, 0.2, (4, 2))
    theirs = transform.ProjectiveTransform.from_estimate(CORNERS, target).params
    assert np.allclose(homography(CORNERS, target), theirs / theirs[2, 2], atol=1e-9)


def test_views_are_bilinear_interpolation_by_scipy():
    x = picture(2, 3, 12, 15)
    matrices = Views(3, 0.6, (0.6, 0.9), plain=False).homographies(seed=5, step=2)
    found = warped(x, matrices, background=0.7)
    for v, matrix in enumerate(matrices.numpy()):
        yy, xx = np.mgrid[:12, :15]
        place = np.stack([(xx + 0.5) / 15, (yy + 0.5) / 12, np.ones(xx.shape)], axis=-1) @ matrix.T
        at = [place[..., 1] / place[..., 2] * 12 - 0.5, place[..., 0] / place[..., 2] * 15 - 0.5]
        for b in range(2):
            for c in range(3):
                plane = np.pad(x[b, c].numpy(), 2, constant_values=0.7)
                expected = ndimage.map_coordinates(plane, [a + 2 for a in at], order=1, cval=0.7)
                assert np.allclose(found[v, b, c], expected, atol=1e-9)


def test_a_perspective_is_torchvisions():
    x = picture(1, 1, 32, 32).float()
    start = [[0, 0], [31, 0], [31, 31], [0, 31]]
    end = [[4, 2], [28, 5], [30, 27], [1, 29]]
    theirs = perspective(x - 1, start, end, InterpolationMode.BILINEAR) + 1
    # There a corner counts from the edge of the first pixel, whatever its documentation says of centres.
    ours = warped(x, torch.from_numpy(homography(np.array(end) / 32, np.array(start) / 32))[None])[0]
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_gradients_are_those_of_finite_differences():
    x = picture(1, 1, 6, 6).requires_grad_()
    matrices = Views(2, 0.5, (0.8, 1.0), plain=False).homographies(0, 0)
    assert torch.autograd.gradcheck(lambda x: warped(x, matrices), x)


def test_views_depend_on_seed_and_step_and_not_on_the_company():
    views = Views(4, plain=False)
    x = picture(3, 1, 16, 16).float()
    seen = views(x, seed=1, step=7)
    assert torch.equal(seen[:, 1:2], views(x[1:2], seed=1, step=7))
    assert torch.equal(seen, views(x, seed=1, step=7))
    assert not torch.equal(seen, views(x, seed=1, step=8))
    assert not torch.equal(seen[0], seen[1])
    assert views.homographies(1, 7)[:2].equal(Views(2, plain=False).homographies(1, 7))


def test_a_view_without_change_is_the_canvas():
    x = picture(2, 1, 8, 8)
    assert torch.allclose(Views(1, 0.0, (1, 1), plain=False)(x, 0, 0)[0], x, atol=1e-12)
    assert torch.equal(Views(num=0, plain=True)(x, 0, 0)[0], x)
    seen = Views(num=2, plain=True)(x, 0, 0)
    assert len(seen) == 3
    assert torch.allclose(seen[0], x, atol=1e-12)


def test_a_blank_sheet_stays_blank():
    assert torch.allclose(Views(num=8, distortion=0.9)(torch.ones(1, 1, 16, 16), 0, 0), torch.ones(()))


@pytest.mark.parametrize(
    "wrong", [{"num": 0, "plain": False}, {"distortion": 1.0}, {"crop": (0.9, 0.5)}, {"crop": (0.0, 0.5)}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=f"views.{next(iter(wrong))}"):
        Views(**wrong)
