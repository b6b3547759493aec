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
from humanlike.reports.object_learning_scores import MSEN
from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.study_tables import TableView, fixed, table_view

BROAD = ("subtask_curves", "phases", "one_shot", "individuals")
"""Figures with several panels side by side, which take the whole width."""

PRINTED: Mapping[str, tuple[str, str]] = {
    "summary": (
        "Both ends of the scale",
        "Floor: what a perfect model is expected to score. Roots are in units of accuracy. Rejected: models whose "
        "behaviour is not that of {people} by the null test.",
    ),
    "leaderboard": ("All models, the best first", "Low scores are good; the conventions stand side by side."),
    "rank_groups": (
        "Rank groups of the best models",
        "Pairs are compared on the same resamples, with p adjusted for the number of pairs. Rank: 1 + the number of "
        "models that are significantly better. Two models share a letter if and only if they cannot be told apart.",
    ),
    "anova": (
        "What explains the spread of scores",
        "Two-way analysis of variance, encoding stage × update rule. Share: of the whole sum of squares. With one "
        "score a combination, interaction and residual are one.",
    ),
    "rules": ("Update rules", "Best of stages: encoding stages for which the rule is the best."),
    "depth": ("Score by depth, network by network", "ρ between depth and score: negative where deeper is better."),
    "conventions": ("Agreement of the conventions", "Spearman's ρ of the orders of the models."),
    "relation": (
        "The two experiments over models",
        "r is of the logarithms; scores that are not positive are left out of it.",
    ),
    "phases_strong": (
        "Early and late in learning",
        "Tests of each model by itself, not adjusted for their number: worse and better at 5%, alike otherwise.",
    ),
    "transformations": ("After one view", "Strong baselines less {people}, levels averaged."),
    "individuals": ("Single participants", "p is one-tailed and adjusted for the number of participants (Bonferroni)."),
}
"""Tables that the page prints → title and caption; the others are in their files alone."""

_HEADS = {
    "is_strong": "strong baseline",
    "relative_depth": "depth",
    "msen_paper": f"{MSEN} (paper)",
    "msen_v2": f"{MSEN} (v2)",
    "msen_paper_text": f"{MSEN} (paper text)",
    "lapse_rate": "lapse rate",
    "p_null": "p, null test",
    "p_adjusted": "p_adjusted",
    "high_variation": "many views",
    "pearson_log": "r, logarithms",
    "n_log": "n, logarithms",
    "sum_sq": "sum of squares",
    "mean_sq": "mean square",
    "f_statistic": "F",
    "accuracy_people": "accuracy, {people}",
    "early_accuracy_people": "early accuracy, {people}",
    "late_accuracy_people": "late accuracy, {people}",
    "rank_high": "lowest rank",
    "rank": "rank",
}

_BOARD = (
    "experiment", "place", "is_strong", "backbone", "layer", "relative_depth", "rule", "msen_", "lapse_rate",
    "accuracy", "early_accuracy", "late_accuracy", "consistency", "p_null",
)  # fmt: skip
"""What the columns of the printed leaderboard begin with; the file has all."""
_NOT_ON_BOARD = {
    f"{name}{end}"
    for name in ("lapse_rate", "p_null", "consistency_ceiling")
    for end in ("_paper", "_v2", "_paper_text", "_ci_low", "_ci_high", "_low", "_high", "")
} - {"lapse_rate", "p_null"}


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
        tables=[_view(name, tables[name], observers) for name in PRINTED if name in tables and len(tables[name])],
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


def _view(name: str, table: pd.DataFrame, observers: Observers) -> TableView:
    title, caption = PRINTED[name]
    if "experiment" in table:
        table = table.assign(experiment=table["experiment"].map(EXPERIMENT_WORDS))
    if name == "leaderboard":
        table = table[[c for c in table.columns if c.startswith(_BOARD) and c not in _NOT_ON_BOARD]]
    heads = {old: new.format(people=observers.people) for old, new in _HEADS.items()}
    for column in table.columns:
        for end in ("_ci_low", "_ci_high"):
            start = column.removesuffix(end)
            if column.endswith(end) and start in heads:
                heads[column] = heads[start] + end.removeprefix("_ci")
    shown = table.rename(columns=heads)
    return table_view(name, title, shown, observers, caption.format(people=observers.people))
