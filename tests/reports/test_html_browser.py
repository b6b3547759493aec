"""The report in a real browser: it sorts and filters, asks for nothing outside, and writes no error to the console."""

from __future__ import annotations

import pytest

from humanlike.reports.run_folder import write_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRIVER = """
<script>
window.addEventListener("load", () => {
  const click = (i) => document.querySelectorAll("#cell-table thead button")[i].click();
  const rows = () => Array.from(document.querySelectorAll("#cell-table tbody tr:not([hidden])"));
  const column = (i) => rows().map((r) => r.cells[i].textContent);
  const say = (name, value) => document.body.setAttribute(`data-${name}`, JSON.stringify(value));
  click(5); say("up", column(5));
  click(5); say("down", column(5)); say("sorted", document.querySelectorAll("#cell-table thead th")[5].ariaSort);
  click(0); say("names", column(0));
  const filter = document.getElementById("filter");
  filter.value = "LION"; filter.dispatchEvent(new Event("input"));
  say("filtered", column(0)); say("shown", document.getElementById("shown").textContent);
  say("loaded", performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith("data:")));
  parent.postMessage([document.documentElement.scrollWidth, document.documentElement.clientWidth], "*");
});
</script>
"""


def test_the_report_works_in_a_browser(score, make_examples, tmp_path, chromium, said):
    run = write_run(score, tmp_path / "run", {"seed": 0}, examples=make_examples(2))
    page = run / "report.html"
    page.write_text(page.read_text().replace("</body>", DRIVER + "</body>"))
    dom, log = chromium(page, "--window-size=1200,900")
    assert "CONSOLE" not in log
    assert said(dom, "loaded") == []

    snp = sorted(f"{v:.3f}" for v in score.result.cells["snp"].dropna())
    assert said(dom, "up") == [*snp, "–"]
    assert said(dom, "down") == [*reversed(snp), "–"]
    assert said(dom, "sorted") == "descending"
    assert said(dom, "names") == sorted(score.result.cells["concept"])
    assert said(dom, "filtered") == ["lion"] * 4
    assert said(dom, "shown") == "4 rows"


def test_the_report_fits_a_phone(score, make_examples, tmp_path, on_a_phone):
    run = write_run(score, tmp_path / "run", {"seed": 0}, examples=make_examples(2))
    page = run / "report.html"
    page.write_text(page.read_text().replace("</body>", DRIVER + "</body>"))
    content, screen = on_a_phone(page)
    assert content <= screen <= 375


def test_the_console_is_heard(tmp_path, chromium):
    page = tmp_path / "broken.html"
    page.write_text("<!DOCTYPE html><script>throw new Error('broken');</script>")
    _, log = chromium(page)
    assert "CONSOLE" in log
