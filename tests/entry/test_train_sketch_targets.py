"""What is drawn: names, concepts, files and items; where strokes begin on a picture."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from humanlike.backbones.vision import TimmBackbone
from humanlike.data.doodles.dataset import doodles
from humanlike.entry.train_sketch_targets import (
    concept_targets,
    image_targets,
    initial_strokes,
    item_targets,
    saliency,
)
from humanlike.losses_features import FeatureLoss

KNOWN = ("cat", "dog", "lion", "owl")


@pytest.fixture
def folder(tmp_path):
    """Two pictures: a black square at the right of a white sheet, and a transparent sheet with a square at the left."""
    sheet = np.full((40, 60, 3), 255, np.uint8)
    sheet[10:30, 40:55] = 0
    Image.fromarray(sheet).save(tmp_path / "right.png")
    clear = np.zeros((60, 60, 4), np.uint8)
    clear[10:30, 5:20] = (10, 10, 10, 255)
    Image.fromarray(clear).save(tmp_path / "left.png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def test_concepts_are_names_a_number_or_all():
    assert concept_targets(KNOWN, None, 1).names == KNOWN
    assert concept_targets(KNOWN, 2, 1).concepts == ("cat", "lion")
    assert concept_targets(KNOWN, ["owl"], 2).names == ("owl_0", "owl_1")
    with pytest.raises(ValueError, match=r"cannot recognise 'lyon'; did you mean lion"):
        concept_targets(KNOWN, ["lyon"], 1)
    with pytest.raises(ValueError, match=r"a number in \[1, 4\], got 5"):
        concept_targets(KNOWN, 5, 1)


def test_pictures_are_files_and_folders_with_a_concept_each_one_or_none(folder):
    found = image_targets(folder, (), ())
    assert found.names == ("left", "right")
    assert found.concepts == ()
    assert found.canvases(32).shape == (2, 3, 32, 32)
    assert found.canvases(32)[0, :, 0, 0].tolist() == pytest.approx([1, 1, 1])  # transparency is white
    assert image_targets(folder, ("cat",), KNOWN).concepts == ("cat", "cat")
    twice = image_targets([str(folder / "left.png"), str(folder / "left.png")], ("cat", "dog"), KNOWN)
    assert twice.names == ("left", "left-1")
    assert twice.part(slice(1, 2)).concepts == ("dog",)
    with pytest.raises(ValueError, match=r"one a picture \(2\), or none; got 3"):
        image_targets(folder, ("cat", "dog", "owl"), KNOWN)
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist"):
        image_targets(folder / "nowhere", (), ())


def test_items_are_spread_over_the_data_set_or_over_concepts():
    data = doodles(concepts=["lion", "taxi"], instances=2, judgments=0, size=32)
    found = item_targets(data, 2, ())
    assert found.concepts == ()
    assert len(set(found.sources)) == 2
    assert item_targets(data, 3, ("taxi",)).concepts == ("taxi",) * 3
    with pytest.raises(ValueError, match=r"\[1, 8\]"):
        item_targets(data, 9, ("taxi",))


@pytest.mark.parametrize("architecture", ["test_vit", "test_efficientnet"])
def test_strokes_begin_on_the_lines_of_the_picture(folder, architecture):
    network = FeatureLoss(TimmBackbone(architecture, weights=None))
    targets = image_targets(folder / "right.png", (), ())
    start = initial_strokes(targets, 8, 0, 64, network)[0, :, 0]
    # The square covers columns 40 to 55 and rows 10 to 30 of 60 × 40 pixels, padded to 60 × 60.
    inside_x = (start[:, 0] > 38 / 60) & (start[:, 0] < 57 / 60)
    inside_y = (start[:, 1] > 18 / 60) & (start[:, 1] < 42 / 60)
    assert (inside_x & inside_y).all()
    assert torch.equal(start, initial_strokes(targets, 8, 0, 64, network)[0, :, 0])


def test_the_border_that_a_transformer_never_sees_is_not_attended_to():
    network = FeatureLoss(TimmBackbone("test_vit", weights=None, transform={"crop_pct": 0.5}))
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    attended = saliency(network, x)
    assert not attended[0, :16].any()
    assert not attended[0, :, 48:].any()
    assert attended[0, 16:48, 16:48].max() == 1
    gradient = saliency(network, x, attention=False)
    assert gradient.shape == (1, 64, 64)
    assert not torch.equal(gradient, attended)
