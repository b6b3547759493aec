"""Recorded answers in place of a network: joined by stimulus, one subject, refused when they do not fit."""

import numpy as np
import pandas as pd
import pytest

from humanlike.backbones.recorded import RECORDED, RecordedAnswers
from humanlike.data.trials import trials

COLUMNS = ["subj", "imagename", "category", "object_response"]


@pytest.fixture
def write(tmp_path):
    """Write trials as a CSV."""

    def to_csv(rows, name="model.csv"):
        pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return to_csv


@pytest.fixture
def data(write):
    """Three stimuli, seen by one person."""
    rows = [("p", f"000{i}_x_s01_0_{c}_00_{c}{i}.png", c, c) for i, c in enumerate(["cat", "dog", "dog"])]
    return trials(write(rows, "people.csv"))


def model(stimuli, subj="net"):
    return [(subj, f"0001_x_dnn_{name}", category, answer) for name, category, answer in stimuli]


GOOD = [("0_dog_00_dog2.png", "dog", "cat"), ("0_cat_00_cat0.png", "cat", "na"), ("0_owl_00_owl.png", "owl", "owl")]


def test_answers_stand_at_their_items(write, data):
    backbone = RecordedAnswers(write(model(GOOD)))
    features = backbone.answers(data)
    assert features.layer == RECORDED
    assert features.rows.tolist() == [0, 2]
    np.testing.assert_array_equal(features.f_ND, [[0, 0], [1, 0]])
    assert backbone.name == "model"
    assert features.hashes["weights"] == backbone.weights_hash
    assert backbone.answers(data).hashes == features.hashes


def test_one_subject_is_the_model(write, data):
    path = write(model(GOOD) + model(GOOD[:1], "other"))
    with pytest.raises(ValueError, match="several subjects; say which with subject=…: net, other"):
        RecordedAnswers(path).answers(data)
    with pytest.raises(ValueError, match="no subject 'nets'; it has net, other"):
        RecordedAnswers(path, subject="nets").answers(data)
    chosen = RecordedAnswers(path, subject="other")
    assert chosen.answers(data).rows.tolist() == [2]
    assert chosen.name == "other"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (model(GOOD[2:]), "no trial is about a stimulus of people; the file begins with '0_owl_00_owl.png'"),
        (
            model([("0_dog_00_dog2.png", "cat", "cat")]),
            "row 1 says '0_dog_00_dog2.png' shows 'cat', the data set people",
        ),
        (model([("0_dog_00_dog2.png", "dog", "hund")]), "no label, first 'hund' in row 1"),
        (model([GOOD[0], GOOD[0]]), r"'net' answered '0_dog_00_dog2.png' in rows \[1, 2\]"),
    ],
)
def test_what_does_not_fit_is_named(write, data, rows, message):
    with pytest.raises(ValueError, match=message):
        RecordedAnswers(write(rows)).answers(data)


def test_a_missing_file_is_named(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no trial file .*absent\.csv"):
        RecordedAnswers(tmp_path / "absent.csv").answers(data)
