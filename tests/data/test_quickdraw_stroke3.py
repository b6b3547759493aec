"""sketch-rnn's .npz files: the same drawings as the ndjson files they come from, and bad files."""

import json
import os
import zipfile

import numpy as np
import pytest

from humanlike.data.quickdraw import quickdraw
from humanlike.data.quickdraw_stroke3 import quickdraw_stroke3

CAT = [[[0, 100, 100], [0, 0, 50]], [[30], [20]], [[5, 60], [5, 8]]]
DOG = [[[0, 255], [0, 255]], [[7, 9], [9, 40]]]


def stroke3(drawing):
    """Offsets and pen states, written out point by point."""
    rows, at = [], (0, 0)
    for xs, ys in drawing:
        for number, (x, y) in enumerate(zip(xs, ys, strict=True)):
            rows.append([x - at[0], y - at[1], int(number == len(xs) - 1)])
            at = (x, y)
    return np.array(rows, dtype=np.int16)


def write(folder, name="{}.npz", **classes):
    folder.mkdir(exist_ok=True)
    for word, parts in classes.items():
        arrays = {}
        for part, drawings in parts.items():
            arrays[part] = np.empty(len(drawings), dtype=object)
            arrays[part][:] = drawings
        np.savez_compressed(folder / name.format(word), **arrays)
    return folder


@pytest.fixture
def small(tmp_path):
    empty = np.zeros((0, 3), np.int16)
    return write(
        tmp_path / "npz",
        cat={"train": [stroke3(DOG), stroke3(CAT)], "valid": [stroke3(CAT), empty], "test": [stroke3(CAT), empty]},
        dog={"train": [stroke3(DOG), empty], "valid": [stroke3(DOG), empty], "test": [stroke3(DOG), stroke3(CAT)]},
    )


def test_drawings_are_those_of_the_ndjson_files(small, tmp_path):
    folder = tmp_path / "ndjson"
    folder.mkdir()
    for word, drawings in (("cat", [CAT]), ("dog", [DOG, CAT])):
        records = [{"word": word, "key_id": f"{word}{i}", "drawing": d} for i, d in enumerate(drawings)]
        (folder / f"{word}.ndjson").write_text("".join(json.dumps(r) + "\n" for r in records))
    for cuts in (None, [1, 2]):
        ours, theirs = quickdraw_stroke3(small, stroke_cuts=cuts), quickdraw(folder, time_cuts=None, stroke_cuts=cuts)
        assert ours.dropped == {"drawing without ink": 1}
        for column in ("concept", "condition", "num_strokes", "num_points"):
            assert ours.table[column].tolist() == theirs.table[column].tolist()
        for item in range(len(ours)):
            assert np.array_equal(np.asarray(ours.images.load(item)), np.asarray(theirs.images.load(item)))
    assert ours.condition_unit == "strokes"
    assert "derived_conditions" in ours.flags


def test_ids_parts_and_limits(small):
    data = quickdraw_stroke3(small, parts=["valid", "train"], max_per_class=2)
    assert data.table["image_id"].tolist() == ["cat/valid/0", "cat/train/0", "dog/valid/0", "dog/train/0"]
    assert data.images.describe(1).startswith(f"{small / 'cat.npz'}:train[0]")
    assert data.table["sketch_id"].is_unique


def test_published_names(tmp_path):
    parts = {"test": [stroke3(CAT), stroke3(DOG)]}
    for name in ("{}.full.npz", "sketchrnn_{}.npz"):
        folder = write(tmp_path / name.format("x"), name, cat=parts, dog=parts)
        assert quickdraw_stroke3(folder).labels == ("cat", "dog")


def test_a_stroke_of_one_point_is_a_dot(tmp_path):
    dot = np.array([[5, 5, 1]], np.int16)
    data = quickdraw_stroke3(write(tmp_path / "d", cat={"test": [dot, stroke3(CAT)]}, dog={"test": [dot, dot]}))
    assert np.asarray(data.images.load(0)).min() < 128
    assert data.table["num_points"].tolist() == [1, 6, 1, 1]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 5), np.int16), r"cat\.npz:test\[1\]: a stroke-3 array must have shape \(n, 3\), got \(2, 5\)"),
        (np.array([[1, 2, 7]], np.int16), r"test\[1\]: row 0 of the stroke-3 array has pen state 7"),
        (np.array([[np.nan, 2, 1]]), r"test\[1\]: a stroke-3 array must hold finite numbers"),
    ],
)
def test_bad_drawings_are_named_or_skipped_and_counted(tmp_path, array, message):
    folder = write(tmp_path / "b", cat={"test": [stroke3(CAT), array]}, dog={"test": [stroke3(DOG), stroke3(CAT)]})
    with pytest.raises(ValueError, match=message):
        quickdraw_stroke3(folder)
    data = quickdraw_stroke3(folder, on_bad_drawing="skip")
    assert data.dropped == {"unreadable drawing": 1}
    assert len(data) == 3


class Evil:
    def __reduce__(self):
        return (os.putenv, ("HUMANLIKE_EVIL", "ran"))


def test_unsafe_and_damaged_files_are_refused(small, tmp_path):
    write(small, cow={"test": [stroke3(CAT), Evil()]})
    with pytest.raises(ValueError, match=r"cow\.npz/test: .*refused, its pickle names posix\.putenv"):
        quickdraw_stroke3(small, classes=["cat", "cow"])
    np.savez(small / "cow.npz", test=np.zeros((2, 4, 3)))
    with pytest.raises(ValueError, match="expected an array of arrays, one a drawing"):
        quickdraw_stroke3(small)
    np.savez(small / "cow.npz", other=np.zeros(3))
    with pytest.raises(ValueError, match=r"cow\.npz: no array 'test', only \['other'\]"):
        quickdraw_stroke3(small)
    (small / "cow.npz").write_bytes((small / "cat.npz").read_bytes()[:200])
    with pytest.raises(ValueError, match="not a whole zip file"):
        quickdraw_stroke3(small)
    with zipfile.ZipFile(small / "cow.npz", "w") as archive:
        archive.writestr("test.npy", b"\x93NUMPY\x01\x00")
    with pytest.raises(ValueError, match=r"not a \.npy array"):
        quickdraw_stroke3(small)


def test_bad_arguments_are_sentences(small, tmp_path):
    cases = [
        ({"parts": ["tset"]}, r"parts must be a list of some of \['train', 'valid', 'test'\]"),
        ({"parts": "test"}, "parts must be a list"),
        ({"parts": []}, "parts must be a list"),
        ({"classes": ["dogg"]}, "nearest to 'dogg'"),
        ({"max_per_class": 0}, "max_per_class must be at least 1"),
        ({"margin": 0.5}, "margin must lie in"),
        ({"on_bad_drawing": "ignore"}, "on_bad_drawing must be"),
        ({"stroke_cuts": [0]}, "whole numbers of strokes"),
    ]
    for settings, message in cases:
        with pytest.raises(ValueError, match=message):
            quickdraw_stroke3(small, **settings)
    (tmp_path / "none").mkdir()
    for root in (tmp_path / "none", tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=r"expected a folder of files <class>\.npz .*gsutil"):
            quickdraw_stroke3(root)
    blank = np.zeros((0, 3), np.int16)
    with pytest.raises(ValueError, match=r"no drawing of class 'cat' is left in \['test'\]"):
        quickdraw_stroke3(write(tmp_path / "hollow", cat={"test": [blank, blank]}, dog={"test": [stroke3(DOG)] * 2}))
