"""One participant's export of a survey's page (schema "humanlike.survey_responses/1"), checked answer by answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from humanlike.data.survey import KINDS, Kind, RatingScale

SCHEMA = "humanlike.survey_responses/1"
VALUES: Mapping[Kind, tuple[str, ...]] = {
    "ranking": ("rank",),
    "rating": ("rating",),
    "acceptance": ("accepted", "shown"),
}
"""Kind → the columns of an answer; the first tells the kind of a table."""


@dataclass(frozen=True)
class Session:
    """What one person answered.

    Attributes:
        participant: Whose answers they are.
        kind: "ranking", "rating" or "acceptance".
        table: `participant, item, sketch_id`, the columns `VALUES` of the kind, `seconds`, and `place` in the file, for
            messages.
        fingerprint: Of the page; None where the file does not say.
        checks: Attention checks that were met; None where unknown.
        checks_failed: How many of them were answered otherwise than asked.
        complete: Whether every question was answered; None where unknown.
        where: The file, for messages.
    """

    participant: str
    kind: Kind
    table: pd.DataFrame
    fingerprint: str | None
    checks: int | None
    checks_failed: int
    complete: bool | None
    where: str


def session_of(record: Mapping[str, Any], where: str, known: Collection[str] | None = None) -> Session:
    """An export as a session.

    Args:
        record: The parsed file.
        where: The file, for messages.
        known: Sketches that can be judged; None: any.

    Raises:
        ValueError: Naming the answer, the field and what is wrong with it.
    """
    kind = _kind(record, where)
    participant, fingerprint = (_text(record, name, where) for name in ("participant", "fingerprint"))
    scale = _scale(record, where) if kind == "rating" else None
    answers, checks = (_list(record, name, where) for name in ("answers", "checks"))
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, answer in enumerate(answers, start=1):
        item = _text(answer, "item", f"{where}, answer {number}")
        place = f"answer {number} (item {item})"
        if item in seen:
            raise ValueError(f"{where}, {place}: item {item!r} was answered before, in answer {seen[item]}; keep one")
        seen[item] = number
        for sketch, values in _values(kind, answer, scale, f"{where}, {place}").items():
            if known is not None and sketch not in known:
                raise ValueError(
                    f"{where}, {place}: there is no sketch {sketch!r}; are these answers to other sketches?"
                )
            rows.append(
                {
                    "participant": participant,
                    "item": item,
                    "sketch_id": sketch,
                    **values,
                    "seconds": _seconds(answer, f"{where}, {place}"),
                    "place": place,
                }
            )
    columns = ["participant", "item", "sketch_id", *VALUES[kind], "seconds", "place"]
    failed = sum(
        _expected(check, f"{where}, check {number}") != check.get("given") for number, check in enumerate(checks, 1)
    )
    complete = record.get("complete")
    return Session(
        participant,
        kind,
        pd.DataFrame(rows, columns=columns),
        fingerprint,
        len(checks),
        failed,
        complete if isinstance(complete, bool) else None,
        where,
    )


def _kind(record: Mapping[str, Any], where: str) -> Kind:
    kind = record.get("kind")
    if kind not in KINDS:
        raise ValueError(f"{where}: kind is {kind!r}; it must be {' or '.join(map(repr, KINDS))}")
    return next(known for known in KINDS if known == kind)


def _text(record: Mapping[str, Any], name: str, where: str) -> str:
    value = record.get(name) if isinstance(record, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: {name!r} is {value!r}; it must be a text that is not empty")
    return value


def _list(record: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    value = record.get(name)
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise ValueError(f"{where}: {name!r} must be a list of objects; was the file cut or edited? Export it again")
    return value


def _scale(record: Mapping[str, Any], where: str) -> RatingScale:
    try:
        return RatingScale(**record["scale"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{where}: 'scale' is {record.get('scale')!r}; it needs low, high, step and slider") from error


def _values(
    kind: Kind, answer: Mapping[str, Any], scale: RatingScale | None, where: str
) -> dict[str, dict[str, float | bool]]:
    """Sketch → the columns `VALUES` of an answer."""
    if scale is not None:
        return {sketch: {"rating": float(rating)} for sketch, rating in _rating(answer, scale, where).items()}
    if kind == "ranking":
        return {sketch: {"rank": float(rank)} for sketch, rank in _ranks(answer, where).items()}
    shown, accepted = _shown(answer, where), answer.get("accepted")
    if not isinstance(accepted, bool):
        raise ValueError(f"{where}: 'accepted' is {accepted!r}; it must be true or false")
    return {sketch: {"accepted": accepted, "shown": float(place)} for place, sketch in enumerate(shown, start=1)}


def _shown(answer: Mapping[str, Any], where: str) -> list[str]:
    shown = answer.get("shown")
    if not isinstance(shown, list) or not all(isinstance(s, str) for s in shown) or len(set(shown)) < 2:
        raise ValueError(f"{where}: 'shown' is {shown!r}; it must list two or more sketches")
    if len(set(shown)) < len(shown):
        raise ValueError(f"{where}: 'shown' is {shown!r}, which lists a sketch twice")
    return shown


def _ranks(answer: Mapping[str, Any], where: str) -> dict[str, int]:
    shown, order = _shown(answer, where), answer.get("order")
    if not isinstance(order, list) or len(order) != len(shown) or set(map(str, order)) != set(shown):
        lacking = sorted(set(shown) - set(map(str, order))) if isinstance(order, list) else sorted(shown)
        raise ValueError(
            f"{where}: 'order' is {order!r}; it must hold each of the {len(shown)} sketches shown once"
            + (f", {lacking[0]!r} is missing" if lacking else "")
        )
    return {sketch: place for place, sketch in enumerate(order, start=1)}


def _rating(answer: Mapping[str, Any], scale: RatingScale, where: str) -> dict[str, float]:
    shown, rating = answer.get("shown"), answer.get("rating")
    if not isinstance(shown, list) or len(shown) != 1 or not isinstance(shown[0], str):
        raise ValueError(f"{where}: 'shown' is {shown!r}; it must list the one sketch that was rated")
    if rating not in scale or rating is None:
        raise ValueError(
            f"{where}: 'rating' is {rating!r}; the scale goes from {scale.low} to {scale.high} in steps of {scale.step}"
        )
    return {shown[0]: rating}


def _expected(check: Mapping[str, Any], where: str) -> Any:
    if "expected" not in check or "given" not in check:
        raise ValueError(f"{where}: an attention check has 'expected' and 'given', this one has {sorted(check)}")
    return check["expected"]


def _seconds(answer: Mapping[str, Any], where: str) -> float:
    value = answer.get("seconds")
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{where}: 'seconds' is {value!r}; it must be a number of 0 or more, or be left out")
    return float(value)
