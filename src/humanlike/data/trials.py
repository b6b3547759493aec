"""Trial files of recognition experiments: who saw which image, what it showed, what they answered.

The columns are those of the published "model-vs-human" data (Geirhos et al. 2021): `subj, object_response, category`
and `imagename` or `stimulus`, perhaps `dataset, session, trial, rt, condition`; a model's own answers come in the same
columns.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pandas as pd
from PIL import Image

from humanlike.data.archives import open_archive
from humanlike.data.images import BadImageError, DecodeOptions, ImageFiles
from humanlike.data.labels import label_order
from humanlike.files import sha256_value
from humanlike.types import GUESS_COLUMNS, ImageSource, Responses, Sketches

NO_ANSWER = "na"
"""What stands in place of an answer that did not come in time; it counts as wrong."""

STIMULUS = "stimulus"
ON_REPEAT = ("raise", "first")
_ALIASES = {"subject": "subj", "participant": "subj"}
_NEEDED = ("subj", "object_response", "category")
_PREFIX = re.compile(r"\d{4,}_[^_]+_[^_]+_(?=.)")  # only a trial number is padded to four digits
_NUMBER = re.compile(r"[^\d+-]*([+-]?\d+(?:\.\d+)?)")


def stimulus_of(imagename: str) -> str:
    """The part of an `imagename` that is the same for everybody: trial number, experiment and subject are taken off.

    Example:
        >>> stimulus_of("0001_edg_s01_0_oven_00_oven10.png"), stimulus_of("0_oven_00_oven10.png")
        ('0_oven_00_oven10.png', '0_oven_00_oven10.png')
    """
    return _PREFIX.sub("", imagename, count=1) if _PREFIX.match(imagename) else imagename


def read_trials(path: str | Path) -> pd.DataFrame:
    """Read and check a trial file.

    Args:
        path: Parquet or CSV (perhaps compressed) with the columns above; spelling in capitals and `subject` for `subj`
            are understood.

    Returns:
        Texts `subj, stimulus, object_response, category, condition` (condition "0" where there is no such column) and
        `row`, the row in the file counted from 1 below the heading; further columns of the file stay.

    Raises:
        FileNotFoundError: No such file.
        ValueError: It is no table, lacks a column, or an entry is empty; file and row are named.
    """
    file = Path(path).expanduser()
    table = _read_table(file).rename(columns=lambda c: str(c).strip().lower())
    table = table.rename(columns={a: b for a, b in _ALIASES.items() if b not in table.columns})
    missing = [c for c in _NEEDED if c not in table.columns]
    if missing or not {STIMULUS, "imagename"} & set(table.columns):
        raise ValueError(
            f"{file}: a trial file needs the columns {', '.join(_NEEDED)} and imagename or stimulus; "
            f"it has {list(table.columns)}"
        )
    table["row"] = range(1, len(table) + 1)
    if STIMULUS not in table.columns:
        table[STIMULUS] = table["imagename"].astype(str).map(stimulus_of)
    table["condition"] = table["condition"] if "condition" in table.columns else "0"
    if table.empty:
        raise ValueError(f"{file} holds no trial")
    for column in (*_NEEDED, STIMULUS, "condition"):
        empty = table[column].isna() | (table[column].astype(str).str.strip() == "")
        if empty.any():
            hint = f"; a missing answer is written {NO_ANSWER!r}" if column == "object_response" else ""
            raise ValueError(f"{file}: {column} is empty in row {table['row'][empty].iloc[0]}{hint}")
        table[column] = table[column].astype(str).str.strip()
    return table.reset_index(drop=True)


def trials(
    root: str | Path,
    experiment: str | None = None,
    images: str | Path | None = None,
    labels: Sequence[str] | None = None,
    condition_values: Mapping[str, float] | None = None,
    condition_unit: str = "",
    on_repeat: str = "raise",
    background: str = "white",
    name: str | None = None,
    source: str = "",
) -> Sketches:
    """People's trials as a data set, with or without the images they saw.

    Args:
        root: Trial file of people; see `read_trials`.
        experiment: Which value of its column `dataset` to keep; needed where the file holds several.
        images: Folder or zip with the images, named as `stimulus` or `imagename`; None: answers alone are compared.
        labels: Label order; default: the categories, sorted.
        condition_values: Condition → number. Without it a condition is the first number in its name ("c30" is 30).
        condition_unit: Unit of the conditions.
        on_repeat: A person who answered one stimulus twice: "raise" (two people may share an id), or keep the "first"
            in the order of the file and count the others.
        background: Colour under transparent pixels.
        name: Name in results; default: the experiment, or the file's name.
        source: Where the data came from and its licence.

    Returns:
        One item a stimulus (`sketch_id` is the stimulus); a missing answer stands as "na" in the responses.

    Raises:
        FileNotFoundError: The file or the images are missing.
        ValueError: See `read_trials`; also for answers that are no label, and stimuli told in two ways.

    References:
        Geirhos et al. (2021), "Partial success in closing the gap between human and machine vision".
    """
    table = _one_experiment(read_trials(root), experiment, str(root))
    name = name or experiment or Path(root).stem
    kept, repeated = without_repeats(table, on_repeat, str(root))
    items = _stimuli(kept, condition_values, str(root))
    order = label_order(name, items["concept"], labels)
    check_answers(kept, order, str(root))
    return Sketches(
        name=name,
        table=items,
        labels=order,
        images=AbsentImages(tuple(items["sketch_id"])) if images is None else _find_images(images, items, background),
        condition_unit=condition_unit,
        responses=people_responses(kept, kept[STIMULUS], repeated),
        source=source or f"trials in {root}",
    )


def people_responses(table: pd.DataFrame, sketch_id: pd.Series, repeated: int = 0) -> Responses:
    """Trials as responses, one guess each; `sketch_id` names the item of every trial."""
    answers = pd.DataFrame(
        {
            "participant": table["subj"].to_numpy(object),
            "sketch_id": sketch_id.to_numpy(object),
            "guess_1": table["object_response"].to_numpy(object),
            **{column: None for column in GUESS_COLUMNS[1:]},
        }
    )
    return Responses(answers, dropped={"repeated trials": repeated} if repeated else {})


def without_repeats(table: pd.DataFrame, on_repeat: str, where: str) -> tuple[pd.DataFrame, int]:
    """Trials with one answer a person and stimulus, and how many were left out; see `trials`."""
    if on_repeat not in ON_REPEAT:
        raise ValueError(f"on_repeat must be one of {ON_REPEAT}, got {on_repeat!r}")
    again = table.duplicated(["subj", STIMULUS])
    if again.any() and on_repeat == "raise":
        second = table[again].iloc[0]
        same = (table["subj"] == second["subj"]) & (table[STIMULUS] == second[STIMULUS])
        raise ValueError(
            f"{where}: {second['subj']!r} answered {second[STIMULUS]!r} in rows {table['row'][same].tolist()[:5]} "
            f"({int(again.sum())} repeats in all); give two people two ids, or set on_repeat=first"
        )
    return table[~again].reset_index(drop=True), int(again.sum())


def check_answers(table: pd.DataFrame, labels: Sequence[str], where: str) -> None:
    """Refuse answers that are neither a label nor "na", with their rows and the nearest label."""
    if NO_ANSWER in labels:
        raise ValueError(f"{where}: {NO_ANSWER!r} is the word for a missing answer and cannot be a label")
    unknown = ~table["object_response"].isin([*labels, NO_ANSWER])
    if unknown.any():
        word = str(table["object_response"][unknown].iloc[0])
        folded = {label.casefold(): label for label in (*labels, NO_ANSWER)}
        near = [folded[n] for n in difflib.get_close_matches(word.casefold(), folded, n=2)]
        hint = f"nearest label: {' or '.join(near)}" if near else f"labels: {', '.join(labels[:20])}"
        rows = table["row"][unknown].tolist()
        raise ValueError(
            f"{where}: {len(rows)} answer(s) are no label, first {word!r} in row {rows[0]} (rows "
            f"{', '.join(map(str, rows[:10]))}{', …' if len(rows) > 10 else ''}); {hint}"
        )


@dataclass(frozen=True)
class AbsentImages:
    """Stands where a study is known by its answers alone.

    Attributes:
        names: N names of the stimuli.
    """

    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def load(self, index: int) -> Image.Image:
        """Always raises BadImageError with the way out."""
        raise BadImageError(
            self.describe(index),
            "this data set holds answers without images; give dataset.images=FOLDER, or score a model's recorded "
            "answers with backbone=recorded backbone.path=FILE",
        )

    def content_hash(self, index: int) -> str:
        """Hex digest of the stimulus's name."""
        return sha256_value(["no image", self.names[index]])

    def describe(self, index: int) -> str:
        """The stimulus's name."""
        return f"stimulus {self.names[index]}"


def _read_table(file: Path) -> pd.DataFrame:
    if not file.is_file():
        raise FileNotFoundError(f"there is no trial file {file}; give a Parquet or CSV file")
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(file)
        return pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (ValueError, OSError) as error:  # parser, encoding and Arrow errors are ValueErrors
        raise ValueError(f"{file}: cannot be read as a table ({str(error).splitlines()[0]})") from error


def _one_experiment(table: pd.DataFrame, experiment: str | None, where: str) -> pd.DataFrame:
    known = sorted(table["dataset"].astype(str).unique()) if "dataset" in table.columns else []
    if experiment is None and len(known) > 1:
        raise ValueError(f"{where} holds the experiments {', '.join(known)}; say which with experiment=…")
    if experiment is None or not known:
        return table
    if experiment not in known:
        near = difflib.get_close_matches(experiment, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{where} holds no experiment {experiment!r}; it has {', '.join(known)}{hint}")
    return table[table["dataset"].astype(str) == experiment].reset_index(drop=True)


def _stimuli(table: pd.DataFrame, values: Mapping[str, float] | None, where: str) -> pd.DataFrame:
    """One row a stimulus: `sketch_id, concept, condition, image_id, condition_name, stimulus`."""
    for column in ("category", "condition"):
        told = table.groupby(STIMULUS, sort=True)[column].nunique()
        if (told > 1).any():
            twice = str(told.index[told > 1][0])
            rows = table[table[STIMULUS] == twice].drop_duplicates(column)
            raise ValueError(
                f"{where}: stimulus {twice!r} has {column} {rows[column].tolist()} in rows {rows['row'].tolist()}; "
                "a stimulus has one"
            )
    first = table.drop_duplicates(STIMULUS).sort_values(STIMULUS, ignore_index=True)
    numbers = {text: _condition(text, values, where) for text in first["condition"].unique()}
    if len(set(numbers.values())) < len(numbers):
        raise ValueError(f"{where}: two conditions have one number ({numbers}); give condition_values")
    return pd.DataFrame(
        {
            "sketch_id": first[STIMULUS],
            "concept": first["category"],
            "condition": first["condition"].map(numbers).astype(float),
            "image_id": first[STIMULUS],
            "condition_name": first["condition"],
            STIMULUS: first[STIMULUS],
        }
    )


def _condition(text: str, values: Mapping[str, float] | None, where: str) -> float:
    match = _NUMBER.match(text)
    if (values is None and match is None) or (values is not None and text not in values):
        known = "" if values is None else f", which holds {sorted(values)}"
        raise ValueError(f"{where}: condition {text!r} needs a number in condition_values{known}")
    return float(values[text]) if values is not None else float(match[1])  # type: ignore[index]


def _find_images(root: str | Path, items: pd.DataFrame, background: str) -> ImageSource:
    archive = open_archive(root)
    by_stimulus = {stimulus_of(PurePosixPath(name).name): name for name in archive.names()}
    missing = [s for s in items["sketch_id"] if s not in by_stimulus]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of {len(items)} stimuli have no image in {root}, first {missing[0]!r}; images are named "
            "as the column stimulus or imagename"
        )
    names = tuple(by_stimulus[s] for s in items["sketch_id"])
    return ImageFiles(names, archive, DecodeOptions(background=background))
