from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from humanlike.data.doodles import CONCEPTS, doodles
from humanlike.data.doodles.contact_sheet import CAPTION_PX, contact_sheet
from humanlike.types import ImageSource, Sketches


def test_the_whole_demo(demo: Sketches) -> None:
    assert len(demo) == 48 * 16 * 4
    assert demo.labels == tuple(concept.name for concept in CONCEPTS)
    assert sorted(demo.table["condition"].unique()) == [4, 8, 16, 32]
    assert (demo.table.groupby("image_id")["condition"].nunique() == 4).all()
    assert (demo.table.groupby("image_id")["concept"].nunique() == 1).all()
    assert demo.table["image_id"].nunique() == 768
    assert demo.flags == ("simulated_participants",)
    assert demo.semantic_space is not None
    assert len(demo.semantic_space) == 48
    assert isinstance(demo.images, ImageSource)


def test_doodles_of_another_seed_are_other_sources() -> None:
    tables = [doodles(["lion", "taxi"], 2, judgments=0, seed=seed).table for seed in (0, 3)]
    assert tables[0]["sketch_id"].tolist() == tables[1]["sketch_id"].tolist()
    assert tables[0]["image_id"].iloc[0] == "lion-00"
    assert tables[1]["image_id"].iloc[0] == "seed3-lion-00"
    assert (tables[1].groupby("image_id")["condition"].nunique() == 4).all()


def test_less_time_means_less_drawn(demo: Sketches) -> None:
    assert demo.elements is not None
    strokes = demo.table.groupby("condition")["num_strokes"].mean().to_numpy()
    assert (np.diff(strokes) > 2).all()
    joined = demo.elements.merge(demo.table[["sketch_id", "condition"]])
    share = joined.groupby("condition")["drawn"].mean().to_numpy()
    assert share == pytest.approx([0.25, 0.45, 0.67, 0.88], abs=0.03)
    assert joined.groupby("sketch_id")["drawn"].any().all()


def test_tables_agree_with_the_drawings(small: Sketches) -> None:
    assert small.elements is not None
    truth = small.elements[small.elements["drawn"]].groupby("sketch_id")["element"].agg(set)
    for i, row in small.table.iterrows():
        drawing = small.images.drawing(i)
        assert drawing.num_strokes == row["num_strokes"]
        # Strokes without a name are additions: ground, hatching, false starts.
        assert {s.element for s in drawing.strokes if s.element} == truth[row["sketch_id"]]
        x0, y0, x1, y1 = drawing.box()
        assert min(x0, y0) > -0.02
        assert max(x1, y1) < 1.02


def test_hurried_strokes_have_fewer_points(demo: Sketches) -> None:
    per_stroke = {}
    for t in (4.0, 8.0, 16.0):
        rows = np.flatnonzero(demo.table["condition"] == t)[::16]
        drawings = [demo.images.drawing(int(i)) for i in rows]
        # Outlines only: what gets left out differs in its number of points.
        first = [len(s.points) for d in drawings for s in d.strokes if s.element in ("body", "head", "wheel", "disc")]
        per_stroke[t] = np.mean(first)
    assert per_stroke[4.0] <= per_stroke[8.0] < per_stroke[16.0]


def test_images_are_ink_on_white(small: Sketches) -> None:
    for i in range(0, len(small), 5):
        image = small.images.load(i)
        pixels = np.asarray(image.convert("L"))
        assert (image.mode, image.size) == ("RGB", (256, 256))
        assert np.median(pixels) == 255
        assert pixels.min() < 60
        assert 0.001 < (pixels < 128).mean() < 0.25


def test_everything_has_an_address() -> None:
    small = doodles(concepts=["lion", "taxi"], instances=2, judgments=0)
    large = doodles(concepts=["cow", "lion", "taxi"], instances=3, conditions=[2, 4, 8, 16, 32], judgments=0)
    for i, sketch_id in enumerate(small.table["sketch_id"]):
        j = int(np.flatnonzero(large.table["sketch_id"] == sketch_id)[0])
        assert small.images.content_hash(i) == large.images.content_hash(j)
        assert small.table["num_strokes"][i] == large.table["num_strokes"][j]
    again = doodles(concepts=["taxi", "lion"], instances=2, judgments=0)
    assert again.table.equals(small.table)
    assert again.images.load(3).tobytes() == small.images.load(3).tobytes()


def test_the_hash_knows_what_fixes_the_pixels() -> None:
    variants = ({}, {"seed": 1}, {"size": 128}, {"stroke_width": 0.02}, {"variation": 0.5})
    hashes = {doodles(["lion", "taxi"], 1, judgments=0, **v).images.content_hash(0) for v in variants}
    assert len(hashes) == 5
    assert "lion, instance 0, 4 s, seed 0" in doodles(["lion", "taxi"], 1, judgments=0).images.describe(0)


def pixel_accuracy(variation: float) -> float:
    """Share of 12 concepts that a linear model on small raw pixels names right, with four further instances each."""
    data = doodles(12, 12, conditions=[32], judgments=0, size=28, stroke_width=0.05, variation=variation)
    pixels = np.stack([np.asarray(data.images.load(i).convert("L"), float).ravel() for i in range(len(data))])
    train = data.table["image_id"].str[-2:].astype(int).to_numpy() < 8
    scaler = StandardScaler().fit(pixels[train])
    model = LogisticRegression(C=0.01, max_iter=200).fit(scaler.transform(pixels[train]), data.target_N[train])
    return model.score(scaler.transform(pixels[~train]), data.target_N[~train])


def test_doodles_can_be_told_apart_and_the_harder_the_more_people_differ() -> None:
    tidy, usual = pixel_accuracy(0.0), pixel_accuracy(1.0)
    # Raw pixels know nothing of shift and mirroring; chance is 1/12.
    assert tidy > 0.3
    assert 1 / 12 < usual < tidy - 0.1


def test_selection_keeps_tables_together(small: Sketches) -> None:
    part = small.select(np.arange(0, len(small), 4))
    assert part.elements is not None
    assert set(part.elements["sketch_id"]) == set(part.table["sketch_id"])
    assert part.images.content_hash(1) == small.images.content_hash(4)


def test_no_people_on_request() -> None:
    data = doodles(concepts=4, instances=1, judgments=0)
    assert data.responses is None
    assert data.flags == ()
    assert len(data.labels) == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"concepts": ["lion", "tiggr"]}, "no doodle of 'tiggr'"),
        ({"concepts": ["lion", "giraf"]}, "did you mean giraffe"),
        ({"concepts": ["lion"]}, "two or more different"),
        ({"concepts": ["lion", "lion"]}, "two or more different"),
        ({"concepts": "lion"}, "list of names"),
        ({"concepts": 1}, "between 2 and 48"),
        ({"concepts": 49}, "between 2 and 48"),
        ({"instances": 0}, "instances must be 1 or more"),
        ({"judgments": -1}, "judgments must be 0 or more"),
        ({"variation": -0.1}, "variation must lie between 0 and 2"),
        ({"conditions": []}, "one or more different"),
        ({"conditions": [4, 4.0]}, "one or more different"),
        ({"conditions": [0]}, "positive number of seconds"),
    ],
)
def test_faults_are_named(arguments: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        doodles(**arguments)


def test_configuration_names_every_argument_with_its_default(repository: Path) -> None:
    conf = yaml.safe_load((repository / "conf" / "dataset" / "doodles.yaml").read_text())
    assert conf.pop("_target_") == "humanlike.data.doodles.dataset.doodles"
    parameters = inspect.signature(doodles).parameters
    assert {k: tuple(v) if isinstance(v, list) else v for k, v in conf.items()} == {
        name: p.default for name, p in parameters.items()
    }


def test_contact_sheet(small: Sketches) -> None:
    sheet = contact_sheet(small, [0, 1, 2], columns=2)
    assert sheet.size == (512, 2 * (256 + CAPTION_PX))
    assert np.asarray(sheet).min() < 60
