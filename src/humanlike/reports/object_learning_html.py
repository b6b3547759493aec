"""`report.html` of a sweep of object learning: one self-contained page with every figure and table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from humanlike.reports import wording
from humanlike.reports.gathered_page import page_record
from humanlike.reports.html import inline_svg, page_template
from humanlike.reports.object_learning_figures import EXPERIMENT_WORDS, figure_caption, figure_title
from humanlike.reports.object_learning_printed import OF_SWEEP, PRINTED, printed_table
from humanlike.reports.object_learning_scores import MSEN
from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.study_tables import fixed

SIMULATED_PEOPLE = "The “people” are a simulation. Nothing on this page says anything about human beings."
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
    simulated = [SIMULATED_PEOPLE] if record.get("simulated_people") else []
    told = [wording.flag_sentence(str(f)) for f in record.get("flags") or () if f != wording.SIMULATED]
    views = [printed_table(n, tables[n], observers) for n in OF_SWEEP if n in tables and len(tables[n])]
    return page_template("object_learning_sweep.html.j2").render(
        results="Best models",
        people=people,
        flags=[*simulated, *told],
        best=_best(tables.get("leaderboard"), str(record.get("convention", "paper"))),
        figures=drawn,
        tables=views,
        missing=missing,
        **page_record(record, tables),
    )


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
