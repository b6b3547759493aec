"""A sweep that is killed and started again computes what is missing, and ends as one that ran through."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("killed_sweep.py")
IMAGES, WARMUP, SHARD = 240, 40, 16
PATIENCE = 250
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def start(cache, *options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(cache), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish(cache):
    process = start(cache)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def kill_once(cache, reached):
    """Start a slow sweep and kill it as soon as `reached()` holds."""
    process = start(cache, "--slow")
    stop = time.monotonic() + PATIENCE
    while not reached():
        assert process.poll() is None, f"finished before it could be killed: {process.communicate()}"
        assert time.monotonic() < stop
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL


def whole_shards(cache):
    """(folder of an extraction, shard) of shards that are on disk for every layer."""
    layers = {}
    for path in cache.rglob("features/*/*/*.safetensors"):
        if not path.name.startswith("."):
            layers.setdefault((path.parent.parent, path.name), set()).add(path.parent.name)
    most = max((len(found) for found in layers.values()), default=0)
    return {shard for shard, found in layers.items() if len(found) == most}


def finished_layers(cache):
    return {path: path.stat().st_mtime_ns for path in (cache / "object_learning").glob("[!.]*.json")}


@pytest.fixture(scope="module")
def through(tmp_path_factory):
    return finish(tmp_path_factory.mktemp("through"))


def test_killed_during_extraction(tmp_path, through):
    kill_once(tmp_path, lambda: len(whole_shards(tmp_path)) >= 6)
    kept = len(whole_shards(tmp_path))
    assert not finished_layers(tmp_path)
    again = finish(tmp_path)
    assert again["digest"] == through["digest"]
    assert through["images"] == IMAGES + WARMUP
    whole = -(-WARMUP // SHARD)  # the warm-up images come first, and their last shard is not full
    assert kept > whole
    assert again["images"] == IMAGES - (kept - whole) * SHARD
    assert again["scored"] == again["layers"]


def test_killed_during_scoring(tmp_path, through):
    kill_once(tmp_path, lambda: len(finished_layers(tmp_path)) >= 2)
    kept = finished_layers(tmp_path)
    again = finish(tmp_path)
    assert again["digest"] == through["digest"]
    assert again["images"] == 0
    assert again["scored"] == again["layers"] - len(kept) < again["layers"]
    now = finished_layers(tmp_path)
    assert len(now) == again["layers"]
    assert {path: now[path] for path in kept} == kept  # not written again
