"""A study of several models against the benchmark of one model, switch by switch, and against its own laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.protocol import PRESETS, preset, switch_values
from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.benchmarks.study.analyses import ANALYSES, analyse, of_machine_sketches
from humanlike.benchmarks.study.models import model_from_probabilities, model_from_score
from humanlike.benchmarks.study.study import Study, StudySettings
from humanlike.stats import METRICS
from humanlike.stats.crossed import RESAMPLES
from humanlike.types import Score

REPLICATES, SPLITS, SEED = 12, 4, 3


def settings(protocol="corrected", **changes):
    asked = {"protocol": preset(protocol), "replicates": REPLICATES, "splits": SPLITS, "seed": SEED, **changes}
    return StudySettings(**asked)


def benchmark_run(study, readout, protocol="corrected", metric=None, resample="images"):
    data, features = study
    asked = {"protocol": protocol, "replicates": REPLICATES, "splits": SPLITS, "metric": metric, "resample": resample}
    return SevaBenchmark(**asked).run(data, features, readout, seed=SEED)


def models(study, count=3):
    """Models whose logits are the study's features, ever more noisy; the first is the one that `readout` gives."""
    data, features = study
    rng = np.random.default_rng(5)
    ids = data.table["sketch_id"].iloc[features.rows].tolist()
    made = []
    for i in range(count):
        logits = features.f_ND.astype(np.float64) + i * rng.normal(size=features.f_ND.shape)
        e = np.exp(logits - logits.max(1, keepdims=True))
        info = {"architecture": "a", "paradigm": "supervised", "data": "d"}
        made.append(model_from_probabilities(f"m{i}", ids, e / e.sum(1, keepdims=True), info=info, source="test"))
    return made


KINDS = [(p, kind) for p in PRESETS for kind in RESAMPLES if kind == "images" or preset(p).interval != "jackknife"]


@pytest.mark.parametrize(("protocol", "resample"), KINDS)
def test_one_model_of_a_study_equals_the_benchmark(study, readout, protocol, resample):
    data, _ = study
    whole = Study(data, settings(protocol, discrepancy=False, resample=resample))
    result = whole.run(models(study)[:2])
    analyse(whole, result, {"inference": ANALYSES["inference"], "items": ANALYSES["items"]})
    alone = benchmark_run(study, readout, protocol, resample=resample)
    means = result.tables["means"].set_index(["observer", "metric"])
    aligned = result.tables["alignment"].set_index(["observer", "metric"])
    ceilings = result.tables["noise_ceiling"].set_index(["observer", "metric"])
    for metric in METRICS:
        for score, row, columns in (
            (metric, means.loc[("m0", metric)], ("estimate", "ci_low", "ci_high")),
            (f"{metric}_people", means.loc[("people", metric)], ("estimate", "ci_low", "ci_high")),
            (f"alignment_{metric}", aligned.loc[("m0", metric)], ("estimate", "ci_low", "ci_high")),
            (f"delta_r2_{metric}", aligned.loc[("m0", metric)], ("delta_r2", "delta_r2_low", "delta_r2_high")),
            (
                f"alignment_{metric}_corrected",
                ceilings.loc[("m0", metric)],
                ("corrected", "corrected_low", "corrected_high"),
            ),
        ):
            told = alone.scores[score]
            theirs = [np.nan if x is None else x for x in (told.value, told.ci_low, told.ci_high)]
            if np.isnan(theirs[0]):  # a score without a value has no interval; the table keeps what it has
                assert np.isnan(row[columns[0]])
                continue
            np.testing.assert_allclose(row[[*columns]].to_numpy(float), theirs, rtol=0, atol=1e-9, err_msg=score)
            if "n" in row and not score.endswith("corrected"):
                assert row["n"] == told.n
        baseline = alone.details["human_consistency"][metric]
        assert aligned.loc[("people", metric), "estimate"] == pytest.approx(baseline["split_half"])
    own = result.tables["item_consistency"].set_index("observer").loc["m0"]
    told = alone.scores["error_consistency"]
    np.testing.assert_allclose(
        own[["estimate", "ci_low", "ci_high", "ceiling"]].to_numpy(float),
        [told.value, told.ci_low, told.ci_high, told.ceiling],
        atol=1e-9,
    )


def test_no_jackknife_where_participants_are_resampled(study):
    result = Study(study[0], settings(resample="crossed")).run(models(study)[:1])
    assert "jackknife" not in set(result.tables["discrepancy"]["value"])


@pytest.mark.parametrize("name", ["seva", "made_up"])
def test_published_numbers_stand_beside_seva_alone(study, name):
    data = replace(study[0], name=name)
    machine = replace(data, name="seva_clipasso" if name == "seva" else "machine")
    whole = Study(data, settings(discrepancy=False))
    result = whole.run(models(study)[:2])
    analyse(whole, result, {"mixed": ANALYSES["mixed_effects"], "machine": of_machine_sketches(machine)})
    published = result.tables["mixed_terms"].set_index(["analysis", "metric", "term"])
    fit, trend = result.tables["machine_fit"], result.tables["machine_trend"]
    if name != "seva":
        assert not any("published" in c for t in (published, fit, trend) for c in t.columns)
        return
    assert published.loc[("alignment", "entropy", "model_metric"), "published_statistic"] == 28.52
    assert set(fit["published_adjusted_r2"]) == {0.64}
    own = trend.dropna(subset="published")[["measure", "term", "published"]]
    assert own.to_numpy().tolist() == [["rank", "condition", -0.69]]


def test_long_tables_hold_every_sketch_and_cell_of_every_observer(study, readout):
    result = Study(study[0], settings(discrepancy=False)).run(models(study))
    alone = benchmark_run(study, readout)
    sketches, cells = result.tables["sketch_rows"], result.tables["cell_rows"]
    assert sketches.groupby("observer").size().to_dict() == dict.fromkeys(["people", "m0", "m1", "m2"], 192)
    assert list(cells["observer"].unique()) == ["people", "m0", "m1", "m2"]
    items = alone.items.sort_values("sketch_id").reset_index(drop=True)
    own = sketches.query("observer == 'm0'").reset_index(drop=True)
    np.testing.assert_array_equal(own["sketch_id"], items["sketch_id"])
    np.testing.assert_array_equal(own["accuracy"], items["correct"])
    np.testing.assert_allclose(own["entropy"], items["entropy"])
    people = sketches.query("observer == 'people'").reset_index(drop=True)
    np.testing.assert_allclose(people["accuracy"], items["accuracy_people"])
    for name, suffix in (("m0", ""), ("people", "_people")):
        theirs = cells[cells["observer"] == name].reset_index(drop=True)
        for metric in METRICS:
            np.testing.assert_allclose(theirs[metric], alone.cells[metric + suffix], atol=1e-12)


def test_other_models_change_nothing(study):
    few = Study(study[0], settings()).run(models(study)[:1])
    many = Study(study[0], settings()).run(reversed(models(study)[:2]))
    for name in ("alignment", "means", "discrepancy", "cell_rows", "conditions"):
        a, b = (r.tables[name].query("observer in ('m0', 'people')").reset_index(drop=True) for r in (few, many))
        pd.testing.assert_frame_equal(
            a.sort_values(list(a.columns[:4])).reset_index(drop=True),
            b[a.columns].sort_values(list(a.columns[:4])).reset_index(drop=True),
        )


@pytest.mark.parametrize("protocol", ["corrected", pytest.param("paper_code", marks=pytest.mark.slow)])
def test_every_row_of_the_discrepancy_table_equals_a_run_with_that_switch(study, readout, protocol):
    table = Study(study[0], settings(protocol)).run(models(study)[:1]).tables["discrepancy"]
    table = table[table["note"] == ""]
    standing = benchmark_run(study, readout, protocol)
    assert set(table["switch"]) >= {"people_snp", "model_entropy", "alignment_point", "interval", "preset"}
    for (switch, value), rows in table.groupby(["switch", "value"]):
        if switch == "preset":
            run = benchmark_run(study, readout, value)
        else:
            run = benchmark_run(study, readout, protocol, {switch: value})
        for row in rows.itertuples():
            score, before = (
                (of(run, row), of(standing, row))
                if row.score.startswith("cons")
                else (
                    run.scores[name_of(row)].value,
                    standing.scores[name_of(row)].value,
                )
            )
            assert row.estimate == pytest.approx(score, abs=1e-9), (switch, value, row)
            if before is not None:
                assert row.change == pytest.approx(score - before, abs=1e-9)
        own = preset(protocol).switches
        assert rows["standing"].all() == ((switch != "preset" and own[switch] == value) or value == protocol)


def name_of(row):
    return f"{row.score}_people" if row.observer == "people" else row.score


def of(run, row):
    metric = row.score.removeprefix("consistency_").removesuffix("_spearman_brown")
    key = "spearman_brown" if row.score.endswith("spearman_brown") else "split_half"
    return run.details["human_consistency"][metric][key]


def test_a_switch_without_effect_has_no_rows_and_all_values_where_it_has(study):
    table = Study(study[0], settings()).run(models(study)[:1]).tables["discrepancy"]
    assert "stroke_count_model" not in set(table.query("note == ''")["switch"])
    entropy = table.query("switch == 'people_entropy' and observer == 'people' and score == 'entropy'")
    assert set(entropy["value"]) == set(switch_values()["people_entropy"])
    assert not (table["switch"] == "people_accuracy")[table["score"] == "snp"].any()


def test_readouts_that_were_not_fitted_again_are_said_so(study):
    table = Study(study[0], settings()).run(models(study)[:2]).tables["discrepancy"]
    rows = table.query("switch == 'cv'")
    assert set(rows["observer"]) == {"m0", "m1"}
    assert rows["estimate"].isna().all()
    assert rows["note"].str.contains("not computed").all()


def test_models_without_people_still_get_their_tables(study):
    data, _ = study
    result = Study(replace(data, responses=None), settings(discrepancy=False)).run(models(study))
    assert "no_people" in result.flags
    assert set(result.missing) >= {"alignment", "people_by_condition"}
    assert "alignment" not in result.tables
    assert set(result.tables["conditions"]["observer"]) == {"m0", "m1", "m2"}


def test_sketches_that_nobody_judged_are_left_out_and_counted(study):
    data, _ = study
    judged = data.table["sketch_id"].iloc[:100]
    rows = data.responses.table[data.responses.table["sketch_id"].isin(judged)]
    sparse = replace(data, responses=replace(data.responses, table=rows.reset_index(drop=True)))
    result = Study(sparse, settings(discrepancy=False)).run(models(study)[:1])
    assert result.counts["sketches"] == 100
    assert result.counts["sketches_not_judged"] == len(data) - 100
    assert len(result.top1) == 100


def test_a_sketch_without_an_answer_is_left_out_of_that_model_alone(study):
    whole, other = models(study)[:2]
    partial = replace(whole, answers=whole.answers.iloc[5:])
    result = Study(study[0], settings(discrepancy=False)).run([partial, other])
    assert result.counts["unanswered_m0"] == 5
    assert "unanswered:m0:5" in result.flags
    assert result.tables["sketch_rows"].groupby("observer").size()["m0"] == len(whole.answers) - 5


def test_bad_models_are_refused_with_a_sentence(study):
    data, _ = study
    one, two = models(study)[:2]
    with pytest.raises(ValueError, match="two models of the study are called 'm0'"):
        Study(data, settings(discrepancy=False)).run([one, one])
    with pytest.raises(ValueError, match="needs at least one model"):
        Study(data, settings(discrepancy=False)).run([])
    strange = replace(two, answers=two.answers.assign(sketch_id=[f"x{i}" for i in range(len(two.answers))]))
    with pytest.raises(ValueError, match="answers none of the 192 sketches"):
        Study(data, settings(discrepancy=False)).run([strange])
    with pytest.raises(ValueError, match="cannot be called 'people'"):
        replace(one, name="people")
    with pytest.raises(ValueError, match="more than once"):
        replace(one, answers=pd.concat([one.answers, one.answers.iloc[:1]]))


def test_a_finished_run_joins_with_its_labels_checked(study, readout):
    data, _ = study
    result = benchmark_run(study, readout)
    score = Score(
        "seva", "1", "made-up", "net", "layer", result, {"seed": SEED}, {"data": "d"}, {}, "2026", 1.0, "digest"
    )
    model = model_from_score(score, data.labels, {"paradigm": "supervised"})
    tables = Study(data, settings(discrepancy=False)).run([model]).tables
    aligned = tables["alignment"].set_index(["observer", "metric"])["estimate"]
    assert aligned["net", "accuracy"] == pytest.approx(result.scores["alignment_accuracy"].value)
    assert tables["models"].loc[0, "paradigm"] == "supervised"
    rows = [{"layer": "a", "relative_depth": 0.5, "metric": "alignment_snp", "value": 0.1}]
    deep = model_from_score(replace(score, result=replace(result, details={"layers": rows})), data.labels, name="deep")
    one, two = (replace(m, hashes={"transform": "t", "data": d}) for m, d in ((model, "x"), (deep, "y")))
    joined = Study(data, settings(discrepancy=False)).run([one, two])
    assert joined.tables["layers"]["observer"].tolist() == ["deep"]
    assert "other_images:deep" in joined.flags
    with pytest.raises(ValueError, match="labels that are not those of the study"):
        model_from_score(score, data.labels[::-1])
    fixed = replace(result, items=result.items.drop(columns="entropy"))
    with pytest.raises(ValueError, match="no column 'entropy'"):
        model_from_score(replace(score, result=fixed), data.labels)


def test_models_on_one_data_set_share_the_benchmarks_people(study, readout, monkeypatch):
    import humanlike.benchmarks.seva as module

    calls = []
    original = module.people_side
    monkeypatch.setattr(module, "people_side", lambda *a, **k: calls.append(1) or original(*a, **k))
    data, features = study
    benchmark = SevaBenchmark(replicates=REPLICATES, splits=SPLITS)
    first, again = (benchmark.run(data, features, readout, seed=SEED) for _ in range(2))
    other_seed = benchmark.run(data, features, readout, seed=SEED + 1)
    assert len(calls) == 2
    assert first.scores == again.scores
    assert other_seed.scores["alignment_accuracy"].ci_low != first.scores["alignment_accuracy"].ci_low
