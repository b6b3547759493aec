from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import MAX_OBSERVERS, MAX_ROWS, decimals, discrepancy_views, fixed, table_view

OBSERVERS = Observers({"net": "supervised", "twin": None}, frozenset({"twin", "people"}))


def _texts(view) -> list[list[str]]:
    return [[cell.text for cell in row] for row in view.rows]


def test_columns_become_readable_and_empty_ones_go():
    table = pd.DataFrame(
        {
            "observer": ["net", "twin", "people"],
            "metric": ["snp", "accuracy", "new_metric"],
            "estimate": [0.5, -0.25, np.nan],
            "ci_low": [0.4, np.nan, np.nan],
            "ci_high": [0.6, 1.0, np.nan],
            "p_value": [0.0421, 1e-9, np.nan],
            "n": [1000, 2, 3],
            "nothing": [np.nan] * 3,
            "note": ["", "", ""],
            "converged": [True, False, True],
            "singular": [True, False, False],
        }
    )
    view = table_view("t", "T", table, OBSERVERS)
    assert [head for head, _ in view.heads] == [
        "observer", "metric", "converged", "singular", "estimate", "95% interval", "p", "n",
    ]  # fmt: skip
    assert [numeric for _, numeric in view.heads] == [False] * 4 + [True] * 4
    assert _texts(view) == [
        ["net", "SNP", "yes", "⚠ yes", "0.500", "0.400 to 0.600", "0.042", "1\u2009000"],
        ["twin (simulated)", "Accuracy", "⚠ no", "no", "−0.250", "–", "<0.001", "2"],
        ["simulated people", "New metric", "yes", "no", "–", "–", "–", "3"],
    ]
    assert [row[4].key for row in view.rows] == ["0.5", "-0.25", ""]
    assert view.rows[1][2].look == "alarm"


def test_only_metrics_are_named_as_metrics():
    table = pd.DataFrame({"first": ["snp", "t_z", "net"], "second": ["accuracy", "", None]})
    assert _texts(table_view("t", "T", table, OBSERVERS)) == [["SNP", "Accuracy"], ["t_z", ""], ["net", "–"]]


@pytest.mark.parametrize(
    ("values", "places", "text"),
    [
        ([4.0, 32.0], 0, "4"),
        ([89698.2, 3455.3], 1, "89698.2"),
        ([0.29, np.nan], 3, "0.290"),
        ([0.04953], 4, "0.0495"),
        ([0.00495], 5, "0.00495"),
        ([3e-7], None, "3e−07"),
        ([np.nan], 0, "–"),
    ],
)
def test_decimals_follow_the_size_of_a_column(values, places, text):
    assert decimals(np.array(values)) == places
    assert fixed(values[0], places) == text


def test_long_tables_are_cut_and_say_so():
    view = table_view("t", "T", pd.DataFrame({"estimate": np.arange(MAX_ROWS + 5) / 7}), OBSERVERS)
    assert len(view.rows) == MAX_ROWS
    assert view.left_out == 5


def test_discrepancies_show_value_change_and_direction(study_tables):
    (view,) = discrepancy_views(study_tables["discrepancy"], OBSERVERS)
    assert [head for head, _ in view.heads] == ["switch", "simulated people", "vgg19"]
    rows = {row[0].text: row[1:] for row in view.rows}
    assert list(rows) == [
        "people_accuracy = all", "people_accuracy = first (this study)", "model_accuracy = all", "preset = paper_code",
    ]  # fmt: skip
    up, down = rows["people_accuracy = all"][0], rows["preset = paper_code"][1]
    assert (up.text, up.look, up.heat, up.key) == ("0.500 ▲0.100", "up", 1.0, "0.1")
    assert (down.text, down.look, down.heat) == ("0.200 ▼0.050", "down", 0.5)
    assert rows["people_accuracy = first (this study)"][0].text == "0.400 ="
    assert rows["model_accuracy = all"][1].text == "not defined"
    assert rows["preset = paper_code"][0].text == "–"
    assert view.notes == ["cv: not computed (needs new readouts)."]


def test_more_observers_than_fit_are_counted(study_tables):
    row = study_tables["discrepancy"].iloc[[0]]
    many = pd.concat([row.assign(observer=f"m{i}") for i in range(MAX_OBSERVERS + 3)])
    (view,) = discrepancy_views(many, OBSERVERS)
    assert len(view.heads) == MAX_OBSERVERS + 1
    assert view.notes == ["3 more observers are in the file."]


def test_a_table_of_every_two_observers_has_one_number_of_decimals():
    table = pd.DataFrame({"observer": ["net", "twin"], "net": [1.0, 0.00679], "twin": [0.00679, 1.0]})
    view = table_view("t", "T", table, OBSERVERS)
    assert _texts(view) == [["net", "1.000", "0.007"], ["twin (simulated)", "0.007", "1.000"]]


def test_what_was_not_computed_is_said_once():
    row = {"switch": "cv", "value": "stratified", "observer": "net", "score": "", "estimate": np.nan, "change": np.nan}
    known = {
        **row,
        "switch": "interval",
        "value": "basic",
        "estimate": 0.5,
        "change": 0.0,
        "standing": True,
        "note": "",
    }
    rows = [
        {**row, "standing": True, "note": "not computed: why"},
        {**known, "score": "accuracy"},
        {**known, "score": "snp"},
    ]
    views = discrepancy_views(pd.DataFrame(rows), OBSERVERS)
    assert [view.notes for view in views] == [["cv: not computed (why)."], []]
