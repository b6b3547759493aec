"""SEVA's published layout, made small with the real ids, concepts and THINGS files."""

import json
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from humanlike.data.seva import seva_published, sketch_id_of
from humanlike.entry import cli
from humanlike.entry.conf import compose
from humanlike.entry.targets import build

REST = ("abstraction", "num_strokes", "response")
CONCEPTS = {"airbag": "airbag", "hot-air balloon": "hot-air_balloon", "bow": "bow3"}


@pytest.fixture
def published(shared_data, tmp_path):
    """Two photographs of three concepts at four times, three judgments each."""
    ids = json.loads((shared_data / "seva_index" / "sketch_ids.json").read_text())
    for name, source in (
        ("things_concepts.tsv", "things_concepts.tsv"),
        ("THINGS_spose.txt", "spose_embedding_66d_sorted.txt"),
    ):
        (tmp_path / name).symlink_to(shared_data / "things" / source)
    trials = []
    for concept, unique in CONCEPTS.items():
        for milliseconds in (4000, 8000, 16000, 32000):
            for photo in (0, 1):
                key = ids[concept][str(milliseconds)][photo]
                name = f"{concept}_{photo}_{key}.png"
                path = tmp_path / "seva_production_pngs" / name
                path.parent.mkdir(exist_ok=True)
                image = Image.new("RGBA", (32, 32), (0, 0, 0, 0))
                ImageDraw.Draw(image).line((2, 2, 29, 9 + photo), fill=(0, 0, 0, 255))
                image.save(path)
                for person in range(3):
                    said = {0: unique, 1: "owl"} if person else {0: "owl"}
                    trials.append(
                        (f"p{person}", name, f"{unique}_0{photo}.jpg", concept, unique, milliseconds, 5, str(said))
                    )
    table = pd.DataFrame(trials, columns=["subjectID", "filename_recog", "filename", "concept", "uniqueID", *REST])
    return tmp_path, table


def saved(published, table=None):
    folder, trials = published
    (trials if table is None else table).to_csv(folder / "human_recog_df.csv", index=False)
    return folder


def test_the_published_layout(published):
    data = seva_published(saved(published))
    assert (len(data), len(data.labels), data.name, data.condition_unit) == (24, 1854, "seva", "s")
    assert sorted(data.table["condition"].unique()) == [4, 8, 16, 32]
    assert set(data.table["concept"]) == {"airbag", "hot-air_balloon", "bow3"}
    assert data.table.groupby("image_id").size().eq(4).all()
    assert data.table["num_strokes"].eq(5).all()
    assert len(data.responses.table) == 72
    assert data.responses.dropped == {}
    assert data.responses.table["guess_1"].value_counts()["owl"] == 24
    assert data.semantic_space.shape == (1854, 66)
    assert np.isfinite(data.semantic_space).all()
    assert data.flags == ()
    image = np.asarray(data.images.load(0))
    assert image[0, 0].tolist() == [255, 255, 255]
    folder = published[0]
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for file in (folder / "seva_production_pngs").iterdir():
            archive.write(file, f"pngs/{file.name}")
    other = seva_published(folder, images=folder / "all.zip")
    assert other.images.content_hash(3) == data.images.content_hash(3)
    (folder / "THINGS_spose.txt").unlink()
    assert seva_published(folder).semantic_space is None


def test_cleaning_is_counted(published):
    _, trials = published
    changed = trials.astype({"response": object}).copy()
    changed.loc[0, "concept"] = "cat"
    changed.loc[1, "filename_recog"] = None
    changed.loc[2, "filename_recog"] = "x_nan.png"
    changed.loc[3, "response"] = "{}"
    changed.loc[4, "response"] = None
    changed["abstraction"] = changed["abstraction"] // 1000
    data = seva_published(saved(published, changed))
    assert data.responses.dropped == {"practice trial": 1, "trial without a sketch id": 2, "empty response": 2}
    assert len(data.responses.table) == 67
    assert len(data) == 23
    assert sorted(data.table["condition"].unique()) == [4, 8, 16, 32]


def test_bad_trials_are_named(published):
    _, trials = published

    def wrong(message, row, column, value, **settings):
        changed = trials.astype(object).copy()
        changed.loc[row, column] = value
        with pytest.raises(ValueError, match=message):
            seva_published(saved(published, changed), **settings)

    wrong(r"response in row 6 is no dictionary of labels: .__import__", 5, "response", "__import__('os').getcwd()")
    wrong(r"response in row 6 is '\[1\]'; expected \{position: label\}", 5, "response", "[1]")
    wrong("up to five", 5, "response", str(dict.fromkeys(range(6), "owl")))
    wrong(r"abstraction is 5 in row 6; expected 4, 8, 16, 32 s", 5, "abstraction", 5)
    wrong(r"has two concepts, times or photographs \(rows 4, 6\)", 5, "uniqueID", "owl")
    wrong(r"first 'Owl' in row 6, guess_1 .*'Owl' differs from the label 'owl' in case", 5, "response", "{0: 'Owl'}")
    wrong(r"participant 'p1' judged sketch .* more than once \(rows 5, 6;", 5, "subjectID", "p1")
    changed = trials.astype(object).copy()
    changed.loc[5, "response"] = "{0: 'Owl'}"
    assert seva_published(saved(published, changed), on_unknown="drop").responses.dropped == {
        "judgment whose first guess is no label": 1
    }
    changed = trials.copy()
    changed["uniqueID"] = "balloon animal"
    with pytest.raises(ValueError, match=r"uniqueID 'balloon animal' .* is not in things_concepts\.tsv"):
        seva_published(saved(published, changed))
    with pytest.raises(ValueError, match="lacks the column"):
        seva_published(saved(published, trials.drop(columns="response")))


def test_missing_files(published, tmp_path):
    folder = saved(published)
    first = sorted((folder / "seva_production_pngs").iterdir())[0]
    first.unlink()
    with pytest.raises(ValueError, match=r"1 of 24 judged sketches have no PNG in .*on_missing_image=drop"):
        seva_published(folder)
    data = seva_published(folder, on_missing_image="drop")
    assert data.dropped == {"sketch whose image file is missing": 1}
    assert data.responses.dropped == {"judgment of a sketch that is not in the data set": 3}
    other = sorted((folder / "seva_production_pngs").iterdir())[0]
    other.with_name(f"copy_{other.name}").write_bytes(b"x")
    with pytest.raises(ValueError, match="two files of sketch"):
        seva_published(folder)
    with pytest.raises(FileNotFoundError, match=r"no folder or zip file .*seva_production_pngs\.zip or its folder"):
        seva_published(folder, images=folder / "none")
    (folder / "things_concepts.tsv").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file .*things_concepts\.tsv; expected human_recog_df\.csv"):
        seva_published(folder)
    with pytest.raises(ValueError, match="on_missing_image must be"):
        seva_published(folder, on_missing_image="skip")


def test_ids_are_the_last_part():
    assert sketch_id_of("a/b_c_63ce.png") == "63ce"
    assert sketch_id_of("63ce.png") == "63ce"


def test_converted_it_is_read_by_the_seva_configuration(published, tmp_path_factory, monkeypatch):
    target = tmp_path_factory.mktemp("converted") / "seva"
    source = saved(published)
    monkeypatch.setattr(sys, "argv", ["humanlike", "convert", "seva", str(source), str(target)])
    cli.main()
    back, data = (
        build(compose("evaluate", ["dataset=seva", f"dataset.root='{target}'"]).dataset),
        seva_published(source),
    )
    assert back.labels == data.labels
    assert back.table["sketch_id"].tolist() == data.table["sketch_id"].tolist()
    pd.testing.assert_frame_equal(back.responses.table, data.responses.table, check_dtype=False)
    np.testing.assert_array_equal(back.semantic_space, data.semantic_space)
    assert np.array_equal(np.asarray(back.images.load(2)), np.asarray(data.images.load(2)))
