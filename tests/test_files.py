"""Files that are whole or absent."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from humanlike.files import (
    atomic_path,
    json_ready,
    read_json_record,
    sha256_file,
    sha256_value,
    write_json,
    write_text,
)


def test_a_failed_write_leaves_the_old_file_and_no_temporary(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def write_half():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_temporary_keeps_the_suffix(tmp_path):
    with atomic_path(tmp_path / "a.parquet") as temporary:
        assert temporary.suffix == ".parquet"
        temporary.write_bytes(b"x")


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "disk is full"), (errno.EROFS, "read-only"), (errno.EACCES, "permission denied")]
)
def test_disk_errors_name_the_file_and_the_way_out(tmp_path, monkeypatch, code, words):
    def fail(source, target):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match=rf"cannot write .*score.json.*{words}.*paths\.output_dir"):
        write_text(tmp_path / "score.json", "{}")
    assert os.listdir(tmp_path) == []


def test_a_really_full_disk():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(OSError, match="No space left"), open(full, "w") as handle:
        handle.write("x" * 100_000)


def test_json_has_no_nan(tmp_path):
    write_json(tmp_path / "a.json", {"x": float("nan"), "y": [np.float32(1.5), np.int64(2), np.array([np.inf, 1.0])]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"x": None, "y": [1.5, 2, [None, 1.0]]}


def test_a_record_is_read_back_and_another_one_is_refused_with_a_way_out(tmp_path):
    path = tmp_path / "record.json"
    write_json(path, {"schema": "own/1", "n": 3})
    assert read_json_record(path, "own/1", "write it again") == {"schema": "own/1", "n": 3}
    with pytest.raises(ValueError, match=r"record\.json has the schema 'own/1', this version reads 'own/2'"):
        read_json_record(path, "own/2", "write it again")
    write_json(path, ["a list"])
    with pytest.raises(ValueError, match="has the schema None"):
        read_json_record(path, "own/1", "write it again")
    write_text(path, '{"schema"')
    with pytest.raises(ValueError, match=r"record\.json is not JSON \(.*\); write it again"):
        read_json_record(path, "own/1", "write it again")


def test_json_ready_keeps_plain_values():
    assert json_ready({"a": (1, True, None, "s")}) == {"a": [1, True, None, "s"]}


def test_digests(tmp_path):
    (tmp_path / "b").write_bytes(b"abc" * 1_000_000)
    assert sha256_file(tmp_path / "b", chunk=1000) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()
    assert sha256_value({"b": 1, "a": [1.5]}) == hashlib.sha256(b'{"a":[1.5],"b":1}').hexdigest()
