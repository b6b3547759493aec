"""`report.html` of a sweep of object learning: one self-contained page with every figure and table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from humanlike.files import json_ready, write_text
from humanlike.reports import wording
from humanlike.reports.html import inline_svg, leaves, page_template
from humanlike.reports.object_learning_figures import EXPERIMENT_WORDS, figure_caption, figure_title
from humanlike.reports.object_learning_printed import OF_SWEEP, PRINTED, printed_table
from humanlike.reports.object_learning_scores import MSEN
from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.study_tables import fixed

BROAD = ("subtask_curves", "phases", "one_shot", "individuals")
"""Figures with several panels side by side, which take the whole width."""


def render_sweep(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], figures: Mapping[str, str]) -> str:
    """The report of a sweep as HTML text.

    Args:
        record: What sweep.json holds: `dataset, source, convention, simulated_people, counts, flags, missing, runs,
            seeds, versions, digest`; any may be absent.
        tables: Name → table of `humanlike.benchmarks.object_learning_sweep`.
        figures: Name → SVG.

    Returns:
        A page that needs nothing outside itself.
    """
    observers = Observers(simulated=frozenset({PEOPLE}) if record.get("simulated_people") else frozenset())
    people = observers.people
    drawn = [(n in BROAD, figure_title(n), figure_caption(n, people), inline_svg(n, svg)) for n, svg in figures.items()]
    missing = [(PRINTED[n][0] if n in PRINTED else wording.title(n), str(why))
               for n, why in (record.get("missing") or {}).items()]  # fmt: skip
    return page_template("object_learning_sweep.html.j2").render(
        record=record,
        people=people,
        simulated=bool(record.get("simulated_people")),
        flags=[wording.flag_sentence(str(f)) for f in record.get("flags") or () if f != wording.SIMULATED],
        best=_best(tables.get("leaderboard"), str(record.get("convention", "paper"))),
        figures=drawn,
        tables=[printed_table(n, tables[n], observers) for n in OF_SWEEP if n in tables and len(tables[n])],
        missing=missing,
        files=[(name, wording.count_text(len(table))) for name, table in tables.items()],
        counts=[(wording.title(k), wording.count_text(v)) for k, v in (record.get("counts") or {}).items()],
        details=[
            (wording.title(k), leaves(json_ready(record[k]))) for k in ("seeds", "versions", "runs") if record.get(k)
        ],
        bibtex=str(record.get("bibtex") or ""),
    )


def write_sweep_report(path: str | Path, *args: Any) -> None:
    """Write `render_sweep(…)` to a file atomically."""
    write_text(path, render_sweep(*args))


def _best(board: pd.DataFrame | None, convention: str) -> list[dict[str, str]]:
    """The best model of each experiment, for the head of the page."""
    if board is None:
        return []
    cards, score = [], f"msen_{convention}"
    for experiment, rows in board[board["place"] == 1].groupby("experiment", sort=False):
        row = rows.iloc[0]
        low, high = (float(row.get(f"{score}_ci_{end}", float("nan"))) for end in ("low", "high"))
        cards.append(
            {
                "title": EXPERIMENT_WORDS[str(experiment)].capitalize(),
                "value": fixed(float(row[score]), 5),
                "unit": f"{MSEN} ({convention.replace('_', ' ')})",
                "model": f"{row['backbone']}, layer {row['layer']}",
                "rule": str(row["rule"]).replace("_", " "),
                "interval": wording.interval(low, high, 5),
            }
        )
    return cards
