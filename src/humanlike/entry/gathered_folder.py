"""What gathering has in common for every benchmark: finding finished runs, and the folder that is written.

```
NAME.json         what was gathered, written last: its presence says that all is there
tables/*.parquet  tables/*.csv   figures/*.svg   report.html
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from humanlike.types import Score

FoundRuns = Mapping[Path, Mapping[str, Any]]
"""Folder of a finished run → its score.json."""


def folder_to_write(given: str | Path, option: str) -> Path:
    """A folder that results can go into, looked at before anything is computed.

    Args:
        given: As it was given; it need not exist.
        option: Where it was given, for the message.

    Raises:
        NotADirectoryError: It, or what should hold it, is a file.
    """
    folder = Path(given).expanduser()
    for path in (folder, *folder.parents):
        if path.exists():
            if not path.is_dir():
                raise NotADirectoryError(f"{option} is {given}, but {path} is a file; name a folder")
            break
    return folder


def found_runs(folders: Sequence[str | Path]) -> dict[Path, dict[str, Any]]:
    """Every finished run in or below the folders, each once, in the order of the folders.

    Raises:
        FileNotFoundError: A folder does not exist or holds no finished run.
        ValueError: A score.json is not one of this program.
    """
    from humanlike.reports.run_folder import read_record

    runs: dict[Path, dict[str, Any]] = {}
    known: set[Path] = set()
    for given in folders:
        root = Path(given).expanduser()
        if not root.is_dir():
            raise FileNotFoundError(f"{given} is no folder; name folders of finished runs")
        here = [path.parent for path in sorted(root.rglob("score.json"))]
        if not here:
            raise FileNotFoundError(f"{given} holds no finished run (no score.json in it or below it)")
        runs |= {folder: read_record(folder) for folder in here if folder.resolve() not in known}
        known |= {folder.resolve() for folder in here}
    return runs


def of_one_benchmark(runs: FoundRuns, wanted: str | None, known: Sequence[str]) -> tuple[str, FoundRuns]:
    """The benchmark that the runs are of, and those runs.

    Args:
        runs: What was found.
        wanted: Benchmark whose runs are taken, others being left out; None: all must be of one.
        known: Benchmarks whose runs can be gathered.

    Raises:
        ValueError: Runs of several benchmarks, of one that cannot be gathered, or none of the one that is wanted.
    """
    count: dict[str, int] = {}
    for record in runs.values():
        count[str(record["benchmark"])] = count.get(str(record["benchmark"]), 0) + 1
    told = ", ".join(f"{n} of {name}" for name, n in sorted(count.items()))
    if wanted is None and len(count) > 1:
        raise ValueError(
            f"the folders hold runs of several benchmarks ({told}), whose scores cannot stand in one table; name "
            f"folders of one of them, or take one with --benchmark {' or '.join(k for k in known if k in count) or '…'}"
        )
    chosen = wanted or next(iter(count))
    if chosen not in known:
        raise ValueError(
            f"runs of benchmark={chosen} cannot be gathered, only those of {' and of '.join(known)}; "
            "`humanlike study` compares models on SEVA"
        )
    if chosen not in count:
        raise ValueError(f"the folders hold no finished run of benchmark={chosen}, but {told}")
    return chosen, {folder: record for folder, record in runs.items() if record["benchmark"] == chosen}


def shared_record(runs: FoundRuns, tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """What every record of gathered runs says."""
    from humanlike.entry.pipeline import versions
    from humanlike.files import sha256_value

    first = next(iter(runs.values()))
    return {
        "benchmark": first["benchmark"],
        "benchmark_version": first["benchmark_version"],
        "dataset": " and ".join(dict.fromkeys(str(record["dataset"]) for record in runs.values())),
        "tables": {name: len(table) for name, table in tables.items()},
        "runs": {str(folder): record["digest"] for folder, record in runs.items()},
        "digest": sha256_value(sorted(str(record["digest"]) for record in runs.values())),
        "bibtex": str(first["details"].get("bibtex", "")),
        "versions": versions(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def scores_record(
    schema: str,
    runs: FoundRuns,
    scores: Mapping[str, Score],
    tables: Mapping[str, pd.DataFrame],
    counted: str,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """The record of runs whose scores stand side by side, a name each.

    Args:
        schema: Of the record.
        runs: Finished runs.
        scores: Name of a run → the run.
        tables: What was gathered, `runs` among it.
        counted: What a run is one of, for the counts ("runs", "judges").
        warnings: What keeps the runs from being compared.
    """
    from humanlike.reports.wording import flag_sentence

    return {
        "schema": schema,
        **shared_record(runs, tables),
        "counts": {counted: len(scores), "data_sets": tables["runs"]["dataset"].nunique()},
        "warnings": warnings,
        "flags": [f"{name}: {flag_sentence(flag)}" for name, score in scores.items() for flag in score.result.flags],
    }


def write_gathered(
    folder: Path,
    name: str,
    record: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame],
    figures: Mapping[str, Figure],
    render: Callable[[Mapping[str, Any], Mapping[str, pd.DataFrame], Mapping[str, str]], str],
) -> None:
    """Write tables, figures and report, and the record last.

    Args:
        folder: Where to write.
        name: File of the record.
        record: What was gathered.
        tables: Name → table.
        figures: Name → figure.
        render: Makes the page from record, tables and figures (name → SVG).
    """
    from humanlike.entry.study_folder import write_tables
    from humanlike.files import json_ready, write_json, write_text
    from humanlike.reports.figures import figure_svg

    (folder / name).unlink(missing_ok=True)
    write_tables(folder, tables)
    for old in (folder / "figures").glob("*.svg"):
        old.unlink()
    svgs = {figure: figure_svg(drawn) for figure, drawn in figures.items()}
    for figure, svg in svgs.items():
        write_text(folder / "figures" / f"{figure}.svg", svg)
    write_text(folder / "report.html", render(record, tables, svgs))
    write_json(folder / name, json_ready(record))
