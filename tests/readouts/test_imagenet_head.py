"""The ImageNet head as a readout: mean probabilities, any label order, scores that fit, mappings that are refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from humanlike.interfaces import Readout
from humanlike.readouts.imagenet_head import ImageNetHead

MAPPING = {"cat": [3, 1], "dog": [0], "oven": [6, 2, 5]}


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([0.1, 3.0, 40.0]))
def test_scores_are_mean_probabilities(seed, scale):
    z_NI = np.random.default_rng(seed).normal(0, scale, (5, 8))
    p_NI = softmax(z_NI, axis=1)
    mean_NL = np.stack([p_NI[:, MAPPING[name]].mean(1) for name in ("oven", "cat", "dog")], 1)
    head = ImageNetHead(MAPPING, num_classes=8).for_labels(["oven", "cat", "dog"])
    p_NL = head.out_of_fold_proba(z_NI, np.zeros(5, int), 3)
    np.testing.assert_array_equal(p_NL.argmax(1), mean_NL.argmax(1))
    np.testing.assert_allclose(p_NL, mean_NL / mean_NL.sum(1, keepdims=True), rtol=1e-9)


def test_a_network_that_is_sure_of_something_else_still_decides():
    z_NI = np.zeros((1, 8))
    z_NI[0, 7], z_NI[0, 6] = 5000.0, 1.0  # class 7 is in no category
    head = ImageNetHead(MAPPING, num_classes=8)
    p_NL = head.predict_proba(z_NI)
    np.testing.assert_allclose(p_NL.sum(1), 1)
    assert head.labels[int(p_NL.argmax())] == "oven"  # (e + 1 + 1) / 3 against 1 and 1


def test_mean_not_sum_decides():
    z_NI = np.log(np.array([[0.3, 0.2, 0.2, 0.3]]))
    head = ImageNetHead({"many": [1, 2, 3], "one": [0]}, num_classes=4)
    assert head.labels[int(head.predict_proba(z_NI).argmax())] == "one"


def test_it_is_a_readout_from_a_file(tmp_path):
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(MAPPING))
    head = ImageNetHead(str(path), num_classes=8)
    assert isinstance(head, Readout)
    assert head.fit(np.zeros((1, 8)), np.zeros(1, int), 3) is head
    assert head.certificate() == ImageNetHead(MAPPING, num_classes=8).certificate()
    assert head.certificate()["classes"] == 6


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"a": [0], "b": [0]}, "class 0 stands in two categories"),
        ({"a": [0, 0], "b": [1]}, "twice in one"),
        ({"a": [0], "b": []}, "must be a list of class indices"),
        ({"a": [0], "b": [8]}, r"holds 8; indices lie in 0 … 7"),
        ({"a": [0], "b": ["1"]}, "holds '1'"),
        ({"a": [0]}, "at least two categories"),
    ],
)
def test_bad_mappings_are_refused(mapping, message):
    with pytest.raises(ValueError, match=message):
        ImageNetHead(mapping, num_classes=8)


def test_what_cannot_be_read_is_named(tmp_path):
    head = ImageNetHead(MAPPING)
    with pytest.raises(ValueError, match=r"scores of 1000 ImageNet classes, got features of shape \(2, 1280\)"):
        head.predict_proba(np.zeros((2, 1280)))
    with pytest.raises(ValueError, match=r"1 label\(s\) have no ImageNet classes in the mapping: \['lion'\]"):
        head.for_labels(["cat", "lion"])
    with pytest.raises(ValueError, match="3 categories, the data 2 labels"):
        head.out_of_fold_proba(np.zeros((1, 1000)), np.zeros(1, int), 2)
    with pytest.raises(ValueError, match=r"needs readout\.mapping"):
        _ = ImageNetHead().reads_class_scores
    with pytest.raises(FileNotFoundError, match="there is no mapping"):
        ImageNetHead(tmp_path / "absent.json")
    for text, message in (("{", "is no JSON"), ("[1]", "must hold an object")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            ImageNetHead(tmp_path / "bad.json")
