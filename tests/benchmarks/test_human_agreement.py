"""Scores held against people: counted by hand, a simulated study of the published size, and scores compared."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from humanlike.benchmarks.human_agreement import AgreementSettings, human_agreement
from humanlike.benchmarks.survey_items import choose_sketches, choose_triples
from humanlike.data.survey_responses import SurveyResponses
from humanlike.reports.agreement_figures import agreement_figure

QUICK = AgreementSettings(replicates=200, splits=50)
COUNTS = {"participants_excluded": 0, "participants_incomplete": 0, "judgments_excluded": 0}


def responses_of(kind, table):
    counts = {**COUNTS, "participants": table["participant"].nunique(), "judgments": len(table)}
    return SurveyResponses(kind, table, pd.DataFrame(), "f", counts)


def scored(count, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"sketch_id": [f"s{i:03d}" for i in range(count)], "concept": "owl"})
    return table.assign(score=rng.uniform(-1, 1, count))


def ranked(items, score, people, chance_of, seed=0):
    """A table of people's orders: the score's order with a chance of one's own, else another order at random."""
    rng = np.random.default_rng(seed)
    orders = list(itertools.permutations(range(3)))[1:]
    rows = []
    for p in range(people):
        for item in items:
            best_first = sorted(item.sketch_ids, key=lambda s: -score[s])
            if rng.random() >= chance_of(p):
                best_first = [best_first[i] for i in orders[rng.integers(5)]]
            rows += [(f"P{p:02d}", item.item, s, float(rank), 2.0) for rank, s in enumerate(best_first, 1)]
    return pd.DataFrame(rows, columns=["participant", "item", "sketch_id", "rank", "seconds"])


@pytest.fixture(scope="module")
def study():
    """27 people × 160 triples, 87.8% of whose orders are the score's."""
    table = scored(200)
    score = table.set_index("sketch_id")["score"]
    items = choose_triples(table, 160).items
    rng = np.random.default_rng(5)
    own = 0.878 + rng.permutation(np.linspace(-0.08, 0.08, 27))
    return items, score, ranked(items, score, 27, lambda p: own[p])


def test_a_small_ranking_counted_by_hand():
    # a > b > c by score. P1 gives abc, P2 gives bac: 1/2 accepted, 5/6 of pairs, τ = (1 + 1/3)/2, ρ = (1 + 1/2)/2.
    table = pd.DataFrame(
        {"participant": ["P1"] * 3 + ["P2"] * 3, "item": "t", "sketch_id": list("abcabc"), "rank": [1, 2, 3, 2, 1, 3]}
    )
    scores = pd.DataFrame({"sea": [0.9, 0.1, -0.5], "flat": [0.2, 0.2, 0.1]}, index=list("abc"))
    found = human_agreement(responses_of("ranking", table), scores, QUICK)
    for measure, value in {"accepted": 1 / 2, "concordance": 5 / 6, "kendall": 2 / 3, "spearman": 3 / 4}.items():
        assert found.value("sea", measure) == pytest.approx(value)
    assert np.isnan(found.value("flat", "accepted"))
    assert found.value("flat", "concordance") == 1
    assert "2 judgment(s) cannot accept or reject flat" in " ".join(found.flags)
    assert "2 participant(s) only" in " ".join(found.flags)
    row = found.agreement.iloc[0]
    assert row["chance"] == pytest.approx(1 / 6)
    assert row["ceiling"] == 0
    assert row["ceiling_high"] == 0.5
    assert found.tables["items"].iloc[0][["order", "least_gap"]].tolist() == ["a > b > c", pytest.approx(0.6)]
    with pytest.raises(KeyError, match="no 'kappa' of 'sea'"):
        found.value("sea", "kappa")


def test_a_study_of_the_published_size_recovers_its_agreement(study):
    _items, score, table = study
    found = human_agreement(responses_of("ranking", table), score.to_frame("sea"), AgreementSettings(seed=1))
    row = found.agreement.iloc[0]
    # counted without the package: an order is accepted where scores fall along the ranks
    sorted_scores = table.assign(s=table["sketch_id"].map(score)).sort_values(["participant", "item", "rank"])
    accepted = sorted_scores.groupby(["participant", "item"])["s"].apply(lambda s: s.is_monotonic_decreasing)
    assert row["value"] == pytest.approx(accepted.mean())
    assert row["n"] == 27 * 160
    assert row["value"] == pytest.approx(0.878, abs=0.01)
    assert row["ci_low"] < 0.878 < row["ci_high"]
    assert 0.02 < row["ci_high"] - row["ci_low"] < 0.08
    assert row["std_error"] == pytest.approx((row["ci_high"] - row["ci_low"]) / 3.92, rel=0.35)
    # the others' most frequent order is the score's, so people reach what the score reaches
    assert row["ceiling"] == pytest.approx(row["value"], abs=0.01)
    assert row["ceiling"] <= row["ceiling_high"]
    people = found.tables["participants"].set_index("participant")["accepted"]
    pd.testing.assert_series_equal(people, accepted.groupby("participant").mean(), check_names=False)
    assert found.tables["items"]["accepted"].mean() == pytest.approx(row["value"])


def test_random_people_agree_as_by_chance(study):
    items, score, _ = study
    table = ranked(items, score, 27, lambda p: 1 / 6, seed=2)
    row = human_agreement(responses_of("ranking", table), score.to_frame("sea"), QUICK).agreement.iloc[0]
    assert row["ci_low"] < row["chance"] < row["ci_high"]
    assert row["ceiling"] < 0.25


def test_nothing_depends_on_the_order_of_rows(study):
    _, score, table = study
    one = human_agreement(responses_of("ranking", table), score.to_frame("sea"), QUICK)
    other = human_agreement(
        responses_of("ranking", table.sample(frac=1, random_state=3)), score.to_frame("sea").iloc[::-1], QUICK
    )
    pd.testing.assert_frame_equal(one.agreement, other.agreement)
    pd.testing.assert_frame_equal(one.tables["items"], other.tables["items"])


def test_two_scores_are_compared_on_the_same_resamples(study):
    _, score, table = study
    noisy = score + np.random.default_rng(1).normal(0, 0.3, len(score))
    scores = pd.DataFrame({"sea": score, "same": score * 2, "noisy": noisy})
    compared = human_agreement(responses_of("ranking", table), scores, QUICK).tables["comparisons"]
    own = compared[compared["measure"] == "accepted"].set_index(["a", "b"])
    assert own.loc[("sea", "same"), ["difference", "ci_low", "ci_high", "p_value"]].tolist() == [0, 0, 0, 1]
    assert own.loc[("sea", "noisy"), "p_adjusted"] < 0.001
    assert own.loc[("sea", "noisy"), "ci_low"] > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.iloc[:-1], r"'P1' ordered 2 sketches of item 'u', but 3 are ordered"),
        (lambda t: t.replace({"sketch_id": {"c": "z"}}), "not among the scores, for example 'z'"),
        (lambda t: t.assign(rank=[1, 2, 2, 1, 2, 3]), r"ranks of judgment 0 are \[1.0, 2.0, 2.0\]"),
        (lambda t: t.assign(participant=["P1"] * 3 + ["P2"] * 3, item="t", sketch_id=list("abcabd")), "two surveys"),
    ],
)
def test_contradictions_are_refused(change, said):
    table = pd.DataFrame(
        {"participant": "P1", "item": ["t"] * 3 + ["u"] * 3, "sketch_id": list("abcabc"), "rank": [1, 2, 3] * 2}
    )
    scores = pd.DataFrame({"sea": [0.9, 0.1, -0.5, 0.2]}, index=list("abcd"))
    with pytest.raises(ValueError, match=said):
        human_agreement(responses_of("ranking", change(table)), scores, QUICK)
    with pytest.raises(ValueError, match="there is no score"):
        human_agreement(responses_of("ranking", table), scores[[]], QUICK)


@pytest.fixture(scope="module")
def rating_study():
    """37 people × 88 sketches; a person's rating is the score, a leaning of their own, and noise."""
    table = scored(300)
    score = table.set_index("sketch_id")["score"]
    ids = choose_sketches(table, 88).table["sketch_id"]
    rng = np.random.default_rng(9)
    value = 4 + 1.5 * score[ids].to_numpy() + rng.normal(0, 0.5, (37, 1)) + rng.normal(0, 1, (37, 88))
    rows = [(f"P{p}", s, s, float(v)) for p in range(37) for s, v in zip(ids, value[p], strict=True)]
    return score, pd.DataFrame(rows, columns=["participant", "item", "sketch_id", "rating"])


def test_ratings_against_scipy(rating_study):
    score, table = rating_study
    found = human_agreement(responses_of("rating", table), score.to_frame("sea"), QUICK)
    mean = table.groupby("sketch_id")["rating"].mean()
    own = score[mean.index]
    for measure, function in {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}.items():
        row = found.agreement[found.agreement["measure"] == measure].iloc[0]
        assert row["value"] == pytest.approx(function(own, mean).statistic)
        assert row["ci_low"] < row["value"] < row["ci_high"] <= 1
    reliability = found.tables["reliability"].set_index("measure")["value"]
    # split halves estimate the same reliability of the mean as ICC(3,k)
    assert reliability["spearman_brown"] == pytest.approx(reliability["icc3k"], abs=0.01)
    ceiling = found.agreement["ceiling"].iloc[0]
    assert ceiling == pytest.approx(np.sqrt(reliability["spearman_brown"]))
    assert found.value("sea", "pearson_corrected") == pytest.approx(found.value("sea", "pearson") / ceiling)
    bins = found.tables["bins"]
    assert bins["sketches"].tolist() == [22] * 4
    assert bins["mean_rating"].is_monotonic_increasing
    quarter = own.rank() > 66
    assert bins["mean_rating"].iloc[-1] == pytest.approx(mean[quarter].mean())
    assert (bins["ci_low"] < bins["mean_rating"]).all()
    person = table[table["participant"] == "P4"].set_index("sketch_id")["rating"]
    expected = spearmanr(person, score[person.index]).statistic
    people = found.tables["participants"].set_index("participant")
    assert people.loc["P4", "spearman_sea"] == pytest.approx(expected)


def test_missing_ratings_and_scores_are_left_out_and_said(rating_study):
    score, table = rating_study
    partial = score.copy()
    partial[table["sketch_id"].iloc[0]] = np.nan
    found = human_agreement(responses_of("rating", table.iloc[5:]), partial.to_frame("sea"), QUICK)
    said = " ".join(found.flags)
    assert "5 rating(s) of a participant × sketch are missing" in said
    assert "1 rated sketch(es) have no sea" in said
    assert set(found.tables["reliability"]["measure"]) == {"split_half", "spearman_brown"}
    assert found.agreement["n"].tolist() == [87] * 4


def test_one_person_alone_has_values_and_no_intervals(rating_study, study):
    score, table = rating_study
    one = human_agreement(responses_of("rating", table[table["participant"] == "P3"]), score.to_frame("sea"), QUICK)
    assert one.value("sea", "spearman") > 0.5
    assert one.agreement["ci_low"].isna().all()
    _, score, table = study
    one = human_agreement(responses_of("ranking", table[table["participant"] == "P03"]), score.to_frame("sea"), QUICK)
    assert one.value("sea", "accepted") > 0.7
    assert one.agreement[["ci_low", "std_error", "ceiling"]].isna().all(axis=None)


def test_ratings_that_are_all_equal_and_too_many_bins_are_said(rating_study):
    score, table = rating_study
    flat = human_agreement(responses_of("rating", table.assign(rating=4.0)), score.to_frame("sea"), QUICK)
    assert np.isnan(flat.value("sea", "spearman"))
    assert "Nothing can be said of sea: mean ratings, or its scores of the sketches, are all equal." in flat.flags
    many = human_agreement(responses_of("rating", table), score.to_frame("sea"), replace(QUICK, bins=89))
    assert "bins" not in many.tables
    assert "88 sketch(es) with sea cannot fill 89 bins, which are left out (--bins)." in many.flags


@pytest.mark.parametrize("kind", ["ranking", "rating"])
def test_a_score_that_nothing_has_gives_nothing_and_breaks_nothing(kind, study, rating_study):
    table = study[2] if kind == "ranking" else rating_study[1]
    scores = (study[1] if kind == "ranking" else rating_study[0]).to_frame("sea").assign(empty=np.nan)
    found = human_agreement(responses_of(kind, table), scores, QUICK)
    empty = found.agreement[found.agreement["score"] == "empty"]
    assert empty[["value", "ci_low", "ci_high", "std_error"]].isna().all(axis=None)
    assert (empty["n"] == 0).all()
    assert found.value("sea", "spearman") > 0.5
    assert agreement_figure(found).axes
