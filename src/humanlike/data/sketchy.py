"""The Sketchy database: 75,471 sketches of 12,500 photographs in 125 categories, several sketches a photograph.

Sangkloy, Burnell, Ham and Hays (2016), The Sketchy database, ACM Transactions on Graphics 35(4).
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

HOME = "sketchy.eye.gatech.edu"


def sketchy(
    root: str | Path,
    variant: str = "tx_000000000000",
    labels: Sequence[str] | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    background: str = "white",
) -> Sketches:
    """The sketches of the Sketchy database; one condition (0), no responses.

    All sketches of one photograph share its name as `image_id`, so that no fold separates them.

    Args:
        root: The unpacked `rendered_256x256`, any folder below it (`256x256`, `sketch`, the variant), or a zip of one.
        variant: Folder of one rendering: tx_000000000000 as drawn, tx_000100000000 centred and scaled to the box of the
            photographed object, and others.
        labels: Label order; default: the concepts found, sorted.
        semantic_space: A space, or the arguments of `load_semantic_space` with perhaps `aliases`.
        background: Colour of the sheet.

    Raises:
        FileNotFoundError: When nothing is at `root`, with where to get the sketches.
        ValueError: When `root` holds no sketches of the variant, naming the variants that are there.
    """
    expected = f"folders 256x256/sketch/{variant}/<concept>/<photo>-<n>.png, from {HOME}"
    try:
        archive = open_archive(root)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"sketchy: {error}; expected {expected}") from error
    matcher = re.compile(rf"(?:(?:.+/)?{re.escape(variant)}/)?(?P<concept>[^/]+)/(?P<image_id>[^/]+)-\d+\.png")
    found = archive.names()
    if not any(matcher.fullmatch(name) for name in found):
        variants = sorted({part for name in found for part in name.split("/") if re.fullmatch(r"tx_\d+", part)})
        raise ValueError(
            f"sketchy: no sketch of variant {variant!r} in {root}; variants there: {variants or 'none'}; "
            f"expected {expected}"
        )
    return sketches_from_archive(
        archive,
        matcher,
        options=DecodeOptions(background=background),
        labels=labels,
        semantic_space=semantic_space,
        name="sketchy",
        source=f"The Sketchy database (Sangkloy et al. 2016), {HOME}",
    )
