"""SEVA's published layout, made small with the real ids, concepts and THINGS files."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from humanlike.data import seva
from humanlike.data.seva_trials import sketch_id_of

REST = ("abstraction", "num_strokes", "response")
CONCEPTS = {"airbag": "airbag", "hot-air balloon": "hot-air_balloon", "bow": "bow3"}


def seva_published(root, **settings):
    """The loader, told that a part of the data is meant."""
    return seva.seva_published(root, on_count="warn", **settings)


@pytest.fixture
def published(shared_data, tmp_path):
    """Two photographs of three concepts at four times, three judgments each; without an embedding."""
    ids = json.loads((shared_data / "seva_index" / "sketch_ids.json").read_text())
    (tmp_path / "things_concepts.tsv").symlink_to(shared_data / "things" / "things_concepts.tsv")
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


def test_the_published_layout(published, shared_data):
    embedding = published[0] / "THINGS_spose.txt"
    embedding.symlink_to(shared_data / "things" / "spose_embedding_66d_sorted.txt")
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
    (flag,) = data.flags
    assert "counts deviate from the published data: judged sketches: 24, expected 8,192; concepts: 3" in flag
    assert data.rows_read == {"human_recog_df.csv": 72, "things_concepts.tsv": 1854}
    assert data.table["judged"].all()
    image = np.asarray(data.images.load(0))
    assert image[0, 0].tolist() == [255, 255, 255]
    folder = published[0]
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for file in (folder / "seva_production_pngs").iterdir():
            archive.write(file, f"pngs/{file.name}")
    other = seva_published(folder, images=folder / "all.zip")
    assert other.images.content_hash(3) == data.images.content_hash(3)
    embedding.unlink()
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
    wrong(r"has two concepts, budgets or photographs \(rows 4, 6\)", 5, "uniqueID", "owl")
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
    with pytest.raises(ValueError, match=r"1 of 24 sketches have no PNG in .*on_missing_image=drop"):
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
    with pytest.raises(FileNotFoundError, match=r"no file .*things_concepts\.tsv; missing of .* from https://"):
        seva_published(folder)
    with pytest.raises(ValueError, match="on_missing_image must be"):
        seva_published(folder, on_missing_image="skip")


def test_ids_are_the_last_part():
    assert sketch_id_of("a/b_c_63ce.png") == "63ce"
    assert sketch_id_of("63ce.png") == "63ce"


def test_a_name_that_stands_for_two_things_is_not_guessed(published):
    _, trials = published
    changed = trials.copy()
    changed.loc[changed["filename"] == "bow3_00.jpg", "uniqueID"] = "bow1"
    with pytest.raises(ValueError, match=r"the name 'bow' stands for bow1 and for bow3 \(rows .*\); SEVA draws one"):
        seva_published(saved(published, changed))
    renamed = trials.assign(concept=trials["concept"].replace({"airbag": "pillow"}))
    data = seva_published(saved(published, renamed))
    (check,) = [c for c in data.checks if "named otherwise" in c.what]
    assert (check.found, check.ok, check.binding) == (1, False, False)


def test_counts_are_errors_unless_a_part_is_meant(seva_small, caplog):
    with pytest.raises(ValueError, match="counts are not those of the published data") as caught:
        seva.seva_published(seva_small)
    for part in ("concepts: 8, expected 128", "set on_count=warn"):
        assert part in str(caught.value)
    seva_published(seva_small)
    assert "not the whole of the published data: judged sketches: 64, expected 8,192" in caplog.text
    with pytest.raises(ValueError, match="on_count must be 'raise' or 'warn'"):
        seva.seva_published(seva_small, on_count="ignore")


def test_all_sketches_come_from_the_metadata(seva_copy):
    judged, data = seva_published(seva_copy), seva_published(seva_copy, items="all")
    metadata = pd.read_csv(seva_copy / "neurips_DB_human_clean.csv")
    assert len(judged) == data.table["judged"].sum() == 64
    assert set(data.table["sketch_id"]) == set(metadata["sketch_id"])
    wanted = metadata.set_index("sketch_id").loc[data.table["sketch_id"]]
    assert data.table["concept"].tolist() == wanted["uniqueID"].tolist()
    assert data.table["condition"].tolist() == (wanted["abstraction"] / 1000).tolist()
    assert data.table["image_id"].tolist() == wanted["filename"].tolist()
    assert data.table["num_strokes"].tolist() == wanted["num_strokes"].tolist()
    assert set(data.responses.table["sketch_id"]) == set(judged.table["sketch_id"])
    assert judged.table["concept"].nunique() == 8
    assert {"button2", "mouse2", "tank2", "bow3", "bracelet2", "canvas"} <= set(judged.table["concept"])
    (seva_copy / "neurips_DB_human_clean.csv").unlink()
    assert len(seva_published(seva_copy)) == 64
    with pytest.raises(FileNotFoundError, match=r"neurips_DB_human_clean\.csv .*https://seva-benchmark"):
        seva_published(seva_copy, items="all")
    with pytest.raises(ValueError, match="items must be 'judged' or 'all'"):
        seva_published(seva_copy, items="some")


def test_stroke_counts_and_bad_metadata(seva_copy):
    path = seva_copy / "neurips_DB_human_clean.csv"
    metadata = pd.read_csv(path, index_col=0)
    trials = pd.read_csv(seva_copy / "human_recog_df.csv", index_col=0)
    trials.drop(columns="num_strokes").to_csv(seva_copy / "human_recog_df.csv")
    data = seva_published(seva_copy)
    strokes = metadata.set_index("sketch_id")["num_strokes"]
    assert data.table["num_strokes"].tolist() == strokes[data.table["sketch_id"]].tolist()

    def changed(row, column, value, message):
        other = metadata.astype(object)
        other.loc[row, column] = value
        other.to_csv(path)
        with pytest.raises(ValueError, match=message):
            seva_published(seva_copy)

    key = metadata["sketch_id"][0]
    changed(0, "uniqueID", "owl", r"the name '\w+' stands for \w+ and for owl")
    changed(0, "uniqueID", "Owl", r"uniqueID 'Owl' \(row 1\) is not in things_concepts")
    changed(0, "filename", "owl_01b.jpg", rf"image_id of sketch '{key}' is \w+\.jpg in the recognition trials and owl")
    changed(0, "abstraction", 8000, rf"condition of sketch '{key}' is 4 in the recognition trials and 8 in")
    changed(0, "abstraction", 5000, "abstraction is 5000 in row 1; expected 4, 8, 16, 32 s")
    changed(1, "sketch_id", key, rf"sketch_id '{key}' stands in rows 1, 2")
    practice = pd.concat([metadata, metadata.iloc[[0]].assign(concept="cat", sketch_id="x")], ignore_index=True)
    practice.to_csv(path)
    assert seva_published(seva_copy).dropped == {"practice sketch": 1}
    metadata.iloc[1:].to_csv(path)
    (check,) = [c for c in seva_published(seva_copy).checks if "does not know" in c.what]
    assert (check.found, check.ok) == (1, False)
