from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.reports import run_folder
from humanlike.reports.run_folder import SCHEMA, digest, is_finished, read_record, read_run, write_run, write_table

NUMBER = (int, float, type(None))
PROMISED = {
    "schema": str, "benchmark": str, "benchmark_version": str, "dataset": str, "backbone": str, "layer": str,
    "protocol": dict, "scores": dict, "counts": dict, "flags": list, "seeds": dict, "hashes": dict, "versions": dict,
    "started": str, "seconds": float, "digest": str,
}  # fmt: skip
PROMISED_OF_A_SCORE = {
    "value": NUMBER, "ci_low": NUMBER, "ci_high": NUMBER, "ceiling": NUMBER, "ceiling_ci": (list, type(None)),
    "n": (int, type(None)), "unit": str,
}  # fmt: skip


@pytest.fixture
def run(score, tmp_path):
    return write_run(score, tmp_path / "run", {"backbone": {"name": "x"}, "hub_token": "abc123"}, figures={})


def test_every_promised_key_is_there(run):
    record = json.loads((run / "score.json").read_text(), parse_constant=pytest.fail)
    assert record["schema"] == "humanlike.score/1" == SCHEMA
    for key, kind in PROMISED.items():
        assert isinstance(record[key], kind), key
    for name, fields in record["scores"].items():
        assert set(fields) == set(PROMISED_OF_A_SCORE), name
        for key, kind in PROMISED_OF_A_SCORE.items():
            assert isinstance(fields[key], kind), (name, key)
    assert {"items_total", "items_used", "items_failed"} <= set(record["counts"])


def test_the_folder_holds_what_is_promised(score, tmp_path, make_examples):
    config = {"seed": 1, "api_key": "abc123"}
    run = write_run(score, tmp_path / "run", config, examples=make_examples(1), png=True)
    names = {str(p.relative_to(run)) for p in run.rglob("*") if p.is_file()}
    assert {"score.json", "cells.parquet", "items.parquet", "config.yaml", "report.html"} <= names
    for name in ("by_condition", "alignment", "divergence", "sketches"):
        assert {f"figures/{name}.svg", f"figures/{name}.png"} <= names
    assert not any("tmp" in name for name in names)
    assert not any(b"abc123" in p.read_bytes() for p in run.rglob("*") if p.is_file())


def test_a_run_is_read_back_as_it_was_written(score, run):
    back = read_run(run)
    assert back.run_dir == str(run)
    assert dict(back.scores) == dict(score.scores)
    for field in ("benchmark", "benchmark_version", "dataset", "backbone", "layer", "started", "seconds", "digest"):
        assert getattr(back, field) == getattr(score, field)
    for field in ("seeds", "hashes", "versions"):
        assert getattr(back, field) == getattr(score, field)
    assert back.result.flags == score.result.flags
    assert back.result.counts == score.result.counts
    assert back.result.protocol == score.result.protocol
    assert back.result.details["human_consistency"]["accuracy"]["ci_high"] == 0.91
    pd.testing.assert_frame_equal(back.result.cells, score.result.cells)
    plain = back.result.items.astype(object).where(back.result.items.notna(), None)
    pd.testing.assert_frame_equal(plain, score.result.items.astype(object).where(score.result.items.notna(), None))
    pd.testing.assert_frame_equal(back.result.conditions, score.result.conditions, check_dtype=False)
    assert digest(back.result.items, back.result.counts) == digest(score.result.items, score.result.counts)


def test_missing_stays_missing_in_parquet(run):
    errors = pq.read_table(run / "items.parquet")["error"].to_pylist()
    assert errors.count(None) == 127
    assert "truncated" in errors[5]


def test_score_json_comes_last_and_an_older_one_goes_first(score, run, monkeypatch):
    assert is_finished(run)
    assert is_finished(run, "cd" * 32)
    assert not is_finished(run, "00" * 32)
    assert not is_finished(run / "absent")

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(run_folder, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        write_run(score, run, {})
    assert not is_finished(run)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "humanlike.score/9"}'])
def test_a_broken_score_is_not_a_finished_run(tmp_path, text):
    (tmp_path / "score.json").write_text(text)
    assert not is_finished(tmp_path)
    with pytest.raises(ValueError, match=r"score\.json"):
        read_record(tmp_path)


def test_figures_of_an_earlier_run_go_and_those_of_somebody_else_stay(score, tmp_path):
    mine = tmp_path / "figures" / "mine.svg"
    mine.parent.mkdir()
    mine.write_text("<svg/>")
    write_run(score, tmp_path, {}, figures={})
    assert mine.exists()
    write_run(score, tmp_path, {}, figures={})
    assert not mine.exists()
    assert is_finished(tmp_path)


def test_an_unfinished_or_partial_run_is_named(run):
    (run / "cells.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"lacks cells\.parquet"):
        read_run(run)
    with pytest.raises(FileNotFoundError, match="not finished"):
        read_run(run / "absent")


def test_a_column_of_mixed_types_is_named(tmp_path):
    with pytest.raises(ValueError, match="column odd"):
        write_table(tmp_path / "t.parquet", pd.DataFrame({"odd": pd.Series([1, "a"], dtype=object)}))
    assert list(tmp_path.iterdir()) == []


def test_digest_is_the_documented_hash():
    items = pd.DataFrame(
        {
            "sketch_id": ["b", "a", "C"], "top1_index": np.array([5, -1, 7], np.int32), "correct": [True, False, True],
            "rank": pd.array([1, None, 3], dtype="Int64"), "entropy": [0.1, 0.2, 0.3], "error": [None, "x", None],
        }
    )  # fmt: skip
    text = (
        '{"counts":{"items_total":3,"items_used":2},'
        '"items":{"correct":[1,0,1],"rank":[3,null,1],"top1_index":[7,-1,5]}}'
    )
    assert digest(items, {"items_used": 2, "items_total": 3}) == hashlib.sha256(text.encode()).hexdigest()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.randoms(), st.data())
def test_digest_ignores_order_and_floats_and_sees_every_integer(values, random, data):
    items = pd.DataFrame({"sketch_id": [f"s{i}" for i in range(len(values))], "v": values, "x": 0.5})
    counts = {"items_used": len(values)}
    order = list(range(len(values)))
    random.shuffle(order)
    same = items.iloc[order].assign(x=random.random()).astype({"v": np.int8})[["x", "v", "sketch_id"]]
    assert digest(items, counts) == digest(same, counts)
    at = data.draw(st.integers(0, len(values) - 1))
    changed = items.copy()
    changed.loc[at, "v"] += 1
    assert digest(items, counts) != digest(changed, counts)
    assert digest(items, counts) != digest(items, {"items_used": len(values) + 1})


def test_digest_refuses_what_has_no_order():
    with pytest.raises(ValueError, match="repeated sketch_id, for example 'a'"):
        digest(pd.DataFrame({"sketch_id": ["a", "a"]}), {})
    with pytest.raises(ValueError, match="whole numbers"):
        digest(pd.DataFrame({"session": ["a"]}), {"n": 0.5})


def test_runs_without_people_are_written_and_read(score_without_people, tmp_path):
    run = write_run(score_without_people, tmp_path, {})
    assert json.loads((run / "score.json").read_text())["scores"]["alignment_snp"]["value"] is None
    back = read_run(run)
    again = write_run(replace(back, run_dir=None), tmp_path / "again", {})
    assert (again / "figures" / "by_condition.svg").read_bytes() == (run / "figures" / "by_condition.svg").read_bytes()
