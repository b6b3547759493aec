"""The Strokes record: a batch of sketches as cubic Béziers in tensors, and its formats.

`Strokes` is what optimisers and rasterisers work on; `Drawing` (one sketch, plain arrays) is what files hold and the
hard renderer draws. Legend: B sketches, K curves a sketch (padded), S strokes of a sketch. Coordinates are canvas
units: [0, 1]², x to the right, y down; widths are fractions of the canvas side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from humanlike.data import stroke_formats, svg
from humanlike.data.drawing import DEFAULT_WIDTH, Drawing, EmptyDrawingError, Stroke

__all__ = ["DEFAULT_WIDTH", "Drawing", "EmptyDrawingError", "Stroke", "Strokes"]

Source = str | Path
Elements = tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, eq=False)
class Strokes:
    """B sketches of K cubic Bézier curves each.

    Attributes:
        points_BK42: (B, K, 4, 2) control points. Given as B lists of (n, 2) polylines instead, every segment becomes a
            straight cubic, gradients flow back to the vertices, and width, opacity and on-logit are then per polyline.
        width_BK: (B, K) pen widths, fractions of the canvas side; a number stands for all.
        opacity_BK: (B, K) in [0, 1]; a number stands for all.
        on_logit_BK: (B, K) logits of a curve being drawn at all, or None: all are.
        stroke_BK: (B, K) int64, which stroke of its sketch a curve belongs to, -1 for padding; default: curve k is
            stroke k. Chained curves of one movement of the pen share a number.
        elements: Per sketch, the name (or None) of the part that each stroke draws; or None.
        straight: True when every curve is a straight segment, so that a rasteriser may skip flattening.

    Raises:
        ValueError: For shapes that do not fit together.

    Example:
        >>> s = Strokes(torch.rand(2, 3, 4, 2), 0.02, 1.0)
        >>> s.batch_size, s.num_curves, s.to_drawings()[0].num_strokes
        (2, 3, 3)
    """

    points_BK42: Any
    width_BK: Any = DEFAULT_WIDTH
    opacity_BK: Any = 1.0
    on_logit_BK: Any = None
    stroke_BK: Any = None
    elements: Elements | None = None
    straight: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.points_BK42, torch.Tensor | np.ndarray):
            self._take_polylines(self.points_BK42)
        points = torch.as_tensor(self.points_BK42)
        points = points if points.is_floating_point() else points.float()
        if points.ndim != 4 or points.shape[2:] != (4, 2):
            raise ValueError(f"points_BK42 must have shape (B, K, 4, 2), got {tuple(points.shape)}")
        b, k = points.shape[:2]
        object.__setattr__(self, "points_BK42", points)
        for name in ("width_BK", "opacity_BK", "on_logit_BK"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _batched(value, points, name))
        stroke = torch.arange(k).expand(b, k) if self.stroke_BK is None else torch.as_tensor(self.stroke_BK)
        if tuple(stroke.shape) != (b, k) or stroke.is_floating_point():
            raise ValueError(f"stroke_BK must be integers of shape {(b, k)}, got {tuple(stroke.shape)}")
        object.__setattr__(self, "stroke_BK", stroke.to(points.device, torch.int64))
        if self.elements is not None:
            if len(self.elements) != b:
                raise ValueError(f"elements must have one tuple a sketch: {b} sketches, {len(self.elements)}")
            object.__setattr__(self, "elements", tuple(tuple(e) for e in self.elements))

    def _take_polylines(self, sketches: Sequence[Sequence[Any]]) -> None:
        """Replace ragged polylines by padded straight cubics, in torch operations."""
        curves, owners = [], []
        for lines in sketches:
            pieces = [_segments(torch.as_tensor(line)) for line in lines]
            empty = torch.zeros(0, 4, 2)
            curves.append(torch.cat(pieces) if pieces else empty)
            counts = torch.tensor([len(p) for p in pieces], dtype=torch.int64)
            owners.append(torch.repeat_interleave(torch.arange(len(pieces)), counts))
        stroke_BK = _padded(owners, -1)
        owner = stroke_BK.clamp(min=0)
        object.__setattr__(self, "points_BK42", _padded(curves, 0.5))
        object.__setattr__(self, "stroke_BK", stroke_BK)
        object.__setattr__(self, "straight", True)
        num_strokes = max((len(s) for s in sketches), default=0)
        for name in ("width_BK", "opacity_BK", "on_logit_BK"):
            value = getattr(self, name)
            if value is None or np.ndim(value) == 0:
                continue
            per_stroke = torch.as_tensor(value)
            if tuple(per_stroke.shape) != (len(curves), num_strokes):
                raise ValueError(
                    f"with polylines {name} must have one value a polyline, shape {(len(curves), num_strokes)}, "
                    f"got {tuple(per_stroke.shape)}"
                )
            object.__setattr__(self, name, torch.gather(per_stroke, 1, owner))

    @property
    def batch_size(self) -> int:
        """B, the number of sketches."""
        return int(self.points_BK42.shape[0])

    @property
    def num_curves(self) -> int:
        """K, the number of curves a sketch, padding included."""
        return int(self.points_BK42.shape[1])

    @property
    def mask_BK(self) -> torch.Tensor:
        """(B, K) bool, True for curves that are not padding."""
        return self.stroke_BK >= 0

    @classmethod
    def from_drawings(cls, drawings: Sequence[Drawing], dtype: torch.dtype = torch.float32) -> Strokes:
        """B drawings as one padded batch; times are not kept."""
        cubics = [[s.cubics() for s in d.strokes] for d in drawings]
        flat = [np.concatenate(c) if c else np.zeros((0, 4, 2)) for c in cubics]
        owner = [np.repeat(np.arange(len(c)), [len(x) for x in c]).astype(np.int64) for c in cubics]
        width = [np.array([s.width for s in d.strokes])[o] for d, o in zip(drawings, owner, strict=True)]
        opacity = [np.array([s.opacity for s in d.strokes])[o] for d, o in zip(drawings, owner, strict=True)]
        strokes = [s for d in drawings for s in d.strokes]
        return cls(
            _padded([torch.as_tensor(f) for f in flat], 0.5).to(dtype),
            _padded([torch.as_tensor(w) for w in width], DEFAULT_WIDTH).to(dtype),
            _padded([torch.as_tensor(o) for o in opacity], 0.0).to(dtype),
            stroke_BK=_padded([torch.as_tensor(o) for o in owner], -1),
            elements=tuple(tuple(s.element for s in d.strokes) for d in drawings),
            straight=bool(strokes) and not any(s.curved for s in strokes),
        )

    def to_drawings(self, min_on: float = 0.5) -> list[Drawing]:
        """One `Drawing` a sketch; strokes whose probability of being on is below `min_on` are left out.

        A stroke that stays is drawn with its whole opacity, however close to `min_on` it was: a pen draws or does not.
        A pen of no width, which the rasteriser draws as nothing, leaves nothing here either. Curves of one stroke that
        touch end to start are joined; where they do not, the stroke is split.
        """
        points = self.points_BK42.detach().double().cpu().numpy()
        width, opacity = (x.detach().double().cpu().numpy() for x in (self.width_BK, self.opacity_BK))
        shown = self.mask_BK & (self.width_BK > 0)
        if self.on_logit_BK is not None:
            shown = shown & (torch.sigmoid(self.on_logit_BK) >= min_on)
        shown_BK, stroke_BK = shown.cpu().numpy(), self.stroke_BK.cpu().numpy()
        drawings = []
        for b in range(self.batch_size):
            names = self.elements[b] if self.elements is not None else ()
            strokes = []
            for run in _runs(points[b], width[b], opacity[b], stroke_BK[b], shown_BK[b]):
                owner = int(stroke_BK[b, run[0]])
                strokes.append(
                    Stroke(
                        _chain(points[b, run], self.straight),
                        width=float(width[b, run[0]]),
                        opacity=float(np.clip(opacity[b, run[0]], 0, 1)),
                        curved=not self.straight,
                        element=names[owner] if owner < len(names) else None,
                    )
                )
            drawings.append(Drawing(tuple(strokes)))
        return drawings

    @classmethod
    def from_svg(cls, *sources: Source) -> Strokes:
        """Strokes of SVG files (or SVG texts), one sketch each; see `svg.read_svg`."""
        return cls.from_drawings([svg.read_svg(source) for source in sources])

    def to_svg(self, size: int = 224) -> list[str]:
        """SVG text of every sketch, `size` units wide; `to_drawings` says what is shown, `svg.drawing_to_svg` how."""
        return [svg.drawing_to_svg(d, size=size) for d in self.to_drawings()]

    @classmethod
    def from_stroke3(cls, *arrays: np.ndarray, scale: float | None = None) -> Strokes:
        """Strokes of (n, 3) stroke-3 arrays, one sketch each; see `stroke_formats.drawing_from_stroke3`."""
        return cls.from_drawings([stroke_formats.drawing_from_stroke3(a, scale=scale) for a in arrays])

    def to_stroke3(self, scale: float = 255.0, per_curve: int = 16) -> list[np.ndarray]:
        """(n, 3) stroke-3 array of every sketch; curves are flattened."""
        return [stroke_formats.drawing_to_stroke3(d, scale, per_curve) for d in self.to_drawings()]

    @classmethod
    def from_quickdraw(cls, *drawings: Sequence[Sequence[Sequence[float]]], margin: float = 0.05) -> Strokes:
        """Strokes of QuickDraw `drawing` fields (raw or simplified), one sketch each, fitted into the canvas."""
        return cls.from_drawings([stroke_formats.drawing_from_quickdraw(d, margin=margin) for d in drawings])

    def to_quickdraw(self, scale: float = 255.0) -> list[list[list[list[float]]]]:
        """QuickDraw's `drawing` field of every sketch, in units of `scale` a canvas side; curves are flattened."""
        return [stroke_formats.drawing_to_quickdraw(d, scale) for d in self.to_drawings()]

    def to_json(self) -> str:
        """JSON text of the sketches as drawings with their element names; see `stroke_formats`."""
        return stroke_formats.drawings_to_json(self.to_drawings())

    @classmethod
    def from_json(cls, text: str) -> Strokes:
        """Strokes of what `to_json` wrote."""
        return cls.from_drawings(stroke_formats.drawings_from_json(text))


def _batched(value: Any, points: torch.Tensor, name: str) -> torch.Tensor:
    tensor = torch.as_tensor(value, device=points.device)
    tensor = tensor if tensor.is_floating_point() else tensor.to(points.dtype)
    shape = tuple(points.shape[:2])
    if tensor.ndim not in (0, 2) or (tensor.ndim == 2 and tuple(tensor.shape) != shape):
        raise ValueError(f"{name} must be a number or have shape {shape}, got {tuple(tensor.shape)}")
    return tensor if tensor.ndim == 2 else tensor.to(points.dtype).expand(shape)


def _segments(line: torch.Tensor) -> torch.Tensor:
    """(n, 2) polyline → (max(n - 1, 1), 4, 2) straight cubics."""
    if line.ndim != 2 or line.shape[1] != 2 or len(line) == 0:
        raise ValueError(f"a polyline must have shape (n, 2) with n ≥ 1, got {tuple(line.shape)}")
    line = line if line.is_floating_point() else line.float()
    a, b = (line[:-1], line[1:]) if len(line) > 1 else (line, line)
    return torch.stack([a, (2 * a + b) / 3, (a + 2 * b) / 3, b], dim=1)


def _padded(rows: Sequence[torch.Tensor], value: float) -> torch.Tensor:
    if not rows:
        raise ValueError("a batch of strokes needs at least one sketch")
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)


def _runs(
    points: np.ndarray, width: np.ndarray, opacity: np.ndarray, stroke: np.ndarray, shown: np.ndarray
) -> list[list[int]]:
    """Indices of shown curves, grouped where neighbours belong to one stroke, touch and share pen and opacity."""
    runs: list[list[int]] = []
    for k in np.flatnonzero(shown):
        last = runs[-1][-1] if runs else -2
        joined = (
            last == k - 1
            and stroke[last] == stroke[k]
            and np.array_equal(points[last, 3], points[k, 0])
            and width[last] == width[k]
            and opacity[last] == opacity[k]
        )
        if joined:
            runs[-1].append(int(k))
        else:
            runs.append([int(k)])
    return runs


def _chain(curves: np.ndarray, straight: bool) -> np.ndarray:
    if straight:
        line = np.concatenate([curves[:1, 0], curves[:, 3]])
        return line[:1] if len(line) == 2 and np.array_equal(line[0], line[1]) else line
    return np.concatenate([curves[:1, 0], curves[:, 1:].reshape(-1, 2)])
