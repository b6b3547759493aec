"""The comparison of a machine's sketches with people's, against SciPy, NumPy and a bootstrap written out in pandas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.spatial.distance import jensenshannon

from humanlike.benchmarks.protocol import preset
from humanlike.benchmarks.study.label_divergence import CellLabels, distance_replicates, rank_of_cells
from humanlike.benchmarks.study.machine_sketches import machine_sketches
from humanlike.stats import CellDesign, CodedResponses, image_weights
from humanlike.types import Responses, Sketches

GUESSES = [f"guess_{i}" for i in range(1, 6)]


@pytest.fixture(scope="session")
def pair(study):
    """The made-up study, and a machine's sketches of the same images at 1, 2, 4 and 8 strokes, judged by others."""
    people, _ = study
    rng = np.random.default_rng(3)
    table = people.table.assign(sketch_id="m" + people.table["sketch_id"], condition=people.table["condition"] / 4)
    answers = people.responses.table.sample(frac=0.3, random_state=1).copy()
    answers["sketch_id"] = "m" + answers["sketch_id"]
    for column in GUESSES:
        wrong = (rng.random(len(answers)) < 0.7) & answers[column].notna()
        answers.loc[wrong, column] = rng.choice(people.labels, int(wrong.sum()))
    machine = replace(people, name="plotter", table=table, responses=Responses(answers), condition_unit="strokes")
    return people, machine


def long_answers(data: Sketches) -> pd.DataFrame:
    """One row a guess: concept, level, image, label, and whether it is a first one."""
    merged = data.responses.table.merge(data.table, on="sketch_id")
    merged["level"] = merged["condition"].rank(method="dense").astype(int)
    rows = merged.melt(["sketch_id", "concept", "level", "image_id"], GUESSES, "guess", "label").dropna(subset="label")
    return rows.assign(first=rows["guess"] == "guess_1")


def accuracy_by_hand(rows: pd.DataFrame) -> pd.Series:
    first = rows[rows["first"]]
    right = (first["label"] == first["concept"]).groupby([first["concept"], first["level"], first["sketch_id"]]).mean()
    return right.groupby(level=[0, 1]).mean()


def counts_by_hand(rows: pd.DataFrame, labels) -> pd.DataFrame:
    return (
        rows.groupby(["concept", "level", "label"]).size().unstack(fill_value=0).reindex(columns=labels, fill_value=0)
    )


@pytest.fixture(scope="session")
def tables(pair):
    return machine_sketches(*pair, preset("corrected"), replicates=24, rank_replicates=8, seed=5)


def test_cells_agree_with_pandas_and_scipy(pair, tables):
    cells = tables["machine_cells"].set_index(["concept", "level"]).sort_index()
    rows = [long_answers(data) for data in pair]
    for column, side in zip(("people_sketches", "machine_sketches"), rows, strict=True):
        np.testing.assert_allclose(cells[column], accuracy_by_hand(side).reindex(cells.index), atol=1e-12)
    people, machine = (counts_by_hand(side, pair[0].labels).reindex(cells.index) for side in rows)
    distance = np.array([[jensenshannon(m, h) for h in people.to_numpy()] for m in machine.to_numpy()])
    np.testing.assert_allclose(cells["distance"], np.diag(distance), atol=1e-12)
    concept = cells.index.get_level_values("concept")
    rank = [stats.rankdata(np.round(d, 10))[concept == c].min() for d, c in zip(distance, concept, strict=True)]
    np.testing.assert_array_equal(cells["rank"], rank)
    assert cells["machine_condition"].tolist() == (cells["condition"] / 4).tolist()


def test_the_regression_agrees_with_numpy(tables):
    cells, fit = tables["machine_cells"], tables["machine_fit"]
    m, t = cells["machine_sketches"].to_numpy(), cells["condition"].to_numpy()
    x = np.stack([np.ones(len(m)), m, t, m * t], 1)
    beta, sse, *_ = np.linalg.lstsq(x, cells["people_sketches"].to_numpy(), rcond=None)
    assert fit["term"].tolist() == ["(Intercept)", "machine_sketches", "condition", "machine_sketches:condition"]
    np.testing.assert_allclose(fit["estimate"], beta, atol=1e-10)
    np.testing.assert_allclose(cells["fitted"], x @ beta, atol=1e-10)
    sst = ((cells["people_sketches"] - cells["people_sketches"].mean()) ** 2).sum()
    adjusted = 1 - (sse[0] / (len(m) - 4)) / (sst / (len(m) - 1))
    np.testing.assert_allclose(fit["adjusted_r2"], adjusted, atol=1e-10)
    assert set(fit["n"]) == {len(cells)}
    assert set(fit["note"]) == {""}


@pytest.mark.parametrize("measure", ["distance", "rank"])
def test_levels_and_trend_agree_with_scipy(tables, measure):
    cells, rows, trend = (tables[f"machine_{name}"] for name in ("cells", "divergence", "trend"))
    rows, slope = (
        rows[rows["measure"] == measure],
        trend[trend["measure"] == measure].set_index("term").loc["condition"],
    )
    expected = stats.linregress(cells["condition"], cells[measure])
    assert slope["estimate"] == pytest.approx(expected.slope, abs=1e-12)
    assert slope["statistic"] == pytest.approx(expected.slope / expected.stderr, rel=1e-9)
    assert slope["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    np.testing.assert_allclose(rows["estimate"], cells.groupby("condition")[measure].mean(), atol=1e-12)
    assert rows["n"].tolist() == [8, 8, 8, 8]
    assert (rows["ci_low"] < rows["estimate"]).all()
    assert (rows["ci_high"] > rows["estimate"]).all()


def test_replicates_are_those_of_resampled_tables(pair, tables):
    """Interval of every level from replicates in which each drawn image's answers are copied, images drawn together."""
    people = pair[0]
    design = CellDesign.from_columns(people.target_N, people.table["image_id"], people.table["condition"])
    weights_BKJ = image_weights(design, 24, 5)
    rows = [long_answers(data) for data in pair]
    concepts = sorted(people.table["concept"].unique(), key=people.labels.index)
    accuracy, distance = [], []
    for weights_KJ in weights_BKJ:
        times = {
            image: w
            for concept, row in zip(concepts, weights_KJ, strict=True)
            for image, w in zip(
                sorted(people.table.loc[people.table["concept"] == concept, "image_id"].unique()), row, strict=True
            )
        }
        drawn = []
        for side in rows:
            w = side["image_id"].map(times).to_numpy()
            copies = side.loc[side.index.repeat(w)].copy()
            copies["sketch_id"] += "_" + np.concatenate([np.arange(n) for n in w]).astype(str)
            drawn.append(copies)
        accuracy.append([accuracy_by_hand(side).groupby(level="level").mean() for side in drawn])
        tables_ = [counts_by_hand(side, people.labels) for side in drawn]
        index = tables_[0].index.intersection(tables_[1].index)
        both = [t.loc[index].to_numpy() for t in tables_]
        value = pd.Series(jensenshannon(*both, axis=1), index=index)
        distance.append(value.groupby(level="level").mean())
    rows = tables["machine_divergence"].query("measure == 'distance'")
    check_basic(rows, np.array(distance))
    levels = tables["machine_levels"]
    assert levels["drawn_by"].unique().tolist() == ["people", "plotter"]
    for number, name in enumerate(("people", "plotter")):
        check_basic(levels[levels["drawn_by"] == name], np.array([a[number] for a in accuracy]))


def check_basic(rows, replicate_BT):
    mean, (low, high) = replicate_BT.mean(0), np.quantile(replicate_BT, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(rows["ci_low"], rows["estimate"] - (high - mean), atol=1e-10)
    np.testing.assert_allclose(rows["ci_high"], rows["estimate"] + (mean - low), atol=1e-10)
    assert (rows["interval"] == "basic").all()


def test_the_protocol_chooses_measures_and_intervals(pair):
    for name, measures in (("paper_text", {"distance"}), ("paper_code", {"rank"})):
        tables = machine_sketches(*pair, preset(name), replicates=5, rank_replicates=3)
        assert set(tables["machine_divergence"]["measure"]) == measures == set(tables["machine_trend"]["measure"])
        assert measures == {"distance", "rank"} & set(tables["machine_cells"])
        assert (tables["machine_levels"]["interval"] == "percentile").all()
        assert tables["machine_divergence"]["replicates"].tolist() == [5 if measures == {"distance"} else 3] * 4


def test_a_machine_that_draws_like_people_is_nowhere_apart(study):
    people, _ = study
    tables = machine_sketches(
        people, replace(people, name="copy"), preset("corrected"), replicates=6, rank_replicates=2
    )
    cells, fit = tables["machine_cells"], tables["machine_fit"].set_index("term")
    assert (cells["distance"] == 0).all()
    assert (cells["rank"] == 1).all()
    assert fit["adjusted_r2"].iloc[0] == pytest.approx(1)
    assert fit.loc["machine_sketches", "estimate"] == pytest.approx(1)
    rows = tables["machine_divergence"].query("measure == 'distance'")
    assert (rows[["estimate", "ci_low", "ci_high"]] == 0).all(axis=None)


def test_order_of_rows_does_not_matter_and_other_concepts_are_left_out(pair, tables):
    people, machine = pair
    rng = np.random.default_rng(0)
    machine = machine.select(rng.permutation(len(machine)))
    some = machine.select(np.flatnonzero(machine.table["concept"] != machine.table["concept"].iloc[0]))
    again = machine_sketches(people, machine, preset("corrected"), replicates=24, rank_replicates=8, seed=5)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table, check_exact=True)
    fewer = machine_sketches(people, some, preset("corrected"), replicates=4, rank_replicates=2)
    assert fewer["machine_cells"]["concept"].nunique() == 7
    assert fewer["machine_levels"]["n"].tolist() == [7] * 8


def test_images_of_the_machines_own_are_drawn_apart(pair):
    people, machine = pair
    own = replace(machine, table=machine.table.assign(image_id="x" + machine.table["image_id"]))
    runs = [machine_sketches(people, m, preset("paper_text"), replicates=30)["machine_levels"] for m in (machine, own)]
    pd.testing.assert_frame_equal(runs[0].iloc[:4], runs[1].iloc[:4])
    pd.testing.assert_series_equal(runs[0]["estimate"], runs[1]["estimate"])
    assert (runs[0]["ci_low"].iloc[4:] != runs[1]["ci_low"].iloc[4:]).all()


def test_cells_without_answers_are_missing():
    design = CellDesign(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([0, 1, 0]), np.array([4.0, 8.0]))
    coded = CodedResponses(np.arange(3), np.arange(3), np.array([[0, 1], [1, -1], [2, 0]]))
    labels = CellLabels(design, coded, 3)
    assert labels.table().tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0]]
    weights_BKJ = np.array([[[1, 1], [1, 0]], [[2, 0], [1, 0]]])
    assert labels.table(weights_BKJ[1]).tolist() == [[2, 2, 0], [0, 0, 0], [1, 0, 1], [0, 0, 0]]
    found = distance_replicates(labels, labels, weights_BKJ, weights_BKJ)
    np.testing.assert_array_equal(found, [[0, 0, 0, np.nan], [0, np.nan, 0, np.nan]])
    np.testing.assert_array_equal(rank_of_cells(labels, labels, weights_BKJ[1], weights_BKJ[1]), [1, np.nan, 1, np.nan])


def test_what_the_cells_cannot_carry_is_said(study):
    people, _ = study
    one = people.select(np.flatnonzero((people.table["condition"] == 4.0).to_numpy()))
    tables = machine_sketches(one, replace(one, name="copy"), preset("corrected"), replicates=3, rank_replicates=2)
    assert tables["machine_fit"]["term"].tolist() == ["(Intercept)", "machine_sketches"]
    assert tables["machine_trend"]["note"].str.startswith("not fitted: ").all()
    assert tables["machine_trend"]["estimate"].isna().all()


def test_refusals(pair):
    people, machine = pair
    corrected = preset("corrected")
    with pytest.raises(ValueError, match="same labels in the same order"):
        machine_sketches(people, replace(machine, labels=machine.labels[::-1]), corrected)
    with pytest.raises(ValueError, match="plotter has no answers of people"):
        machine_sketches(people, replace(machine, responses=None), corrected)
    three = machine.select(np.flatnonzero(machine.table["condition"] > 1))
    with pytest.raises(ValueError, match="as many levels, got 8 and 8 concepts"):
        machine_sketches(people, three, corrected)
    concept = people.table["concept"].iloc[0]
    with pytest.raises(ValueError, match="no judged concept in common"):
        machine_sketches(
            people.select(np.flatnonzero(people.table["concept"] == concept)),
            machine.select(np.flatnonzero(machine.table["concept"] != concept)),
            corrected,
        )
