"""A judge whose errors are known, on the doodles' annotation: what is corrected is what was there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score

from humanlike.benchmarks.sea import SeaBenchmark
from humanlike.benchmarks.sea_calibration import JudgeCalibration, without_controls
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import elements_by_item, presence_of
from humanlike.rng import generator
from humanlike.types import Features


class Known:
    """A readout whose probabilities are the features."""

    def out_of_fold_proba(self, f_ND, label_N, num_labels, group_N=None):
        return f_ND


@dataclass(frozen=True)
class ErringJudge:
    """Errs at random: says present to a share of what is absent, and absent to a share of what is present."""

    false_positive: float = 0.0
    false_negative: float = 0.0
    seed: int = 0
    control_false_positive: float | None = None

    def judge(self, sketches, elements, features=None):
        drawn = dict(
            zip(zip(sketches.elements["sketch_id"], sketches.elements["element"], strict=True),
                sketches.elements["drawn"].astype(bool), strict=True)
        )  # fmt: skip
        rng = generator(self.seed, "erring judge")
        names, ids, p = elements_by_item(sketches, elements), sketches.table["sketch_id"].tolist(), []
        for sketch, row in zip(ids, names, strict=True):
            said = []
            for element in row:
                known = (sketch, element) in drawn
                fp = self.false_positive
                if not known and self.control_false_positive is not None:
                    fp = self.control_false_positive
                right = 1 - self.false_negative if drawn.get((sketch, element), False) else fp
                said.append(float(rng.random() < right))
            p.append(said)
        return presence_of(ids, names, p, f"erring judge {self.false_positive:g}, {self.false_negative:g}")


@pytest.fixture(scope="module")
def data():
    return doodles(concepts=10, instances=16, judgments=0)


def features_of(data, seed=3):
    """P that goes with v, as it does: with what is drawn a sketch is recognised."""
    v_N = AnnotationJudge().judge(data, ElementLists.from_annotation(data)).visual_ratio["v"].to_numpy()
    noise_N = generator(seed, "P").normal(0, 1.5, len(v_N))
    p_N = 1 / (1 + np.exp(-(6 * (v_N - 0.5) + noise_N)))
    rest_N = (1 - p_N) / (len(data.labels) - 1)
    f_NL = np.where(data.target_N[:, None] == np.arange(len(data.labels)), p_N[:, None], rest_N[:, None])
    return Features(f_NL, np.arange(len(data)), {}, "known", {"weights": "w", "features": "f"})


def run(data, judge, calibration, replicates=200, features=None):
    elements = ElementLists.from_annotation(data)
    benchmark = SeaBenchmark(
        judge, calibration=calibration, replicates=replicates, sensitivity_draws=0, elements="annotation"
    )
    presence, controls = benchmark.judgments(judge, data, elements, None)
    features = features_of(data) if features is None else features
    return benchmark.scored(data, features, Known(), presence, elements, 0, controls)


SMALL = {"annotated": "own", "sketches": 96, "controls": 2, "replicates": 20}
RATES_ONLY = {**SMALL, "replicates": 2}
"""Where corrected SEA is not looked at; its replicates are what takes time."""
KINDS = {"yes": (0.3, 0.0), "no": (0.0, 0.2), "both": (0.3, 0.2)}


@pytest.fixture(scope="module")
def runs(data):
    return {name: run(data, ErringJudge(*rates), SMALL) for name, rates in KINDS.items()}


@pytest.fixture(scope="module")
def truth(data):
    return run(data, AnnotationJudge(), None)


@pytest.mark.parametrize("kind", KINDS)
def test_the_true_v_and_sea_come_back(runs, truth, kind):
    result, (fp, fn) = runs[kind], KINDS[kind]
    scores, true = result.scores, truth.scores
    raw_error = abs(scores["visual_ratio"].value - true["visual_ratio"].value)
    assert abs(scores["visual_ratio_corrected"].value - true["visual_ratio"].value) < 0.03
    assert raw_error > 0.03 or kind == "both"  # of both kinds, errors happen to level out in the mean
    assert (
        scores["visual_ratio_corrected"].ci_low < true["visual_ratio"].value < scores["visual_ratio_corrected"].ci_high
    )
    assert scores["sea_corrected"].ci_low < true["sea"].value < scores["sea_corrected"].ci_high
    assert abs(scores["sea_corrected"].value - true["sea"].value) < 0.08
    assert scores["judge_sensitivity"].ci_low <= 1 - fn <= scores["judge_sensitivity"].ci_high
    assert scores["judge_specificity"].ci_low <= 1 - fp <= scores["judge_specificity"].ci_high
    assert ("yes_biased_judge" in result.flags) == (fp > 0)
    assert ("no_biased_judge" in result.flags) == (fn > 0)
    by_time = result.conditions.set_index("condition")
    expected = truth.conditions.set_index("condition")
    for name in ("visual_ratio", "sea"):  # by condition too, within what the interval allows
        error = (by_time[f"{name}_corrected"] - expected[name]).abs()
        half = (by_time[f"{name}_corrected_high"] - by_time[f"{name}_corrected_low"]) / 2
        assert (error < 1.6 * half).all()
        assert half.max() < 0.2
    wrong = (by_time["sea"] - expected["sea"]).abs().mean()
    assert (by_time["sea_corrected"] - expected["sea"]).abs().mean() < wrong


def test_rates_are_those_of_the_annotated_sketches_and_the_controls(data, runs):
    result = runs["both"]
    calibration, elements = JudgeCalibration.of(SMALL), ElementLists.from_annotation(data)
    known = calibration.truth(data, elements).table
    assert known["sketch_id"].nunique() == 96 == result.details["calibration"]["annotated_sketches"]
    said = result.tables["judgments"].merge(known[["sketch_id", "element"]], on=["sketch_id", "element"])
    drawn, called = said["annotated"].astype(bool), said["decision"].astype(bool)
    rates = result.tables["calibration"].set_index("rate")
    assert rates.loc["sensitivity", "value"] == pytest.approx(recall_score(drawn, called))
    specificity = recall_score(~drawn, ~called)
    assert rates.loc["specificity, annotated elements", "value"] == pytest.approx(specificity)
    controls = rates.loc["specificity, controls"]
    assert controls["n"] == 2 * len(data) == result.details["calibration"]["controls_answered"]
    absent = int((~drawn).sum())
    pooled = (specificity * absent + controls["value"] * controls["n"]) / (absent + controls["n"])
    assert rates.loc["specificity", "value"] == pytest.approx(pooled)
    corrected = result.tables["corrected"].iloc[0]
    sensitivity = rates.loc["sensitivity", "value"]
    by_hand = (result.scores["visual_ratio"].value + pooled - 1) / (sensitivity + pooled - 1)
    assert corrected["visual_ratio_corrected"] == pytest.approx(by_hand, abs=1e-12)
    for kind in ("delta", "bootstrap"):  # three ways to an interval agree on its width
        width = corrected[f"visual_ratio_corrected_{kind}_high"] - corrected[f"visual_ratio_corrected_{kind}_low"]
        own = corrected["visual_ratio_corrected_high"] - corrected["visual_ratio_corrected_low"]
        assert 0.6 < width / own < 1.5
    by_condition = result.tables["calibration_conditions"]
    assert int(by_condition[["n_present", "n_absent"]].sum().sum()) == len(said)


def test_controls_are_never_counted_as_elements(data, runs, truth):
    items, plain = runs["yes"].items, truth.items
    assert items["num_elements"].tolist() == plain["num_elements"].tolist()
    elements = ElementLists.from_annotation(data)
    asked, controls = JudgeCalibration(controls=2).questions(ErringJudge(), elements)
    assert {c: set(asked[c]) for c in asked} == {c: {*elements[c], *controls[c]} for c in elements}
    assert any(tuple(asked[c])[-2:] != controls[c] for c in elements)  # no place gives a control away
    presence, answers = without_controls(ErringJudge().judge(data, asked), data, controls)
    assert len(answers.table) == 2 * len(data)
    assert len(presence.table) == len(data.elements)


def test_a_sketch_has_a_posterior_and_a_perfect_judge_leaves_all_as_it_was(data, runs, truth):
    items = runs["both"].items
    assert items["visual_ratio_corrected"].between(0, 1).all()
    inside = items["visual_ratio_corrected"].between(
        items["visual_ratio_corrected_low"], items["visual_ratio_corrected_high"]
    )
    assert inside.mean() > 0.99
    v_true = truth.items["visual_ratio"]
    covered = v_true.between(items["visual_ratio_corrected_low"], items["visual_ratio_corrected_high"])
    assert covered.mean() > 0.93
    assert items.columns[-1] == "error"
    cells = runs["both"].cells
    expected = items.groupby(["concept", "condition"])["sea_corrected"].mean()
    found = cells.set_index(["concept", "condition"])["sea_corrected"]
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index())
    perfect = run(data, AnnotationJudge(), {**RATES_ONLY, "controls": 2})
    assert "controls_not_asked" in perfect.flags
    np.testing.assert_allclose(perfect.items["sea_corrected"], perfect.items["sea"], atol=1e-12)
    assert perfect.scores["visual_ratio_corrected"].value == pytest.approx(perfect.scores["visual_ratio"].value)
    assert perfect.scores["judge_sensitivity"].value == 1.0


def test_two_judges_become_comparable(runs, truth):
    names = list(runs)
    for a, b in [(names[0], names[1]), (names[0], names[2]), (names[1], names[2])]:
        one, other = runs[a].scores["visual_ratio_corrected"], runs[b].scores["visual_ratio_corrected"]
        assert max(one.ci_low, other.ci_low) < min(one.ci_high, other.ci_high)
    raw = runs["yes"].scores["sea"], runs["no"].scores["sea"]
    assert abs(raw[0].value - raw[1].value) > 0.1
    corrected = [runs[k].scores["sea_corrected"].value for k in ("yes", "no")]
    assert abs(corrected[0] - corrected[1]) < 0.05


def test_a_judge_that_looks_at_nothing_is_not_corrected(data):
    result = run(data, ErringJudge(0.6, 0.4), SMALL)
    assert "uninformative_judge" in result.flags
    assert result.scores["visual_ratio_corrected"].value is None
    assert result.scores["sea_corrected"].value is None
    assert "corrected" not in result.tables
    assert "take another judge" in result.details["notes"][-1]
    assert result.scores["sea"].value is not None


def test_without_annotation_the_false_positives_are_known_and_nothing_is_corrected(data):
    result = run(data, ErringJudge(0.3), {"annotated": None, "controls": 2})
    assert {"yes_biased_judge", "calibration_without_annotation"} <= set(result.flags)
    assert result.scores["judge_sensitivity"].value is None
    assert result.scores["judge_specificity"].value == pytest.approx(0.7, abs=0.03)
    assert result.scores["visual_ratio_corrected"].value is None
    assert "if it overlooks nothing, v is 0.5" in result.details["notes"][-1]


def test_controls_that_are_easier_than_real_elements_are_not_pooled(data):
    result = run(data, ErringJudge(0.3, control_false_positive=0.02), RATES_ONLY)
    assert "controls_unlike_annotation" in result.flags
    assert result.details["calibration"]["specificity_from"] == "annotated"
    assert result.scores["judge_specificity"].value == pytest.approx(0.7, abs=0.06)
    assert "yes_biased_judge" in result.flags
    alone = run(data, ErringJudge(0.3, control_false_positive=0.02), {**RATES_ONLY, "specificity": "controls"})
    assert alone.scores["judge_specificity"].value == pytest.approx(0.98, abs=0.02)


def test_controls_do_not_stand_in_for_an_annotation_that_has_nothing_absent(data):
    all_drawn = replace(data, elements=data.elements.assign(drawn=True))
    features = features_of(data)
    result = run(all_drawn, ErringJudge(0.3), {**RATES_ONLY, "specificity": "annotated"}, features=features)
    assert "calibration_without_absent" in result.flags
    assert result.scores["judge_specificity"].value is None
    assert result.scores["visual_ratio_corrected"].value is None
    both = run(all_drawn, ErringJudge(0.3), RATES_ONLY, features=features)
    assert both.details["calibration"]["specificity_from"] == "controls"
    assert both.scores["judge_specificity"].value == pytest.approx(0.7, abs=0.06)


def test_an_annotation_from_a_file(data, tmp_path):
    some = data.elements[data.elements["sketch_id"].isin(data.table["sketch_id"].iloc[::8])]
    some.to_csv(tmp_path / "some.csv", index=False)
    result = run(data, ErringJudge(0.3), {**RATES_ONLY, "annotated": str(tmp_path / "some.csv"), "sketches": None})
    assert result.details["calibration"]["annotated_sketches"] == len(data) // 8
    other = some.assign(element="tentacle " + some["element"])
    other.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(ValueError, match="has none of the elements that are judged"):
        run(data, ErringJudge(0.3), {**RATES_ONLY, "annotated": str(tmp_path / "other.csv")})


def test_bad_settings_are_told():
    with pytest.raises(ValueError, match=r"no setting 'control'; it has annotated, sketches, controls"):
        SeaBenchmark(calibration={"control": 2})
    with pytest.raises(ValueError, match="nothing to estimate a specificity from"):
        SeaBenchmark(calibration={"annotated": None, "controls": 0})
    with pytest.raises(ValueError, match="specificity is annotated, but annotated is null"):
        SeaBenchmark(calibration={"annotated": None, "specificity": "annotated"})
    with pytest.raises(ValueError, match="specificity is 'all'"):
        SeaBenchmark(calibration={"specificity": "all"})
    with pytest.raises(ValueError, match="controls ≥ 0"):
        SeaBenchmark(calibration={"controls": -1})


def test_a_data_set_without_annotation_says_what_to_give(data):
    bare = replace(data, elements=None)
    with pytest.raises(ValueError, match=r"give benchmark\.calibration\.annotated a table"):
        JudgeCalibration().truth(bare, ElementLists.from_annotation(data))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_the_truth(kind):
    """40 judges of one kind, each with other errors and another annotated sample: 95% intervals cover in 90."""
    data = doodles(concepts=6, instances=8, judgments=0)
    truth = run(data, AnnotationJudge(), None).scores
    known = features_of(data)
    hits = {"visual_ratio_corrected": 0, "sea_corrected": 0}
    for seed in range(40):
        settings = {**SMALL, "sketches": 48, "seed": seed, "replicates": 60}
        scores = run(data, ErringJudge(*KINDS[kind], seed=seed), settings, 100, known).scores
        for name in hits:
            value = truth[name.removesuffix("_corrected")].value
            hits[name] += scores[name].ci_low <= value <= scores[name].ci_high
    assert hits["visual_ratio_corrected"] >= 36, hits
    assert hits["sea_corrected"] >= 36, hits


def test_the_page_shows_raw_and_corrected_side_by_side(runs):
    from humanlike.reports.html import render_report
    from humanlike.reports.sea_printed import sea_tables
    from humanlike.reports.wording import flag_sentence, title
    from humanlike.types import Score

    result = runs["both"]
    score = Score("sea", "1", "doodles", "net", "pool", result, {"seed": 0}, {"config": "c"}, {}, "2026", 1.0, "d")
    page = render_report(score, figures={})
    row = result.tables["corrected"].iloc[0]
    low, high = (row[f"visual_ratio_corrected_{end}"] for end in ("low", "high"))
    assert f"{row['visual_ratio_corrected']:.3f} ({low:.3f} to {high:.3f})" in page
    assert "Raw, and freed of the judge" in page
    assert flag_sentence("yes_biased_judge") in page.replace("&#39;", "'")
    named = [title(name) for name in result.scores]
    assert len(set(named)) == len(named)  # the judge's specificity on all sketches, and on those of the calibration
    titles = [view.name for view in sea_tables(score)]
    assert {"sea_corrected", "sea_calibration"} <= set(titles)


def test_two_calibrated_judges_stand_in_one_table(runs):
    from humanlike.reports.sea_gathered import gathered_tables, gathered_warnings, printed
    from humanlike.types import Score

    about = ("sea", "1", "doodles", "net", "pool")
    scores = {
        kind: Score(*about, runs[kind], {"seed": 0}, {"config": "c"}, {}, "2026", 1.0, kind) for kind in ("yes", "no")
    }
    shown = printed(gathered_tables(scores))["scores"].set_index("run")
    for kind, score in scores.items():
        value = score.scores["visual_ratio_corrected"]
        assert shown.loc[kind, "v, corrected"] == f"{value.value:.3f} ({value.ci_low:.3f} to {value.ci_high:.3f})"
        assert shown.loc[kind, "Judge, specificity"].startswith(f"{score.scores['judge_specificity'].value:.3f}")
    said = gathered_warnings(scores)
    assert "different judges" in said[0]
    assert said[-1].startswith("All judges were calibrated")
    raw = {**scores, "raw": Score(*about, run_without(runs["no"]), {"seed": 0}, {"config": "c"}, {}, "2026", 1.0, "r")}
    assert not any("calibrated" in text for text in gathered_warnings(raw))


def run_without(result):
    """The result as it is where nobody calibrates."""
    kept = {name: v for name, v in result.scores.items() if not name.endswith("_corrected")}
    return replace(result, scores=kept)
