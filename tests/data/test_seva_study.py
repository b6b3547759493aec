"""From the published files through `humanlike convert` to `dataset=seva` and `dataset=seva_clipasso`."""

import json
import sys
import time

import numpy as np
import pandas as pd
import pytest

from humanlike.data.seva import seva_published
from humanlike.data.seva_study import seva
from humanlike.data.study_writer import write_study
from humanlike.entry import cli
from humanlike.entry.conf import compose
from humanlike.entry.targets import build


def convert(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["humanlike", "convert", *map(str, arguments)])
    cli.main()


def test_judged_or_all(seva_small, tmp_path, monkeypatch, capsys):
    convert(monkeypatch, "seva", seva_small, tmp_path / "all", "items=all", "on_count=warn", "--images", "copy")
    said = capsys.readouterr().out
    for part in (
        "read       196 rows of human_recog_df.csv",
        "check      concepts: 8, expected 128: DEVIATES",
        "check      THINGS concepts: 1,854, expected 1,854\n",
        "left out 2: practice trial",
        f"use it with: python evaluate.py dataset=seva dataset.root={tmp_path / 'all'}",
    ):
        assert part in said
    stored = json.loads((tmp_path / "all" / "conversion.json").read_text())
    assert stored["rows_read"]["human_recog_df.csv"] == 196
    assert stored["settings"]["on_count"] == "warn"
    (check,) = [c for c in stored["checks"] if c["what"] == "concepts"]
    assert check == {"what": "concepts", "expected": [128, 128], "found": 8, "binding": True, "ok": False}
    settings = ["dataset=seva", f"dataset.root={tmp_path / 'all'}"]
    configured = compose("evaluate", settings).dataset
    judged = build(configured)
    configured.items = "all"
    everything = build(configured)
    assert (len(judged), len(everything)) == (64, stored["sketches"])
    assert len(everything) > 300
    assert judged.table["judged"].all()
    assert "counts deviate from the published data" in judged.flags[0]
    pd.testing.assert_frame_equal(judged.responses.table, everything.responses.table)
    assert judged.table["num_strokes"].notna().all()
    source = seva_published(seva_small, on_count="warn")
    assert judged.labels == source.labels
    assert judged.table["sketch_id"].tolist() == source.table["sketch_id"].tolist()
    pd.testing.assert_frame_equal(judged.responses.table, source.responses.table, check_dtype=False)
    np.testing.assert_array_equal(judged.semantic_space, source.semantic_space)
    assert np.array_equal(np.asarray(judged.images.load(2)), np.asarray(source.images.load(2)))
    write_study(source, tmp_path / "judged")
    with pytest.raises(ValueError, match=r"holds only the 64 sketches that people judged; .*items=all"):
        seva(tmp_path / "judged", items="all")
    with pytest.raises(FileNotFoundError, match=r"no folder .*; make it from the published files: `humanlike convert"):
        seva(tmp_path / "none")
    with pytest.raises(ValueError, match="items must be"):
        seva(tmp_path / "judged", items="some")
    other = seva(tmp_path / "judged")
    assert np.array_equal(np.asarray(other.images.load(3)), np.asarray(judged.images.load(3)))


def test_clipasso_and_published_probabilities(seva_small, tmp_path, monkeypatch, capsys):
    convert(monkeypatch, "seva_clipasso", seva_small, tmp_path / "out", "on_count=warn", "--probabilities")
    assert "model      vgg: 63 sketches, 0 without, 1 rows left out" in capsys.readouterr().out
    data = build(compose("evaluate", ["dataset=seva_clipasso", f"dataset.root={tmp_path / 'out'}"]).dataset)
    assert (data.name, data.condition_unit, len(data)) == ("seva_clipasso", "strokes", 63)
    table = pd.read_parquet(tmp_path / "out" / "probabilities" / "vgg.parquet")
    assert table["sketch_id"].tolist() == data.table["sketch_id"].tolist()
    with pytest.raises(SystemExit) as left:
        convert(monkeypatch, "table", tmp_path / "out", tmp_path / "again", "--probabilities")
    assert left.value.code == 2
    assert "table has no published class probabilities" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
def test_the_full_tree_is_complete_and_quick(seva_tree, shared_data, tmp_path, monkeypatch, capsys):
    source = seva_tree.build(tmp_path / "published", shared_data)
    for kind, sketches in (("seva", 8192), ("seva_clipasso", 8191)):
        start = time.process_time()  # all work is in this process, and the machine may have other work
        convert(monkeypatch, kind, source, tmp_path / kind)
        assert time.process_time() - start < 120
        assert "DEVIATES" not in capsys.readouterr().out
        stored = json.loads((tmp_path / kind / "conversion.json").read_text())
        assert (stored["sketches"], stored["concepts"], stored["conditions"]) == (sketches, 128, [4, 8, 16, 32])
        assert all(check["ok"] for check in stored["checks"])
    data = seva(tmp_path / "seva")
    assert data.table.groupby(["concept", "condition"])["image_id"].nunique().eq(16).all()
    assert data.responses.table.groupby("sketch_id").size().min() >= 12
    assert data.flags == ()
