"""How strokes came to where they are: frames of a batch of sketches, and an SVG that plays them by itself.

Legend: F frames, B sketches, K strokes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import torch

from humanlike.data.drawing import Drawing
from humanlike.data.strokes import Strokes
from humanlike.data.svg import SVG_NAMESPACE
from humanlike.files import write_text

VISIBLE = 0.01
"""Opacity below which a stroke is not drawn in a frame."""
LABEL = 22
"""Units of a cell's height that its label takes."""


@dataclass(frozen=True)
class Trajectory:
    """Strokes of B sketches at F moments.

    Attributes:
        points_FBK42: (F, B, K, 4, 2) control points, canvas units.
        width_FBK: (F, B, K) fractions of the canvas side.
        opacity_FBK: (F, B, K), 0 for a stroke that is off.

    Example:
        >>> t = Trajectory.of(Strokes(torch.rand(2, 3, 4, 2), 0.02, 1.0))
        >>> t.and_then(Strokes(torch.rand(2, 3, 4, 2), 0.02, 1.0)).num_frames
        2
    """

    points_FBK42: torch.Tensor
    width_FBK: torch.Tensor
    opacity_FBK: torch.Tensor

    @classmethod
    def of(cls, strokes: Strokes) -> Trajectory:
        """One frame."""
        opacity_BK = strokes.opacity_BK.detach().clamp(0, 1)
        if strokes.on_logit_BK is not None:
            opacity_BK = opacity_BK * strokes.on_logit_BK.detach().sigmoid()
        opacity_BK = torch.where(strokes.mask_BK, opacity_BK, 0.0)
        return cls(*(x.detach().cpu().clone()[None] for x in (strokes.points_BK42, strokes.width_BK, opacity_BK)))

    @property
    def num_frames(self) -> int:
        """F."""
        return len(self.points_FBK42)

    @property
    def batch_size(self) -> int:
        """B."""
        return int(self.points_FBK42.shape[1])

    def and_then(self, strokes: Strokes) -> Trajectory:
        """One frame more."""
        return self.after(Trajectory.of(strokes))

    def after(self, later: Trajectory) -> Trajectory:
        """The frames of another one after these."""
        return Trajectory(
            *(torch.cat(pair) for pair in zip(self.tensors().values(), later.tensors().values(), strict=True))
        )

    def beside(self, other: Trajectory) -> Trajectory:
        """The sketches of another one, with as many frames and strokes, after these."""
        pairs = zip(self.tensors().values(), other.tensors().values(), strict=True)
        return Trajectory(*(torch.cat(pair, dim=1) for pair in pairs))

    def tensors(self) -> dict[str, torch.Tensor]:
        """The three tensors by name."""
        return dict(vars(self))

    def drawing(self, frame: int, sketch: int) -> Drawing:
        """What is to be seen of a sketch at a frame."""
        seen = self.opacity_FBK[frame, sketch] >= VISIBLE
        points, width, opacity = (x[frame, sketch][seen].double().numpy() for x in self.tensors().values())
        return Drawing.from_cubics(points, width=width.tolist(), opacity=opacity.tolist())


def columns_of(cells: int) -> int:
    """Columns of a grid that is about as wide as high."""
    return math.ceil(math.sqrt(cells))


def animated_svg(
    trajectory: Trajectory, names: Sequence[str], size: int = 160, duration_s: float = 5.0, rest: float = 0.25
) -> str:
    """All sketches in a grid, moving from the first frame to the last, again and again (SMIL).

    The file needs nothing outside itself. A program that does not play animations shows the last frame.

    Args:
        trajectory: The frames.
        names: Label under every sketch.
        size: Units a side of a sketch.
        duration_s: Seconds of one round.
        rest: Share of a round in which the last frame stands still, in [0, 1).

    Raises:
        ValueError: Names are not as many as sketches, or a number is out of range.
    """
    if len(names) != trajectory.batch_size:
        raise ValueError(f"names must have one entry a sketch: {trajectory.batch_size} sketches, {len(names)} names")
    if not 0 <= rest < 1 or not duration_s > 0:
        raise ValueError(f"duration_s must be positive and rest lie in [0, 1), got {duration_s} and {rest}")
    columns = columns_of(len(names))
    rows = math.ceil(len(names) / columns)
    width, height = columns * size, rows * (size + LABEL)
    times = [f * (1 - rest) / max(trajectory.num_frames - 1, 1) for f in range(trajectory.num_frames)]
    timing = f'dur="{duration_s:g}s" repeatCount="indefinite" keyTimes="{";".join(f"{t:.4g}" for t in [*times, 1.0])}"'
    lines = [
        f'<svg xmlns="{SVG_NAMESPACE}" version="1.1" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="strokes of {len(names)} sketches being optimised">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for b, name in enumerate(names):
        x, y = b % columns * size, b // columns * (size + LABEL)
        lines.append(
            f'<svg x="{x}" y="{y}" width="{size}" height="{size}" viewBox="0 0 {size} {size}">'
            f'<g fill="none" stroke="black" stroke-linecap="round" stroke-linejoin="round">'
        )
        lines += [_path(trajectory, b, k, size, timing) for k in range(trajectory.points_FBK42.shape[2])]
        lines.append("</g></svg>")
        lines.append(
            f'<text x="{x + size / 2:g}" y="{y + size + 0.7 * LABEL:g}" font-family="sans-serif" font-size="12" '
            f'text-anchor="middle" fill="#555">{escape(name)}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def write_animated_svg(path: str | Path, trajectory: Trajectory, names: Sequence[str], size: int = 160) -> None:
    """Write `animated_svg` to a file atomically."""
    write_text(path, animated_svg(trajectory, names, size))


def _path(trajectory: Trajectory, b: int, k: int, size: int, timing: str) -> str:
    """One stroke: its last state as attributes, its way as animations of those that change."""
    points = (trajectory.points_FBK42[:, b, k] * size).flatten(1).tolist()
    values = {
        "d": ["M{:.2f} {:.2f}C{:.2f} {:.2f} {:.2f} {:.2f} {:.2f} {:.2f}".format(*p) for p in points],
        "stroke-width": [f"{w * size:.3g}" for w in trajectory.width_FBK[:, b, k].tolist()],
        "stroke-opacity": [f"{a:.3g}" for a in trajectory.opacity_FBK[:, b, k].tolist()],
    }
    last = " ".join(f"{name}={quoteattr(states[-1])}" for name, states in values.items())
    moves = "".join(
        f'<animate attributeName="{name}" {timing} values={quoteattr(";".join([*states, states[-1]]))}/>'
        for name, states in values.items()
        if len(set(states)) > 1
    )
    return f"<path {last}>{moves}</path>"
