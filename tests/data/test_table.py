"""A study of one's own: what is read, and every complaint with file, rows and the way out."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from humanlike.benchmarks.seva_people import code_people
from humanlike.data.table import table

LABELS = ["lion", "owl", "snail", "hot-air balloon"]


def picture(path, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.new("RGB", (8, 8), "white")
    ImageDraw.Draw(image).line((1, 1, 6, 6), fill=(shade,) * 3)
    image.save(path)


@pytest.fixture
def sketches():
    rows = [
        (f"{concept}{number}", concept, seconds, number, f"img/{concept}{number}.png", 3 * number)
        for concept in ("lion", "owl")
        for number, seconds in ((1, 4), (2, 32))
    ]
    return pd.DataFrame(rows, columns=["sketch_id", "concept", "condition", "image_id", "path", "num_strokes"])


@pytest.fixture
def answers():
    rows = [
        ("p1", "lion1", "lion", "owl", None),
        ("p1", "owl1", "lion", None, None),
        ("p2", "lion1", "lion", None, None),
        ("p2", "owl2", "owl", "snail", "lion"),
    ]
    return pd.DataFrame(rows, columns=["participant", "sketch_id", "guess_1", "guess_2", "guess_3"])


@pytest.fixture
def study(tmp_path, sketches, answers):
    """Writes a study; tables can be replaced by keyword."""

    def write(suffix="csv", **changes):
        tables = {"sketches": sketches, "responses": answers, **changes}
        for name, value in tables.items():
            for old in tmp_path.glob(f"{name}.*"):
                old.unlink()
            if isinstance(value, str):
                (tmp_path / f"{name}.csv").write_text(value, encoding="utf-8")
            elif value is not None and suffix == "csv":
                value.to_csv(tmp_path / f"{name}.csv", index=False)
            elif value is not None:
                value.to_parquet(tmp_path / f"{name}.parquet", index=False)
        for path in sketches["path"]:
            picture(tmp_path / path)
        (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n", encoding="utf-8")
        return tmp_path

    return write


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_csv_and_parquet_give_the_same(study, suffix):
    data = table(study(suffix))
    assert data.name == "table"
    assert data.labels == tuple(LABELS)
    assert data.table["condition"].tolist() == [4.0, 32.0, 4.0, 32.0]
    assert data.table["num_strokes"].tolist() == [3, 6, 3, 6]
    assert data.images.load(0).size == (8, 8)
    assert data.dropped == {}
    assert data.responses.dropped == {}
    people = code_people(data.responses, data.table["sketch_id"].tolist(), data.labels)
    assert people.num_participants == 2
    assert people.responses.guess_RG[:, 0].tolist() == [0, 0, 0, 1]
    assert people.responses.guess_RG[3].tolist() == [1, 2, 0, -1, -1]


def test_numbers_as_ids_stay_texts(study, sketches, answers):
    for suffix in ("csv", "parquet"):
        numbered = sketches.assign(sketch_id=[1, 2, 3, 4])
        judged = answers.assign(sketch_id=[1, 3, 1, 4], participant=[7, 7, 8, 8])
        data = table(study(suffix, sketches=numbered, responses=judged))
        assert data.table["sketch_id"].tolist() == ["1", "2", "3", "4"]
        assert data.responses.table["participant"].tolist() == ["7", "7", "8", "8"]
    zeros = "sketch_id,concept,condition,image_id,path\n001,lion,4,01,img/lion1.png\n002,owl,4,02,img/owl1.png\n"
    data = table(study(sketches=zeros, responses=None))
    assert data.table["sketch_id"].tolist() == ["001", "002"]


def test_texts_that_look_empty_are_names(study, sketches, answers):
    named = sketches.replace({"concept": {"owl": "null"}})
    folder = study(sketches=named, responses=answers.replace({"owl": "null", "p1": "NA"}))
    (folder / "labels.txt").write_text("lion\nnull\nsnail\n", encoding="utf-8")
    data = table(folder)
    assert data.labels == ("lion", "null", "snail")
    assert data.responses.table["participant"].tolist() == ["NA", "NA", "p2", "p2"]


def test_image_ids_numbered_within_concepts_are_told_apart(study):
    assert table(study()).table["image_id"].tolist() == ["lion/1", "lion/2", "owl/1", "owl/2"]


def test_files_by_name_from_elsewhere(study, tmp_path_factory):
    folder = study()
    other = tmp_path_factory.mktemp("other")
    with zipfile.ZipFile(other / "pictures.zip", "w") as archive:
        for file in (folder / "img").glob("*.png"):
            archive.write(file, file.relative_to(folder))
            file.unlink()
    (folder / "responses.csv").rename(folder / "judgments.csv")
    (folder / "labels.txt").rename(other / "names.txt")
    (folder / "space.csv").write_text("label,x,y\nlion,1,0\nowl,0,1\nsnail,1,1\nballoon,0,0\n")
    data = table(
        folder / "sketches.csv",
        responses="judgments.csv",
        images=other / "pictures.zip",
        labels=other / "names.txt",
        semantic_space={"embedding": str(folder / "space.csv")},
        conditions=[4],
        name="mine",
        condition_unit="s",
        source="my lab",
        background="#eeeeee",
    )
    assert (data.name, data.condition_unit, data.source) == ("mine", "s", "my lab")
    assert data.images.options.background == "#eeeeee"
    assert len(data) == 2
    assert data.dropped == {"condition not asked for": 2}
    assert data.responses.dropped == {"judgment of a sketch that is not in the data set": 1}
    assert data.flags == ("semantic space: 3 of 4 labels matched; unknown: hot-air balloon",)
    assert data.images.load(1).size == (8, 8)


def test_facts_come_from_study_json(study):
    folder = study()
    facts = {"schema": "humanlike.study/1", "name": "twin", "condition_unit": "s", "flags": ["derived_conditions"]}
    facts |= {"simulated_responses": True, "decode": {"polarity": "invert"}}
    (folder / "study.json").write_text(json.dumps(facts))
    data = table(folder)
    assert (data.name, data.condition_unit, data.flags) == ("twin", "s", ("derived_conditions",))
    assert data.responses.simulated
    assert data.images.load(0).getpixel((0, 0)) == (0, 0, 0)
    assert table(folder, polarity="keep").images.load(0).getpixel((0, 0)) == (255, 255, 255)
    for text, message in (
        ("{", "not JSON"),
        ("[]", "expected a JSON object with schema"),
        (json.dumps({**facts, "nmae": 1}), "keys are name, condition_unit"),
        (json.dumps({**facts, "flags": "x"}), "flags must be a list"),
        (json.dumps({**facts, "decode": {"colour": 1}}), "decode holds an unknown setting"),
    ):
        (folder / "study.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            table(folder)


def test_aliases_are_the_only_translation(study, sketches, answers):
    folder = study(sketches=sketches.replace({"concept": {"lion": "Löwe"}}), responses=answers.replace("owl", "Owl"))
    data = table(folder, aliases={"Löwe": "lion", "Owl": "owl"})
    assert data.table["concept"].tolist() == ["lion", "lion", "owl", "owl"]
    assert data.responses.table["guess_1"].tolist() == ["lion", "lion", "lion", "owl"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Lion", r"sketches .*: 2 value\(s\) are no labels, first 'Lion' in row 1, concept \(rows 1, 2; 1 different\)"),
        ("Lion", "'Lion' differs from the label 'lion' in case or in spaces only; correct them, say what they mean"),
        ("lions", r"nearest labels to 'lions': \['lion'\]"),
        ("Löwe", r"no label is like 'Löwe' \(another language\?\); .*aliases=\{NAME: LABEL\}, or set on_unknown=drop"),
        ("Hot air Balloon", "differs from the label 'hot-air balloon' in case"),
    ],
)
def test_unknown_concepts_name_the_nearest_and_are_never_guessed(study, sketches, name, message):
    folder = study(sketches=sketches.replace({"concept": {"lion": name}}))
    with pytest.raises(ValueError, match=message):
        table(folder, labels=LABELS)
    data = table(folder, labels=LABELS, on_unknown="drop")
    assert data.table["concept"].tolist() == ["owl", "owl"]
    assert data.dropped == {"sketch whose concept is no label": 2}
    assert data.responses.dropped == {"judgment of a sketch that is not in the data set": 2}


def test_unknown_guesses_and_empty_answers(study, answers):
    wrong = answers.assign(guess_1=["lion", "Lion", None, "owl"], guess_2=["owl", None, "owl", "Schnecke"])
    folder = study(responses=wrong)
    with pytest.raises(ValueError, match=r"responses .*guess_1 is empty in row 3; .*on_unknown=drop"):
        table(folder)
    with pytest.raises(ValueError, match=r"2 value\(s\) are no labels, first 'Lion' in row 2, guess_1 \(rows 2, 4; 2"):
        table(study(responses=wrong.assign(guess_1=["lion", "Lion", "owl", "owl"])))
    data = table(study(responses=wrong), on_unknown="drop")
    assert data.responses.dropped == {
        "judgment without a first guess": 1,
        "judgment whose first guess is no label": 1,
        "later guess that is no label": 1,
    }
    assert data.responses.table["participant"].tolist() == ["p1", "p2"]
    assert data.responses.table["guess_2"].tolist() == ["owl", None]
    assert data.responses.table["guess_3"].tolist() == [None, "lion"]
    with pytest.raises(ValueError, match=r"no judgment is left \(4 × judgment whose first guess is no label\)"):
        table(study(responses=answers.assign(guess_1="x")), on_unknown="drop")


def test_two_people_with_one_id(study, answers):
    doubled = pd.concat([answers, answers.iloc[[0]].assign(guess_1="snail")])
    folder = study(responses=doubled)
    with pytest.raises(ValueError, match=r"participant 'p1' judged sketch 'lion1' more than once \(rows 1, 5; 1 such"):
        table(folder)
    with pytest.raises(ValueError, match="two people with one id, or one upload twice"):
        table(folder)
    first = table(folder, on_repeat="first").responses
    assert first.table["guess_1"].tolist() == answers["guess_1"].tolist()
    assert first.dropped == {"repeated judgment of one sketch by one participant": 1}
    assert len(table(folder, on_repeat="keep").responses.table) == 5


def test_missing_and_outside_images(study, sketches):
    folder = study()
    (folder / "img" / "owl1.png").unlink()
    with pytest.raises(ValueError, match=r"1 image file\(s\) are missing, first .*img/owl1\.png \(row 3\); set images"):
        table(folder)
    data = table(folder, on_missing_image="drop")
    assert data.table["sketch_id"].tolist() == ["lion1", "lion2", "owl2"]
    assert data.dropped == {"sketch whose image file is missing": 1}
    for path in ("../lion.png", "/etc/passwd", "img\\lion1.png", "C:/x.png"):
        changed = sketches.assign(path=[*sketches["path"][:3], path])
        for settings in ({}, {"on_missing_image": "drop"}):
            with pytest.raises(ValueError, match=r"path '.*' in row 4 leads outside .*; paths are relative"):
                table(study(sketches=changed), **settings)


def test_wrong_tables_are_sentences(study, sketches, answers):
    def wrong(message, error=ValueError, **changes):
        with pytest.raises(error, match=message):
            table(study(**changes))

    wrong(
        r"sketches .* lacks the column\(s\) \['sketch_id'\]; columns found: .*perhaps rename 'sketchID' → sketch_id",
        sketches=sketches.rename(columns={"sketch_id": "sketchID"}),
    )
    wrong(r"lacks the column\(s\) \['participant'\]", responses=answers.drop(columns="participant"))
    wrong("was read as one column; separate cells by commas", sketches=sketches.to_csv(index=False).replace(",", ";"))
    wrong(
        "not a readable table .*are there cells too many", sketches=sketches.to_csv(index=False) + "a,b,1,1,c,1,9,9\n"
    )
    wrong("the table has no rows", sketches=sketches.head(0))
    wrong("not a readable table", sketches="")
    wrong(r"concept is empty in rows 2, 4; fill it in", sketches=sketches.assign(concept=["lion", None, "owl", None]))
    wrong(r"sketch_id 'owl1' stands in rows 1, 3", sketches=sketches.assign(sketch_id=["owl1", "a", "owl1", "b"]))
    wrong(r"condition is '4s' in rows 1, 3; it must be a", sketches=sketches.assign(condition=["4s", "8", "4s", "8"]))
    wrong(r"condition is empty in row 2", sketches=sketches.assign(condition=[4, None, 4, 8]))
    wrong(r"num_strokes is 'many' in row 2", sketches=sketches.assign(num_strokes=["1", "many", "", "2"]))
    wrong(r"participant is empty in row 4", responses=answers.assign(participant=["a", "b", "c", None]))
    wrong(r"up to five guesses are read.*\['guess_6'\]", responses=answers.assign(guess_6="lion"))
    wrong(
        "no judgment names a sketch of the data set; sketch_id is 'lion1.png' in the responses and 'lion1' in",
        responses=answers.assign(sketch_id=answers["sketch_id"] + ".png"),
    )
    data = table(study(sketches=sketches.assign(num_strokes=[1, None, 2, 3])))
    assert np.isnan(data.table["num_strokes"][1])


def test_wrong_files_and_arguments_are_sentences(study, tmp_path):
    folder = study()
    for settings, message in (
        ({"on_unknown": "skip"}, "on_unknown must be 'raise' or 'drop'"),
        ({"on_missing_image": "skip"}, "on_missing_image must be"),
        ({"on_repeat": "drop"}, "on_repeat must be one of"),
        ({"labels": "labels.txt", "conditions": [5]}, r"no item in condition\(s\) \[5.0\]; conditions with items: \[4"),
        ({"labels": ["lion"]}, "no labels"),
        ({"sketches": "labels.txt"}, "is no table; its name must end in"),
    ):
        with pytest.raises(ValueError, match=message):
            table(folder, **settings)
    for settings, message in (
        ({"root": tmp_path / "none"}, r"no folder .*expected a folder with sketches\.parquet or sketches\.csv"),
        ({"root": folder / "img"}, "no table of sketches in"),
        ({"root": folder, "responses": "none.csv"}, r"responses: no file none\.csv"),
        ({"root": folder, "labels": "none.txt"}, r"labels: no file none\.txt"),
        ({"root": folder, "images": "none"}, "no folder or zip file none"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            table(**settings)
    (folder / "sketches.tsv").write_text((folder / "sketches.csv").read_text().replace(",", "\t"))
    with pytest.raises(ValueError, match=r"holds sketches\.csv and sketches\.tsv; name one with sketches=FILE"):
        table(folder)
    assert len(table(folder, sketches="sketches.tsv")) == 4
    (folder / "sketches.tsv").unlink()
    (folder / "sketches.csv").write_bytes((folder / "sketches.csv").read_bytes().replace(b"owl1,", b"\xe4wl1,"))
    with pytest.raises(ValueError, match="is not UTF-8; save the table as UTF-8"):
        table(folder)
    (folder / "sketches.csv").unlink()
    (folder / "sketches.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        table(folder)


def test_labels_default_to_the_concepts(study):
    folder = study()
    (folder / "labels.txt").unlink()
    with pytest.raises(ValueError, match=r"first 'snail' in row 4, guess_2"):
        table(folder)
    assert table(folder, on_unknown="drop").labels == ("lion", "owl")
    (folder / "labels.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="holds no label"):
        table(folder)
