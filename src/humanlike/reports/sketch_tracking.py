"""The same sketches over the steps of training, in whatever a run logs to that can show pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from humanlike.data.drawing import Drawing
from humanlike.data.render import Renderer
from humanlike.files import atomic_path

if TYPE_CHECKING:
    from pytorch_lightning.loggers import Logger


class SketchTracking:
    """Logs sketches as one sheet a step: TensorBoard and Weights & Biases as pictures, CSV as PNG files beside it.

    Args:
        loggers: Lightning loggers; those that can show no pictures are passed over.
        columns: Sketches a row of the sheet.
        size: Pixels a side of a sketch.
    """

    def __init__(self, loggers: Iterable[Logger], columns: int = 8, size: int = 96) -> None:
        self.loggers, self.columns, self.size = list(loggers), columns, size

    def show(self, step: int, drawings: Sequence[Drawing], concepts: Sequence[str]) -> None:
        """Log the sheet of a step; `concepts` become its caption."""
        from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger, WandbLogger

        if not self.loggers or not drawings:
            return
        pixels = sheet(drawings, self.columns, self.size)
        for logger in self.loggers:
            if isinstance(logger, TensorBoardLogger):
                logger.experiment.add_image("sketches", pixels, step, dataformats="HWC")
            elif isinstance(logger, WandbLogger):
                logger.log_image("sketches", [pixels], step, caption=[", ".join(dict.fromkeys(concepts))])
            elif isinstance(logger, CSVLogger):
                _write_png(Path(logger.log_dir) / "sketches" / f"{step:06d}.png", pixels)


def sheet(drawings: Sequence[Drawing], columns: int = 8, size: int = 96) -> np.ndarray:
    """(rows · size, columns · size, 3) uint8: drawings side by side, rendered by resvg, the last row filled with white.

    Example:
        >>> sheet([Drawing(())] * 3, columns=2, size=8).shape
        (16, 16, 3)
    """
    renderer = Renderer(size=size)
    tiles = [np.asarray(renderer(d)) for d in drawings]
    tiles += [np.full((size, size, 3), 255, np.uint8)] * (-len(tiles) % columns)
    rows = [np.concatenate(tiles[i : i + columns], axis=1) for i in range(0, len(tiles), columns)]
    return np.concatenate(rows)


def _write_png(path: Path, pixels: Any) -> None:
    from PIL import Image

    with atomic_path(path) as temporary:
        Image.fromarray(pixels).save(temporary)
