"""A run's folder: written whole, with `score.json` last, and read back.

```
score.json      the score in the schema "humanlike.score/1"; its presence says that the run is finished
cells.parquet   one row a cell          items.parquet   one row an item
<name>.parquet  further tables that some benchmarks have, named in score.json under "tables"
config.yaml     resolved, secrets masked
figures/*.svg   report.html             log.jsonl       events (see `humanlike.reports.event_log`)
before_after.html, sketches/*.svg       of generated sketches
```
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from humanlike.files import atomic_path, json_ready, read_json_record, write_json, write_text
from humanlike.reports.config_record import write_config
from humanlike.types import BenchmarkResult, Score, ScoreValue

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from humanlike.reports.gallery import Example

SCHEMA = "humanlike.score/1"
_SCALARS = ("benchmark", "benchmark_version", "dataset", "backbone", "layer", "started", "seconds", "digest")
_MAPPINGS = ("seeds", "hashes", "versions")
_OF_EARLIER_RUNS = ("figures/*.svg", "figures/*.png", "before_after.html", "sketches/*.pruned.svg")
"""What a run may leave that the next one in its folder may not write again."""


def digest(items: pd.DataFrame, counts: Mapping[str, int], id_column: str = "sketch_id") -> str:
    """What a run decided, in one hash: equal for any loader order, batch size and number of processes.

    It is the SHA-256 of the UTF-8 text of `{"counts": {name: integer}, "items": {column: [integers]}}` as
    JSON with sorted keys and no spaces. `items` holds every column of integer or boolean dtype (booleans as 0
    and 1, a missing value of a nullable column as null), its rows sorted by `id_column` as text by code
    point. Floats and texts do not enter, and the width of an integer type does not matter.

    Args:
        items: One row an item; `id_column` is unique.
        counts: Name → integer.
        id_column: Column that fixes the order; a table without it is sorted by its first column.

    Returns:
        64 hexadecimal digits.

    Raises:
        ValueError: When an id occurs twice (the order would be undefined) or a count is not a whole number.

    Example:
        >>> table = pd.DataFrame({"sketch_id": ["b", "a"], "top1_index": [3, 1], "entropy": [0.5, 0.25]})
        >>> digest(table, {"items_used": 2}) == digest(table.iloc[::-1].assign(entropy=0.0), {"items_used": 2})
        True
    """
    column = id_column if id_column in items.columns else str(items.columns[0])
    ids = items[column].astype(str)
    if ids.duplicated().any():
        raise ValueError(
            f"the items table has {int(ids.duplicated().sum())} repeated {column}, for example "
            f"{ids[ids.duplicated()].iloc[0]!r}; a digest needs every item exactly once"
        )
    wrong = {name: value for name, value in counts.items() if int(value) != value}
    if wrong:
        raise ValueError(f"counts must be whole numbers, got {wrong}")
    ordered = items.iloc[sorted(range(len(items)), key=ids.tolist().__getitem__)]
    columns = {
        str(name): [None if pd.isna(v) else int(v) for v in ordered[name].tolist()]
        for name in ordered.columns
        if pd.api.types.is_integer_dtype(ordered[name]) or pd.api.types.is_bool_dtype(ordered[name])
    }
    content = {"counts": {str(name): int(value) for name, value in counts.items()}, "items": columns}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def score_record(score: Score) -> dict[str, Any]:
    """The content of `score.json`: everything but the two large tables, as plain JSON values (NaN as null)."""
    result = score.result
    record: dict[str, Any] = {"schema": SCHEMA}
    record |= {name: getattr(score, name) for name in _SCALARS}
    record["protocol"] = result.protocol
    record["scores"] = {name: asdict(value) for name, value in result.scores.items()}
    record |= {"counts": result.counts, "flags": list(result.flags)}
    record |= {name: getattr(score, name) for name in _MAPPINGS}
    record["conditions"] = result.conditions.to_dict(orient="records")
    record["details"] = result.details
    record["tables"] = sorted(result.tables)
    return json_ready(record)


def write_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a table to a Parquet file atomically; a None in a column of texts stays missing.

    Raises:
        ValueError: When a column mixes types that Parquet cannot hold together; the sentence names the column.
    """
    try:
        arrow = pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"cannot write {path}: {' '.join(map(str, error.args))}; use one type a column") from error
    with atomic_path(path) as temporary:
        pq.write_table(arrow, temporary, compression="zstd")


def write_run(
    score: Score,
    out_dir: str | Path,
    config: Mapping[str, Any],
    *,
    figures: Mapping[str, Figure] | None = None,
    examples: Sequence[Example] = (),
    bibtex: str = "",
    png: bool = False,
) -> Path:
    """Write everything a finished run leaves behind; `score.json` comes last.

    Args:
        score: The finished evaluation.
        out_dir: The run's folder; made when absent. A `score.json` of an earlier run in it is removed first, and with
            it that run's figures and sketches, which would stand beside the new ones.
        config: The resolved configuration; secrets are masked before anything is written.
        figures: Name → figure; the standard ones of `humanlike.reports.figures.score_figures` when None.
        examples: Sketches to show in the report.
        bibtex: How to cite the benchmark.
        png: Also write every figure as PNG.

    Returns:
        The folder.
    """
    from humanlike.reports.figures import figure_svg, score_figures, write_figure
    from humanlike.reports.generation_page import write_pages
    from humanlike.reports.html import write_report

    folder = Path(out_dir)
    earlier = _OF_EARLIER_RUNS if is_finished(folder) else ()  # figures of somebody else stay
    (folder / "score.json").unlink(missing_ok=True)
    for path in [path for pattern in earlier for path in folder.glob(pattern)]:
        path.unlink()
    write_config(folder / "config.yaml", config)
    write_table(folder / "cells.parquet", score.result.cells)
    write_table(folder / "items.parquet", score.result.items)
    for name, table in score.result.tables.items():
        write_table(folder / f"{name}.parquet", table)
    drawn = score_figures(score, examples) if figures is None else figures
    svgs = {name: figure_svg(figure) for name, figure in drawn.items()}
    for name, figure in drawn.items():
        write_text(folder / "figures" / f"{name}.svg", svgs[name])
        if png:
            write_figure(folder / "figures" / f"{name}.png", figure)
    write_report(folder / "report.html", score, figures=svgs, examples=examples, config=config, bibtex=bibtex)
    write_pages(folder, score)
    write_json(folder / "score.json", score_record(score))
    return folder


def read_record(run_dir: str | Path) -> dict[str, Any]:
    """The content of a finished run's `score.json`.

    Raises:
        FileNotFoundError: When the run is not finished or not there.
        ValueError: When the file is not a score of this schema.
    """
    path = Path(run_dir) / "score.json"
    if not path.is_file():
        raise FileNotFoundError(f"{run_dir} holds no score.json: the run is not finished, or it is another folder")
    return read_json_record(path, SCHEMA, "run the evaluation again")


def read_run(run_dir: str | Path) -> Score:
    """A finished run, read back from its folder with both tables.

    Raises:
        FileNotFoundError: When the run is not finished, or a table is missing.
        ValueError: When `score.json` has another schema.
    """
    folder = Path(run_dir)
    record = read_record(folder)
    further = list(record.get("tables", []))
    files = [f"{name}.parquet" for name in ("cells", "items", *further)]
    absent = [name for name in files if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(f"{folder} lacks {', '.join(absent)}, which a finished run has; was it copied in part?")
    tables = {name: pq.read_table(folder / f"{name}.parquet").to_pandas() for name in further}
    cells, items = (pq.read_table(folder / f"{name}.parquet").to_pandas() for name in ("cells", "items"))
    return score_of_record(record, folder, cells=cells, items=items, tables=tables)


def score_of_record(
    record: Mapping[str, Any],
    run_dir: str | Path,
    *,
    cells: pd.DataFrame | None = None,
    items: pd.DataFrame | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
) -> Score:
    """What `score.json` says as a `Score`; tables that are not given are empty.

    Args:
        record: Content of `score.json`.
        run_dir: Its folder.
        cells: Table of cells.
        items: Table of items.
        tables: Further tables.

    Raises:
        KeyError: When the record lacks a field.
    """
    result = BenchmarkResult(
        scores={name: _score_value(fields) for name, fields in record["scores"].items()},
        cells=pd.DataFrame() if cells is None else cells,
        items=pd.DataFrame() if items is None else items,
        conditions=_table(record["conditions"]),
        counts=record["counts"],
        flags=tuple(record["flags"]),
        protocol=record["protocol"],
        details=record["details"],
        tables=tables or {},
    )
    return Score(result=result, run_dir=str(run_dir), **{name: record[name] for name in (*_SCALARS, *_MAPPINGS)})


def _table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows of JSON as a table; null becomes NaN, so that a column without any value stays a column of numbers."""
    return pd.DataFrame([{k: float("nan") if v is None else v for k, v in row.items()} for row in rows])


def _score_value(fields: Mapping[str, Any]) -> ScoreValue:
    interval = fields["ceiling_ci"]
    return ScoreValue(**{**fields, "ceiling_ci": None if interval is None else tuple(interval)})


def is_finished(run_dir: str | Path, config_hash: str | None = None) -> bool:
    """Whether the folder holds a finished run, and, with `config_hash`, one of this very configuration.

    Args:
        run_dir: The run's folder; it need not exist.
        config_hash: What `hashes["config"]` of the score must be; None accepts any.
    """
    try:
        record = read_record(run_dir)
    except (FileNotFoundError, ValueError):
        return False
    return config_hash is None or record["hashes"].get("config") == config_hash
