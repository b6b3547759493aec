"""`report.html` of a report card: one self-contained page whose figures are drawn from one table of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from markupsafe import Markup

from humanlike.files import json_ready
from humanlike.reports.card.card import Card
from humanlike.reports.card.exports import digits_of, group_order, group_sentences, rank_text, with_interval
from humanlike.reports.card.groups import Group
from humanlike.reports.card.series import PEOPLE
from humanlike.reports.card.tables import card_tables
from humanlike.reports.card.values import CardValue, lower_is_better
from humanlike.reports.html import page_template
from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import Cell, TableView, discrepancy_views, table_view
from humanlike.reports.wording import MEANINGS, MISSING, number, short_title, title

MOST_GROUPS = 6
"""Groups that have columns in the table of all models."""
MOST_SWITCH_ROWS = 400


@dataclass(frozen=True)
class Head:
    """Head of a column.

    Attributes:
        text: What is read.
        numeric: Whether it is sorted as numbers.
        below: A second, quieter line.
    """

    text: str
    numeric: bool = True
    below: str = ""


@dataclass(frozen=True)
class GroupView:
    """A group as the page shows it.

    Attributes:
        group: The group.
        heads: Columns of its table.
        rows: (label, cells) of its models, best first.
        sentences: What to know before reading it.
        flags: (sentence, labels) of its flags.
        scores: (name, title) of the scores it can be ordered by.
        figures: Kinds of figures it has: `scores`, `conditions`, `layers`.
    """

    group: Group
    heads: Sequence[Head]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    sentences: Sequence[str]
    flags: Sequence[tuple[str, Sequence[str]]]
    scores: Sequence[tuple[str, str]]
    figures: Sequence[tuple[str, str]] = field(default_factory=tuple)


def render_card(card: Card, *, written: str = "", versions: Mapping[str, str] | None = None) -> str:
    """The report card as HTML text.

    Args:
        card: What it says.
        written: When it was made.
        versions: Of the programs that made it.

    Returns:
        A page that needs nothing outside itself.
    """
    views = [_view(card, group) for group in card.groups]
    observers = Observers()
    tables = card_tables(card)
    return page_template("card.html.j2").render(
        card=card,
        views=views,
        overview=_overview(card),
        runs=_runs_view(tables["runs"]),
        switches=_switches_view(card.switches),
        discrepancy=[(n, discrepancy_views(t, observers)) for n, t in card.discrepancy.items() if len(t)],
        files=[(name, len(table)) for name, table in tables.items()],
        pictures={key: _shown(found) for key, found in card.pictures.items() if found},
        data=_script(_data(card)),
        bibtex=_bibtex(card),
        written=written,
        versions=versions or {},
        meanings={s: MEANINGS.get(s, "") for v in views for s, _ in v.scores},
    )


def _view(card: Card, group: Group) -> GroupView:
    scores = card.scores[group.key]
    order = group_order(card, group, scores[0]) if scores else [e.label for e in group.entries]
    rows = [(label, list(_cells(card, group, label, scores))) for label in order]
    figures = [("scores", "Every model")] if scores else []
    if (card.conditions["group"] == group.key).any():
        figures.append(("conditions", "By condition"))
    if (card.layers["group"] == group.key).any():
        figures.append(("layers", "By layer"))
    heads = [Head("Model", False)]
    if scores:
        better = "less is better" if lower_is_better(scores[0]) else "more is better"
        heads += [Head("Rank", True, "range"), Head("Group", False, "same letter")]
        heads += [
            Head(short_title(scores[0]), True, f"95% interval; {better}"),
            Head("Share of ceiling", True, "95% interval"),
        ]
        heads += [Head(short_title(name)) for name in scores[1:]]
    return GroupView(
        group, heads, rows, [t for t in (group.apart, *group_sentences(card, group), *group.notes) if t],
        _flags(card, group), [(s, title(s)) for s in scores], figures,
    )  # fmt: skip


def _cells(card: Card, group: Group, label: str, scores: Sequence[str]) -> Iterator[Cell]:
    if not scores:
        return
    values, first = card.values[group.key][label], scores[0]
    own, ranking = values.get(first, CardValue(None)), card.rankings[group.key].get(first)
    rank = None if ranking is None else ranking.rank.get(label)
    high = None if ranking is None else ranking.rank_high.get(label)
    letters = "" if ranking is None else ranking.letters.get(label, "")
    yield Cell(rank_text(rank, high), "" if not rank else repr(rank))
    yield Cell(letters or MISSING, letters)
    yield Cell(with_interval(own.value, own.low, own.high, digits_of(first)), _key(own.value))
    yield fraction_cell(own)
    for name in scores[1:]:
        value = values[name].value if name in values else None
        yield Cell(number(value, digits_of(name)), _key(value))


def fraction_cell(value: CardValue) -> Cell:
    """A share of the ceiling, with the length of its bar as the depth; why there is none where there is none."""
    if value.fraction is None:
        return Cell(MISSING, "", "why")
    text = with_interval(value.fraction, value.fraction_low, value.fraction_high, 2)
    return Cell(text, _key(value.fraction), "bar", round(min(max(value.fraction, 0.0), 1.0), 3))


def _key(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _overview(card: Card) -> tuple[list[Head], list[tuple[str, list[Cell]]], int]:
    """Heads, rows and the number of groups left out of the table of all models."""
    shown = [g for g in card.groups if card.scores[g.key]]
    shown = sorted(sorted(shown, key=lambda g: -len(g.entries))[:MOST_GROUPS], key=card.groups.index)
    heads = [Head("Model", False)]
    for group in shown:
        score = card.scores[group.key][0]
        heads.append(Head(short_title(score), True, f"{group.name} ({group.key})"))
        if _has_fraction(card, group):
            heads.append(Head("Share of ceiling", True, group.key))
        heads.append(Head("Rank", True, group.key))
    rows = [(label, [cell for group in shown for cell in _overview_cells(card, group, label)]) for label in card.models]
    return heads, rows, len(card.groups) - len(shown)


def _has_fraction(card: Card, group: Group) -> bool:
    score = card.scores[group.key][0]
    return any(v[score].fraction is not None for v in card.values[group.key].values() if score in v)


def _overview_cells(card: Card, group: Group, label: str) -> Iterator[Cell]:
    score = card.scores[group.key][0]
    own = card.values[group.key].get(label, {}).get(score, CardValue(None))
    ranking = card.rankings[group.key].get(score)
    yield Cell(number(own.value, digits_of(score)), _key(own.value))
    if _has_fraction(card, group):
        yield fraction_cell(own)
    rank = None if ranking is None else ranking.rank.get(label)
    high = None if ranking is None else ranking.rank_high.get(label)
    yield Cell(rank_text(rank, high), "" if not rank else repr(rank))


def _flags(card: Card, group: Group) -> list[tuple[str, list[str]]]:
    from humanlike.reports.wording import flag_sentence

    found: dict[str, list[str]] = {}
    for entry in group.entries:
        for flag in dict.fromkeys(flag for run in entry.runs for flag in run.result.flags):
            found.setdefault(flag_sentence(flag), []).append(entry.label)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def _runs_view(table: pd.DataFrame) -> tuple[list[Head], list[list[tuple[str, str, str]]]]:
    """Heads, and rows of (text, whole text, kind) of the record of every run."""
    hashes = [c for c in table.columns if str(c).startswith("hash_")]
    columns = ["model", "group", "layer", "readout", "seeds", "protocol", "version", "started", "seconds", "digest",
               *hashes, "versions", "folder"]  # fmt: skip
    heads = [Head(str(c).removeprefix("hash_").replace("_", " ") + (" hash" if c in hashes else ""), c == "seconds")
             for c in columns]  # fmt: skip
    rows = []
    for row in table[columns].to_dict("records"):
        cells = []
        for name, value in row.items():
            text = "" if value is None or value != value else f"{value:.1f}" if name == "seconds" else str(value)
            kind = "hash" if name in hashes or name == "digest" else "long" if name in ("folder", "versions") else ""
            short = (
                " ".join(w[:12] for w in text.split())
                if kind == "hash"
                else text.split(",")[1].strip()
                if name == "versions" and "," in text
                else text
            )
            cells.append((short or MISSING, text, kind))
        rows.append(cells)
    return heads, rows


def _switches_view(table: pd.DataFrame) -> TableView | None:
    if table.empty:
        return None
    largest = table.reindex(table["change"].abs().sort_values(ascending=False, kind="stable").index)
    caption = "The same model on the same data in two groups whose protocols differ; the greatest changes first."
    shown = largest.head(MOST_SWITCH_ROWS).drop(columns=["benchmark", "dataset"])
    view = table_view("switches", "Between the runs given", shown, Observers(), caption)
    return view if len(table) <= MOST_SWITCH_ROWS else TableView(
        view.name, view.title, view.heads, view.rows, view.caption, len(table) - MOST_SWITCH_ROWS
    )  # fmt: skip


def _shown(found: Sequence[Any]) -> list[dict[str, Any]]:
    out = []
    for picture in found:
        answer, count = picture.commonest
        out.append(
            {
                "picture": picture,
                "total": len(picture.answers),
                "answer": answer,
                "count": count,
                "single": picture.answers[0] if len(picture.answers) == 1 else None,
            }
        )
    return out


def _data(card: Card) -> dict[str, Any]:
    """What the page's figures and its choice of scores are made of."""
    return {"groups": [_group_data(card, group) for group in card.groups]}


def _group_data(card: Card, group: Group) -> dict[str, Any]:
    labels = [entry.label for entry in group.entries]
    scores = {}
    for name in card.scores[group.key]:
        ranking = card.rankings[group.key].get(name)
        rows = []
        for label in labels:
            v = card.values[group.key][label].get(name, CardValue(None))
            places = (
                (None, None, "")
                if ranking is None
                else (ranking.rank.get(label), ranking.rank_high.get(label), ranking.letters.get(label, ""))
            )
            rows.append([v.value, v.low, v.high, v.fraction, v.fraction_low, v.fraction_high, *places, v.reason])
        ceilings = [
            card.values[group.key][label][name].ceiling for label in labels if name in card.values[group.key][label]
        ]
        scores[name] = {
            "title": title(name), "short": short_title(name), "digits": digits_of(name), "lower": lower_is_better(name),
            "ceiling": next((c for c in ceilings if c is not None), None),
            "how": "" if ranking is None else ranking.how, "rows": rows,
        }  # fmt: skip
    details = group.entries[0].first.result.details
    return {
        "key": group.key, "name": group.name, "models": labels, "scores": scores,
        "unit": str(details.get("conditions_unit", "")), "people": "simulated people" if group.simulated else "people",
        "conditions": _lines(card.conditions, group, labels, ["condition", "value", "std_error"]),
        "layers": _lines(card.layers, group, labels, ["relative_depth", "value", "ci_low", "ci_high", "layer"]),
    }  # fmt: skip


def _lines(table: pd.DataFrame, group: Group, labels: Sequence[str], columns: list[str]) -> dict[str, Any]:
    """Metric → its title and a line of points for every model (by its number) and for people."""
    own = table[table["group"] == group.key]
    number_of = {label: i for i, label in enumerate(labels)}
    found: dict[str, Any] = {}
    for (metric, model), rows in own.groupby(["metric", "model"], sort=False):
        entry = found.setdefault(str(metric), {"title": title(str(metric)), "models": {}, "people": None})
        points = rows.sort_values(columns[0])[columns].to_numpy(object).tolist()
        if model in number_of:
            entry["models"][number_of[str(model)]] = points
        elif model == PEOPLE:
            entry["people"] = points
    return found


def _script(value: Any) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(json_ready(value), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _bibtex(card: Card) -> str:
    texts = [str(entry.first.result.details.get("bibtex", "")) for group in card.groups for entry in group.entries]
    return "\n".join(dict.fromkeys(text for text in texts if text))
