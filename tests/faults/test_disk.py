"""A full disk, a folder that cannot be written, damaged files, two jobs at once, wrong clocks."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import time
from collections import Counter

import numpy as np
import pytest

from humanlike.backbones.cache import FeatureCache, Shard
from humanlike.files import write_json


def shards(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("[0-9]*.safetensors")}


def is_left_clean(folder):
    return not list(folder.rglob(".*tmp*"))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_full_disk_is_a_sentence_and_the_run_goes_on_later(extract, noise, tmp_path, monkeypatch, processes):
    data, fsync, written = noise(37), os.fsync, []
    calm = extract(data)

    def full(descriptor):
        written.append(1)
        if len(written) > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    words = r"cannot write .*\.safetensors: the disk is full; free space.*; [\d,]+ bytes of it were written"
    with pytest.raises(OSError, match=words) as told:
        extract(data, processes, tmp_path)
    assert told.value.errno == errno.ENOSPC
    kept = shards(tmp_path)
    assert kept
    assert is_left_clean(tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    found = extract(data, 1, tmp_path)
    assert found.hashes == calm.hashes
    assert found.info["shards_computed"] == 10 - len(kept)
    assert {p: t for p, t in shards(tmp_path).items() if p in kept} == kept


def test_a_limit_on_the_size_of_files_is_named_too(start, tmp_path):
    cache = FeatureCache(tmp_path, {"items": 4000, "weights": "w"}, 4000)

    def job():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        rows = np.arange(4000)
        try:
            cache.write("layer", 0, Shard(np.zeros((4000, 50), np.float32), rows, {}))
        except OSError as error:
            (tmp_path / "said").write_text(f"{error}")

    process = start(job)
    process.join(30)
    said = (tmp_path / "said").read_text()
    assert "000000.safetensors: " in said
    assert "100,000 bytes of it were written" in said
    assert "ulimit" in said
    assert is_left_clean(tmp_path)
    assert cache.read("layer", 0) is None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with room for little; `small_disk(read_only=True)` locks it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount file systems")

    def remount(how):
        subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, capture_output=True)

    yield disk, remount
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_is_really_full_and_then_grows(extract, noise, small_disk):
    disk, remount = small_disk
    data = noise(160)  # 40 shards of 4 kB and their locks
    with pytest.raises(OSError, match="the disk is full"):
        extract(data, 1, disk)
    kept = shards(disk)
    assert is_left_clean(disk)
    remount("size=4m")
    found = extract(data, 1, disk)
    assert found.info["shards_computed"] == 40 - len(kept)
    assert found.hashes == extract(data).hashes


def test_a_disk_that_is_really_read_only_serves_what_it_holds(extract, noise, small_disk):
    disk, remount = small_disk
    remount("size=4m")
    whole = extract(noise(8), 1, disk)
    remount("ro")
    for processes in (1, 2):
        again = extract(noise(8), processes, disk)
        assert again.info["from_cache"]
        assert again.hashes == whole.hashes
    with pytest.raises(OSError, match=r"read-only; point paths.output_dir and paths.cache at a writable folder"):
        extract(noise(9), 1, disk)


def test_a_cache_that_cannot_be_written_names_the_way_out(extract, noise, tmp_path, monkeypatch):
    def refuse(*args, **keywords):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(OSError, match=r"facts.json: the file system is read-only; point .*paths.cache"):
        extract(noise(9), 1, tmp_path)


def test_two_jobs_that_fill_one_cache_compute_every_shard_once(extract, noise, start, tmp_path, monkeypatch):
    data, computed = noise(80), tmp_path / "computed"
    write = FeatureCache.write

    def noted(self, layer, shard, content):
        with open(computed, "a") as handle:
            handle.write(f"{shard}\n")
        time.sleep(0.02)
        write(self, layer, shard, content)

    monkeypatch.setattr(FeatureCache, "write", noted)

    def job(name):
        write_json(tmp_path / f"{name}.json", extract(data, 1, tmp_path / "cache").hashes)

    jobs = [start(job, name) for name in ("one", "two")]
    for process in jobs:
        process.join(60)
        assert process.exitcode == 0
    assert (tmp_path / "one.json").read_text() == (tmp_path / "two.json").read_text()
    assert Counter(computed.read_text().split()) == Counter(str(i) for i in range(20))


def test_whatever_happens_to_a_shard_is_seen(tmp_path, caplog):
    """Truncated anywhere, a bit flipped anywhere, empty, or another shard's: absent, or exactly what was written."""
    cache = FeatureCache(tmp_path, {"items": 8, "weights": "w"}, 4)
    random = np.random.default_rng(0)
    for shard in (0, 1):
        f_ND = random.normal(size=(4, 6)).astype(np.float32)
        cache.write("layer", shard, Shard(f_ND, np.arange(4) + 4 * shard, {}))
    path, whole = cache.path("layer", 0), cache.read("layer", 0)
    content = path.read_bytes()
    broken = [
        b"",
        cache.path("layer", 1).read_bytes()[:-1],
        *(content[:n] for n in random.integers(1, len(content), 20)),
    ]
    for position in random.integers(0, len(content), 60):
        changed = bytearray(content)
        changed[position] ^= 1 << int(random.integers(8))
        broken.append(bytes(changed))
    for damaged in broken:
        path.write_bytes(damaged)
        found = FeatureCache(tmp_path, {"items": 8, "weights": "w"}, 4).read("layer", 0)
        assert found is None or (np.array_equal(found.f_ND, whole.f_ND) and np.array_equal(found.rows, whole.rows))
    path.write_bytes(broken[0])
    caplog.clear()
    assert cache.read("layer", 0) is None
    assert f"{path} is damaged" in caplog.text


def test_a_shard_of_another_place_is_no_shard(tmp_path):
    cache = FeatureCache(tmp_path, {"items": 8, "weights": "w"}, 4)
    for shard in (0, 1):
        cache.write("layer", shard, Shard(np.full((4, 2), shard, np.float32), np.arange(4) + 4 * shard, {}))
    shutil.copy(cache.path("layer", 1), cache.path("layer", 0))
    assert cache.read("layer", 0) is None


@pytest.mark.parametrize("years", [-30, 30])
def test_wrong_clocks_do_not_matter(extract, noise, start, until, tmp_path, monkeypatch, years):
    data = noise(16)
    before = extract(data, 1, tmp_path)
    now = time.time()
    for path in tmp_path.rglob("*"):
        os.utime(path, (now + years * 3e7, now + years * 3e7))
    monkeypatch.setattr(time, "time", lambda: now - years * 3e7)
    again = extract(data, 1, tmp_path)
    assert again.info["from_cache"]
    first, *_ = sorted(shards(tmp_path))
    content = first.read_bytes()
    first.unlink()
    holds, release = tmp_path / "holds", tmp_path / "release"

    def holder():
        cache = FeatureCache(tmp_path, {}, 4)
        cache.folder = first.parent.parent
        with cache.lock(0):
            os.utime(cache.folder / "locks" / "000000.lock", (1, 1))  # a lock is not old because its file is
            holds.touch()
            while not release.exists():
                time.sleep(0.01)
            first.write_bytes(content)

    def waiter():
        write_json(tmp_path / "waited.json", extract(data, 1, tmp_path).hashes)

    start(holder)
    until(holds.exists)
    waiting = start(waiter)
    waiting.join(1.5)
    assert waiting.is_alive(), "the lock was taken from its owner"
    release.touch()
    waiting.join(30)
    assert waiting.exitcode == 0
    assert first.read_bytes() == content, "it was computed although another process had it in work"
    assert before.hashes["features"] in (tmp_path / "waited.json").read_text()
