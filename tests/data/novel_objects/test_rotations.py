from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.transform import Rotation

from humanlike.data.novel_objects.rotations import Angles, pose_angles, pose_matrix, turn, uniform_pose

DEGREES = st.floats(0, 359.99)


@given(rx=st.floats(0, 180), ry=DEGREES, rz=DEGREES)
@settings(deadline=None, max_examples=30)
def test_pose_is_scipys_intrinsic_zxz_rotation(rx, ry, rz):
    expected = Rotation.from_euler("ZXZ", [rz, rx, ry], degrees=True).as_matrix()
    np.testing.assert_allclose(pose_matrix(Angles(rx, ry, rz)), expected, atol=1e-12)


@given(rx=st.sampled_from([0.0, 1e-7, 30.0, 90.0, 180.0]), ry=DEGREES, rz=DEGREES)
@settings(deadline=None, max_examples=30)
def test_angles_give_their_matrix_back(rx, ry, rz):
    matrix = pose_matrix(Angles(rx, ry, rz))
    np.testing.assert_allclose(pose_matrix(pose_angles(matrix)), matrix, atol=1e-7)


def test_turns_are_scipys():
    for axis in "xyz":
        np.testing.assert_allclose(turn(axis, 37), Rotation.from_euler(axis, 37, degrees=True).as_matrix(), atol=1e-15)


def test_uniform_poses_are_haar_distributed():
    rng = np.random.default_rng(1)
    matrices = np.array([pose_matrix(uniform_pose(rng)) for _ in range(4000)])
    assert np.abs(matrices.mean(axis=0)).max() < 4 * np.sqrt(1 / 3 / 4000)
    np.testing.assert_allclose((matrices**2).mean(axis=0), 1 / 3, atol=0.03)
    # The angle of a uniform rotation has the density (1 - cos θ) / π on [0, π].
    angle = np.arccos(np.clip((np.trace(matrices, axis1=1, axis2=2) - 1) / 2, -1, 1))
    assert stats.kstest(angle, lambda t: (t - np.sin(t)) / np.pi).pvalue > 1e-3
    # A pose turned by a fixed rotation has the same law.
    turned = matrices @ Rotation.from_rotvec([0.3, -1.2, 0.7]).as_matrix()
    assert stats.kstest(turned[:, 2, 2], stats.uniform(-1, 2).cdf).pvalue > 1e-3
