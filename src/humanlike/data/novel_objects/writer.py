"""Image sets as files in the published layout: `meta-*.csv` and the PNGs that it names."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

from PIL import Image

from humanlike.data.novel_objects.backgrounds import Backgrounds
from humanlike.data.novel_objects.dataset import catch_images, high_variation_images, one_shot_images, warmup_images
from humanlike.data.object_learning import ImageSet
from humanlike.data.object_learning_files import (
    CATCH_META,
    HIGH_VARIATION_META,
    IMAGES,
    ONE_SHOT_META,
    WARMUP_META,
)
from humanlike.files import atomic_path, sha256_value, write_json, write_text

RECORD = "image_set.json"
RECORD_SCHEMA = "humanlike.image_set/1"


def write_image_set(folder: str | Path, images: ImageSet, meta: str) -> Path:
    """Write an image set as gray PNGs and a table that names them with their SHA-256.

    A killed run is continued: images that are there are kept, and the table is written when all are. A folder that
    holds another set under this name is refused.

    Args:
        folder: The folder of the experiment.
        images: The set.
        meta: Name of the table, `meta-<set>.csv`; images go to `images/<set>/<object>/`.

    Returns:
        Path of the table: all columns of the set's own, then `sha256` and `relpath`.

    Raises:
        ValueError: For another form of `meta`, or a folder with other images.
    """
    if not (meta.startswith("meta-") and meta.endswith(".csv")) or Path(meta).name != meta:
        raise ValueError(f"meta must be a file name of the form meta-<set>.csv, got {meta!r}")
    root = Path(folder).expanduser()
    below = Path(IMAGES) / meta.removeprefix("meta-").removesuffix(".csv")
    _claim(root / below, images)
    digests, paths = [], []
    for index, (name, category) in enumerate(zip(images.table["image_id"], images.table["category"], strict=True)):
        path = below / str(category) / str(name)
        digests.append(_write_png(root / path, images, index))
        paths.append(path.as_posix())
    table = images.table.assign(sha256=digests, relpath=paths)
    write_text(root / meta, table.to_csv(index=False))
    return root / meta


def write_novel_objects(
    folder: str | Path,
    subtasks: int = 64,
    images: int = 100,
    one_shot_subtasks: int = 32,
    seed: int = 0,
    size: int = 256,
    backgrounds: Backgrounds | None = None,
) -> list[Path]:
    """Write new stimuli for both experiments: all four image sets of the published layout, at its sizes by default.

    Args:
        folder: The folder; may hold a part of the same from a run that was killed.
        subtasks: Pairs of objects of Experiment 1.
        images: Images of each of them.
        one_shot_subtasks: Pairs of objects of the one-shot experiment; 0 leaves it out.
        seed: Global seed of objects, views and backgrounds.
        size: Side of the images in pixels.
        backgrounds: What stands behind the objects; default 1/f noise.

    Returns:
        The tables.
    """
    sets = {
        HIGH_VARIATION_META: high_variation_images(2 * subtasks, images, seed, size, backgrounds),
        WARMUP_META: warmup_images(seed=seed, size=size, backgrounds=backgrounds),
    }
    if one_shot_subtasks:
        sets[ONE_SHOT_META] = one_shot_images(2 * one_shot_subtasks, seed, size, backgrounds)
        sets[CATCH_META] = catch_images(sets[ONE_SHOT_META])
    return [write_image_set(folder, image_set, meta) for meta, image_set in sets.items()]


def _claim(folder: Path, images: ImageSet) -> None:
    """Say in the folder which images it will hold, or see that it says so already."""
    source = images.images
    digest = sha256_value([source.content_hash(i) for i in range(len(images))])
    record = {"schema": RECORD_SCHEMA, "images": len(images), "digest": digest}
    path = folder / RECORD
    if not path.is_file():
        if folder.is_dir() and any(folder.iterdir()):
            raise ValueError(f"{folder} holds files that are not from here; choose another folder")
        write_json(path, record)
        return
    if json.loads(path.read_text(encoding="utf-8")) != record:
        raise ValueError(
            f"{folder} holds another image set (other seed, size, number of images or version); "
            "choose another folder, or delete this one"
        )


def _write_png(path: Path, images: ImageSet, index: int) -> str:
    """Write an image unless it is there; its SHA-256."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    buffer = io.BytesIO()
    image: Image.Image = images.images.load(index).convert("L")
    image.save(buffer, "png")
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())
    return hashlib.sha256(buffer.getvalue()).hexdigest()
