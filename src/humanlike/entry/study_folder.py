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
from typing import Any

import pandas as pd

from humanlike.files import atomic_path, json_ready, write_json
from humanlike.reports.run_folder import write_table

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
        ValueError: When `study.json` has another schema.
    """
    import json

    root = Path(folder)
    path = root / "study.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no study.json: the study is not finished, or it is another folder")
    record = json.loads(path.read_text(encoding="utf-8"))
    if record.get("schema") != SCHEMA:
        raise ValueError(f"{path} has the schema {record.get('schema')!r}, this version reads {SCHEMA!r}")
    files = {name: root / "tables" / f"{name}.parquet" for name in record["tables"]}
    absent = [str(file) for file in files.values() if not file.is_file()]
    if absent:
        raise FileNotFoundError(f"the study lacks {', '.join(absent)}; was it copied in part?")
    return record, {name: pd.read_parquet(file) for name, file in files.items()}
