"""Both experiments in exactly the published layout, made small: every file, every column."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

TRIALS = 10
LEVELS = {"blur": (0.007812, 0.0625), "inplanerotation": (45.0, 90.0), "noise": (0.125,), "combinednat": (1.0,)}


def image_rows(root, image_set, names, **columns):
    """Draw one PNG an image and give the rows of its metadata."""
    rows = []
    for i, (image_id, category) in enumerate(names):
        relpath = f"images/{image_set}/{category}/{image_id}"
        path = root / relpath
        path.parent.mkdir(parents=True, exist_ok=True)
        seed = int.from_bytes(hashlib.sha256(image_id.encode()).digest()[:4], "little")
        pixels = np.random.default_rng(seed).integers(0, 256, (16, 16), dtype=np.uint8)
        Image.fromarray(pixels, "L").save(path)
        rows.append(
            {
                "image_id": image_id,
                "category": category,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                **{name: values[i] for name, values in columns.items()},
                "relpath": relpath,
                "original_category_name": f"MutatorB2000_{i}",
                "original_filename": f"MutatorB2000_{i}.png",
            }
        )
    return rows


def trial_rows(assignment, worker, subtask, images, kinds, start, slot=None, rng=None):
    """The rows of one session, in the columns of the published file."""
    rows = []
    for t, (image, kind) in enumerate(zip(images, kinds, strict=True)):
        row = {"trial": t, "assignment_id": assignment}
        if slot is not None:
            row["slot"] = slot
        row |= {
            "worker_id": worker,
            "subtask": subtask,
            "image_id": image,
            "trial_type": kind,
            "stimulus_duration_msec": 200,
            "reaction_time_msec": float(rng.integers(200, 900)),
            "timed_out": False,
            "perf": bool(rng.random() < 0.7),
            "timestamp_start": f"2019-01-{start + 1:02d}T00:00:{t:02d}",
        }
        rows.append(row)
    return rows


def poses(number, rng):
    """Columns of the pose, as published."""
    angles = {name: np.round(rng.uniform(0, 360, number), 2) for name in ("rx", "ry", "rz")}
    places = {name: np.round(rng.uniform(-0.4, 0.4, number), 2) for name in ("u", "v")}
    return {**angles, "s": np.round(rng.uniform(0.5, 1, number), 2), **places}


def build_high_variation(root, rng):
    """Four objects, six images each; two subtasks, three participants, ten trials and a probe after the fourth."""
    objects = [f"MutatorObject{i:03d}" for i in range(4)]
    names = [(f"{o}-Image{j:02d}.png", o) for o in objects for j in range(6)]
    meta = image_rows(root, "MutatorHighVarImageset", names, **poses(len(names), rng))
    pd.DataFrame(meta).to_csv(root / "meta-MutatorHighVarImageset.csv", index=False)
    rows = []
    for s, pair in enumerate((("MutatorObject002", "MutatorObject003"), ("MutatorObject000", "MutatorObject001"))):
        pool = [image for image, category in names if category in pair]
        for w in range(3):
            shown = [pool[i] for i in rng.permutation(len(pool))[:TRIALS]]
            images = [*shown[:4], "CatchImage0.png", *shown[4:]]
            kinds = ["main"] * 4 + ["probe"] + ["main"] * 6
            rows += trial_rows(f"ASSIGN{s}{w}", f"worker{w}", ",".join(pair), images, kinds, s * 3 + w, rng=rng)
    return pd.DataFrame(rows)


def build_one_shot(root, rng):
    """Four objects, a support image and nine others each; two subtasks, two sessions of each of two assignments."""
    objects = [f"MutatorOneshotObject{i:02d}" for i in range(4)]
    names, kinds, levels = [], [], []
    for o in objects:
        names.append((f"{o}-original.png", o))
        kinds.append("original")
        levels.append(np.nan)
        for kind, values in LEVELS.items():
            for value in values:
                for j in range(3 if kind == "noise" else 2):
                    names.append((f"{o}-{kind}-{value}-{j}.png", o))
                    kinds.append(kind)
                    levels.append(-value if kind == "inplanerotation" and j else value)
    columns = {
        "base_image_id": [f"{o}-original.png" for _, o in names],
        "transformation": kinds,
        "transformation_level": levels,
    }
    meta = image_rows(root, "MutatorOneShotImageset", names, **columns)
    pd.DataFrame(meta).to_csv(root / "meta-MutatorOneShotImageset.csv", index=False)
    rows = []
    for w in range(2):
        for slot in range(2):
            pair = objects[2 * slot : 2 * slot + 2]
            pool = [image for image, category in names if category in pair and "original" not in image]
            tests = iter(rng.permutation(pool))
            support = [t < 10 or t in (14, 19) for t in range(20)]
            images = [f"{pair[t % 2]}-original.png" if s else str(next(tests)) for t, s in enumerate(support)]
            kind = ["catch" if t in (9, 14, 19) else "support" if t < 9 else "generalization" for t in range(20)]
            rows += trial_rows(f"ONE{w}", f"worker{w}", ",".join(pair), images, kind, w, slot=slot, rng=rng)
    return pd.DataFrame(rows)


def build(root):
    """The whole folder."""
    rng = np.random.default_rng(7)
    root.mkdir(parents=True, exist_ok=True)
    (root / "behavior").mkdir()
    build_high_variation(root, rng).to_csv(root / "behavior/human-behavior-highvar-subtasks.csv", index=False)
    build_one_shot(root, rng).to_csv(root / "behavior/human-behavior-oneshot-subtasks.csv", index=False)
    warmup = [(f"MutatorWarmupObject{o}-{j}.png", f"MutatorWarmupObject{o}") for o in range(2) for j in range(3)]
    pd.DataFrame(image_rows(root, "MutatorWarmupImageset", warmup)).to_csv(
        root / "meta-MutatorWarmupImageset.csv", index=False
    )
    catch = image_rows(root, "CatchImageset", [("CatchImage0.png", "x"), ("CatchImage1.png", "y")])
    pd.DataFrame(catch).drop(columns="category").to_csv(root / "meta-CatchImageset.csv", index=False)
    return root


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    """The folder; not to be changed."""
    return build(tmp_path_factory.mktemp("hobj") / "data")


@pytest.fixture
def changed(published, tmp_path) -> Path:
    """A copy of the folder for a test to change."""
    return Path(shutil.copytree(published, tmp_path / "data"))


@pytest.fixture
def edit(changed):
    """Change one table of the copy: `edit("behavior/….csv", lambda table: …)`; gives the folder."""

    def edit(name, change):
        table = pd.read_csv(changed / name, dtype={"perf": object})
        result = change(table)
        (table if result is None else result).to_csv(changed / name, index=False)
        return changed

    return edit
