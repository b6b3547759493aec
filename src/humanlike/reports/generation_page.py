"""`before_after.html`: sketches before and after side by side, with what critic and judges say; nothing external.

Drawings stand on the page as SVG elements whose ink follows the page's colours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from humanlike.files import sha256_value, write_text
from humanlike.reports.figures import figure_svg
from humanlike.reports.generation_figures import CAPTIONS, FIGURE_TITLES, run_figures
from humanlike.reports.generation_printed import generation_tables
from humanlike.reports.html import inline_svg, page_template
from humanlike.reports.wording import flag_sentence, number
from humanlike.types import BenchmarkResult, Score

PAGE = "before_after.html"
A_CONCEPT = 3
"""Sketches of a concept that are shown."""
MOST_CONCEPTS = 48


class Shown(NamedTuple):
    """A sketch on the page: its set, drawing, and a line a network."""

    set: str
    svg: Markup
    lines: list[str]


def is_generation(score: Score) -> bool:
    """Whether a score holds drawings for this page."""
    return {"drawings", "readings", "networks"} <= set(score.result.tables)


def write_pages(folder: str | Path, score: Score) -> None:
    """Write `before_after.html` and `sketches/*.pruned.svg` of a run of generated sketches; else nothing."""
    if not is_generation(score):
        return
    write_text(Path(folder) / PAGE, render_page(score))
    pruned = score.result.tables.get("pruned")
    if pruned is None:
        return
    for name, svg in zip(file_names([str(i) for i in pruned["sketch_id"]]), pruned["svg_pruned"], strict=True):
        write_text(Path(folder) / "sketches" / f"{name}.pruned.svg", svg)


def file_names(ids: Sequence[str]) -> list[str]:
    """Names of files for sketches: what a file system may not take is a dash; alike ones get a digest of their id.

    Args:
        ids: Unique ids.

    Returns:
        A name an id, without suffix; no two are equal, even where upper and lower case count as one.

    Example:
        >>> file_names(["lion/01.svg", "owl 2"])
        ['lion-01', 'owl-2']
        >>> len(set(file_names(["a/b", "a-b"])))
        2
    """
    names = ["".join(c if c.isalnum() or c in "-_" else "-" for c in i.removesuffix(".svg")) for i in ids]
    alike = Counter(name.casefold() for name in names)
    return [
        name if alike[name.casefold()] == 1 else f"{name}-{sha256_value(own)[:10]}"
        for name, own in zip(names, ids, strict=True)
    ]


def write_comparison(folder: str | Path, result: BenchmarkResult, dataset: str) -> None:
    """The pages of a comparison that was no run of the command, such as at the end of a training.

    Args:
        folder: Where `before_after.html` and `sketches/*.pruned.svg` go.
        result: What `benchmarks.generation_evaluation.evaluated` gave.
        dataset: Name of the reference.
    """
    critic = str(result.details["generation"]["critic"])
    write_pages(folder, Score("generation", "1", dataset, critic, "", result, {}, {}, {}, "", 0.0, ""))


def render_page(score: Score) -> str:
    """The page as HTML text."""
    tables, details = score.result.tables, score.result.details["generation"]
    figures = {name: figure_svg(figure) for name, figure in run_figures(score).items()}
    return page_template("generation.html.j2").render(
        score=score,
        details=details,
        flags=[flag_sentence(flag) for flag in score.result.flags],
        headline=_headline(score),
        figures=[(n, FIGURE_TITLES[n], CAPTIONS[n], inline_svg(n, svg)) for n, svg in figures.items()],
        tables=generation_tables(score),
        gallery=_gallery(tables),
        credits=_credits(tables),
    )


def drawing_element(svg: str, label: str) -> Markup:
    """A drawing of this project's own writing as an element: no size of its own, ink in the page's colour."""
    body = svg[svg.index("<svg") :].replace('stroke="black"', 'stroke="currentColor"')
    start = body.index(">")
    box = body[body.index('viewBox="') : body.index('"', body.index('viewBox="') + 9) + 1]
    return Markup('<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" {}>').format(
        label, Markup(box)
    ) + Markup(body[start + 1 :])


def credit_element(svg: str, strokes: pd.DataFrame, label: str) -> Markup:
    """A drawing whose strokes are the darker the more P their absence costs; pruned ones are dashed."""
    cost = strokes.sort_values("stroke")["cost_recognition"].clip(lower=0).to_numpy()
    strength = cost / cost.max() if cost.max() > 0 else np.zeros(len(cost))
    kept = strokes.sort_values("stroke")["kept"].to_numpy()
    lines, place = svg[svg.index("<svg") :].splitlines(), 0
    for i, line in enumerate(lines):
        if line.startswith("<path "):
            share = f"{35 + 65 * strength[place]:.0f}%"
            look = f"stroke:color-mix(in srgb, var(--people) {share}, var(--line))" + (
                "" if kept[place] else ";stroke-dasharray:2 2"
            )
            lines[i] = line.replace("<path ", f'<path style="{look}" ', 1)
            place += 1
    return drawing_element("\n".join(lines), label)


def _headline(score: Score) -> list[tuple[str, str, str, str]]:
    """(title, before, after, gain with interval) of every network's measures; after alone without a comparison."""
    comparison = score.result.tables.get("comparison")
    if comparison is None:
        return []
    words = {"sea": "SEA", "recognition": "P", "visual_ratio": "v", "accuracy": "accuracy"}
    return [
        (
            f"{words[row['measure']]}, {row['network']} ({row['role']})",
            number(row["before"]),
            number(row["after"]),
            f"{row['gain']:+.3f} [{row['gain_low']:+.3f}, {row['gain_high']:+.3f}]".replace("-", "−"),
        )
        for row in comparison.to_dict("records")
    ]


def _gallery(tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, list[list[Shown]]]]:
    """Concept → rows of sketches, one a set; the first few of every set by name."""
    drawings, readings = tables["drawings"], tables["readings"]
    means = readings.groupby(["set", "sketch_id", "network", "role"], sort=False)[
        ["recognition", "visual_ratio", "sea"]
    ].mean()
    lines: dict[tuple[str, str], list[str]] = {}
    for row in means.reset_index().to_dict("records"):
        values = f"P {row['recognition']:.2f}, v {row['visual_ratio']:.2f}, SEA {row['sea']:.2f}".replace("-", "−")
        lines.setdefault((row["set"], row["sketch_id"]), []).append(f"{row['network']}: {values}")
    sets = list(dict.fromkeys(drawings["set"]))
    last = [s for s in sets if s != "reference"][-1:] or sets
    concepts = sorted(drawings[drawings["set"] == last[0]]["concept"].unique())[:MOST_CONCEPTS]
    gallery = []
    for concept in concepts:
        rows = []
        for name in sets:
            own = drawings[(drawings["set"] == name) & (drawings["concept"] == concept)].head(A_CONCEPT)
            rows.append(
                [
                    Shown(name, drawing_element(r["svg"], f"{concept}, {name}"), lines[name, r["sketch_id"]])
                    for r in own.to_dict("records")
                ]
            )
        gallery.append((concept, [row for row in rows if row]))
    return gallery


def _credits(tables: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    """Credit maps: the whole sketch with its strokes by worth, and the pruned one."""
    if "pruned" not in tables:
        return []
    strokes = tables["credit"]
    return [
        {
            **{str(k): v for k, v in row.items() if not str(k).startswith("svg")},
            "map": credit_element(row["svg"], strokes[strokes["sketch_id"] == row["sketch_id"]], "credit map"),
            "pruned": drawing_element(row["svg_pruned"], f"{row['concept']}, pruned"),
        }
        for row in tables["pruned"].to_dict("records")
    ]
