"""A survey: what people order, rate or see ordered on a page, and the fingerprint that ties their answers to it.

`survey.json` (schema "humanlike.survey/1") holds what the page shows; docs/human_study.md describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from humanlike.files import read_json_record, sha256_value, write_json

SCHEMA = "humanlike.survey/1"
Kind = Literal["ranking", "rating", "acceptance"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class SurveyItem:
    """One question.

    Attributes:
        item: Its id.
        sketch_ids: The sketches that are ordered, or the one that is rated; the page shuffles them. In an
            acceptance they stand in the order that people accept or reject.
        concept: What they are meant to show, or "" where the page does not say.
    """

    item: str
    sketch_ids: tuple[str, ...]
    concept: str = ""


@dataclass(frozen=True)
class SurveyCheck:
    """A question whose answer the page itself tells, which finds out who does not read.

    Attributes:
        item: Its id.
        sketch_ids: The sketches that are shown, in the order in which they are shown.
        expected: Places to choose, from 0, in the order of choosing; or the one rating to give; or 1 to accept, 0 to
            reject.
    """

    item: str
    sketch_ids: tuple[str, ...]
    expected: tuple[int, ...]


@dataclass(frozen=True)
class RatingScale:
    """What ratings are possible: `low`, `low + step`, … `high`.

    Attributes:
        low: Lowest rating.
        high: Highest rating.
        step: Distance of neighbours.
        slider: Shown as a slider instead of one button a rating.
    """

    low: int = 1
    high: int = 7
    step: int = 1
    slider: bool = False

    def __post_init__(self) -> None:
        if self.step < 1 or self.high <= self.low or (self.high - self.low) % self.step:
            raise ValueError(
                f"a scale from {self.low} to {self.high} in steps of {self.step} does not end on its last step; "
                "give LOW:HIGH or LOW:HIGH:STEP, for example 1:7 or 0:100:5"
            )
        if not self.slider and (self.high - self.low) // self.step > 10:
            raise ValueError(
                f"a scale from {self.low} to {self.high} in steps of {self.step} is too fine for buttons; add --slider"
            )

    def __contains__(self, rating: object) -> bool:
        return (
            isinstance(rating, int | float)
            and not isinstance(rating, bool)
            and self.low <= rating <= self.high
            and (rating - self.low) % self.step == 0
        )


@dataclass(frozen=True)
class Survey:
    """What a page asks.

    Attributes:
        kind: "ranking", "rating" or "acceptance".
        items: The questions.
        checks: Attention checks among them.
        scale: Of ratings; None for the other kinds.
        seed: Of the order in which each participant meets the questions.
        images: Sketch id → SHA-256 of the picture that is shown.
        texts: Everything that the page says.
        source: Where the sketches and the scores that chose them came from; not part of the fingerprint.
        controls: Share of each participant's questions of an acceptance that show another order than the item's, drawn
            at random by the page; None for the other kinds.
    """

    kind: Kind
    items: tuple[SurveyItem, ...]
    checks: tuple[SurveyCheck, ...] = ()
    scale: RatingScale | None = None
    seed: int = 0
    images: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    controls: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; it can be {' or '.join(map(repr, KINDS))}")
        if not self.items:
            raise ValueError("a survey needs a question or more")
        if (self.scale is None) == (self.kind == "rating"):
            raise ValueError("ratings need a scale, and only they")
        if (self.controls is None) == (self.kind == "acceptance"):
            raise ValueError("an acceptance needs a share of controls, and only it")
        if self.controls is not None and not 0 <= self.controls < 1:
            raise ValueError(f"the share of controls is {self.controls}; it must be 0 to below 1, for example 0.25")
        names = [question.item for question in self.questions]
        if len(set(names)) != len(names):
            raise ValueError(f"ids of questions occur twice: {sorted({n for n in names if names.count(n) > 1})[:3]}")
        for question in self.questions:
            count = len(set(question.sketch_ids))
            if count != len(question.sketch_ids) or (count != 1 if self.kind == "rating" else count < 2):
                wanted = "one sketch" if self.kind == "rating" else "two or more different sketches"
                raise ValueError(f"question {question.item} shows {list(question.sketch_ids)}; it needs {wanted}")

    @property
    def questions(self) -> tuple[SurveyItem | SurveyCheck, ...]:
        """Items and attention checks."""
        return (*self.items, *self.checks)

    @property
    def sketch_ids(self) -> tuple[str, ...]:
        """Every sketch that is shown, once, in order of first appearance."""
        return tuple(dict.fromkeys(i for question in self.questions for i in question.sketch_ids))

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with anything a participant could see."""
        seen = {name: value for name, value in self._fields().items() if name != "source"}
        return sha256_value({"schema": SCHEMA, **seen})[:16]

    def record(self) -> dict[str, Any]:
        """The content of `survey.json`."""
        return {"schema": SCHEMA, "fingerprint": self.fingerprint, **self._fields()}

    def _fields(self) -> dict[str, Any]:
        """All fields; without `controls` where there are none, so that fingerprints of the other kinds stay."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("controls", None)}


def write_survey(path: str | Path, survey: Survey) -> None:
    """Write `survey.json` atomically."""
    write_json(path, survey.record())


def read_survey(path: str | Path) -> Survey:
    """A survey, read back.

    Args:
        path: `survey.json`, or the folder that holds it.

    Raises:
        FileNotFoundError: When it is not there.
        ValueError: When the file is no survey of this schema, or was changed after it was written.

    Example:
        >>> read_survey("absent")
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no survey absent; `humanlike survey` writes survey.json beside the page
    """
    path = Path(path).expanduser()
    path = path / "survey.json" if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"there is no survey {path}; `humanlike survey` writes survey.json beside the page")
    record = read_json_record(path, SCHEMA, "write the survey again with `humanlike survey`")
    try:
        survey = Survey(
            kind=record["kind"],
            items=tuple(
                SurveyItem(str(i["item"]), tuple(map(str, i["sketch_ids"])), str(i["concept"])) for i in record["items"]
            ),
            checks=tuple(
                SurveyCheck(str(c["item"]), tuple(map(str, c["sketch_ids"])), tuple(map(int, c["expected"])))
                for c in record["checks"]
            ),
            scale=None if record["scale"] is None else RatingScale(**record["scale"]),
            seed=int(record["seed"]),
            images=record["images"],
            texts=record["texts"],
            source=record["source"],
            controls=record.get("controls"),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} lacks or misstates {error}; write the survey again with `humanlike survey`"
        ) from error
    if survey.fingerprint != record.get("fingerprint"):
        raise ValueError(
            f"{path} has the fingerprint {record.get('fingerprint')!r} but its content {survey.fingerprint!r}: it was "
            "changed after the page was made; take the file that lies beside the page that people used"
        )
    return survey
