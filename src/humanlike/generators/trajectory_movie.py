"""A trajectory as a film: GIF by Pillow, MP4 where imageio-ffmpeg is installed; frames are drawn by resvg."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from humanlike.data.render import Renderer
from humanlike.files import atomic_path
from humanlike.generators.trajectory import LABEL, Trajectory, columns_of

FFMPEG = "imageio_ffmpeg"


def movie_frames(trajectory: Trajectory, names: Sequence[str], size: int = 128) -> list[Image.Image]:
    """Every frame as an RGB picture: all sketches in a grid with their names, sides even as video wants them.

    Args:
        trajectory: The frames.
        names: Label under every sketch.
        size: Pixels a side of a sketch.
    """
    columns = columns_of(len(names))
    rows = math.ceil(len(names) / columns)
    width, height = columns * size, rows * (size + LABEL)
    sheet_size = (width + width % 2, height + height % 2)
    renderer = Renderer(size=size)
    sheets = []
    for frame in range(trajectory.num_frames):
        sheet = Image.new("RGB", sheet_size, "white")
        pen = ImageDraw.Draw(sheet)
        for b, name in enumerate(names):
            x, y = b % columns * size, b // columns * (size + LABEL)
            sheet.paste(renderer(trajectory.drawing(frame, b)), (x, y))
            pen.text((x + size / 2, y + size + LABEL / 2), name, fill="#555555", anchor="mm", font_size=11)
        sheets.append(sheet)
    return sheets


def write_gif(path: str | Path, frames: Sequence[Image.Image], duration_s: float = 5.0) -> None:
    """Write a GIF that plays for ever and rests on the last frame for a quarter of its time, atomically.

    Args:
        path: A `.gif` file.
        frames: What `movie_frames` gives.
        duration_s: Seconds of one round.
    """
    small = [frame.quantize(32) for frame in frames]
    each_ms = max(20, round(750 * duration_s / len(small)))
    rests_ms = [each_ms] * (len(small) - 1) + [round(250 * duration_s) + each_ms]
    with atomic_path(path) as temporary:
        small[0].save(temporary, save_all=True, append_images=small[1:], duration=rests_ms, loop=0, optimize=False)


def can_write_mp4() -> bool:
    """Whether imageio-ffmpeg, which brings an encoder, is installed."""
    return importlib.util.find_spec(FFMPEG) is not None


def write_mp4(path: str | Path, frames: Sequence[Image.Image], duration_s: float = 5.0) -> None:
    """Write an MP4 (H.264) that rests on the last frame for a quarter of its time, atomically.

    Args:
        path: An `.mp4` file.
        frames: What `movie_frames` gives.
        duration_s: Seconds.

    Raises:
        ModuleNotFoundError: imageio-ffmpeg is not installed.
    """
    if not can_write_mp4():
        raise ModuleNotFoundError("an MP4 needs the package imageio-ffmpeg: pip install humanlike[video]")
    encoder = importlib.import_module(FFMPEG)
    shown = [*frames, *[frames[-1]] * math.ceil(len(frames) / 3)]
    with atomic_path(path) as temporary:
        writer = encoder.write_frames(
            str(temporary), frames[0].size, fps=len(shown) / duration_s, macro_block_size=2, ffmpeg_log_level="error"
        )
        writer.send(None)
        for frame in shown:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
