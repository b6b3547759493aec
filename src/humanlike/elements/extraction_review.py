"""A file for people to go over what a model named: delete a line, add one, or take the "#" off what was left out."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd
import yaml  # type: ignore[import-untyped]

from humanlike.elements.extraction import ExtractedElements
from humanlike.elements.list_files import scalar
from humanlike.files import write_text

_START = re.compile(r"^concepts:[ \t]*(?:#.*)?$", re.MULTILINE)
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
        f"author: {json.dumps(review_author(extracted), ensure_ascii=False)}",
        'reviewed: "not yet"',
        "concepts:",
        *_concepts(extracted, [*extracted.table["concept"].unique(), *extracted.failed]),
    ]
    return _INTRODUCTION + "\n".join(lines) + "\n"


def review_author(extracted: ExtractedElements) -> str:
    """Who wrote the file before people looked at it."""
    return f"{extracted.model}, {extracted.method}"


def continued_review(text: str, extracted: ExtractedElements, new: Collection[str]) -> str:
    """A review file, as people left it, with further concepts at its start.

    Args:
        text: The file.
        extracted: What a model named.
        new: Concepts to put in; a line that says why one of them had no list is taken out.

    Raises:
        ValueError: The file has no longer the form in which concepts can be put in.
    """
    if not new:
        return text
    for concept in new:
        text = re.sub(rf"^  # {re.escape(scalar(concept))}: .*\n", "", text, flags=re.MULTILINE)
    start = _START.search(text)
    longer = "" if start is None else "\n".join([text[: start.end()], *_concepts(extracted, new)]) + text[start.end() :]
    try:
        if start is None or yaml.compose(longer, Loader=yaml.SafeLoader) is None:
            raise yaml.YAMLError("there is no line `concepts:`")
    except yaml.YAMLError as error:
        raise ValueError(
            f"{len(new)} more concepts cannot be put into the reviewed file ({' '.join(str(error).split())[:160]}): "
            "lists stand below a line `concepts:`, two blanks from the margin; put it right, or name another folder"
        ) from error
    return longer


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


def _concepts(extracted: ExtractedElements, wanted: Collection[str]) -> list[str]:
    """Lines of some concepts."""
    lines = []
    for concept, table in extracted.table.groupby("concept", sort=False):
        if concept in wanted:
            off = "" if table["kept"].any() else "# "
            lines.append(f"  {off}{scalar(str(concept))}:")
            lines += [_line(row) for row in table.itertuples(index=False)]
    named = set(extracted.table["concept"])
    failed = {c: why for c, why in extracted.failed.items() if c in wanted and c not in named}
    return [*lines, *(f"  # {scalar(c)}: {_comment(why)}" for c, why in failed.items())]


def _line(row: Any) -> str:
    votes = f"{row.votes} of {row.samples}"
    if not row.kept:
        return f"    # - {scalar(row.element)}  # {row.reason}, {votes}"
    doubt = ", nobody said whether it lies inside" if pd.isna(row.inside) else ""
    return f"    - {scalar(row.element)}  # {votes}{doubt}"


def _comment(text: str) -> str:
    return " ".join(text.split())
