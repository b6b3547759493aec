"""A study's folder: tables as Parquet and CSV, and `study.json` last, whose presence says that the study is finished.

```
study.json        schema "humanlike.model_study/1": models, counts, flags, hashes, digest, what is missing
tables/*.parquet  tables/*.csv       models/NAME/  the ordinary run of every evaluated backbone
figures/*.svg     report.html        config.yaml
```
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from humanlike.files import atomic_path, json_ready, read_json_record, sha256_value, write_json, write_text
from humanlike.reports.config_record import write_config
from humanlike.reports.run_folder import digest, write_table

if TYPE_CHECKING:
    from humanlike.benchmarks.study.study import StudyResult, StudySettings
    from humanlike.types import Sketches

SCHEMA = "humanlike.model_study/1"


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write every table as Parquet and as CSV; tables of an earlier study in the folder go first."""
    for old in [*(folder / "tables").glob("*.parquet"), *(folder / "tables").glob("*.csv")]:
        old.unlink()
    for name, table in tables.items():
        write_table(folder / "tables" / f"{name}.parquet", table)
        with atomic_path(folder / "tables" / f"{name}.csv") as temporary:
            table.to_csv(temporary, index=False)


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write `study.json`, last of all files."""
    write_json(folder / "study.json", json_ready({"schema": SCHEMA, **record}))


def read_study(folder: str | Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """A finished study: its record, and its tables by name.

    Raises:
        FileNotFoundError: When the study is not finished, or a table is missing.
        ValueError: When `study.json` is damaged or has another schema.
    """
    root = Path(folder)
    path = root / "study.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no study.json: the study is not finished, or it is another folder")
    record = read_json_record(path, SCHEMA, "run the study again")
    files = {name: root / "tables" / f"{name}.parquet" for name in record["tables"]}
    absent = [str(file) for file in files.values() if not file.is_file()]
    if absent:
        raise FileNotFoundError(f"the study lacks {', '.join(absent)}; was it copied in part?")
    return record, {name: pd.read_parquet(file) for name, file in files.items()}


def write_study(
    folder: Path,
    record: Mapping[str, Any],
    result: StudyResult,
    data: Sketches,
    machine: Sketches | None,
    *,
    with_report: bool = True,
) -> None:
    """Write tables, figures and report, and `study.json` last; figures and report of an earlier study go first.

    Args:
        folder: The study's folder.
        record: Content of `study.json`.
        result: What was found.
        data: The sketches, for the gallery.
        machine: A machine's sketches, or None.
        with_report: Whether figures and the report are made.
    """
    from humanlike.reports.study_figures import study_figures
    from humanlike.reports.study_gallery import study_gallery
    from humanlike.reports.study_html import write_study_report
    from humanlike.reports.study_observers import PEOPLE

    write_config(folder / "config.yaml", record["config"])
    write_tables(folder, result.tables)
    for old in [*(folder / "figures").glob("*.svg"), folder / "report.html"]:
        old.unlink(missing_ok=True)
    if with_report:
        simulated = [PEOPLE] if record["simulated_people"] else []
        unit = "" if machine is None else machine.condition_unit
        figures = study_figures(result.tables, unit=data.condition_unit, machine_unit=unit, simulated=simulated)
        for name, svg in figures.items():
            write_text(folder / "figures" / f"{name}.svg", svg)
        gallery = study_gallery(data, machine, sketch_rows=result.tables["sketch_rows"])
        page = folder / "report.html"
        write_study_report(page, record, result.tables, figures, gallery=gallery, bibtex=str(record["bibtex"]))
    write_record(folder, record)


def study_record(
    result: StudyResult, data: Sketches, settings: StudySettings, failed: Mapping[str, str]
) -> dict[str, Any]:
    """The content of `study.json` but for times and the configuration."""
    from humanlike.entry.pipeline import versions

    return {
        "benchmark": "seva",
        "dataset": data.name,
        "source": data.source,
        "condition_unit": data.condition_unit,
        "simulated_people": bool(data.responses is not None and data.responses.simulated),
        "protocol": settings.protocol.record(),
        "replicates": settings.replicates,
        "splits": settings.splits,
        "seeds": {"seed": settings.seed},
        "models": result.tables["models"].to_dict(orient="records"),
        "models_failed": failed,
        "counts": result.counts,
        "flags": result.flags,
        "details": result.details,
        "tables": {name: len(table) for name, table in result.tables.items()},
        "missing": result.missing,
        "cpu_seconds": result.seconds,
        "hashes": {
            "models": sha256_value(result.hashes),
            "tables": {name: sha256_value(table.to_dict(orient="list")) for name, table in _small(result).items()},
        },
        "versions": versions(),
        "digest": digest(result.top1, result.counts),
    }


def _small(result: StudyResult) -> dict[str, Any]:
    return {name: table for name, table in result.tables.items() if len(table) <= 5000}
