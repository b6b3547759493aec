"""Finding what `humanlike report` is given: runs, sweeps, studies, patterns; what cannot be read has a reason."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from humanlike.types import Score

NOT_RUNS = {"figures", "loggers", "tables", "sketches", ".hydra", ".git", "__pycache__", ".venv"}
"""Folders inside a run's folder, which hold no runs."""
TRACES = ("log.jsonl", "outcome.json", "evaluate.log", "study.log")
"""Files that a command leaves where it runs, finished or not."""
CARD, RECORDS = "card.json", ("gather.json", "sweep.json", "card.json", "benchmarks.parquet")
"""The record of a report card, and files of folders that were made of runs elsewhere."""


@dataclass
class Found:
    """What was found below the folders that were given.

    Attributes:
        runs: Runs, and models of studies.
        discrepancy: Folder of a study → its table of what each switch changes.
        skipped: (folder, why) of what cannot be read.
    """

    runs: list[Score] = field(default_factory=list)
    discrepancy: dict[str, pd.DataFrame] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)


def find_runs(given: Sequence[str | Path]) -> Found:
    """Read every finished run and study in or below the folders, each once.

    Args:
        given: Folders, or patterns as in `sweeps/*/seed=0`, for shells that do not expand them.
    """
    found, seen = Found(), set[Path]()
    for one in given:
        folders = _folders(str(one))
        if not folders:
            found.skipped.append((str(one), "it is no folder, and as a pattern it fits none"))
        for folder in folders:
            inside = list(_candidates(folder))
            for path in inside:
                if path.resolve() not in seen:
                    seen.add(path.resolve())
                    _read(path, found)
            if not inside:
                found.skipped.append((str(folder), "it holds no score.json and no study.json, nor does a folder in it"))
    return found


def _folders(given: str) -> list[Path]:
    path = Path(given).expanduser()
    if path.is_file() and path.name in ("score.json", "study.json"):
        return [path.parent]
    if path.is_dir():
        return [path]
    return [Path(p) for p in sorted(glob.glob(str(path), recursive=True)) if Path(p).is_dir()]


def _candidates(root: Path) -> Iterator[Path]:
    """Folders with a run, a study, or traces of one, by name; each once, whatever links lead to it."""
    known: set[str] = set()
    for place, folders, files in os.walk(root, followlinks=True):
        if (real := os.path.realpath(place)) in known:
            folders[:] = []
            continue
        known.add(real)
        folders[:] = sorted(f for f in folders if f not in NOT_RUNS)
        made = {"score.json", "study.json"} & set(files)
        traces = set(TRACES) & set(files) and not set(RECORDS) & set(files)
        inside = any((Path(place) / f / "score.json").is_file() for f in folders)
        if made or (traces and not inside):
            yield Path(place)


def _read(folder: Path, found: Found) -> None:
    """Read a folder into what was found; one that cannot be read is named with its reason."""
    from humanlike.entry.study_folder import read_study
    from humanlike.reports.card.studies import study_scores
    from humanlike.reports.run_folder import read_record, score_of_record

    try:
        if (folder / "study.json").is_file():
            record, tables = read_study(folder)
            found.runs += study_scores(record, tables, folder)
            found.discrepancy[str(folder)] = tables["discrepancy"] if "discrepancy" in tables else _no_rows()
        else:
            found.runs.append(_checked(score_of_record(read_record(folder), folder)))
    except FileNotFoundError as error:
        found.skipped.append((str(folder), _unfinished(folder) or _sentence(error)))
    except (KeyError, TypeError, AttributeError) as error:
        found.skipped.append((str(folder), f"its record lacks what a finished run has ({_sentence(error)})"))
    except (OSError, ValueError) as error:
        found.skipped.append((str(folder), _sentence(error)))


def _checked(score: Score) -> Score:
    """The score, when its fields are of the kinds that a page needs.

    Raises:
        TypeError: One is not.
    """
    for name in ("benchmark", "benchmark_version", "dataset", "backbone", "layer", "started", "digest"):
        if not isinstance(getattr(score, name), str):
            raise TypeError(f"{name} must be a text, got {getattr(score, name)!r}")
    for name, value in (("protocol", score.result.protocol), ("details", score.result.details), ("seeds", score.seeds)):
        if not isinstance(value, Mapping):
            raise TypeError(f"{name} must be a mapping, got {value!r}")
    for name, entry in score.scores.items():
        numbers: list[Any] = [entry.value, entry.ci_low, entry.ci_high, entry.ceiling, *(entry.ceiling_ci or ())]
        wrong = [v for v in numbers if v is not None and (isinstance(v, bool) or not isinstance(v, int | float))]
        if wrong:
            raise TypeError(f"scores.{name} must hold numbers, got {wrong[0]!r}")
    return score


def _unfinished(folder: Path) -> str:
    """What is known of a run that did not finish."""
    import json

    outcome = folder / "outcome.json"
    if outcome.is_file():
        try:
            why = str(json.loads(outcome.read_text(encoding="utf-8")).get("why", ""))
        except (OSError, ValueError, AttributeError):
            why = ""
        if why:
            return f"the run failed: {why}"
    if (folder / "score.json").is_file() or (folder / "study.json").is_file():
        return ""
    return "the run is not finished (no score.json); run its command again to go on"


def _sentence(error: Exception) -> str:
    return " ".join(str(error.args[0] if isinstance(error, KeyError) and error.args else error).split())


def _no_rows() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame()
