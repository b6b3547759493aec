from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.stats import (
    CellDesign,
    ModelSwitches,
    PeopleSwitches,
    cell_metrics,
    image_weights,
    left_out_images,
    left_out_metrics,
    model_statistics,
    people_statistics,
)
from humanlike.stats import cell_bootstrap as module

REPLICATES = 6
MODEL = [
    ("accuracy", {}),
    ("entropy", {"entropy": "per_sketch", "estimator": "plugin"}),
    *[("entropy", {"entropy": "pooled", "estimator": e}) for e in ("plugin", "miller_madow", "chao_shen")],
    *[("snp", {"snp": v, "no_error_cell": n}) for v in ("paper", "exact") for n in ("one", "missing")],
]
PEOPLE = [
    *[("accuracy", {"accuracy": a}) for a in ("first_guess", "all_labels")],
    *[
        ("entropy", {"entropy": o, "estimator": e})
        for o in ("pooled", "per_sketch")
        for e in ("plugin", "miller_madow", "chao_shen")
    ],
    *[
        ("snp", {"snp": v, "snp_answers": a, "no_error_cell": n})
        for v in ("paper", "exact")
        for a in ("first", "all")
        for n in ("one", "missing")
    ],
]


def renamed(switch: dict) -> dict:
    return {("variant" if key == "snp" else key): value for key, value in switch.items()}


def label(value) -> str:
    return "-".join(value.values()) if isinstance(value, dict) else value


@pytest.fixture(scope="module")
def referee(study, naive_cells):
    weights = image_weights(study.design, REPLICATES, seed=5)
    return weights, [naive_cells(study, None), *[naive_cells(study, w) for w in weights]]


@pytest.mark.parametrize(("metric", "switch"), MODEL, ids=label)
def test_model_cells_equal_a_loop_over_replicates_and_cells(study, referee, metric, switch):
    weights, cells = referee
    side = model_statistics(study.proba_NL, study.target_N, study.ranks_LL, ModelSwitches(**switch))
    expected = np.array([c.model(metric, **renamed(switch)) for c in cells])
    np.testing.assert_allclose(cell_metrics(study.design, side)[metric], expected[:1], atol=1e-9)
    np.testing.assert_allclose(cell_metrics(study.design, side, weights)[metric], expected[1:], atol=1e-9)
    assert np.isnan(expected[0]).any()  # the study has an empty cell
    assert np.isfinite(expected).mean() > 0.2


@pytest.mark.parametrize(("metric", "switch"), PEOPLE, ids=label)
def test_people_cells_equal_a_loop_over_replicates_and_cells(study, referee, metric, switch):
    weights, cells = referee
    side = people_statistics(study.coded, study.target_N, study.ranks_LL, PeopleSwitches(**switch))
    expected = np.array([c.people(metric, **renamed(switch)) for c in cells])
    np.testing.assert_allclose(cell_metrics(study.design, side)[metric], expected[:1], atol=1e-9)
    np.testing.assert_allclose(cell_metrics(study.design, side, weights)[metric], expected[1:], atol=1e-9)
    assert np.isfinite(expected).mean() > 0.2


@pytest.mark.parametrize("rows", [1, 40, 100_000])
@pytest.mark.parametrize("replicates", [1, 3])
def test_blocks_do_not_change_the_values(study, monkeypatch, rows, replicates):
    switches = PeopleSwitches(entropy="pooled", snp="paper", snp_answers="all")
    side = people_statistics(study.coded, study.target_N, study.ranks_LL, switches)
    weights = image_weights(study.design, 10, seed=0)
    expected = cell_metrics(study.design, side, weights)
    monkeypatch.setattr(module, "_BLOCK_ELEMENTS", rows)
    monkeypatch.setattr(module, "_BLOCK_REPLICATES", replicates)
    for metric, value in cell_metrics(study.design, side, weights).items():
        np.testing.assert_array_equal(value, expected[metric])


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_laws_of_cell_metrics(make, seed):
    study = make(seed, missing_embeddings=seed % 2 == 0)
    design, other = study.design, study.permuted(seed)
    switches = PeopleSwitches(snp="paper", no_error_cell="one", entropy="pooled")
    side = people_statistics(study.coded, study.target_N, study.ranks_LL, switches)
    point = cell_metrics(design, side)
    # Weight 1 everywhere is the full sample, and a common factor changes nothing.
    ones = np.ones((2, *design.image_mask_KJ.shape), dtype=int)
    ones[1] = 3
    # The order of items and judgments changes nothing.
    permuted = people_statistics(other.coded, other.target_N, other.ranks_LL, switches)
    for metric, value in point.items():
        assert value.shape == (1, design.num_cells)
        for row in cell_metrics(design, side, ones)[metric]:
            np.testing.assert_allclose(row, value[0], atol=1e-12)
        np.testing.assert_allclose(cell_metrics(other.design, permuted)[metric], value, atol=1e-12)
    assert np.nanmin(point["accuracy"]) >= 0
    assert np.nanmax(point["accuracy"]) <= 1
    assert np.nanmin(point["entropy"]) >= 0
    assert np.nanmax(point["entropy"]) <= np.log(len(study.ranks_LL)) + 1e-12
    assert np.nanmin(point["snp"]) >= 0
    assert np.nanmax(point["snp"]) <= 1


def test_exact_snp_is_one_for_nearest_zero_for_farthest_and_half_for_uniform_errors():
    num_labels = 7
    ranks = (np.arange(num_labels)[None, :] - np.arange(num_labels)[:, None]) % num_labels
    design = CellDesign.from_columns([0] * 8, list(range(8)), [1.0, 1.0, *[2.0] * 6])
    proba = np.eye(num_labels)[[1, 1, 1, 2, 3, 4, 5, 6]]
    side = model_statistics(proba, np.zeros(8, dtype=int), ranks)
    np.testing.assert_allclose(cell_metrics(design, side)["snp"], [[1.0, 0.5]])
    far = model_statistics(np.eye(num_labels)[[6] * 8], np.zeros(8, dtype=int), ranks)
    np.testing.assert_allclose(cell_metrics(design, far)["snp"], [[0.0, 0.0]])


def test_two_labels_have_no_exact_snp_whatever_stands_for_a_cell_without_errors():
    design = CellDesign.from_columns([0, 0], [0, 1], [1.0, 2.0])
    ranks = np.array([[0, 1], [1, 0]])
    for no_error_cell in ("one", "missing"):
        switches = ModelSwitches(no_error_cell=no_error_cell)
        side = model_statistics(np.eye(2), np.zeros(2, dtype=int), ranks, switches)  # one error, then none
        assert np.isnan(cell_metrics(design, side)["snp"]).all()


def test_paper_snp_of_uniform_answers_has_the_published_bias():
    """For n distinct uniform positions the expected area is (n - 1)/(2n) + 1/(n + 1): .583 at 2, .527 at 16."""
    num_labels, cells, n = 4001, 400, 16
    rng = np.random.default_rng(0)
    ranks = np.zeros((num_labels, num_labels), dtype=np.int64)
    ranks[0] = np.arange(num_labels)
    proba = np.zeros((cells * n, num_labels), dtype=np.float32)
    proba[np.arange(cells * n), rng.integers(2, num_labels, cells * n)] = 1
    image = np.arange(cells * n)
    design = CellDesign(np.zeros(cells * n, dtype=int), image, np.repeat(np.arange(cells), n), np.arange(cells))
    side = model_statistics(proba, np.zeros(cells * n, dtype=int), ranks, ModelSwitches(snp="paper"))
    snp = cell_metrics(design, side)["snp"]
    expected = (n - 1) / (2 * n) + 1 / (n + 1)
    assert abs(snp.mean() - expected) < 4 * snp.std() / np.sqrt(cells)


def test_image_weights_resample_each_concepts_images(study):
    design = study.design
    weights = image_weights(design, 300, seed=1)
    assert weights.shape == (300, *design.image_mask_KJ.shape)
    np.testing.assert_array_equal(weights.sum(axis=2), np.tile(design.images_K, (300, 1)))
    assert (weights[:, ~design.image_mask_KJ] == 0).all()
    k = int(np.argmax(design.images_K))
    j = int(design.images_K[k])
    drawn = np.bincount(weights[:, k, 0], minlength=j + 1)
    expected = 300 * scipy.stats.binom.pmf(np.arange(j + 1), j, 1 / j)
    assert scipy.stats.chisquare(drawn[:3], expected[:3] * drawn[:3].sum() / expected[:3].sum()).pvalue > 1e-4


def test_image_weights_have_addresses(study):
    whole = image_weights(study.design, 200, seed=7)
    for start, count in [(0, 1), (63, 2), (100, 100), (199, 1)]:
        np.testing.assert_array_equal(image_weights(study.design, count, 7, start), whole[start : start + count])
    assert (image_weights(study.design, 200, seed=8) != whole).any()
    with pytest.raises(ValueError, match="replicates must be at least 1"):
        image_weights(study.design, 0, seed=7)


def test_each_image_is_left_out_once(study):
    design, switches = study.design, PeopleSwitches()
    concept_B, image_B = left_out_images(design)
    assert len(concept_B) == design.images_K[design.images_K > 1].sum()
    assert len({*zip(concept_B, image_B, strict=True)}) == len(concept_B)
    for side in (
        model_statistics(study.proba_NL, study.target_N, study.ranks_LL),
        people_statistics(study.coded, study.target_N, study.ranks_LL, switches),
    ):
        found = left_out_metrics(design, side)
        for b, (concept, image) in enumerate(zip(concept_B, image_B, strict=True)):
            weights = np.ones((1, *design.image_mask_KJ.shape), dtype=np.int16)
            weights[0, concept, image] = 0
            for metric, value_1C in cell_metrics(design, side, weights).items():
                np.testing.assert_allclose(found[metric][b], value_1C[0], rtol=0, atol=1e-12)


def test_wrong_input_is_named(study):
    side = model_statistics(study.proba_NL, study.target_N)
    assert np.isnan(cell_metrics(study.design, side)["snp"]).all()
    with pytest.raises(ValueError, match=r"must have shape \(B, 5, \d\)"):
        cell_metrics(study.design, side, np.ones((2, 5, 9)))
    with pytest.raises(ValueError, match="finite and not negative"):
        cell_metrics(study.design, side, -np.ones((2, *study.design.image_mask_KJ.shape)))
    with pytest.raises(ValueError, match="the statistics are of 2 items"):
        cell_metrics(study.design, model_statistics(study.proba_NL[:2], study.target_N[:2]))
    pooled = people_statistics(
        study.coded, study.target_N, None, PeopleSwitches(entropy="pooled", estimator="chao_shen")
    )
    with pytest.raises(ValueError, match="needs whole counts"):
        cell_metrics(study.design, pooled, np.full((1, *study.design.image_mask_KJ.shape), 0.5))
