"""The page: its numbers are those of score.json, names are escaped, and assistive technology finds its way."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from humanlike.reports.card.card import build_card
from humanlike.reports.card.exports import card_latex, card_markdown, latex_text, with_interval
from humanlike.reports.card.page import render_card
from humanlike.reports.card.studies import study_scores
from humanlike.reports.card.tables import card_tables

EVIL = "<script>alert('x')</script>&\"net"


@pytest.fixture(scope="module")
def page(card):
    return render_card(card, written="2026-01-01T00:00:00+00:00", versions={"humanlike": "0.1.0"})


@pytest.fixture(scope="module")
def data(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def recorded(entry):
    return [json.loads((Path(run.run_dir) / "score.json").read_text()) for run in entry.runs]


def test_numbers_of_the_figures_are_those_of_score_json(card, data):
    assert [g["key"] for g in data["groups"]] == ["g1", "g2", "g3"]
    for group, drawn in zip(card.groups, data["groups"], strict=True):
        assert drawn["models"] == [e.label for e in group.entries]
        for i, entry in enumerate(group.entries):
            records = recorded(entry)
            for name, score in drawn["scores"].items():
                values = [v for r in records if (v := r["scores"][name]["value"]) is not None]
                assert score["rows"][i][0] == pytest.approx(sum(values) / len(values), abs=1e-15)
            for metric, lines in drawn["conditions"].items():
                for point in lines["models"][str(i)]:
                    rows = [row for r in records for row in r["conditions"] if row["condition"] == point[0]]
                    own = [row[metric] for row in rows if row[metric] is not None]
                    assert point[1] == pytest.approx(sum(own) / len(own), abs=1e-12)
    people = {row["condition"]: row["accuracy_people"] for row in recorded(card.groups[0].entries[0])[0]["conditions"]}
    for condition, value, _ in data["groups"][0]["conditions"]["accuracy"]["people"]:
        assert value == pytest.approx(people[condition], abs=1e-12)


def test_layers_are_those_of_the_reference_rule(card, data):
    lines = data["groups"][2]["layers"]["msen_paper"]["models"]
    for i, entry in enumerate(card.groups[2].entries):
        table = pd.read_parquet(Path(entry.first.run_dir) / "models.parquet")
        own = table[table["rule"] == "square"].sort_values("relative_depth")
        assert [p[1] for p in lines[str(i)]] == own["msen_paper"].tolist()
        assert [p[4] for p in lines[str(i)]] == own["layer"].tolist()


def test_texts_of_the_table_are_the_values_rounded(card, page, parsed):
    text = " ".join(parsed(page).texts)
    for group in card.groups:
        score = card.scores[group.key][0]
        digits = 5 if score.startswith("msen") else 3
        for values in card.values[group.key].values():
            v = values[score]
            assert with_interval(v.value, v.low, v.high, digits) in text
    assert "simulation" in text


def test_the_page_is_whole_and_every_head_sorts(page, parsed):
    found = parsed(page)
    heads = re.findall(r"<th scope=\"col\"[^>]*aria-sort=\"none\"><button type=\"button\"", page)
    assert len(heads) > 20
    assert page.count('<th scope="col"') == len(heads)
    addresses = [v for _, k, v in found.attributes if k in ("src", "href", "data") and v]
    assert all(a.startswith(("data:", "#")) for a in addresses)
    ids = [v for _, k, v in found.attributes if k == "id"]
    assert len(ids) == len(set(ids))
    assert {a[1:] for a in addresses if a.startswith("#")} <= set(ids)
    labelled = [v for _, k, v in found.attributes if k in ("for", "aria-labelledby", "aria-describedby")]
    assert set(labelled) <= set(ids)


def test_names_cannot_become_elements(run_scores, parsed):
    card = build_card([replace(s, backbone=EVIL) if s.backbone.endswith("000") else s for s in run_scores])
    page = render_card(card, written="now", versions={})
    assert "<script>alert" not in page
    assert page.count("<script") == 3
    found = parsed(page)
    assert EVIL in found.texts
    assert EVIL in [v for _, k, v in found.attributes if k == "data-model"]
    stored = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert EVIL in stored["groups"][0]["models"]
    assert "<script>" not in card_markdown(card)
    assert r"\textless{}script\textgreater{}" in card_latex(card)["g1"]


def test_pictures_are_shown_once_with_the_answers_of_all(card, run_folders):
    shown = card.pictures["g1"]
    assert len(shown) == len({(p.source, p.text) for p in shown}) == 16
    tables = {e.label: pd.read_parquet(Path(e.first.run_dir) / "items.parquet") for e in card.groups[0].entries}
    for picture in shown:
        assert [label for label, *_ in picture.answers] == [e.label for e in card.groups[0].entries]
        concept, condition = re.fullmatch(r"sketch of (.+), (\d+) s", picture.text).groups()
        for label, answer, right, _ in picture.answers:
            table = tables[label]
            own = (table["concept"] == concept) & (table["condition"] == float(condition))
            assert answer in set(table.loc[own, "top1"])
            assert right == (answer == concept)
        assert picture.right == sum(right for _, _, right, _ in picture.answers)
    assert card.pictures["g3"] == []


def test_a_picture_that_is_none_is_left_out(run_scores, tmp_path):
    report = (Path(run_scores[0].run_dir) / "report.html").read_text()
    evil = report.replace('src="data:image/png;base64,', 'src="javascript:alert(1)//', 1)
    (tmp_path / "report.html").write_text(evil)
    found = build_card([replace(run_scores[0], run_dir=str(tmp_path))]).pictures["g1"]
    assert len(found) == 15
    assert all(p.source.startswith("data:image/png;base64,") for p in found)


def test_tables_hold_every_number_unrounded(card, run_folders):
    tables = card_tables(card)
    assert len(tables["runs"]) == len(run_folders)
    for row in tables["runs"].itertuples():
        record = json.loads((Path(row.folder) / "score.json").read_text())
        assert (row.digest, row.hash_data, row.hash_weights, row.started) == (
            record["digest"], record["hashes"]["data"], record["hashes"]["weights"], record["started"],
        )  # fmt: skip
    scores = tables["scores"].set_index(["group", "model", "score"])
    for group in card.groups:
        for label, values in card.values[group.key].items():
            for name, value in values.items():
                assert scores.loc[(group.key, label, name), "value"] == pytest.approx(value.value, nan_ok=True, abs=0)
    assert {"synthetic_run", "simulated_participants"} <= set(tables["flags"]["flag"])


def test_markdown_and_latex_say_the_same(card):
    markdown, latex = card_markdown(card), card_latex(card)
    for group in card.groups:
        score = card.scores[group.key][0]
        for label, values in card.values[group.key].items():
            text = with_interval(
                values[score].value, values[score].low, values[score].high, 5 if "msen" in score else 3
            )
            assert text in markdown
            assert f"{latex_text(label)} & " in latex[group.key]
            assert latex_text(text) in latex[group.key]
        rows = [line for line in latex[group.key].splitlines() if line.endswith(r"\\")]
        assert len({line.count(" & ") for line in rows}) == 1
        assert latex[group.key].isascii() or "–" not in latex[group.key]


def test_a_studys_models_keep_its_ceilings_and_ranks(study_record, study_tables, tmp_path):
    tables = dict(study_tables)
    ceiling = {
        "observer": "dino",
        "metric": "accuracy",
        "fraction_of_ceiling": 0.8,
        "fraction_low": 0.7,
        "fraction_high": 0.9,
    }
    tables["noise_ceiling"] = pd.DataFrame([ceiling])
    tables["means"] = (
        tables["conditions"]
        .groupby(["observer", "metric"])[["estimate", "ci_low", "ci_high", "n"]]
        .mean()
        .reset_index()
    )
    record = {**study_record, "benchmark": "seva", "condition_unit": "s"}
    card = build_card(study_scores(record, tables, tmp_path))
    assert [e.label for e in card.groups[0].entries] == sorted(study_tables["models"]["observer"])
    value = card.values["g1"]["dino"]["alignment_accuracy"]
    row = study_tables["alignment"].query("observer == 'dino' and metric == 'accuracy'").iloc[0]
    assert (value.value, value.low, value.high) == (row["estimate"], row["ci_low"], row["ci_high"])
    assert (value.fraction, value.fraction_low, value.fraction_high) == (0.8, 0.7, 0.9)
    found = card.rankings["g1"]["alignment_accuracy"]
    assert (found.rank["dino"], found.rank_high["dino"], found.letters["dino"]) == (1, 3, "ab")
    assert "the study's own" in found.how
    assert "study" in render_card(card)
