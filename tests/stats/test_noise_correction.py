"""Noise-corrected R² on the doodles twin, whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.benchmarks.seva_people import code_people
from humanlike.data.doodles.dataset import doodles
from humanlike.data.doodles.participants import choice_probability, simulate_responses
from humanlike.data.doodles.twin import sample_labels, simulate_model
from humanlike.rng import generator
from humanlike.stats import (
    CellDesign,
    PeopleSwitches,
    SplitHalf,
    alignment_r2,
    cell_metrics,
    image_weights,
    model_statistics,
    people_statistics,
    split_half_consistency,
)
from humanlike.stats.consistency import HalfResamples
from humanlike.stats.crossed import participant_weights
from humanlike.stats.noise_correction import noise_corrected
from humanlike.stats.sketch_statistics import MeanEntropy, SketchStatistics

B = 60


@pytest.fixture(scope="module")
def twin():
    data = doodles(concepts=24, instances=6, judgments=0)
    design = CellDesign.from_columns(data.target_N, data.table["image_id"], data.table["condition"])
    return data, design


def people_of(data, judgments: int, seed: int):
    answers = simulate_responses(data, judgments, seed).responses
    return code_people(answers, data.table["sketch_id"].tolist(), data.labels).responses


@pytest.mark.parametrize("judgments", [3, 6])
def test_it_recovers_the_true_alignment_of_a_model_whose_cells_have_no_noise(twin, judgments):
    """`simulate_model(alignment=.7)` states its true R² for these images; answers of few people hide it."""
    data, design = twin
    truth, rows = 0.7, np.arange(len(data))
    proba_NL = simulate_model(data, truth, seed=1)
    share_N = proba_NL[rows, data.target_N]  # the expected share of correct answers in place of answers
    exact = SketchStatistics(share_N, np.ones(len(data)), MeanEntropy(share_N, np.ones(len(data))), None)
    model_BC = cell_metrics(design, exact)["accuracy"]
    raw, corrected = [], []
    for study in range(16):
        coded = people_of(data, judgments, study)
        people_BC = cell_metrics(design, people_statistics(coded, data.target_N))["accuracy"]
        half = split_half_consistency(design, coded, data.target_N, splits=10, seed=study)["accuracy"]
        raw.append(alignment_r2(people_BC, model_BC, design.condition_C)[0])
        corrected.append(noise_corrected(raw[-1], np.array([]), half).value)
    assert np.mean(raw) < truth - 0.02
    assert abs(np.mean(corrected) - truth) < abs(np.mean(raw) - truth) / 2
    assert np.mean(corrected) == pytest.approx(truth, abs=0.02)  # standard error .007


def test_it_recovers_what_a_model_of_hard_labels_explains_of_peoples_true_cells(twin):
    """The model's own noise is not corrected: the truth is the R² of people's true cells on the labels it gave."""
    data, design = twin
    people_NL = choice_probability(data)
    true_N = people_NL[np.arange(len(data)), data.target_N]
    exact = SketchStatistics(true_N, np.ones(len(data)), MeanEntropy(true_N, np.ones(len(data))), None)
    true_BC = cell_metrics(design, exact)["accuracy"]
    labels_N = sample_labels(simulate_model(data, 0.9, seed=1), seed=2)
    answers_NL = np.eye(len(data.labels))[labels_N]
    model_BC = cell_metrics(design, model_statistics(answers_NL, data.target_N))["accuracy"]
    truth = alignment_r2(true_BC, model_BC, design.condition_C)[0]
    raw, corrected = [], []
    for study in range(16):
        coded = people_of(data, 3, study)
        people_BC = cell_metrics(design, people_statistics(coded, data.target_N))["accuracy"]
        half = split_half_consistency(design, coded, data.target_N, splits=10, seed=study)["accuracy"]
        raw.append(alignment_r2(people_BC, model_BC, design.condition_C)[0])
        corrected.append(noise_corrected(raw[-1], np.array([]), half).value)
    assert abs(np.mean(corrected) - truth) < abs(np.mean(raw) - truth) / 2


@pytest.mark.parametrize("kind", ["images", "participants", "crossed"])
def test_replicates_of_the_reliability_are_those_of_the_halves(twin, kind):
    data, design = twin
    coded = people_of(data, 4, 0)
    people = len(coded.participants_P)
    resamples = HalfResamples(
        None if kind == "participants" else image_weights(design, B, seed=0),
        None if kind == "images" else participant_weights(people, B, seed=0),
    )
    splits = 7
    half = split_half_consistency(design, coded, data.target_N, splits=splits, seed=3, resamples=resamples)["accuracy"]
    plain = split_half_consistency(design, coded, data.target_N, splits=splits, seed=3)["accuracy"]
    np.testing.assert_array_equal(half.correlation_S, plain.correlation_S)
    assert half.correlation_B.shape == (B,)
    # One replicate by hand: its split's halves, their judgments repeated as often as their participants were drawn.
    b, split = 33, 33 * splits // B
    first_P = generator(3, "split_half", split).permutation(people) < people // 2
    person_R = np.searchsorted(coded.participants_P, coded.participant_R)
    weight_P = np.ones(people, int) if resamples.participants_BP is None else resamples.participants_BP[b]
    images = None if resamples.images_BKJ is None else resamples.images_BKJ[[b]]
    cells = [
        cell_metrics(
            design,
            people_statistics(
                coded, data.target_N, rows=np.repeat(np.arange(len(coded)), (weight_P * half_P)[person_R])
            ),
            images,
        )["accuracy"][0]
        for half_P in (first_P, ~first_P)
    ]
    known = np.isfinite(cells[0]) & np.isfinite(cells[1])
    by_hand = np.corrcoef(cells[0][known], cells[1][known])[0, 1]
    assert half.correlation_B[b] == pytest.approx(by_hand, abs=1e-12)
    # The noise of a cell is Σ 1/m over its sketches, m the judgments of a sketch; a sketch without any is left out.
    noise = []
    for half_P in (first_P, ~first_P):
        judged = np.bincount(coded.item_R[half_P[person_R]], minlength=len(data)).astype(float)
        seen = judged[judged > 0]
        noise.append(np.sum(1 / seen) / len(seen) ** 2 / (np.sum(1 / np.bincount(coded.item_R)) / len(data) ** 2))
    times = np.mean(noise)
    assert times == pytest.approx(half.noise_ratio_S[split], rel=1e-12)
    assert times > 2.2  # four judgments a sketch, two in a half on average, but often one or none
    own_r = half.correlation_S[split]
    brown, own = (times * r / (1 + (times - 1) * r) for r in (by_hand, own_r))
    assert half.reliability_B[b] == pytest.approx(half.reliability + brown - own, abs=1e-12)


def test_with_a_noise_ratio_of_two_it_is_spearman_browns(twin):
    data, design = twin
    coded = people_of(data, 4, 0)
    pooled = PeopleSwitches(accuracy="all_labels", entropy="pooled")
    halves = split_half_consistency(design, coded, data.target_N, None, pooled, splits=3)
    for metric in ("accuracy", "entropy"):
        assert halves[metric].noise_ratio_S is None
        np.testing.assert_allclose(halves[metric].reliability_S, halves[metric].spearman_brown_S, rtol=1e-14)


def test_a_low_reliability_gives_nothing_and_replicates_must_match():
    low = SplitHalf(np.array([0.0]), np.array([0.04]), np.array([0.04, 0.5]))
    corrected = noise_corrected(0.3, np.array([0.3, 0.3]), low)
    assert np.isnan(corrected.value)
    assert np.isnan(corrected.replicates_B).tolist() == [True, False]
    assert np.isnan(corrected.interval.low)
    with pytest.raises(ValueError, match="replicates"):
        noise_corrected(0.3, np.array([0.3]), low)
    with pytest.raises(ValueError, match="not resampled"):
        _ = SplitHalf(np.array([0.0]), np.array([0.5])).reliability_B
    with pytest.raises(ValueError, match="need weights"):
        len(HalfResamples())
