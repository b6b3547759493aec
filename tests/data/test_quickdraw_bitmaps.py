"""28 × 28 bitmaps: black ink on white, blank rows counted, and bad files."""

import pickle

import numpy as np
import pytest

from humanlike.data.images import BadImageError
from humanlike.data.quickdraw_bitmaps import BitmapImages, mapped_bitmaps, quickdraw_bitmaps


def drawings(count, seed):
    pixels = np.zeros((count, 784), np.uint8)
    pixels[:, 100:140] = np.random.default_rng(seed).integers(1, 256, (count, 40))
    return pixels


@pytest.fixture
def small(tmp_path):
    cats = drawings(4, 0)
    cats[1] = 0
    np.save(tmp_path / "cat.npy", cats)
    np.save(tmp_path / "full_numpy_bitmap_dog.npy", drawings(3, 1).reshape(3, 28, 28))
    return tmp_path


def test_ink_is_black_on_white(small):
    data = quickdraw_bitmaps(small)
    assert data.table["sketch_id"].tolist() == ["cat/0", "cat/2", "cat/3", "dog/0", "dog/1", "dog/2"]
    assert data.dropped == {"drawing without ink": 1}
    cats = np.load(small / "cat.npy")
    image = data.images.load(1)
    assert (image.size, image.mode) == ((28, 28), "RGB")
    np.testing.assert_array_equal(np.asarray(image)[:, :, 0], 255 - cats[2].reshape(28, 28))
    assert np.asarray(image).mean() > 128
    assert data.images.describe(1) == f"{small / 'cat.npy'}[2]"
    kept = quickdraw_bitmaps(small, polarity="keep")
    np.testing.assert_array_equal(np.asarray(kept.images.load(1))[:, :, 0], cats[2].reshape(28, 28))
    assert kept.images.content_hash(1) != data.images.content_hash(1)
    assert len({data.images.content_hash(i) for i in range(6)}) == 6
    assert pickle.loads(pickle.dumps(data.images)).content_hash(4) == data.images.content_hash(4)


def test_limits_and_order(small):
    data = quickdraw_bitmaps(small, max_per_class=2, labels=["dog", "cow", "cat"])
    assert data.table["image_id"].tolist() == ["cat/0", "dog/0", "dog/1"]
    assert data.labels == ("dog", "cow", "cat")
    assert data.table["condition"].eq(0).all()


def test_a_blank_row_is_named(small):
    images = BitmapImages((str(small / "cat.npy"),), np.array([1]))
    with pytest.raises(BadImageError, match=r"cat\.npy\[1\]: blank, every pixel has the value 0"):
        images.load(0)


def test_bad_files_are_sentences(small, tmp_path):
    for array in (np.zeros((2, 783), np.uint8), np.zeros((2, 784)), np.zeros((2, 27, 29), np.uint8)):
        np.save(small / "cow.npy", array)
        mapped_bitmaps.cache_clear()
        with pytest.raises(ValueError, match=r"cow\.npy: expected \(N, 784\) or \(N, 28, 28\) gray values"):
            quickdraw_bitmaps(small)
    np.save(small / "cow.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cow\.npy: not a whole \.npy array of numbers"):
        quickdraw_bitmaps(small)
    (small / "cow.npy").write_bytes((small / "cat.npy").read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"cow\.npy: not a whole \.npy array of numbers"):
        quickdraw_bitmaps(small)
    np.save(small / "cow.npy", np.zeros((2, 784), np.uint8))
    with pytest.raises(ValueError, match=r"no drawing of class 'cow' is left \(2 rows, all blank\)"):
        quickdraw_bitmaps(small)
    for settings, message in (({"polarity": "auto"}, "polarity must be"), ({"max_per_class": 0}, "at least 1")):
        with pytest.raises(ValueError, match=message):
            quickdraw_bitmaps(small, **settings)
    with pytest.raises(FileNotFoundError, match=r"expected a folder of files <class>\.npy"):
        quickdraw_bitmaps(tmp_path / "nowhere")
