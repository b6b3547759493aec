"""Facts about all of SEVA's sketches (`neurips_DB_human_clean.csv`), and how the judged ones fit into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from humanlike.data.seva_trials import PRACTICE, budgets, check_unique_ids, without
from humanlike.data.table_files import read_table, refuse_empty, refuse_repeated

COLUMNS = ("sketch_id", "concept", "uniqueID", "filename", "abstraction")
TEXT = ("sketch_id", "concept", "uniqueID", "filename")
FACTS = ("concept", "condition", "image_id")


def read_metadata(path: Path, labels: Sequence[str], dropped: Counter[str]) -> tuple[pd.DataFrame, int]:
    """One row a sketch: `sketch_id, concept` (the uniqueID), `condition` (s), `image_id`, `num_strokes` where known.

    The strokes themselves, most of the file, are not read.

    Args:
        path: The file.
        labels: THINGS uniqueIDs.
        dropped: Reason → sketches left out; added to.

    Returns:
        The table, and how many rows the file has.

    Raises:
        FileNotFoundError: When the file is missing.
        ValueError: Naming the rows (from 1) of what cannot be read.
    """
    where = f"sketch metadata {path}"
    table = read_table(path, COLUMNS, TEXT, "sketch metadata", only=(*COLUMNS, "num_strokes"))
    rows_read = len(table)
    table = without(
        table,
        {
            "practice sketch": table["concept"] == PRACTICE,
            "metadata without a sketch id": table["sketch_id"].isna() | (table["sketch_id"] == "nan"),
        },
        dropped,
    )
    refuse_empty(table, ("uniqueID", "filename"), where)
    refuse_repeated(table, "sketch_id", where)
    check_unique_ids(table, labels, where)
    table["condition"] = budgets(table["abstraction"], where, "s")
    table = table.drop(columns=["concept", "abstraction"])
    table = table.rename(columns={"uniqueID": "concept", "filename": "image_id"})
    if "num_strokes" in table.columns:
        table["num_strokes"] = pd.to_numeric(table["num_strokes"], errors="coerce")
    return table, rows_read


def with_metadata(judged: pd.DataFrame, metadata: pd.DataFrame, items: str) -> pd.DataFrame:
    """The judged sketches, or all, with stroke counts from the metadata where the recognition trials have none.

    Args:
        judged: One row a judged sketch.
        metadata: One row a sketch.
        items: "judged", or "all" for every sketch of either table.

    Returns:
        The sketches, sorted by concept, condition and id, with the column `judged`.

    Raises:
        ValueError: When the two tables disagree on a sketch's concept, time or photograph.
    """
    known = metadata.set_index("sketch_id")
    both = judged[judged["sketch_id"].isin(known.index)]
    for column in FACTS:
        other = both["sketch_id"].map(known[column])
        torn = (both[column] != other).to_numpy()
        if torn.any():
            key, said, known_as = both["sketch_id"][torn].iloc[0], both[column][torn].iloc[0], other[torn].iloc[0]
            said, known_as = (f"{v:g}" if column == "condition" else v for v in (said, known_as))
            raise ValueError(
                f"seva: {column} of sketch {key!r} is {said} in the recognition trials and {known_as} in the metadata "
                f"({int(torn.sum())} such sketches): the two files do not belong together"
            )
    table = judged.assign(judged=True)
    if "num_strokes" in metadata.columns:
        counted = table["sketch_id"].map(known["num_strokes"])
        table["num_strokes"] = table["num_strokes"].fillna(counted) if "num_strokes" in table.columns else counted
    if items == "all":
        others = metadata[~metadata["sketch_id"].isin(set(judged["sketch_id"]))].assign(judged=False)
        table = pd.concat([table, others], ignore_index=True)
    return table.sort_values(["concept", "condition", "sketch_id"]).reset_index(drop=True)
