"""Records of an object learning experiment: images of novel objects, subtasks, and people's choices.

Array legend: S sessions (or subtasks where said), T trials, N images of a subtask, C transformation conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from humanlike.data.object_learning_people import (
    People,
    PeopleConditions,
    PeopleCounts,
    PeopleSessions,
    SimulatedPeople,
    check_sessions,
)
from humanlike.types import ImageSource, SelectedImages

__all__ = [
    "CATCH_POSITIONS",
    "EXPERIMENTS",
    "HIGH_VARIATION",
    "NUM_TRIALS",
    "ONE_SHOT",
    "SUPPORT",
    "SUPPORT_TRIALS",
    "Condition",
    "ImageSet",
    "ObjectLearningData",
    "People",
    "PeopleConditions",
    "PeopleCounts",
    "PeopleSessions",
    "SimulatedPeople",
    "subtask_pair",
]

HIGH_VARIATION, ONE_SHOT = "high_variation", "one_shot"
EXPERIMENTS = (HIGH_VARIATION, ONE_SHOT)
NUM_TRIALS = {HIGH_VARIATION: 100, ONE_SHOT: 20}
SUPPORT = "original"
"""`transformation` of the one image of an object that its support and catch trials show."""
SUPPORT_TRIALS = 10
CATCH_POSITIONS = (9, 14, 19)
"""Trials (from 0) that show support images and may count as catch trials; which do depends on the convention."""


def subtask_pair(text: str) -> tuple[str, str]:
    """The two objects of a subtask "ObjA,ObjB", sorted.

    Raises:
        ValueError: When these are not two different names.

    Example:
        >>> subtask_pair("b, a")
        ('a', 'b')
    """
    parts = sorted(part.strip() for part in str(text).split(","))
    if len(parts) != 2 or parts[0] == parts[1] or "" in parts:
        raise ValueError(f"a subtask is two different objects, as in 'ObjectA,ObjectB', got {text!r}")
    return parts[0], parts[1]


class Condition(NamedTuple):
    """A transformation at one level, over which one-shot accuracy is averaged.

    Attributes:
        transformation: Its name, as in the metadata.
        level: Its level, in the transformation's own unit; rotations by absolute angle in degrees.
    """

    transformation: str
    level: float


@dataclass(frozen=True)
class ImageSet:
    """Images of novel objects.

    Attributes:
        name: Name of the image set.
        table: One row an image, in image order: `image_id` (unique), `category` (the object), optional columns of the
            pose (`rx, ry, rz` in degrees, `s` size, `u, v` position), and in one-shot sets `transformation`,
            `transformation_level`, `base_image_id` and `condition` (index into the experiment's conditions; -1 for
            support images and those that belong to no scored condition).
        images: Where pixels come from, in the order of `table`.
    """

    name: str
    table: pd.DataFrame
    images: ImageSource

    def __post_init__(self) -> None:
        missing = [c for c in ("image_id", "category") if c not in self.table.columns]
        if missing:
            raise ValueError(
                f"{self.name}: the image table lacks the column(s) {missing}; it needs image_id and category"
            )
        if len(self.table) == 0:
            raise ValueError(f"{self.name}: the image set is empty")
        if len(self.images) != len(self.table):
            raise ValueError(f"{self.name}: {len(self.table)} rows but {len(self.images)} images")
        repeated = self.table["image_id"].duplicated()
        if repeated.any():
            raise ValueError(
                f"{self.name}: image_id must be unique; {self.table['image_id'][repeated].iloc[0]!r} stands in more "
                "than one row"
            )

    def __len__(self) -> int:
        return len(self.table)

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the objects, sorted."""
        return tuple(sorted(set(self.table["category"])))

    def rows_of(self, category: str) -> np.ndarray:
        """(n,) int64 positions of an object's images, in the order of their ids.

        Raises:
            ValueError: When there are none.
        """
        rows = np.flatnonzero((self.table["category"] == category).to_numpy())
        if len(rows) == 0:
            raise ValueError(f"{self.name}: no image of object {category!r}; its objects are {self.categories[:5]} …")
        ids = self.table["image_id"].to_numpy(dtype=str)[rows]
        return rows[np.argsort(ids, kind="stable")].astype(np.int64)

    def select(self, rows: Sequence[int] | np.ndarray) -> ImageSet:
        """The same set with only the images at positions `rows`, in that order."""
        rows_n = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            table=self.table.iloc[rows_n].reset_index(drop=True),
            images=SelectedImages(self.images, tuple(int(r) for r in rows_n)),
        )


@dataclass(frozen=True)
class ObjectLearningData:
    """One experiment on the learning of novel objects.

    Attributes:
        name: Name of the data set, as written into results.
        experiment: "high_variation" or "one_shot".
        subtasks: Pairs of objects that people learned to tell apart.
        images: The images of the objects.
        warmup: Images of other objects, on which features are calibrated, or None.
        people: What is known of people, a recipe for simulated ones, or None.
        conditions: The C scored conditions of a one-shot experiment, else empty.
        num_trials: T, trials of a session.
        flags: Statements that must stand next to every score.
        source: One line that says where the data came from and its licence.
        simulated: True when the people are a simulation; every table and figure then says so.
        dropped: Reason → what was left out when reading.
    """

    name: str
    experiment: str
    subtasks: tuple[tuple[str, str], ...]
    images: ImageSet
    warmup: ImageSet | None = None
    people: People | None = None
    conditions: tuple[Condition, ...] = ()
    num_trials: int = 0
    flags: tuple[str, ...] = ()
    source: str = ""
    simulated: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.experiment not in EXPERIMENTS:
            raise ValueError(f"{self.name}: experiment must be one of {EXPERIMENTS}, got {self.experiment!r}")
        if self.num_trials == 0:
            object.__setattr__(self, "num_trials", NUM_TRIALS[self.experiment])
        check_subtasks(self.subtasks, self.images, self.name)
        check_stimuli(self)
        check_people(self)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def subtask_names(self) -> tuple[str, ...]:
        """Names of the subtasks, `ObjA,ObjB`."""
        return tuple(",".join(pair) for pair in self.subtasks)

    def subtask_rows(self, subtask: int) -> tuple[np.ndarray, np.ndarray]:
        """Image rows of a subtask, in the order in which its Gram matrix and its sessions number them.

        Args:
            subtask: Its index.

        Returns:
            (N,) int64 rows of the image table: in high-variation experiments the first object's images, then the
            second's; in one-shot experiments both support images, then the first object's test images, then the
            second's; each in the order of ids. And (N,) int64: 0 for the first object, 1 for the second.
        """
        rows = [self.images.rows_of(category) for category in self.subtasks[subtask]]
        all_N, side_N = np.concatenate(rows), np.repeat(np.arange(2), [len(r) for r in rows])
        if self.experiment == HIGH_VARIATION:
            return all_N, side_N
        test_N = (self.images.table["transformation"].to_numpy() != SUPPORT)[all_N]
        order_N = np.argsort(test_N, kind="stable")
        return all_N[order_N], side_N[order_N]

    def support_rows(self, subtask: int) -> np.ndarray:
        """(2,) int64 rows of the image table: the support image of either object of a one-shot subtask."""
        return self.subtask_rows(subtask)[0][:2]

    def condition_rows(self) -> np.ndarray:
        """(images,) int64 condition of every row of the image table; -1 where it has none."""
        if "condition" not in self.images.table.columns:
            return np.full(len(self.images), -1, np.int64)
        return self.images.table["condition"].to_numpy(np.int64)


def check_subtasks(subtasks: Sequence[tuple[str, str]], images: ImageSet, where: str) -> None:
    """Refuse subtasks that are not two different objects with images, or that stand twice.

    Raises:
        ValueError: Naming the subtask.
    """
    if not subtasks:
        raise ValueError(f"{where}: no subtask; an experiment needs at least one pair of objects")
    known = set(images.categories)
    for number, pair in enumerate(subtasks):
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"{where}: subtask {number} is {pair!r}; a subtask has two different objects")
        absent = [c for c in pair if c not in known]
        if absent:
            raise ValueError(f"{where}: subtask {number} ({','.join(pair)}): {images.name} has no image of {absent}")
    pairs = [frozenset(pair) for pair in subtasks]
    if len(set(pairs)) < len(pairs):
        again = next(p for i, p in enumerate(pairs) if p in pairs[:i])
        raise ValueError(f"{where}: the subtask {','.join(sorted(again))} stands twice")


def check_stimuli(data: ObjectLearningData) -> None:
    """Refuse experiments whose objects have too few images for a session.

    Raises:
        ValueError: Naming the object and what a session needs.
    """
    one_shot = data.experiment == ONE_SHOT
    if one_shot:
        needed = [c for c in ("transformation", "condition") if c not in data.images.table.columns]
        if needed:
            raise ValueError(f"{data.name}: a one-shot image table needs the column(s) {needed}")
        condition = data.condition_rows()
        if not data.conditions or condition.min() < -1 or condition.max() >= len(data.conditions):
            raise ValueError(f"{data.name}: condition must lie in -1 … {len(data.conditions) - 1}")
    count = data.images.table["category"].value_counts()
    for pair in data.subtasks:
        if one_shot:
            _check_one_shot(data, pair)
        elif int(count[list(pair)].sum()) < data.num_trials:
            raise ValueError(
                f"{data.name}: subtask {','.join(pair)} has {int(count[list(pair)].sum())} images for "
                f"{data.num_trials} trials without replacement"
            )


def _check_one_shot(data: ObjectLearningData, pair: tuple[str, str]) -> None:
    table = data.images.table
    for category in pair:
        support = table["transformation"][(table["category"] == category)] == SUPPORT
        tests = data.num_trials - SUPPORT_TRIALS - sum(p >= SUPPORT_TRIALS for p in CATCH_POSITIONS)
        if int(support.sum()) != 1:
            raise ValueError(
                f"{data.name}: object {category!r} has {int(support.sum())} support images (transformation "
                f"{SUPPORT!r}); it needs exactly one"
            )
        if int((~support).sum()) < tests:
            raise ValueError(
                f"{data.name}: object {category!r} has {int((~support).sum())} test images; a session may show {tests}"
            )


def check_people(data: ObjectLearningData) -> None:
    """Refuse people's data that do not fit the experiment.

    Raises:
        ValueError: Saying what does not fit.
    """
    people, S, T = data.people, len(data.subtasks), data.num_trials
    if isinstance(people, PeopleCounts) and people.k_ST.shape != (S, T):
        raise ValueError(f"{data.name}: counts of people have the shape {people.k_ST.shape}, expected {(S, T)}")
    if isinstance(people, PeopleConditions) and len(people.p_C) != len(data.conditions):
        raise ValueError(f"{data.name}: people's table has {len(people.p_C)} of {len(data.conditions)} conditions")
    if isinstance(people, PeopleSessions):
        check_sessions(people, S, T, data.experiment == HIGH_VARIATION, data.subtask_names, data.name)
