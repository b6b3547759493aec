"""QuickDraw: cuts against a plain loop over the records, folds that never split a drawing, and bad files."""

import json
import pickle
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedGroupKFold

from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.data.quickdraw import CLASS_SETS, quickdraw
from humanlike.data.render import render
from humanlike.data.stroke_formats import drawing_from_quickdraw


def record(word, key, drawing, **more):
    return {"word": word, "key_id": str(key), "recognized": True, "drawing": drawing, **more}


CAT = [[[0, 100, 100], [0, 0, 50], [0, 500, 1500]], [[30], [20], [2500]]]
LATE = [[[0, 9], [0, 9], [1200, 1300]]]
SIMPLE = [[[0, 255], [0, 255]], [[7], [9]]]


def write(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, records in files.items():
        text = "".join(json.dumps(r) + "\n" for r in records)
        (folder / f"{name}.ndjson").write_text(text)
    return folder


@pytest.fixture
def small(tmp_path):
    return write(
        tmp_path / "q",
        cat=[record("cat", 1, CAT), record("cat", 2, LATE), record("cat", 3, CAT, recognized=False)],
        dog=[record("dog", 4, CAT), record("dog", 5, [[[], [], []]])],
    )


def test_time_cuts_of_a_small_folder(small):
    data = quickdraw(small, time_cuts=[2, 1, 4])
    table = data.table.set_index("sketch_id")
    assert table.loc[["1@1s", "1@2s", "1@4s"], "num_points"].tolist() == [2, 3, 4]
    assert table.loc[["1@1s", "1@2s", "1@4s"], "num_strokes"].tolist() == [1, 1, 2]
    assert "2@1s" not in table.index
    assert table.loc["2@4s", "num_points"] == 2  # ended before the cut: shown in full
    assert data.dropped == {"drawing without ink": 1, "cut before the first ink": 1}
    assert data.condition_unit == "s"
    assert "derived_conditions" in data.flags
    assert data.images.describe(0) == f"{small / 'cat.ndjson'}:1 (key_id 1)"
    first = data.images.drawing(int(np.flatnonzero(data.table["sketch_id"] == "1@1s")[0]))
    full = drawing_from_quickdraw(CAT)
    np.testing.assert_allclose(first.strokes[0].points, full.strokes[0].points[:2], atol=1e-6)


def test_stroke_cuts_and_full_drawings(small):
    data = quickdraw(small, time_cuts=None, stroke_cuts=[1, 2])
    assert data.condition_unit == "strokes"
    table = data.table.set_index("sketch_id")
    assert table.loc[["1@1strokes", "1@2strokes", "2@2strokes"], "num_points"].tolist() == [3, 4, 2]
    full = quickdraw(small, time_cuts=None)
    assert full.table["sketch_id"].tolist() == ["1", "2", "3", "4"]
    assert full.table["condition"].eq(0).all()
    assert full.condition_unit == ""
    assert "derived_conditions" not in full.flags


def test_simplified_files_and_selection(tmp_path):
    folder = write(
        tmp_path / "s",
        full_simplified_cat=[record("cat", i, SIMPLE, recognized=i > 0) for i in range(4)],
        full_simplified_dog=[record("dog", 9, SIMPLE)],
    )
    data = quickdraw(folder, time_cuts=None, stroke_cuts=[1], max_per_class=2, recognized_only=True)
    assert data.table["image_id"].tolist() == ["1", "2", "9"]
    assert data.dropped == {"not recognized": 1}
    with pytest.raises(ValueError, match=r"cat\.ndjson:1: no times \(a simplified drawing\); use the raw files"):
        quickdraw(folder)


def test_render_is_the_cut_drawing_and_hash_follows_it(small):
    data = quickdraw(small, time_cuts=[1, 2, 4, 8], size=64)
    table = data.table
    row = {s: int(np.flatnonzero(table["sketch_id"] == s)[0]) for s in table["sketch_id"]}
    expected = render(drawing_from_quickdraw(CAT), 64, stroke_width=DEFAULT_WIDTH)
    difference = np.abs(np.asarray(data.images.load(row["1@4s"]), int) - np.asarray(expected, int))
    assert difference.mean() < 0.1
    hashes = {s: data.images.content_hash(i) for s, i in row.items()}
    assert hashes["1@4s"] == hashes["1@8s"]
    assert len({hashes["1@1s"], hashes["1@2s"], hashes["1@4s"], hashes["2@2s"]}) == 4
    other = quickdraw(small, time_cuts=[1, 2, 4, 8], size=65)
    assert other.images.content_hash(0) != data.images.content_hash(0)
    assert pickle.loads(pickle.dumps(data.images)).content_hash(0) == data.images.content_hash(0)


def test_real_cuts_against_a_plain_loop(shared_data):
    data = quickdraw(shared_data / "quickdraw_raw", classes=["cat", "The Eiffel Tower"], max_per_class=5)
    from humanlike.data.archives import open_archive

    archive = open_archive(shared_data / "quickdraw_raw", "raw_ndjson.zip")
    counts = {}
    for word in ("cat", "The Eiffel Tower"):
        for line in list(archive.lines(f"{word}.ndjson"))[:5]:
            r = json.loads(line)
            for cut in (1, 2, 4, 8, 16):
                inside = [[t for t in s[2] if t <= 1000 * cut] for s in r["drawing"]]
                counts[f"{r['key_id']}@{cut}s"] = (sum(map(len, inside)), sum(1 for s in inside if s))
    table = data.table.set_index("sketch_id")
    assert {k: tuple(v) for k, v in table[["num_points", "num_strokes"]].iterrows() for v in [v]} == counts


def test_all_classes_build_in_seconds_and_match_the_index(shared_data):
    begun = time.perf_counter()
    data = quickdraw(shared_data / "quickdraw_raw")
    assert time.perf_counter() - begun < 20
    index = pd.read_csv(shared_data / "quickdraw_raw" / "index.csv", dtype={"key_id": str})
    full = data.table[data.table["condition"] == 16].set_index("image_id")
    index = index.set_index("key_id").loc[full.index]
    assert len(data.labels) == 345
    assert len(data) == 5 * len(index) == 28690
    assert (full["concept"] == index["word"]).all()
    done = index["duration_ms"] <= 16000
    assert (full["num_points"][done] == index["n_points"][done]).all()
    assert (full["num_strokes"][done] == index["n_strokes"][done]).all()
    mean = data.table.groupby("condition")["num_points"].mean()
    assert mean.is_monotonic_increasing
    for row in range(0, len(data), 4000):
        gray = np.asarray(data.images.load(row).convert("L"))
        assert gray.min() < 128 < gray.mean()
        assert data.images.drawing(row).num_strokes == data.table["num_strokes"][row]


def test_no_fold_separates_the_cuts_of_a_drawing(shared_data):
    data = quickdraw(shared_data / "quickdraw_raw", classes="seva")
    assert data.labels == tuple(sorted(CLASS_SETS["seva"]))
    groups = data.table["image_id"].to_numpy()
    splits = StratifiedGroupKFold(5, shuffle=True, random_state=0).split(groups, data.target_N, groups)
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
    assert data.table.groupby("image_id")["condition"].nunique().max() == 5
    assert data.table.groupby("image_id")["concept"].nunique().max() == 1


def test_seva_classes_are_those_of_both(shared_data):
    seva = set(pd.read_csv(shared_data / "seva_index" / "concepts128.csv")["concept"])
    classes = set(pd.read_csv(shared_data / "quickdraw_raw" / "classes.csv")["quickdraw_class"])
    assert set(CLASS_SETS["seva"]) == seva & classes


def test_bad_arguments_are_sentences(small, tmp_path):
    cases = [
        ({"classes": ["cat", "dogg"]}, r"1 class\(es\) without a file: \['dogg'\]; nearest to 'dogg': \['dog'"),
        ({"classes": ["xyz"]}, r"without a file: \['xyz'\]; there are cat, dog"),
        ({"classes": "sevva"}, "nearest to 'sevva': .*'seva'"),
        ({"classes": 3}, "classes=3, but there are 2 classes"),
        ({"classes": ["cat"]}, "one class only"),
        ({"stroke_cuts": [1]}, "time_cuts or stroke_cuts, not both"),
        ({"time_cuts": [0, 1]}, "cuts must be positive seconds"),
        ({"time_cuts": None, "stroke_cuts": [1.5]}, "whole numbers of strokes"),
        ({"labels": ["cat", "cow"]}, r"concept\(s\) are not in labels: \['dog'\]"),
        ({"on_bad_line": "ignore"}, "on_bad_line must be"),
        ({"max_per_class": 0}, "max_per_class must be at least 1"),
        ({"margin": 0.5}, "margin must lie in"),
    ]
    for settings, message in cases:
        with pytest.raises(ValueError, match=message):
            quickdraw(small, **settings)
    (tmp_path / "empty").mkdir()
    for root in (tmp_path / "none", tmp_path / "empty"):
        with pytest.raises(FileNotFoundError, match=r"expected raw_ndjson\.zip or files .* gsutil"):
            quickdraw(root)
    with pytest.raises(ValueError, match=r"dog\.ndjson: no drawing of class 'dog' is left \(the file is empty\)"):
        quickdraw(write(tmp_path / "hollow", cat=[record("cat", 1, CAT)], dog=[]))
    late = write(tmp_path / "late", cat=[record("cat", 1, LATE)], dog=[record("dog", 2, LATE)])
    with pytest.raises(ValueError, match=r"no item in condition\(s\) \[1\.0\]; conditions with items: \[2\.0\]"):
        quickdraw(late, time_cuts=[1, 2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"word": "dog", "key_id": "7", "drawi', r"dog\.ndjson:2: not a whole JSON object"),
        (json.dumps(record("cat", 7, CAT)), r"dog\.ndjson:2: word 'cat' in the file of class 'dog'"),
        (json.dumps(record("dog", 1, CAT)), r"dog\.ndjson:2: key_id 1 occurs before in .*cat\.ndjson:1"),
        (json.dumps(record("dog", 7, [[[1, 2], [3], [4]]])), r"dog\.ndjson:2, stroke 0: a stroke is"),
        (json.dumps({"word": "dog", "key_id": "7"}), r"dog\.ndjson:2: the record lacks \['drawing'\]"),
        (json.dumps(record("dog", 7, None)), r"dog\.ndjson:2: drawing must be a list of strokes, got NoneType"),
        ("[]", r"dog\.ndjson:2: expected a JSON object, got list"),
    ],
)
def test_bad_lines_are_named_or_skipped_and_counted(tmp_path, line, message):
    folder = write(tmp_path / "q", cat=[record("cat", 1, CAT)], dog=[record("dog", 2, CAT)])
    with open(folder / "dog.ndjson", "a") as handle:
        handle.write(line)
    with pytest.raises(ValueError, match=message):
        quickdraw(folder)
    data = quickdraw(folder, on_bad_line="skip")
    assert data.dropped["unreadable line"] == 1
    assert data.table["image_id"].nunique() == 2
