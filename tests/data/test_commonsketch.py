"""CommonSketch's stated layout: read as it stands, and every fault named with its row."""

import json
import zipfile

import pandas as pd
import pytest
from PIL import Image

from humanlike.data.commonsketch import commonsketch, read_classes
from humanlike.data.study_writer import write_study
from humanlike.data.table import table

CLASSES = {
    "violin": {"superordinate": "instrument", "elements": ["body", "neck", "string"]},
    "owl": {"superordinate": "bird", "elements": ["eye", "beak", "wing", "claw"]},
}
ROWS = [
    {"sketch_id": "v1", "class": "violin", "path": "violin/1.png", "caption": "a violin", "present": [1, 0, 1]},
    {"sketch_id": "o1", "class": "owl", "path": "owl/1.png", "caption": "an owl", "present": ["beak", "eye"]},
    {"sketch_id": "o2", "class": "owl", "path": "owl/2.png", "caption": None, "present": None},
    {"sketch_id": "v2", "class": "violin", "path": "violin/2.png", "caption": "", "present": []},
]


def write(folder, rows=ROWS, classes=CLASSES, form="jsonl"):
    folder.mkdir(exist_ok=True)
    (folder / "classes.json").write_text(json.dumps(classes))
    if form == "jsonl":
        (folder / "annotations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_parquet(folder / "annotations.parquet")
    for row in ROWS:
        path = folder / row["path"]
        path.parent.mkdir(exist_ok=True)
        image = Image.new("L", (8, 8), 255)
        image.putpixel((3, 4), 0)
        image.save(path)
    return folder


ROWS_WITHOUT_NAMES = [{**row, "present": [0, 0, 1] if row["class"] == "violin" else [1, 1, 0, 0]} for row in ROWS]


def test_every_form_of_annotation(tmp_path):
    rows = [*ROWS[:3], {**ROWS[3], "present": [False, True, False]}]
    data = commonsketch(write(tmp_path / "a", rows))
    assert data.labels == ("owl", "violin")
    assert data.table["superordinate"].tolist() == ["instrument", "bird", "bird", "instrument"]
    assert data.table["condition"].eq(0).all()
    assert data.table["image_id"].is_unique
    drawn = data.elements.pivot(index="sketch_id", columns="element", values="drawn")
    assert drawn.loc["v1", ["body", "neck", "string"]].tolist() == [True, False, True]
    assert drawn.loc["v2", ["body", "neck", "string"]].tolist() == [False, True, False]
    assert drawn.loc["o1", ["eye", "beak", "wing", "claw"]].tolist() == [True, True, False, False]
    assert "o2" not in drawn.index  # nobody annotated it: missing, not empty
    assert data.images.load(0).size == (8, 8)


def test_parquet_and_a_zip_of_images(tmp_path):
    folder = write(tmp_path / "a", ROWS_WITHOUT_NAMES, form="parquet")
    plain = commonsketch(folder)
    digest = plain.images.content_hash(1)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for row in ROWS:
            archive.write(folder / row["path"], row["path"])
            (folder / row["path"]).unlink()
    zipped = commonsketch(folder)
    pd.testing.assert_frame_equal(plain.elements, zipped.elements)
    assert zipped.images.content_hash(1) == digest


def test_the_annotation_survives_conversion(tmp_path):
    data = commonsketch(write(tmp_path / "a", ROWS_WITHOUT_NAMES))
    write_study(data, tmp_path / "study")
    back = table(tmp_path / "study")
    pd.testing.assert_frame_equal(back.elements, data.elements, check_dtype=False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"present": [1, 0]}, r"row 1 \(v1\): present must be 3 values of 0 or 1"),
        ({"present": [1, 0, 2]}, r"row 1 \(v1\): present must be 3 values"),
        ({"present": ["bow"]}, r"row 1 \(v1\) shows 'bow', which is no element of its class: body, neck, string"),
        ({"present": 1}, r"row 1 \(v1\): present must be"),
        ({"class": "violine"}, "row 1 has the class 'violine', which classes.json lacks.*violin"),
        ({"path": "violin/9.png"}, r"row 1 names the image .*violin/9.png, which is missing"),
        ({"path": "../v.png"}, "leads outside the archive"),
        ({"sketch_id": "o1"}, "sketch_id 'o1' stands in rows 1, 2"),
        ({"path": None}, "path is empty in row 1"),
    ],
)
def test_a_faulty_row_is_named(tmp_path, change, said):
    with pytest.raises(ValueError, match=said):
        commonsketch(write(tmp_path / "a", [{**ROWS[0], **change}, *ROWS[1:3]]))


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ({"owl": {"superordinate": "bird", "elements": []}}, "'owl' needs `elements`"),
        ({"owl": {"superordinate": "bird", "elements": ["eye", "eye"]}}, "names an element twice"),
        ({"owl": {"elements": ["eye"]}}, "'owl' needs `superordinate`"),
        ([], "must hold an object"),
    ],
)
def test_faulty_classes_are_named(tmp_path, classes, said):
    (tmp_path / "classes.json").write_text(json.dumps(classes))
    with pytest.raises(ValueError, match=said):
        read_classes(tmp_path / "classes.json")


def test_what_is_missing_is_told_with_the_layout(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*classes.json; expected a folder with classes.json"):
        commonsketch(tmp_path)
    (tmp_path / "classes.json").write_text(json.dumps(CLASSES))
    with pytest.raises(FileNotFoundError, match=r"no annotations.parquet or annotations.jsonl"):
        commonsketch(tmp_path)
    (tmp_path / "annotations.jsonl").write_text('{"sketch_id": "a"}\n{"sketch')
    with pytest.raises(ValueError, match=r"annotations.jsonl:2: not a whole JSON object"):
        commonsketch(tmp_path)
    (tmp_path / "annotations.jsonl").write_text('{"sketch_id": "a"}\n')
    with pytest.raises(ValueError, match=r"lacks the column\(s\) \['class', 'path', 'present'\]"):
        commonsketch(tmp_path)


def test_published_counts_are_demanded_when_asked(tmp_path):
    with pytest.raises(ValueError, match=r"4 sketches \(published: 23100\), 2 classes \(published: 300\)"):
        commonsketch(write(tmp_path / "a", ROWS_WITHOUT_NAMES), expect_published=True)
