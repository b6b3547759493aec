"""What is written is what was there: any data set goes into a study's folder and comes back."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from humanlike.data.doodles.dataset import doodles
from humanlike.data.image_folder import image_folder
from humanlike.data.images import BadImageError
from humanlike.data.study_writer import write_study
from humanlike.data.table import table


def same_pixels(one, other):
    return all(
        np.array_equal(np.asarray(one.images.load(i)), np.asarray(other.images.load(i))) for i in range(len(one))
    )


@pytest.fixture
def pictures(tmp_path):
    for name in ("4s/owl/a.png", "8s/owl/a.png", "4s/big bear/a.b.png", "8s/big bear/A.B.png", "8s/big bear/a b.png"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
        ImageDraw.Draw(image).line((1, 1, 6, len(name) % 7), fill=(255, 255, 255, 255))
        image.save(path)
    (tmp_path / "in" / "notes.txt").write_text("x")
    return image_folder(tmp_path / "in", layout="condition/concept", polarity="invert", condition_unit="s")


def test_doodles_with_simulated_people_come_back(tmp_path):
    data = doodles(concepts=["lion", "snail", "vase"], instances=2, conditions=[4, 32], judgments=3, size=32)
    conversion = write_study(data, tmp_path / "out")
    back = table(tmp_path / "out")
    pd.testing.assert_frame_equal(back.table[data.table.columns], data.table, check_dtype=False)
    assert (back.labels, back.condition_unit, back.flags) == (data.labels, data.condition_unit, data.flags)
    assert back.responses.simulated
    pd.testing.assert_frame_equal(back.responses.table, data.responses.table, check_dtype=False)
    np.testing.assert_array_equal(back.semantic_space, data.semantic_space)
    assert same_pixels(data, back)
    assert (conversion.sketches, conversion.responses, conversion.participants) == (
        12,
        len(data.responses.table),
        data.responses.table["participant"].nunique(),
    )
    assert conversion.lines()[0] == "sketches   12 written, 0 left out: 3 concepts, conditions 4, 32"


@pytest.mark.parametrize("mode", ["render", "copy", "link"])
def test_image_files_in_every_mode(pictures, tmp_path, mode):
    conversion = write_study(pictures, tmp_path / "out", images=mode, record={"kind": "image_folder"})
    back = table(tmp_path / "out")
    assert same_pixels(pictures, back)
    assert back.table["image_id"].tolist() == pictures.table["image_id"].tolist()
    assert back.table["source_path"].tolist() == pictures.table["path"].tolist()
    assert back.table["path"].str.casefold().is_unique
    assert (tmp_path / "out" / back.table["path"][0]).is_symlink() == (mode == "link")
    stored = json.loads((tmp_path / "out" / "conversion.json").read_text())
    assert stored["schema"] == "humanlike.conversion/1"
    assert (stored["kind"], stored["sketches"]) == ("image_folder", 5)
    assert stored["dropped"] == {"not an image file": 1} == conversion.dropped
    decode = json.loads((tmp_path / "out" / "study.json").read_text())["decode"]
    assert decode == ({} if mode == "render" else {"polarity": "invert"})


def test_a_gap_in_the_semantic_space_stays_a_gap(tmp_path, pictures):
    (tmp_path / "space.csv").write_text("label,x,y\nowl,1,2\n")
    data = image_folder(
        tmp_path / "in", layout="condition/concept", semantic_space={"embedding": str(tmp_path / "space.csv")}
    )
    conversion = write_study(data, tmp_path / "out", images="copy")
    back = table(tmp_path / "out")
    np.testing.assert_array_equal(back.semantic_space, data.semantic_space)
    assert back.flags == data.flags
    assert conversion.labels_in_space == 1


def test_bad_images_stop_or_are_counted(pictures, tmp_path):
    (tmp_path / "in" / "4s" / "owl" / "a.png").write_bytes(b"\x89PNG")
    with pytest.raises(BadImageError, match=r"4s/owl/a\.png"):
        write_study(pictures, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"], "nothing half written may stay"
    conversion = write_study(pictures, tmp_path / "out", on_bad_image="skip")
    assert conversion.dropped["sketch whose image cannot be read"] == 1
    assert len(table(tmp_path / "out")) == 4


def test_judgments_of_lost_images_are_counted(tmp_path):
    data = doodles(concepts=["lion", "snail"], instances=2, conditions=[4], judgments=3, size=32)

    class Torn:
        def __len__(self):
            return len(data)

        def load(self, index):
            if index == 0:
                raise BadImageError("lion", "torn")
            return data.images.load(index)

    torn = replace(data, images=Torn())
    conversion = write_study(torn, tmp_path / "out", on_bad_image="skip")
    assert conversion.responses_dropped == {"judgment of a sketch that is not in the data set": 3}
    assert conversion.lines()[2].startswith("judgments  9 written, 3 left out")


def test_refusals_are_sentences(pictures, tmp_path):
    drawn = doodles(concepts=["lion", "snail"], instances=1, conditions=[4], judgments=0, size=16)
    for mode in ("copy", "link"):
        with pytest.raises(
            ValueError, match=rf"its images are made by code, there are no files to {mode}; use images=render"
        ):
            write_study(drawn, tmp_path / "out", images=mode)
    for settings, message in (({"images": "move"}, "images must be"), ({"on_bad_image": "drop"}, "on_bad_image must")):
        with pytest.raises(ValueError, match=message):
            write_study(drawn, tmp_path / "out", **settings)
    with pytest.raises(FileExistsError, match="exists and is not empty; remove it, or name another folder"):
        write_study(drawn, tmp_path / "in")
    with pytest.raises(FileExistsError, match="exists and is not empty"):
        write_study(drawn, tmp_path / "in" / "notes.txt")
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    write_study(drawn, tmp_path / "out")
    spaced = replace(drawn, labels=("lion ", "lion", "snail"), semantic_space=None)
    with pytest.raises(ValueError, match="label 'lion ' is empty, has blanks around it"):
        write_study(spaced, tmp_path / "other")
