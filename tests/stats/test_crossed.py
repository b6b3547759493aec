from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from humanlike.rng import generator
from humanlike.stats import CodedResponses, PeopleSwitches, cell_metrics, image_weights, people_statistics
from humanlike.stats.crossed import (
    PeopleUnderWeights,
    fewer_people,
    over_participants,
    participant_weights,
    resample_people,
    with_participants,
)

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


def test_fewer_people_are_people_left_out(study):
    people = PeopleUnderWeights(study.design, study.coded, study.target_N, study.ranks_LL)
    number = len(people.participants_P)
    fewer = fewer_people(people, 70, seed=3, unit="participants")
    seen = set()
    for left_out in range(number):  # 8 participants: one of them is a fifth
        weights = np.ones((1, number))
        weights[0, left_out] = 0
        seen.add(people.cells(weights)["accuracy"].tobytes())
    assert {row.tobytes() for row in fewer["accuracy"]} <= seen
    again = fewer_people(people, 66, seed=3, unit="participants")
    np.testing.assert_array_equal(again["snp"], fewer["snp"][:66])
    judgments = fewer_people(people, 3, seed=3, unit="judgments")
    assert not np.array_equal(judgments["accuracy"], fewer["accuracy"][:3])
    with pytest.raises(ValueError, match="unit is"):
        fewer_people(people, 3, 0, "images")
    few = PeopleUnderWeights(
        study.design, CodedResponses(np.array([0]), np.array([0]), np.array([[1]])), study.target_N
    )
    with pytest.raises(ValueError, match="5 are needed"):
        fewer_people(few, 3, 0, "participants")


def test_what_participants_add_is_what_exceeds_their_judgments():
    """A mean of people × judgments with known components, images held."""
    rng = np.random.default_rng(0)
    people, each, replicates = 100, 20, 4000
    table = rng.normal(0, 1.0, people)[:, None] + rng.normal(0, 2.0, (people, each))

    def fewer(values: np.ndarray) -> np.ndarray:
        order = rng.random((replicates, values.size)).argsort(axis=1)[:, values.size // 5 :]
        return values.ravel()[order].mean(axis=1)

    by_person, by_judgment = fewer(table.mean(axis=1)), fewer(table)
    # The classical standard error of a mean, from the people's own means.
    assert over_participants(1.0, by_person).mean() == pytest.approx(1.0)
    assert over_participants(1.0, by_person).std() == pytest.approx(table.mean(axis=1).std() / 10, rel=0.06)
    images = rng.normal(5.0, 0.3, replicates)
    added = with_participants(images, by_person, by_judgment)
    between = table.mean(axis=1).var() / people - table.var() / table.size
    assert added.var() - images.var() == pytest.approx(between, rel=0.25)
    assert added.mean() == pytest.approx(images.mean())
    np.testing.assert_allclose(with_participants(images, by_judgment * 0, by_judgment), images)
