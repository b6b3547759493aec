from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.stats import CellDesign


def test_a_table_becomes_codes(study):
    design, items = study.design, study.items
    np.testing.assert_array_equal(design.concepts_K[design.concept_N], items["concept"])
    np.testing.assert_array_equal(design.conditions_T[design.condition_N], items["condition"])
    images = items.assign(code=design.image_N).drop_duplicates(["concept", "image_id"])
    assert not images.duplicated(["concept", "code"]).any()
    np.testing.assert_array_equal(design.images_K, items.groupby("concept")["image_id"].nunique())
    np.testing.assert_array_equal(design.concept_C[design.cell_N], items["concept"])
    np.testing.assert_array_equal(design.condition_C[design.cell_N], items["condition"])
    assert design.items_C.sum() == len(design) == len(items)
    assert (design.items_C == 0).any()
    pairs = pd.DataFrame({"slot": design.slot_N, "image": items["concept"].astype(str) + items["image_id"]})
    assert len(pairs.drop_duplicates()) == pairs["slot"].nunique() == design.images_K.sum()


def test_equal_ids_under_different_concepts_are_different_images():
    design = CellDesign.from_columns(["a", "b", "b"], ["x", "x", "y"], [1, 1, 2])
    assert design.images_K.tolist() == [1, 2]
    assert len(set(design.slot_N.tolist())) == 3


def test_wrong_columns_are_named():
    with pytest.raises(ValueError, match="row 1 lacks a concept or a condition"):
        CellDesign.from_columns(["a", "b"], ["x", "y"], [1, np.nan])
    with pytest.raises(ValueError, match="row 0 lacks an image_id"):
        CellDesign.from_columns(["a", "b"], np.array([None, "y"], dtype=object), [1, 2])
    with pytest.raises(ValueError, match="equal lengths"):
        CellDesign.from_columns(["a", "b"], ["x"], [1, 2])
    zero = np.zeros(2, dtype=int)
    with pytest.raises(ValueError, match=r"condition_N\[1\] is 1, but there are 1 conditions"):
        CellDesign(zero, zero, np.array([0, 1]), np.array([4.0]))
    with pytest.raises(ValueError, match="increasing finite numbers"):
        CellDesign(zero, zero, zero, np.array([8.0, 4.0]))
    with pytest.raises(ValueError, match="lengths 2, 1, 2"):
        CellDesign(zero, zero[:1], zero, np.array([4.0]))
    with pytest.raises(ValueError, match=r"image_N\[0\] is -1"):
        CellDesign(zero, zero - 1, zero, np.array([4.0]))
    with pytest.raises(TypeError, match="integer codes"):
        CellDesign(zero, zero.astype(float), zero, np.array([4.0]))


def test_resampling_spread_makes_the_bootstrap_variance_unbiased():
    """Variance of a mean of J values, resampled, is (J - 1)/J of the unbiased one: known in closed form."""
    one = CellDesign.from_columns([0] * 5, list("abcde"), [4.0] * 5)
    assert one.resampling_spread**2 == pytest.approx(5 / 4)
    ragged = CellDesign.from_columns([0, 0, 0, 1, 1, 2], list("abcdef"), [4.0] * 6)
    assert ragged.resampling_spread**2 == pytest.approx((3 + 2) / (2 + 1))  # a single image has no spread to widen
    single = CellDesign.from_columns([0, 1], ["a", "b"], [4.0, 4.0])
    assert single.resampling_spread == 1.0


def test_members_sum_values_over_cells_conditions_and_concepts():
    design = CellDesign.from_columns([0, 0, 1, 1], ["x", "y", "z", "z"], [4.0, 4.0, 4.0, 8.0])
    value_N = np.array([1.0, 2.0, 4.0, 8.0])
    assert (design.in_cell_CN @ value_N).tolist() == [3, 0, 4, 8]
    assert (design.in_condition_TN @ value_N).tolist() == [7, 8]
    assert (design.in_concept_KN @ value_N).tolist() == [3, 12]
    assert design.in_cell_CN.sum(1).tolist() == design.items_C.tolist()
