"""Table 3 against the published notebook's formulas written out plainly, and the other tables of a study."""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import entropy, spearmanr
from sklearn.metrics import auc

from humanlike.benchmarks.protocol import preset
from humanlike.benchmarks.study.analyses import ANALYSES, analyse, of_machine_sketches
from humanlike.benchmarks.study.models import model_from_answers, model_from_draws, model_from_probabilities
from humanlike.benchmarks.study.study import Study, StudySettings
from humanlike.benchmarks.study.tables import PUBLISHED

GUESSES = [f"guess_{i}" for i in range(1, 6)]


def settings(protocol="corrected", **changes):
    asked = {"replicates": 12, "splits": 4, "seed": 3, "discrepancy": False, **changes}
    return StudySettings(protocol=preset(protocol), **asked)


def some_models(data, count=3, seed=1):
    rng = np.random.default_rng(seed)
    ids = data.table["sketch_id"].tolist()
    made = []
    for i in range(count):
        logits = rng.normal(size=(len(data), len(data.labels)))
        logits[np.arange(len(data)), data.target_N] += 1 + i
        e = np.exp(logits)
        made.append(model_from_probabilities(f"m{i}", ids, e / e.sum(1, keepdims=True), source="test"))
    return made


def notebook_table_3(data) -> pd.DataFrame:
    """Means and standard errors as the published notebook computes them: one sketch, one cell after another."""
    trials = data.responses.table.merge(data.table, on="sketch_id")
    rows = []
    for condition, at_time in trials.groupby("condition"):
        accuracy, doubt = [], []
        for _, trial in at_time.groupby("sketch_id"):
            accuracy.append((trial["guess_1"] == trial["concept"]).mean())
            given = [g for row in trial[GUESSES].to_numpy() for g in row if isinstance(g, str)]
            doubt.append(entropy(pd.Series(given).value_counts()))
        areas = []
        for concept, cell in at_time.groupby("concept"):
            c = data.labels.index(concept)
            others = [i for i in range(len(data.labels)) if i != c]
            others.sort(key=lambda i: cosine(data.semantic_space[c], data.semantic_space[i]))
            place = {data.labels[i]: position for position, i in enumerate(others)} | {concept: 0}
            wrong = np.array([place[g] for g in cell["guess_1"] if place[g] != 0])
            steps = np.unique(wrong)
            share = [(wrong <= step).mean() for step in steps]
            areas.append(auc([*steps / len(data.labels), 1.0], [*share, 1.0]) if len(wrong) else 1.0)
        for metric, values in (("accuracy", accuracy), ("entropy", doubt), ("snp", areas)):
            sem = np.std(values, ddof=1) / np.sqrt(len(values))
            rows.append((condition, metric, np.mean(values), sem, len(values)))
    columns = ["condition", "metric", "estimate", "std_error", "n"]
    return pd.DataFrame(rows, columns=columns).sort_values(["metric", "condition"]).reset_index(drop=True)


def test_people_of_table_3_equal_the_notebook(study):
    data, _ = study
    table = Study(data, settings("paper_code")).run(some_models(data)).tables["people_by_condition"]
    ours = table.sort_values(["metric", "condition"]).reset_index(drop=True)
    expected = notebook_table_3(data)
    assert len(ours) == len(expected) == 12
    pd.testing.assert_frame_equal(ours[expected.columns], expected, check_dtype=False, rtol=0, atol=1e-12)


def test_the_published_table_3_stands_beside_seva_alone(study, shared_data):
    data, _ = study
    published = pd.read_csv(shared_data / "seva_index" / "published_human_by_duration.csv")
    assert published["duration_s"].tolist() == PUBLISHED["condition"].tolist()
    for ours, theirs in (("accuracy", "human_top1"), ("entropy", "human_entropy"), ("snp", "human_snp_auc")):
        np.testing.assert_array_equal(PUBLISHED[ours], published[f"{theirs}_mean"])
        np.testing.assert_array_equal(PUBLISHED[f"{ours}_std_error"], published[f"{theirs}_sem"])
    seva = (
        Study(replace(data, name="seva"), settings("paper_code")).run(some_models(data)).tables["people_by_condition"]
    )
    at_4 = seva.query("metric == 'snp' and condition == 4").iloc[0]
    assert at_4["published"] == 0.627561
    assert at_4["difference"] == at_4["estimate"] - 0.627561
    other = Study(data, settings("paper_code")).run(some_models(data)).tables["people_by_condition"]
    assert "published" not in other


def test_strokes_by_condition(study):
    data, _ = study
    rng = np.random.default_rng(0)
    counted = replace(data, table=data.table.assign(num_strokes=rng.integers(1, 30, len(data))))
    tables = Study(counted, settings()).run(some_models(data)).tables
    expected = counted.table.groupby("condition")["num_strokes"].agg(["mean", "sem", "median", "size"])
    ours = tables["strokes_by_condition"].set_index("condition")[["estimate", "std_error", "median", "n"]]
    np.testing.assert_allclose(ours, expected)
    assert len(tables["strokes"]) == len(data)
    without = Study(data, settings()).run(some_models(data))
    assert "does not count strokes" in without.missing["strokes"]


def test_all_analyses_of_one_study_name_the_same_models(study):
    data, _ = study
    machine = replace(data, name="machine", condition_unit="strokes")
    whole = Study(data, settings(discrepancy=True))
    result = whole.run(some_models(data))
    analyse(whole, result, {**ANALYSES, "machine_sketches": of_machine_sketches(machine)})
    tables = result.tables
    assert not result.missing.keys() - {"strokes", "strokes_by_condition"}
    names = {"m0", "m1", "m2"}
    for name in ("noise_ceiling", "rank_groups", "gaps"):
        assert set(tables[name]["observer"]) == names
    assert set(zip(tables["comparisons"]["a"], tables["comparisons"]["b"], strict=True)) <= {
        (a, b) for a in names for b in names
    }
    wide = (
        tables["alignment"].query("observer != 'people'").pivot(index="observer", columns="metric", values="estimate")
    )
    rho = tables["spearman"].set_index(["first", "second"])["rho"]
    assert rho["accuracy", "entropy"] == pytest.approx(spearmanr(wide["accuracy"], wide["entropy"]).statistic)
    rows = tables["discrepancy"]
    assert set(rows.query("switch == 'welch_test' and note == ''")["observer"]) <= names
    assert set(rows.query("switch == 'divergence'")["score"]) == {"divergence_distance", "divergence_rank"}
    assert rows.query("switch == 'stroke_count_model'")["note"].str.contains("does not count strokes").all()
    same = tables["machine_cells"]
    np.testing.assert_array_equal(same["people_sketches"], same["machine_sketches"])


def test_an_analysis_that_cannot_be_made_says_why(study):
    data, _ = study
    alone = Study(replace(data, responses=None), settings())
    result = alone.run(some_models(data, 1))
    analyse(alone, result, ANALYSES)
    assert result.missing["rank_groups"] == result.missing["power"] == "nobody judged these sketches"
    one = Study(data, settings())
    result = one.run(some_models(data, 1))
    analyse(one, result, ANALYSES)
    assert "there is one" in result.missing["power"]
    assert "fewer than three models" in result.missing["spearman"]


def test_a_readout_that_was_fitted_again_tells_what_folds_change(study):
    data, _ = study
    first, second = some_models(data, 2)
    result = Study(data, settings(discrepancy=True)).run([first], {"m0": replace(second, name="m0")})
    rows = result.tables["discrepancy"].query("switch == 'cv' and score == 'accuracy'").set_index("value")
    means = Study(data, settings()).run([first, second]).tables["means"].set_index(["observer", "metric"])["estimate"]
    assert rows.loc["stratified_group", "estimate"] == means["m0", "accuracy"]
    assert rows.loc["stratified", "estimate"] == means["m1", "accuracy"]
    assert rows.loc["stratified", "change"] == pytest.approx(means["m1", "accuracy"] - means["m0", "accuracy"])


def test_resampled_participants_change_intervals_of_people_and_not_the_estimates(study):
    data, _ = study
    of = {
        kind: Study(data, settings(resample=kind, replicates=60))
        .run(some_models(data))
        .tables["means"]
        .set_index(["observer", "metric"])
        for kind in ("images", "participants", "crossed")
    }
    for kind in ("participants", "crossed"):
        pd.testing.assert_series_equal(of[kind]["estimate"], of["images"]["estimate"])
    assert np.isnan(of["participants"].loc[("m0", "accuracy"), "ci_low"])
    people = of["participants"].loc[("people", "accuracy")], of["crossed"].loc[("people", "accuracy")]
    assert people[0]["ci_low"] < people[0]["estimate"] < people[0]["ci_high"]
    assert people[1]["ci_low"] < people[1]["estimate"] < people[1]["ci_high"]


def test_models_from_answers_and_draws(study):
    data, _ = study
    ids, labels = data.table["sketch_id"].tolist(), data.labels
    table = pd.DataFrame({"sketch_id": ids, "top1": data.table["concept"], "entropy": 0.5})
    model = model_from_answers("oracle", table, labels, source="a file")
    np.testing.assert_array_equal(model.aligned(ids).top1_N, data.target_N)
    with pytest.raises(ValueError, match="'unicorn' in row 1"):
        model_from_answers(
            "x", table.assign(top1=["label_00", "unicorn", *["label_00"] * (len(ids) - 2)]), labels, source="f"
        )
    with pytest.raises(ValueError, match="no column 'top1'"):
        model_from_answers("x", table.drop(columns="top1"), labels, source="a file")
    uniform = np.full((len(ids), len(labels)), 1 / len(labels))
    drawn = model_from_draws("made", ids, uniform, data.target_N)
    assert drawn.simulated
    np.testing.assert_allclose(drawn.answers["entropy"], np.log(len(labels)))


@pytest.mark.slow
def test_a_study_of_published_size_is_exact_fast_and_small(repository):
    """17 models, 1,000 replicates: under 3 minutes of processor time and 4 GB, equal to the plain port."""
    perf = repository / "perf"
    sys.path.insert(0, str(perf))
    try:
        spec = importlib.util.spec_from_file_location("perf_study", perf / "study.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        twin = script.StudyTwin.synthetic()
        models = [twin.model(i) for i in range(17)]
        began = time.process_time()
        result, study = script.package(twin, models, 1000, 200)
        seconds = time.process_time() - began
        peak = script.resource.getrusage(script.resource.RUSAGE_SELF).ru_maxrss / 1e6
        theirs = script.plain(twin, twin.probabilities(0), study.resamples.bootstrap.bootstrap_BKJ[0])
        assert script.compare(result, theirs, models[0].name) < 1e-9
    finally:
        sys.path.remove(str(perf))
    assert seconds < 180
    assert peak < 4
    plain = theirs.people_seconds + 17 * (theirs.model_seconds + 1000 * theirs.replicate_seconds)
    # The plain port has no table of what every switch changes.
    assert plain / (seconds - result.seconds["discrepancy"]) > 1000
