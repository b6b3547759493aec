from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from humanlike.data.novel_objects import (
    HighVariationImages,
    PhotographBackgrounds,
    catch_images,
    high_variation_images,
    one_shot_images,
    warmup_images,
    write_image_set,
    write_novel_objects,
)
from humanlike.data.novel_objects.rotations import Angles, pose_matrix
from humanlike.data.object_learning_images import read_image_set
from humanlike.types import ImageSource


def test_an_image_depends_on_its_address_alone(high_variation):
    pictures = [np.asarray(high_variation.images.load(i)) for i in range(len(high_variation))]
    backwards = [np.asarray(high_variation.images.load(i)) for i in reversed(range(len(high_variation)))]
    for first, second in zip(pictures, reversed(backwards), strict=True):
        np.testing.assert_array_equal(first, second)
    small = high_variation_images(objects=2, images=3)
    for row, image_id in enumerate(small.table["image_id"]):
        at = list(high_variation.table["image_id"]).index(image_id)
        np.testing.assert_array_equal(np.asarray(small.images.load(row)), pictures[at])
        assert small.images.content_hash(row) == high_variation.images.content_hash(at)
    other = high_variation_images(objects=2, images=3, seed=1)
    assert (np.asarray(other.images.load(0)) != pictures[0]).any()
    assert other.images.content_hash(0) != high_variation.images.content_hash(0)
    assert len({high_variation.images.content_hash(i) for i in range(24)}) == 24


def test_pixels_are_the_same_in_another_process(high_variation):
    code = (
        "import hashlib; from humanlike.data.novel_objects import high_variation_images; "
        "s = high_variation_images(4, 6); print(hashlib.sha256(s.images.load(13).tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(high_variation.images.load(13).tobytes()).hexdigest()


def test_sources_are_image_sources(high_variation, one_shot):
    for images in (high_variation, one_shot):
        assert isinstance(images.images, ImageSource)
        picture = images.images.load(1)
        assert (picture.mode, picture.size) == ("RGB", (256, 256))
        assert images.images.describe(1).startswith(images.table["category"].iloc[1])


def test_views_fill_the_stated_ranges():
    images = high_variation_images(objects=10, images=100, size=16)
    table = images.table
    for column, law in (
        ("s", stats.uniform(0.5, 0.5)),
        ("u", stats.uniform(-0.4, 0.8)),
        ("v", stats.uniform(-0.4, 0.8)),
        ("ry", stats.uniform(0, 360)),
        ("rz", stats.uniform(0, 360)),
    ):
        assert stats.kstest(table[column], law.cdf).pvalue > 1e-3
    assert stats.kstest(np.cos(np.deg2rad(table["rx"])), stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_the_table_gives_the_pose_that_is_shown(high_variation, one_shot):
    for images in (high_variation, one_shot):
        for row in (0, 5, 20):
            angles = Angles(*(float(images.table[c].iloc[row]) for c in ("rx", "ry", "rz")))
            view = images.images.view(row)
            roll = np.deg2rad(view.roll)
            plane = np.array([[np.cos(roll), -np.sin(roll), 0], [np.sin(roll), np.cos(roll), 0], [0, 0, 1]])
            np.testing.assert_allclose(pose_matrix(angles), plane @ view.pose, atol=1e-9)


def test_objects_are_visible_and_of_the_stated_size(high_variation):
    source = high_variation.images
    assert isinstance(source, HighVariationImages)
    for i in range(len(source)):
        cover, view = source.layer(i).cover_HW, source.view(i)
        rows, columns = np.nonzero(cover)
        assert (cover > 0.5).sum() > 80
        assert np.ptp(rows) <= view.s * 128 + 1
        assert np.ptp(columns) <= view.s * 128 + 1
        image = source.pixels(i)
        assert 80 < image.mean() < 150
        assert 20 < image.std() < 60
        inside = source.layer(i).bright_HW[cover > 0.99]
        assert np.ptp(inside) > 0.3


def test_objects_differ_more_than_chance(high_variation):
    silhouettes = {}
    for name in high_variation.categories:
        row = int(high_variation.rows_of(name)[0])
        source = high_variation.images
        view = source.view(row).__class__()
        silhouettes[name] = source.scenery.layer(name, view).cover_HW > 0.5
    names = list(silhouettes)
    for i, first in enumerate(names):
        for second in names[:i]:
            a, b = silhouettes[first], silhouettes[second]
            assert (a & b).sum() / (a | b).sum() < 0.8


def test_warm_up_deals_50_images_to_8_other_objects():
    images = warmup_images(size=32)
    counts = images.table["category"].value_counts()
    assert (len(images), len(counts), counts.max(), counts.min()) == (50, 8, 7, 6)
    assert not set(images.categories) & set(high_variation_images(size=32).categories)


def test_catch_images_are_the_support_images(one_shot):
    catch = catch_images(one_shot)
    assert list(catch.table["image_id"]) == ["NovelOneShotObject00-Image00.png", "NovelOneShotObject01-Image00.png"]
    np.testing.assert_array_equal(np.asarray(catch.images.load(1)), np.asarray(one_shot.images.load(61)))


def test_photographs_as_backgrounds(tmp_path):
    for number, gray in enumerate((50, 200)):
        ramp = np.clip(np.arange(60) + gray - 30, 0, 255).astype(np.uint8)
        Image.fromarray(np.tile(ramp, (40, 1))).save(tmp_path / f"{number}.png")
    photographs = PhotographBackgrounds(tmp_path)
    images = high_variation_images(objects=2, images=4, size=64, backgrounds=photographs)
    medians = np.array([np.median(np.asarray(images.images.load(i))) for i in range(8)])
    assert ((np.abs(medians - 50) < 30) | (np.abs(medians - 200) < 30)).all()
    assert np.ptp(medians) > 100
    before = [images.images.content_hash(i) for i in range(8)]
    Image.new("L", (9, 9), 3).save(tmp_path / "0.png")
    after = [images.images.content_hash(i) for i in range(8)]
    assert 0 < sum(a != b for a, b in zip(before, after, strict=True)) < 8
    with pytest.raises(FileNotFoundError, match="no image in"):
        PhotographBackgrounds(tmp_path / "none").draw(np.random.default_rng(0), 8)
    with pytest.raises(ValueError, match="least must lie in"):
        PhotographBackgrounds(tmp_path, least=0)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ValueError, match="objects must be 1 or more, got 0"):
        high_variation_images(objects=0)
    with pytest.raises(ValueError, match="size must be 8 or more"):
        one_shot_images(1, size=4)


def test_written_sets_are_read_by_the_loader_of_the_published_files(tmp_path):
    paths = write_novel_objects(tmp_path, subtasks=1, images=2, one_shot_subtasks=1, size=16)
    assert [p.name for p in paths] == [
        "meta-MutatorHighVarImageset.csv",
        "meta-MutatorWarmupImageset.csv",
        "meta-MutatorOneShotImageset.csv",
        "meta-CatchImageset.csv",
    ]
    read = read_image_set(tmp_path, "meta-MutatorOneShotImageset.csv", one_shot=True, verify="all")
    made = one_shot_images(2, size=16)
    assert list(read.table["image_id"]) == list(made.table["image_id"])
    for column in ("rx", "ry", "rz", "s", "u", "v", "transformation_level"):
        np.testing.assert_allclose(read.table[column], made.table[column], atol=1e-12)
    for row in (0, 17, 100):
        np.testing.assert_array_equal(np.asarray(read.images.load(row)), np.asarray(made.images.load(row)))


def test_writing_is_continued_and_other_images_are_refused(tmp_path):
    images = high_variation_images(objects=2, images=2, size=16)
    meta = "meta-Some.csv"
    first = write_image_set(tmp_path, images, meta).read_bytes()
    png = sorted((tmp_path / "images").rglob("*.png"))
    assert len(png) == 4
    kept = png[0].stat().st_mtime_ns
    png[1].unlink()
    (tmp_path / meta).unlink()
    assert write_image_set(tmp_path, images, meta).read_bytes() == first
    assert png[0].stat().st_mtime_ns == kept
    with pytest.raises(ValueError, match="holds another image set"):
        write_image_set(tmp_path, high_variation_images(objects=2, images=2, size=16, seed=1), meta)
    with pytest.raises(ValueError, match="of the form meta-<set>"):
        write_image_set(tmp_path, images, "../meta-Some.csv")
    (tmp_path / "images" / "Mine").mkdir()
    (tmp_path / "images" / "Mine" / "photo.png").write_bytes(b"")
    with pytest.raises(ValueError, match="not from here"):
        write_image_set(tmp_path, images, "meta-Mine.csv")
