"""Frozen records that cross folders.

Shape legend used in the whole package: N items (one sketch, one image), K concepts that occur as targets, T conditions,
C cells (concept × condition), L labels, D features, B batch or bootstrap replicates, J source images of a concept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from PIL import Image

SKETCH_COLUMNS = ("sketch_id", "concept", "condition", "image_id")
GUESS_COLUMNS = tuple(f"guess_{i}" for i in range(1, 6))


@runtime_checkable
class ImageSource(Protocol):
    """Images of a data set, addressed by item index."""

    def __len__(self) -> int: ...

    def load(self, index: int) -> Image.Image:
        """Item `index` as an RGB image composited on the stated background."""

    def content_hash(self, index: int) -> str:
        """Hex digest that changes whenever the pixels of the item can change."""

    def describe(self, index: int) -> str:
        """Where the item comes from (a file, a row, a stroke program), for error messages."""


@runtime_checkable
class ImageItems(Protocol):
    """A named set of images: what features are extracted from."""

    @property
    def name(self) -> str:
        """Name in results and messages."""

    @property
    def images(self) -> ImageSource:
        """Where pixels come from."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Responses:
    """People's answers, one row a judgment of one sketch by one participant.

    Attributes:
        table: Columns `participant`, `sketch_id` and `guess_1` … `guess_5` (label names in the order given; missing
            guesses are None). `guess_1` is never missing.
        simulated: True when the "people" are a simulation; every table and figure then says so.
        dropped: Reason → number of rows that were left out when reading.
    """

    table: pd.DataFrame
    simulated: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = [c for c in ("participant", "sketch_id", *GUESS_COLUMNS) if c not in self.table.columns]
        if missing:
            raise ValueError(
                f"the response table lacks the column(s) {missing}; it needs participant, sketch_id and "
                f"guess_1 … guess_5 (columns found: {list(self.table.columns)})"
            )


@dataclass(frozen=True)
class Sketches:
    """A data set of sketches (or any labelled images) with everything that is known about it.

    Attributes:
        name: Name of the data set, as written into results.
        table: One row an item, in item order: `sketch_id` (unique), `concept` (a member of `labels`), `condition`
            (float; seconds, strokes or 0 where there is one condition only), `image_id` (the source: items that come
            from one photograph, drawing or doodle share it and never stand on both sides of a fold), and optional
            columns such as `num_strokes` or `path`.
        labels: The L label names in label order; the readout and all response distributions use this order.
        images: Where pixels come from.
        condition_unit: "s", "strokes", … or "" where there is one condition only.
        semantic_space: (L, D) embedding rows in label order, or None.
        responses: People's answers, or None.
        elements: Optional table `sketch_id, element, drawn` (bool) of commonsense elements and whether they are drawn.
        dropped: Reason → number of items left out when reading.
        flags: Statements that must stand next to every score (for example "simulated_participants").
        source: One line that says where the data came from and its licence.
    """

    name: str
    table: pd.DataFrame
    labels: tuple[str, ...]
    images: ImageSource
    condition_unit: str = ""
    semantic_space: np.ndarray | None = None
    responses: Responses | None = None
    elements: pd.DataFrame | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        missing = [c for c in SKETCH_COLUMNS if c not in self.table.columns]
        if missing:
            raise ValueError(f"{self.name}: the sketch table lacks the column(s) {missing}; it needs {SKETCH_COLUMNS}")
        if len(self.table) == 0:
            raise ValueError(f"{self.name}: the data set holds no items")
        if len(self.images) != len(self.table):
            raise ValueError(f"{self.name}: {len(self.table)} rows but {len(self.images)} images")
        duplicates = self.table["sketch_id"][self.table["sketch_id"].duplicated()].unique()
        if len(duplicates):
            raise ValueError(
                f"{self.name}: sketch_id must be unique; {len(duplicates)} occur more than once, "
                f"for example {list(duplicates[:3])}"
            )
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"{self.name}: the label list has duplicates")
        unknown = sorted(set(self.table["concept"]) - set(self.labels))
        if unknown:
            raise ValueError(f"{self.name}: {len(unknown)} concept(s) are not in the label list: {unknown[:5]}")
        condition = pd.to_numeric(self.table["condition"], errors="coerce")
        if condition.isna().any():
            row = int(np.flatnonzero(condition.isna())[0])
            raise ValueError(
                f"{self.name}: condition of row {row} ({self.table['sketch_id'].iloc[row]}) is "
                f"{self.table['condition'].iloc[row]!r}; conditions are numbers (seconds, strokes)"
            )
        if self.semantic_space is not None and len(self.semantic_space) != len(self.labels):
            raise ValueError(
                f"{self.name}: the semantic space has {len(self.semantic_space)} rows for {len(self.labels)} labels"
            )

    def __len__(self) -> int:
        return len(self.table)

    @property
    def target_N(self) -> np.ndarray:
        """(N,) int64 label index of every item's concept."""
        position = {label: i for i, label in enumerate(self.labels)}
        return self.table["concept"].map(position).to_numpy(np.int64)

    def select(self, rows: Sequence[int] | np.ndarray) -> Sketches:
        """The same data set with only the items at positions `rows`, in that order."""
        from dataclasses import replace

        rows_n = np.asarray(rows, dtype=np.int64)
        table = self.table.iloc[rows_n].reset_index(drop=True)
        ids = set(table["sketch_id"])
        responses = self.responses
        if responses is not None:
            responses = replace(
                responses,
                table=responses.table[responses.table["sketch_id"].isin(ids)].reset_index(drop=True),
            )
        elements = self.elements
        if elements is not None:
            elements = elements[elements["sketch_id"].isin(ids)].reset_index(drop=True)
        return replace(
            self,
            table=table,
            images=SelectedImages(self.images, tuple(int(r) for r in rows_n)),
            responses=responses,
            elements=elements,
        )


@dataclass(frozen=True)
class SelectedImages:
    """A subset of an ImageSource, in a given order."""

    base: ImageSource
    rows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def load(self, index: int) -> Image.Image:
        """See ImageSource."""
        return self.base.load(self.rows[index])

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return self.base.content_hash(self.rows[index])

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return self.base.describe(self.rows[index])


@dataclass(frozen=True)
class Features:
    """Activations of one layer for a data set.

    Attributes:
        f_ND: (N', D) float32 rows of the items that could be read.
        rows: (N',) item index of every row, increasing.
        failed: Item index → why it could not be read (only with `on_bad_image=skip`).
        layer: Name of the layer.
        hashes: `weights`, `transform`, `data`, `features` hex digests.
        info: Facts about the extraction: images per second, seconds, cache hits, micro-batch size, …
    """

    f_ND: np.ndarray
    rows: np.ndarray
    failed: Mapping[int, str]
    layer: str
    hashes: Mapping[str, str]
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoreValue:
    """One number of a score with its uncertainty; fields that the data cannot give are None, never invented."""

    value: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    ceiling: float | None = None
    ceiling_ci: tuple[float, float] | None = None
    n: int | None = None
    unit: str = ""


@dataclass(frozen=True)
class BenchmarkResult:
    """What a benchmark computed, before it is written anywhere.

    Attributes:
        scores: Score name → value; `TITLES` and `MEANINGS` in `humanlike.reports.wording` have the names in words.
        cells: One row a cell: `cell, concept, condition, n_items`, then a column a metric and one with `_people`.
        items: One row an item: id, condition, target, top-1, probability of the target, per-item metrics, `error`.
        conditions: One row a condition: means and s.e.m. of model and people.
        counts: `items_total`, `items_used`, `items_failed`, and others.
        flags: Statements that must stand next to the scores.
        protocol: Name of the preset and the value of every switch.
        details: Anything else worth keeping: readout certificate, replicates' summary, baselines.
        tables: Name → further table, written to a file of its own.
    """

    scores: Mapping[str, ScoreValue]
    cells: pd.DataFrame
    items: pd.DataFrame
    conditions: pd.DataFrame
    counts: Mapping[str, int]
    flags: tuple[str, ...] = ()
    protocol: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """A finished evaluation: schema "humanlike.score/1", see `score.json` in a run's folder."""

    benchmark: str
    benchmark_version: str
    dataset: str
    backbone: str
    layer: str
    result: BenchmarkResult
    seeds: Mapping[str, int]
    hashes: Mapping[str, str]
    versions: Mapping[str, str]
    started: str
    seconds: float
    digest: str
    run_dir: str | None = None

    @property
    def scores(self) -> Mapping[str, ScoreValue]:
        """Score name → value."""
        return self.result.scores

    def __getitem__(self, name: str) -> float | None:
        """The value of score `name`."""
        if name not in self.result.scores:
            raise KeyError(f"no score {name!r}; this run has {sorted(self.result.scores)}")
        return self.result.scores[name].value
