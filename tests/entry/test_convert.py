"""`humanlike convert`: counts printed and stored, wrong use answered, and the result scored like its source."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.data.image_folder import image_folder
from humanlike.data.table import table
from humanlike.entry import cli
from humanlike.entry.convert import kinds


def run(monkeypatch, *arguments):
    """Exit status of the command."""
    monkeypatch.setattr(sys, "argv", ["humanlike", "convert", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as left:
        return left.code
    return 0


@pytest.fixture
def pictures(tmp_path):
    for name in ("owl/a.png", "owl/b.png", "bear/a.png", "bear/b.png"):
        path = tmp_path / "in put, [1]" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGB", (16, 16), "white")
        ImageDraw.Draw(image).line((1, 1, 14, 3 + len(list(path.parent.iterdir()))), fill="black")
        image.save(path)
    (tmp_path / "in put, [1]" / "notes.txt").write_text("x")
    return tmp_path / "in put, [1]"


@pytest.fixture
def drawings(tmp_path):
    folder = tmp_path / "ndjson"
    folder.mkdir()
    for word in ("cat", "dog"):
        lines = []
        for number in range(3):
            strokes = [[[0, 50 + number, 100], [0, 60, 9], [0, 900, 1800]], [[5], [5], [3000]]]
            lines.append(json.dumps({"word": word, "key_id": f"{word}{number}", "drawing": strokes}))
        lines.append(json.dumps({"word": word, "key_id": f"{word}x", "drawing": [[[], [], []]]}))
        (folder / f"{word}.ndjson").write_text("\n".join(lines) + "\n")
    return folder


def test_quickdraw_with_counts(monkeypatch, capsys, drawings, tmp_path):
    with open(drawings / "dog.ndjson", "a") as handle:
        handle.write('{"word": "dog", "key_id": "9", "draw')
    assert run(monkeypatch, "quickdraw", drawings, tmp_path / "out", "time_cuts=[1,4]") == 1
    assert "dog.ndjson:5: not a whole JSON object" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    settings = ("time_cuts=[1,4]", "on_bad_line=skip", "size=64")
    assert run(monkeypatch, "quickdraw", drawings, tmp_path / "out", *settings) == 0
    said = capsys.readouterr().out
    for part in ("sketches   12 written, 3 left out", "left out 2: drawing without ink", "left out 1: unreadable line"):
        assert part in said
    stored = json.loads((tmp_path / "out" / "conversion.json").read_text())
    assert stored["dropped"] == {"drawing without ink": 2, "unreadable line": 1}
    assert stored["settings"]["time_cuts"] == [1, 4]
    data = table(tmp_path / "out")
    assert (data.name, data.condition_unit) == ("quickdraw", "s")
    assert "derived_conditions" in data.flags
    assert data.table.groupby("image_id").size().eq(2).all()
    assert data.images.load(0).size == (64, 64)


def test_image_folders_at_any_path(monkeypatch, capsys, pictures, tmp_path):
    for mode in ("render", "copy", "link"):
        target = tmp_path / "out put" / mode
        assert run(monkeypatch, "image_folder", pictures, target, "layout=concept", "--images", mode) == 0
        assert "left out 1: not an image file" in capsys.readouterr().out
        data, back = image_folder(pictures), table(target)
        assert back.table["image_id"].tolist() == data.table["image_id"].tolist()
        assert np.array_equal(np.asarray(back.images.load(3)), np.asarray(data.images.load(3)))


def test_tables_with_people(monkeypatch, capsys, pictures, tmp_path):
    rows = [f"{c}{n},{c},0,{c}{n},{c}/{n}.png" for c in ("owl", "bear") for n in "ab"]
    (pictures / "sketches.csv").write_text("sketch_id,concept,condition,image_id,path\n" + "\n".join(rows) + "\n")
    answers = "participant,sketch_id,guess_1\n1,owla,owl\n1,beara,Bear\n2,owla,bear\n2,owla,owl\n"
    (pictures / "responses.csv").write_text(answers)
    assert run(monkeypatch, "table", pictures, tmp_path / "out") == 1
    assert "'Bear' differs from the label 'bear' in case or in spaces only" in capsys.readouterr().err
    settings = ("on_unknown=drop", "on_repeat=first", "name=mine")
    assert run(monkeypatch, "table", pictures, tmp_path / "out", *settings) == 0
    said = capsys.readouterr().out
    for part in (
        "judgments  2 written, 2 left out: 2 participants",
        "left out 1: judgment whose first guess is no label",
        "left out 1: repeated judgment",
    ):
        assert part in said
    assert table(tmp_path / "out").responses.table["guess_1"].tolist() == ["owl", "bear"]
    assert run(monkeypatch, "table", pictures, tmp_path / "again", "aliases={Bear: bear}", "on_repeat=keep") == 0
    assert len(table(tmp_path / "again", on_repeat="keep").responses.table) == 4


def test_a_zip_that_leads_outside_is_refused(monkeypatch, capsys, tmp_path):
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        archive.writestr("../owl/a.png", b"x")
    assert run(monkeypatch, "image_folder", tmp_path / "evil.zip", tmp_path / "out") == 1
    assert "refused the member '../owl/a.png', which leads outside" in capsys.readouterr().err


def test_wrong_use_is_answered(monkeypatch, capsys, pictures, tmp_path):
    cases = [
        (("tabel", pictures, tmp_path / "o"), "cannot convert 'tabel'; did you mean 'table'"),
        (("doodles", pictures, tmp_path / "o"), "cannot convert 'doodles'"),
        (("image_folder", pictures, tmp_path / "o", "layuot=concept"), "did you mean 'dataset.layout'"),
        (("image_folder", pictures, tmp_path / "o", "--image", "copy"), "cannot read '--image'"),
        (("image_folder", pictures, tmp_path / "o", "copy"), "cannot read 'copy'"),
        (("image_folder", pictures, tmp_path / "o", "--images", "move"), "invalid choice: 'move'"),
        (("image_folder", pictures), "the following arguments are required: DST"),
    ]
    for arguments, message in cases:
        assert run(monkeypatch, *arguments) == 2, message
        assert message in capsys.readouterr().err
    for arguments, message in (
        (("image_folder", tmp_path / "none", tmp_path / "o"), "no folder or zip file"),
        (("image_folder", pictures, pictures), "exists and is not empty"),
    ):
        assert run(monkeypatch, *arguments) == 1
        assert message in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_help_is_light_and_names_every_kind(repository):
    code = (
        "import sys; sys.argv = ['humanlike', 'convert', '--help']\n"
        "from humanlike.entry import cli\n"
        "try:\n    cli.main()\nexcept SystemExit as left:\n    assert left.code == 0\n"
        "assert not {'torch', 'pandas', 'numpy', 'hydra'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=repository)
    assert set(kinds()) >= {"table", "image_folder", "quickdraw", "tu_berlin", "sketchy", "seva", "seva_samples"}
    for kind in kinds():
        assert kind in done.stdout


@pytest.mark.slow
def test_a_converted_study_scores_like_its_source(pictures, tmp_path, monkeypatch):
    from humanlike import evaluate

    settings = {"dataset__root": str(pictures), "readout__n_splits": 2, "report": False}
    score = evaluate("random_tiny", dataset="image_folder", **settings)
    assert run(monkeypatch, "image_folder", pictures, tmp_path / "out") == 0
    other = evaluate("random_tiny", dataset="table", **{**settings, "dataset__root": str(tmp_path / "out")})
    assert other["accuracy"] == score["accuracy"]
    assert other.result.cells.equals(score.result.cells)
