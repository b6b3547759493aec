"""Runs of SEA side by side: their tables, figures, page and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from humanlike.benchmarks.sea_grid import FACTORS, grid_table, rank_correlations
from humanlike.reports import wording
from humanlike.reports.figures import metrics_by_condition
from humanlike.reports.gathered_page import page_record
from humanlike.reports.html import inline_svg, page_template
from humanlike.reports.judge_printed import with_interval
from humanlike.reports.sea_figures import (
    SHOWN,
    compared_distributions,
    figure_caption,
    figure_title,
    listed_elements,
)
from humanlike.reports.sea_printed import MEASURES
from humanlike.reports.sea_wording import comparison_warnings, num_labels
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.reports.tables import markdown_table
from humanlike.types import Score

TITLES: Mapping[str, str] = {
    "scores": "Scores",
    "conditions": "Conditions",
    "grid": "Element source, judge and classifier",
    "rank_correlations": "Do runs rank sketches alike?",
    "people": "Agreement with people",
    "runs": "Runs",
}
CAPTIONS: Mapping[str, str] = {
    "scores": "Means over sketches with 95% intervals, source images resampled within concepts. Recognition P and "
    "accuracy are of all sketches, the rest is of those whose v is known.",
    "conditions": "Mean ± standard deviation over sketches.",
    "grid": "One row a cell of the grid; 95% intervals. SEA of different element sources counts different things.",
    "rank_correlations": "Correlation of SEA over the sketches that both runs scored; 95% intervals, source images "
    "resampled within concepts. Differ: in what the two runs differ.",
    "people": "Orders or ratings of sketches by people, held against SEA of every run.",
    "runs": "What was scored, by whom recognised and by whom judged.",
}
CORRECTED = ("judge_sensitivity", "judge_specificity", "visual_ratio_corrected", "sea_corrected")
"""What a calibrated judge adds."""
HEADLINE = (*MEASURES, "accuracy", "presence_f1", "presence_balanced_accuracy", *CORRECTED)
"""Scores that are columns of the printed table."""


def gathered_tables(scores: Mapping[str, Score]) -> dict[str, pd.DataFrame]:
    """The tables of several runs.

    Args:
        scores: Name of a run → the run.

    Returns:
        scores: `run, score, value, ci_low, ci_high, n, unit`, one row a score of a run.
        conditions: `run, dataset, unit`, then the columns of a run's table of conditions.
        runs: `run, dataset, items, labels, concepts, backbone, layer, readout, judge, threshold, elements, preset,
            delta, seed, not_judged, zero_v, folder`.
        grid, rank_correlations: see `humanlike.benchmarks.sea_grid`; the second where two runs share a data set.
    """
    rows = [
        {
            "run": name,
            "score": key,
            "value": v.value,
            "ci_low": v.ci_low,
            "ci_high": v.ci_high,
            "n": v.n,
            "unit": v.unit,
        }
        for name, score in scores.items()
        for key, v in score.scores.items()
    ]
    conditions = [
        score.result.conditions.assign(run=name, dataset=score.dataset, unit=_unit(score))
        for name, score in scores.items()
    ]
    table = pd.concat(conditions, ignore_index=True)
    first = ["run", "dataset", "unit"]
    correlations = rank_correlations(scores)
    return {
        "scores": pd.DataFrame(rows).astype({"value": float, "ci_low": float, "ci_high": float}),
        "conditions": table[[*first, *(c for c in table.columns if c not in first)]],
        "runs": pd.DataFrame([_about(name, score) for name, score in scores.items()]),
        "grid": grid_table(scores),
        **({"rank_correlations": correlations} if len(correlations) else {}),
    }


def _about(name: str, score: Score) -> dict[str, Any]:
    details, counts = score.result.details, score.result.counts
    judge, elements = details.get("judge") or {}, details.get("elements") or {}
    return {
        "run": name,
        "dataset": score.dataset,
        "items": counts.get("items_used"),
        "labels": num_labels(details),
        "concepts": counts.get("concepts"),
        "backbone": score.backbone,
        "layer": score.layer,
        "readout": readout_name(score),
        "judge": judge.get("source"),
        "threshold": judge.get("threshold"),
        "elements": elements.get("source"),
        "preset": score.result.protocol.get("preset"),
        "delta": score.result.protocol.get("delta"),
        "seed": score.seeds.get("seed"),
        "not_judged": counts.get("items_not_judged"),
        "zero_v": counts.get("items_zero_v"),
        "folder": score.run_dir,
    }


def readout_name(score: Score) -> str:
    """What turned features into P; the trained readout does not name itself."""
    return str((score.result.details.get("readout") or {}).get("readout", "logistic"))


def _unit(score: Score) -> str:
    return str(score.result.details.get("conditions_unit", ""))


def gathered_warnings(scores: Mapping[str, Score]) -> list[str]:
    """What keeps these runs from being compared (see `comparison_warnings`), and what calibrated judges make of it."""
    said = comparison_warnings(
        {name: score.result.details for name, score in scores.items()},
        {name: listed_elements(score) for name, score in scores.items()},
        {name: score.result.protocol for name, score in scores.items()},
    )
    known = [score.scores["sea_corrected"].value for score in scores.values() if "sea_corrected" in score.scores]
    judges = {str((score.result.details.get("judge") or {}).get("source")) for score in scores.values()}
    if len(judges) > 1 and len(known) == len(scores) and None not in known:
        said.append(
            "All judges were calibrated: corrected v and SEA of the same sketches and elements can be compared, as far "
            "as their intervals say."
        )
    return said


def gathered_figures(scores: Mapping[str, Score]) -> dict[str, Figure]:
    """Distributions of P and of SEA run by run, and means by condition where runs have more than one."""
    several = {n: s.result.conditions for n, s in scores.items() if len(s.result.conditions) > 1}
    units = {_unit(scores[name]) for name in several}
    figures = {"sea_compared": compared_distributions(scores)}
    if several and len(units) == 1:  # seconds and strokes share no axis
        figures["sea_conditions"] = metrics_by_condition(several, list(SHOWN), unit=units.pop())
    return {name: figure for name, figure in figures.items() if figure is not None}


def render_gathered(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], figures: Mapping[str, str]) -> str:
    """The report of gathered runs as HTML text.

    Args:
        record: What gather.json holds.
        tables: See `gathered_tables`.
        figures: Name → SVG.

    Returns:
        A page that needs nothing outside itself.
    """
    views = {name: table for name, table in printed(tables).items() if len(table)}
    views["runs"] = tables["runs"].drop(columns="folder")
    return page_template("sea_gathered.html.j2").render(
        results=TITLES["scores"],
        headline=_view("scores", views.pop("scores")),
        flags=[*record["warnings"], *record["flags"]],
        figures=[(True, figure_title(n), figure_caption(n), inline_svg(n, svg)) for n, svg in figures.items()],
        tables=[_view(name, table) for name, table in views.items()],
        missing=list(record.get("missing", {}).items()),
        **page_record(record, tables),
    )


def _view(name: str, table: pd.DataFrame) -> TableView:
    return table_view(name, TITLES[name], table, Observers(), CAPTIONS[name])


def printed(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of scores and of conditions as people read them: texts, a row a run, a column a score."""
    shown = {"scores": _wide(tables["scores"]), "conditions": _conditions(tables["conditions"])}
    if len(tables["grid"]) > 1:
        shown["grid"] = _bounded(tables["grid"], ["run", *FACTORS, "n"], ("sea", "sea_corrected"))
    if "rank_correlations" in tables:
        pairs = tables["rank_correlations"]
        shown["rank_correlations"] = _bounded(pairs, ["run_a", "run_b", "differ", "n"], ("spearman", "kendall"))
    if "people" in tables:
        people = tables["people"].rename(columns={"ci_low": "value_low", "ci_high": "value_high"})
        shown["people"] = _bounded(people, ["run", "measure", "n"], ("value",))
    return shown


def _bounded(table: pd.DataFrame, columns: list[str], values: tuple[str, ...]) -> pd.DataFrame:
    """Some columns as they are, and values as text with their intervals."""
    shown = table[columns].rename(columns=wording.short_title)
    for name in (v for v in values if v in table):
        bounds = zip(table[name], table[f"{name}_low"], table[f"{name}_high"], strict=True)
        shown[wording.short_title(name)] = [with_interval(*row) for row in bounds]
    return shown


def _wide(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for run, own in table.groupby("run", sort=False):
        by_name = {row["score"]: row for row in own.to_dict("records")}
        row = {"run": run, "sketches": wording.count_text(by_name["sea"]["n"] or 0)}
        for name in (n for n in HEADLINE if n in set(table["score"])):
            v = by_name.get(name, {})
            between = wording.interval(v.get("ci_low"), v.get("ci_high"))
            text = wording.number(v.get("value"))
            row[wording.short_title(name)] = text if between == wording.MISSING else f"{text} ({between})"
        rows.append(row)
    return pd.DataFrame(rows)


def _conditions(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in table.to_dict("records"):
        texts = {wording.short_title(m): wording.with_error(row[m], row[f"{m}_sd"]) for m in MEASURES}
        label = wording.condition_label(float(row["condition"]), str(row["unit"]))
        rows.append({"run": row["run"], "condition": label, "scored": wording.count_text(row["n_scored"]), **texts})
    return pd.DataFrame(rows)


def gathered_markdown(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> str:
    """Warnings, scores, conditions and runs as Markdown."""
    shown = {**printed(tables), "runs": tables["runs"].drop(columns="folder")}
    parts = [f"# SEA: {record['dataset']}", *(f"> {text}" for text in record["warnings"])]
    for name, table in shown.items():
        parts += [f"## {TITLES[name]}", CAPTIONS[name], markdown_table(list(table.columns), _texts(table))]
    return "\n\n".join(parts) + "\n"


def _texts(table: pd.DataFrame) -> Sequence[Sequence[str]]:
    return [
        [wording.MISSING if wording.is_missing(v) else f"{v:g}" if isinstance(v, float) else str(v) for v in row]
        for row in table.itertuples(index=False)
    ]
