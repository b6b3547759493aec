"""The page of a sweep: everything is on it, in words, with what is simulated and what is missing said."""

from __future__ import annotations

import re

import pytest

from humanlike.reports.figures import figure_svg
from humanlike.reports.object_learning_figures import sweep_figures
from humanlike.reports.object_learning_html import OF_SWEEP, PRINTED, render_sweep


@pytest.fixture(scope="module")
def page(tables):
    drawn = sweep_figures(
        {n: t for n, t in tables.items() if n in ("leaderboard", "summary")}, people="simulated people"
    )
    record = {
        "dataset": "objects <&>", "simulated_people": True, "convention": "paper",
        "counts": {"one_shot_models": 147}, "flags": ["seeds_averaged:2", "simulated_participants"],
        "missing": {"relation": "no model was run in both experiments"}, "digest": "ab" * 32, "seeds": {"seed": 0},
    }  # fmt: skip
    return render_sweep(record, tables, {name: figure_svg(figure) for name, figure in drawn.items()})


def test_it_needs_nothing_outside_itself(page):
    assert not re.search(r'(src|href)="(?!#|data:)', page.replace('xmlns:xlink="http', ""))
    assert "default-src 'none'" in page
    assert "objects &lt;&amp;&gt;" in page
    assert "objects <&>" not in page


def test_every_table_and_figure_has_a_heading_and_ids_are_unique(page, tables):
    for name, (title, _) in PRINTED.items():
        assert (f'id="t-{name}"' in page) == (name in tables and name in OF_SWEEP)
        if name in tables and name in OF_SWEEP:
            assert f'id="t-{name}">{title}</h3>' in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert 'aria-label="Score by depth (Figure 4 C), one view"' in page


def test_what_must_be_said_is_said(page, tables):
    assert page.count("Nothing on this page says anything about human beings") == 1
    assert "Scores are means over 2 seeds" in page
    assert "no model was run in both experiments" in page
    assert "Most like simulated people" in page
    best = tables["leaderboard"].query("experiment == 'one_shot'").iloc[0]
    assert f"{best['msen_paper']:.5f}" in page
    assert f"{best['backbone']}, layer {best['layer']}" in page


def test_the_printed_leaderboard_has_readable_heads(page):
    board = page.split('id="d-leaderboard"')[1].split("</thead>")[0]
    heads = [re.sub("<[^>]+>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", board)]
    assert heads[:4] == ["experiment", "place", "strong baseline", "backbone"]
    assert "MSEₙ (paper), 95% interval" in heads
    assert "p, null test" in heads
    assert not [head for head in heads if "ceiling" in head or "guess" in head]


def test_a_bare_sweep_still_has_a_page():
    assert "Most like people" in render_sweep({}, {}, {})
