"""The report card in a real browser: keys sort it, words filter it, files come out of it, a phone holds it."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from humanlike.reports.card.card import build_card
from humanlike.reports.card.page import render_card

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRAWN = 'Array.from(document.querySelectorAll("figure.drawn .said-below")).every((e) => e.textContent)'
ROWS = "(id) => Array.from(document.getElementById(id).tBodies[0].rows).filter((r) => !r.hidden)"
CATCH = """window.caught = []; URL.createObjectURL = (blob) => { window.caught.push(blob); return "#"; };
HTMLAnchorElement.prototype.click = function () { window.named = this.download; };"""


def column(open_page, table, i):
    return open_page.evaluate(f"({ROWS})('{table}').map((r) => r.cells[{i}].textContent)")


@pytest.fixture(scope="module")
def page(card, tmp_path_factory):
    path = tmp_path_factory.mktemp("card") / "report.html"
    path.write_text(render_card(card, written="2026-01-01T00:00:00+00:00", versions={}), encoding="utf-8")
    return path


@pytest.fixture
def opened(page, browser):
    with browser() as window:
        window.open(page)
        window.until(DRAWN)
        yield window
        assert window.said == []
        loaded = window.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
        assert [name for name in loaded if not name.startswith("data:")] == []


def test_keys_alone_reach_and_sort_the_table(opened, card):
    opened.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "skip"
    opened.press("Enter")
    for _ in range(60):
        opened.press("Tab")
        if opened.evaluate("document.activeElement.closest('#t-overview th') !== null"):
            break
    assert opened.evaluate("document.activeElement.textContent.startsWith('Model')")
    opened.press("Tab")
    opened.press("Space")
    assert opened.evaluate("document.activeElement.closest('th').ariaSort") == "ascending"
    values = sorted(v["alignment_accuracy"].value for v in card.values["g1"].values())
    assert column(opened, "t-overview", 1) == [f"{v:.3f}".replace("-", "−") for v in values]
    opened.press("Enter")
    assert opened.evaluate("document.activeElement.closest('th').ariaSort") == "descending"
    assert column(opened, "t-overview", 1) == [f"{v:.3f}".replace("-", "−") for v in reversed(values)]
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_words_filter_every_table_and_the_count_is_told(opened):
    opened.evaluate("document.getElementById('find').focus()")
    opened.write("002 SYNTHETIC")
    assert opened.evaluate("document.getElementById('found').textContent") == "1 of 4 models"
    assert opened.evaluate("document.getElementById('found').getAttribute('aria-live')") == "polite"
    for table in ("t-overview", "t-g1", "t-g2", "t-g3"):
        assert column(opened, table, 0) == ["synthetic_net_002"]
    assert column(opened, "t-runs", 0) == ["synthetic_net_002"] * 6
    opened.until("document.querySelectorAll('[data-group=g1] .scores circle').length === 1")
    opened.evaluate("document.getElementById('find').value = 'nobody'")
    opened.evaluate("document.getElementById('find').dispatchEvent(new Event('input'))")
    assert opened.evaluate("document.getElementById('found').textContent") == "0 of 4 models"
    opened.until("document.querySelector('[data-group=g1] .said-below').textContent.startsWith('No model shown')")


def test_a_benchmark_can_be_looked_at_alone(opened):
    opened.evaluate("(() => { only.value = 'sea'; only.dispatchEvent(new Event('change')); })()")
    shown = opened.evaluate("Array.from(document.querySelectorAll('section.group')).map((s) => s.checkVisibility())")
    assert shown == [False, True, False]
    assert opened.evaluate(f"({ROWS})('t-runs').map((r) => r.dataset.in)") == ["g2"] * 8


def test_another_score_can_be_the_headline(opened, card):
    choose = "const s = document.getElementById('by-g1'); s.value = 'accuracy'; s.dispatchEvent(new Event('change'));"
    choose = f"(() => {{ {choose} }})()"
    opened.evaluate(choose)
    values = {label: v["accuracy"] for label, v in card.values["g1"].items()}
    best = sorted(values, key=lambda label: -values[label].value)
    shown = column(opened, "t-g1", 3)
    assert shown == [f"{values[m].value:.3f} ({values[m].low:.3f} to {values[m].high:.3f})" for m in best]
    ranks = card.rankings["g1"]["accuracy"]
    texts = [
        str(a) if a == b else f"{a}–{b}"
        for a, b in ((ranks.rank[m], ranks.rank_high[m]) for m in column(opened, "t-g1", 0))
    ]
    assert column(opened, "t-g1", 1) == texts
    assert set(column(opened, "t-g1", 4)) == {"–"}
    assert "resamples" in opened.evaluate("document.getElementById('how-g1').textContent")


def caught(opened, button):
    opened.evaluate(CATCH)
    opened.evaluate(f"document.querySelector('[data-csv={button}]').click()")
    return list(csv.DictReader(io.StringIO(opened.evaluate("window.caught[0].text()"))))


def test_the_download_holds_what_is_shown_unrounded(opened, card):
    opened.evaluate(
        "(() => { const f = document.getElementById('find'); f.value = '00'; f.dispatchEvent(new Event('input')); })()"
    )
    rows = caught(opened, "t-g1")
    assert opened.evaluate("window.named") == "g1.csv"
    assert len(rows) == 4 * len(card.scores["g1"])
    for row in rows:
        value = card.values["g1"][row["model"]][row["score"]]
        assert [row[k] for k in ("value", "ci_low", "fraction_of_ceiling")] != ["", "", ""]
        assert float(row["value"]) == value.value
        assert (
            row["fraction_low"] == ""
            if value.fraction_low is None
            else float(row["fraction_low"]) == value.fraction_low
        )
    runs = caught(opened, "t-runs")
    digests = {run.digest for group in card.groups for entry in group.entries for run in entry.runs}
    assert {row["digest"] for row in runs} == digests


def test_a_name_that_is_a_formula_or_markup_stays_a_text(run_scores, browser, tmp_path):
    name = "=HYPERLINK(1)<img src=x onerror=alert(1)>"
    card = build_card([replace(s, backbone=name) if s.backbone.endswith("000") else s for s in run_scores])
    path = tmp_path / "report.html"
    path.write_text(render_card(card), encoding="utf-8")
    with browser() as window:
        window.open(path)
        window.until(DRAWN)
        assert window.evaluate("document.querySelectorAll('img[src=x]').length") == 0
        assert name in window.evaluate("Array.from(document.querySelectorAll('.legend li')).map((l) => l.textContent)")
        assert f"'{name}" in {row["model"] for row in caught(window, "t-g1")}
        assert window.said == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_body_never_scrolls_sideways(page, browser, width):
    with browser() as window:
        window.resize(width, 760, mobile=width < 500)
        window.open(page)
        window.until(DRAWN)
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        window.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        window.evaluate(
            "document.querySelectorAll('.group, .late').forEach((s) => { s.style.contentVisibility = 'visible'; })"
        )
        assert window.evaluate("document.documentElement.scrollWidth") <= width
        small = """Array.from(document.querySelectorAll("button, select, input")).filter((e) => e.checkVisibility())
            .map((e) => e.getBoundingClientRect().height).filter((h) => h < 24).length"""
        assert window.evaluate(small) == 0
        assert window.said == []


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark_by_system_and_by_hand(page, browser, dark):
    paper = "getComputedStyle(document.querySelector('section:not(.flags)')).backgroundColor"
    white, black = "rgb(255, 255, 255)", "rgb(26, 32, 41)"
    with browser(dark=dark) as window:
        window.open(page)
        assert window.evaluate(paper) == (black if dark else white)
        assert window.evaluate("theme.getAttribute('aria-pressed')") == str(dark).lower()
        window.evaluate("theme.click()")
        assert window.evaluate(paper) == (white if dark else black)
        window.evaluate("theme.click()")
        assert window.evaluate(paper) == (black if dark else white)
        assert window.evaluate(CONTRAST) >= 4.5


CONTRAST = """(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
    const [r, g, b] = parts.map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!colour.startsWith("rgba(0, 0, 0, 0")) return colour;
    }
    return "rgb(255,255,255)";
  };
  let least = 21;
  for (const e of document.querySelectorAll("main *, header *")) {
    const texts = Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.data.trim());
    if (!texts || !e.checkVisibility() || e.closest("svg")) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
    least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return least;
})()"""


def test_print_shows_everything_and_no_tools(page, browser, tmp_path):
    with browser() as window:
        window.open(page)
        window.send("Emulation.setEmulatedMedia", media="print")
        assert window.evaluate("document.querySelector('.bar-of-tools').checkVisibility()") is False
        window.send("Emulation.setEmulatedMedia", media="")
        window.pdf(tmp_path / "card.pdf")
        assert (tmp_path / "card.pdf").read_bytes().startswith(b"%PDF")
        assert (tmp_path / "card.pdf").stat().st_size > 50_000
        assert window.said == []
