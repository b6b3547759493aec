"""The folder of a study: what every data set can be converted to, and what `dataset=table` and `dataset=seva` read.

    sketches.parquet         sketch_id, concept, condition, image_id, path, perhaps num_strokes and others
    responses.parquet        participant, sketch_id, guess_1 … guess_5                            (optional)
    elements.parquet         sketch_id, element, drawn                                            (optional)
    labels.txt               one label a line, in label order; default: the concepts, sorted      (optional)
    semantic_space.parquet   label and one column a dimension                                     (optional)
    study.json               schema "humanlike.study/1": name, unit, source, flags, decoding      (optional)
    images/…                 what `path` names, relative to the folder

Tables may be .csv or .tsv as well, which is how a study of one's own most easily comes in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from humanlike.data.table_files import SUFFIXES

SCHEMA = "humanlike.study/1"


@dataclass(frozen=True)
class StudyFacts:
    """What `study.json` says about a study; every key may be left out.

    Attributes:
        name: Name of the data set in results.
        condition_unit: "s", "strokes", … or "".
        source: Where the data came from and its licence.
        flags: Statements that must stand next to every score.
        simulated_responses: True when the "people" are a simulation.
        decode: Keywords of `DecodeOptions` that the images need.
    """

    name: str = "table"
    condition_unit: str = ""
    source: str = ""
    flags: Sequence[str] = ()
    simulated_responses: bool = False
    decode: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StudyFolder:
    """A folder in which a study's files are found by name.

    Attributes:
        root: The folder.
    """

    root: Path

    def table(self, stem: str) -> Path | None:
        """The table `stem`.parquet, .csv or .tsv, or None.

        Raises:
            ValueError: When there are two of them.
        """
        found = [p for p in (self.root / f"{stem}{suffix}" for suffix in SUFFIXES) if p.is_file()]
        if len(found) > 1:
            raise ValueError(f"{self.root} holds {found[0].name} and {found[1].name}; name one with {stem}=FILE")
        return found[0] if found else None

    def file(self, path: str | Path) -> Path:
        """A file that the user named: below the folder where it is there, else as it stands."""
        inside = self.root / Path(path).expanduser()
        return inside if inside.exists() else Path(path).expanduser()

    def labels(self) -> Path | None:
        """The list of labels, or None."""
        path = self.root / "labels.txt"
        return path if path.is_file() else None

    def facts(self) -> StudyFacts:
        """What study.json says; the defaults where there is none.

        Raises:
            ValueError: For text that is no JSON, another schema, or unknown keys.
        """
        path = self.root / "study.json"
        if not path.is_file():
            return StudyFacts()
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: not JSON ({error})") from error
        if not isinstance(value, dict) or value.pop("schema", None) != SCHEMA:
            raise ValueError(f"{path}: expected a JSON object with schema {SCHEMA!r}")
        try:
            facts = StudyFacts(**value)
        except TypeError as error:
            raise ValueError(f"{path}: {error}; keys are {', '.join(StudyFacts.__dataclass_fields__)}") from error
        if isinstance(facts.flags, str) or not isinstance(facts.decode, dict):
            raise ValueError(f"{path}: flags must be a list of texts and decode an object")
        return facts


def read_labels(path: str | Path) -> tuple[str, ...]:
    """Labels of a text file, one a line; empty lines are passed over.

    Raises:
        FileNotFoundError: When it is missing.
        ValueError: When it is not UTF-8 text or empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileNotFoundError(f"labels: no file {path}; expected one label a line") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"labels: {path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    labels = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not labels:
        raise ValueError(f"labels: {path} holds no label; expected one a line")
    return labels
