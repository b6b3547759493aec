"""Semantic spaces: published files, own files, and joins that never guess."""

import numpy as np
import pandas as pd
import pytest

from humanlike.data.concepts import SemanticSpace, join_semantic_space, level, load_semantic_space


@pytest.fixture
def space():
    ids = ("bat1", "bat2", "hot-air_balloon", "t-shirt", "lion")
    return SemanticSpace(ids, np.arange(10.0).reshape(5, 2), name="small space")


def test_join_matches_levelled_names_and_never_guesses(space):
    rows, report = space.join(["Lion", "bat", "hot air balloon", "T shirt", "yoga", "bat2"])
    assert report.matched == {
        "Lion": "lion",
        "hot air balloon": "hot-air_balloon",
        "T shirt": "t-shirt",
        "bat2": "bat2",
    }
    assert report.ambiguous == {"bat": ("bat1", "bat2")}
    assert report.unmatched == ("yoga",)
    np.testing.assert_array_equal(rows[[0, 2, 3, 5]], space.embedding[[4, 2, 3, 1]])
    assert np.isnan(rows[[1, 4]]).all()
    assert report.summary() == (
        "semantic space: 4 of 6 labels matched; ambiguous, not guessed: bat (bat1|bat2); unknown: yoga"
    )


def test_summary_can_be_shortened(space):
    _, report = space.join(["a", "b", "c", "lion"])
    assert report.summary(limit=2) == "semantic space: 1 of 4 labels matched; unknown: a, b and 1 more"


def test_aliases_settle_meanings_and_must_exist(space):
    rows, report = space.join(["bat", "big cat"], {"bat": "bat2", "big cat": "lion"})
    np.testing.assert_array_equal(rows, space.embedding[[1, 4]])
    assert not report.ambiguous
    with pytest.raises(ValueError, match=r"alias bat: bat3 names no id of the space; nearest: \['bat"):
        space.join(["bat"], {"bat": "bat3"})


def test_level():
    assert level(" Hot-Air_balloon ") == level("hot air balloon") == level("hotairballoon")


@pytest.mark.parametrize("dims", [49, 66])
@pytest.mark.parametrize("ids", ["unique_id.txt", "things_concepts.tsv"])
def test_spose_reads_and_joins_seva_and_quickdraw(shared_data, dims, ids):
    things = shared_data / "things"
    space = load_semantic_space(things / f"spose_embedding_{dims}d_sorted.txt", things / ids)
    assert space.embedding.shape == (1854, dims)
    np.testing.assert_array_equal(
        space.embedding[1], np.fromstring(_line(things / f"spose_embedding_{dims}d_sorted.txt", 1), sep=" ")
    )
    seva = pd.read_csv(shared_data / "seva_index" / "concepts128.csv")
    rows, report = space.join(seva["concept"].tolist())
    known = seva["uniqueID"].notna().to_numpy()
    assert report.matched == dict(zip(seva["concept"][known], seva["uniqueID"][known], strict=True))
    assert sorted(report.ambiguous) == ["bow", "bracelet", "button", "mouse", "tank"]
    index = seva["things_row"][known].to_numpy(np.int64)
    np.testing.assert_array_equal(rows[known], space.embedding[index - (index.min() - space.ids.index("airbag"))])
    classes = pd.read_csv(shared_data / "quickdraw_raw" / "classes.csv").dropna()
    _, report = space.join(classes["quickdraw_class"].tolist())
    single = classes[~classes["things_uniqueID_candidates"].str.contains("|", regex=False)]
    assert {k: report.matched.get(k) for k in single["quickdraw_class"]} == dict(
        zip(single["quickdraw_class"], single["things_uniqueID_candidates"], strict=True)
    )
    assert len(report.ambiguous) == len(classes) - len(single)


def _line(path, number):
    with open(path) as handle:
        return handle.read().splitlines()[number].replace("\t", " ")


def test_own_matrices_of_every_kind(tmp_path):
    table = pd.DataFrame({"label": ["a", "b"], "x": [1.0, 2.0], "y": [3, 4]})
    table.to_csv(tmp_path / "m.csv", index=False)
    table.to_csv(tmp_path / "m.tsv", index=False, sep="\t")
    table.to_parquet(tmp_path / "m.parquet")
    np.save(tmp_path / "m.npy", table[["x", "y"]].to_numpy(float))
    (tmp_path / "m.txt").write_text("1 3\n2 4\n\n")
    (tmp_path / "ids.txt").write_text("a\nb\n")
    for name in ("m.csv", "m.tsv", "m.parquet"):
        space = load_semantic_space(tmp_path / name)
        assert space.ids == ("a", "b")
        np.testing.assert_array_equal(space.embedding, [[1, 3], [2, 4]])
    for name in ("m.npy", "m.txt", "m.csv"):
        np.testing.assert_array_equal(
            load_semantic_space(tmp_path / name, tmp_path / "ids.txt").embedding, [[1, 3], [2, 4]]
        )


def test_bad_files_are_sentences(tmp_path):
    (tmp_path / "ids.txt").write_text("a\nb\na\n")
    (tmp_path / "m.txt").write_text("1 2\n3 4\n")
    (tmp_path / "nan.txt").write_text("1 2\n3 nan\n5 6\n")
    (tmp_path / "ragged.txt").write_text("1 2\n3\n")
    (tmp_path / "text.txt").write_text("1 2\nx y\n")
    (tmp_path / "t.csv").write_text("name,x\na,1\nb,2\n")
    (tmp_path / "quote.csv").write_text('id,x\na,"1\n')
    (tmp_path / "junk.parquet").write_text("junk")
    np.save(tmp_path / "objects.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x80")
    cases = [
        (("quote.csv", None), ValueError, r"quote\.csv: not a readable csv table"),
        (("junk.parquet", None), ValueError, r"junk\.parquet: not a readable parquet table"),
        (("objects.npy", "ids.txt"), ValueError, r"objects\.npy: not a \.npy matrix of numbers"),
        (("binary.txt", "ids.txt"), ValueError, r"binary\.txt: not a text file, byte 0 is not UTF-8"),
        (("m.txt", "binary.txt"), ValueError, r"binary\.txt: not a text file"),
        (("m.txt", "ids.txt"), ValueError, "2 rows for 3 ids"),
        (("nan.txt", "ids.txt"), ValueError, "occur more than once"),
        (("ragged.txt", "ids.txt"), ValueError, r"ragged\.txt:2: 1 numbers, the first row has 2"),
        (("text.txt", "ids.txt"), ValueError, r"text\.txt:2: expected numbers"),
        (("m.txt", None), ValueError, "holds no names; give `ids`"),
        (("none.txt", "ids.txt"), FileNotFoundError, "no embedding file"),
        (("m.txt", "none.txt"), FileNotFoundError, "no ids file"),
        (("t.csv", None), ValueError, "no id column among"),
        (("m.txt", "t.csv"), ValueError, "no id column among"),
    ]
    for (embedding, ids), kind, message in cases:
        with pytest.raises(kind, match=message):
            load_semantic_space(tmp_path / embedding, None if ids is None else tmp_path / ids)
    with pytest.raises(ValueError, match=r"not finite, first in row 1 \(b\), column 1"):
        SemanticSpace(("a", "b"), np.array([[1, 2], [3, np.inf]]))
    with pytest.raises(ValueError, match=r"\(rows, D\), got shape \(3,\)"):
        SemanticSpace(("a", "b", "c"), np.ones(3))


def test_join_for_data_sets(tmp_path, space):
    assert join_semantic_space(None, ["lion"]) == (None, ())
    rows, flags = join_semantic_space(space, ["lion", "t-shirt"])
    assert rows.shape == (2, 2)
    assert flags == ()
    assert join_semantic_space(space, ["lion", "yoga"])[1] == ("semantic space: 1 of 2 labels matched; unknown: yoga",)
    with pytest.raises(ValueError, match="none of the 1 labels matched"):
        join_semantic_space(space, ["yoga"])
    with pytest.raises(ValueError, match=r"takes embedding \(required\).*got \['embeding'\]"):
        join_semantic_space({"embeding": "x"}, ["lion"])
