"""SEVA as published: recognition trials, metadata, THINGS concepts and sketch PNGs, as one data set.

This is what `humanlike convert seva` reads: the sketches that people judged, or all, with people's answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from humanlike.data.archives import Archive
from humanlike.data.concepts import join_semantic_space, load_semantic_space
from humanlike.data.images import DecodeOptions, ImageFiles
from humanlike.data.labels import require_choice
from humanlike.data.seva_checks import (
    LABELS,
    SKETCHES,
    CountCheck,
    PublishedSketches,
    exactly,
    name_check,
    settle,
    study_checks,
)
from humanlike.data.seva_files import (
    CONCEPTS,
    METADATA,
    PHOTOGRAPHS,
    PNGS,
    PROBABILITIES,
    REPOSITORY,
    SPACE,
    TRIALS,
    need_files,
    png_archive,
)
from humanlike.data.seva_metadata import read_metadata, with_metadata
from humanlike.data.seva_trials import HUMAN, judged_sketches, read_trials, sketch_id_of
from humanlike.data.table_files import read_table
from humanlike.data.table_responses import clean_responses
from humanlike.types import GUESS_COLUMNS, Responses

JUDGED = 8_192
PARTICIPANTS, EXCLUDED = 1_709, 21
ITEMS = ("judged", "all")


def seva_published(
    root: str | Path,
    images: str | Path | None = None,
    items: str = "judged",
    photographs: bool = False,
    fetch: bool = False,
    mirrors: Sequence[str] = (),
    offline: bool | None = None,
    on_count: str = "raise",
    on_unknown: str = "raise",
    on_missing_image: str = "raise",
    on_repeat: str = "raise",
) -> PublishedSketches:
    """The human sketches of SEVA with people's answers, from the published files.

    Practice trials (concept "cat"), trials without a sketch id and empty answers are left out and counted, as in the
    published analysis. Labels are the 1,854 THINGS `uniqueID`s in the order of things_concepts.tsv, so that bow, mouse
    and other names of several things are never guessed.

    Args:
        root: Folder with human_recog_df.csv, things_concepts.tsv, perhaps THINGS_spose.txt and
            neurips_DB_human_clean.csv, and the sketches.
        images: Zip or folder of the sketch PNGs; default: seva_production_pngs.zip or seva_production_pngs in `root`.
        items: "judged": the 8,192 sketches of the recognition experiment; "all": all 89,797, which needs the metadata.
        photographs: Whether the photographs that were drawn must be there too (things128_images); nothing is read.
        fetch: Fetch what is missing and has a direct link.
        mirrors: Addresses that are asked before the published ones; see `fetch_missing`.
        offline: True: fetch nothing; what is missing is named.
        on_count: Counts that are not the published ones: "raise", or "warn" and flag, for a part of the data.
        on_unknown: "raise", or "drop" judgments whose first guess is no label (and later such guesses), and count them.
        on_missing_image: "raise", or "drop" sketches without a PNG, and count them.
        on_repeat: One participant judged one sketch twice: "raise", "first" or "keep"; see `clean_responses`.

    Returns:
        The data set: `condition` in seconds, `image_id` = file name of the photograph that was drawn, `judged`, and
        `num_strokes` where a file has it.

    Raises:
        FileNotFoundError: When files are missing, with where to get each.
        ValueError: Naming file and rows (from 1) of what cannot be read, or the counts that deviate.
    """
    require_choice(items, "items", ITEMS)
    require_choice(on_count, "on_count", ("raise", "warn"))
    require_choice(on_missing_image, "on_missing_image", ("raise", "drop"))
    folder = Path(root).expanduser()
    needed = [TRIALS, CONCEPTS, *([METADATA] if items == "all" else [])]
    if fetch and images is None and not (folder / PNGS).is_dir():
        needed.append(f"{PNGS}.zip")
    if photographs and not (folder / PHOTOGRAPHS).is_dir():
        needed.append(f"{PHOTOGRAPHS}.zip")
    need_files(folder, needed, fetch=fetch, mirrors=mirrors, offline=offline)
    archive = png_archive(folder, images, PNGS)
    concepts, labels = read_concepts(folder)
    where = f"trials {folder / TRIALS}"
    trials_dropped: Counter[str] = Counter()
    trials, rows = read_trials(folder / TRIALS, HUMAN, trials_dropped)
    judged = judged_sketches(trials, labels, where)
    dropped: Counter[str] = Counter()
    rows_read = {TRIALS: rows, CONCEPTS: len(labels)}
    checks = study_checks(trials, judged, JUDGED, PARTICIPANTS, EXCLUDED, "s")
    table = judged.assign(judged=True)
    if (folder / METADATA).is_file():
        metadata, rows_read[METADATA] = read_metadata(folder / METADATA, labels, dropped)
        table = with_metadata(judged, metadata, items)
        checks += _metadata_checks(metadata, judged)
    pngs = images_by_id(archive, sketch_id_of)
    checks += [exactly("sketch PNGs", SKETCHES, len(pngs), binding=items == "all"), name_check(trials, concepts)]
    all_ids = table["sketch_id"].tolist()
    table = with_images(table, pngs, archive, on_missing_image, dropped)
    answers = answers_of(trials, table, labels, all_ids, where, on_unknown, on_repeat)
    space, space_flags, space_check = semantic_rows(folder, labels)
    checks += [exactly("THINGS concepts", LABELS, len(labels)), space_check]
    return PublishedSketches(
        name="seva",
        table=table,
        labels=labels,
        images=ImageFiles(tuple(table["path"]), archive, DecodeOptions()),
        condition_unit="s",
        semantic_space=space,
        responses=replace(answers, dropped={**trials_dropped, **answers.dropped}),
        dropped=dict(dropped),
        flags=(*space_flags, *settle(checks, on_count, f"seva {folder}")),
        source=f"SEVA (Mukherjee et al. 2023), {REPOSITORY}, MIT licence",
        rows_read=rows_read,
        checks=tuple(checks),
        probabilities=folder / PROBABILITIES,
    )


def read_concepts(folder: Path) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """things_concepts.tsv, and the labels in its order."""
    table = read_table(folder / CONCEPTS, ("uniqueID", "Word"), ("uniqueID", "Word"), "THINGS concepts")
    return table, tuple(table["uniqueID"])


def semantic_rows(folder: Path, labels: Sequence[str]) -> tuple[np.ndarray | None, tuple[str, ...], CountCheck]:
    """Rows of THINGS_spose.txt in label order where the file is there, what did not match, and how many rows it has."""
    space = load_semantic_space(folder / SPACE, folder / CONCEPTS) if (folder / SPACE).is_file() else None
    rows_LD, flags = join_semantic_space(space, labels)
    found = 0 if rows_LD is None else int(np.isfinite(rows_LD).all(axis=1).sum())
    return rows_LD, flags, exactly(f"rows of {SPACE}", LABELS, found, binding=space is not None)


def answers_of(
    trials: pd.DataFrame,
    table: pd.DataFrame,
    labels: Sequence[str],
    all_ids: Sequence[str],
    where: str,
    on_unknown: str,
    on_repeat: str,
) -> Responses:
    """People's answers to the sketches of `table`; those to others of `all_ids` are left out and counted."""
    columns = ["participant", "sketch_id", *GUESS_COLUMNS]
    return clean_responses(
        trials.rename(columns={"subjectID": "participant"})[columns],
        table["sketch_id"].tolist(),
        labels,
        where=where,
        on_unknown=on_unknown,
        on_repeat=on_repeat,
        removed_ids=all_ids,
    )


def images_by_id(archive: Archive, key: Callable[[str], str]) -> dict[str, str]:
    """Sketch id → PNG.

    Raises:
        ValueError: When two files have one id.
    """
    path_of: dict[str, str] = {}
    for name in archive.names():
        if PurePosixPath(name).suffix.lower() == ".png":
            sketch = key(name)
            if sketch in path_of:
                raise ValueError(
                    f"seva: two files of sketch {sketch!r}: {path_of[sketch]} and {name}; keep one of them"
                )
            path_of[sketch] = name
    return path_of


def with_images(
    table: pd.DataFrame, path_of: dict[str, str], archive: Archive, on_missing: str, dropped: Counter[str]
) -> pd.DataFrame:
    """The sketches with the column `path`; those without a PNG are refused, or left out and counted."""
    table = table.assign(path=table["sketch_id"].map(path_of))
    missing = table["path"].isna()
    if missing.any():
        if on_missing == "raise" or missing.all():
            raise ValueError(
                f"seva: {int(missing.sum())} of {len(table)} sketches have no PNG in {archive.describe('')}, "
                f"first {table['sketch_id'][missing].iloc[0]!r}; fetch the PNGs again, or set on_missing_image=drop"
            )
        dropped["sketch whose image file is missing"] += int(missing.sum())
    return table[~missing].reset_index(drop=True)


def _metadata_checks(metadata: pd.DataFrame, judged: pd.DataFrame) -> list[CountCheck]:
    strange = ~judged["sketch_id"].isin(set(metadata["sketch_id"]))
    return [
        exactly("sketches in the metadata", SKETCHES, len(metadata)),
        exactly("judged sketches that the metadata does not know", 0, int(strange.sum())),
    ]
