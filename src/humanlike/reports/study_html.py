"""`report.html` of a study: one self-contained page with every figure and table, without any external resource."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from humanlike.files import json_ready, write_text
from humanlike.reports import wording
from humanlike.reports.config_record import config_text
from humanlike.reports.html import inline_svg, leaves, page_template
from humanlike.reports.study_gallery import GalleryRow
from humanlike.reports.study_observers import FAMILIES, PEOPLE, Observers
from humanlike.reports.study_tables import TableView, discrepancy_views, table_view
from humanlike.reports.study_wording import (
    CAPTIONS,
    SECTIONS,
    UNLISTED,
    figure_title,
    section_of,
    study_flag,
    table_place,
    table_title,
    words,
)
from humanlike.reports.tables import counts_text, protocol_line

_SAID = (
    "schema", "benchmark", "benchmark_version", "dataset", "source", "simulated_people", "protocol", "models", "tables",
    "models_failed", "counts", "flags", "missing", "hashes", "versions", "seeds", "digest", "config",
    "bibtex",
)  # fmt: skip
"""Fields of the record that have a place of their own on the page."""


@dataclass(frozen=True)
class Part:
    """A section of the page with what stands in it.

    Attributes:
        key: Anchor on the page.
        heading: The section's heading with people named as they are.
        lead: Its lead, likewise.
        figures: (name, title, svg).
        tables: Tables.
        missing: (title, why) of what should stand here and could not be made.
    """

    key: str
    heading: str
    lead: str
    figures: list[tuple[str, str, Markup]] = field(default_factory=list)
    tables: list[TableView] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show, not even a reason."""
        return not (self.figures or self.tables or self.missing)


@dataclass(frozen=True)
class Best:
    """The model most like people on one metric, for the head of the page."""

    title: str
    model: str
    value: float
    interval: str
    people: float | None


def render_study(
    record: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, str],
    *,
    simulated: Collection[str] = (),
    gallery: Sequence[GalleryRow] = (),
    bibtex: str = "",
) -> str:
    """The report of a study as HTML text.

    Args:
        record: What study.json holds: `benchmark, benchmark_version, dataset, source, simulated_people, protocol` (with
            `preset`, `overridden`), `counts, flags, missing` (table → why it is missing), `models_failed` (model → why
            it is not in the study), `hashes, versions, seeds, digest, config` (secrets are masked); any of them may be
            absent, and further fields are shown as they are.
        tables: Name → table, as `humanlike.reports.study_figures` reads them.
        figures: Name → SVG, from `study_figures`.
        simulated: Observers that are simulated, beside those that the record and the table of models mark.
        gallery: Sketches of people beside those of a machine.
        bibtex: How to cite the benchmark.

    Returns:
        A page that needs nothing outside itself.
    """
    observers = Observers.of(tables.get("models"), {*simulated, *([PEOPLE] if record.get("simulated_people") else [])})
    protocol, missing = dict(record.get("protocol") or {}), dict(record.get("missing") or {})
    further = {k: v for k, v in record.items() if k not in _SAID}
    return page_template("study.html.j2").render(
        record=record,
        observers=observers,
        simulated=sorted(observers.label(name) for name in observers.simulated if name != PEOPLE),
        people_simulated=PEOPLE in observers.simulated,
        flags=[
            study_flag(flag) for flag in map(str, record.get("flags") or ()) if not _said_elsewhere(flag, observers)
        ],
        failed=[(str(name), str(why)) for name, why in (record.get("models_failed") or {}).items()],
        best=_best(tables.get("alignment"), observers),
        parts=_parts(record, tables, figures, observers),
        discrepancy=_discrepancy(tables.get("discrepancy"), observers),
        missing=missing,
        no_discrepancy=missing.get("discrepancy", "it was not computed"),
        source=record.get("source") or "",
        gallery=gallery,
        files=[(n, wording.count_text(len(t))) for n, t in tables.items()],
        counts=counts_text({k: v for k, v in (record.get("counts") or {}).items() if isinstance(v, int)}),
        protocol={k: v for k, v in protocol.items() if k not in ("preset", "overridden")},
        overridden=set(protocol.get("overridden", ())),
        protocol_line=protocol_line(protocol),
        groups=[
            (k.capitalize(), leaves(json_ready(record[k]))) for k in ("hashes", "versions", "seeds") if record.get(k)
        ],
        details=[(wording.title(str(k)), leaves(v)) for k, v in json_ready(further).items()],
        config=config_text(record["config"]) if record.get("config") else "",
        bibtex=bibtex,
    )


def write_study_report(path: str | Path, *args: Any, **parts: Any) -> None:
    """Write `render_study(…)` to a file atomically."""
    write_text(path, render_study(*args, **parts))


def study_svg(name: str, heading: str, svg: str) -> Markup:
    """A figure as an element of the page, in colours that follow the page's light or dark side."""
    body = str(inline_svg(name, svg))
    for family in FAMILIES:
        body = body.replace(family.colour, f"var({family.variable})")
    label = Markup.escape(heading)
    # A function, because a name may hold what reads as a reference to a group.
    return Markup(re.sub(r'aria-label="[^"]*"', lambda _: f'aria-label="{label}"', body, count=1))


def _said_elsewhere(flag: str, observers: Observers) -> bool:
    """Whether the page's first sentences say a flag already: that people, or a named model, are simulated."""
    name, _, about = flag.partition(":")
    return flag == wording.SIMULATED or (name == "simulated_model" and about in observers.simulated)


def _parts(
    record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame], figures: Mapping[str, str], observers: Observers
) -> list[Part]:
    parts = {s.key: Part(s.key, words(s.heading, observers), words(s.lead, observers)) for s in SECTIONS}
    for name, svg in figures.items():
        heading = figure_title(name, observers)
        parts[section_of(name).key].figures.append((name, heading, study_svg(name, heading, svg)))
    for name, table in sorted(tables.items(), key=lambda entry: table_place(entry[0])):
        if name not in UNLISTED and len(table):
            caption = words(CAPTIONS.get(name, ""), observers)
            view = table_view(name, table_title(name, observers), table, observers, caption)
            parts[section_of(name).key].tables.append(view)
    for name, why in (record.get("missing") or {}).items():
        if name != "discrepancy":
            parts[section_of(name).key].missing.append((table_title(name, observers), str(why)))
    return [part for part in parts.values() if not part.is_empty]


def _discrepancy(table: pd.DataFrame | None, observers: Observers) -> list[TableView]:
    return [] if table is None or table.empty else discrepancy_views(table, observers)


def _best(alignment: pd.DataFrame | None, observers: Observers) -> list[Best]:
    if alignment is None or alignment.empty:
        return []
    best = []
    for metric in dict.fromkeys(alignment["metric"].astype(str)):
        rows = alignment[(alignment["metric"] == metric) & alignment["estimate"].notna()]
        models, people = rows[rows["observer"] != PEOPLE], rows[rows["observer"] == PEOPLE]
        if models.empty:
            continue
        first = models.sort_values("estimate", ascending=False).iloc[0]
        low, high = (float(first.get(end, np.nan)) for end in ("ci_low", "ci_high"))
        best.append(
            Best(
                title=wording.title(metric),
                model=observers.label(str(first["observer"])),
                value=float(first["estimate"]),
                interval=wording.interval(low, high),
                people=None if people.empty else float(people["estimate"].iloc[0]),
            )
        )
    return best
