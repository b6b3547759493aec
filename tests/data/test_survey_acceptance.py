"""Answers to shown orders: exports and tables made without the page, and what is wrong with them by row."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from humanlike.data.survey import Survey, SurveyItem, read_survey, write_survey
from humanlike.data.survey_exports import SCHEMA
from humanlike.data.survey_responses import read_survey_responses

SURVEY = Survey(
    "acceptance", (SurveyItem("t1", ("b", "a", "c"), "owl"), SurveyItem("t2", ("d", "c", "b"))), controls=0.25
)
FLAT = pd.DataFrame(
    {"participant": ["P1"] * 3 + ["P2"] * 3, "item": "t1", "sketch_id": list("bac") * 2, "shown": [1, 2, 3, 3, 1, 2],
     "accepted": ["TRUE"] * 3 + ["FALSE"] * 3}
)  # fmt: skip


def exported(**changes):
    answers = [
        {"item": "t2", "shown": ["d", "c", "b"], "accepted": True, "seconds": 2},
        {"item": "t1", "shown": ["c", "b", "a"], "accepted": False, "seconds": 1, **changes},
    ]
    check = {"item": "check-1", "expected": False, "given": False}
    return {"schema": SCHEMA, "fingerprint": SURVEY.fingerprint, "kind": "acceptance", "participant": "P1",
            "complete": True, "scale": None, "answers": answers, "checks": [check]}  # fmt: skip


def written(table, path):
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("words", [("TRUE", "FALSE"), ("true", "false"), (True, False), (1, 0), (1.0, 0.0)])
@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet"])
def test_a_table_from_elsewhere(tmp_path, words, name):
    table = FLAT.assign(accepted=[words[0]] * 3 + [words[1]] * 3)
    found = read_survey_responses([written(table, tmp_path / name)], sketch_ids="abc")
    assert found.kind == "acceptance"
    assert found.table["accepted"].tolist() == [True] * 3 + [False] * 3
    assert found.table["accepted"].dtype == bool
    assert found.table["shown"].tolist() == [1, 2, 3, 3, 1, 2]
    assert found.counts["judgments"] == 2
    again = read_survey_responses([written(found.table, tmp_path / "again.csv")], SURVEY)
    pd.testing.assert_frame_equal(again.table, found.table)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"accepted": ["TRUE", "yes", "TRUE"] * 2}, r"accepted in rows 2, 5 is 'yes'; it must be true or false"),
        ({"accepted": ["TRUE", None, "TRUE"] * 2}, r"accepted in rows 2, 5 is nan; it must be true or false"),
        ({"accepted": [1, 2, 1, 0, 0, 0]}, r"accepted in row 2 is 2"),
        ({"accepted": [1, 1, 1, 0, 0, 1]}, r"rows 4, 5, 6: 'P2' both accepted and rejected item 't1'"),
        ({"shown": [1, 2, 3, 3, 3, 1]}, r"rows 4, 5, 6: 'P2' gave item 't1' the place\(s\) on the page .* 1, 3, 3"),
        ({"shown": [1, "left", 3, 3, 1, 2]}, r"shown in row 2 is 'left'; it must be a number"),
        ({"sketch_id": ["b", "z", "c"] * 2}, r"rows 2, 5: there is no sketch 'z'"),
        ({"item": "t9"}, r"row 1: the survey has no item 't9'"),
        ({"item": "t2"}, r"item 't2' was answered for \['a', 'b', 'c'\], the survey asks for \['b', 'c', 'd'\]"),
        ({"rank": 1}, r"or a column 'accepted' \(an acceptance\), found \['ranking', 'acceptance'\]"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_with_its_rows(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        read_survey_responses([written(FLAT.assign(**change), tmp_path / "a.csv")], SURVEY)


@pytest.mark.parametrize("column", ["shown", "item"])
def test_a_table_without_what_was_shown_is_refused(tmp_path, column):
    with pytest.raises(ValueError, match=f"an acceptance needs the column '{column}'"):
        read_survey_responses([written(FLAT.drop(columns=column), tmp_path / "a.csv")])


def test_an_export_is_read_and_a_wrong_one_named(tmp_path):
    path = tmp_path / "0.json"
    path.write_text(json.dumps(exported()))
    found = read_survey_responses([path], SURVEY)
    assert found.table[["item", "sketch_id", "accepted", "shown", "seconds"]].values.tolist() == [
        ["t2", "d", True, 1, 2], ["t2", "c", True, 2, 2], ["t2", "b", True, 3, 2],
        ["t1", "c", False, 1, 1], ["t1", "b", False, 2, 1], ["t1", "a", False, 3, 1],
    ]  # fmt: skip
    for change, said in [
        ({"accepted": "yes"}, r"0\.json, answer 2 \(item t1\): 'accepted' is 'yes'; it must be true or false"),
        ({"accepted": 1}, r"answer 2 \(item t1\): 'accepted' is 1"),
        ({"shown": ["c", "b", "b"]}, r"answer 2 \(item t1\): 'shown' is .*, which lists a sketch twice"),
        ({"shown": ["c", "b"]}, r"answer 2 \(item t1\): item 't1' was answered for \['b', 'c'\]"),
        ({"shown": "cba"}, r"'shown' is 'cba'; it must list two or more"),
    ]:
        path.write_text(json.dumps(exported(**change)))
        with pytest.raises(ValueError, match=said):
            read_survey_responses([path], SURVEY)


def test_a_survey_keeps_its_controls_and_the_other_kinds_their_fingerprints(tmp_path):
    write_survey(tmp_path / "survey.json", SURVEY)
    assert read_survey(tmp_path) == SURVEY
    assert replace(SURVEY, controls=0.5).fingerprint != SURVEY.fingerprint
    turned = replace(SURVEY, items=(SurveyItem("t1", ("a", "b", "c"), "owl"), SURVEY.items[1]))
    assert turned.fingerprint != SURVEY.fingerprint
    ranking = Survey("ranking", SURVEY.items)
    assert "controls" not in ranking.record()
    for kind, controls in (("ranking", 0.25), ("acceptance", None)):
        with pytest.raises(ValueError, match="an acceptance needs a share of controls, and only it"):
            Survey(kind, SURVEY.items, controls=controls)
    for share in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="it must be 0 to below 1"):
            Survey("acceptance", SURVEY.items, controls=share)
