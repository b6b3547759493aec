"""Where a survey's sketches and scores come from: a finished run, or a folder of images with perhaps a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from humanlike.types import Sketches

NEEDED = ("sketch_id", "concept")


def run_items(folder: Path) -> tuple[dict[str, Any], pd.DataFrame]:
    """A finished run's record, and its table of items.

    Raises:
        FileNotFoundError: When the run is not finished, or lacks its table.
    """
    from humanlike.reports.run_folder import read_record

    record = read_record(folder)
    path = folder / "items.parquet"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} lacks items.parquet, which a finished run has; was it copied in part?")
    return record, pd.read_parquet(path)


def score_column(items: pd.DataFrame, name: str, where: str) -> np.ndarray:
    """A score of every row, NaN where it has none.

    Raises:
        ValueError: When there is no such column of numbers; those that there are, are named.
    """
    numeric = [c for c in items.columns if pd.api.types.is_numeric_dtype(items[c])]
    if name not in numeric:
        raise ValueError(f"{where} has no score {name!r}; its columns of numbers are {', '.join(map(str, numeric))}")
    values: np.ndarray = items[name].to_numpy(np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def run_sketches(
    folder: Path, score: str, settings: Sequence[str] = ()
) -> tuple[Sketches, pd.DataFrame, dict[str, Any]]:
    """The sketches of a run, built again from its configuration.

    Args:
        folder: The run.
        score: Column of its items.
        settings: `dataset.KEY=VALUE`, for files that lie elsewhere now.

    Returns:
        The data set; `sketch_id, concept, score`; where all came from.

    Raises:
        ValueError: When the data set cannot be built or lacks sketches of the run; with the way out.
    """
    from humanlike.entry.conf import register_resolvers
    from humanlike.entry.targets import build
    from humanlike.reports.config_record import read_config
    from humanlike.types import Sketches

    record, items = run_items(folder)
    values = score_column(items, score, str(folder / "items.parquet"))
    register_resolvers()
    config = read_config(folder / "config.yaml").get("dataset")
    if not isinstance(config, dict) or "_target_" not in config:
        raise ValueError(f"{folder}/config.yaml does not say what data set the run was on; give a folder of sketches")
    for setting in settings:
        key, _, text = setting.partition("=")
        if not key.startswith("dataset."):
            raise ValueError(f"{setting!r}: only settings of the data set can be changed, written dataset.KEY=VALUE")
        _set(config, key.removeprefix("dataset.").split("."), text)
    try:
        data = build(config)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} (files of the run's data set; dataset.root=PATH says where they are)"
        ) from error
    if not isinstance(data, Sketches):
        raise ValueError(f"{folder} is a run on {type(data).__name__}, not on sketches")
    absent = sorted(set(items["sketch_id"].astype(str)) - set(data.table["sketch_id"].astype(str)))
    if absent:
        raise ValueError(
            f"{len(absent)} sketches of {folder} are not in its data set as it is now, for example {absent[0]!r}; give "
            "the settings and files that the run had (dataset.KEY=VALUE)"
        )
    failed = items["error"].notna().to_numpy() if "error" in items.columns else np.zeros(len(items), bool)
    table = items[list(NEEDED)].astype(str).assign(score=values)[~failed].reset_index(drop=True)
    source = {"run": folder.name, "digest": record["digest"], "dataset": record["dataset"]}
    return data, table, source


def folder_sketches(folder: Path, layout: str) -> Sketches:
    """A folder or zip of images as sketches; see `humanlike.data.image_folder`."""
    from humanlike.data.image_folder import image_folder

    return image_folder(folder, layout)


def with_scores(data: Sketches, path: str | None, score: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """`sketch_id, concept, score` of every sketch; without a table no sketch has a score.

    Raises:
        ValueError: When the table names sketches that are not there, or one twice.
    """
    table = data.table[list(NEEDED)].astype(str)
    source: dict[str, Any] = {"dataset": data.name, "scores": None if path is None else Path(path).name}
    if path is None:
        return table.assign(score=np.nan), source
    scores = score_table(path, score)
    unknown = sorted(set(scores.index) - set(table["sketch_id"]))
    if unknown:
        raise ValueError(
            f"scores {path}: there is no sketch {unknown[0]!r} ({len(unknown)} such); ids are paths below the folder, "
            f"for example {table['sketch_id'].iloc[0]!r}"
        )
    return table.assign(score=table["sketch_id"].map(scores)), source


def score_table(path: str | Path, score: str) -> pd.Series:
    """A column of a table of scores, by sketch id."""
    from humanlike.data.table_files import read_table, refuse_empty, refuse_repeated

    table = read_table(path, ("sketch_id",), ("sketch_id",), "scores")
    where = f"scores {path}"
    refuse_empty(table, ("sketch_id",), where)
    refuse_repeated(table, "sketch_id", where)
    return pd.Series(score_column(table, score, where), index=table["sketch_id"].to_numpy())


def _set(config: dict[str, Any], keys: Sequence[str], text: str) -> None:
    from humanlike.entry.overrides import setting_value

    for key in keys[:-1]:
        inner = config.get(key)
        config[key] = {} if inner is None else inner
        config = config[key]
        if not isinstance(config, dict):
            raise ValueError(f"dataset.{'.'.join(keys)}: {key} is {config!r}, in which nothing can be set")
    config[keys[-1]] = setting_value(f"dataset.{'.'.join(keys)}", text)
