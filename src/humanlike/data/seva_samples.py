"""The 52 drawings of 13 SEVA concepts that are published as stimuli with the SEVA code (MIT licence)."""

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

ARCHIVE = "drawings.zip"
REPOSITORY = "github.com/cogtoolslab/visual_abstractions_benchmarking_public2023"
_LAYOUT = re.compile(r"(?:drawings/)?(?P<concept>[^/]+)/(?P=concept)\d*\.png")


def seva_samples(
    root: str | Path,
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    background: str = "white",
) -> Sketches:
    """Real drawings of banjo, bathtub, bed and ten more concepts, four each; one condition (0), no responses.

    Args:
        root: `drawings.zip`, a folder that holds it, or the folder of concept folders.
        labels: Label order; default: the concepts found, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        background: Colour under the transparent ground.

    Raises:
        FileNotFoundError: When nothing is at `root`, with where to get the drawings.
        ValueError: When `root` holds no drawings.
    """
    try:
        archive = open_archive(root, ARCHIVE)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"seva_samples: {error}; expected {ARCHIVE}, or folders <concept>/<concept><n>.png as in "
            f"experiments/recognition/stimuli/drawings of {REPOSITORY}"
        ) from error
    return sketches_from_archive(
        archive,
        _LAYOUT,
        options=DecodeOptions(background=background),
        labels=labels,
        semantic_space=semantic_space,
        name="seva_samples",
        source=f"SEVA stimuli, {REPOSITORY}, MIT licence",
    )
