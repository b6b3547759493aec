"""The models of a study: answers to the same sketches, whatever they come from.

Legend: N items, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch

from humanlike.metrics.functional.response import row_entropy
from humanlike.stats import ModelAnswers
from humanlike.types import Score

PEOPLE = "people"
"""The observer of the tables that stands for people; no model may be called so."""

INFO_COLUMNS = {"architecture": "architecture", "paradigm": "paradigm", "training_data": "data"}
"""Column of Table 2 → key of a backbone's `info`."""

_NEEDED = ("sketch_id", "top1_index", "top1", "entropy")


@dataclass(frozen=True)
class StudyModel:
    """What one model answered.

    Attributes:
        name: Its name in every table.
        answers: Columns `sketch_id` (unique), `top1_index` (-1: no answer) and `entropy` (nats; NaN: no answer).
        info: `title`, `architecture`, `paradigm`, `data`, … as in conf/backbone; missing ones are unknown.
        simulated: True when the answers are made up; every table and figure then says so.
        source: Where the answers come from.
        hashes: Digests that fix the answers; `data` is that of the sketches they were given to.
        flags: Statements that must stand next to its scores.
        layers: Scores of its layers, `layer, relative_depth, metric, value, ci_low, ci_high` (benchmark=seva_layers).
    """

    name: str
    answers: pd.DataFrame
    info: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False
    source: str = ""
    hashes: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    layers: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        if self.name == PEOPLE:
            raise ValueError(f"a model cannot be called {PEOPLE!r}, which stands for people; give it another name")
        repeated = self.answers["sketch_id"].duplicated()
        if repeated.any():
            raise ValueError(
                f"{self.name} ({self.source}) answers {int(repeated.sum())} sketch(es) more than once, for example "
                f"{self.answers['sketch_id'][repeated].iloc[0]!r}; one answer a sketch is needed"
            )

    def aligned(self, sketch_ids: Sequence[str]) -> ModelAnswers:
        """The answers in the order of `sketch_ids`; a sketch without one has label -1 and entropy NaN.

        Raises:
            ValueError: When none of the sketches was answered: it is another data set.
        """
        own = self.answers.set_index(self.answers["sketch_id"].astype(str))
        found = own.reindex(pd.Index(sketch_ids).astype(str))
        top1_N = found["top1_index"].fillna(-1).to_numpy(np.int64)
        if not (top1_N >= 0).any():
            raise ValueError(
                f"{self.name} ({self.source}) answers none of the {len(top1_N)} sketches of the study; it was run on "
                "another data set"
            )
        entropy_N = found["entropy"].to_numpy(np.float64)
        return ModelAnswers(top1_N, np.where(top1_N >= 0, entropy_N, np.nan))


def model_from_score(
    score: Score, labels: Sequence[str], info: Mapping[str, Any] | None = None, name: str | None = None
) -> StudyModel:
    """A model from a finished evaluation.

    Args:
        score: Read back with `humanlike.reports.run_folder.read_run`.
        labels: The L labels of the study, in label order.
        info: Of the backbone, as in its configuration.
        name: Name in the study; None = the backbone's.

    Raises:
        ValueError: When the run's items are not those of a sketch benchmark, or its labels are not the study's.
    """
    where = f"the run {score.run_dir or score.backbone}"
    missing = [column for column in _NEEDED if column not in score.result.items.columns]
    if missing:
        raise ValueError(
            f"{where} (benchmark {score.benchmark}) has no column {missing[0]!r} in items.parquet; a study takes runs "
            "of benchmark=seva"
        )
    items = score.result.items[list(_NEEDED)]
    answered = items[items["top1_index"] >= 0]
    index = answered["top1_index"].to_numpy(np.int64)
    names = np.array([*labels], dtype=object)
    known = index < len(names)
    if not known.all() or (names[index] != answered["top1"].to_numpy(dtype=object)).any():
        raise ValueError(
            f"{where} answers with labels that are not those of the study ({len(names)} labels), or in another order; "
            "run the model on the data set of the study"
        )
    return StudyModel(
        name=name or score.backbone,
        answers=items[["sketch_id", "top1_index", "entropy"]].reset_index(drop=True),
        info=dict(info or {}),
        source=str(score.run_dir or "a finished evaluation"),
        hashes={**score.hashes, "digest": score.digest},
        flags=tuple(f for f in score.result.flags if not f.startswith(("images_failed", "items_without"))),
        layers=pd.DataFrame(layers) if (layers := score.result.details.get("layers")) else None,
    )


def model_from_probabilities(
    name: str, sketch_ids: Sequence[str], proba_NL: np.ndarray, *, info: Mapping[str, Any] | None = None, source: str
) -> StudyModel:
    """A model from its class probabilities.

    Args:
        name: Name in the study.
        sketch_ids: (N,) sketches.
        proba_NL: (N, L) probabilities in label order; rows need not be normalised.
        info: Of the model.
        source: Where they come from.

    Raises:
        ValueError: When the lengths differ or a row is not a distribution.

    Example:
        >>> model = model_from_probabilities("m", ["a"], np.array([[0.25, 0.75]]), source="made up")
        >>> model.answers["top1_index"].tolist()
        [1]
    """
    if len(sketch_ids) != len(proba_NL):
        raise ValueError(f"{name} ({source}) has {len(proba_NL)} rows of probabilities for {len(sketch_ids)} sketches")
    answers = ModelAnswers.from_proba(np.asarray(proba_NL))
    table = pd.DataFrame(
        {
            "sketch_id": np.asarray(sketch_ids, dtype=object),
            "top1_index": answers.top1_N,
            "entropy": answers.entropy_N,
        }
    )
    return StudyModel(name, table, dict(info or {}), source=source)


def model_from_answers(
    name: str, table: pd.DataFrame, labels: Sequence[str], *, info: Mapping[str, Any] | None = None, source: str
) -> StudyModel:
    """A model from a table of its answers with `sketch_id`, `top1` (a label) and `entropy` (nats).

    Raises:
        ValueError: When a column is missing or an answer is no label.
    """
    missing = [column for column in ("sketch_id", "top1", "entropy") if column not in table.columns]
    if missing:
        raise ValueError(f"{source} has no column {missing[0]!r}; answers are a table with sketch_id, top1 and entropy")
    index = pd.Index(labels).get_indexer(pd.Index(table["top1"].to_numpy(dtype=object)))
    absent = table["top1"].isna().to_numpy()
    if (unknown := (index < 0) & ~absent).any():
        raise ValueError(
            f"{source} answers {table['top1'].iloc[int(unknown.argmax())]!r} in row {int(unknown.argmax())}, which is "
            "no label of the study"
        )
    answers = pd.DataFrame({"sketch_id": table["sketch_id"], "top1_index": index, "entropy": table["entropy"]})
    return StudyModel(name, answers.reset_index(drop=True), dict(info or {}), source=source)


def model_from_draws(name: str, sketch_ids: Sequence[str], proba_NL: np.ndarray, top1_N: np.ndarray) -> StudyModel:
    """A simulated model: its answers were drawn from its probabilities, and its entropy is theirs."""
    entropy_N = row_entropy(torch.from_numpy(np.asarray(proba_NL, np.float64))).numpy()
    table = pd.DataFrame(
        {"sketch_id": np.asarray(sketch_ids, dtype=object), "top1_index": top1_N, "entropy": entropy_N}
    )
    info = {"architecture": "simulated", "paradigm": "simulated", "data": "simulated"}
    return StudyModel(name, table, info, simulated=True, source="simulated answers", flags=("simulated_model",))


def models_table(models: Sequence[StudyModel]) -> pd.DataFrame:
    """One row a model: Table 2's columns, and where its answers come from.

    Returns:
        Columns `observer, title, architecture, paradigm, training_data, simulated, source, flags`.
    """
    return pd.DataFrame(
        {
            "observer": [m.name for m in models],
            "title": [str(m.info.get("title") or m.name) for m in models],
            **{column: [m.info.get(key) for m in models] for column, key in INFO_COLUMNS.items()},
            "simulated": [m.simulated for m in models],
            "source": [m.source for m in models],
            "flags": [" ".join(m.flags) for m in models],
        }
    )
