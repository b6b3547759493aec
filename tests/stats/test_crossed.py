from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from humanlike.rng import generator
from humanlike.stats import PeopleSwitches, cell_metrics, image_weights, people_statistics
from humanlike.stats.crossed import PeopleUnderWeights, participant_weights, resample_people

SWITCHES = [
    PeopleSwitches(accuracy=a, entropy=e, estimator=m, snp=v, snp_answers=w, no_error_cell=n)
    for (a, w, n), (e, m), v in itertools.product(
        [("first_guess", "first", "missing"), ("all_labels", "all", "one")],
        [("per_sketch", "plugin"), ("per_sketch", "chao_shen"), ("pooled", "miller_madow"), ("pooled", "chao_shen")],
        ["exact", "paper"],
    )
]


def naive(study, naive_cells, weight_P, weights_KJ, switches: PeopleSwitches) -> dict[str, np.ndarray]:
    """The table of judgments rebuilt: every row as often as its participant was drawn."""
    times = dict(zip(np.unique(study.judgments["participant"]), weight_P, strict=True))
    repeated = study.judgments.loc[study.judgments.index.repeat(study.judgments["participant"].map(times))]
    cells = naive_cells(dataclasses.replace(study, judgments=repeated.reset_index(drop=True)), weights_KJ)
    return {
        "accuracy": cells.people("accuracy", accuracy=switches.accuracy),
        "entropy": cells.people("entropy", entropy=switches.entropy, estimator=switches.estimator),
        "snp": cells.people(
            "snp", snp_answers=switches.snp_answers, variant=switches.snp, no_error_cell=switches.no_error_cell
        ),
    }


@pytest.mark.parametrize("switches", SWITCHES, ids=lambda s: f"{s.accuracy}-{s.entropy}-{s.estimator}-{s.snp}")
def test_every_replicate_equals_the_rebuilt_tables(study, naive_cells, switches):
    people = PeopleUnderWeights(study.design, study.coded, study.target_N, study.ranks_LL, switches)
    replicates = 2
    weights_BP = participant_weights(len(people.participants_P), replicates, seed=5)
    weights_BKJ = image_weights(study.design, replicates, seed=5)
    crossed, alone = people.cells(weights_BP, weights_BKJ), people.cells(weights_BP)
    for b in range(replicates):
        for got, images in ((crossed, weights_BKJ[b]), (alone, None)):
            wanted = naive(study, naive_cells, weights_BP[b], images, switches)
            for metric, value in wanted.items():
                np.testing.assert_allclose(got[metric][b], value, rtol=1e-12, atol=1e-12, err_msg=metric)


def test_weights_of_one_give_the_ordinary_cells(study):
    people = PeopleUnderWeights(study.design, study.coded, study.target_N, study.ranks_LL)
    ones_BP = np.ones((1, len(people.participants_P)))
    usual = cell_metrics(study.design, people_statistics(study.coded, study.target_N, study.ranks_LL))
    for metric, value in people.cells(ones_BP).items():
        np.testing.assert_allclose(value, usual[metric], rtol=1e-12)
    images = image_weights(study.design, 3, seed=1)
    weighted = cell_metrics(study.design, people_statistics(study.coded, study.target_N, study.ranks_LL), images)
    for metric, value in people.cells(np.repeat(ones_BP, 3, 0), images).items():
        np.testing.assert_allclose(value, weighted[metric], rtol=1e-12)


def test_order_of_items_and_judgments_does_not_matter(study):
    other = study.permuted(2)
    cells = [
        resample_people(PeopleUnderWeights(s.design, s.coded, s.target_N, s.ranks_LL), "crossed", 5, seed=3)
        for s in (study, other)
    ]
    for metric in cells[0]:
        np.testing.assert_allclose(cells[0][metric], cells[1][metric], rtol=1e-12)


def test_replicates_have_addresses_across_blocks(study):
    people = PeopleUnderWeights(study.design, study.coded, study.target_N, study.ranks_LL)
    whole = resample_people(people, "crossed", 70, seed=3)
    part = resample_people(people, "crossed", 8, seed=3, start=60)
    for metric in whole:
        np.testing.assert_array_equal(part[metric], whole[metric][60:68])
    weights = participant_weights(6, 130, seed=9)
    np.testing.assert_array_equal(participant_weights(6, 7, seed=9, start=62), weights[62:69])
    drawn = generator(9, "participant_bootstrap", 0).integers(6, size=(64, 6))
    np.testing.assert_array_equal(weights[3], np.bincount(drawn[3], minlength=6))


def test_participants_weights_are_multinomial():
    weights = participant_weights(40, 4000, seed=0)
    assert set(weights.sum(axis=1)) == {40}
    # binomial(40, 1/40): mean 1, variance 39/40
    assert weights.mean() == 1.0
    assert weights[:, 7].var() == pytest.approx(39 / 40, rel=0.1)


def test_crossed_variance_is_that_of_owen(study):
    """Crossed weights count what varies from judgment to judgment three times in the variance of a mean."""
    rng = np.random.default_rng(0)
    images, people, replicates = 60, 60, 2000
    noise = rng.standard_normal((images, people))
    row, column = (participant_weights(60, replicates, seed=s) for s in (1, 2))
    means = np.einsum("bi,ij,bj->b", row, noise, column, optimize=True) / (images * people)
    assert means.var() * images * people == pytest.approx(3, rel=0.15)


def test_sentences(study):
    people = PeopleUnderWeights(study.design, study.coded, study.target_N)
    with pytest.raises(ValueError, match="shape"):
        people.cells(np.ones((2, 1)))
    with pytest.raises(ValueError, match="not negative"):
        people.cells(-np.ones((1, len(people.participants_P))))
    with pytest.raises(ValueError, match="2 replicates of participants and 3 of images"):
        people.cells(np.ones((2, len(people.participants_P))), image_weights(study.design, 3, 0))
    with pytest.raises(ValueError, match="'participants' or 'crossed'"):
        resample_people(people, "images", 3, 0)
    with pytest.raises(ValueError, match="at least 1"):
        participant_weights(0, 3, 0)
    with pytest.raises(ValueError, match="entries"):
        PeopleUnderWeights(study.design, study.coded, study.target_N[:-1])
