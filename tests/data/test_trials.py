"""Trial files: what is read, what is refused with its row, and published numbers of real people."""

import pandas as pd
import pytest
from PIL import Image

from humanlike.data.images import BadImageError
from humanlike.data.trials import read_trials, stimulus_of, trials

ROWS = [
    ("p1", "0001_edg_s01_0_cat_00_cat1.png", "cat", "cat", "0"),
    ("p1", "0002_edg_s01_0_dog_00_dog1.png", "dog", "na", "0"),
    ("p2", "0001_edg_s02_0_dog_00_dog1.png", "dog", "cat", "0"),
]
COLUMNS = ["subj", "imagename", "category", "object_response", "condition"]


@pytest.fixture
def write(tmp_path):
    """Write rows as a CSV, with columns of one's own."""

    def to_csv(rows=ROWS, columns=COLUMNS, name="trials.csv", **more):
        path = tmp_path / name
        pd.DataFrame(rows, columns=columns).assign(**more).to_csv(path, index=False)
        return path

    return to_csv


def test_people_become_responses_and_stimuli_items(write):
    data = trials(write(), condition_unit="")
    assert data.table["sketch_id"].tolist() == ["0_cat_00_cat1.png", "0_dog_00_dog1.png"]
    assert data.labels == ("cat", "dog")
    answers = data.responses.table[["participant", "sketch_id", "guess_1"]].to_numpy().tolist()
    assert answers == [
        ["p1", "0_cat_00_cat1.png", "cat"],
        ["p1", "0_dog_00_dog1.png", "na"],
        ["p2", "0_dog_00_dog1.png", "cat"],
    ]
    assert data.name == "trials"


def test_spelling_of_columns_parquet_and_stimulus_column(write, tmp_path):
    columns = ["Subject", "STIMULUS", "category", "object_response", "Condition"]
    rows = [(s, stimulus_of(i), c, r, t) for s, i, c, r, t in ROWS]
    from_csv = read_trials(write(rows, columns))
    path = tmp_path / "trials.parquet"
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    from_parquet = read_trials(path)
    pd.testing.assert_frame_equal(from_csv, from_parquet, check_dtype=False)
    assert from_csv["stimulus"].tolist() == read_trials(write())["stimulus"].tolist()


def test_conditions_are_numbers_of_their_names(write):
    rows = [("p", f"000{i}_cop_s01_{t}_cat_10_n{i}.png", "cat", "cat", t) for i, t in enumerate(["c05", "c100"])]
    rows.append(("p", "0009_cop_s01_c05_dog_10_n9.png", "dog", "dog", "c05"))
    data = trials(write(rows))
    assert dict(zip(data.table["condition_name"], data.table["condition"], strict=True)) == {"c05": 5.0, "c100": 100.0}
    data = trials(write(rows), condition_values={"c05": 1, "c100": 2})
    assert sorted(set(data.table["condition"])) == [1.0, 2.0]
    with pytest.raises(ValueError, match="'c100' needs a number in condition_values, which holds"):
        trials(write(rows), condition_values={"c05": 1})
    with pytest.raises(ValueError, match="'bw' needs a number in condition_values"):
        trials(write([(*row[:4], "bw") for row in ROWS]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"object_response": ["cat", "Cat", "dog"]}, r"no label, first 'Cat' in row 2 .*nearest label: cat"),
        ({"object_response": ["cat", "gato", "dog"]}, r"first 'gato' in row 2"),
        (
            {"object_response": ["cat", "", "dog"]},
            r"object_response is empty in row 2; a missing answer is written 'na'",
        ),
        (
            {"category": ["cat", "dog", "cat"]},
            r"stimulus '0_dog_00_dog1.png' has category \['dog', 'cat'\] in rows \[2, 3\]",
        ),
        ({"subj": ["p1", "p1", "p1"]}, r"'p1' answered '0_dog_00_dog1.png' in rows \[2, 3\] .*set on_repeat=first"),
        ({"category": ["na", "dog", "dog"]}, "'na' is the word for a missing answer"),
    ],
)
def test_bad_rows_are_named(write, change, message):
    path = write(**change)
    with pytest.raises(ValueError, match=message) as error:
        trials(path)
    assert str(path) in str(error.value)


def test_repeats_can_be_counted_instead(write):
    data = trials(write(subj="p1"), on_repeat="first")
    assert data.responses.table["guess_1"].tolist() == ["cat", "na"]
    assert data.responses.dropped == {"repeated trials": 1}
    with pytest.raises(ValueError, match="on_repeat must be one of"):
        trials(write(), on_repeat="last")


def test_several_experiments_need_a_choice(write):
    path = write(dataset=["edge", "edge", "sketch"])
    with pytest.raises(ValueError, match="holds the experiments edge, sketch; say which"):
        trials(path)
    with pytest.raises(ValueError, match=r"no experiment 'edges'.*did you mean 'edge'"):
        trials(path, experiment="edges")
    data = trials(path, experiment="edge")
    assert len(data.responses.table) == 2
    assert data.name == "edge"


def test_what_is_no_trial_file_is_refused(tmp_path, write):
    with pytest.raises(FileNotFoundError, match=r"no trial file .*absent\.csv"):
        read_trials(tmp_path / "absent.csv")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet: cannot be read as a table"):
        read_trials(tmp_path / "bad.parquet")
    (tmp_path / "bad.csv").write_bytes(b"subj\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"bad\.csv: cannot be read as a table"):
        read_trials(tmp_path / "bad.csv")
    with pytest.raises(ValueError, match="needs the columns subj, object_response, category and imagename or stimulus"):
        read_trials(write([("p", "cat")], ["subj", "category"]))
    with pytest.raises(ValueError, match="holds no trial"):
        read_trials(write([]))


def test_images_are_found_by_stimulus_or_named_when_absent(write, tmp_path):
    data = trials(write())
    with pytest.raises(BadImageError, match=r"answers without images; give dataset\.images"):
        data.images.load(0)
    assert data.images.content_hash(0) != data.images.content_hash(1)
    folder = tmp_path / "images" / "session-1"
    folder.mkdir(parents=True)
    image = Image.new("RGB", (4, 4), "white")
    image.putpixel((1, 1), (0, 0, 0))
    image.save(folder / "0007_edg_dnn_0_cat_00_cat1.png")
    with pytest.raises(FileNotFoundError, match=r"1 of 2 stimuli have no image .*first '0_dog_00_dog1\.png'"):
        trials(write(), images=tmp_path / "images")
    image.save(folder / "0_dog_00_dog1.png")
    assert trials(write(), images=tmp_path / "images").images.load(1).size == (4, 4)


@pytest.mark.data
def test_published_stimuli_are_joined(shared_data):
    path = shared_data / "modelvshuman" / "human_trials.parquet"
    table = pd.read_parquet(path)
    assert (table["imagename"].map(stimulus_of) == table["stimulus"]).all()
    data = trials(path, experiment="sketch")
    assert (len(data), len(data.labels), len(data.responses.table)) == (800, 16, 5600)
    right = data.responses.table["guess_1"] == data.responses.table["sketch_id"].map(
        dict(zip(data.table["sketch_id"], data.table["concept"], strict=True))
    )
    assert right.mean() == pytest.approx(0.916, abs=5e-4)
