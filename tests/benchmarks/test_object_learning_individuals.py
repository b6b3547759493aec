"""Single participants beside a model: numbers against scipy and brute force, and who counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from humanlike.benchmarks.object_learning_individuals import (
    against_best,
    individual_tables,
    participant_curves,
    participant_table,
)
from humanlike.benchmarks.object_learning_sweep_tables import NotPossibleError
from humanlike.data.object_learning import PeopleSessions

PAIRS = ("a,b", "c,d", "e,f", "g,h", "i,j", "k,l")
TRIALS = 40


@pytest.fixture(scope="module")
def people():
    """Five people of different ability who do all six subtasks, and one who does four."""
    rng, rows = np.random.default_rng(0), []
    for who, p in (("ann", 0.95), ("bob", 0.9), ("cy", 0.75), ("dee", 0.7), ("eve", 0.6), ("part", 0.8)):
        rows += [(who, s, rng.random(TRIALS) < p) for s in range(4 if who == "part" else 6)]
    rng.shuffle(rows)
    correct_ST = np.array([r[2] for r in rows]).astype(np.int8)
    none_ST = np.full(correct_ST.shape, -1)
    return PeopleSessions(
        correct_ST,
        np.array([r[1] for r in rows]),
        np.array([r[0] for r in rows]),
        none_ST,
        none_ST,
        none_ST > 0,
    )


@pytest.fixture(scope="module")
def model():
    return pd.DataFrame({"subtask": PAIRS, "accuracy": [0.7, 0.72, 0.74, 0.76, 0.78, 0.8]})


def test_tables_are_those_of_scipy_and_of_the_definition(people, model):
    table = participant_table(people, PAIRS)
    assert len(table) == 5 * 6 + 4
    one = table.query("participant == 'cy' and subtask == 'c,d'")["accuracy"].item()
    own = (people.participant_S == "cy") & (people.subtask_S == 1)
    assert one == pytest.approx(people.correct_ST[own].mean())
    found = individual_tables(table, model.iloc[::-1], permutations=400)
    rows = found["individuals"].set_index("participant")
    assert sorted(rows.index) == ["ann", "bob", "cy", "dee", "eve"]
    for name, row in rows.iterrows():
        mine = table.loc[table["participant"] == name, "accuracy"]
        test = ttest_ind(mine, model["accuracy"], equal_var=False, alternative="greater")
        assert (row["statistic"], row["p_value"]) == pytest.approx((test.statistic, test.pvalue))
        assert row["p_adjusted"] == pytest.approx(min(1, 5 * test.pvalue))
        assert row["std_error"] == pytest.approx(mine.sem())
    variation = found["individual_variation"].iloc[0]
    assert (variation["participants"], variation["did_all"]) == (6, 5)
    assert variation["variance"] == pytest.approx(rows["accuracy"].var())
    assert variation["p_value"] == pytest.approx(1 / 401)
    assert variation["variance_permuted"] < variation["variance"] / 3
    assert variation["better"] == rows["is_better"].sum() > 0
    assert variation["accuracy_better"] == pytest.approx(rows.loc[rows["is_better"], "accuracy"].mean())


def test_curves_are_means_over_subtasks_of_those_who_did_all(people):
    curves = participant_curves(people, len(PAIRS))
    assert set(curves["participant"]) == {"ann", "bob", "cy", "dee", "eve"}
    ann = curves.query("participant == 'ann'").sort_values("trial")["accuracy"]
    np.testing.assert_allclose(ann, people.correct_ST[people.participant_S == "ann"].mean(axis=0))
    assert participant_curves(people, 7).empty


def test_too_few_give_nothing_and_say_why(people, model):
    table = participant_table(people, PAIRS)
    assert individual_tables(table[table["participant"].isin(["ann", "part"])], model) == {}
    board = pd.DataFrame(
        {"experiment": "high_variation", "place": [1], "backbone": "n", "layer": "l", "rule": "square"}
    )
    with pytest.raises(NotPossibleError, match="one by one"):
        against_best(None, None, board)
    with pytest.raises(NotPossibleError, match="every subtask"):
        against_best(
            table, model.assign(experiment="high_variation", backbone="n", layer="other", rule="square"), board
        )
