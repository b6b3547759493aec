"""Killed at random moments, again and again: nothing finished is computed again, and the end is that of a calm run."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from humanlike.backbones.extractor import FeatureExtractor
from humanlike.elements.cache import AnswerCache
from humanlike.elements.client import ChatClient
from humanlike.elements.client_questions import Question
from humanlike.entry.conf import compose
from humanlike.entry.evaluate import score_from_config
from humanlike.entry.train import train_job
from humanlike.entry.train_readout import train_readout
from humanlike.files import write_json

TESTS = Path(__file__).resolve().parents[1]
ROUNDS = [1, pytest.param(10, marks=pytest.mark.slow)]
QUESTIONS, ASKED_AT_ONCE = 120, 4
TINY_GENERATOR = (
    *("backbone=random_tiny", "dataset.concepts=[airplane,lion]", "dataset.instances=4", "logger=none"),
    *("generator.num_curves=8", "generator.width=16", "generator.depth=1", "generator.heads=2", "generator.code=4"),
    *("task.concepts=2", "task.pretrain_steps=60", "task.pretrain_batch_size=8", "task.val_every=2", "task.n_splits=4"),
    *("task.critic=null", "+task.judge.instances=3", "+task.judge.steps=6"),
    *("task.steps=20", "task.sketches=4", "task.size=32", "task.judge_every=5", "task.judged_per_concept=2"),
    *("task.judge_size=32", "task.largest_gap=100.0"),
)


def module(path):
    """A module of another folder of tests."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def disturbed(start):
    """`disturbed(job, folder, rounds, longest, look)` → number of kills; `look` is called after each.

    `longest` is the latest moment of a kill in seconds; None: four fifths of what an undisturbed process takes.
    """

    def undisturbed(job, folder, patience):
        folder.mkdir()
        process, began = start(job, folder), time.monotonic()
        process.join(patience)
        assert process.exitcode == 0
        return time.monotonic() - began

    def run(job, folder, rounds, longest, look=lambda: None, patience=120):
        if longest is None:
            longest = 0.8 * undisturbed(job, folder.with_name(f"{folder.name}_undisturbed"), patience)
        random, kills = np.random.default_rng(rounds), 0
        for _ in range(rounds):
            process = start(job, folder)
            process.join(random.uniform(0.1 * longest, longest))
            if not process.is_alive():
                assert process.exitcode == 0
                break
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
            look()
        process = start(job, folder)
        process.join(patience)
        assert process.exitcode == 0, "the run after the last kill did not finish"
        assert kills >= 1
        return kills

    return run


class Unchanged:
    """Files that are finished at one look must be the same at the next."""

    def __init__(self, folder, pattern):
        self.folder, self.pattern, self.known = folder, pattern, {}

    def __call__(self):
        now = {p: p.stat().st_mtime_ns for p in self.folder.rglob(self.pattern) if not p.name.startswith(".")}
        for path, time_ns in self.known.items():
            assert now.get(path) == time_ns, f"{path} was computed again"
        self.known = now


@pytest.mark.parametrize("rounds", ROUNDS)
def test_extraction(disturbed, start, extract, noise, tmp_path, monkeypatch, rounds):
    data, passes, step = noise(160), tmp_path / "passes", FeatureExtractor._step

    def slow(self, batch):
        with open(passes, "a") as handle:
            handle.write(f"{batch['index']}\n")
        time.sleep(0.02)
        return step(self, batch)

    monkeypatch.setattr(FeatureExtractor, "_step", slow)

    def job(folder):
        write_json(folder / "end.json", extract(data, 1, folder / "cache").hashes)

    look = Unchanged(tmp_path / "cache", "*.safetensors")
    kills = disturbed(job, tmp_path, rounds, 1.0, look)
    look()
    assert len(look.known) == 40
    repeats = Counter(passes.read_text().split())
    assert set(repeats) == {str(i) for i in range(40)}
    assert sum(repeats.values()) <= 40 + kills, "a kill loses the shard in work, no other"
    monkeypatch.setattr(FeatureExtractor, "_step", step)
    assert json.loads((tmp_path / "end.json").read_text()) == extract(data).hashes


@pytest.mark.parametrize("rounds", ROUNDS)
def test_a_whole_evaluation_with_its_readout(disturbed, tmp_path, rounds):
    settings = ["backbone=random_tiny", "dataset.concepts=4", "dataset.instances=5", "benchmark.replicates=20"]
    settings += ["benchmark.splits=5", "extraction.num_workers=0", "extraction.micro_batch=4"]

    def job(folder):
        config = compose("evaluate", [*settings, f"paths.cache={folder}/cache"])
        OmegaConf.update(config, "extraction.micro_batches_per_shard", 1, force_add=True)
        score, _ = score_from_config(config)
        write_json(folder / "end.json", {"digest": score.digest, "features": score.hashes["features"]})

    look = Unchanged(tmp_path / "cache", "*.safetensors")
    disturbed(job, tmp_path, rounds, None, look)
    look()
    (tmp_path / "calm").mkdir()
    job(tmp_path / "calm")
    assert json.loads((tmp_path / "end.json").read_text()) == json.loads((tmp_path / "calm" / "end.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [10])
def test_simulation(disturbed, tmp_path, monkeypatch, rounds):
    sweep = module(TESTS / "benchmarks" / "killed_sweep.py")

    def job(folder, *options):
        with open(folder / "end.json", "w") as out, contextlib.redirect_stdout(out):
            sys.argv = ["killed_sweep.py", str(folder / "cache"), *options]
            sweep.main()

    look = Unchanged(tmp_path / "cache" / "object_learning", "*.json")
    disturbed(lambda folder: job(folder, "--slow"), tmp_path, rounds, 2.0, look)
    look()
    assert look.known
    (tmp_path / "calm").mkdir()
    monkeypatch.setattr(sys, "argv", [])
    job(tmp_path / "calm")
    ends = [json.loads((folder / "end.json").read_text()) for folder in (tmp_path, tmp_path / "calm")]
    assert ends[0]["digest"] == ends[1]["digest"]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_judging_by_an_endpoint(disturbed, tmp_path, rounds):
    with module(TESTS / "elements" / "chat_server.py").ChatServer() as server:
        server.latency = 0.03

        def job(folder):
            client = ChatClient("m", server.base_url, None, cache=folder / "answers.sqlite", concurrency=ASKED_AT_ONCE)
            asked = (Question("t", f"question {i}", lambda reply: reply.json()) for i in range(QUESTIONS))
            assert all(outcome.answer == {} for outcome in client.ask_all(asked))
            client.close()

        kept = []

        def look():
            with AnswerCache(tmp_path / "answers.sqlite") as cache:
                kept.append(len(cache))

        kills = disturbed(job, tmp_path, rounds, 0.8, look)
        look()
        assert kept == sorted(kept)
        assert kept[-1] == QUESTIONS
        assert len(server.answered) == QUESTIONS
        repeated = sum(server.answered.values()) - QUESTIONS
        assert repeated <= kills * ASKED_AT_ONCE, "only what was on its way is asked again"


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.filterwarnings("ignore:.*srun.*command is available.*", "ignore:.*does not have many workers.*")
def test_training(disturbed, tmp_path, network, noise, rounds):
    data = noise(48)
    data.table["concept"] = [("noise", "signal")[i % 2] for i in range(48)]
    data = type(data)(data.name, data.table, ("noise", "signal"), data.images)
    train = partial(
        train_readout,
        network,
        data,
        max_epochs=25,
        batch_size=8,
        precompute=True,
        cache_dir=tmp_path / "features",
        trainer_kwargs={"accelerator": "cpu", "devices": 1, "enable_progress_bar": False},
    )

    def job(folder):
        result = train(out_dir=folder)
        write_json(folder / "end.json", {k: result[k] for k in ("val_loss", "val_accuracy", "train_loss", "epochs")})

    epochs = [0]

    def look():
        last = tmp_path / "run" / "checkpoints" / "last.ckpt"
        if last.exists():
            epochs.append(int(torch.load(last, weights_only=True)["epoch"]))

    (tmp_path / "calm").mkdir()
    job(tmp_path / "calm")
    (tmp_path / "run").mkdir()
    disturbed(job, tmp_path / "run", rounds, None, look)
    assert epochs == sorted(epochs), "training went back behind what it had finished"
    ends = [json.loads((tmp_path / name / "end.json").read_text()) for name in ("run", "calm")]
    assert {k: ends[0][k] for k in ("val_loss", "val_accuracy", "epochs")} == {
        k: ends[1][k] for k in ("val_loss", "val_accuracy", "epochs")
    }
    states = [
        torch.load(tmp_path / name / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for name in ("run", "calm")
    ]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[1])


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [2])
@pytest.mark.filterwarnings("ignore")
def test_training_a_generator(disturbed, tmp_path, rounds):
    """Killed in pre-training, while critic and judge are made, or in fine-tuning: the sketches are the same files."""

    def job(folder):
        train_job(compose("train", [*TINY_GENERATOR, f"paths.cache={folder}/cache"]), folder / "run")

    began = time.monotonic()
    (tmp_path / "calm").mkdir()
    job(tmp_path / "calm")
    calm = time.monotonic() - began
    (tmp_path / "killed").mkdir()
    kept = Unchanged(tmp_path / "killed", "critic.safetensors")
    steps = {"pretrain": [0], "finetune": [0]}

    def look():
        kept()
        for name, seen in steps.items():
            state = tmp_path / "killed" / "run" / "checkpoints" / f"{name}.ckpt"
            if state.exists():
                seen.append(int(torch.load(state, weights_only=True)["global_step"]))

    assert disturbed(job, tmp_path / "killed", rounds, 0.9 * calm, look, patience=240) >= 1
    look()
    assert {name: seen[-1] for name, seen in steps.items()} == {"pretrain": 60, "finetune": 20}
    assert all(seen == sorted(seen) for seen in steps.values()), "training went back behind what it had finished"
    files = [
        {str(p.relative_to(folder)): p.read_bytes() for p in folder.glob("*/*.svg")}
        for folder in (tmp_path / "killed" / "run" / "sketches", tmp_path / "calm" / "run" / "sketches")
    ]
    assert len(files[1]) == 8
    assert files[0] == files[1]
    results = [json.loads((tmp_path / name / "run" / "metrics.json").read_text()) for name in ("killed", "calm")]
    assert results[0]["after"] == results[1]["after"]
    assert results[0]["readings"] == results[1]["readings"]
