"""What a SEVA run promises: names, independence of order, honest nulls and flags, errors with a way out."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.data.doodles import choice_probability, doodles
from humanlike.files import json_ready
from humanlike.interfaces import Benchmark
from humanlike.readouts import LogisticReadout

METRICS = ("accuracy", "entropy", "snp")
SCORES = {
    *(f"{m}{side}" for m in (*METRICS, "jsd") for side in ("", "_people")),
    *(f"{kind}_{m}" for m in METRICS for kind in ("alignment", "delta_r2")),
    *(f"alignment_{m}_corrected" for m in METRICS),
    "error_consistency",
}


def seva(**kwargs) -> SevaBenchmark:
    return SevaBenchmark(**{"replicates": 20, "splits": 4, **kwargs})


def values(result) -> dict[str, float | None]:
    return {name: score.value for name, score in result.scores.items()}


def test_result_has_the_promised_names(study, readout):
    data, features = study
    result = seva().run(data, features, readout)
    assert isinstance(seva(), Benchmark)
    assert set(result.scores) == SCORES
    assert [*result.cells.columns] == [
        *["cell", "concept", "condition", "n_items", "accuracy", "entropy", "snp", "jsd"],
        *["accuracy_people", "entropy_people", "snp_people", "jsd_people", "n_responses_people"],
    ]
    assert [*result.items.columns] == [
        *[
            "sketch_id",
            "concept",
            "condition",
            "image_id",
            "fold",
            "target_index",
            "top1_index",
            "top1",
            "correct",
            "snp_rank",
        ],
        *["probability_target", "entropy", "accuracy_people", "entropy_people", "n_responses_people", "error"],
    ]
    measures = [f"{m}{part}" for m in (*METRICS, "jsd") for part in ("", "_sem", "_people", "_people_sem")]
    assert [*result.conditions.columns] == ["condition", "n_cells", "n_items", *measures]
    # The made-up people err at random, so their halves agree on no neighbours.
    assert result.flags == ("simulated_participants", "alignment_snp_corrected_undefined", "cells_dropped_snp:2")
    units = {name: score.unit for name, score in result.scores.items()}
    assert (units["accuracy"], units["entropy"], units["alignment_snp"]) == ("share", "nats", "R2")
    assert units["error_consistency"] == "kappa"
    record = json.loads(json.dumps(json_ready({"details": result.details, "protocol": result.protocol})))
    assert {"readout", "human_consistency", "gap", "interval", "conditions_unit", "chance", "semantic_space"} <= set(
        record["details"]
    )
    assert record["details"]["chance"]["accuracy"] == 1 / 8
    assert record["protocol"]["preset"] == "corrected"


def test_tables_agree_with_each_other(study, readout):
    data, features = study
    result = seva().run(data, features, readout)
    items, cells = result.items, result.cells.set_index(["concept", "condition"])
    by_cell = items.groupby(["concept", "condition"])
    pd.testing.assert_series_equal(by_cell["correct"].mean(), cells["accuracy"], check_names=False)
    pd.testing.assert_series_equal(by_cell["entropy"].mean(), cells["entropy"], check_names=False)
    pd.testing.assert_series_equal(by_cell["accuracy_people"].mean(), cells["accuracy_people"], check_names=False)
    assert (by_cell["n_responses_people"].sum() == cells["n_responses_people"]).all()
    table = result.conditions.set_index("condition")
    by_condition = items.groupby("condition")
    np.testing.assert_allclose(by_condition["correct"].mean(), table["accuracy"])
    np.testing.assert_allclose(by_condition["correct"].sem(), table["accuracy_sem"])
    np.testing.assert_allclose(by_condition["entropy_people"].sem(), table["entropy_people_sem"])
    np.testing.assert_allclose(cells.groupby("condition")["snp"].sem(), table["snp_sem"])
    np.testing.assert_allclose(cells.groupby("condition")["jsd"].mean(), table["jsd"])
    assert (items["snp_rank"] == 0).eq(items["correct"] == 1).all()


@pytest.mark.parametrize("protocol", ["corrected", "paper_code"])
def test_the_order_of_items_and_answers_does_not_matter(study, features_of, protocol):
    data, features = study
    order = np.random.default_rng(1).permutation(len(data))
    shuffled = replace(
        data.select(order),
        responses=replace(data.responses, table=data.responses.table.sample(frac=1, random_state=2)),
    )
    one = seva(protocol=protocol).run(data, features, LogisticReadout(n_splits=3))
    two = seva(protocol=protocol).run(shuffled, features_of(features.f_ND[order]), LogisticReadout(n_splits=3))
    assert values(one) == values(two)
    assert one.scores == two.scores
    pd.testing.assert_frame_equal(one.cells, two.cells)
    by_id = [r.items.sort_values("sketch_id", ignore_index=True) for r in (one, two)]
    pd.testing.assert_frame_equal(*by_id)


def test_folds_keep_an_image_together_and_say_when_they_do_not(study, readout):
    data, features = study
    result = seva().run(data, features, LogisticReadout(n_splits=3))
    assert (result.items.groupby("image_id")["fold"].nunique() == 1).all()
    assert result.protocol["cv_used"] == "stratified_group"
    result = seva(protocol="paper_text").run(data, features, readout)
    assert readout.groups[-1] is None
    assert "images_shared_across_folds" in result.flags
    assert "interval_biased_down" in result.flags


def test_derived_conditions_are_grouped_whatever_the_preset_says(study, readout):
    data, features = study
    cuts = replace(data, flags=("derived_conditions",))
    result = seva(protocol="paper_code").run(cuts, features, readout)
    assert readout.groups[-1] is not None
    assert "cv_grouped:derived_conditions" in result.flags
    assert result.protocol["cv_used"] == "stratified_group"
    with pytest.raises(ValueError, match="both sides of a fold"):
        seva(metric={"cv": "stratified"}).run(cuts, features, readout)


def test_a_readout_that_splits_groups_is_refused(study):
    data, features = study
    with pytest.raises(ValueError, match=r"readout put items of image .* in several folds"):
        seva().run(data, features, LogisticReadout(n_splits=3, cv="stratified"))


def test_without_people_their_scores_are_null_with_a_flag(study, readout):
    data, features = study
    alone = seva().run(replace(data, responses=None, flags=()), features, readout)
    assert set(alone.scores) == SCORES
    assert {n for n, v in values(alone).items() if v is not None} == set(METRICS)
    assert alone.flags == ("no_people",)
    assert alone.cells[[f"{m}_people" for m in METRICS]].isna().all(axis=None)
    assert (alone.cells["n_responses_people"] == 0).all()
    nobody = replace(data.responses, table=data.responses.table.iloc[:0])
    assert "no_people" in seva().run(replace(data, responses=nobody), features, readout).flags


def test_one_participant_has_no_consistency(study, readout):
    data, features = study
    table = data.responses.table
    one = replace(data.responses, table=table[table["participant"] == "p00"])
    result = seva().run(replace(data, responses=one), features, readout)
    assert "one_participant" in result.flags
    assert result.scores["alignment_accuracy"].value is not None
    assert result.scores["alignment_accuracy"].ceiling is None
    assert result.scores["error_consistency"].ceiling is None
    assert result.scores["jsd_people"].value is None
    assert result.details["human_consistency"] == {}


def test_without_a_semantic_space_snp_is_null_with_a_flag(study, readout):
    data, features = study
    result = seva().run(replace(data, semantic_space=None), features, readout)
    snp = {n for n in SCORES if "snp" in n}
    assert {n for n, v in values(result).items() if v is None} == snp
    assert "no_semantic_space" in result.flags
    assert not any(flag.startswith("cells_dropped_snp") for flag in result.flags)
    assert result.details["interval"]["kind_of_others"] == {}  # no interval is not an interval of another kind
    assert result.details["semantic_space"] is None
    assert set(result.items["snp_rank"]) == {0, -1}


def test_labels_without_an_embedding_are_left_out_and_counted(study, readout):
    data, features = study
    space = data.semantic_space.copy()
    unknown = [0, 2, 5]  # label 2 is a concept
    space[unknown] = np.nan
    result = seva().run(replace(data, semantic_space=space), features, readout)
    assert "labels_without_embedding:3" in result.flags
    assert result.details["semantic_space"] == {"matched": 17, "unmatched": 3}
    items = result.items
    lost = items["target_index"].isin(unknown) | items["top1_index"].isin(unknown)
    assert result.counts["answers_not_ranked"] == lost.sum()
    assert (items.loc[lost & (items["correct"] == 0), "snp_rank"] == -1).all()
    assert items.loc[~lost, "snp_rank"].max() <= 16
    kept = items[~lost & (items["correct"] == 0)]
    expected = 1 - (kept.groupby(["concept", "condition"])["snp_rank"].mean() - 1) / (17 - 2)
    cells = result.cells.set_index(["concept", "condition"])["snp"].dropna()
    pd.testing.assert_series_equal(cells, expected, check_names=False, check_index=True)
    space[7, 0] = np.nan
    space[7, 1:] = 1.0
    with pytest.raises(ValueError, match="not finite in row 7"):
        seva().run(replace(data, semantic_space=space), features, readout)


def test_a_single_condition_has_no_delta_r2(study, readout, features_of):
    data, features = study
    rows = np.flatnonzero(data.table["condition"] == 16.0)
    result = seva().run(data.select(rows), features_of(features.f_ND[rows]), readout)
    assert "single_condition" in result.flags
    assert all(result.scores[f"delta_r2_{m}"].value is None for m in METRICS)
    cells = result.cells
    r = np.corrcoef(cells["accuracy"], cells["accuracy_people"])[0, 1]
    assert result.scores["alignment_accuracy"].value == pytest.approx(1 - (1 - r**2) * 7 / 6)


def test_failed_items_and_empty_cells_are_named_and_counted(study, readout, features_of):
    data, features = study
    concept = data.table["concept"].iloc[0]
    gone = np.flatnonzero((data.table["concept"] == concept) & (data.table["condition"] == 4.0))
    result = seva().run(data, features_of(features.f_ND, failed=[*gone, 100]), readout)
    failed = len(gone) + (100 not in gone)
    assert result.counts["items_failed"] == failed
    assert result.counts["items_used"] == len(data) - failed
    assert {f"images_failed:{failed}", "empty_cells:1"} <= set(result.flags)
    assert result.counts["judgments_of_other_sketches"] > 0
    items = result.items
    assert len(items) == len(data)
    assert items["sketch_id"].tolist() == data.table["sketch_id"].tolist()
    row = items.iloc[gone[0]]
    assert (row["top1_index"], row["top1"], row["correct"], row["fold"]) == (-1, None, 0, -1)
    assert row["error"].endswith("truncated")
    assert items.drop(index=[*gone, 100])["error"].isna().all()
    cell = result.cells.set_index(["concept", "condition"]).loc[(concept, 4.0)]
    assert cell["n_items"] == 0
    assert cell[[*METRICS, "jsd", "accuracy_people"]].isna().all()
    assert result.scores["alignment_accuracy"].n == 31
    assert "cells_dropped_accuracy:1" not in result.flags  # an empty cell is not a dropped one


def test_cells_that_people_lack_are_dropped_pairwise_and_flagged(study, readout):
    data, features = study
    cell = data.table[(data.table["concept"] == data.table["concept"].iloc[0]) & (data.table["condition"] == 8.0)]
    table = data.responses.table
    fewer = replace(data.responses, table=table[~table["sketch_id"].isin(cell["sketch_id"])])
    result = seva().run(replace(data, responses=fewer), features, readout)
    assert {"cells_dropped_accuracy:1", "cells_dropped_entropy:1", "items_without_judgments:6"} <= set(result.flags)
    assert result.scores["alignment_accuracy"].n == 31


def test_too_few_cells_leave_the_alignment_undefined(study, readout, features_of):
    data, features = study
    rows = np.flatnonzero(data.table["concept"].isin(sorted(set(data.table["concept"]))[:1]))
    result = seva().run(data.select(rows), features_of(features.f_ND[rows]), readout)
    assert result.scores["alignment_accuracy"].value is None
    assert result.scores["alignment_accuracy"].ci_low is None
    assert "alignment_accuracy_undefined" in result.flags


def test_people_as_a_model_are_perfectly_aligned(study, readout, features_of):
    """One sketch a cell and everyone in agreement: a model that answers like people has R² = 1 and κ = 1."""
    data, _ = study
    rng = np.random.default_rng(5)
    answer = np.where(rng.random(len(data)) < 0.5, data.target_N, rng.integers(0, 20, len(data)))
    frame = pd.DataFrame({"sketch_id": data.table["sketch_id"], "guess_1": np.array(data.labels)[answer]})
    table = pd.concat([frame.assign(participant=p) for p in "abc"], ignore_index=True)
    table[[f"guess_{i}" for i in range(2, 6)]] = None
    logits = 9.0 * np.eye(20, dtype=np.float32)[answer]
    twin = replace(data, responses=replace(data.responses, table=table))
    result = seva().run(twin, features_of(logits), readout)
    assert result.scores["alignment_accuracy"].value == pytest.approx(1.0)
    assert result.scores["alignment_snp"].value == pytest.approx(1.0)
    assert result.scores["error_consistency"].value == pytest.approx(1.0)
    assert result.scores["error_consistency"].ceiling == pytest.approx(1.0)
    np.testing.assert_allclose(result.cells["jsd"], 0.0, atol=1e-12)
    np.testing.assert_allclose(result.cells["jsd_people"], 0.0, atol=1e-12)


@pytest.mark.parametrize("interval", ["ratio_centred", "basic", "jackknife"])
def test_intervals_hold_their_estimate(study, readout, interval):
    data, features = study
    result = seva(interval=interval, replicates=60).run(data, features, readout)
    assert result.protocol["overridden"] == ([] if interval == "ratio_centred" else ["interval"])
    for name in ("accuracy", "entropy_people", "alignment_accuracy", "alignment_entropy", "delta_r2_accuracy"):
        score = result.scores[name]
        assert score.ci_low < score.value < score.ci_high, name


def test_baseline_and_gap_stand_beside_the_alignment(study, readout):
    data, features = study
    result = seva(splits=6).run(data, features, readout)
    for metric in METRICS:
        baseline, gap = result.details["human_consistency"][metric], result.details["gap"][metric]
        score = result.scores[f"alignment_{metric}"]
        assert baseline["ci_low"] <= baseline["split_half"] <= baseline["ci_high"]
        assert score.ceiling == pytest.approx(baseline["split_half"])
        assert gap["difference"] == pytest.approx(baseline["split_half"] - score.value)
    accuracy = result.details["human_consistency"]["accuracy"]
    assert accuracy["spearman_brown"] > accuracy["split_half"]
    text = seva(protocol="paper_text").run(data, features, readout).details["human_consistency"]
    assert text["accuracy"]["spearman_brown"] is None


def test_seed_fixes_everything(study, readout):
    data, features = study
    one, same, other = (seva().run(data, features, readout, seed=s) for s in (4, 4, 5))
    assert one.scores == same.scores
    assert one.scores["accuracy"].value == other.scores["accuracy"].value
    assert one.scores["accuracy"].ci_low != other.scores["accuracy"].ci_low


def test_ties_go_to_the_lowest_label(study, readout, features_of):
    data, features = study
    result = seva().run(data, features_of(np.zeros_like(features.f_ND)), readout)
    assert set(result.items["top1_index"]) == {0}
    np.testing.assert_allclose(result.items["entropy"], np.log(20))


def test_a_readout_that_did_not_converge_is_said(study, unconverged_readout):
    data, features = study
    result = seva().run(data, features, unconverged_readout)
    assert "readout_not_converged" in result.flags
    assert result.details["readout"] == {"converged": False}


def test_intervals_of_another_kind_than_asked_are_named(study, readout, features_of):
    """A model without any relation to people: some R² are negative, where the ratio of the interval has no meaning."""
    data, _ = study
    rows = np.flatnonzero(data.table["condition"] == 16.0)
    named = []
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(size=(len(rows), 20)).astype(np.float32)
        result = seva().run(data.select(rows), features_of(noise), readout)
        others = result.details["interval"]["kind_of_others"]
        assert set(others) <= {f"alignment_{m}{corrected}" for m in METRICS for corrected in ("", "_corrected")}
        assert set(others.values()) <= {"basic"}
        named += list(others)
    assert named
    assert seva(interval="basic").run(data.select(rows), features_of(noise), readout).details["interval"][
        "kind_of_others"
    ] == {}  # fmt: skip


def test_pooled_hard_labels_have_no_chance_line_of_entropy(study, readout):
    data, features = study
    chance = {p: seva(protocol=p).run(data, features, readout).details["chance"] for p in ("corrected", "paper_text")}
    assert chance["corrected"] == {"accuracy": 1 / 8, "entropy": pytest.approx(np.log(8)), "snp": 0.5}
    assert chance["paper_text"]["entropy"] is None


def test_a_zero_row_of_the_semantic_space_is_named_by_its_label_index(study, readout):
    data, features = study
    space = data.semantic_space.copy()
    space[[0, 2]] = np.nan
    space[7] = 0.0
    with pytest.raises(ValueError, match="zero in row 7 "):
        seva().run(replace(data, semantic_space=space), features, readout)


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"protocol": "correctd"}, "did you mean 'corrected'"),
        ({"interval": "jacknife"}, "did you mean 'jackknife'"),
        ({"metric": {"model_snip": "exact"}}, "did you mean 'model_snp'"),
        ({"replicates": 1}, "replicates is 1"),
        ({"splits": 0}, "splits is 0"),
        ({"on_unknown": "rais"}, "on_unknown is 'rais'"),
    ],
)
def test_wrong_arguments_are_named(kwargs, sentence):
    with pytest.raises(ValueError, match=sentence):
        SevaBenchmark(**kwargs)


def test_wrong_features_are_named(study, readout, features_of):
    data, features = study
    bad = features.f_ND.copy()
    bad[5, 3] = np.nan
    with pytest.raises(ValueError, match=r"layer 'logits' are not finite for 1 item\(s\), first item 5"):
        seva().run(data, features_of(bad), readout)
    with pytest.raises(ValueError, match="nothing to score"):
        seva().run(data, features_of(features.f_ND[:0]), readout)
    with pytest.raises(ValueError, match="extract the features of this data set"):
        seva().run(data, replace(features, rows=features.rows + 1), readout)


def test_one_class_only_is_the_readouts_named_error(study, features_of):
    data, features = study
    rows = np.flatnonzero(data.table["concept"] == data.table["concept"].iloc[0])
    with pytest.raises(ValueError, match="class"):
        seva().run(data.select(rows), features_of(features.f_ND[rows]), LogisticReadout(n_splits=3))


def test_the_embedded_demo_from_features_to_scores(features_of):
    data = doodles(concepts=6, instances=5)
    log_p = np.log(choice_probability(data) + 1e-3)
    features = features_of((log_p + np.random.default_rng(0).normal(size=log_p.shape)).astype(np.float32))
    result = seva(splits=10).run(data, features, LogisticReadout(n_splits=5))
    assert result.details["readout"]["converged"]
    assert result.flags[0] == "simulated_participants"
    assert result.conditions["accuracy_people"].is_monotonic_increasing
    assert result.conditions["entropy_people"].is_monotonic_decreasing
    assert result.scores["alignment_accuracy"].value is not None
    assert (result.items.groupby("image_id")["fold"].nunique() == 1).all()


def test_a_concept_with_too_few_images_is_named_or_reduces_the_folds(study):
    data, features = study
    images = int(data.table.groupby("concept")["image_id"].nunique().min())
    settings = rf"readout\.n_splits={images} or readout\.small_class=reduce, add"
    with pytest.raises(ValueError, match=rf"class '.+' has {images} groups for 9 folds.*{settings}"):
        seva().run(data, features, LogisticReadout(n_splits=9))
    result = seva().run(data, features, LogisticReadout(n_splits=9, small_class="reduce"))
    assert f"folds_reduced:{images}" in result.flags
