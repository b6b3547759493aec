"""`humanlike extract`: concepts → lists of elements from a language model, with a file for people to review."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.launch import LossesError, launch

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.backbones.progress import Progress
    from humanlike.elements.extraction import ExtractedElements
    from humanlike.elements.lists import ElementLists

REVIEW, LISTS, VOTES, RECORD = "review.yaml", "elements.yaml", "votes.parquet", "extract.json"


def main() -> None:
    """Run the command line."""
    launch("extract", extract_job)


def extract_job(config: DictConfig, folder: Path) -> None:
    """Ask for lists and write them into `folder`; a review file that is there is the last word.

    Raises:
        LossesError: More concepts than allowed have no list; the others are written.
        EndpointError: The run cannot go on. What was answered is kept.
        ValueError: Concepts or settings cannot be used, or the review file is of another model or prompt.
    """
    from humanlike.elements.extraction_review import review_author
    from humanlike.entry.environment import prepare
    from humanlike.entry.extract_concepts import asked_concepts
    from humanlike.entry.targets import build
    from humanlike.reports.run_folder import write_table

    prepare(config)
    began = time.perf_counter()
    extractor = build(config.extractor)  # without a key it ends here
    with extractor.client:
        concepts = asked_concepts(config)
        before = _record(folder)
        _same_method(folder, before, f"{extractor.client.source}, {extractor.method}")
        told = _Told()
        try:
            found = extractor.extract(concepts, told)
        finally:
            told.close()
        counts = extractor.client.counts
    lists, edited = _reviewed(folder, found, before)
    write_table(folder / VOTES, found.table)
    seen = set(before.get("seen", ())) if before.get("method") == review_author(found) else set()
    seen |= {*lists.elements, *found.table.loc[found.table["kept"], "concept"]}
    left_out = [c for c in concepts if edited and c in seen and c not in lists.elements]
    failed = {c: why for c, why in found.failed.items() if c not in lists.elements and c not in left_out}
    record = _about(config, concepts, found, lists, counts, time.perf_counter() - began)
    record |= {"failed": failed, "left_out_by_review": left_out, "edited": edited, "seen": sorted(seen)}
    record["review_sha256"] = _digest(folder / REVIEW)
    _write_lists(folder, lists, edited)
    _write_record(folder, record)
    print("\n".join(_lines(folder, record)))
    if len(failed) > config.max_failures:
        first = "; ".join(f"{c}: {why}" for c, why in list(failed.items())[:3])
        raise LossesError(f"{len(failed)} of {len(concepts)} concepts have no list ({first})")


class _Told:
    """Progress of one kind of question after the other."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: Progress | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        from humanlike.backbones.progress import Progress

        if what != self._what or self._bar is None:
            self.close()
            self._what, self._bar = what, Progress(total, what, unit="questions")
        self._bar.advance(done - self._bar.done)

    def close(self) -> None:
        """End the line."""
        if self._bar is not None:
            self._bar.close()


def _record(folder: Path) -> dict[str, Any]:
    """What the last run in this folder wrote of itself; empty where there was none."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{folder / RECORD} is damaged ({error}); remove it, or name another folder: to=…") from error
    return dict(record)


def _same_method(folder: Path, before: Mapping[str, Any], method: str) -> None:
    """Refuse to mix a person's review with the answers of another model, before anything is asked."""
    if _is_edited(folder, before) and before.get("method", method) != method:
        raise ValueError(
            f"{folder / REVIEW} was edited by hand and is of {before['method']}; this run is of {method}: name another "
            "folder (to=FOLDER), or move the file away"
        )


def _is_edited(folder: Path, before: Mapping[str, Any]) -> bool:
    """Whether people have changed the review file since it was written."""
    path = folder / REVIEW
    return path.is_file() and (bool(before.get("edited")) or before.get("review_sha256") != _digest(path))


def _reviewed(folder: Path, found: ExtractedElements, before: Mapping[str, Any]) -> tuple[ElementLists, bool]:
    """Write the review file, or add to it what it has not had; its lists, and whether people have edited it."""
    from humanlike.elements.extraction_review import continued_review, review_author, review_text
    from humanlike.elements.list_files import read_list_file
    from humanlike.elements.lists import ElementLists
    from humanlike.files import write_text

    path, edited = folder / REVIEW, _is_edited(folder, before)
    if not path.is_file() or (not edited and before.get("method") != review_author(found)):
        write_text(path, review_text(found))
        return ElementLists.from_yaml(path), False
    known = {entry.concept for entry in read_list_file(path).entries}
    known |= set(before.get("seen", ()))  # what is not in the file any more, a person took out
    named = [*found.table["concept"].unique(), *found.failed]
    older = path.read_text(encoding="utf-8-sig")
    text = continued_review(older, found, [c for c in dict.fromkeys(named) if c not in known])
    if text != older:
        write_text(path, text)
    return ElementLists.from_yaml(path), edited


def _about(
    config: DictConfig,
    concepts: Mapping[str, str],
    found: ExtractedElements,
    lists: ElementLists,
    counts: Mapping[str, int],
    seconds: float,
) -> dict[str, Any]:
    """The record, but for what the review decides."""
    from humanlike.elements.extraction_review import review_author
    from humanlike.reports.config_record import masked_config

    return {
        "model": found.model,
        "method": review_author(found),
        "source": lists.source,
        "concepts": dict(concepts),
        "elements": sum(len(e) for e in lists.elements.values()),
        "counts": dict(counts),
        "seconds": seconds,
        "config": masked_config(config),
    }


def _write_lists(folder: Path, lists: ElementLists, edited: bool) -> None:
    """The lists as `benchmark.elements` takes them; none where nothing is left."""
    from humanlike.elements.list_files import list_file_text, read_list_file
    from humanlike.files import write_text

    path = folder / LISTS
    if not lists.elements:
        path.unlink(missing_ok=True)
        return
    header = dict(read_list_file(folder / REVIEW).header)
    if edited and header.get("reviewed") == "not yet":
        header["reviewed"] = "edited by hand, nobody says by whom"
    about = f"Written by `humanlike extract` out of {REVIEW}: edit that file, and run the command again."
    write_text(path, list_file_text(lists.elements, header, about))


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    from humanlike.elements.linter import lint
    from humanlike.files import write_json

    path = folder / LISTS
    found = [p for p in lint([path]) if p.rule != "file"] if path.is_file() else []
    record["remarks"] = [str(p).replace(f"{path}:", f"{LISTS}:", 1) for p in found]
    write_json(folder / RECORD, record)


def _digest(path: Path) -> str:
    from humanlike.files import sha256_file

    return sha256_file(path)


def _lines(folder: Path, record: Mapping[str, Any]) -> list[str]:
    """What the command says in the end."""
    counts = record["counts"]
    with_list = len(record["concepts"]) - len(record["failed"]) - len(record["left_out_by_review"])
    lines = [
        f"{with_list} of {len(record['concepts'])} concepts have a list; {counts['requests']} requests, "
        f"{counts['tokens']} tokens, {counts.get('kept', 0)} answers that were there",
    ]
    if record["left_out_by_review"]:
        lines.append(f"left out by the review: {', '.join(record['left_out_by_review'])}")
    if record["edited"]:
        lines.append(f"{REVIEW} was edited by hand and is the last word")
    if record["remarks"]:
        lines.append(f"{len(record['remarks'])} remark(s) of the linter, in {RECORD}; first: {record['remarks'][0]}")
    if not (folder / LISTS).is_file():
        return [*lines, f"written to {folder}: {REVIEW}"]
    return [*lines, f"written to {folder}: look over {REVIEW}; use benchmark.elements={folder / LISTS}"]
