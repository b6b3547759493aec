"""The 52 SEVA drawings."""

import zipfile

import numpy as np
import pytest

from humanlike.data.seva_samples import seva_samples


def test_all_52_load_black_on_white(shared_data, tmp_path):
    data = seva_samples(shared_data / "seva_samples")
    assert (len(data), len(data.labels)) == (52, 13)
    assert data.table.groupby("concept").size().eq(4).all()
    assert data.dropped == {}
    for index in range(len(data)):
        gray = np.asarray(data.images.load(index).convert("L"))
        assert gray.shape == (500, 500)
        assert gray.mean() > 220, f"{data.images.describe(index)} is not mostly white"
        assert gray.min() < 80, f"{data.images.describe(index)} has no ink"
    with zipfile.ZipFile(shared_data / "seva_samples" / "drawings.zip") as archive:
        archive.extractall(tmp_path / "drawings")
    for root in (tmp_path, tmp_path / "drawings"):
        other = seva_samples(root)
        assert other.table["concept"].tolist() == data.table["concept"].tolist()
        assert other.images.content_hash(7) == data.images.content_hash(7)


def test_missing_folder_says_what_is_expected(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"seva_samples: no folder .* expected drawings\.zip, or folders"):
        seva_samples(tmp_path / "none")
    with pytest.raises(ValueError, match="no image in"):
        seva_samples(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "figure.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"none of the 1 images in .* fits"):
        seva_samples(tmp_path)
