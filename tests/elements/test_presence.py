"""Presence: missing is never absent, every row is consistent, and the annotation is read as it stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.data.doodles import doodles
from humanlike.elements.annotation import AnnotationJudge, annotated_elements
from humanlike.elements.presence import Presence, PresenceJudge, elements_by_item, feature_rows, presence_of
from humanlike.types import Features


@pytest.fixture(scope="module")
def data():
    return doodles(["lion", "taxi", "snail"], instances=3, judgments=0)


probabilities = st.lists(
    st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), max_size=5), min_size=1, max_size=6
)


@settings(deadline=None, max_examples=30)
@given(probabilities, st.floats(0.05, 0.95))
def test_visual_ratio_equals_a_plain_count(p, threshold):
    elements = [[f"e{j}" for j in range(len(row))] for row in p]
    found = presence_of([f"s{i}" for i in range(len(p))], elements, p, "test", threshold).visual_ratio
    for row, (_, got) in zip(p, found.iterrows(), strict=True):
        known = [x for x in row if x == x]
        present = sum(x >= threshold for x in known)
        assert (got["num_elements"], got["num_judged"], got["num_present"]) == (len(row), len(known), present)
        assert got["v"] == present / len(known) if known else np.isnan(got["v"])
        assert got["coverage"] == len(known) / len(row) if row else np.isnan(got["coverage"])
        assert (
            np.isnan(got["mean_probability"]) if not known else got["mean_probability"] == pytest.approx(np.mean(known))
        )


def test_missing_is_not_absent_and_has_a_reason():
    presence = presence_of(["a"], [["x", "y", "z"]], [[np.nan, 0.9, 0.1]], "test", reasons={("a", "x"): "unparseable"})
    assert presence.table["decision"].tolist() == [pd.NA, True, False]
    assert presence.missing == {"unparseable": 1}
    assert presence.coverage == pytest.approx(2 / 3)
    assert presence.visual_ratio["v"].tolist() == [0.5]
    none = presence_of(["a", "b"], [["x"], []], [[np.nan], []], "test")
    assert none.visual_ratio["v"].isna().all()
    assert none.visual_ratio["num_present"].tolist() == [0, 0]


def test_another_threshold_keeps_what_has_no_probability():
    table = pd.DataFrame(
        {
            "sketch_id": ["a", "a", "a"],
            "element": ["x", "y", "z"],
            "probability": [0.6, np.nan, np.nan],
            "decision": pd.array([True, True, None], dtype="boolean"),
            "reason": ["", "", "refused"],
        }
    )
    presence = Presence(table, ("a",), "endpoint")
    assert presence.at(0.7).table["decision"].tolist() == [False, True, pd.NA]
    assert presence.at(0.7).threshold == 0.7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": [1.5, 0.1]}, r"'x' in sketch 'a' has a probability outside \[0, 1\]"),
        ({"decision": pd.array([False, False], dtype="boolean")}, "decided against its probability"),
        ({"decision": pd.array([None, False], dtype="boolean")}, "has a probability, but no decision"),
        ({"probability": [np.nan, 0.1], "decision": pd.array([None, False], dtype="boolean")}, "without a reason"),
        ({"reason": ["odd", ""]}, "has a reason for being missing"),
        ({"element": ["x", "x"]}, "stands twice"),
        ({"sketch_id": ["a", "b"]}, "no sketch in sketch_ids"),
    ],
)
def test_inconsistent_rows_are_named(change, message):
    good = presence_of(["a"], [["x", "y"]], [[0.9, 0.1]], "test")
    with pytest.raises(ValueError, match=message):
        replace(good, table=good.table.assign(**change))


def test_lists_of_unequal_length_and_a_missing_column_are_refused():
    with pytest.raises(ValueError, match="for each of the 2 sketches"):
        presence_of(["a", "b"], [["x"], ["y"]], [[0.5], []], "test")
    good = presence_of(["a"], [["x"]], [[0.9]], "test")
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['reason'\]"):
        replace(good, table=good.table.drop(columns="reason"))
    with pytest.raises(ValueError, match="threshold must lie between 0 and 1"):
        replace(good, threshold=1.0)
    with pytest.raises(ValueError, match="names a sketch twice"):
        replace(good, sketch_ids=("a", "a"))


def test_the_annotation_is_what_was_drawn(data):
    judge = AnnotationJudge()
    assert isinstance(judge, PresenceJudge)
    elements = annotated_elements(data)
    assert elements["lion"] == data.images.concepts[data.labels.index("lion")].elements
    presence = judge.judge(data, elements)
    ratio = presence.visual_ratio
    for i in range(len(data)):
        drawn = data.images.drawn_elements(i)
        assert (ratio["num_present"][i], ratio["num_elements"][i]) == (drawn.sum(), len(drawn))
    assert presence.coverage == 1
    assert "doodles" in presence.source


def test_elements_that_were_not_annotated_are_missing(data):
    asked = {"lion": ["mane", "wheel"], "taxi": annotated_elements(data)["taxi"]}
    presence = AnnotationJudge().judge(data, asked)
    rows = presence.table[presence.table["element"].eq("wheel") & presence.table["sketch_id"].str.startswith("lion")]
    assert rows["decision"].isna().all()
    assert set(rows["reason"]) == {"not annotated"}
    ratio = presence.visual_ratio[data.table["concept"] == "snail"]
    assert ratio["num_elements"].eq(0).all()
    assert ratio["v"].isna().all()
    assert elements_by_item(data, asked)[0] == ("mane", "wheel")


def test_an_empty_annotation_is_missing(data):
    table = data.elements.assign(drawn=data.elements["drawn"].astype("boolean"))
    table.loc[0, "drawn"] = pd.NA
    presence = AnnotationJudge().judge(replace(data, elements=table), annotated_elements(data))
    assert presence.missing == {"the annotation is empty": 1}


def test_annotations_that_do_not_fit_are_refused(data):
    with pytest.raises(ValueError, match="has no annotation of elements"):
        annotated_elements(replace(data, elements=None))
    twice = pd.concat([data.elements, data.elements.iloc[:1]])
    with pytest.raises(ValueError, match="is annotated twice"):
        AnnotationJudge().judge(replace(data, elements=twice), annotated_elements(data))
    with pytest.raises(ValueError, match="'nobody', which is no sketch"):
        annotated_elements(replace(data, elements=data.elements.replace("lion-00@4s", "nobody")))


def test_against_pairs_by_key_and_never_by_position(data):
    elements = annotated_elements(data)
    truth = AnnotationJudge().judge(data, elements)
    shuffled = replace(truth, table=truth.table.sample(frac=1, random_state=0).iloc[5:])
    pairs = shuffled.against(truth)
    assert len(pairs) == len(truth.table)
    assert pairs["decision"].isna().sum() == 5
    known = pairs["decision"].notna()
    assert (pairs["decision"][known].astype(bool) == pairs["annotated"][known]).all()


def test_features_of_something_else_are_refused(data):
    features = Features(np.zeros((2, 3), np.float32), np.array([4, 7]), {}, "deep", {"weights": "abc"})
    row_N = feature_rows(data, features, "deep", "abc")
    assert (row_N[4], row_N[7], (row_N < 0).sum()) == (0, 1, len(data) - 2)
    with pytest.raises(ValueError, match="of layer 'deep', the judge reads 'shallow'"):
        feature_rows(data, features, "shallow", None)
    with pytest.raises(ValueError, match="the judge was made for xyz"):
        feature_rows(data, features, None, "xyz")
    with pytest.raises(ValueError, match="item 99 are of no item"):
        feature_rows(data, replace(features, rows=np.array([4, 99])), None, None)
