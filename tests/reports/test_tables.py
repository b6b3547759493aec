from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from humanlike.reports import wording
from humanlike.reports.tables import (
    condition_cells,
    counts_line,
    flags_panel,
    headline_cells,
    markdown_table,
    protocol_line,
    score_markdown,
    score_summary,
)


def _printed(renderable: object, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    return console.file.getvalue()


def test_headline_puts_people_beside_the_model(score):
    heads, rows = headline_cells(score)
    assert heads == ["score", "value", "95% interval", "simulated people", "ceiling", "n", "unit"]
    named = {row[0]: row for row in rows}
    assert len(rows) == sum(not name.endswith("_people") for name in score.scores)
    value, people = score.scores["accuracy"], score.scores["accuracy_people"]
    assert named["Accuracy"][1:4] == [
        f"{value.value:.3f}", f"{value.ci_low:.3f} to {value.ci_high:.3f}", f"{people.value:.3f}",
    ]  # fmt: skip
    assert named["Alignment, SNP"][1:] == ["−0.020", "−0.100 to 0.050", "–", "0.880", "32", "R²"]


def test_conditions_hold_the_table_s_numbers(score):
    heads, rows = condition_cells(score)
    assert heads == ["condition", "by", "Accuracy", "Entropy", "SNP", "JS distance"]
    assert [row[:2] for row in rows[:3]] == [["4 s", "model"], ["4 s", "simulated people"], ["8 s", "model"]]
    table = score.result.conditions
    assert rows[2][2] == f"{table['accuracy'][1]:.3f} ± {table['accuracy_sem'][1]:.3f}"
    assert rows[3][3] == f"{table['entropy_people'][1]:.3f} ± {table['entropy_people_sem'][1]:.3f}"
    assert rows[3][5] == "–"


def test_without_people_nothing_is_invented(score_without_people):
    text = _printed(score_summary(score_without_people))
    assert "simulated" not in text
    assert "has no human responses" in text
    heads, rows = condition_cells(score_without_people)
    assert heads == ["condition", "by", "Accuracy", "Entropy"]
    assert {row[1] for row in rows} == {"model"}
    assert {row[3] for row in headline_cells(score_without_people)[1]} == {"–"}


def test_conditions_without_any_value_leave_no_table(score):
    conditions = score.result.conditions.copy()
    conditions[[c for c in conditions if c != "condition"]] = float("nan")
    text = _printed(score_summary(replace(score, result=replace(score.result, conditions=conditions))))
    assert "By condition" not in text
    assert "digest" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_simulated_people_are_called_so_everywhere(score, width):
    text = " ".join(_printed(score_summary(score), width).split())
    assert "simulation" in text
    assert "simulated people" in _printed(score_summary(score), 200)
    assert max(map(len, _printed(score_summary(score), width).splitlines())) <= width


def test_console_markup_in_names_is_not_obeyed(score):
    text = _printed(score_summary(replace(score, backbone="[red]x[/red]")))
    assert "[red]x[/red]" in text


def test_markdown_keeps_its_columns(score):
    lines = score_markdown(score).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert {line.count("|") for line in table[:13]} == {8}
    assert markdown_table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"
    assert score.digest in lines[-1]


def test_lines_of_protocol_counts_and_flags(score):
    assert protocol_line(score.result.protocol) == "protocol corrected, with cv=stratified"
    assert protocol_line({}) == "protocol: none"
    assert counts_line(score) == "items total 128 · items used 127 · items failed 1 · cells 32 · conditions 4"
    assert flags_panel(replace(score, result=replace(score.result, flags=()))) is None


def test_every_flag_has_a_sentence():
    for flag in wording.FLAG_SENTENCES:
        sentence = wording.flag_sentence(f"{flag}:12")
        assert "{" not in sentence
        assert sentence.endswith(".")
