"""The report of a study in a real browser: every table sorts, filters count, nothing is loaded, a phone holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from humanlike.reports.study_html import render_study

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRIVER = """
<script>
window.addEventListener("load", () => {
  const table = (name) => document.getElementById("d-" + name);
  const rows = (name) => Array.from(table(name).tBodies[0].rows).filter((r) => !r.hidden);
  const column = (name, i) => rows(name).map((r) => r.cells[i].textContent);
  const click = (name, i) => table(name).tHead.rows[0].cells[i].querySelector("button").click();
  const say = (name, value) => document.body.setAttribute(`data-${name}`, JSON.stringify(value));
  click("discrepancy-accuracy", 1); say("change", column("discrepancy-accuracy", 0));
  click("alignment", 2); click("alignment", 2); say("alignment", column("alignment", 2));
  const filter = document.getElementById("f-alignment");
  filter.value = "twin"; filter.dispatchEvent(new Event("input"));
  say("twins", column("alignment", 0)); say("counted", document.getElementById("c-alignment").textContent);
  say("others", column("conditions", 0).length);
  say("loaded", performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:")));
  parent.postMessage([document.documentElement.scrollWidth, document.documentElement.clientWidth], "*");
});
</script>
"""


@pytest.fixture
def page(tmp_path, study_record, study_tables, study_svgs) -> Path:
    text = render_study(study_record, study_tables, study_svgs)
    path = tmp_path / "report.html"
    path.write_text(text.replace("</body>", DRIVER + "</body>"), encoding="utf-8")
    return path


def test_every_table_sorts_by_itself_and_nothing_is_loaded(page, chromium, study_tables, said):
    dom, log = chromium(page, "--window-size=1200,900")
    assert "CONSOLE" not in log
    assert said(dom, "loaded") == []
    assert said(dom, "change") == [
        "people_accuracy = first (this study)", "people_accuracy = all", "model_accuracy = all", "preset = paper_code",
    ]  # fmt: skip
    falling = study_tables["alignment"]["estimate"].sort_values(ascending=False)
    assert said(dom, "alignment") == [f"{v:.3f}" for v in falling]
    assert said(dom, "twins") == ["twin (simulated)"] * 3
    assert said(dom, "counted") == "3 rows"
    assert said(dom, "others") == len(study_tables["conditions"])


def test_it_fits_a_phone(page, on_a_phone):
    content, screen = on_a_phone(page)
    assert content <= screen <= 375
