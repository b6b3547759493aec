"""SEVA after `humanlike convert seva`: the sketches that people judged, or all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.data.concepts import SemanticSpace
from humanlike.data.labels import require_choice
from humanlike.data.seva import ITEMS
from humanlike.data.table import table
from humanlike.types import Sketches


def seva(
    root: str | Path,
    items: str = "judged",
    responses: str | Path | None = None,
    labels: Sequence[str] | str | Path | None = None,
    semantic_space: SemanticSpace | Mapping[str, Any] | None = None,
    conditions: Sequence[float] | None = None,
    on_unknown: str = "raise",
    on_missing_image: str = "raise",
    on_repeat: str = "raise",
    name: str | None = None,
    condition_unit: str | None = None,
    background: str | None = None,
) -> Sketches:
    """The folder that `humanlike convert seva` or `convert seva_clipasso` wrote.

    Args:
        root: The folder.
        items: "judged": the sketches of the recognition experiment, which are scored and on which the readout is
            fitted by default; "all": also those that nobody judged, marked by `judged` = False.
        responses: See `humanlike.data.table.table`, as all that follow.
        labels: Label order.
        semantic_space: Semantic space.
        conditions: Conditions that must be there.
        on_unknown: "raise" or "drop".
        on_missing_image: "raise" or "drop".
        on_repeat: "raise", "first" or "keep".
        name: Name in results.
        condition_unit: Unit of the conditions.
        background: Colour under transparent pixels.

    Raises:
        FileNotFoundError: When the folder or a file is missing.
        ValueError: When the folder holds no sketch that nobody judged and all are asked for, and see `table`.
    """
    require_choice(items, "items", ITEMS)
    if not Path(root).expanduser().is_dir():
        raise FileNotFoundError(
            f"seva: no folder {root}; make it from the published files: `humanlike convert seva PUBLISHED {root}`, "
            "after `humanlike prefetch dataset=seva_published dataset.root=PUBLISHED`, which fetches the files that "
            "have a direct link and names the others"
        )
    data = table(
        root,
        responses=responses,
        labels=labels,
        semantic_space=semantic_space,
        conditions=conditions,
        on_unknown=on_unknown,
        on_missing_image=on_missing_image,
        on_repeat=on_repeat,
        name=name,
        condition_unit=condition_unit,
        background=background,
    )
    judged_N = data.table["judged"].to_numpy(bool) if "judged" in data.table.columns else np.ones(len(data), bool)
    if items == "judged":
        return data if judged_N.all() else data.select(np.flatnonzero(judged_N))
    if judged_N.all():
        raise ValueError(
            f"seva: {root} holds only the {len(data)} sketches that people judged; for all of them run "
            f"`humanlike convert seva PUBLISHED_FILES FOLDER items=all` and set dataset.root=FOLDER"
        )
    return data
