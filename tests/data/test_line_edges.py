"""Line drawings: whole inside the backbone's crop, joined with people's answers, refused when they do not fit."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from humanlike.backbones.transforms import ImageTransform
from humanlike.data.line_edges import line_edges

PEOPLE = [("human", "s1", "cat/cat1.png", "cat", "cat"), ("human", "s1", "dog/dog1.png", "dog", "na")]
CNN = ("cnn", "alexnet", "dog/dog1.png", "dog", "cat")
COLUMNS = ["observer", "subject", "image", "category", "object_response"]


@pytest.fixture
def folder(tmp_path):
    """A data set of two drawings in the published layout."""

    def make(rows=(*PEOPLE, CNN), columns=COLUMNS):
        rng = np.random.default_rng(0)
        for name in ("cat", "dog"):
            (tmp_path / name).mkdir(exist_ok=True)
            pixels = rng.integers(0, 256, (224, 224, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / f"{name}1.png")
        table = pd.DataFrame(rows, columns=columns)
        table["imagename"] = [f"{i:04d}_edg_s01_0_x_00_{image.split('/')[1]}" for i, image in enumerate(table["image"])]
        table.to_csv(tmp_path / "responses.csv", index=False)
        (tmp_path / "imagenet_to_16.json").write_text(json.dumps({"dog": [1], "cat": [0]}))
        return tmp_path

    return make


def test_people_alone_become_responses(folder):
    data = line_edges(folder())
    assert data.labels == ("cat", "dog")
    assert data.responses.table["guess_1"].tolist() == ["cat", "na"]
    assert data.table["stimulus"].tolist() == ["0_x_00_cat1.png", "0_x_00_dog1.png"]
    assert "CC BY 4.0" in data.source


@pytest.mark.parametrize("crop_pct", [0.875, 0.9, 1.0])
def test_a_backbones_crop_leaves_the_drawing_whole(folder, crop_pct):
    root = folder()
    whole = ImageTransform(size=224, crop_pct=1.0)(line_edges(root, crop_pct=1.0).images.load(0))
    seen = ImageTransform(size=224, crop_pct=crop_pct)(line_edges(root, crop_pct=crop_pct).images.load(0))
    assert seen.equal(whole)


def test_the_border_is_part_of_the_hash(folder):
    root = folder()
    hashes = {line_edges(root, crop_pct=c).images.content_hash(0) for c in (0.875, 0.9, 1.0)}
    assert len(hashes) == 3
    with pytest.raises(ValueError, match=r"crop_pct must lie in \(0, 1\], got 0"):
        line_edges(root, crop_pct=0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*PEOPLE, ("human", "s2", "cat/cat9.png", "cat", "cat")], r"row 3 is about 'cat/cat9.png' of category 'cat'"),
        ([*PEOPLE, ("human", "s2", "cat/cat1.png", "dog", "cat")], r"row 3 is about 'cat/cat1.png' of category 'dog'"),
        ([*PEOPLE, ("human", "s2", "cat/cat1.png", "cat", "chat")], r"first 'chat' in row 3 .*nearest label: cat"),
        ([*PEOPLE, PEOPLE[0]], r"'s1' answered .* in rows \[1, 3\]"),
    ],
)
def test_answers_that_do_not_fit_are_named(folder, rows, message):
    with pytest.raises(ValueError, match=message):
        line_edges(folder(rows))


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"responses\.csv; root holds images\.zip"):
        line_edges(tmp_path)
    root = folder(PEOPLE)
    table = pd.read_csv(root / "responses.csv").rename(columns={"image": "picture"})
    table.to_csv(root / "responses.csv", index=False)
    with pytest.raises(ValueError, match="needs the columns observer and image"):
        line_edges(root)


@pytest.mark.data
def test_the_published_set_is_whole(shared_data):
    data = line_edges(shared_data / "line_edges")
    assert (len(data), len(data.labels), len(data.responses.table)) == (160, 16, 1600)
    assert data.table["concept"].value_counts().eq(10).all()
    assert (data.responses.table["guess_1"] == "na").sum() == 34
    assert data.images.load(0).size == (256, 256)
