"""Lists of elements out of feature norms: what language models (or people) said that things have.

Reads the table `llm, concept_id, feature, n_runs, is_part` of GPT feature norms for THINGS concepts.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from humanlike.elements.extraction_words import normal
from humanlike.elements.lists import ElementLists

COLUMNS = ("llm", "concept_id", "feature", "n_runs", "is_part")


def norm_models(path: str | Path) -> tuple[str, ...]:
    """The language models of a table.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It has other columns.
    """
    return tuple(sorted(_table(path)["llm"].unique()))


def norm_lists(path: str | Path, model: str, min_runs: int = 4, words: bool = True) -> ElementLists:
    """The parts that one model named for every concept, most runs first.

    Features of one to four words count; those that no drawing can show are in ("has a sense of smell").

    Args:
        path: The table.
        model: A value of its column `llm`.
        min_runs: Runs in which a feature must have come up.
        words: Whether parts are brought to one spelling ("wing"); False: as the table has them but for "has" ("wings").

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It has other columns, or not this model, or no part of it in so many runs.
    """
    table = _table(path)
    if model not in set(table["llm"]):
        raise ValueError(f"{path} has no model {model!r}; it has {', '.join(sorted(table['llm'].unique()))}")
    used = table[(table["llm"] == model) & table["is_part"].astype(bool) & (table["n_runs"] >= min_runs)]
    used = used.sort_values(["concept_id", "n_runs", "feature"], ascending=[True, False, True])
    stripped = used["feature"].str.strip().str.replace(r"^(has|have)\s+(an?\s+|the\s+)?", "", regex=True)
    normalised = used["feature"].map(normal)
    pairs = pd.DataFrame({"concept": used["concept_id"], "element": normalised if words else stripped})
    pairs = pairs[normalised.str.len() > 0].drop_duplicates()
    if not len(pairs):
        raise ValueError(f"{path} has no part that {model} named in {min_runs} runs or more; ask for fewer runs")
    found = {str(c): tuple(group) for c, group in pairs.groupby("concept", sort=True)["element"]}
    return ElementLists(
        f"norms:{model}", found, dict.fromkeys(found, f"{model} in {Path(path).name}, {min_runs} runs or more")
    )


def _table(path: str | Path) -> pd.DataFrame:
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"no table of feature norms at {path}")
    table = pd.read_csv(path)
    lacking = [c for c in COLUMNS if c not in table.columns]
    if lacking:
        raise ValueError(f"{path}: lacks the column(s) {lacking}; a table of norms has {COLUMNS}")
    return table
