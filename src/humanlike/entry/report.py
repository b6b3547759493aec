"""`humanlike report RUN …`: runs of several benchmarks → one page, with tables for other programs beside it.

```
card.json         schema "humanlike.card/1": what is on the page, written last: its presence says that all is there
report.html       one self-contained file
report_card.md    a table a group      latex/*.tex      the same for papers
tables/*.parquet  tables/*.csv         every number, unrounded
```
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.gathered_folder import folder_to_write
from humanlike.entry.launch import LOSSES
from humanlike.entry.report_runs import CARD, Found, find_runs

if TYPE_CHECKING:
    from humanlike.reports.card.card import Card

SCHEMA = "humanlike.card/1"
MOST_NAMED = 20


def main(arguments: Sequence[str]) -> None:
    """Run the command: exit status 0, or 3 when a folder that was given is not on the page; errors pass through."""
    given = _parser().parse_args(arguments)
    folder = folder_to_write(given.output, "--output")
    found = find_runs(given.runs)
    for place, why in found.skipped[:MOST_NAMED]:
        print(f"skipped {place}: {why}", file=sys.stderr)
    if len(found.skipped) > MOST_NAMED:
        print(f"skipped {len(found.skipped) - MOST_NAMED} more; the page names them all", file=sys.stderr)
    card = write_card(folder, found)
    print("\n".join(_lines(card)))
    print(f"written to {folder / 'report.html'}")
    if found.skipped:
        sys.exit(LOSSES)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="humanlike report",
        description="Gather finished runs of any benchmarks into one report card: scores as shares of what people "
        "reach, rank groups of models that cannot be told apart, means by condition and layer, example sketches, "
        "flags, protocols and hashes. Only runs of one benchmark, version, data set and protocol are ranked together; "
        "several seeds of a model are summarised.",
        epilog="Exit status: 0 done, 1 failed, 2 wrong use, 3 done, but a folder could not be read and was skipped.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN",
                        help="a run, a study, or a folder of them (a sweep, benchmark=all); or a pattern")  # fmt: skip
    parser.add_argument("--output", default="outputs/report", help="folder to write (default: %(default)s)")
    return parser


def write_card(folder: Path, found: Found) -> Card:
    """Compute the card of what was found and write its folder, the record last.

    Args:
        folder: Where to write; it may be the folder that holds the runs.
        found: Runs and studies.

    Raises:
        ValueError: There is no run.
    """
    from humanlike.entry.pipeline import versions
    from humanlike.entry.study_folder import write_tables
    from humanlike.files import json_ready, sha256_value, write_json, write_text
    from humanlike.reports.card.card import build_card
    from humanlike.reports.card.exports import card_latex, card_markdown
    from humanlike.reports.card.page import render_card
    from humanlike.reports.card.tables import card_tables

    card = build_card(found.runs, found.discrepancy, found.skipped)
    made, written = versions(), datetime.now(UTC).isoformat(timespec="seconds")
    page = render_card(card, written=written, versions=made)
    (folder / CARD).unlink(missing_ok=True)
    tables = card_tables(card)
    write_tables(folder, tables)
    write_text(folder / "report_card.md", card_markdown(card))
    for old in (folder / "latex").glob("*.tex"):
        old.unlink()
    for key, text in card_latex(card).items():
        write_text(folder / "latex" / f"{key}.tex", text)
    write_text(folder / "report.html", page)
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "groups": {
            group.key: {"name": group.name, "facts": group.facts, "apart": group.apart} for group in card.groups
        },
        "models": card.models,
        "tables": {name: len(table) for name, table in tables.items()},
        "skipped": dict(card.skipped),
        "left_out": card.left_out,
        "digest": sha256_value(sorted(run.digest for g in card.groups for e in g.entries for run in e.runs)),
        "versions": made,
        "written": written,
    }
    write_json(folder / CARD, json_ready(record))
    return card


def _lines(card: Card) -> list[str]:
    """What is said on the console: each group with its best model and those that cannot be told apart from it."""
    from humanlike.reports.card.exports import digits_of, group_order
    from humanlike.reports.wording import number, short_title

    said = [f"{len(card.models)} model(s), {card.num_runs} run(s), {len(card.groups)} group(s) of comparable runs"]
    for group in card.groups:
        scores = card.scores[group.key]
        if not scores:
            said.append(f"{group.key} {group.name}: no score has a value")
            continue
        best = group_order(card, group, scores[0])[0]
        value = card.values[group.key][best][scores[0]]
        reached = f"{short_title(scores[0])} {number(value.value, digits_of(scores[0]))}"
        if value.fraction is not None:
            reached += f" ({value.fraction:.2f} of the ceiling)"
        ranking = card.rankings[group.key].get(scores[0])
        alike = 0 if ranking is None else sum(rank == 1 for rank in ranking.rank.values()) - 1
        count = len(group.entries)
        which = f"the best of {count} models is {best}" if count > 1 else f"{best} alone"
        others = f"; {alike} other{'s' * (alike > 1)} cannot be told apart from it" if alike > 0 else ""
        said.append(f"{group.key} {group.name}: {which}, with {reached}{others}")
        if group.apart:
            said.append(f"   {group.apart}")
    return said
