"""Console tables of a run (rich renderables) and the same as Markdown; pure functions, nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from humanlike.reports.wording import (
    MISSING,
    condition_label,
    condition_metrics,
    count_text,
    flag_sentence,
    interval,
    number,
    people_word,
    run_notes,
    score_rows,
    short_title,
    with_error,
)
from humanlike.types import Score

_FRAME = 3
"""What a column takes beside its text: a line and a space on both sides."""


def score_line(score: Score) -> str:
    """A run in one line: scores that people have as well or that have a ceiling, else those by condition, else all."""
    known = [row for row in score_rows(score) if row.model.value is not None]
    beside = [row for row in known if row.people is not None or row.model.ceiling is not None]
    by_condition = [row for row in known if row.name in condition_metrics(score.result.conditions)]
    chosen = beside or by_condition or known
    values = [f"{short_title(row.name)} {number(row.model.value, row.digits)}" for row in chosen]
    flags = [f"{len(score.result.flags)} flag(s)"] if score.result.flags else []
    return "  " + "; ".join([", ".join(values), *flags, f"{score.seconds:.1f} s"])


def headline_cells(score: Score) -> tuple[list[str], list[list[str]]]:
    """Column heads and texts of the headline table: score, value, 95% interval, people, ceiling, n, unit."""
    people = people_word(score)
    heads = ["score", "value", "95% interval", people, "ceiling", "n", "unit"]
    rows = [
        [
            row.title,
            number(row.model.value, row.digits),
            interval(row.model.ci_low, row.model.ci_high, row.digits),
            number(row.people.value, row.digits) if row.people else MISSING,
            number(row.model.ceiling, row.digits),
            MISSING if row.model.n is None else count_text(row.model.n),
            row.unit,
        ]
        for row in score_rows(score)
    ]
    return heads, rows


def condition_cells(score: Score) -> tuple[list[str], list[list[str]]]:
    """Column heads and texts of the per-condition table: a row for the model, one for people below, mean ± s.e.m."""
    conditions, people = score.result.conditions, people_word(score)
    unit = str(score.result.details.get("conditions_unit", ""))
    metrics = [m for m in condition_metrics(conditions) if conditions[m].notna().any()]
    judged = [m for m in metrics if f"{m}_people" in conditions and conditions[f"{m}_people"].notna().any()]
    rows = []
    for row in conditions.to_dict(orient="records"):
        start = [condition_label(float(row["condition"]), unit)]
        rows.append([*start, "model", *(with_error(row[m], row.get(f"{m}_sem")) for m in metrics)])
        if judged:
            texts = (with_error(row.get(f"{m}_people"), row.get(f"{m}_people_sem")) for m in metrics)
            rows.append([*start, people, *texts])
    return ["condition", "by", *(short_title(m) for m in metrics)], rows


def counts_line(score: Score) -> str:
    """The counts of a run in one line, zero losses included."""
    return counts_text(score.result.counts)


def counts_text(counts: Mapping[str, int]) -> str:
    """Counts in one line.

    Example:
        >>> counts_text({"concepts": 48, "items_failed": 0})
        'concepts 48 · items failed 0'
    """
    return " · ".join(f"{name.replace('_', ' ')} {count_text(n)}" for name, n in counts.items())


def protocol_line(protocol: Mapping[str, Any]) -> str:
    """The protocol's preset, and the switches that were set by hand.

    Example:
        >>> protocol_line({"preset": "corrected", "cv": "stratified", "overridden": ["cv"]})
        'protocol corrected, with cv=stratified'
    """
    if not protocol:
        return "protocol: none"
    changed = ", ".join(f"{name}={protocol.get(name)}" for name in protocol.get("overridden", ()))
    return f"protocol {protocol.get('preset', 'unnamed')}" + (f", with {changed}" if changed else "")


def headline_table(score: Score) -> Table:
    """The scores of a run for a narrow console: short names, and only rows and columns that say something."""
    heads, rows = headline_cells(score)
    for row, entry in zip(rows, score_rows(score), strict=True):
        row[0] = short_title(entry.name)
    rows = [row for row in rows if any(text != MISSING for text in row[1:5])]
    shown = [i for i, head in enumerate(heads) if head in {"score", "value"} or any(row[i] != MISSING for row in rows)]
    heads, rows = [heads[i] for i in shown], [[row[i] for i in shown] for row in rows]
    name = f"{score.benchmark} v{score.benchmark_version} · {score.dataset} · {score.backbone} ({score.layer})"
    counts = {k: n for k, n in score.result.counts.items() if n or k == "items_failed"}
    return _rich_table(name, heads, rows, f"{protocol_line(score.result.protocol)} · {counts_text(counts)}")


@dataclass(frozen=True)
class ConditionTable:
    """Means ± standard errors by condition, in as many tables as the console's width asks for.

    Attributes:
        heads: `condition`, who the numbers are by where people are beside the model, and the metrics.
        rows: Texts.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the tables; no entry is broken unless the console is too narrow for one metric."""
        start = 2 if "by" in self.heads else 1
        for chosen in self._chunks(start, options.max_width - 1):
            shown = [*range(start), *chosen]
            title = "By condition, mean ± s.e.m." if chosen[0] == start else "By condition, further"
            rows = [[row[i] for i in shown] for row in self.rows]
            yield _rich_table(title, [self.heads[i] for i in shown], rows)

    def _chunks(self, start: int, width: int) -> Iterator[list[int]]:
        """Column numbers of the metrics, as many together as fit into the width."""
        need = [max(len(row[i]) for row in [self.heads, *self.rows]) + _FRAME for i in range(len(self.heads))]
        chosen: list[int] = []
        for i in range(start, len(need)):
            if chosen and sum(need[:start]) + sum(need[k] for k in [*chosen, i]) > width:
                yield chosen
                chosen = []
            chosen.append(i)
        if chosen:  # no metric has a value at any condition
            yield chosen


def condition_table(score: Score) -> ConditionTable:
    """Means ± standard errors by condition, model beside people."""
    heads, rows = condition_cells(score)
    if all(row[1] == "model" for row in rows):
        heads, rows = [heads[0], *heads[2:]], [[row[0], *row[2:]] for row in rows]
    return ConditionTable(heads, rows)


def flags_panel(score: Score) -> Panel | None:
    """What must be known before the scores are believed; None when there is no flag."""
    if not score.result.flags:
        return None
    lines = [Text(f"• {flag_sentence(flag)}") for flag in score.result.flags]
    return Panel(Group(*lines), title="note", title_align="left", border_style="yellow", expand=False)


def score_summary(score: Score) -> RenderableType:
    """Everything the console shows at the end of a run."""
    parts: list[RenderableType] = [headline_table(score)]
    if condition_metrics(score.result.conditions):
        parts.append(condition_table(score))
    parts += [Text(note) for note in run_notes(score)]
    panel = flags_panel(score)
    if panel is not None:
        parts.append(panel)
    parts.append(Text(f"digest {score.digest[:16]} · {score.seconds:.1f} s", style="dim"))
    return Group(*parts)


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table in GitHub's Markdown: first column to the left, the others to the right.

    Example:
        >>> print(markdown_table(["a", "b"], [["x|y", "1"]]))
        | a | b |
        | :--- | ---: |
        | x\|y | 1 |
    """
    rules = [":---"] + ["---:"] * (len(heads) - 1)
    lines = [list(map(_markdown_text, heads)), rules, *(list(map(_markdown_text, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def score_markdown(score: Score) -> str:
    """The run's tables, flags and record as a Markdown text."""
    heading = f"{score.benchmark} v{score.benchmark_version}: {score.backbone} ({score.layer}) on {score.dataset}"
    parts = [f"## {_markdown_text(heading)}", markdown_table(*headline_cells(score))]
    if condition_metrics(score.result.conditions):
        parts.append(markdown_table(*condition_cells(score)))
    parts += [_markdown_text(note) for note in run_notes(score)]
    parts += [f"> {_markdown_text(flag_sentence(flag))}" for flag in score.result.flags]
    parts.append(
        f"{_markdown_text(protocol_line(score.result.protocol))}. {counts_line(score)}. Digest `{score.digest}`."
    )
    return "\n\n".join(parts) + "\n"


def _rich_table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None = None) -> Table:
    table = Table(
        title=Text(name),
        caption=None if caption is None else Text(caption),
        title_justify="left",
        caption_justify="left",
    )
    texts = {"condition", "by", "unit", heads[0]}
    for head in heads:
        table.add_column(Text(head), justify="left" if head in texts else "right")
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    return table


def _markdown_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
