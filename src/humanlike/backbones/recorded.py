"""A model that is known by its answers alone: a trial file in place of a network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.data.trials import STIMULUS, check_answers, read_trials, without_repeats
from humanlike.files import sha256_file, sha256_value
from humanlike.types import Features, Sketches

RECORDED = "recorded answers"
"""Layer of features that are answers: column l is 1 where the model said label l, a row of zeros is no answer."""


class RecordedAnswers:
    """A model's own answers in a trial file, scored without images.

    Args:
        path: Parquet or CSV in the columns of `humanlike.data.trials`; its stimuli are those of the data set.
        subject: Which value of `subj` is the model; needed where the file holds several.
        name: Name in results; default: the subject, or the file's name.
        info: Facts for tables.
        on_repeat: A stimulus answered twice: "raise", or keep the "first" answer.
    """

    def __init__(
        self,
        path: str | Path,
        subject: str | None = None,
        name: str | None = None,
        info: Mapping[str, Any] | None = None,
        on_repeat: str = "raise",
    ) -> None:
        self.path = Path(path).expanduser()
        self.subject = subject
        self.name = name or subject or self.path.stem
        self.info = dict(info or {})
        self.on_repeat = on_repeat

    @property
    def weights_hash(self) -> str:
        """Hex SHA-256 of the file, which is all that is known of the model."""
        return sha256_file(self.path)

    def answers(self, data: Sketches) -> Features:
        """The model's answers to the items of a data set.

        Trials of other stimuli are left out, and items without a trial are absent from the result.

        Returns:
            Features of the layer `RECORDED`, (N', L) zeros and ones.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is no trial file, holds several subjects and none is named, answers with words that are
                no labels, says another category than the data set, or shares no stimulus with it.
        """
        key = STIMULUS if STIMULUS in data.table.columns else "sketch_id"
        item_of = {str(k): i for i, k in enumerate(data.table[key])}
        table = self._trials(item_of, data)
        row_N = table[STIMULUS].map(item_of).to_numpy(np.int64)
        wrong = table["category"].to_numpy(object) != data.table["concept"].to_numpy(object)[row_N]
        if wrong.any():
            first = table[wrong].iloc[0]
            raise ValueError(
                f"{self.path}: row {first['row']} says {first[STIMULUS]!r} shows {first['category']!r}, the data set "
                f"{data.name} says {data.table['concept'].iloc[item_of[first[STIMULUS]]]!r}"
            )
        answer_N = pd.Index(data.labels).get_indexer(pd.Index(table["object_response"].to_numpy(object)))
        order = np.argsort(row_N)
        rows, answer_N = row_N[order], answer_N[order]
        f_ND = np.zeros((len(rows), len(data.labels)), np.float32)
        f_ND[np.flatnonzero(answer_N >= 0), answer_N[answer_N >= 0]] = 1.0
        ids = data.table["sketch_id"].iloc[rows].tolist()
        hashes = {
            "weights": self.weights_hash,
            "data": sha256_value(data.table["sketch_id"].tolist()),
            "features": sha256_value([ids, answer_N.tolist()]),
        }
        return Features(f_ND, rows, {}, RECORDED, hashes, {"trials": len(rows), "file": self.path.name})

    def _trials(self, item_of: Mapping[str, int], data: Sketches) -> pd.DataFrame:
        table = read_trials(self.path)
        known = table[table[STIMULUS].isin(list(item_of))]
        if known.empty:
            raise ValueError(
                f"{self.path}: no trial is about a stimulus of {data.name}; the file begins with "
                f"{table[STIMULUS].iloc[0]!r}, the data set with {next(iter(item_of))!r}"
            )
        subjects = sorted(known["subj"].unique())
        if self.subject is None and len(subjects) > 1:
            raise ValueError(
                f"{self.path} holds several subjects; say which with subject=…: {', '.join(subjects[:20])}"
            )
        if self.subject is not None and self.subject not in subjects:
            raise ValueError(f"{self.path} holds no subject {self.subject!r}; it has {', '.join(subjects[:20])}")
        own = known if self.subject is None else known[known["subj"] == self.subject]
        kept, _ = without_repeats(own, self.on_repeat, str(self.path))
        check_answers(kept, data.labels, str(self.path))
        return kept
