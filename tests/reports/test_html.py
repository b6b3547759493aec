from __future__ import annotations

import re
from dataclasses import replace

import pytest

from humanlike.reports.figures import alignment_bars, figure_svg, score_figures
from humanlike.reports.html import MAX_CELL_ROWS, _scale, inline_svg, render_report, write_report
from humanlike.reports.wording import ScoreRow
from humanlike.types import ScoreValue


def _report(score, examples=(), **parts):
    figures = {name: figure_svg(figure) for name, figure in score_figures(score, examples).items()}
    return render_report(score, figures=figures, examples=examples, **parts)


def test_the_page_holds_everything_and_nothing_from_outside(score, make_examples, parsed):
    config = {"backbone": {"name": "net"}, "api_key": "abc123"}
    text = _report(score, make_examples(4), config=config, bibtex="@article{seva}")
    page = parsed(text)
    assert len(text.encode()) < 2_000_000
    page.assert_whole()
    assert not re.search(r"@import|url\((?!#)", text)
    words = " ".join(page.texts)
    for wanted in (
        "@article{seva}", score.digest, score.hashes["weights"], "2.14.1", "stratified", "set by hand", "relative_gap",
        "Nothing on this page says anything about human beings.", "items failed 1", "name: net", "3.2e−09",
    ):  # fmt: skip
        assert wanted in words, wanted
    assert "abc123" not in text
    assert "***" in words
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    labelled = {value for _, key, value in page.attributes if key in ("aria-labelledby", "for")}
    assert labelled <= set(ids)
    assert sum(tag == "img" and key == "alt" for tag, key, _ in page.attributes) == 16


@pytest.mark.parametrize("evil", ['<script>alert("x")</script>', '"><img src=x onerror=alert(1)>', "{{ 7*7 }}&amp;"])
def test_everything_is_escaped(score, make_examples, evil, parsed):
    clean = render_report(score, figures={}, examples=make_examples(1))
    cells = score.result.cells.assign(concept=evil)
    result = replace(
        score.result, cells=cells, flags=(evil,), protocol={"preset": evil, evil: evil}, details={evil: {evil: [evil]}}
    )
    dirty = replace(
        score, backbone=evil, dataset=evil, layer=evil, hashes={evil: evil}, versions={evil: evil}, result=result
    )
    examples = [replace(e, answer=evil, concept=evil, people_answer=evil) for e in make_examples(1)]
    svg = figure_svg(alignment_bars({evil: score.scores}, people=evil))
    text = render_report(dirty, figures={evil: svg}, examples=examples, bibtex=evil, config={evil: evil})
    page = parsed(text)
    assert evil in " ".join(page.texts)
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert text.count("<script") == clean.count("<script") == 1
    assert text.count("<img") == clean.count("<img")


def test_without_people_there_is_no_word_on_their_values(score_without_people):
    text = _report(score_without_people)
    cards = text[text.index('class="cards"') : text.index("All scores")]
    assert cards.count("<article") == 2
    assert "simulated" not in text
    assert "has no human responses" in text


def test_a_run_with_next_to_nothing_is_a_page(score, parsed):
    scores = {"sea": ScoreValue(-0.4, unit="sea")}
    result = replace(
        score.result, scores=scores, cells=score.result.cells.head(0), conditions=score.result.conditions.head(0),
        flags=(), protocol={}, details={},
    )  # fmt: skip
    page = parsed(render_report(replace(score, result=result, hashes={}), figures={}))
    assert "−0.400" in page.texts


@pytest.mark.parametrize("value", [0.0, -0.002, 0.03])
def test_the_small_axis_of_a_card_holds_every_number(value):
    known = ScoreValue(value, value - 0.001, value + 0.0005)
    at = _scale(ScoreRow("msen_v2", "", "", "", known, None))
    assert all(-1e-9 <= place <= 100 for place in at.values())
    assert _scale(ScoreRow("msen_v2", "", "", "", ScoreValue(0.0), None)) == {"value": 0.0, "zero": 0.0}


def test_long_tables_are_cut_with_a_word(score):
    cells = score.result.cells
    long = cells.loc[cells.index.repeat(MAX_CELL_ROWS // len(cells) + 1)]
    text = _report(replace(score, result=replace(score.result, cells=long)))
    assert f"{len(long) - MAX_CELL_ROWS} more row(s) are in cells.parquet" in text


def test_two_figures_on_a_page_share_no_ids_and_keep_their_links(score):
    svg = figure_svg(score_figures(score)["by_condition"])
    one, two = inline_svg("one", svg), inline_svg("two", svg)
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert not ids[0] & ids[1]
    for text, known in zip((one, two), ids, strict=True):
        links = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
        assert links
        assert links <= known
    assert "#ffffff" not in one
    assert "var(--ink)" in one


def test_write_report(score, tmp_path):
    write_report(tmp_path / "report.html", score, figures={})
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == render_report(score, figures={})
