"""`humanlike gather` for SEA: what runs have is put side by side, and what keeps them apart is said."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.sea import SeaBenchmark
from humanlike.data.trials import AbsentImages
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import presence_of
from humanlike.entry import cli
from humanlike.entry.gather import main
from humanlike.entry.gather_sea import run_names
from humanlike.entry.gathered_folder import found_runs, of_one_benchmark
from humanlike.reports.run_folder import read_run, write_run
from humanlike.reports.sea_gathered import gathered_warnings, readout_name
from humanlike.types import Features, Score, Sketches

OWL = ("eye", "beak", "wing", "claw")
ELEMENTS = {"owl": OWL, "violin": ("body", "neck", "string"), "cup": ("handle", "rim")}


class Known:
    def out_of_fold_proba(self, f_ND, label_N, num_labels, group_N=None):
        return f_ND


def score_of(
    dataset, concepts=("owl", "violin"), backbone="net_a", judge=None, threshold=0.5, origin=None, shift=0, **options
):
    """A run on made-up sketches of two times; `origin` names lists that the data set is not annotated for."""
    rng = np.random.default_rng(5 + shift)
    ids = [f"{concept}-{image}-{seconds}" for concept in concepts for image in range(3) for seconds in (4, 32)]
    table = pd.DataFrame(
        [(i, i.split("-")[0], float(i.split("-")[2]), i.rsplit("-", 1)[0]) for i in ids],
        columns=["sketch_id", "concept", "condition", "image_id"],
    )
    rows = [(i, element, bool(rng.random() < 0.6)) for i in ids for element in ELEMENTS[i.split("-")[0]]]
    data = Sketches(
        dataset, table, tuple(concepts), AbsentImages(tuple(ids)), "s",
        elements=pd.DataFrame(rows, columns=["sketch_id", "element", "drawn"]),
    )  # fmt: skip
    p_N = rng.uniform(0.02, 0.98, len(ids))
    rest = (1 - p_N) / (len(concepts) - 1)
    f_NL = np.where(data.target_N[:, None] == np.arange(len(concepts)), p_N[:, None], rest[:, None])
    features = Features(f_NL, np.arange(len(ids)), {}, "pool", {"weights": "w", "features": "f"})
    elements = ElementLists.from_annotation(data)
    if origin is not None:
        elements = ElementLists(origin, elements.elements, elements.provenance)
    presence = AnnotationJudge().judge(data, elements)
    if judge is not None:
        names = [elements[c] for c in data.table["concept"]]
        p = [rng.random(len(row)).tolist() for row in names]
        presence = presence_of(ids, names, p, judge, threshold)
    benchmark = SeaBenchmark(replicates=20, sensitivity_draws=0, **options)
    result = benchmark.scored(data, features, Known(), presence, elements)
    return Score(
        benchmark="sea", benchmark_version="1", dataset=dataset, backbone=backbone, layer="pool", result=result,
        seeds={"seed": 0}, hashes={"config": "c"}, versions={}, started="2026-01-02T03:04:05+00:00", seconds=1.0,
        digest=f"{dataset}{backbone}{shift}",
    )  # fmt: skip


def written(score, folder):
    write_run(score, folder, {}, figures={})
    return folder


def test_runs_of_several_data_sets_become_one_folder(tmp_path, monkeypatch, capsys):
    runs = {
        "a": score_of("doodles"),
        "b": score_of("parts", ("owl", "violin", "cup"), judge="a head", shift=1),
    }
    for name, score in runs.items():
        written(score, tmp_path / "runs" / name)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["humanlike", "gather", str(tmp_path / "runs"), "--output", str(out)])
    cli.main()
    said = capsys.readouterr().out
    assert "v comes from different lists of elements" in said
    assert "and different judges" in said
    scores = pd.read_parquet(out / "tables" / "scores.parquet")
    assert scores["run"].nunique() == 2
    for run, score in zip(scores["run"].unique(), runs.values(), strict=True):
        own = scores[scores["run"] == run].set_index("score")
        for name, value in score.scores.items():
            assert own.loc[name, "value"] == pytest.approx(value.value, abs=0)
            assert own.loc[name, "ci_low"] == pytest.approx(value.ci_low, abs=0)
    conditions = pd.read_csv(out / "tables" / "conditions.csv")
    assert conditions["condition"].tolist() == [4, 32, 4, 32]
    np.testing.assert_allclose(conditions["sea"], [v for s in runs.values() for v in s.result.conditions["sea"]])
    table = pd.read_parquet(out / "tables" / "runs.parquet")
    assert table["labels"].tolist() == [2, 3]
    assert table["judge"].tolist() == ["annotation of doodles", "a head"]
    record = json.loads((out / "gather.json").read_text())
    assert record["dataset"] == "doodles and parts"
    assert any("different numbers of them" in text for text in record["warnings"])
    markdown = (out / "tables.md").read_text()
    value = runs["a"].scores["sea"]
    assert f"{value.value:.3f} ({value.ci_low:.3f} to {value.ci_high:.3f})".replace("-", "−") in markdown
    page = (out / "report.html").read_text()
    assert "v comes from different lists of elements" in page
    for name in ("sea_compared", "sea_conditions"):
        assert (out / "figures" / f"{name}.svg").is_file()
        assert f'id="{name}-figure_1"' in page


def test_lists_of_one_origin_differ_only_where_a_concept_has_two_of_them():
    one = score_of("doodles", origin="shipped", judge="a head")
    other = score_of("parts", ("owl", "cup"), origin="shipped", judge="a head")
    assert one.result.details["elements"]["source"] != other.result.details["elements"]["source"]
    assert gathered_warnings({"one": one, "other": other}) == []
    concepts = other.result.tables["concepts"].replace({", ".join(OWL): "eye, beak"})
    tables = {**other.result.tables, "concepts": concepts}
    changed = replace(other, result=replace(other.result, tables=tables))
    assert "different lists of elements" in gathered_warnings({"one": one, "other": changed})[0]


def test_another_threshold_and_other_hyperparameters_are_told():
    one = score_of("doodles", judge="a head")
    strict = score_of("doodles", judge="a head", threshold=0.8)
    other = score_of("doodles", judge="a head", metric={"delta": 1e-7})
    assert "one: a head; strict: a head, present from 0.8" in gathered_warnings({"one": one, "strict": strict})[0]
    (said,) = gathered_warnings({"one": one, "other": other})
    assert said == "SEA of these runs cannot be compared: delta differs (one: 1e-06; other: 1e-07)."
    assert readout_name(one) == "logistic"


def test_runs_are_called_by_what_tells_them_apart(tmp_path):
    runs = [score_of("doodles", backbone=name) for name in ("net_a", "net_b")]
    assert run_names(runs) == ["net_a", "net_b"]
    head = "presence head on net pool (C 1, share 1), "
    judged = [score_of("doodles", judge=f"{head}{how}") for how in ("out of 5 folds of doodles", "trained on parts")]
    assert run_names(judged) == ["presence head out of 5 folds", "presence head trained on parts"]
    mixed = [*runs, score_of("parts", backbone="net_a")]
    assert run_names(mixed) == ["doodles · net_a", "doodles · net_b", "parts · net_a"]
    same = [read_run(written(score_of("doodles"), tmp_path / name)) for name in ("one", "two")]
    assert run_names(same) == ["doodles · one", "doodles · two"]
    swept = "backbone=net_a,dataset=doodles-0123abcdef"
    assert run_names([same[0], read_run(written(score_of("doodles"), tmp_path / swept))])[1] == "doodles · …0123abcdef"


def test_runs_of_several_benchmarks_are_refused_unless_one_is_chosen(tmp_path, capsys):
    written(score_of("doodles"), tmp_path / "sea")
    written(replace(score_of("doodles"), benchmark="seva"), tmp_path / "seva")
    with pytest.raises(ValueError, match=r"several benchmarks \(1 of sea, 1 of seva\).*--benchmark sea"):
        main([str(tmp_path)])
    main([str(tmp_path), "--benchmark", "sea", "--output", str(tmp_path / "out")])
    assert json.loads((tmp_path / "out" / "gather.json").read_text())["counts"]["runs"] == 1
    with pytest.raises(ValueError, match="runs of benchmark=seva cannot be gathered, only those of object_learning"):
        main([str(tmp_path / "seva")])
    with pytest.raises(ValueError, match=r"no finished run of benchmark=object_learning, but 1 of sea"):
        of_one_benchmark(found_runs([tmp_path / "sea"]), "object_learning", ["object_learning", "sea"])
    with pytest.raises(SystemExit):
        main([str(tmp_path / "sea"), "--convention", "v2"])
    assert "--convention: for runs of object learning, but these are of sea" in capsys.readouterr().err
    written(replace(score_of("doodles"), benchmark_version="0"), tmp_path / "sea" / "old")
    with pytest.raises(ValueError, match=r"of version \d of the benchmark and .* of version \d"):
        main([str(tmp_path / "sea")])


def test_a_grid_ranks_sketches_cell_by_cell(tmp_path, capsys):
    from scipy.stats import kendalltau, pearsonr, spearmanr

    cells = {
        "plain": score_of("doodles"),
        "judged": score_of("doodles", judge="a head"),
        "other net": score_of("doodles", backbone="net_b", origin="shipped"),
        "elsewhere": score_of("parts", ("owl", "cup")),
    }
    for name, score in cells.items():
        written(score, tmp_path / "runs" / name)
    people = pd.DataFrame(
        [
            (f"p{p}", i, 1 + (p + 3 * n) % 7)
            for p in range(6)
            for n, i in enumerate(cells["plain"].result.items["sketch_id"])
        ],
        columns=["participant", "sketch_id", "rating"],
    )
    people.to_csv(tmp_path / "ratings.csv", index=False)
    out = tmp_path / "out"
    main([str(tmp_path / "runs"), "--output", str(out), "--responses", str(tmp_path / "ratings.csv")])
    said = capsys.readouterr().out
    assert "v comes from different lists of elements" in said
    grid = pd.read_parquet(out / "tables" / "grid.parquet")
    assert len(grid) == 4
    assert set(grid["classifier"]) == {"net_a pool, logistic", "net_b pool, logistic"}
    pairs = pd.read_parquet(out / "tables" / "rank_correlations.parquet")
    assert len(pairs) == 3  # runs on different sketches are not correlated
    items = {name: s.result.items.set_index("sketch_id")["sea"] for name, s in cells.items()}
    sorted_names = sorted(cells)  # as folders are found
    names = dict(zip(grid["run"], [n for n in sorted_names], strict=True))
    for row in pairs.to_dict("records"):
        a, b = items[names[row["run_a"]]], items[names[row["run_b"]]]
        assert row["spearman"] == pytest.approx(spearmanr(a, b[a.index]).statistic)
        assert row["kendall"] == pytest.approx(kendalltau(a, b[a.index]).statistic)
        for name in ("spearman", "kendall"):
            assert -1 <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= 1
    differ = {frozenset((names[r["run_a"]], names[r["run_b"]])): r["differ"] for r in pairs.to_dict("records")}
    assert differ[frozenset(("plain", "judged"))] == "judge"
    assert differ[frozenset(("plain", "other net"))] == "elements, classifier"
    agreement = pd.read_parquet(out / "tables" / "people.parquet")
    assert set(agreement["run"]) == set(grid["run"][grid["dataset"] == "doodles"])
    mean = people.groupby("sketch_id")["rating"].mean()
    found = agreement.set_index(["run", "measure"])
    for run in set(agreement["run"]):
        own = items[names[run]][mean.index]
        for measure, referee in (("pearson", pearsonr), ("spearman", spearmanr), ("kendall", kendalltau)):
            row = found.loc[(run, measure)]
            assert row["value"] == pytest.approx(referee(own, mean).statistic)
            assert row["ci_low"] <= row["value"] <= row["ci_high"]
            assert row["n"] == len(mean)
    page = (out / "report.html").read_text()
    for title in ("Element source, judge and classifier", "Do runs rank sketches alike?", "Agreement with people"):
        assert title in page
        assert title in (out / "tables.md").read_text()


def test_orders_are_held_against_every_cell_that_has_the_sketches(tmp_path):
    """Accepted orders and pairs counted one by one."""
    from itertools import combinations

    cells = {
        "plain": score_of("doodles"),
        "judged": score_of("doodles", judge="a head"),
        "elsewhere": score_of("parts", ("owl", "cup")),
    }
    for name, score in cells.items():
        written(score, tmp_path / "runs" / name)
    rng, rows = np.random.default_rng(4), []
    ids = cells["plain"].result.items["sketch_id"].tolist()
    for item, triple in enumerate([ids[0:3], ids[3:6], ids[4:12:3]]):
        for person in range(5):
            rows += [(f"p{person}", f"t{item}", i, 1 + k) for k, i in enumerate(rng.permutation(triple))]
    orders = pd.DataFrame(rows, columns=["participant", "item", "sketch_id", "rank"])
    orders.to_csv(tmp_path / "orders.csv", index=False)
    main([str(tmp_path / "runs"), "--output", str(tmp_path / "out"), "--responses", str(tmp_path / "orders.csv")])
    found = pd.read_parquet(tmp_path / "out" / "tables" / "people.parquet").set_index(["run", "measure"])
    runs = pd.read_parquet(tmp_path / "out" / "tables" / "runs.parquet").set_index("run")
    runs = runs[runs["dataset"] == "doodles"]
    assert set(found.index.get_level_values("run")) == set(runs.index)
    for run, about in runs.iterrows():
        name = "judged" if about["judge"] == "a head" else "plain"
        sea = cells[name].result.items.set_index("sketch_id")["sea"]
        accepted, pairs = [], []
        for _, own in orders.groupby(["participant", "item"]):
            by_rank = own.sort_values("rank")["sketch_id"].tolist()
            accepted.append(by_rank == sorted(by_rank, key=lambda i: -sea[i]))
            pairs += [sea[a] > sea[b] for a, b in combinations(by_rank, 2)]
        assert found.loc[(run, "accepted"), "value"] == pytest.approx(np.mean(accepted))
        assert found.loc[(run, "concordance"), "value"] == pytest.approx(np.mean(pairs))
        assert found.loc[(run, "accepted"), "n"] == 15
    written(score_of("other", ("owl", "cup")), tmp_path / "two" / "owls")
    written(score_of("another", ("violin", "cup")), tmp_path / "two" / "violins")
    with pytest.raises(ValueError, match=r"none of the 2 runs has all \d+ sketches that people judged"):
        main([str(tmp_path / "two"), "--output", str(tmp_path / "no"), "--responses", str(tmp_path / "orders.csv")])


def test_correlations_cover_the_truth_and_are_missing_where_nothing_varies():
    from humanlike.benchmarks.sea_grid import rank_correlations

    one = score_of("doodles")
    flat = replace(one, result=replace(one.result, items=one.result.items.assign(sea=0.5)))
    (row,) = rank_correlations({"one": one, "flat": flat}, replicates=20).to_dict("records")
    assert np.isnan([row["spearman"], row["spearman_low"], row["kendall"]]).all()
    (same,) = rank_correlations({"one": one, "again": one}, replicates=20).to_dict("records")
    assert same["spearman"] == pytest.approx(1.0)
    assert same["differ"] == ""
