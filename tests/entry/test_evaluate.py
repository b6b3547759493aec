"""`python evaluate.py` from outside: the folder it leaves, resume, sweeps, errors and exit status."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pandas as pd
import pytest
from PIL import Image

from humanlike.entry.conf import compose
from humanlike.entry.evaluate import evaluate_job
from humanlike.entry.launch import Job
from humanlike.entry.overrides import normalise

PROMISED = {
    "schema", "benchmark", "benchmark_version", "dataset", "backbone", "layer", "protocol", "scores", "counts", "flags",
    "seeds", "hashes", "versions", "started", "seconds", "digest",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(command, small):
    """One finished run of the whole pipeline on few doodles."""
    folder = command.home / "run"
    done = command("evaluate.py", *small, f"hydra.run.dir={folder}", "logger=[csv,wandb,tensorboard]")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_run_folder_is_complete(finished):
    folder, done = finished
    record = json.loads((folder / "score.json").read_text())
    assert record.keys() >= PROMISED
    assert record["schema"] == "humanlike.score/1"
    assert record["hashes"].keys() >= {"weights", "data", "transform", "features", "config"}
    assert record["counts"]["items_total"] == 100
    assert "simulated_participants" in record["flags"]
    assert set(record["scores"]) >= {"accuracy", "entropy", "snp", "jsd", "alignment_accuracy", "delta_r2_snp"}
    cells, items = pd.read_parquet(folder / "cells.parquet"), pd.read_parquet(folder / "items.parquet")
    assert len(cells) == 20
    assert len(items) == 100
    assert record["scores"]["accuracy"]["value"] == pytest.approx(items["correct"].mean())
    assert {p.name for p in (folder / "figures").iterdir()} >= {"by_condition.svg", "alignment.svg"}
    assert "simulated" in done.stdout


def test_the_report_stands_alone_and_says_simulated(finished):
    page = (finished[0] / "report.html").read_text()
    assert "simulat" in page
    assert 'src="http' not in page
    assert 'href="http' not in page.replace('href="https://', "").replace('href="http://www.w3.org', "")


def test_every_logger_was_written(finished):
    loggers = finished[0] / "loggers"
    assert pd.read_csv(next((loggers / "csv").rglob("metrics.csv"))).filter(like="seva/accuracy").size
    assert list((loggers / "wandb").rglob("*.wandb"))
    assert list((loggers / "tensorboard").rglob("events.out.tfevents.*"))


def test_no_process_noise_reaches_the_user(finished):
    _, done = finished
    assert "Warning" not in done.stderr
    assert "TPU" not in done.stderr


def test_a_finished_run_is_skipped_and_a_changed_one_is_not(finished, command, small):
    folder, _ = finished
    before = (folder / "score.json").stat().st_mtime_ns
    again = command("evaluate.py", *small, f"hydra.run.dir={folder}")
    assert "already finished, skipped" in again.stdout
    assert (folder / "score.json").stat().st_mtime_ns == before
    digest = json.loads((folder / "score.json").read_text())["digest"]
    changed = command("evaluate.py", *small, f"hydra.run.dir={folder}", "protocol=paper_text", "logger=none")
    assert changed.returncode == 0, changed.stderr
    record = json.loads((folder / "score.json").read_text())
    assert record["protocol"]["preset"] == "paper_text"
    assert record["details"]["extraction"]["from_cache"] is True
    assert record["digest"] != digest or record["protocol"]["cv"] == "stratified"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dataset=quickdraw", "dataset.root=/nowhere/at/all"], "/nowhere/at/all"),
        (["dataset=image_folder", "dataset.root=/nowhere/at/all"], "/nowhere/at/all"),
        (["backbone=resnet50", "offline=true"], "prefetch"),
        (["backbone=random_tiny", "layer=blocks.99"], "blocks"),
        (["protocol=correct"], "did you mean 'corrected'"),
        (["extraction.micro_batch=abc"], "extraction.micro_batch must be a whole number, got 'abc'"),
        (["backbone=random_tiny", "trainer.devices=0"], "the trainer cannot work as configured (trainer.*)"),
        (["dataset.concepts=[lion]"], "two or more different doodles"),
        (["dataset.concepts=[lion,snial]"], "did you mean snail"),
    ],
)
def test_bad_settings_are_one_sentence(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    config = compose("evaluate", [*arguments, f"paths.cache={tmp_path}/cache", "logger=none"])
    assert Job(evaluate_job).run(config, tmp_path / "run") == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert words in said
    assert "Traceback" not in said
    assert said.strip().count("\n") <= 1
    assert not (tmp_path / "run" / "score.json").exists()
    assert "failed" in (tmp_path / "run" / "log.jsonl").read_text()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("seed=abc", "seed must be a whole number, got 'abc'"),
        ("max_failures=1.5", "max_failures must be a whole number, got 1.5"),
        ("offline=maybe", "offline must be true or false, got 'maybe'"),
    ],
)
def test_settings_at_the_top_have_types(setting, words, tmp_path, capsys):
    assert Job(evaluate_job).run(compose("evaluate", [setting]), tmp_path / "run") == 1
    assert capsys.readouterr().err == f"error: {words}\n"


def test_a_warning_is_one_line_without_code(tmp_path):
    lines = []
    before = warnings.formatwarning

    def task(config, folder):
        lines.append(warnings.formatwarning("the readout did not\nconverge", UserWarning, "file.py", 1, "code"))

    assert Job(task).run(compose("evaluate"), tmp_path) == 0
    assert lines == ["warning: the readout did not converge\n"]
    assert warnings.formatwarning is before


def test_a_missing_image_is_left_out_named_and_counted(tmp_path, capsys):
    for concept in ("owl", "bear"):
        (tmp_path / "images" / concept).mkdir(parents=True)
        for number in range(5):
            image = Image.new("RGB", (20, 20), "white")
            image.paste("black", (number, 0, 10 + number, 5 if concept == "owl" else 15))
            image.save(tmp_path / "images" / concept / f"{number}.png")
    (tmp_path / "images" / "owl" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "images" / "owl" / "empty.png").touch()
    settings = [
        *("backbone=random_tiny", "dataset=image_folder", f"dataset.root={tmp_path}/images", "logger=none"),
        *("report=false", "benchmark.replicates=5", "benchmark.splits=2", f"paths.cache={tmp_path}/cache"),
    ]
    assert Job(evaluate_job).run(compose("evaluate", settings), tmp_path / "raise") == 1
    said = capsys.readouterr().err
    assert "owl/empty.png: the file is empty; mend or remove it (extraction.on_bad_image=skip" in said
    skipping = compose("evaluate", [*settings, "extraction.on_bad_image=skip"])
    assert Job(evaluate_job).run(skipping, tmp_path / "skip") == 3
    assert "2 image(s) could not be read, more than max_failures=0" in capsys.readouterr().err
    record = json.loads((tmp_path / "skip" / "score.json").read_text())
    assert [record["counts"][k] for k in ("items_total", "items_used", "items_failed")] == [12, 10, 2]
    errors = pd.read_parquet(tmp_path / "skip" / "items.parquet").set_index("sketch_id")["error"].dropna()
    assert set(errors.index) == {"owl/gone.png", "owl/empty.png"}
    assert errors["owl/gone.png"].endswith("owl/gone.png: the file is missing")
    skipping.max_failures = 2
    assert Job(evaluate_job).run(skipping, tmp_path / "skip") == 0
    assert "already finished, skipped" in capsys.readouterr().out
    (tmp_path / "skip" / "cells.parquet").write_bytes(b"damaged")
    assert Job(evaluate_job).run(skipping, tmp_path / "skip") == 0
    assert "the finished run cannot be read and is computed again" in capsys.readouterr().err
    assert len(pd.read_parquet(tmp_path / "skip" / "cells.parquet")) == 2


@pytest.mark.parametrize(
    ("arguments", "words"), [(["sed=1"], "did you mean 'seed'"), (["hello"], "settings are written key=value")]
)
def test_wrong_use_has_its_own_status(command, arguments, words):
    done = command("evaluate.py", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_benchmark_of_sketches_refuses_objects_in_one_sentence(tmp_path):
    from humanlike.entry.conf import compose
    from humanlike.entry.evaluate import score_from_config

    settings = ["benchmark=sea", "dataset=novel_objects", "backbone=random_tiny", f"paths.cache={tmp_path}"]
    with pytest.raises(TypeError, match="benchmark=sea needs sketches, got ObjectLearningData"):
        score_from_config(compose("evaluate", settings))


def test_an_interruption_is_one_sentence_with_a_status_of_its_own(tmp_path):
    code = (
        "import sys\n"
        "from humanlike.entry.launch import launch\n"
        "def interrupted(config, folder):\n    raise KeyboardInterrupt\n"
        f"sys.argv[1:] = ['hydra.run.dir={tmp_path}']\n"
        "launch('evaluate', interrupted)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert done.stderr == "interrupted: what was computed so far is kept; run the same command again to go on\n"


def test_debug_shows_the_traceback(tmp_path, capsys):
    config = compose("evaluate", normalise(["dataset.concepts=[lion]", "debug=true", "logger=none"]))
    assert Job(evaluate_job).run(config, tmp_path) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_has_one_folder_a_job_goes_on_after_failures_and_resumes(command, small, tmp_path):
    arguments = ["-m", *small, "logger=none", "report=false", f"paths.output_dir={tmp_path}"]
    first = command("evaluate.py", *arguments, "layer=null,nowhere", "seed=0,1")
    assert first.returncode == 3, first.stderr
    scores = sorted(tmp_path.rglob("score.json"))
    assert len(scores) == 2
    assert len({p.parent for p in tmp_path.rglob("outcome.json")}) == 4
    assert first.stderr.count("failed") >= 2
    times = [p.stat().st_mtime_ns for p in scores]
    second = command("evaluate.py", *arguments, "layer=null", "seed=0,1")
    assert second.returncode == 0, second.stderr
    third = command("evaluate.py", *arguments, "layer=null,nowhere", "seed=0,1")
    assert third.stdout.count("already finished, skipped") == 2
    assert [p.stat().st_mtime_ns for p in scores] == times


@pytest.mark.slow
def test_two_processes_give_the_digest_of_one(command, small, tmp_path, finished):
    digests = []
    for devices, name in ((1, "one"), (2, "two")):
        folder = tmp_path / name
        settings = ["logger=none", "report=false", f"hydra.run.dir={folder}", f"paths.cache={tmp_path / name}-cache"]
        if devices == 2:
            settings += ["trainer=ddp", "trainer.devices=2"]
        done = command("evaluate.py", *small, *settings)
        assert done.returncode == 0, done.stderr
        record = json.loads((folder / "score.json").read_text())
        assert record["details"]["extraction"]["processes"] == devices
        digests.append(record["digest"])
    assert digests[0] == digests[1]


def finished_shards(cache):
    """Number of shards that are whole; one being written has a hidden temporary name."""
    return sum(not p.name.startswith(".") for p in cache.rglob("*.safetensors"))


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(command, small, tmp_path):
    import time

    cache, folder = tmp_path / "cache", tmp_path / "run"
    settings = [*small, "dataset.instances=16", "dataset.concepts=20", "logger=none", f"paths.cache={cache}"]
    script = [sys.executable, "evaluate.py"]
    process = subprocess.Popen(
        [*script, *settings, f"hydra.run.dir={folder}"],
        cwd=command.repository,
        env=command.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    limit = time.monotonic() + 120
    while not finished_shards(cache) and time.monotonic() < limit:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not (folder / "score.json").exists()
    kept = finished_shards(cache)
    assert kept >= 1
    done = command("evaluate.py", *settings, f"hydra.run.dir={folder}")
    assert done.returncode == 0, done.stderr
    record = json.loads((folder / "score.json").read_text())
    extraction = record["details"]["extraction"]
    assert extraction["shards_computed"] == extraction["shards"] - kept
    undisturbed = command(
        "evaluate.py", *settings, f"hydra.run.dir={tmp_path / 'calm'}", f"paths.cache={tmp_path / 'other'}"
    )
    assert undisturbed.returncode == 0
    assert json.loads((tmp_path / "calm" / "score.json").read_text())["digest"] == record["digest"]
