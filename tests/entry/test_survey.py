"""`humanlike survey` and `humanlike agreement` as a user starts them, from a run or a folder to the report."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image, ImageDraw

from humanlike.data.survey import read_survey
from humanlike.data.survey_exports import SCHEMA
from humanlike.entry import cli
from humanlike.reports.run_folder import write_table

PARTS = "humanlike.data.image_folder.image_folder"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of 24 drawings of two concepts."""
    root = tmp_path_factory.mktemp("sketches")
    rng = np.random.default_rng(0)
    for concept in ("owl", "cup"):
        (root / concept).mkdir()
        for i in range(12):
            sheet = Image.new("L", (120, 120), 255)
            ImageDraw.Draw(sheet).line([tuple(p) for p in rng.uniform(5, 115, (4 + i, 2))], fill=0, width=3)
            sheet.save(root / concept / f"{i:02d}.png")
    return root


@pytest.fixture
def run(tmp_path, folder):
    """A finished run of SEA on that folder: the files that both commands read."""
    rng = np.random.default_rng(1)
    ids = sorted(f"{p.parent.name}/{p.name}" for p in folder.glob("*/*.png"))
    items = pd.DataFrame(
        {"sketch_id": ids, "concept": [i.split("/")[0] for i in ids], "condition": 0.0,
         "sea": rng.uniform(-1, 1, 24), "recognition": rng.uniform(0, 1, 24),
         "error": pd.Series([None] * 24, dtype=object)}
    )  # fmt: skip
    items.loc[3, ["sea", "error"]] = [np.nan, "truncated"]
    path = tmp_path / "run"
    path.mkdir()
    write_table(path / "items.parquet", items)
    record = {"schema": "humanlike.score/1", "digest": "d" * 64, "dataset": "image_folder", "backbone": "net"}
    (path / "score.json").write_text(json.dumps(record))
    (path / "config.yaml").write_text(yaml.safe_dump({"dataset": {"_target_": PARTS, "root": str(folder)}}))
    return path


def humanlike(monkeypatch, *arguments):
    """Run the command line in this process: its exit status."""
    monkeypatch.setattr(sys, "argv", ["humanlike", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as end:
        return end.code
    return 0


def export(survey, participant, orders, passed=True):
    """What the page exports for given orders (item → sketch ids, first place first)."""
    return {
        "schema": SCHEMA, "fingerprint": survey.fingerprint, "kind": "ranking", "participant": participant,
        "complete": True, "scale": None,
        "answers": [{"item": i.item, "shown": list(i.sketch_ids), "order": orders[i.item], "seconds": 2}
                    for i in survey.items],
        "checks": [{"item": "check-1", "expected": ["a"], "given": ["a"] if passed else ["b"]}],
    }  # fmt: skip


def test_from_a_run_to_a_report(run, tmp_path, monkeypatch, capsys):
    study, answers, out = tmp_path / "study", tmp_path / "answers", tmp_path / "out"
    assert humanlike(monkeypatch, "survey", run, study, "--count", 12, "--checks", 2, "--min-gap", 0.05) == 0
    assert "12 triples of" in capsys.readouterr().out
    survey = read_survey(study)
    assert len(survey.items) == 12
    assert len(survey.checks) == 2
    assert survey.source["run"] == "run"
    assert "sea" not in (study / "survey.html").read_text().split('id="survey">')[1].split("</script>")[0]
    chosen = pd.read_parquet(study / "items.parquet")
    assert chosen.groupby("item")["place"].apply(list).tolist() == [[1, 2, 3]] * 12

    score = pd.read_parquet(run / "items.parquet").set_index("sketch_id")["sea"]
    answers.mkdir()
    rng = np.random.default_rng(2)
    accepted = []
    for p in range(6):
        orders = {}
        for item in survey.items:
            best = sorted(item.sketch_ids, key=lambda s: -score[s])
            orders[item.item] = best if rng.random() < 0.8 else best[::-1]
            accepted.append(orders[item.item] == best)
        (answers / f"{p}.json").write_text(json.dumps(export(survey, f"P{p}", orders)))
    (answers / "bad.json").write_text(json.dumps(export(survey, "bad", orders, passed=False)))

    arguments = ("--survey", study, "--replicates", 100, "--score", "sea", "--score", "recognition", "--output", out)
    assert humanlike(monkeypatch, "agreement", run, answers, *arguments) == 0
    said = capsys.readouterr().out
    assert f"{np.mean(accepted):.3f} (" in said
    assert "1 participant(s) failed attention checks" in said
    record = json.loads((out / "agreement.json").read_text())
    assert record["schema"] == "humanlike.agreement/1"
    assert record["fingerprint"] == survey.fingerprint
    assert record["agreement"][0]["value"] == pytest.approx(np.mean(accepted))
    assert record["counts"]["participants_excluded"] == 1
    assert record["counts"]["items_never_answered"] == 0
    assert record["runs"]["sea"]["digest"] == "d" * 64
    tables = {p.stem for p in (out / "tables").glob("*.parquet")}
    assert tables == {"agreement", "participants", "items", "comparisons", "judgments"}
    people = pd.read_parquet(out / "tables" / "participants.parquet").set_index("participant")
    assert people.loc["bad", "excluded"]
    assert pd.isna(people.loc["bad", "accepted"])
    page = (out / "report.html").read_text()
    assert "orders accepted" in page.lower()
    assert not re.search(r"(?:src|href)=[\"']https?:", page)

    # the flat table that was written is read again, to the same values; the excluded one is gone from it
    again = tmp_path / "again"
    flat = out / "tables" / "judgments.csv"
    assert humanlike(monkeypatch, "agreement", run, flat, *arguments[:-1], again) == 0
    repeated = json.loads((again / "agreement.json").read_text())
    assert repeated["agreement"] == record["agreement"]


def test_an_acceptance_from_a_run_to_a_report(run, tmp_path, monkeypatch, capsys):
    study, out = tmp_path / "study", tmp_path / "out"
    arguments = ("--kind", "acceptance", "--count", 12, "--checks", 1, "--min-gap", 0.05)
    assert humanlike(monkeypatch, "survey", run, study, *arguments) == 0
    survey = read_survey(study)
    score = pd.read_parquet(run / "items.parquet").set_index("sketch_id")["sea"]
    assert survey.controls == 0.25
    assert all(score[list(item.sketch_ids)].is_monotonic_decreasing for item in survey.items)

    # six people see every fourth item turned round; they accept five of nine orders, and one of three controls
    rows = [
        {"participant": f"P{p}", "item": item.item, "sketch_id": sketch, "shown": place,
         "accepted": (k // 4 == 0) if k % 4 == p % 4 else k % 2 == 0, "fingerprint": survey.fingerprint}
        for p in range(6) for k, item in enumerate(survey.items)
        for place, sketch in enumerate(item.sketch_ids[:: -1 if k % 4 == p % 4 else 1], 1)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table.to_csv(tmp_path / "answers.csv", index=False)
    arguments = ("--survey", study, "--replicates", 100)
    assert humanlike(monkeypatch, "agreement", run, tmp_path / "answers.csv", *arguments, "--output", out) == 0
    said = capsys.readouterr().out
    first = table.drop_duplicates(["participant", "item"]).reset_index(drop=True)
    person = first["participant"].str[1:].astype(int)
    control = first.groupby("participant").cumcount() % 4 == person % 4
    expected = first.loc[~control, "accepted"].mean(), first.loc[control, "accepted"].mean()
    record = json.loads((out / "agreement.json").read_text())
    assert record["kind"] == "acceptance"
    assert [r["value"] for r in record["agreement"]] == pytest.approx([*expected, expected[0] - expected[1]])
    assert f"{expected[0]:.3f} (" in said
    assert "published for SEA are 0.878 and 0.880" in said
    assert "controls accepted" in (out / "report.html").read_text().lower()
    assert (out / "figures" / "acceptance.svg").is_file()

    flat = out / "tables" / "judgments.csv"
    assert set(pd.read_csv(flat)["accepted"]) == {True, False}
    assert humanlike(monkeypatch, "agreement", run, flat, *arguments, "--output", tmp_path / "again") == 0
    again = json.loads((tmp_path / "again" / "agreement.json").read_text())
    assert again["agreement"] == record["agreement"]


def test_two_runs_are_compared(run, tmp_path, monkeypatch, capsys):
    other = tmp_path / "other.csv"
    items = pd.read_parquet(run / "items.parquet")
    items[["sketch_id", "sea"]].assign(sea=-items["sea"]).to_csv(other, index=False)
    rng = np.random.default_rng(0)
    rows = [(f"P{p}", s, round(4 + 2 * v + rng.normal())) for p in range(5)
            for s, v in zip(items["sketch_id"], items["sea"], strict=True) if v == v]  # fmt: skip
    answers = tmp_path / "ratings.csv"
    pd.DataFrame(rows, columns=["participant", "sketch_id", "rating"]).to_csv(answers, index=False)
    out = tmp_path / "out"
    arguments = (run, answers, "--against", other, "--replicates", 100, "--splits", 20, "--output", out)
    assert humanlike(monkeypatch, "agreement", *arguments) == 0
    found = pd.read_parquet(out / "tables" / "agreement.parquet").set_index(["score", "measure"])["value"]
    assert found["run", "spearman"] == pytest.approx(-found["other", "spearman"])
    assert found["run", "spearman"] > 0.5
    compared = pd.read_parquet(out / "tables" / "comparisons.parquet")
    assert (compared["difference"] > 0).all()
    assert (compared["p_adjusted"] < 0.01).all()
    assert "Mean ratings by score" in (out / "report.html").read_text()


def test_a_rating_from_a_plain_folder(folder, tmp_path, monkeypatch, capsys):
    out = tmp_path / "study"
    arguments = (folder, out, "--kind", "rating", "--count", 10, "--scale", "0:100:5", "--slider")
    assert humanlike(monkeypatch, "survey", *arguments) == 0
    survey = read_survey(out)
    assert survey.scale.high == 100
    assert len(survey.sketch_ids) == 10
    before = (out / "survey.html").read_text()
    assert humanlike(monkeypatch, "survey", *arguments) == 0
    assert (out / "survey.html").read_text() == before
    assert humanlike(monkeypatch, "survey", *arguments, "--seed", 1) == 2
    assert "people may have answered it" in capsys.readouterr().err
    assert (out / "survey.html").read_text() == before


def test_a_ranking_from_a_folder_and_a_table_of_scores(folder, run, tmp_path, monkeypatch):
    scores = tmp_path / "scores.csv"
    pd.read_parquet(run / "items.parquet")[["sketch_id", "recognition"]].to_csv(scores, index=False)
    arguments = ("--scores", scores, "--score", "recognition", "--count", 4)
    assert humanlike(monkeypatch, "survey", folder, tmp_path / "s", *arguments) == 0
    assert len(read_survey(tmp_path / "s").items) == 4


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("survey", "{folder}", "{out}"), 1, "triples are chosen by score"),
        (("survey", "{run}", "{out}"), 1, "160 were asked for"),
        (
            ("survey", "{run}", "{out}", "--score", "see"),
            1,
            "has no score 'see'; its columns of numbers are condition, sea",
        ),
        (("survey", "{run}", "{out}", "--kind", "rating", "--scale", "1-7"), 1, "write LOW:HIGH"),
        (("survey", "{run}", "{out}", "--count", "3", "layout=x"), 1, "only settings of the data set"),
        (
            ("survey", "{run}", "{out}", "--count", "3", "dataset.root=absent"),
            1,
            "dataset.root=PATH says where they are",
        ),
        (
            ("survey", "{run}", "{out}", "--count", "3", "dataset.labels=[a"),
            2,
            "cannot read the value of dataset.labels=[a",
        ),
        (
            ("survey", "{run}", "{out}", "--count", "3", "dataset.root.x=1"),
            1,
            "in which nothing can be set",
        ),
        (("survey", "{run}", "{folder}/owl/00.png/out"), 1, "OUT is"),
        (("survey", "{run}", "{out}", "--cuont", "3"), 2, "cannot read '--cuont'"),
        (("survey", "{folder}", "{out}", "dataset.root=x"), 1, "is no finished run"),
        (("survey", "{run}", "{out}", "--layout", "concept"), 1, "a run brings scores and images"),
        (("survey", "{run}", "{out}", "--count", "0"), 1, "a ranking needs a triple or more"),
        (("survey", "{run}", "{out}", "--count", "3", "--min-gap", "nan"), 1, "a gap of 0 or more, got 3 and nan"),
        (("survey", "{run}", "{out}", "--kind", "rating", "--count", "0"), 1, "0 sketches were asked for"),
        (("survey", "{run}", "{out}", "--count", "3", "--side", "0"), 2, "a picture needs 16 pixels or more"),
        (("survey", "{run}", "{out}", "--scale", "1:9"), 2, "--scale is for a rating, but this is a ranking"),
        (("survey", "{run}", "{out}", "--slider"), 2, "--slider is for a rating"),
        (
            ("survey", "{run}", "{out}", "--controls", "0.5"),
            2,
            "--controls is for an acceptance, but this is a ranking",
        ),
        (
            ("survey", "{run}", "{out}", "--kind", "acceptance", "--count", "3", "--controls", "1"),
            1,
            "the share of controls is 1.0; it must be 0 to below 1",
        ),
        (("survey", "{folder}", "{out}", "--kind", "acceptance"), 1, "triples are chosen by score"),
        (("survey", "{run}", "{out}", "--kind", "rating", "--mixed"), 2, "--mixed is for a ranking"),
        (("survey", "{run}", "{out}", "--kind", "rating", "--min-gap", "0.2"), 2, "--min-gap is for a ranking"),
        (("agreement", "{run}", "absent.json"), 1, "there is no file of answers absent.json"),
        (("agreement", "absent", "absent.json"), 1, "scores: no file absent"),
        (("agreement", "{folder}", "absent.json"), 1, "holds no score.json"),
    ],
)
def test_wrong_use_is_a_sentence(arguments, status, said, folder, run, tmp_path, monkeypatch, capsys):
    places = {"folder": folder, "run": run, "out": tmp_path / "out"}
    assert humanlike(monkeypatch, *(a.format(**places) for a in arguments)) == status
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["survey", "agreement"])
def test_help_is_there_without_heavy_imports(command, tmp_path):
    import subprocess

    code = (
        "import sys; sys.argv = ['humanlike', sys.argv[1], '--help']\n"
        "from humanlike.entry import cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "docs/human_study.md" in done.stdout
