"""Image folders with and without conditions."""

import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.data.image_folder import image_folder


def picture(path, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (8, 8), "white")
    ImageDraw.Draw(image).line((1, 1, 6, 6), fill=(shade,) * 3)
    image.save(path)


@pytest.fixture
def plain(tmp_path):
    for concept in ("owl", "bear"):
        for number in range(2):
            picture(tmp_path / "plain" / concept / f"{number}.png", number)
    (tmp_path / "plain" / "README.md").write_text("x")
    picture(tmp_path / "plain" / "stray.png")
    return tmp_path / "plain"


@pytest.fixture
def conditioned(tmp_path):
    for seconds in ("4s", "16s"):
        for concept in ("owl", "bear"):
            picture(tmp_path / "cut" / seconds / concept / "a.png")
    return tmp_path / "cut"


def test_class_folders(plain):
    data = image_folder(plain)
    assert data.labels == ("bear", "owl")
    assert data.table["sketch_id"].tolist() == ["bear/0.png", "bear/1.png", "owl/0.png", "owl/1.png"]
    assert data.table["condition"].eq(0).all()
    assert data.table["image_id"].is_unique
    assert data.dropped == {"not an image file": 1, "outside the layout": 1}
    assert data.images.load(0).mode == "RGB"
    assert data.target_N.tolist() == [0, 0, 1, 1]


def test_zip_reads_like_its_folder(plain, tmp_path):
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        for file in plain.rglob("*.*"):
            archive.write(file, file.relative_to(plain))
    data, other = image_folder(plain), image_folder(tmp_path / "plain.zip")
    assert data.table.equals(other.table)
    assert [data.images.content_hash(i) for i in range(4)] == [other.images.content_hash(i) for i in range(4)]


def test_conditions_share_the_source(conditioned):
    data = image_folder(conditioned, layout="condition/concept", condition_unit="s")
    assert sorted(data.table["condition"].unique()) == [4, 16]
    assert data.table.groupby("image_id").size().tolist() == [2, 2]
    by_pattern = image_folder(conditioned, pattern=r"(?P<condition>\d+)s/(?P<concept>\w+)/(?P<image_id>\w+)\.png")
    assert by_pattern.table.equals(data.table)
    named = image_folder(conditioned, layout="condition/concept", condition_values={"4s": 1, "16s": 2})
    assert sorted(named.table["condition"].unique()) == [1, 2]
    some = image_folder(conditioned, layout="condition/concept", conditions=[4])
    assert len(some) == 2
    assert some.dropped == {"condition not asked for": 2}


def test_labels_keep_their_order_and_may_be_more(plain):
    data = image_folder(plain, labels=["owl", "zebra", "bear"])
    assert data.labels == ("owl", "zebra", "bear")
    assert data.target_N.tolist() == [2, 2, 0, 0]


def test_decode_options_reach_the_images(plain):
    inverted = image_folder(plain, polarity="invert")
    assert inverted.images.load(0).getpixel((0, 0)) == (0, 0, 0)
    assert inverted.images.content_hash(0) != image_folder(plain).images.content_hash(0)


def test_semantic_space_with_a_gap(plain, tmp_path):
    (tmp_path / "m.csv").write_text("label,x\nowl,1\nlion,2\n")
    data = image_folder(plain, semantic_space={"embedding": str(tmp_path / "m.csv")})
    np.testing.assert_array_equal(data.semantic_space, [[np.nan], [1.0]])
    assert data.flags == ("semantic space: 1 of 2 labels matched; unknown: bear",)


def test_bad_folders_are_sentences(plain, conditioned, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"no folder or zip .*expected images there as <condition>/<concept>/<image>"
    ):
        image_folder(tmp_path / "none", layout="condition/concept")
    with pytest.raises(ValueError, match=r"none of the 5 images in .* fits .*first 'bear/0.png'; .* is 'concept'"):
        image_folder(plain, layout="condition/concept")
    with pytest.raises(ValueError, match=r"none of the 4 images in .*first '16s/bear/a.png'; .*layout=condition/conce"):
        image_folder(conditioned)
    (tmp_path / "texts" / "owl").mkdir(parents=True)
    (tmp_path / "texts" / "owl" / "a.txt").write_text("x")
    with pytest.raises(ValueError, match=r"no image in .*texts \(1 other files are there\); image suffixes are \.png"):
        image_folder(tmp_path / "texts")
    with pytest.raises(ValueError, match=r"labels must be a list of names, got 'owl'; write \[owl\]"):
        image_folder(plain, labels="owl")
    with pytest.raises(
        ValueError, match=r"background must be a colour's name or #rrggbb, got 'whte'; did you mean whi"
    ):
        image_folder(plain, background="whte")
    with pytest.raises(
        ValueError, match=r"1 concept\(s\) are not in labels: \['owl'\]; nearest labels to 'owl': \['owls'"
    ):
        image_folder(plain, labels=["owls", "bear"])
    with pytest.raises(ValueError, match=r"no item in condition\(s\) \[8.0\]; conditions with items: \[4.0\]"):
        image_folder(conditioned, layout="condition/concept", conditions=[4, 8])
    with pytest.raises(ValueError, match="layout must join"):
        image_folder(plain, layout="class")
    with pytest.raises(ValueError, match="needs a named group"):
        image_folder(plain, pattern=".*")
    with pytest.raises(ValueError, match="is no regular expression"):
        image_folder(plain, pattern="(")
    with pytest.raises(ValueError, match="condition 'bear' holds no number; give condition_values"):
        image_folder(plain, layout="condition", pattern=r"(?P<condition>\w+)/(?P<concept>\d)\.png")
    with pytest.raises(ValueError, match=r"condition '16s' is not in condition_values \['4s'\]"):
        image_folder(conditioned, layout="condition/concept", condition_values={"4s": 1})
    picture(tmp_path / "single" / "owl" / "a.png")
    with pytest.raises(ValueError, match=r"one class only \(\['owl'\]\)"):
        image_folder(tmp_path / "single")
    with pytest.raises(ValueError, match="labels occur more than once"):
        image_folder(plain, labels=["owl", "bear", "owl"])
