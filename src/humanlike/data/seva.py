"""SEVA as published: recognition trials, THINGS concepts and sketch PNGs, as the tables that `dataset=seva` reads.

This is what `humanlike convert seva` reads: the sketches that people judged, with their answers.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from humanlike.data.archives import Archive, open_archive
from humanlike.data.concepts import join_semantic_space, load_semantic_space
from humanlike.data.images import DecodeOptions, ImageFiles
from humanlike.data.table_files import read_table, rows_named
from humanlike.data.table_responses import clean_responses
from humanlike.types import GUESS_COLUMNS, Sketches

TRIALS = "human_recog_df.csv"
CONCEPTS = "things_concepts.tsv"
SPACE = "THINGS_spose.txt"
PNGS = "seva_production_pngs"
PRACTICE = "cat"
SECONDS = (4.0, 8.0, 16.0, 32.0)
COLUMNS = ("subjectID", "filename_recog", "filename", "concept", "uniqueID", "abstraction", "response")
REPOSITORY = "github.com/cogtoolslab/visual_abstractions_benchmarking_public2023"
HOW_TO_GET = (
    f"expected {TRIALS}, {CONCEPTS}, perhaps {SPACE}, and {PNGS}.zip or its folder; the README of {REPOSITORY} links "
    "to them"
)


def seva_published(
    root: str | Path,
    images: str | Path | None = None,
    on_unknown: str = "raise",
    on_missing_image: str = "raise",
    on_repeat: str = "raise",
) -> Sketches:
    """The human sketches of SEVA's recognition experiment, with people's answers, from the published files.

    Practice trials (concept "cat"), trials without a sketch id and empty answers are left out and counted, as in the
    published analysis. Labels are the 1,854 THINGS `uniqueID`s in the order of things_concepts.tsv, so that bow, mouse
    and other names of several things are never guessed.

    Args:
        root: Folder with human_recog_df.csv, things_concepts.tsv, perhaps THINGS_spose.txt, and the sketches.
        images: Zip or folder of the sketch PNGs; default: seva_production_pngs.zip or seva_production_pngs in `root`.
        on_unknown: "raise", or "drop" judgments whose first guess is no label (and later such guesses), and count them.
        on_missing_image: "raise", or "drop" sketches without a PNG, and count them.
        on_repeat: One participant judged one sketch twice: "raise", "first" or "keep"; see `clean_responses`.

    Returns:
        The data set: `condition` in seconds, `image_id` = file name of the photograph that was drawn.

    Raises:
        FileNotFoundError: When a file is missing, with where to get it.
        ValueError: Naming file and rows (from 1) of what cannot be read.
    """
    if on_missing_image not in ("raise", "drop"):
        raise ValueError(f"on_missing_image must be 'raise' or 'drop', got {on_missing_image!r}")
    folder = Path(root).expanduser()
    for name in (TRIALS, CONCEPTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"seva: no file {folder / name}; {HOW_TO_GET}")
    archive = _png_archive(folder, images)
    labels = tuple(read_table(folder / CONCEPTS, ("uniqueID",), ("uniqueID",), "THINGS concepts")["uniqueID"])
    where = f"trials {folder / TRIALS}"
    trials_dropped: Counter[str] = Counter()
    trials = _trials(folder / TRIALS, where, trials_dropped)
    dropped: Counter[str] = Counter()
    table = _sketch_table(trials, labels, where)
    all_ids = table["sketch_id"].tolist()
    table = _with_pngs(table, archive, on_missing_image, dropped)
    answers = clean_responses(
        trials.rename(columns={"subjectID": "participant"})[["participant", "sketch_id", *GUESS_COLUMNS]],
        table["sketch_id"].tolist(),
        labels,
        where=where,
        on_unknown=on_unknown,
        on_repeat=on_repeat,
        removed_ids=all_ids,
    )
    answers = replace(answers, dropped={**trials_dropped, **answers.dropped})
    space = load_semantic_space(folder / SPACE, folder / CONCEPTS) if (folder / SPACE).is_file() else None
    rows_LD, flags = join_semantic_space(space, labels)
    return Sketches(
        name="seva",
        table=table,
        labels=labels,
        images=ImageFiles(tuple(table["path"]), archive, DecodeOptions()),
        condition_unit="s",
        semantic_space=rows_LD,
        responses=answers,
        dropped=dict(dropped),
        flags=flags,
        source=f"SEVA (Mukherjee et al. 2023), {REPOSITORY}, MIT licence",
    )


def sketch_id_of(file_name: str) -> str:
    """Id of a human sketch: the last part of its file's stem.

    Example:
        >>> sketch_id_of("airbag_airbag_01b_63ce03f58988816856b67ae7.png")
        '63ce03f58988816856b67ae7'
    """
    return PurePosixPath(file_name).name.partition(".")[0].rsplit("_", 1)[-1]


def _png_archive(folder: Path, images: str | Path | None) -> Archive:
    try:
        if images is not None:
            return open_archive(images)
        return open_archive(folder / PNGS if (folder / PNGS).is_dir() else folder / f"{PNGS}.zip")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"seva: {error}; {HOW_TO_GET}") from error


def _trials(path: Path, where: str, dropped: Counter[str]) -> pd.DataFrame:
    """Trials that count, with `sketch_id`, `seconds` and the guesses; the index holds row numbers from 0."""
    text = ("subjectID", "filename_recog", "filename", "concept", "uniqueID", "response")
    trials = read_table(path, COLUMNS, text, "trials")
    trials["sketch_id"] = [sketch_id_of(f) if f is not None else None for f in trials["filename_recog"]]
    nowhere = trials["sketch_id"].isna() | trials["sketch_id"].isin(["nan", ""])
    practice = trials["concept"] == PRACTICE
    for reason, rows in (("practice trial", practice), ("trial without a sketch id", nowhere & ~practice)):
        if rows.any():
            dropped[reason] += int(rows.sum())
    trials = trials[~practice & ~nowhere]
    rows_R = trials.index.to_numpy()
    guesses = {row: _guesses(said, where, int(row)) for row, said in zip(rows_R, trials["response"], strict=True)}
    answered = np.array([bool(guesses[row]) for row in trials.index], dtype=bool)
    if not answered.all():
        dropped["empty response"] += int((~answered).sum())
    trials = trials[answered].copy()
    if len(trials) == 0:
        raise ValueError(f"{where}: no trial is left ({dict(dropped)})")
    for position, column in enumerate(GUESS_COLUMNS):
        trials[column] = [(guesses[row] + [None] * 5)[position] for row in trials.index]
    trials["seconds"] = _seconds(trials["abstraction"], where)
    return trials


def _guesses(text: str | None, where: str, row: int) -> list[str | None]:
    """Labels in the order given, from the text of a Python dictionary; never evaluated."""
    if text is None:
        return []
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{where}: response in row {row + 1} is no dictionary of labels: {text[:60]!r}") from error
    if not isinstance(value, dict) or not all(isinstance(label, str) for label in value.values()) or len(value) > 5:
        raise ValueError(
            f"{where}: response in row {row + 1} is {text[:60]!r}; expected {{position: label}}, up to five"
        )
    return list(value.values())


def _seconds(abstraction: pd.Series, where: str) -> np.ndarray:
    """Seconds; some releases store milliseconds."""
    value = pd.to_numeric(abstraction, errors="coerce").to_numpy(float)
    value = value / 1000 if (value >= 1000).mean() > 0.5 else value
    bad = ~np.isin(value, SECONDS)
    if bad.any():
        first = abstraction.iloc[int(bad.argmax())]
        rows = abstraction.index.to_numpy()[bad]
        raise ValueError(
            f"{where}: abstraction is {first} in {rows_named(rows)}; expected 4, 8, 16, 32 s (or all in ms)"
        )
    return value


def _sketch_table(trials: pd.DataFrame, labels: Sequence[str], where: str) -> pd.DataFrame:
    """One row a judged sketch."""
    facts = trials[["sketch_id", "uniqueID", "seconds", "filename"]].drop_duplicates()
    torn = facts["sketch_id"].duplicated(keep=False)
    if torn.any():
        raise ValueError(
            f"{where}: sketch {facts['sketch_id'][torn].iloc[0]!r} has two concepts, times or photographs "
            f"({rows_named(facts.index.to_numpy()[torn.to_numpy()])})"
        )
    for column in ("uniqueID", "filename"):
        empty = facts[column].isna().to_numpy()
        if empty.any():
            raise ValueError(f"{where}: {column} is empty in {rows_named(facts.index.to_numpy()[empty])}")
    unknown = ~facts["uniqueID"].isin(set(labels)).to_numpy()
    if unknown.any():
        first = facts["uniqueID"].to_numpy()[unknown][0]
        raise ValueError(
            f"{where}: uniqueID {first!r} ({rows_named(facts.index.to_numpy()[unknown])}) is not in {CONCEPTS}"
        )
    table = facts.rename(columns={"uniqueID": "concept", "seconds": "condition", "filename": "image_id"})
    if "num_strokes" in trials.columns:
        strokes = trials.groupby("sketch_id")["num_strokes"].first()
        table["num_strokes"] = pd.to_numeric(table["sketch_id"].map(strokes), errors="coerce")
    return table.sort_values(["concept", "condition", "sketch_id"]).reset_index(drop=True)


def _with_pngs(table: pd.DataFrame, archive: Archive, on_missing: str, dropped: Counter[str]) -> pd.DataFrame:
    path_of: dict[str, str] = {}
    for name in archive.names():
        if PurePosixPath(name).suffix.lower() == ".png":
            key = sketch_id_of(name)
            if key in path_of:
                raise ValueError(f"seva: two files of sketch {key!r}: {path_of[key]} and {name}; keep one of them")
            path_of[key] = name
    table["path"] = table["sketch_id"].map(path_of)
    missing = table["path"].isna()
    if missing.any():
        if on_missing == "raise" or missing.all():
            raise ValueError(
                f"seva: {int(missing.sum())} of {len(table)} judged sketches have no PNG in {archive.describe('')}, "
                f"first {table['sketch_id'][missing].iloc[0]!r}; fetch {PNGS}.zip again, or set on_missing_image=drop"
            )
        dropped["sketch whose image file is missing"] += int(missing.sum())
    return table[~missing].reset_index(drop=True)
