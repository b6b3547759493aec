"""The page of a survey: one HTML file without anything external, on which people order, rate or accept sketches.

Pictures are part of the page as small PNG files. Nothing is sent anywhere: the page keeps answers in the browser and
exports them as a JSON file (docs/human_study.md).
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]
from markupsafe import Markup
from PIL import Image

from humanlike.data.survey import Kind, Survey
from humanlike.data.survey_exports import SCHEMA
from humanlike.files import write_text
from humanlike.reports.html import page_template

SIDE = 256
"""Longest side of a picture on the page, in pixels."""
_GRAYS, _COLOURS = 16, 64
_TEXTS = Path(__file__).parent / "survey_texts"
PAGE = "survey.html"


def survey_texts(kind: Kind, own: str | Path | None = None) -> dict[str, Any]:
    """Everything that the page of a kind of survey says.

    Args:
        kind: "ranking", "rating" or "acceptance".
        own: A YAML file whose lines replace those of `reports/survey_texts`.

    Raises:
        FileNotFoundError: When there is no such file.
        ValueError: When it has a line that the page does not know, or one of another type; the nearest is named.

    Example:
        >>> survey_texts("rating")["high_label"]
        'very well'
    """
    texts = _yaml(_TEXTS / "common.yaml") | _yaml(_TEXTS / f"{kind}.yaml")
    if own is None:
        return texts
    path = Path(own).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of texts {path}")
    given = _yaml(path)
    for name, text in given.items():
        if name not in texts:
            near = difflib.get_close_matches(str(name), list(texts), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(texts)}"
            raise ValueError(f"{path}: the page of a survey of kind {kind} says nothing called {name!r}{hint}")
        wanted = "a text" if isinstance(texts[name], str) else "a list of texts"
        right = isinstance(text, list) and all(isinstance(t, str) for t in text) if wanted != "a text" else text
        if not right or (wanted == "a text" and not isinstance(text, str)):
            raise ValueError(f"{path}: {name} must be {wanted}, got {text!r}")
        if name == "places" and len(text) < len(texts[name]):
            raise ValueError(f"{path}: places must name {len(texts[name])} places, got {text!r}")
    return texts | given


def picture(image: Image.Image, side: int = SIDE) -> bytes:
    """A sketch as a small PNG file: shrunk to `side` at most, drawings in 16 grays, others in 64 colours.

    Args:
        image: The sketch.
        side: Longest side in pixels.

    Example:
        >>> len(picture(Image.new("RGB", (512, 512), "white"))) < 400
        True
    """
    small = image.convert("RGB")
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    spread = np.ptp(np.asarray(small, np.int16), axis=2)
    if spread.max(initial=0) <= 8:
        levels = np.round(np.asarray(small.convert("L"), np.float64) * (_GRAYS - 1) / 255).astype(np.uint8)
        reduced = Image.fromarray(levels, "P")
        reduced.putpalette([value for level in range(_GRAYS) for value in (round(level * 255 / (_GRAYS - 1)),) * 3])
    else:
        reduced = small.quantize(_COLOURS, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    reduced.save(buffer, "png", optimize=True, bits=4 if np.asarray(reduced).max(initial=0) < _GRAYS else 8)
    return buffer.getvalue()


def picture_hash(png: bytes) -> str:
    """What stands for a picture in a survey's record."""
    return hashlib.sha256(png).hexdigest()


def render_survey(survey: Survey, pictures: Mapping[str, bytes]) -> str:
    """The page as HTML text.

    Args:
        survey: What is asked.
        pictures: Sketch id → PNG file.

    Raises:
        ValueError: When a picture is missing or is not the one that the survey was made of.
    """
    for sketch in survey.sketch_ids:
        if sketch not in pictures or picture_hash(pictures[sketch]) != survey.images.get(sketch):
            raise ValueError(f"the picture of {sketch!r} is missing or another than the survey's; make the survey anew")
    seen = {
        **{name: value for name, value in asdict(survey).items() if name not in ("source", "images")},
        "fingerprint": survey.fingerprint,
        "responses_schema": SCHEMA,
        "images": {
            sketch: f"data:image/png;base64,{base64.b64encode(pictures[sketch]).decode()}"
            for sketch in survey.sketch_ids
        },
    }
    text = json.dumps(seen, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return page_template("survey.html.j2").render(
        texts=SimpleNamespace(**survey.texts),  # a mapping would give its own method for texts.copy
        total=len(survey.questions),
        survey=Markup(text.replace("<", "\\u003c")),
    )


def write_survey_page(path: str | Path, survey: Survey, pictures: Mapping[str, bytes]) -> None:
    """Write `render_survey(survey, pictures)` to a file atomically."""
    write_text(path, render_survey(survey, pictures))


def _yaml(path: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold lines `name: text`, got {type(value).__name__}")
    return value
