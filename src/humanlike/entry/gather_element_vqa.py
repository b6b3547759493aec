"""`humanlike gather` for element VQA: judges on the same sketches → one table with rank groups."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.gather_sea import named_scores
from humanlike.entry.gathered_folder import FoundRuns, scores_record, write_gathered

if TYPE_CHECKING:
    import pandas as pd

SCHEMA, RECORD, MARKDOWN = "humanlike.element_vqa_gathering/1", "gather.json", "tables.md"


def gather_element_vqa(found: FoundRuns, folder: Path) -> list[str]:
    """Put the judges side by side and write the folder.

    Args:
        found: Finished runs.
        folder: Where to write; `gather.json` is written last.

    Returns:
        What is said on the console.

    Raises:
        ValueError: When runs are of several versions of the benchmark, or cannot be compared.
        FileNotFoundError: When a run lacks a table.
    """
    from humanlike.benchmarks.element_vqa_comparison import judge_ranks
    from humanlike.files import write_text
    from humanlike.reports.element_vqa_gathered import (
        gathered_markdown,
        gathered_tables,
        gathered_warnings,
        render_gathered,
    )

    scores = named_scores(found)
    tables = gathered_tables(scores, judge_ranks(scores))
    record = scores_record(SCHEMA, found, scores, tables, "judges", gathered_warnings(scores))
    (folder / RECORD).unlink(missing_ok=True)  # while it is there, all that is beside it is its own
    write_text(folder / MARKDOWN, gathered_markdown(record, tables))
    write_gathered(folder, RECORD, record, tables, {}, render_gathered)
    return _lines(record, tables)


def _lines(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> list[str]:
    from humanlike.reports.judge_printed import with_interval

    ranks = tables["ranks"][tables["ranks"]["score"] == "f1"].set_index("run")
    rows = tables["scores"][tables["scores"]["score"] == "f1"].sort_values("value", ascending=False)
    said = [
        f"{row['run']}: F1 {with_interval(row['value'], row['ci_low'], row['ci_high'])}, group "
        f"{ranks.loc[row['run'], 'letters']}"
        for row in rows.to_dict("records")
    ]
    return [*said, *record["warnings"]]
