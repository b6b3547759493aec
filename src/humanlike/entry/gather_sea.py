"""`humanlike gather` for SEA: runs on several data sets, with several networks and judges → one table and one page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.gathered_folder import FoundRuns, scores_record, write_gathered

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.types import Score

SCHEMA, RECORD, MARKDOWN = "humanlike.sea_gathering/1", "gather.json", "tables.md"
_LONGEST = 24
"""Characters of a folder's name that still fit beside a figure."""


def gather_sea(found: FoundRuns, folder: Path, responses: str | None = None) -> list[str]:
    """Put the runs side by side and write the folder.

    Args:
        found: Finished runs.
        folder: Where to write; `gather.json` is written last.
        responses: People's orders or ratings of the sketches (see `humanlike agreement`); None: none.

    Returns:
        What is said on the console.

    Raises:
        ValueError: When runs are of several versions of the benchmark.
        FileNotFoundError: When a run lacks a table.
    """
    from humanlike.files import write_text
    from humanlike.reports.sea_gathered import (
        gathered_figures,
        gathered_markdown,
        gathered_tables,
        gathered_warnings,
        render_gathered,
    )

    scores = named_scores(found)
    tables = gathered_tables(scores)
    if responses is not None:
        tables["people"] = people_table(scores, responses)
    record = scores_record(SCHEMA, found, scores, tables, "runs", gathered_warnings(scores))
    (folder / RECORD).unlink(missing_ok=True)  # while it is there, all that is beside it is its own
    write_text(folder / MARKDOWN, gathered_markdown(record, tables))
    write_gathered(folder, RECORD, record, tables, gathered_figures(scores), render_gathered)
    return _lines(record, tables)


def people_table(scores: Mapping[str, Score], responses: str) -> pd.DataFrame:
    """How far people's orders or ratings agree with SEA of every run that has all sketches which they judged.

    Args:
        scores: Name of a run → the run.
        responses: File or folder of answers.

    Returns:
        `run, measure, value, ci_low, ci_high, chance, n`.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Answers are of sketches that no run has, or contradict each other.
    """
    import pandas as pd

    from humanlike.benchmarks.human_agreement import human_agreement, read_survey_responses

    columns = {name: s.result.items.set_index("sketch_id")["sea"] for name, s in scores.items()}
    answers = read_survey_responses([responses], sketch_ids=set().union(*(own.index for own in columns.values())))
    judged = set(answers.table["sketch_id"])
    # A run on other sketches may have some ids in common with those that people saw.
    whole = {name: own for name, own in columns.items() if judged <= set(own.index)}
    if not whole:
        raise ValueError(
            f"{responses}: none of the {len(columns)} runs has all {len(judged)} sketches that people judged; gather "
            "the runs on the data set that they saw"
        )
    found = human_agreement(answers, pd.DataFrame(whole))
    kept = [c for c in ("score", "measure", "value", "ci_low", "ci_high", "chance", "n") if c in found.agreement]
    return found.agreement[kept].rename(columns={"score": "run"})


def named_scores(found: FoundRuns) -> dict[str, Score]:
    """Name of a run → the run; see `run_names`.

    Args:
        found: Finished runs.

    Raises:
        ValueError: They are of several versions of the benchmark.
        FileNotFoundError: A run lacks a table.
    """
    from humanlike.reports.run_folder import read_run

    check_version(found)
    runs = [read_run(path) for path in found]
    return dict(zip(run_names(runs), runs, strict=True))


def check_version(found: FoundRuns) -> None:
    """Refuse runs of several versions of the benchmark.

    Args:
        found: Finished runs.

    Raises:
        ValueError: There are several.
    """
    versions = {str(record["benchmark_version"]): folder for folder, record in found.items()}
    if len(versions) > 1:
        (one, a), (two, b) = list(versions.items())[:2]
        raise ValueError(
            f"{a} is of version {one} of the benchmark and {b} of version {two}, whose scores cannot stand in one "
            "table; run the older one again"
        )


def run_names(runs: Sequence[Score]) -> list[str]:
    """What to call each run: its data set and what tells it from others, and its folder where nothing does.

    Args:
        runs: The runs.
    """
    facts = [_facts(score) for score in runs]
    names = ["" for _ in runs]
    for key in facts[0]:  # the most telling first; what tells no further runs apart is left out
        longer = [f"{name} · {row[key]}".removeprefix(" · ") for name, row in zip(names, facts, strict=True)]
        names = longer if len(set(longer)) > len(set(names)) else names
    names = [name or row["dataset"] for name, row in zip(names, facts, strict=True)]
    repeated = {name for name in names if names.count(name) > 1}
    return [
        f"{name} · {_folder_word(score)}" if name in repeated else name for name, score in zip(names, runs, strict=True)
    ]


def _folder_word(score: Score) -> str:
    """A run's folder; of the long ones of sweeps the digest at their end."""
    name = Path(score.run_dir or "").name
    return name if len(name) <= _LONGEST else f"…{name[-10:]}"


def _facts(score: Score) -> dict[str, str]:
    from humanlike.reports.sea_gathered import readout_name

    details = score.result.details
    judge = str((details.get("judge") or {}).get("source", "unknown judge"))
    lists = str((details.get("elements") or {}).get("source", "unknown lists"))
    return {
        "dataset": score.dataset,
        "backbone": score.backbone,
        "judge": _judge_word(judge),
        "lists": lists.split("@")[0].split(":")[0],
        "readout": readout_name(score),
        "layer": score.layer,
        "preset": f"{score.result.protocol.get('preset')} parameters",
        "seed": f"seed {score.seeds.get('seed', 0)}",
    }


def _judge_word(source: str) -> str:
    """A judge's source without its network and settings; how a presence head was trained stays.

    Example:
        >>> _judge_word("presence head on net pool (C 1, share 1), out of 5 folds of doodles by source")
        'presence head out of 5 folds'
        >>> _judge_word("contrastive presence by net, 'a' against 'b'"), _judge_word("annotation of doodles")
        ('contrastive presence', 'annotation')
    """
    kind = re.split(" (?:on|by|of) ", source)[0]
    trained = re.search(r", (out of \d+ folds|trained on .*)", source)
    return f"{kind} {trained[1]}" if trained else kind


def _lines(record: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """What is said on the console: SEA of every run, and what keeps them from being compared."""
    from humanlike.reports.wording import interval, number

    rows = tables["scores"][tables["scores"]["score"] == "sea"].to_dict("records")
    said = [
        f"{row['run']}: SEA {number(row['value'])} ({interval(row['ci_low'], row['ci_high'])}), {row['n']} sketches"
        for row in rows
    ]
    return [*said, *record["warnings"]]
