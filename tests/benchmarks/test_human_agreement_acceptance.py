"""Acceptance of shown orders: counted row by row, intervals and errors by brute force, and people who always agree."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.human_agreement import AgreementSettings, human_agreement
from humanlike.benchmarks.human_agreement_acceptance import difference_std_error
from humanlike.benchmarks.survey_items import choose_triples, in_score_order
from humanlike.data.survey_responses import SurveyResponses
from humanlike.reports.agreement_figures import agreement_figure
from humanlike.reports.agreement_page import sentences
from humanlike.stats.two_way_bootstrap import crossed_weights

COUNTS = {"participants_excluded": 0, "participants_incomplete": 0, "judgments_excluded": 0}
QUICK = AgreementSettings(replicates=60, seed=4)
OTHERS = list(itertools.permutations(range(3)))[1:]


def responses_of(table):
    counts = {**COUNTS, "participants": table["participant"].nunique(), "judgments": len(table) // 3}
    return SurveyResponses("acceptance", table, pd.DataFrame(), "f", counts)


def shown(items, people, yes_of, seed=0, controls=0.25):
    """A table of answers: a person's chance of yes to an item's order and, with the share of controls, to another."""
    rng = np.random.default_rng(seed)
    rows = []
    for p in range(people):
        for item, sketches in items:
            control = rng.random() < controls
            order = [sketches[i] for i in OTHERS[rng.integers(5)]] if control else sketches
            yes = bool(rng.random() < yes_of(p, control))
            rows += [(f"P{p:02d}", item, s, yes, float(place), 2.0) for place, s in enumerate(order, 1)]
    return pd.DataFrame(rows, columns=["participant", "item", "sketch_id", "accepted", "shown", "seconds"])


@pytest.fixture(scope="module")
def study():
    """27 people × 160 triples: 88% accept the score's order, 45% any other."""
    rng = np.random.default_rng(0)
    sketches = pd.DataFrame({"sketch_id": [f"s{i:03d}" for i in range(200)], "concept": "owl"})
    sketches["score"] = rng.uniform(-1, 1, 200)
    items = [(i.item, list(i.sketch_ids)) for i in in_score_order(choose_triples(sketches, 160))]
    lean = rng.uniform(-0.1, 0.1, 27)
    return sketches.set_index("sketch_id")["score"], shown(items, 27, lambda p, c: (0.45 if c else 0.88) + lean[p])


def judged(table, score):
    """(participant, item) → (shown in the score's order, accepted), one row after another."""
    found = {}
    for key, own in table.groupby(["participant", "item"]):
        values = [score[s] for s in own.sort_values("shown")["sketch_id"]]
        found[key] = (all(a > b for a, b in itertools.pairwise(values)), bool(own["accepted"].iloc[0]))
    return found


def share(found, ordered, weight=None):
    weight = weight or dict.fromkeys(found, 1)
    total = sum(weight[k] for k, (o, _) in found.items() if o == ordered)
    return sum(weight[k] for k, (o, yes) in found.items() if o == ordered and yes) / total


def test_shares_intervals_and_errors_against_brute_force(study):
    score, table = study
    table = table[table["item"] <= "t040"]
    result = human_agreement(responses_of(table), score.to_frame("sea"), QUICK)
    found = judged(table, score)
    agreement = result.agreement.set_index("measure")
    values = {"accepted": share(found, True), "controls_accepted": share(found, False)}
    values["difference"] = values["accepted"] - values["controls_accepted"]
    for measure, value in values.items():
        assert agreement.loc[measure, "value"] == pytest.approx(value, abs=1e-12)
    assert agreement["n"].tolist() == [sum(o for o, _ in found.values()), sum(not o for o, _ in found.values()), 1080]

    people, items = sorted({p for p, _ in found}), sorted({i for _, i in found})
    drawn = crossed_weights(len(people), len(items), QUICK.replicates, QUICK.seed)
    replicates = {measure: [] for measure in values}
    for b in range(QUICK.replicates):
        times_p = dict(zip(people, drawn.participants_BP[b], strict=True))
        times_i = dict(zip(items, drawn.items_BI[b], strict=True))
        weight = {(p, i): times_p[p] * times_i[i] for p, i in found}
        one, other = share(found, True, weight), share(found, False, weight)
        for measure, value in zip(replicates, (one, other, one - other), strict=True):
            replicates[measure].append(value)
    for measure, own in replicates.items():
        ends = agreement.loc[measure, ["ci_low", "ci_high"]].tolist()
        assert ends == pytest.approx(np.quantile(own, [0.025, 0.975]).tolist(), abs=1e-12)

    # clusters by person, by item, and single judgments, each counted with n / (n - 1), from a list of moves
    moves = {}
    for key, (ordered, yes) in found.items():
        mean = values["accepted" if ordered else "controls_accepted"]
        size = agreement.loc["accepted" if ordered else "controls_accepted", "n"]
        moves[key] = (1 if ordered else -1) * (yes - mean) / size

    def variance(group):
        sums = {}
        for key, move in moves.items():
            sums[group(key)] = sums.get(group(key), 0) + move
        return sum(s**2 for s in sums.values()) * len(sums) / (len(sums) - 1)

    parts = variance(lambda k: k[0]), variance(lambda k: k[1]), variance(lambda k: k)
    expected = max(parts[0] + parts[1] - parts[2], *parts[:2]) ** 0.5
    assert agreement.loc["difference", "std_error"] == pytest.approx(expected, rel=1e-9)

    per_item = result.tables["items"].set_index("item").loc["t007"]
    own = {k: v for k, v in found.items() if k[1] == "t007"}
    assert per_item["accepted"] == pytest.approx(share(own, True))
    person = result.tables["participants"].set_index("participant").loc["P05"]
    own = {k: v for k, v in found.items() if k[0] == "P05"}
    assert person["controls_accepted"] == pytest.approx(share(own, False))
    assert person["difference"] == pytest.approx(share(own, True) - share(own, False))


def test_the_error_of_a_difference_is_its_spread_over_studies():
    rng = np.random.default_rng(3)
    differences, errors = [], []
    for _ in range(300):
        lean = rng.normal(0, 0.4, (20, 1)) + rng.normal(0, 0.4, (1, 30))
        control = rng.random((20, 30)) < 0.25
        value = np.where(control, 0.0, 1.0) + lean + rng.normal(0, 0.5, (20, 30))
        one, other = np.where(control, np.nan, value), np.where(control, value, np.nan)
        differences.append(np.nanmean(one) - np.nanmean(other))
        errors.append(difference_std_error(one, other))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(differences, ddof=1), rel=0.15)
    # leanings stand in both parts and cancel, which two errors added would not see
    assert np.mean(errors) < 0.08
    assert np.isnan(difference_std_error(one, np.full_like(one, np.nan)))


def test_a_study_of_the_published_size_recovers_what_people_do(study):
    score, table = study
    result = human_agreement(responses_of(table), score.to_frame("sea"))
    agreement = result.agreement.set_index("measure")
    for measure, truth in {"accepted": 0.88, "controls_accepted": 0.45, "difference": 0.43}.items():
        row = agreement.loc[measure]
        assert row["ci_low"] < truth < row["ci_high"]
        assert row["value"] == pytest.approx(truth, abs=3 * row["std_error"])
    assert agreement["chance"].isna().tolist() == [True, True, False]
    said = sentences(result)[0]
    assert "published for SEA are 0.878 and 0.880" in said
    assert f"{agreement.loc['controls_accepted', 'value']:.3f} (" in said
    assert len(agreement_figure(result).axes[0].get_xticks()) == 2
    mixed = table.sample(frac=1, random_state=2)
    again = human_agreement(responses_of(mixed), score.to_frame("sea").iloc[::-1])
    pd.testing.assert_frame_equal(again.agreement, result.agreement)


def test_who_agrees_with_everything_makes_no_difference(study):
    score, table = study
    result = human_agreement(responses_of(table.assign(accepted=True)), score.to_frame("sea"), QUICK)
    agreement = result.agreement.set_index("measure")
    assert agreement["value"].tolist() == [1, 1, 0]
    assert agreement.loc["difference", ["ci_low", "ci_high", "std_error"]].tolist() == [0, 0, 0]


def test_a_score_of_another_order_makes_its_own_controls_and_is_compared(study):
    score, table = study
    scores = pd.DataFrame({"sea": score, "reverse": -score, "flat": 0.0})
    result = human_agreement(responses_of(table), scores, QUICK)
    found = judged(table, -score)
    assert result.value("reverse", "accepted") == pytest.approx(share(found, True))
    assert result.value("reverse", "controls_accepted") == pytest.approx(share(found, False))
    compared = result.tables["comparisons"].set_index(["a", "b"]).loc[("sea", "reverse")]
    expected = result.value("sea", "difference") - result.value("reverse", "difference")
    assert compared["difference"] == pytest.approx(expected)
    assert compared["ci_low"] > 0
    said = " ".join(result.flags)
    assert "4320 judgment(s) are of orders that are neither that of flat" in said
    assert "No judgment is of the order by flat." in said
    assert agreement_figure(result).axes


def test_without_controls_the_bias_is_unknown_and_said(study):
    score, table = study
    ordered = [key for key, (own, _) in judged(table, score).items() if own]
    kept = table.set_index(["participant", "item"]).loc[ordered].reset_index()
    result = human_agreement(responses_of(kept), score.to_frame("sea"), QUICK)
    assert result.value("sea", "accepted") == kept["accepted"].mean()
    rest = result.agreement[result.agreement["measure"] != "accepted"]
    assert rest[["value", "ci_low", "std_error"]].isna().all(axis=None)
    assert "whoever agrees with everything cannot be told" in " ".join(result.flags)
    assert agreement_figure(result).axes
