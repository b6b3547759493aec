"""Sketches with labelled parts: elements are what was labelled, folds can hold out objects, files are checked."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.data.images import BadImageError
from humanlike.data.sketch_parts import reference_features, sketch_parts


@pytest.fixture
def folder(tmp_path):
    """Four annotated sketches in the published layout, three of them with an image."""
    (tmp_path / "parts_by_category.json").write_text(
        json.dumps({"dog": {"ear": 0.5, "tail": 0.5, "unknown": 0.1}, "car": {"wheel": 0.9}})
    )
    pd.DataFrame(
        {
            "sketch_id": ["d_1", "d_2", "c_1", "c_2"],
            "target": ["pug", "beagle", "sport", "truck"],
            "condition": ["closer", "further", "further", "closer"],
            "category": ["dog", "dog", "car", "car"],
            "outcome": [True, False, True, True],
            "ear_numstrokes": [2, 0, 0, 0],
            "tail_numstrokes": [1, 0, 0, 0],
            "unknown_numstrokes": [0, 3, 0, 0],
            "wheel_numstrokes": [0, 0, 4, 0],
        }
    ).to_csv(tmp_path / "part_annotations.csv", index=False)
    for path in ("dog/d_1", "dog/d_2", "car/c_1"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        image = Image.new("RGBA", (30, 30), (0, 0, 0, 0))
        image.paste((0, 0, 0, 255), (10, 10, 12, 20))
        image.save(tmp_path / f"{path}.png")
    np.savez(tmp_path / "reference_features.npz", sketch_id=["c_1", "d_1", "d_2"], net=np.arange(6.0).reshape(3, 2))
    return tmp_path


def test_elements_are_the_parts_of_the_category(folder):
    data = sketch_parts(folder)
    assert data.labels == ("car", "dog")
    assert data.table["sketch_id"].tolist() == ["d_1", "d_2", "c_1"]
    assert data.table["condition"].tolist() == [1.0, 0.0, 0.0]
    assert data.table["image_id"].tolist() == ["pug", "beagle", "sport"]
    assert data.table["num_strokes"].tolist() == [3, 3, 4]
    assert data.elements.values.tolist() == [
        ["d_1", "ear", True], ["d_1", "tail", True], ["d_2", "ear", False], ["d_2", "tail", False],
        ["c_1", "wheel", True],
    ]  # fmt: skip
    assert data.dropped == {"without an image": 1}
    pixels = np.asarray(data.images.load(0))
    assert (pixels == 0).sum() == 3 * 20
    assert (pixels == 255).sum() == 3 * (900 - 20)  # white where it was transparent


def test_all_annotated_sketches_need_no_images(folder):
    data = sketch_parts(folder, items="annotated")
    assert len(data) == 4
    assert data.dropped == {}
    with pytest.raises(BadImageError, match="missing"):
        data.images.load(3)


def test_reference_features_follow_the_items(folder):
    data = sketch_parts(folder, items="annotated")
    features = reference_features(folder, data, "net")
    assert features.rows.tolist() == [0, 1, 2]
    assert features.f_ND.tolist() == [[2, 3], [4, 5], [0, 1]]
    with pytest.raises(ValueError, match="has no features 'other'; it has net"):
        reference_features(folder, data, "other")
    with pytest.raises(ValueError, match="of none of the 1"):
        reference_features(folder, data.select([3]), "net")
    (folder / "reference_features.npz").unlink()
    with pytest.raises(FileNotFoundError, match=r"no .*reference_features\.npz"):
        reference_features(folder, data)


def test_files_that_do_not_fit_are_named(folder):
    with pytest.raises(ValueError, match="items must be images or annotated, got 'all'"):
        sketch_parts(folder, items="all")
    table = pd.read_csv(folder / "part_annotations.csv")
    table.assign(condition="near").to_csv(folder / "part_annotations.csv", index=False)
    with pytest.raises(ValueError, match="row 0 has the condition 'near'"):
        sketch_parts(folder)
    table.drop(columns="outcome").to_csv(folder / "part_annotations.csv", index=False)
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['outcome'\]"):
        sketch_parts(folder)
    table.to_csv(folder / "part_annotations.csv", index=False)
    (folder / "parts_by_category.json").write_text(json.dumps({"dog": {"ear": 1, "paw": 1}, "car": {"wheel": 1}}))
    with pytest.raises(ValueError, match=r"'dog' has the part 'paw', but paw_numstrokes is no column"):
        sketch_parts(folder)
    (folder / "parts_by_category.json").write_text(json.dumps({"dog": {"ear": 1}}))
    with pytest.raises(ValueError, match="lists no parts of 'car'"):
        sketch_parts(folder)
    (folder / "part_annotations.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"part_annotations\.csv; root holds"):
        sketch_parts(folder)


def test_images_must_be_there(folder):
    for file in folder.glob("*/*.png"):
        file.unlink()
    with pytest.raises(FileNotFoundError, match="no image of the 4 annotated sketches"):
        sketch_parts(folder)


@pytest.mark.data
def test_the_published_set_is_whole(shared_data):
    root = shared_data / "sketch_parts"
    data = sketch_parts(root)
    assert (len(data), data.labels) == (96, ("bird", "car", "chair", "dog"))
    assert data.table["concept"].value_counts().eq(24).all()
    assert data.table["image_id"].nunique() == 32
    assert reference_features(root, data).f_ND.shape == (96, 512)
    everything = sketch_parts(root, items="annotated")
    assert len(everything) == 832
    # the shares of all 864 sketches that the authors give, to which 32 more belong
    shares = json.loads((root / "parts_by_category.json").read_text())
    concept = dict(zip(everything.table["sketch_id"], everything.table["concept"], strict=True))
    found = everything.elements.assign(concept=everything.elements["sketch_id"].map(concept))
    for (category, part), share in found.groupby(["concept", "element"])["drawn"].mean().items():
        assert share == pytest.approx(shares[category][part], abs=0.02)
