"""Object learning experiments from files in the published layout: that of Lee and DiCarlo, or a user's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from humanlike.data.object_learning import (
    EXPERIMENTS,
    HIGH_VARIATION,
    NUM_TRIALS,
    ONE_SHOT,
    Condition,
    ImageSet,
    ObjectLearningData,
    People,
    check_subtasks,
    subtask_pair,
)
from humanlike.data.object_learning_counts import counted_subtasks, counts_for, read_conditions, read_counts
from humanlike.data.object_learning_files import (
    CATCH_META,
    HIGH_VARIATION_META,
    HIGH_VARIATION_TRIALS,
    ONE_SHOT_META,
    ONE_SHOT_TRIALS,
    PACKED_IMAGES,
    WARMUP_META,
    need_files,
    unpack_images,
)
from humanlike.data.object_learning_images import only_categories, read_image_set, with_conditions
from humanlike.data.object_learning_part import Pairs, Part
from humanlike.data.object_learning_trials import people_from, read_trials
from humanlike.data.seva_checks import CountCheck, exactly, settle

META = {HIGH_VARIATION: HIGH_VARIATION_META, ONE_SHOT: ONE_SHOT_META}
TRIALS = {HIGH_VARIATION: HIGH_VARIATION_TRIALS, ONE_SHOT: ONE_SHOT_TRIALS}
PEOPLE = ("sessions", "counts", "none")
SOURCE = "Lee and DiCarlo, osf.io/pj6wm, MIT licence"
COUNTS = {
    HIGH_VARIATION: {"images": 12_800, "objects": 128, "subtasks": 64, "sessions": 3_199, "participants": 70},
    ONE_SHOT: {"images": 3_904, "objects": 64, "subtasks": 32, "sessions": 2_547, "scored conditions": 36},
}
"""What the published files hold; one subtask of Experiment 1 has 49 sessions, the others 50."""
WARMUP_IMAGES = 400


@dataclass(frozen=True)
class _Read:
    """What one folder holds, before a part of it is chosen."""

    images: ImageSet
    warmup: ImageSet | None
    conditions: tuple[Condition, ...]
    trials: pd.DataFrame | None
    dropped: Counter[str]


def hobj(
    root: str | Path,
    experiment: str = HIGH_VARIATION,
    people: str = "sessions",
    people_file: str | Path | None = None,
    subtasks: int | Sequence[str] | None = None,
    objects: Sequence[str] | None = None,
    sessions: int | None = None,
    verify: str = "sample",
    on_count: str = "raise",
    on_repeat: str = "raise",
    fetch: bool = False,
    mirrors: Sequence[str] = (),
    offline: bool | None = None,
) -> ObjectLearningData:
    """An experiment of Lee and DiCarlo from its published files.

    Args:
        root: Folder with the `meta-*.csv`, `behavior/` and `images/` (or `images.tar.gz`, or the zip of all).
        experiment: "high_variation" (64 subtasks × 100 trials) or "one_shot" (32 × 20).
        people: "sessions" (trial by trial), "counts" (published numbers alone, from `people_file`), or "none".
        people_file: Table of counts (high variation) or of accuracies a condition (one-shot).
        subtasks: Only these subtasks ("ObjA,ObjB"), or the first so many.
        objects: Only subtasks whose two objects are both among these.
        sessions: At most so many sessions of a subtask.
        verify: Images compared with their SHA-256: "sample" (64), "all", or "none".
        on_count: Counts that are not the published ones: "raise", or "warn" and flag.
        on_repeat: A participant did one subtask twice: "raise", or keep the "first" session and count.
        fetch: Fetch missing files from OSF.
        mirrors: Addresses asked before OSF.
        offline: True: fetch nothing.

    Raises:
        FileNotFoundError: Naming what is missing and how to get it.
        ValueError: Naming file and rows (from 1) of what cannot be used, or the counts that deviate.
    """
    _check(experiment, people)
    folder = Path(root).expanduser()
    needed = [META[experiment], WARMUP_META, PACKED_IMAGES]
    needed += [TRIALS[experiment]] if people == "sessions" else []
    needed += [CATCH_META] if experiment == HIGH_VARIATION else []
    need_files(folder, needed, fetch=fetch, mirrors=mirrors, offline=offline)
    read = _read(folder, experiment, people, verify)
    flags = settle(_checks(read, experiment), on_count, f"hobj {folder}")
    part = Part(subtasks, objects, sessions, on_repeat)
    data = _assemble(f"hobj_{experiment}", folder, experiment, read, people, people_file, part)
    return replace(data, flags=(*flags, *data.flags), source=SOURCE)


def object_experiment(
    root: str | Path,
    experiment: str = HIGH_VARIATION,
    people: str = "sessions",
    people_file: str | Path | None = None,
    subtasks: int | Sequence[str] | None = None,
    objects: Sequence[str] | None = None,
    sessions: int | None = None,
    verify: str = "sample",
    on_repeat: str = "raise",
    name: str | None = None,
    source: str = "",
) -> ObjectLearningData:
    """A user's own experiment, in a folder of the published layout; see `hobj` for the arguments.

    Without people, `subtasks` may name the pairs of objects; by default neighbours in alphabetic order are paired.

    Args:
        root: Folder with `meta-MutatorHighVarImageset.csv` or `meta-MutatorOneShotImageset.csv`, perhaps
            `meta-MutatorWarmupImageset.csv`, `behavior/` where there are people, and the images.
        experiment: See `hobj`.
        people: See `hobj`.
        people_file: See `hobj`.
        subtasks: See `hobj`.
        objects: See `hobj`.
        sessions: See `hobj`.
        verify: See `hobj`.
        on_repeat: See `hobj`.
        name: Name in results; default: the folder's.
        source: Where the data come from and their licence.

    Raises:
        FileNotFoundError: When metadata, trials or images are missing.
        ValueError: Naming file and rows (from 1) of what cannot be used.
    """
    _check(experiment, people)
    folder = Path(root).expanduser()
    if (folder / PACKED_IMAGES).is_file() and not (folder / "images").is_dir():
        unpack_images(folder)
    read = _read(folder, experiment, people, verify)
    part = Part(subtasks, objects, sessions, on_repeat)
    data = _assemble(name or folder.resolve().name, folder, experiment, read, people, people_file, part)
    return replace(data, source=source)


def _check(experiment: str, people: str) -> None:
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {EXPERIMENTS}, got {experiment!r}")
    if people not in PEOPLE:
        raise ValueError(f"people must be one of {PEOPLE}, got {people!r}")


def _read(folder: Path, experiment: str, people: str, verify: str) -> _Read:
    if not folder.is_dir():
        raise FileNotFoundError(f"object learning data: no folder {folder}")
    images = read_image_set(folder, META[experiment], experiment == ONE_SHOT, verify)
    conditions: tuple[Condition, ...] = ()
    if experiment == ONE_SHOT:
        images, conditions = with_conditions(images, f"image metadata {folder / META[experiment]}")
    warmup = read_image_set(folder, WARMUP_META, verify=verify) if (folder / WARMUP_META).is_file() else None
    dropped: Counter[str] = Counter()
    trials = read_trials(folder / TRIALS[experiment], experiment, dropped)[0] if people == "sessions" else None
    return _Read(images, warmup, conditions, trials, dropped)


def _checks(read: _Read, experiment: str) -> list[CountCheck]:
    """The published counts, of the whole files."""
    trials = read.trials
    table = read.images.table
    found: dict[str, int] = {"images": len(table), "objects": table["category"].nunique()}
    if trials is not None:
        found["subtasks"] = trials["subtask"].nunique()
        found["sessions"] = trials["session"].nunique()
        found["participants"] = trials["worker_id"].nunique()
    if experiment == ONE_SHOT:
        found["scored conditions"] = len(read.conditions)
    expected = COUNTS[experiment]
    checks = [exactly(what, expected[what], found[what]) for what in expected if what in found]
    warmup = 0 if read.warmup is None else len(read.warmup)
    checks.append(exactly("images for calibration", WARMUP_IMAGES, warmup))
    if trials is not None:
        trials_each = NUM_TRIALS[experiment]
        other = int((trials.groupby("session").size() != trials_each).sum())
        checks.append(exactly(f"sessions of another length than {trials_each} trials", 0, other))
    return checks


def _assemble(
    name: str,
    folder: Path,
    experiment: str,
    read: _Read,
    people: str,
    people_file: str | Path | None,
    part: Part,
) -> ObjectLearningData:
    """The experiment, or the part of it that was asked for."""
    counts = _counts_table(experiment, people, people_file)
    every = _all_subtasks(read, counts, part)
    chosen = part.choose(every, name)
    if part.sessions is not None and people != "sessions":
        raise ValueError(f"sessions={part.sessions} needs people=sessions, got people={people}")
    check_subtasks(chosen, read.images, name)
    images, row_of_N = only_categories(read.images, [c for pair in chosen for c in pair])
    found: People | None = None
    trials: int | None = NUM_TRIALS[experiment] if experiment == ONE_SHOT else None
    if read.trials is not None:
        where = f"trials {folder / TRIALS[experiment]}"
        found = people_from(read.trials, read.images, chosen, trials, experiment, where, part, read.dropped)
        found = replace(found, image_ST=row_of_N[found.image_ST])
        trials = found.correct_ST.shape[1]
    elif counts is not None:
        found = counts_for(counts, chosen, f"counts of people {people_file}")
        trials = found.k_ST.shape[1]
    elif people == "counts":
        found = read_conditions(str(people_file), read.conditions)
    if trials is None:
        number = images.table["category"].value_counts()
        trials = min(NUM_TRIALS[experiment], *(int(number[list(pair)].sum()) for pair in chosen))
    flags = ["human_values_digitised"] if people == "counts" and experiment == ONE_SHOT else []
    flags += ["within_session_correlation_ignored"] if counts is not None else []
    flags += ["no_people"] if people == "none" else []
    if counts is not None and len(every) < len(counts):
        flags.append(f"part of the people: {len(every)} of {len(counts)} subtasks have images")
    flags += part.flags(every, chosen)
    return ObjectLearningData(
        name=name,
        experiment=experiment,
        subtasks=chosen,
        images=images,
        warmup=read.warmup,
        people=found,
        conditions=read.conditions,
        num_trials=trials,
        flags=tuple(flags),
        dropped=dict(read.dropped) | dict(getattr(found, "dropped", {})),
    )


def _counts_table(experiment: str, people: str, people_file: str | Path | None) -> pd.DataFrame | None:
    if people != "counts":
        if people_file is not None:
            raise ValueError(f"people_file={people_file} is read with people=counts only, got people={people}")
        return None
    if people_file is None:
        raise ValueError("people=counts needs people_file=TABLE, the published numbers of people")
    return read_counts(people_file) if experiment == HIGH_VARIATION else None


def _all_subtasks(read: _Read, counts: pd.DataFrame | None, part: Part) -> Pairs:
    """Every subtask that people did, or the pairs that are named, or neighbours in alphabetic order."""
    if read.trials is not None:
        return tuple(sorted(subtask_pair(text) for text in read.trials["subtask"].unique()))
    names = read.images.categories
    if counts is not None:
        found = counted_subtasks(counts, names)
        if not found:
            raise ValueError(
                f"the counts of people name no pair of objects of {read.images.name}: they have "
                f"{counts['subtask'].iloc[0]} …, the images {', '.join(names[:3])} …"
            )
        return found
    if part.named is None and len(names) % 2:
        raise ValueError(
            f"{read.images.name} has {len(names)} objects, an odd number, and one would have no partner; name the "
            "pairs with subtasks=['ObjA,ObjB', …]"
        )
    return part.named or tuple(zip(names[::2], names[1::2], strict=True))
