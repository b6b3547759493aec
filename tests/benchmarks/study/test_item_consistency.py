from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import cohen_kappa_score

from humanlike.benchmarks.seva_agreement import first_of_each
from humanlike.benchmarks.seva_item_consistency import kappa_replicates
from humanlike.benchmarks.study.item_consistency import consistency_table, models_consistency
from humanlike.metrics.functional import error_consistency
from humanlike.stats import CellDesign, CodedResponses, image_weights
from humanlike.stats.crossed import participant_weights

PEOPLE = 7


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(4)
    concept, image, condition = (a.ravel() for a in np.indices((5, 4, 3)))
    design = CellDesign.from_columns(concept, image, condition)
    seen = np.argwhere(rng.random((PEOPLE, len(design))) < 0.7)
    seen = np.concatenate([seen, seen[:5]])  # some judged twice, in a random place
    seen = seen[rng.permutation(len(seen))]
    right = rng.random(len(seen)) < 0.3 + 0.2 * condition[seen[:, 1]]
    guess = np.where(right, concept[seen[:, 1]], 9)
    coded = CodedResponses(3 * seen[:, 0], seen[:, 1], guess[:, None])
    correct = {name: rng.random(len(design)) < 0.3 + 0.2 * condition for name in ("a", "b", "c")}
    return design, coded, concept, correct


def by_hand(study, name, weight_P, weight_N) -> float:
    """Items repeated as often as their image was drawn, κ per participant, mean with repeats of participants."""
    _, coded, target_N, correct = study
    answers: dict[int, dict[int, bool]] = {}
    for person, item, guess in zip(coded.participant_R, coded.item_R, coded.guess_RG[:, 0], strict=True):
        answers.setdefault(person, {}).setdefault(item, guess == target_N[item])
    values = []
    for place, person in enumerate(sorted(answers)):
        items = [i for i in answers[person] for _ in range(int(weight_N[i]))]
        model, own = ([table[i] for i in items] for table in (correct[name], answers[person]))
        kappa = error_consistency(torch.tensor(model), torch.tensor(own)).item() if items else np.nan
        values += [kappa] * int(weight_P[place])
    return float(np.nanmean(values))


@pytest.mark.parametrize("resample", ["images", "participants", "crossed"])
def test_replicates_equal_the_rebuilt_tables(study, resample):
    design, coded, target_N, correct = study
    drawn = kappa_replicates(correct, coded, target_N, design, resample, 5, seed=8)
    weights = np.ones((5, *design.image_mask_KJ.shape)) if resample == "participants" else image_weights(design, 5, 8)
    people = np.ones((5, PEOPLE)) if resample == "images" else participant_weights(PEOPLE, 5, 8)
    for name in correct:
        for b in range(5):
            weight_N = weights[b][design.concept_N, design.image_N]
            assert drawn[name][b] == pytest.approx(by_hand(study, name, people[b], weight_N), abs=1e-12)


def test_table_holds_estimate_interval_and_ceiling(study):
    design, coded, target_N, correct = study
    table = consistency_table(correct, coded, target_N, design, replicates=70).set_index("observer")
    for name in correct:
        whole = by_hand(study, name, np.ones(PEOPLE), np.ones(len(design)))
        row = table.loc[name]
        assert row["estimate"] == pytest.approx(whole, abs=1e-12)
        assert row["ci_low"] < row["estimate"] < row["ci_high"]
        assert row["n_replicates"] == 70
    assert table["ceiling"].nunique() == 1
    assert set(table["ceiling_kind"]) == {"pairs_mean"}


def test_models_with_each_other_as_scikit_learn_has_it(study):
    *_, correct = study
    matrix = models_consistency(correct)
    for a in correct:
        for b in correct:
            assert matrix.loc[a, b] == pytest.approx(cohen_kappa_score(correct[a], correct[b]), abs=1e-12)
    seen = {name: np.arange(len(c)) % 4 != place for place, (name, c) in enumerate(correct.items())}
    both = seen["a"] & seen["b"]
    wanted = cohen_kappa_score(correct["a"][both], correct["b"][both])
    assert models_consistency(correct, seen).loc["a", "b"] == pytest.approx(wanted, abs=1e-12)


def test_first_judgment_of_each_pair_is_kept():
    coded = CodedResponses(np.array([1, 0, 1, 0]), np.array([2, 5, 2, 4]), np.array([[7], [8], [9], [6]]))
    assert first_of_each(coded).tolist() == [3, 1, 0]
