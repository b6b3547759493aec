"""`table`: a study of one's own, or any converted data set, as tables beside image files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.data.archives import Archive, open_archive
from humanlike.data.concepts import SemanticSpace, join_semantic_space
from humanlike.data.images import DecodeOptions, ImageFiles
from humanlike.data.labels import label_order, require_choice, require_conditions
from humanlike.data.study_folder import StudyFolder, read_labels
from humanlike.data.table_elements import read_elements
from humanlike.data.table_files import aliased, read_table, refuse_empty, refuse_repeated, rows_named
from humanlike.data.table_responses import read_responses, unknown_labels
from humanlike.types import SKETCH_COLUMNS, Sketches

logger = logging.getLogger(__name__)

UNKNOWN_CONCEPT = "sketch whose concept is no label"
NO_IMAGE = "sketch whose image file is missing"


def table(
    root: str | Path,
    sketches: str | Path | None = None,
    responses: str | Path | None = None,
    elements: str | Path | None = None,
    images: str | Path | None = None,
    labels: Sequence[str] | str | Path | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    aliases: Mapping[str, str] | None = None,
    conditions: Sequence[float] | None = None,
    on_unknown: str = "raise",
    on_missing_image: str = "raise",
    on_repeat: str = "raise",
    name: str | None = None,
    condition_unit: str | None = None,
    source: str | None = None,
    background: str | None = None,
    polarity: str | None = None,
    pad_to_square: bool | None = None,
    svg_size: int | None = None,
) -> Sketches:
    """A table of sketches, perhaps a table of people's answers, labels and a semantic space; see `study_folder`.

    Files named here are looked for below `root` first. What is not named is taken from `root` where it has its standard
    name (`responses.csv`, `labels.txt`, …), and facts from `study.json`.

    Args:
        root: Folder of the study, or its table of sketches.
        sketches: Table with `sketch_id, concept, condition, image_id, path` and perhaps `num_strokes`; default:
            sketches.parquet, .csv or .tsv. A CSV row 1 is the second line of the file.
        responses: Table with `participant, sketch_id, guess_1` and perhaps `guess_2` … `guess_5`.
        elements: Table with `sketch_id, element, drawn`: which parts people saw in which sketch.
        images: Folder or zip that `path` starts from; default: `root`.
        labels: Label order, as a list or a file of one label a line; default: the concepts, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        aliases: Name in the tables → label, for concepts and guesses in another spelling or language.
        conditions: Conditions that must be there; others are dropped and counted.
        on_unknown: "raise", or "drop" sketches and judgments whose concept or first guess is no label, and count them.
        on_missing_image: "raise", or "drop" sketches without an image file, and count them.
        on_repeat: See `clean_responses`.
        name: Name of the data set in results.
        condition_unit: "s", "strokes", … or "".
        source: Where the data came from and its licence.
        background: See `DecodeOptions`.
        polarity: See `DecodeOptions`.
        pad_to_square: See `DecodeOptions`.
        svg_size: See `DecodeOptions`.

    Raises:
        FileNotFoundError: When the folder or a file is missing, with what is expected.
        ValueError: Naming file and rows (from 1): wrong columns, empty cells, repeated ids, unknown labels with the
            nearest, missing or outside image files, one participant judging one sketch twice.
    """
    require_choice(on_unknown, "on_unknown", ("raise", "drop"))
    require_choice(on_missing_image, "on_missing_image", ("raise", "drop"))
    study, sketch_path = _found(root, sketches)
    facts = study.facts()
    where = f"sketches {sketch_path}"
    data = _sketch_table(sketch_path, where, aliases or {})
    all_ids = data["sketch_id"].tolist()
    dropped: Counter[str] = Counter()
    order = _label_list(study, labels)
    if order is not None:
        data = _known_concepts(data, order, where, on_unknown, dropped)
    data = _asked_conditions(data, conditions, where, dropped)
    archive = open_archive(study.root if images is None else study.file(images))
    data = _with_images(data, archive, where, on_missing_image, dropped).reset_index(drop=True)
    final = label_order(where, data["concept"], order)
    space = semantic_space if semantic_space is not None else _own_space(study)
    rows_LD, flags = join_semantic_space(space, final)
    response_path = study.table("responses") if responses is None else study.file(responses)
    element_path = study.table("elements") if elements is None else study.file(elements)
    ids = data["sketch_id"].tolist()
    options = {"background": background, "polarity": polarity, "pad_to_square": pad_to_square, "svg_size": svg_size}
    decode = {**facts.decode, **{k: v for k, v in options.items() if v is not None}}
    return Sketches(
        name=facts.name if name is None else name,
        table=data,
        labels=final,
        images=ImageFiles(tuple(data["path"]), archive, _decode_options(decode, study)),
        condition_unit=facts.condition_unit if condition_unit is None else condition_unit,
        semantic_space=rows_LD,
        responses=None
        if response_path is None
        else read_responses(
            response_path,
            ids,
            final,
            aliases=aliases,
            on_unknown=on_unknown,
            on_repeat=on_repeat,
            simulated=facts.simulated_responses,
            removed_ids=all_ids,
        ),
        elements=None if element_path is None else read_elements(element_path, ids, all_ids),
        dropped=dict(dropped),
        flags=(*facts.flags, *flags),
        source=source or facts.source or f"tables in {study.root}",
    )


def _found(root: str | Path, sketches: str | Path | None) -> tuple[StudyFolder, Path]:
    path = Path(root).expanduser()
    expected = "expected a folder with sketches.parquet or sketches.csv, or the table itself"
    if path.is_file() and sketches is None:
        return StudyFolder(path.parent), path
    if not path.is_dir():
        raise FileNotFoundError(f"table: no folder {path}; {expected}")
    study = StudyFolder(path)
    found = study.table("sketches") if sketches is None else study.file(sketches)
    if found is None:
        raise FileNotFoundError(f"table: no table of sketches in {path}; {expected}, or name it with sketches=FILE")
    return study, found


def _sketch_table(path: Path, where: str, aliases: Mapping[str, str]) -> pd.DataFrame:
    """The table of sketches with checked cells."""
    text = ("sketch_id", "concept", "image_id", "path")
    data = read_table(path, (*SKETCH_COLUMNS, "path"), text, "sketches")
    refuse_empty(data, text, where)
    refuse_repeated(data, "sketch_id", where)
    numbers = {"condition": True, **({"num_strokes": False} if "num_strokes" in data.columns else {})}
    for column, needed in numbers.items():
        value = pd.to_numeric(data[column], errors="coerce")
        bad = np.flatnonzero(~np.isfinite(value.to_numpy(float)) & (needed | data[column].notna().to_numpy()))
        if len(bad):
            found = data[column].iloc[bad[0]]
            raise ValueError(
                f"{where}: {column} is {'empty' if pd.isna(found) else repr(found)} in {rows_named(bad)}; it must be a "
                "number (seconds, strokes; 0 where there is one condition only)"
            )
        data[column] = value
    data["condition"] = data["condition"].astype(float)
    data["concept"] = aliased(data["concept"], aliases)
    if data.groupby("image_id")["concept"].nunique().max() > 1:
        # Sources are often numbered anew within a concept; one number must not tie two concepts together.
        logger.info("%s: image_id repeats from concept to concept, so it is read as <concept>/<image_id>", where)
        data["image_id"] = data["concept"] + "/" + data["image_id"]
    return data


def _label_list(study: StudyFolder, labels: Sequence[str] | str | Path | None) -> tuple[str, ...] | None:
    if labels is None:
        path = study.labels()
        return None if path is None else read_labels(path)
    if isinstance(labels, str | Path):
        return read_labels(study.file(labels))
    return tuple(str(label) for label in labels)


def _known_concepts(
    data: pd.DataFrame, order: tuple[str, ...], where: str, on_unknown: str, dropped: Counter[str]
) -> pd.DataFrame:
    unknown = ~data["concept"].isin(set(order)).to_numpy()
    if not unknown.any():
        return data
    if on_unknown == "raise":
        raise ValueError(unknown_labels(data[["concept"]], unknown[:, None], order, where))
    dropped[UNKNOWN_CONCEPT] += int(unknown.sum())
    return _left(data[~unknown], where, dropped)


def _asked_conditions(
    data: pd.DataFrame, conditions: Sequence[float] | None, where: str, dropped: Counter[str]
) -> pd.DataFrame:
    if conditions is None:
        return data
    wanted = [float(c) for c in conditions]
    kept = data["condition"].isin(wanted).to_numpy()
    require_conditions(where, wanted, data["condition"])
    if not kept.all():
        dropped["condition not asked for"] += int((~kept).sum())
    return data[kept]


def _with_images(
    data: pd.DataFrame, archive: Archive, where: str, on_missing: str, dropped: Counter[str]
) -> pd.DataFrame:
    """Rows whose image file is there; a path that leads outside is refused whatever was asked."""
    held = np.zeros(len(data), bool)
    for position, (row, path) in enumerate(zip(data.index, data["path"], strict=True)):
        try:
            held[position] = archive.holds(path)
        except ValueError as error:
            raise ValueError(
                f"{where}: path {path!r} in row {row + 1} leads outside {archive.describe('').rstrip('/')}; paths are "
                "relative to that folder, with / between folders; name another with images=FOLDER"
            ) from error
    if held.all():
        return data
    rows = data.index.to_numpy()[~held]
    if on_missing == "raise":
        raise ValueError(
            f"{where}: {len(rows)} image file(s) are missing, first {archive.describe(data['path'][rows[0]])} "
            f"({rows_named(rows)}); set images=FOLDER if they lie elsewhere, or on_missing_image=drop to leave these "
            "sketches out and count them"
        )
    dropped[NO_IMAGE] += len(rows)
    return _left(data[held], where, dropped)


def _left(data: pd.DataFrame, where: str, dropped: Mapping[str, int]) -> pd.DataFrame:
    if len(data) == 0:
        raise ValueError(f"{where}: no sketch is left ({', '.join(f'{n} × {r}' for r, n in dropped.items())})")
    return data


def _own_space(study: StudyFolder) -> dict[str, Any] | None:
    path = study.table("semantic_space")
    return None if path is None else {"embedding": path}


def _decode_options(settings: Mapping[str, Any], study: StudyFolder) -> DecodeOptions:
    try:
        return DecodeOptions(**settings)
    except TypeError as error:
        raise ValueError(f"{study.root / 'study.json'}: decode holds an unknown setting ({error})") from error
