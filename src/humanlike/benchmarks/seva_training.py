"""Which sketches are scored and on which the readout is fitted: those that people judged, or all that there are.

SEVA holds 89,797 sketches, of which 8,192 were shown to people. Scored are these; the others can serve the readout as
further training rows (`readout.train_on=all`). A data set says which is which by the column `judged`.

Legend: N scored items, E further items, L labels, D features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from humanlike.interfaces import Readout
from humanlike.types import Features, Sketches


class ScoredPart:
    """The sketches of a data set that people judged, and what follows for features and readouts.

    Without a column `judged`, or where all are judged, everything is scored and nothing changes.

    Args:
        data: The data set.
    """

    def __init__(self, data: Sketches) -> None:
        self._all = data
        column = data.table.get("judged")
        self._scored_N = np.ones(len(data), bool) if column is None else column.to_numpy(bool)
        if not self._scored_N.any():
            raise ValueError(
                f"{data.name}: the column `judged` is false for all {len(data)} sketches: nothing to score"
            )
        self.whole = bool(self._scored_N.all())
        self.data = data if self.whole else data.select(np.flatnonzero(self._scored_N))

    def features(self, features: Features) -> Features:
        """The features of the scored sketches, addressed by their places among them."""
        if self.whole:
            return features
        place_N = np.where(self._scored_N, np.cumsum(self._scored_N) - 1, -1)
        rows = np.asarray(features.rows, np.int64)
        kept = self._scored_N[rows]
        failed = {int(place_N[row]): why for row, why in features.failed.items() if self._scored_N[row]}
        return replace(features, f_ND=np.asarray(features.f_ND)[kept], rows=place_N[rows[kept]], failed=failed)

    def readout(self, readout: Readout, features: Features) -> Readout:
        """`readout`, fitted on the further sketches too where it asks for that.

        Args:
            readout: A classifier; its attribute `train_on` is "all" or "recognition_set" (the same as none).
            features: Features of the whole data set.
        """
        if self.whole or getattr(readout, "train_on", "recognition_set") != "all":
            return readout
        rows = np.asarray(features.rows, np.int64)
        extra = np.flatnonzero(~self._scored_N[rows])
        table = self._all.table
        order = np.argsort(table["sketch_id"].iloc[rows[extra]].astype(str).to_numpy(dtype=object), kind="stable")
        extra = extra[order]
        image_id = table["image_id"].astype(str).to_numpy(dtype=object)
        read_scored = np.sort(np.unique(image_id[rows[self._scored_N[rows]]]))
        return WithFurtherItems(
            readout,
            np.asarray(features.f_ND)[extra],
            self._all.target_N[rows[extra]],
            _codes(image_id[rows[extra]], read_scored),
        )


class WithFurtherItems:
    """A readout whose folds hold further rows, which nobody asks about.

    Where items are grouped, a further row of a known source stands in the fold of that source, so that it never trains
    the readout that answers for the source.

    Args:
        readout: The classifier.
        f_ED: Features of the further rows.
        label_E: Their labels.
        group_E: Their groups: the code of a source that the scored rows have too, or a new one.
    """

    def __init__(self, readout: Readout, f_ED: np.ndarray, label_E: np.ndarray, group_E: np.ndarray) -> None:
        self._readout, self._f_ED, self._label_E, self._group_E = readout, f_ED, label_E, group_E
        self.folds_: np.ndarray | None = None

    @property
    def converged_(self) -> Any:
        """Whether the fits converged, as the readout says it; True where it does not."""
        return getattr(self._readout, "converged_", True)

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: np.ndarray | None = None
    ) -> np.ndarray:
        """(N, L) probabilities of the scored rows, from fits that saw neither the row's fold nor its source."""
        scored = len(f_ND)
        group = None if group_N is None else np.concatenate([group_N, self._group_E])
        label = np.concatenate([label_N, self._label_E])
        proba = self._readout.out_of_fold_proba(np.concatenate([f_ND, self._f_ED]), label, num_labels, group)
        folds = getattr(self._readout, "folds_", None)
        self.folds_ = np.full(scored, -1) if folds is None else np.asarray(folds)[:scored]
        return np.asarray(proba)[:scored]

    def fit(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> Readout:
        """Fit on all rows, scored and further ones."""
        label = np.concatenate([label_N, self._label_E])
        return self._readout.fit(np.concatenate([f_ND, self._f_ED]), label, num_labels)

    def predict_proba(self, f_ND: np.ndarray) -> np.ndarray:
        """(N, L) probabilities from `fit`."""
        return self._readout.predict_proba(f_ND)

    def certificate(self) -> dict[str, Any]:
        """The readout's own, with the number of further rows."""
        own = self._readout.certificate() if hasattr(self._readout, "certificate") else {}
        return {**own, "train_on": "all", "further_items": len(self._label_E)}


def _codes(image_id_E: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(E,) place of every source in the sorted `known` ones, as `groups_for_folds` counts; further codes for others."""
    code_of = {name: code for code, name in enumerate(known)}
    for name in sorted(set(image_id_E) - set(code_of)):
        code_of[name] = len(code_of)
    return np.array([code_of[name] for name in image_id_E], np.int64)
