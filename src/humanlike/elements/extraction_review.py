"""A file for people to go over what a model named: delete a line, add one, or take the "#" off what was left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped]

from humanlike.elements.extraction import ExtractedElements
from humanlike.files import write_text

_PLAIN = re.compile(r"[a-z][a-z' -]*[a-z]")
_INTRODUCTION = """\
# Elements that a language model named, for people to review. Delete what is wrong and add what is missing. Lines that
# begin with "#" were left out, for the reason beside them: take the "#" away to count them in. Say who looked at it,
# and when, in `author` and `reviewed`. humanlike.elements.lists.ElementLists.from_yaml reads this file.
"""


def review_text(extracted: ExtractedElements) -> str:
    """The file: a list a concept with votes as comments, and as comments what was left out.

    A concept without a list is a comment as a whole, because a list needs an element.
    """
    lines = [
        f"author: {json.dumps(f'{extracted.model}, {extracted.method}', ensure_ascii=False)}",
        'reviewed: "not yet"',
        "concepts:",
    ]
    for concept, table in extracted.table.groupby("concept", sort=False):
        off = "" if table["kept"].any() else "# "
        lines.append(f"  {off}{_scalar(str(concept))}:")
        lines += [_line(row) for row in table.itertuples(index=False)]
    named = set(extracted.table["concept"])
    lines += [f"  # {_scalar(c)}: {_comment(why)}" for c, why in extracted.failed.items() if c not in named]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def write_review(path: str | Path, extracted: ExtractedElements, overwrite: bool = False) -> None:
    """Write the file.

    Args:
        path: The file.
        extracted: What a model named.
        overwrite: Whether a file that is there, perhaps with somebody's work in it, is replaced.

    Raises:
        FileExistsError: There is such a file and `overwrite` is False.
    """
    if Path(path).exists() and not overwrite:
        raise FileExistsError(f"{path} is there already, perhaps reviewed; name another file, or say overwrite=True")
    write_text(path, review_text(extracted))


def _line(row: Any) -> str:
    votes = f"{row.votes} of {row.samples}"
    if not row.kept:
        return f"    # - {_scalar(row.element)}  # {row.reason}, {votes}"
    doubt = ", nobody said whether it lies inside" if pd.isna(row.inside) else ""
    return f"    - {_scalar(row.element)}  # {votes}{doubt}"


def _scalar(word: str) -> str:
    """A word as YAML reads it back: in quotes where it would be taken for something else (no, off, 1)."""
    return word if _PLAIN.fullmatch(word) and yaml.safe_load(word) == word else json.dumps(word, ensure_ascii=False)


def _comment(text: str) -> str:
    return " ".join(text.split())
