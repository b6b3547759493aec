"""Animations: SMIL that parses, plays the right numbers and ends on the drawing; films read back by other libraries."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from PIL import Image

from humanlike.data.render import rasterize_svg, render
from humanlike.data.strokes import Strokes
from humanlike.generators.trajectory import LABEL, Trajectory, animated_svg, write_animated_svg
from humanlike.generators.trajectory_movie import movie_frames, write_gif, write_mp4

SVG = "{http://www.w3.org/2000/svg}"


def strokes(seed, on=None, num=3):
    points = torch.rand(num, 4, 4, 2, generator=torch.Generator().manual_seed(seed))
    return Strokes(points, 0.02 + 0.01 * seed, 1.0, None if on is None else torch.full((num, 4), on))


@pytest.fixture
def trajectory():
    return Trajectory.of(strokes(0, 2.0)).and_then(strokes(1, 0.5)).and_then(strokes(2))


def test_every_stroke_plays_all_frames_and_rests_on_the_last(trajectory):
    root = ET.fromstring(animated_svg(trajectory, ["a", "b<", "c"], size=100))
    paths = root.findall(f".//{SVG}path")
    assert len(paths) == 12
    moves = {a.get("attributeName"): a for a in paths[0].findall(f"{SVG}animate")}
    assert set(moves) == {"d", "stroke-width", "stroke-opacity"}
    values = moves["d"].get("values").split(";")
    assert len(values) == 4 == len(moves["d"].get("keyTimes").split(";"))
    assert values[2] == values[3] == paths[0].get("d")
    numbers = [float(x) for x in values[0].replace("M", "").replace("C", " ").split()]
    assert np.allclose(numbers, trajectory.points_FBK42[0, 0, 0].flatten() * 100, atol=0.0051)
    times = [float(t) for t in moves["d"].get("keyTimes").split(";")]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (0, 1)
    assert float(moves["stroke-opacity"].get("values").split(";")[0]) == pytest.approx(1 / (1 + np.exp(-2)), abs=1e-3)
    assert "b<" in [t.text for t in root.findall(f"{SVG}text")]
    assert "http" not in animated_svg(trajectory, ["a", "b", "c"]).replace("http://www.w3.org/2000/svg", "")


def test_without_animation_the_last_frame_is_seen(trajectory):
    text = animated_svg(trajectory, ["a", "b", "c"], size=100)
    sheet = np.asarray(rasterize_svg(text, 200 + 2 * LABEL).convert("L"), dtype=float)
    last = np.asarray(render(trajectory.drawing(-1, 0), 100).convert("L"), dtype=float)
    cell = sheet[:100, LABEL : LABEL + 100]  # 200 wide in a square of 244: centred
    assert np.abs(cell - last).mean() < 3


def test_a_stroke_that_is_off_is_not_drawn():
    frames = Trajectory.of(strokes(0, -9.0)).and_then(strokes(0))
    assert frames.drawing(0, 0).num_strokes == 0
    assert frames.drawing(1, 0).num_strokes == 4
    both = frames.beside(frames)
    assert both.batch_size == 6
    assert both.after(both).num_frames == 4


def test_films_hold_every_frame(trajectory, tmp_path):
    frames = movie_frames(trajectory, ["a", "b", "c"], size=65)
    assert [f.size for f in frames] == [(130, 174)] * 3
    cell = np.asarray(frames[0].convert("L"), dtype=float)[:65, :65]
    assert np.abs(cell - np.asarray(render(trajectory.drawing(0, 0), 65).convert("L"), dtype=float)).max() < 1
    write_gif(tmp_path / "t.gif", frames, duration_s=2.0)
    with Image.open(tmp_path / "t.gif") as gif:
        assert gif.n_frames == 3
        assert gif.info["loop"] == 0
        total = 0
        for i in range(3):
            gif.seek(i)
            total += gif.info["duration"]
            shown = np.asarray(gif.convert("L"), dtype=float)
            assert np.abs(shown - np.asarray(frames[i].convert("L"), dtype=float)).mean() < 3
    assert total == pytest.approx(2000, abs=30)


def test_an_mp4_is_written_where_there_is_an_encoder(trajectory, tmp_path):
    frames = movie_frames(trajectory, ["a", "b", "c"], size=64)
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        with pytest.raises(ModuleNotFoundError, match=r"humanlike\[video\]"):
            write_mp4(tmp_path / "t.mp4", frames)
        return
    import imageio_ffmpeg

    write_mp4(tmp_path / "t.mp4", frames, duration_s=2.0)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(tmp_path / "t.mp4"))
    assert (count, seconds) == (4, pytest.approx(2.0, abs=0.3))


def test_names_and_times_are_checked(trajectory, tmp_path):
    with pytest.raises(ValueError, match="3 sketches, 1 names"):
        write_animated_svg(tmp_path / "t.svg", trajectory, ["a"])
    with pytest.raises(ValueError, match="rest lie in"):
        animated_svg(trajectory, ["a", "b", "c"], rest=1.0)
