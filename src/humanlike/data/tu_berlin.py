"""TU-Berlin sketches: 20,000 drawings of 250 objects, as PNG (1111 × 1111) or as SVG.

Eitz, Hays and Alexa (2012), How do humans sketch objects?, ACM Transactions on Graphics 31(4).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from humanlike.data.archives import open_archive
from humanlike.data.concepts import SemanticSpace
from humanlike.data.image_folder import sketches_from_archive
from humanlike.data.images import DecodeOptions
from humanlike.types import Sketches

FORMS = ("png", "svg")
HOME = "cybertron.cg.tu-berlin.de/eitz/projects/classifysketch"


def tu_berlin(
    root: str | Path,
    form: str = "png",
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    background: str = "white",
    svg_size: int = 256,
) -> Sketches:
    """The TU-Berlin sketches; one condition (0), no responses, every drawing its own source.

    Args:
        root: `sketches_png.zip` or `sketches_svg.zip`, read in place; a folder that holds it; or the unpacked folder
            of one folder a concept, perhaps inside `png` or `svg`.
        form: "png" or "svg".
        labels: Label order; default: the concepts found, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        background: Colour of the sheet.
        svg_size: Side in pixels at which SVG files are rasterised.

    Raises:
        FileNotFoundError: When nothing is at `root`, with where to get the drawings.
        ValueError: For an unknown form, or a `root` without drawings of that form.
    """
    if form not in FORMS:
        raise ValueError(f"tu_berlin: form must be one of {FORMS}, got {form!r}")
    try:
        archive = open_archive(root, f"sketches_{form}.zip")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"tu_berlin: {error}; expected sketches_{form}.zip or folders <concept>/<number>.{form}, from {HOME}"
        ) from error
    return sketches_from_archive(
        archive,
        re.compile(rf"(?:(?:.+/)?{form}/)?(?P<concept>[^/]+)/(?P<image_id>\d+)\.{form}"),
        options=DecodeOptions(background=background, svg_size=svg_size),
        labels=labels,
        semantic_space=semantic_space,
        name="tu_berlin",
        source=f"TU-Berlin sketches (Eitz et al. 2012), {HOME}, CC BY 4.0",
    )
