"""TU-Berlin and Sketchy folders, as published."""

import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.data.images import BadImageError
from humanlike.data.sketchy import sketchy
from humanlike.data.tu_berlin import tu_berlin

SVG = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg viewBox="0 0 800 800" preserveAspectRatio="xMinYMin meet" xmlns="http://www.w3.org/2000/svg" version="1.1">
<g fill="none" stroke="black" stroke-linecap="round" stroke-linejoin="round" stroke-width="8">
<path id="0" d="M100 {y} C 200 100 600 700 700 400 "/></g></svg>"""


def picture(path, size=64, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("L", (size, size), 255)
    ImageDraw.Draw(image).line((5, 5, size - 6, size - 9), fill=shade, width=2)
    image.save(path)


@pytest.fixture
def berlin(tmp_path):
    for number, concept in enumerate(["bear (animal)", "bear (animal)", "alarm clock", "alarm clock"], start=79):
        picture(tmp_path / "png" / concept / f"{number}.png", 1111, number % 3)
        (tmp_path / "svg" / concept).mkdir(parents=True, exist_ok=True)
        (tmp_path / "svg" / concept / f"{number}.svg").write_text(SVG.format(y=100 + number))
    (tmp_path / "png" / "filelist.txt").write_text("x")
    return tmp_path


@pytest.mark.parametrize(("form", "side"), [("png", 1111), ("svg", 256)])
def test_tu_berlin_in_every_place(berlin, form, side):
    data = tu_berlin(berlin, form=form)
    assert data.labels == ("alarm clock", "bear (animal)")
    assert data.table["image_id"].tolist() == [
        *("alarm clock/81", "alarm clock/82", "bear (animal)/79", "bear (animal)/80")
    ]
    assert data.images.load(0).size == (side, side)
    gray = np.asarray(data.images.load(0).convert("L"))
    assert gray.min() < 80
    assert gray.mean() > 220
    with zipfile.ZipFile(berlin / f"sketches_{form}.zip", "w") as archive:
        for file in (berlin / form).rglob("*.*"):
            archive.write(file, file.relative_to(berlin))
    for root in (berlin / form, berlin / f"sketches_{form}.zip", berlin):
        other = tu_berlin(root, form=form)
        assert other.table["concept"].tolist() == data.table["concept"].tolist()
        assert other.images.content_hash(2) == data.images.content_hash(2)


def test_unsafe_svg_files_are_named(berlin):
    file = berlin / "svg" / "alarm clock" / "81.svg"
    bomb = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><svg viewBox="0 0 1 1"><path d="&b;"/></svg>'
    outside = '<svg viewBox="0 0 9 9" xmlns:x="http://www.w3.org/1999/xlink"><image x:href="file:///etc/passwd"/></svg>'
    for text, message in (
        (bomb, "declares the XML entity"),
        (SVG.format(y=1).replace("<g ", "<script>1</script><g "), "holds a script"),
        (outside, "holds an embedded or linked bitmap"),
        (SVG.format(y=1)[:200], "not well-formed XML"),
        (SVG.format(y=1).split("<path")[0] + "</g></svg>", "blank"),
    ):
        file.write_text(text)
        data = tu_berlin(berlin, form="svg")
        with pytest.raises(BadImageError, match=rf"81\.svg: .*{message}"):
            data.images.load(0)


def test_tu_berlin_refuses_what_is_not_there(berlin, tmp_path):
    with pytest.raises(ValueError, match="form must be one of"):
        tu_berlin(berlin, form="PNG")
    with pytest.raises(FileNotFoundError, match=r"expected sketches_svg\.zip or folders <concept>/<number>\.svg"):
        tu_berlin(tmp_path / "nowhere", form="svg")
    with pytest.raises(ValueError, match="none of the 4 images in"):
        tu_berlin(berlin / "png", form="svg")


@pytest.fixture
def photographs(tmp_path):
    for variant in ("tx_000000000000", "tx_000100000000"):
        for concept, photo in (("ape", "n02470325_1"), ("ape", "n02470325_22"), ("hot-air_balloon", "n02782093_7")):
            base = tmp_path / "rendered_256x256" / "256x256"
            picture(base / "photo" / variant / concept / f"{photo}.jpg")
            for number in (1, 2):
                picture(base / "sketch" / variant / concept / f"{photo}-{number}.png", 64, number)
    return tmp_path / "rendered_256x256"


def test_sketches_of_one_photograph_share_it(photographs, tmp_path):
    data = sketchy(photographs)
    assert data.labels == ("ape", "hot-air_balloon")
    assert data.table.groupby("image_id").size().to_dict() == {
        "ape/n02470325_1": 2,
        "ape/n02470325_22": 2,
        "hot-air_balloon/n02782093_7": 2,
    }
    assert data.table["sketch_id"].str.contains("tx_000000000000").all()
    deepest = photographs / "256x256" / "sketch" / "tx_000000000000"
    for root in (photographs / "256x256", deepest.parent, deepest):
        assert sketchy(root).table["image_id"].tolist() == data.table["image_id"].tolist()
    assert sketchy(photographs, variant="tx_000100000000").table["path"].str.contains("tx_0001").all()


def test_sketchy_refuses_what_is_not_there(photographs, tmp_path):
    with pytest.raises(ValueError, match=r"no sketch of variant 'tx_1' in .*\['tx_000000000000', 'tx_000100000000'\]"):
        sketchy(photographs, variant="tx_1")
    with pytest.raises(FileNotFoundError, match=r"expected folders 256x256/sketch/tx_000000000000"):
        sketchy(tmp_path / "nowhere")
