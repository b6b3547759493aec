"""`report.html`: one self-contained page for a run, without any external resource.

The page is a Jinja template with automatic escaping; figures are inlined as SVG whose ink follows the page's colours,
so that the page reads in light and in dark, on a phone and on paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from humanlike.files import json_ready, write_text
from humanlike.reports import wording
from humanlike.reports.config_record import config_text
from humanlike.reports.figures import GRID, INK, MODEL_COLOURS, MUTED, PAPER, PEOPLE_COLOUR
from humanlike.reports.gallery import Example
from humanlike.reports.generation_figures import figure_caption as generation_caption
from humanlike.reports.generation_figures import figure_title as generation_title
from humanlike.reports.generation_printed import generation_tables
from humanlike.reports.object_learning_figures import figure_caption, figure_title
from humanlike.reports.object_learning_printed import run_tables
from humanlike.reports.sea_figures import figure_caption as sea_caption
from humanlike.reports.sea_figures import figure_title as sea_title
from humanlike.reports.sea_printed import sea_tables
from humanlike.reports.tables import condition_cells, counts_line, headline_cells, protocol_line
from humanlike.reports.wording import ScoreRow
from humanlike.types import Score

MAX_CELL_ROWS = 2_000
_COLOURS = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--line",
    PAPER: "--paper",
    MODEL_COLOURS[0]: "--model",
    PEOPLE_COLOUR: "--people",
}
_FIGURE_WORDS = {
    "by_condition": "Mean and standard error of each metric at each condition.",
    "alignment": "How well the model's cell scores predict those of {people}; the bars' lines are 95% intervals. "
    "The dashed line is how well one half of {people} predicts the other.",
    "layers": "Alignment with {people} against the relative depth of the layer; bands are 95% intervals. A ring marks "
    "the layer that most folds of the concepts chose.",
    "divergence": "Distance between the label distributions of the model and {people}; 0 is the same.",
}


def render_report(
    score: Score,
    *,
    figures: Mapping[str, str],
    examples: Sequence[Example] = (),
    config: Mapping[str, Any] | None = None,
    bibtex: str = "",
) -> str:
    """The report of one run as HTML text.

    Args:
        score: The finished evaluation.
        figures: Name → SVG text, in the order in which they appear. `sketches` is left out where `examples` show it.
        examples: Sketches to show with the answers given.
        config: The run's configuration; secrets are masked.
        bibtex: How to cite the benchmark.

    Returns:
        A page that needs nothing outside itself.
    """
    people = wording.people_word(score)
    protocol = {k: v for k, v in score.result.protocol.items() if k not in ("preset", "overridden")}
    shown = {n: s for n, s in figures.items() if not (n == "sketches" and examples)}
    return page_template("report.html.j2").render(
        score=score,
        people=people,
        flags=[wording.flag_sentence(flag) for flag in score.result.flags],
        cards=_cards(score),
        headline=headline_cells(score),
        conditions=condition_cells(score) if wording.condition_metrics(score.result.conditions) else None,
        figures=[(n, _heading(n), _caption(n, people), inline_svg(n, svg)) for n, svg in shown.items()],
        tables=[*run_tables(score), *sea_tables(score), *generation_tables(score)],
        notes=wording.run_notes(score),
        gallery=_gallery(examples),
        unit=str(score.result.details.get("conditions_unit", "")),
        cells=_cell_table(score.result.cells, people),
        cells_left_out=max(0, len(score.result.cells) - MAX_CELL_ROWS),
        counts=counts_line(score),
        protocol=protocol,
        protocol_line=protocol_line(score.result.protocol),
        overridden=set(score.result.protocol.get("overridden", ())),
        record=_record(score),
        details=[
            (wording.title(str(k)), leaves(v)) for k, v in json_ready(score.result.details).items() if k != "notes"
        ],
        config=config_text(config) if config else "",
        bibtex=bibtex,
    )


def write_report(path: str | Path, score: Score, **parts: Any) -> None:
    """Write `render_report(score, **parts)` to a file atomically."""
    write_text(path, render_report(score, **parts))


def inline_svg(name: str, svg: str) -> Markup:
    """An SVG file as an element of a page: no prologue, ids of its own, ink and paper in the page's colours.

    Args:
        name: Figure name; becomes the prefix of every id, so that two figures on a page cannot mix up parts.
        svg: The file's text, drawn in the colours of `humanlike.reports.figures`.
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    prefix = re.sub(r"[^A-Za-z0-9_-]", "-", name)
    body = re.sub(r'(\bid="|xlink:href="#|href="#|url\(#)', rf"\1{prefix}-", body)
    for colour, variable in _COLOURS.items():
        body = body.replace(colour, f"var({variable})")
    label = jinja2.filters.escape(_heading(name))
    body = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", body, count=1)
    return Markup(body.replace("<svg", f'<svg role="img" aria-label="{label}"', 1))


@cache
def page_template(name: str) -> jinja2.Template:
    """A page of `reports/templates`, with automatic escaping; a variable that is not given is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("humanlike.reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": wording.number, "condition": wording.condition_label}
    environment.globals |= {"interval": wording.interval}
    return environment.get_template(name)


def _cards(score: Score) -> list[tuple[ScoreRow, Mapping[str, float] | None]]:
    rows = [r for r in wording.score_rows(score) if not r.name.startswith("delta_")]
    return [(row, _scale(row)) for row in rows if not wording.is_missing(row.model.value)]


def _scale(row: ScoreRow) -> Mapping[str, float] | None:
    """Positions in percent on a card's small axis: from 0 (or below) to 1 or beyond, for an open score."""
    other = row.people.value if row.people else row.model.ceiling
    known = {"value": row.model.value, "low": row.model.ci_low, "high": row.model.ci_high, "other": other}
    finite = {k: float(v) for k, v in known.items() if v is not None and math.isfinite(v)}
    low, high = min(0.0, *finite.values()), max(0.0, *finite.values())
    high = 1.0 if high <= 1.0 and row.digits == 3 else high * 1.1  # squared errors are small: no dot in the corner
    width = (high - low) or 1.0
    return {k: round(100 * (v - low) / width, 2) for k, v in finite.items()} | {"zero": -100 * low / width}


def _heading(name: str) -> str:
    return figure_title(name) or sea_title(name) or generation_title(name) or wording.title(name)


def _caption(name: str, people: str) -> str:
    own = figure_caption(name, people) or sea_caption(name) or generation_caption(name)
    return own or _FIGURE_WORDS.get(name, "").format(people=people)


def _gallery(examples: Sequence[Example]) -> list[list[Example]]:
    rows: dict[str, list[Example]] = {}
    for example in examples:
        rows.setdefault(example.image_id, []).append(example)
    return list(rows.values())


def _cell_table(cells: pd.DataFrame, people: str) -> tuple[list[tuple[str, bool]], list[list[tuple[str, str]]]]:
    """Heads (text, numeric?) and rows of (text, sort key) of the per-cell table; empty columns are left out."""
    columns = [c for c in cells.columns if c != "cell" and cells[c].notna().any()]
    heads = [
        (wording.short_title(str(c)).replace(", people", f", {people}"), pd.api.types.is_numeric_dtype(cells[c]))
        for c in columns
    ]
    entries = [column_entries(cells[c].head(MAX_CELL_ROWS)) for c in columns]
    return heads, [list(row) for row in zip(*entries, strict=True)]


def column_entries(column: pd.Series) -> list[tuple[str, str]]:
    """(text, sort key) of every entry; whole numbers beyond 0 and 1 (counts, conditions) have no decimals."""
    values = [None if wording.is_missing(v) else v for v in column.tolist()]
    known = [v for v in values if v is not None]
    if not pd.api.types.is_numeric_dtype(column):
        return [(wording.MISSING, "") if v is None else (str(v), str(v)) for v in values]
    whole = all(float(v).is_integer() for v in known) and (
        pd.api.types.is_integer_dtype(column) or any(v > 1 for v in known)
    )
    return [
        (wording.MISSING, "") if v is None else (f"{v:.0f}" if whole else wording.number(float(v)), repr(float(v)))
        for v in values
    ]


def _record(score: Score) -> list[tuple[str, list[tuple[str, str]]]]:
    run = {"started": score.started, "seconds": f"{score.seconds:.1f}", "digest": score.digest}
    groups = {"Run": run, "Hashes": score.hashes, "Versions": score.versions, "Seeds": score.seeds}
    return [(name, [(str(k), str(v)) for k, v in group.items()]) for name, group in groups.items() if group]


def leaves(value: Any, path: str = "") -> list[tuple[str, str]]:
    """A nested JSON value as (dotted name, text) lines; long lists are cut, with their length said."""
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in leaves(v, f"{path}.{k}" if path else str(k))]
    if isinstance(value, list):
        shown = ", ".join(map(_leaf_text, value[:8]))
        return [(path, f"{shown}, … ({len(value)} in all)" if len(value) > 8 else shown or "none")]
    return [(path, _leaf_text(value))]


def _leaf_text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−") if not value.is_integer() or abs(value) >= 1e6 else f"{value:g}"
    return wording.MISSING if value is None else str(value)
