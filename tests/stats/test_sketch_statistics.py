from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from humanlike.stats import (
    CodedResponses,
    ModelAnswers,
    ModelSwitches,
    PeopleSwitches,
    cell_metrics,
    model_statistics,
    people_statistics,
)


def test_model_answers_take_the_lowest_index_on_ties_and_any_scale():
    answers = ModelAnswers.from_proba(np.array([[0.2, 0.4, 0.4], [3.0, 0.0, 1.0], [0.0, 0.0, 7.0]]))
    assert answers.top1_N.tolist() == [1, 0, 2]
    expected = [scipy.stats.entropy(p) for p in ([0.2, 0.4, 0.4], [3, 0, 1], [0, 0, 7])]
    np.testing.assert_allclose(answers.entropy_N, expected, atol=1e-12)


def test_rows_without_an_answer_are_left_out():
    proba = np.array([[0.9, 0.1], [np.nan, np.nan], [0.3, 0.7]])
    with pytest.raises(ValueError, match="row 1 of proba_NL"):
        ModelAnswers.from_proba(proba)
    answers = ModelAnswers.from_proba(proba, answered_N=np.array([True, False, True]))
    side = model_statistics(answers, np.array([0, 0, 0]), np.array([[0, 1], [1, 0]]))
    assert side.accuracy_weight_N.tolist() == [1, 0, 1]
    assert side.accuracy_sum_N.tolist() == [1, 0, 0]
    assert side.entropy.weight_N.tolist() == [1, 0, 1]
    assert side.neighbours.answered_N.tolist() == [1, 0, 1]


def test_compact_answers_equal_probabilities(study):
    direct = model_statistics(study.proba_NL, study.target_N, study.ranks_LL)
    compact = ModelAnswers(study.proba_NL.argmax(axis=1), np.array([scipy.stats.entropy(p) for p in study.proba_NL]))
    other = model_statistics(compact, study.target_N, study.ranks_LL)
    for metric, value in cell_metrics(study.design, direct).items():
        np.testing.assert_allclose(cell_metrics(study.design, other)[metric], value, atol=1e-12)


@pytest.mark.parametrize(
    "switches", [PeopleSwitches(), PeopleSwitches("all_labels", "pooled", "chao_shen", "paper", "all", "one")], ids=str
)
def test_rows_choose_judgments(study, switches):
    coded = study.coded
    mask = np.random.default_rng(0).random(len(coded)) < 0.6
    part = CodedResponses(coded.participant_R[mask], coded.item_R[mask], coded.guess_RG[mask])
    expected = cell_metrics(study.design, people_statistics(part, study.target_N, study.ranks_LL, switches))
    for rows in (mask, np.flatnonzero(mask)):
        side = people_statistics(coded, study.target_N, study.ranks_LL, switches, rows)
        for metric, value in cell_metrics(study.design, side).items():
            np.testing.assert_allclose(value, expected[metric], atol=1e-12)


def test_repeated_rows_count_as_often(study):
    coded = study.coded
    rows = np.random.default_rng(1).integers(0, len(coded), len(coded))
    resampled = CodedResponses(coded.participant_R[rows], coded.item_R[rows], coded.guess_RG[rows])
    switches = PeopleSwitches(entropy="pooled", snp="paper")
    expected = cell_metrics(study.design, people_statistics(resampled, study.target_N, study.ranks_LL, switches))
    side = people_statistics(coded, study.target_N, study.ranks_LL, switches, rows)
    for metric, value in cell_metrics(study.design, side).items():
        np.testing.assert_allclose(value, expected[metric], atol=1e-12)


def test_answers_without_an_embedding_are_counted_and_left_out(study):
    side = people_statistics(study.coded, study.target_N, study.ranks_LL, PeopleSwitches(snp_answers="all"))
    embedded = study.ranks_LL.max(axis=1) > 0
    expected = sum(
        not (embedded[study.target_N[item]] and embedded[g])
        for item, guesses in zip(study.judgments["item"], study.judgments["guesses"], strict=True)
        for g in guesses
    )
    assert side.unranked_answers == expected > 0
    assert side.neighbours.num_labels == embedded.sum()
    assert people_statistics(study.coded, study.target_N).unranked_answers == 0


def test_a_judgment_without_a_first_guess_counts_only_where_all_guesses_do():
    coded = CodedResponses(np.array([0, 1]), np.array([0, 0]), np.array([[-1, 1], [0, -1]]))
    first = people_statistics(coded, np.array([0]))
    assert first.accuracy_sum_N.tolist() == [1.0]
    every = people_statistics(coded, np.array([0]), switches=PeopleSwitches(accuracy="all_labels"))
    assert (every.accuracy_sum_N.tolist(), every.accuracy_weight_N.tolist()) == ([1.0], [2.0])


def test_wrong_input_is_named(study):
    with pytest.raises(ValueError, match=r"PeopleSwitches.snp must be one of \['paper', 'exact'\], got 'papre'"):
        PeopleSwitches(snp="papre")
    with pytest.raises(ValueError, match="use entropy='pooled' or estimator='plugin'"):
        ModelSwitches(estimator="chao_shen")
    with pytest.raises(ValueError, match="target_N has 2 entries"):
        model_statistics(study.proba_NL, study.target_N[:2])
    with pytest.raises(ValueError, match="label indices"):
        model_statistics(study.proba_NL, study.target_N.astype(float))
    with pytest.raises(ValueError, match="ranks_LL must be square"):
        model_statistics(study.proba_NL, study.target_N, study.ranks_LL[:, :5])
    with pytest.raises(ValueError, match=r"judgment .* is of item"):
        people_statistics(study.coded, study.target_N[:3])
    with pytest.raises(ValueError, match="one entry per judgment, got 1, 2, 2"):
        CodedResponses(np.array([0]), np.array([0, 1]), np.array([[0], [1]]))
    with pytest.raises(ValueError, match=r"guess_RG of judgment 1 is \[-2\]"):
        CodedResponses(np.array([0, 0]), np.array([0, 1]), np.array([[0], [-2]]))
    with pytest.raises(ValueError, match="integer array"):
        CodedResponses(np.array([0]), np.array([0]), np.array([[0.0]]))
    with pytest.raises(ValueError, match="rows must lie in"):
        people_statistics(study.coded, study.target_N, rows=np.array([10_000]))
    with pytest.raises(ValueError, match="mask of judgments"):
        people_statistics(study.coded, study.target_N, rows=np.array([True]))
