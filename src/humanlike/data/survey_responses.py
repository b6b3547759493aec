"""What people answered on a survey's page: exported JSON files or flat tables → one table of judgments.

Nothing is repaired: an order that lacks a sketch, an answer given twice or files of two surveys are refused with file
and row. People who fail attention checks are left out and counted. docs/human_study.md describes both forms.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from humanlike.data.survey import KINDS, Kind, Survey
from humanlike.data.survey_exports import SCHEMA, VALUES, Session, session_of
from humanlike.data.table_files import SUFFIXES, read_table, refuse_empty, rows_named

COLUMNS = ("participant", "item", "sketch_id")
_A: dict[Kind, str] = {"ranking": "a ranking", "rating": "a rating", "acceptance": "an acceptance"}
_TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


@dataclass(frozen=True)
class SurveyResponses:
    """Judgments of everybody who paid attention.

    Attributes:
        kind: "ranking", "rating" or "acceptance".
        table: One row a (participant, item, sketch): `participant, item, sketch_id`, then `rank` (1 = first), or
            `rating`, or `accepted` (of the whole item) and `shown` (place on the page, 1 = first); `seconds` (NaN where
            unknown; of the whole item).
        participants: One row a person, those left out too: `participant, answers, checks, checks_failed, complete,
            excluded`.
        fingerprint: Of the survey; None where the files do not say.
        counts: `participants, participants_excluded, participants_incomplete, judgments, judgments_excluded`.
        files: Where all came from.
    """

    kind: Kind
    table: pd.DataFrame
    participants: pd.DataFrame
    fingerprint: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def read_survey_responses(
    paths: Sequence[str | Path],
    survey: Survey | None = None,
    sketch_ids: Collection[str] | None = None,
    max_failed_checks: int = 0,
) -> SurveyResponses:
    """Read answers and check them.

    Args:
        paths: Exported JSON files, tables (.csv, .tsv, .parquet), or folders whose JSON files are all read.
        survey: The survey, if at hand: answers must be of this very page.
        sketch_ids: Sketches that can be judged; others are refused. Default: those of the survey, if given.
        max_failed_checks: Attention checks that somebody may fail and still count.

    Raises:
        FileNotFoundError: When a file is missing or a folder holds no answers.
        ValueError: Naming file and row or answer: two surveys mixed, unknown sketches, orders that are incomplete,
            ratings outside the scale, repeated answers, nobody left.
    """
    if max_failed_checks < 0:
        raise ValueError(f"max_failed_checks is {max_failed_checks}; it must be 0 or more")
    known: set[str] | None = None
    if sketch_ids is not None:
        known = set(sketch_ids)
    elif survey is not None:
        known = set(survey.sketch_ids)
    files = _files(paths)
    sessions = [session for file in files for session in _sessions(file, known)]
    _same_survey(sessions, survey)
    _each_once(sessions)
    if survey is not None:
        _of_the_survey(sessions, survey)
    return _joined(sessions, max_failed_checks, tuple(map(str, files)))


def _files(paths: Sequence[str | Path]) -> list[Path]:
    found: list[Path] = []
    for given in paths:
        path = Path(given).expanduser()
        if path.is_dir():
            inside = sorted(p for p in path.glob("*.json") if p.name not in ("survey.json", "agreement.json"))
            if not inside:
                raise FileNotFoundError(f"{path} holds no answers (*.json); name files that the page exported")
            found += inside
        elif not path.is_file():
            raise FileNotFoundError(f"there is no file of answers {path}; name JSON files that the page exported")
        else:
            found.append(path)
    if not found:
        raise ValueError("no file of answers was named")
    return list(dict.fromkeys(found))


def _sessions(path: Path, known: set[str] | None) -> list[Session]:
    if path.suffix.lower() in SUFFIXES:
        return _table_sessions(path, known)
    try:
        record = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:
        raise ValueError(
            f"responses {path} is not JSON ({error}); export it again from the page, or give a table {SUFFIXES}"
        ) from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        said = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise ValueError(f"responses {path} has the schema {said!r}, this version reads {SCHEMA!r}")
    return [session_of(record, f"responses {path}", known)]


def _table_sessions(path: Path, known: set[str] | None) -> list[Session]:
    """The participants of a flat table; a rating's item may be left out, it is the sketch."""
    where = f"responses {path}"
    table = read_table(path, ("participant", "sketch_id"), (*COLUMNS, "fingerprint"), "responses")
    present = [kind for kind in KINDS if VALUES[kind][0] in table.columns]
    if len(present) != 1:
        raise ValueError(
            f"{where}: a table of answers has either a column 'rank' (a ranking) or a column 'rating' or a column "
            f"'accepted' (an acceptance), found {present or 'none'} among {list(table.columns)}"
        )
    kind = present[0]
    lacking = [c for c in ("item", *VALUES[kind]) if c not in table.columns and kind != "rating"]
    if lacking:
        words = {"item": "which says what was ordered together", "shown": "the place on the page, 1 = first"}
        raise ValueError(f"{where}: {_A[kind]} needs the column {lacking[0]!r}, {words[lacking[0]]}")
    table = table if "item" in table.columns else table.assign(item=table["sketch_id"])
    refuse_empty(table, COLUMNS, where)
    for column in VALUES[kind]:
        values = (_truths if column == "accepted" else _numbers)(table, column, where)
        table = table.assign(**{column: values})
    if known is not None:
        unknown = np.flatnonzero(~table["sketch_id"].isin(known).to_numpy())
        if len(unknown):
            raise ValueError(
                f"{where}: {rows_named(unknown)}: there is no sketch {table['sketch_id'].iloc[unknown[0]]!r}; "
                "are these answers to other sketches?"
            )
    keys = list(COLUMNS)
    repeated = np.flatnonzero(table.duplicated(keys, keep=False).to_numpy())
    if len(repeated):
        first = table.iloc[repeated[0]]
        same = np.flatnonzero((table[keys] == first[keys]).all(axis=1).to_numpy())
        raise ValueError(
            f"{where}: {rows_named(same)} are answers by {first['participant']!r} to the same question, item "
            f"{first['item']!r} with {first['sketch_id']!r}; keep one"
        )
    if kind != "rating":
        _refuse_incomplete(table, where, kind)
    return [_table_session(own, str(person), kind, where) for person, own in table.groupby("participant", sort=False)]


def _numbers(table: pd.DataFrame, column: str, where: str) -> np.ndarray:
    values = pd.to_numeric(table[column], errors="coerce").to_numpy(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"{where}: {column} in {rows_named(wrong)} is {table[column].tolist()[wrong[0]]!r}; it must be a number"
        )
    return values


def _truths(table: pd.DataFrame, column: str, where: str) -> np.ndarray:
    values = [_TRUTHS.get(str(value).strip().lower()) for value in table[column]]
    wrong = np.flatnonzero([value is None for value in values])
    if len(wrong):
        raise ValueError(
            f"{where}: {column} in {rows_named(wrong)} is {table[column].tolist()[wrong[0]]!r}; it must be true or "
            "false"
        )
    return np.array(values, bool)


def _refuse_incomplete(table: pd.DataFrame, where: str, kind: Kind) -> None:
    """Every (participant, item) must hold the ranks, or places on the page, 1 … M, and one answer to all."""
    column, words = ("rank", "rank(s)") if kind == "ranking" else ("shown", "place(s) on the page (shown)")
    for (person, item), own in table.groupby(["participant", "item"], sort=False):
        if kind == "acceptance" and own["accepted"].nunique() > 1:
            raise ValueError(
                f"{where}: {rows_named(own.index.to_numpy())}: {person!r} both accepted and rejected item {item!r}; an "
                "order is accepted as a whole, so every row of it must say the same"
            )
        ranks = sorted(own[column])
        if len(ranks) < 2 or ranks != list(range(1, len(ranks) + 1)):
            shown = ", ".join(f"{r:g}" for r in ranks)
            raise ValueError(
                f"{where}: {rows_named(own.index.to_numpy())}: {person!r} gave item {item!r} the {words} {shown}; each "
                "of 1, 2, 3, … must occur once, for two sketches or more"
            )


def _table_session(own: pd.DataFrame, person: str, kind: Kind, where: str) -> Session:
    fingerprints = set(own["fingerprint"].dropna()) if "fingerprint" in own.columns else set()
    if len(fingerprints) > 1:
        raise ValueError(f"{where}: answers by {person!r} have several fingerprints, {sorted(fingerprints)}")
    failed = 0
    if "checks_failed" in own.columns:
        failed = int(np.nanmax(_numbers(own, "checks_failed", where)))
    seconds = _seconds(own, where) if "seconds" in own.columns else np.nan
    rows = own[[*COLUMNS, *VALUES[kind]]].assign(seconds=seconds, place=[f"row {i + 1}" for i in own.index])
    return Session(person, kind, rows, next(iter(fingerprints), None), None, failed, None, where)


def _seconds(own: pd.DataFrame, where: str) -> np.ndarray:
    """Times, NaN where a cell is empty; a text or a negative time is refused."""
    given = own["seconds"].notna().to_numpy()
    values = pd.to_numeric(own["seconds"], errors="coerce").to_numpy(np.float64)
    wrong = np.flatnonzero(given & ~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ValueError(
            f"{where}: seconds in {rows_named(own.index.to_numpy()[wrong])} is {own['seconds'].tolist()[wrong[0]]!r}; "
            "it must be a number of 0 or more, or be left empty"
        )
    return values


def _same_survey(sessions: Sequence[Session], survey: Survey | None) -> None:
    first = sessions[0]
    for session in sessions[1:]:
        if session.kind != first.kind:
            raise ValueError(f"{first.where} is {_A[first.kind]} and {session.where} {_A[session.kind]}; part them")
        if None not in (session.fingerprint, first.fingerprint) and session.fingerprint != first.fingerprint:
            raise ValueError(
                f"{first.where} answers the survey {first.fingerprint} and {session.where} the survey "
                f"{session.fingerprint}; answers to two pages cannot be mixed, read them apart"
            )
    if survey is None:
        return
    for session in sessions:
        if session.kind != survey.kind or session.fingerprint not in (None, survey.fingerprint):
            raise ValueError(
                f"{session.where} answers {_A[session.kind]} with the fingerprint {session.fingerprint}, but the "
                f"survey given is {_A[survey.kind]} with {survey.fingerprint}; take the "
                "survey.json beside the page they used"
            )


def _each_once(sessions: Iterable[Session]) -> None:
    seen: dict[str, Session] = {}
    for session in sessions:
        if session.participant in seen:
            raise ValueError(
                f"{session.where} and {seen[session.participant].where} both hold answers by {session.participant!r}; "
                "keep the later export, or tell two people apart by their ids"
            )
        seen[session.participant] = session
        again = session.table["sketch_id"].duplicated() if session.kind == "rating" else pd.Series(dtype=bool)
        if again.any():
            row = session.table[again].iloc[0]
            raise ValueError(
                f"{session.where}, {row['place']}: {session.participant!r} rated {row['sketch_id']!r} before, as "
                "another item; keep one of the ratings"
            )


def _of_the_survey(sessions: Sequence[Session], survey: Survey) -> None:
    """Every answer is to a question of the survey, about its sketches, on its scale."""
    asked = {question.item: set(question.sketch_ids) for question in survey.items}
    for session in sessions:
        for (item,), own in session.table.groupby(["item"], sort=False):
            place = f"{session.where}, {own['place'].iloc[0]}"
            if str(item) not in asked and survey.kind != "rating":
                raise ValueError(f"{place}: the survey has no item {item!r}; take the survey.json beside the page")
            if survey.kind != "rating" and set(own["sketch_id"]) != asked[str(item)]:
                raise ValueError(
                    f"{place}: item {item!r} was answered for {sorted(own['sketch_id'])}, the survey asks for "
                    f"{sorted(asked[str(item)])}; take the survey.json beside the page"
                )
        if survey.scale is not None:
            wrong = [r not in survey.scale for r in session.table["rating"].tolist()]
            if any(wrong):
                row = session.table.iloc[wrong.index(True)]
                raise ValueError(
                    f"{session.where}, {row['place']}: the rating of {row['sketch_id']!r} is {row['rating']:g}; the "
                    f"survey's scale is {survey.scale.low} to {survey.scale.high} in steps of {survey.scale.step}"
                )


def _joined(sessions: Sequence[Session], allowed: int, files: tuple[str, ...]) -> SurveyResponses:
    people = pd.DataFrame(
        {
            "participant": [s.participant for s in sessions],
            "answers": [s.table["item"].nunique() for s in sessions],
            "checks": pd.array([s.checks for s in sessions], dtype="Int64"),
            "checks_failed": [s.checks_failed for s in sessions],
            "complete": pd.array([s.complete for s in sessions], dtype="boolean"),
            "excluded": [s.checks_failed > allowed for s in sessions],
        }
    )
    kept = [s for s in sessions if s.checks_failed <= allowed]
    if not any(len(s.table) for s in kept):
        raise ValueError(
            f"nobody's answers are left: {int(people['excluded'].sum())} of {len(people)} people failed more than "
            f"{allowed} attention check(s), the rest answered nothing; --max-failed-checks allows more"
        )
    table = pd.concat([s.table.drop(columns="place") for s in kept if len(s.table)], ignore_index=True)
    counts = {
        "participants": len(kept),
        "participants_excluded": len(sessions) - len(kept),
        "participants_incomplete": sum(s.complete is False for s in kept),
        "judgments": int(sum(s.table["item"].nunique() for s in kept)),
        "judgments_excluded": int(sum(s.table["item"].nunique() for s in sessions if s.checks_failed > allowed)),
    }
    fingerprint = next((s.fingerprint for s in sessions if s.fingerprint is not None), None)
    return SurveyResponses(sessions[0].kind, table, people, fingerprint, counts, files)
