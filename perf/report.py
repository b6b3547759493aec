"""The report card of 200 models on three benchmarks: CPU seconds to build it, its size, seconds until it is open.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/report.py [--models 200] [--runs FOLDER]

The 600 run folders are synthetic (see perf/report_twin.py) and are kept in FOLDER, where a second call finds them. The
page is built in a process of its own, whose CPU time is measured. It is opened in headless Chromium as many times as
`--rounds` says, each time with a fresh profile; open means that the load event has ended and, separately, that every
figure has been drawn. Must reach: below 10 MB, open in less than 2 s.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from browser_pipe import Browser, program
from report_twin import ReportTwin

DRAWN = 'Array.from(document.querySelectorAll("figure.drawn .said-below")).every((e) => e.textContent)'
LOADED = 'performance.getEntriesByType("navigation")[0].loadEventEnd'


def children_cpu() -> float:
    """CPU seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def build(runs: Path, out: Path) -> float:
    """Build the card in a process of its own; returns its CPU seconds."""
    before = children_cpu()
    command = [sys.executable, "-m", "humanlike", "report", str(runs), "--output", str(out)]
    print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    return children_cpu() - before


def opened(page: Path, rounds: int) -> list[tuple[float, float, int]]:
    """Milliseconds until the page is loaded and until all figures are drawn, and its number of elements."""
    if program() is None:
        sys.exit("Chromium is not installed; the size and the CPU time above stand without it")
    found = []
    for _ in range(rounds):
        with Browser() as browser:
            browser.open(page)
            browser.until(DRAWN, 60)
            told = browser.evaluate(f'[{LOADED}, performance.now(), document.querySelectorAll("*").length]')
            if browser.said:
                sys.exit(f"the page wrote to the console: {browser.said[0]}")
            found.append(tuple(told))
    return found


def main() -> None:
    """Write the runs where they are absent, build the card, open it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=Path, default=Path(tempfile.gettempdir()) / "humanlike_report_runs")
    given = parser.parse_args()
    if len(list(given.runs.glob("*/*/score.json"))) != 3 * given.models:
        shutil.rmtree(given.runs, ignore_errors=True)
        ReportTwin().write(given.runs, given.models)
    with tempfile.TemporaryDirectory() as out:
        seconds = build(given.runs, Path(out))
        page = Path(out) / "report.html"
        print(f"build: {seconds:.1f} CPU s; page: {page.stat().st_size / 1e6:.2f} MB")
        times = opened(page, given.rounds)
    loaded, drawn = (statistics.median(t[i] for t in times) / 1000 for i in (0, 1))
    print(f"open: loaded in {loaded:.2f} s, all figures drawn in {drawn:.2f} s (medians of {given.rounds}), "
          f"{times[0][2]} elements")  # fmt: skip


if __name__ == "__main__":
    main()
