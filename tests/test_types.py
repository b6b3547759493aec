"""The records refuse what would later be a wrong number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.reports import wording
from humanlike.types import BenchmarkResult, Responses, Sketches


class Blank:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def load(self, index):
        return Image.new("RGB", (2, 2), (index, 0, 0))

    def content_hash(self, index):
        return f"hash{index}"

    def describe(self, index):
        return f"row {index}"


def table(**changes):
    columns = {
        "sketch_id": ["s0", "s1", "s2"],
        "concept": ["cat", "dog", "cat"],
        "condition": [4.0, 4.0, 8.0],
        "image_id": ["i0", "i1", "i0"],
    }
    return pd.DataFrame({**columns, **changes})


def sketches(frame=None, **changes):
    frame = table() if frame is None else frame
    arguments = {"name": "t", "table": frame, "labels": ("bird", "cat", "dog"), "images": Blank(len(frame)), **changes}
    return Sketches(**arguments)


def test_targets_follow_the_label_order():
    np.testing.assert_array_equal(sketches().target_N, [1, 2, 1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sketch_id": ["s0", "s0", "s2"]}, r"sketch_id must be unique; 1 occur .*\['s0'\]"),
        ({"concept": ["cat", "cow", "cat"]}, r"1 concept\(s\) are not in the label list: \['cow'\]"),
        ({"condition": [4.0, "long", 8.0]}, r"condition of row 1 \(s1\) is 'long'"),
    ],
)
def test_bad_tables_are_named(changes, words):
    with pytest.raises(ValueError, match=words):
        sketches(table(**changes))


def test_missing_column_and_no_items():
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['image_id'\]"):
        sketches(table().drop(columns="image_id"))
    with pytest.raises(ValueError, match="holds no items"):
        sketches(table().iloc[:0])


def test_sizes_must_agree():
    with pytest.raises(ValueError, match="3 rows but 2 images"):
        sketches(images=Blank(2))
    with pytest.raises(ValueError, match="semantic space has 2 rows for 3 labels"):
        sketches(semantic_space=np.ones((2, 4)))


def test_select_keeps_rows_images_and_responses_together():
    responses = pd.DataFrame({"participant": ["p", "p"], "sketch_id": ["s0", "s2"]}).assign(
        guess_1="cat", guess_2=None, guess_3=None, guess_4=None, guess_5=None
    )
    chosen = sketches(responses=Responses(responses)).select([2, 1])
    assert list(chosen.table["sketch_id"]) == ["s2", "s1"]
    assert chosen.images.load(0).getpixel((0, 0)) == (2, 0, 0)
    assert chosen.images.content_hash(1) == "hash1"
    assert list(chosen.responses.table["sketch_id"]) == ["s2"]


def test_responses_need_their_columns():
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['participant'"):
        Responses(pd.DataFrame({"sketch_id": ["a"], "guess_1": ["b"]}))


def test_names_of_scores_are_listed_where_the_record_says():
    assert "`TITLES` and `MEANINGS` in `humanlike.reports.wording`" in BenchmarkResult.__doc__
    names = ["accuracy", "entropy", "snp", "jsd", "error_consistency", "sea", "reward", "penalty", "visual_ratio"]
    names += ["recognition", "msen_paper", "msen_v2", "msen_paper_text", "lapse_rate", "noise_floor", "consistency"]
    names += [f"{kind}_{metric}" for kind in ("alignment", "delta_r2") for metric in ("accuracy", "entropy", "snp")]
    assert not set(names) - set(wording.TITLES) - set(wording.MEANINGS)
