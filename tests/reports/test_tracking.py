"""What was logged is read back from each logger's own files."""

from __future__ import annotations

import csv
import json
import math
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from PIL import Image

from humanlike.reports.figures import score_figures
from humanlike.reports.tracking import condition_scalars, finish, log_score, score_scalars

SECRET = "abc123"
CONFIG = {"backbone": {"name": "net", "hub_token": SECRET}, "seed": 3, "paths": {"list": ["a", "b"]}}

# Lightning's loggers are not written for warnings as errors.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def loggers():
    return pytest.importorskip("pytorch_lightning.loggers")


def test_scalars_hold_every_value_and_nothing_that_is_missing(score, score_without_people):
    scalars = score_scalars(score)
    value = score.scores["alignment_snp"]
    assert scalars["seva/accuracy_people"] == score.scores["accuracy_people"].value
    assert [scalars[f"seva/alignment_snp{end}"] for end in ("", "_ci_low", "_ci_high", "_ceiling")] == [
        value.value, value.ci_low, value.ci_high, value.ceiling,
    ]  # fmt: skip
    assert scalars["seva/counts/items_failed"] == 1
    assert not {f"seva/{table}" for table in ("cells", "conditions", "condition", "sketches")} & set(scalars)
    assert all(map(math.isfinite, scalars.values()))
    assert "seva/snp" not in score_scalars(score_without_people)
    assert not any("_people" in key for row in condition_scalars(score_without_people) for key in row)


def test_csv(score, tmp_path, loggers):
    logger = loggers.CSVLogger(tmp_path, name="run", version="0")
    log_score([logger], score, config=CONFIG, figures=score_figures(score))
    finish([logger], 0)
    with open(Path(logger.log_dir) / "metrics.csv", newline="") as handle:
        rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(handle)]
    first, *others = [{k: v for k, v in row.items() if k != "step"} for row in rows]
    assert first == pytest.approx(score_scalars(score))
    assert others == [pytest.approx(row) for row in condition_scalars(score)]
    assert [row["seva/condition"] for row in others] == [4, 8, 16, 32]
    params = yaml.safe_load((Path(logger.log_dir) / "hparams.yaml").read_text())
    assert params == {"backbone": {"name": "net", "hub_token": "***"}, "seed": 3, "paths": {"list": ["a", "b"]}}
    with open(Path(logger.log_dir) / "seva_cells.csv", newline="") as handle:
        cells = list(csv.DictReader(handle))
    assert [float(c["accuracy"]) for c in cells] == pytest.approx(list(score.result.cells["accuracy"]))


def test_tensorboard(score, tmp_path, loggers, make_examples):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    logger = loggers.TensorBoardLogger(tmp_path, name="run", version="0")
    figures = score_figures(score)
    log_score([logger], score, config=CONFIG, figures=figures, examples=make_examples(1))
    finish([logger], 0)
    events = accumulator.EventAccumulator(logger.log_dir, {"scalars": 0, "images": 0, "tensors": 0})
    events.Reload()
    for tag, value in score_scalars(score).items():
        (event,) = events.Scalars(tag)
        assert event.value == pytest.approx(value, rel=1e-6)
    steps = [(e.step, e.value) for e in events.Scalars("seva/by_condition/accuracy_people")]
    table = score.result.conditions
    assert [s for s, _ in steps] == [4, 8, 16, 32]
    assert [v for _, v in steps] == pytest.approx(list(table["accuracy_people"]), rel=1e-6)
    assert set(events.Tags()["images"]) == {f"seva/figures/{n}" for n in figures} | {
        f"seva/sketches/castle/{c}" for c in (4, 8, 16, 32)
    }
    assert "custom_scalars__config__" in events.Tags()["tensors"]
    (cells,) = events.Tensors("seva/cells/text_summary")
    text = cells.tensor_proto.string_val[0].decode()
    assert len(text.splitlines()) == 2 + len(score.result.cells)
    assert SECRET.encode() not in b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


BLOCK = 32_768


def _chunks(data: bytes) -> list[bytes]:
    """Messages of a log of 32 KiB blocks: (checksum, length, kind) before each piece; kind 1 is whole, 2 3 4 parts."""
    messages, at, parts = [], 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        if at + 7 + length > len(data):
            break
        parts = (b"" if kind in (1, 2) else parts) + data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            messages.append(parts)
    return messages


def _put(target: dict, item) -> None:
    """Put an item into a dict, under its key or down its path of keys."""
    *path, last = item.nested_key or [item.key]
    for key in path:
        target = target.setdefault(key, {})
    target[last] = json.loads(item.value_json)


def _read_wandb(folder: Path, patience_s: float = 60) -> dict:
    """What a run's file holds; the service that writes it is another process and may finish a little after the run."""
    deadline = time.monotonic() + patience_s
    while (run := _parse_wandb(folder))["exit"] is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return run


def _parse_wandb(folder: Path) -> dict:
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.rglob("*.wandb")
    run: dict = {"config": {}, "history": [], "summary": {}, "files": path.parent / "files", "exit": None}
    for message in _chunks(path.read_bytes()):
        record = wandb_internal_pb2.Record.FromString(message)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            run["history"].append({})
        for item in record.history.item:
            _put(run["history"][-1], item)
        for item in (*record.run.config.update, *record.config.update):
            _put(run["config"], item)
        for item in record.summary.update:
            _put(run["summary"], item)
        if kind == "exit":
            run["exit"] = record.exit.exit_code
    return run


@pytest.fixture
def wandb_logger(tmp_path, loggers, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    return lambda: loggers.WandbLogger(project="test", name="run", save_dir=str(tmp_path), offline=True)


def test_wandb_offline_holds_everything_that_was_logged(score, tmp_path, wandb_logger, make_examples):
    logger = wandb_logger()
    figures = score_figures(score)
    log_score([logger], score, config=CONFIG, figures=figures, examples=make_examples(1))
    finish([logger], 0)
    run = _read_wandb(tmp_path)
    merged = {k: v for row in run["history"] for k, v in row.items()}

    for key, value in score_scalars(score).items():
        assert merged[key] == pytest.approx(value), key
    rows = [row for row in run["history"] if "seva/condition" in row]
    for row, wanted in zip(rows, condition_scalars(score), strict=True):
        assert {k: row[k] for k in wanted} == pytest.approx(wanted)

    for name, table in (("cells", score.result.cells), ("conditions", score.result.conditions)):
        stored = json.loads((run["files"] / merged[f"seva/{name}"]["path"]).read_text())
        assert stored["columns"] == list(table.columns)
        at = stored["columns"].index("accuracy")
        assert [r[at] for r in stored["data"]] == pytest.approx(list(table["accuracy"]))
    for name in figures:
        assert Image.open(run["files"] / merged[f"seva/figures/{name}"]["path"]).size[0] > 300
    assert [Image.open(run["files"] / f).size for f in merged["seva/sketches"]["filenames"]] == [(112, 112)] * 4
    assert merged["seva/sketches"]["captions"][0] == "castle, 4; model: bear; people: castle"

    chart = json.loads((run["files"] / merged["seva/with_people/accuracy_table"]["path"]).read_text())
    drawn = {}
    for row in chart["data"]:
        point = dict(zip(chart["columns"], row, strict=True))
        drawn.setdefault(point["lineKey"], []).append((point["step"], point["lineVal"]))
    table = score.result.conditions
    assert drawn[score.backbone] == [pytest.approx(p) for p in zip(table["condition"], table["accuracy"], strict=True)]
    (people,) = set(drawn) - {score.backbone}
    assert "people" in people
    assert [y for _, y in drawn[people]] == pytest.approx(list(table["accuracy_people"]))

    assert run["config"]["backbone"] == {"name": "net", "hub_token": "***"}
    assert run["config"]["paths"] == {"list": ["a", "b"]}
    assert run["summary"]["seva/digest"] == score.digest
    assert run["summary"]["seva/flags"] == list(score.result.flags)
    assert run["exit"] == 0
    assert not any(SECRET.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_wandb_jobs_of_a_sweep_are_runs_of_their_own_and_failures_say_so(score, tmp_path, wandb_logger):
    for exit_code in (3, 0):
        logger = wandb_logger()
        log_score([logger], replace(score, backbone=f"net{exit_code}"), config={"exit": exit_code})
        finish([logger], exit_code)
    runs = [_read_wandb(folder) for folder in sorted((tmp_path / "wandb").glob("offline-run-*"))]
    assert sorted((run["config"]["exit"], run["exit"]) for run in runs) == [(0, 0), (3, 3)]


def test_heavy_imports_wait_until_there_is_a_logger():
    code = (
        "import sys, humanlike.reports.tracking; "
        "assert not {'wandb', 'pytorch_lightning', 'tensorboard', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
