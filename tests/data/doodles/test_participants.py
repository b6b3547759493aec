from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2, spearmanr

from humanlike.data.doodles import Observer, choice_probability, doodles, simulate_responses
from humanlike.data.doodles.participants import mind
from humanlike.types import GUESS_COLUMNS, Sketches


def by_hand(data: Sketches, row: int, who: Observer) -> np.ndarray:
    """The model of the docstring with loops over everything that can happen."""
    knowledge = mind(data.labels, who)
    target = int(data.target_N[row])
    item = data.table.iloc[row]
    table = data.elements[data.elements["sketch_id"] == item["sketch_id"]]
    drawn = list(table["element"][table["drawn"]])
    column = {e: v for v, e in enumerate(knowledge.vocabulary)}
    total = np.zeros(len(data.labels))
    for acuity in who.acuity:
        log_odds = who.base + who.gain * math.log2(item["condition"] / 4) / 3 + knowledge.legibility_L[target] + acuity
        p = 1 / (1 + math.exp(-log_odds))
        for detected in itertools.product([False, True], repeat=len(drawn)):
            seen = {e for e, d in zip(drawn, detected, strict=True) if d}
            weight = math.prod(p if d else 1 - p for d in detected) / len(who.acuity)
            alarms = [(None, 1 - who.false_alarm)]
            alarms += [(knowledge.vocabulary[c], who.false_alarm / who.num_common) for c in knowledge.common]
            for alarm, chance in alarms:
                believed = seen | ({alarm} if alarm else set())
                utility = [
                    knowledge.base_L[label] + sum(knowledge.weight_VL[column[e], label] for e in believed)
                    for label in range(len(data.labels))
                ]
                odds = [math.exp(u - max(utility)) for u in utility]
                total += weight * chance * np.array(odds) / sum(odds)
    return total


def test_exact_distribution_by_hand(small: Sketches) -> None:
    exact = choice_probability(small)
    for row in (0, 1, 18, 37, 54):
        np.testing.assert_allclose(exact[row], by_hand(small, row, Observer()), atol=1e-12)
    np.testing.assert_allclose(exact.sum(axis=1), 1, atol=1e-12)
    assert (exact > 0).all()


def test_evidence_is_bayes(small: Sketches) -> None:
    """Base and weights reproduce Σ log p over seen and log(1 - p) over unseen elements."""
    who = Observer(borrowed=0.0, decisiveness=0.7)
    knowledge = mind(small.labels, who)
    p = 1 / (1 + np.exp(-knowledge.weight_VL.T / who.decisiveness))
    np.testing.assert_allclose(knowledge.base_L, who.decisiveness * np.log(1 - p).sum(axis=1), atol=1e-10)
    lion = p[small.labels.index("lion")]
    expected = who.chance + (1 - 2 * who.chance) * who.first
    assert lion[knowledge.vocabulary.index("mane")] == pytest.approx(expected)
    assert lion[knowledge.vocabulary.index("chimney")] == pytest.approx(who.chance)


def test_first_guesses_follow_the_exact_distribution() -> None:
    data = doodles(concepts=6, instances=1, conditions=[4, 16], judgments=0)
    exact = choice_probability(data)
    answered = simulate_responses(data, judgments=2000, seed=5)
    assert answered.responses is not None
    counts = answered.responses.table.groupby(["sketch_id", "guess_1"]).size().unstack(fill_value=0)
    counts_NL = counts.reindex(index=data.table["sketch_id"], columns=list(data.labels), fill_value=0).to_numpy()
    expected = 2000 * exact
    usable = expected > 5
    statistic = (((counts_NL - expected) ** 2 / expected) * usable).sum()
    freedom = usable.sum() - len(data)
    assert chi2.sf(statistic, freedom) > 1e-3
    np.testing.assert_allclose(counts_NL / 2000, exact, atol=0.05)


def test_table_of_answers(demo: Sketches) -> None:
    assert demo.responses is not None
    assert demo.responses.simulated
    table = demo.responses.table
    assert (table.groupby("sketch_id").size() == 13).all()
    assert table["participant"].str.startswith("simulated-").all()
    guesses = table[list(GUESS_COLUMNS)].to_numpy()
    missing = np.array([[g is None for g in row] for row in guesses[::50]])
    assert not missing[:, 0].any()
    assert (missing[:, :-1] <= missing[:, 1:]).all()
    assert 0.05 < missing[:, 1].mean() < 0.5
    for row in guesses[::50]:
        given = [g for g in row if g is not None]
        assert len(set(given)) == len(given)
        assert set(given) <= set(demo.labels)
    joined = table.merge(demo.table[["sketch_id", "concept", "image_id"]])
    assert not joined.duplicated(["participant", "concept"]).any()


def test_population_looks_like_recognition(demo: Sketches) -> None:
    p = choice_probability(demo)
    rows = np.arange(len(demo))
    table = demo.table.assign(accuracy=p[rows, demo.target_N], entropy=-(p * np.log(p)).sum(axis=1))
    means = table.groupby("condition")[["accuracy", "entropy"]].mean()
    assert (np.diff(means["accuracy"]) > 0.08).all()
    assert (np.diff(means["entropy"]) < -0.3).all()
    assert 0.12 < means["accuracy"].iloc[0] < 0.3
    assert 0.6 < means["accuracy"].iloc[-1] < 0.85
    cells = table.groupby(["condition", "concept"])["accuracy"].mean()
    assert (cells.groupby("condition").std() > 0.1).all()
    assert (table.groupby(["concept", "condition"])["accuracy"].std() > 0).mean() > 0.9


def test_errors_are_semantically_near(demo: Sketches) -> None:
    p = choice_probability(demo)
    rows = np.arange(len(demo))
    p[rows, demo.target_N] = 0
    space = demo.semantic_space
    unit = space / np.linalg.norm(space, axis=1, keepdims=True)
    cosine = unit @ unit.T
    off = p / p.sum(axis=1, keepdims=True)
    chosen = (off * cosine[demo.target_N]).sum(axis=1)
    chance = (cosine.sum(axis=1) - 1) / (len(cosine) - 1)
    for t in (4, 8, 16, 32):
        here = (demo.table["condition"] == t).to_numpy()
        assert chosen[here].mean() > chance[demo.target_N][here].mean() + 0.03
    confusion = np.stack([off[demo.target_N == c].mean(axis=0) for c in range(len(cosine))])
    off_diagonal = ~np.eye(len(cosine), dtype=bool)
    assert spearmanr(confusion[off_diagonal], cosine[off_diagonal]).statistic > 0.2


def test_people_are_reproducible_and_depend_on_the_seed(small: Sketches) -> None:
    same = simulate_responses(small, 12, seed=0)
    other = simulate_responses(small, 12, seed=1)
    assert small.responses is not None
    assert same.responses is not None
    assert other.responses is not None
    assert same.responses.table.equals(small.responses.table)
    assert not other.responses.table.equals(small.responses.table)
    assert other.flags == ("simulated_participants",)


def test_selection_keeps_the_exact_distribution_of_its_sketches(small: Sketches) -> None:
    rows = np.arange(1, len(small), 3)
    np.testing.assert_array_equal(choice_probability(small.select(rows)), choice_probability(small)[rows])


def test_two_labels_leave_two_guesses() -> None:
    data = doodles(concepts=["lion", "taxi"], instances=1, judgments=12)
    assert data.responses is not None
    assert data.responses.table["guess_3"].isna().all()


def test_faults_are_named(small: Sketches) -> None:
    from dataclasses import replace

    with pytest.raises(ValueError, match="no table of elements"):
        choice_probability(replace(small, elements=None))
    with pytest.raises(ValueError, match="judgments must be 1 or more"):
        simulate_responses(small, 0)
    strange = replace(small, labels=(*small.labels, "zeppelin"), semantic_space=None)
    with pytest.raises(ValueError, match="zeppelin"):
        choice_probability(strange)
    with pytest.raises(ValueError, match="Observer: false_alarm, chance out of range"):
        Observer(false_alarm=1.5, chance=0.0)
    with pytest.raises(ValueError, match="one level or more"):
        Observer(acuity=())
