"""People's side of a study: computed once, shared by all models and all protocols."""

from __future__ import annotations

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_answers import NeighbourRanks, people_switches
from humanlike.benchmarks.seva_items import SevaItems, used_items
from humanlike.benchmarks.seva_people import People, halves_resampled
from humanlike.benchmarks.study.observers import Observer, StudyResamples, people_observer
from humanlike.stats import METRICS, SplitHalf, split_half_consistency
from humanlike.stats.consistency import HalfResamples
from humanlike.types import Features, Sketches


class StudyPeople:
    """People's answers, their cells, and their consistency with one another.

    Args:
        coded: Coded answers to the items.
        items: The study's sketches.
        ranks: Semantic ranks of the labels.
        resamples: The study's resampled images.
        splits: Random halves of the participants.
        seed: Global seed of the halves.
    """

    def __init__(
        self,
        coded: People,
        items: SevaItems,
        ranks: NeighbourRanks,
        resamples: StudyResamples,
        splits: int = 200,
        seed: int = 0,
    ) -> None:
        self.coded, self.items, self.ranks, self.resamples = coded, items, ranks, resamples
        self.splits, self.seed = splits, seed
        self.observer: Observer = people_observer(coded.responses, items, ranks, resamples)
        self._consistency: dict[tuple, SplitHalf] = {}

    def consistency(self, protocol: Protocol) -> dict[str, SplitHalf]:
        """Metric → agreement of random halves of the participants; empty with fewer than two participants."""
        return self._halves(protocol, None)

    def resampled_consistency(self, protocol: Protocol) -> dict[str, SplitHalf]:
        """The same with the halves computed again on the study's resamples, as intervals of ratios to it need."""
        return self._halves(protocol, halves_resampled(self.resamples.bootstrap, self.coded.num_participants))

    def _halves(self, protocol: Protocol, resamples: HalfResamples | None) -> dict[str, SplitHalf]:
        if self.coded.num_participants < 2:
            return {}
        keys = {metric: (metric, *self.observer.key(metric, protocol)) for metric in METRICS}
        known = {metric: self._consistency.get(key) for metric, key in keys.items()}
        lacking = [m for m, split in known.items() if split is None or (resamples is not None and split.r2_B is None)]
        if lacking:
            computed = split_half_consistency(
                self.items.design,
                self.coded.responses,
                self.items.target_N,
                self.ranks.ranks_LL,
                people_switches(protocol),
                splits=self.splits,
                seed=self.seed,
                resamples=resamples,
                metrics=lacking,
            )
            self._consistency |= {keys[metric]: split for metric, split in computed.items()}
        return {metric: self._consistency[key] for metric, key in keys.items()}


def study_items(data: Sketches) -> tuple[Sketches, SevaItems]:
    """The sketches that a study is about: those that people judged, or all where nobody judged any.

    Returns:
        The data set with these sketches alone, and its items in the order of their ids.
    """
    if data.responses is not None:
        judged = data.table["sketch_id"].astype(str).isin(set(data.responses.table["sketch_id"].astype(str)))
        if judged.any() and not judged.all():
            data = data.select(np.flatnonzero(judged))
    rows = np.arange(len(data))
    nothing = Features(f_ND=np.zeros((len(data), 0)), rows=rows, failed={}, layer="", hashes={})
    return data, used_items(data, nothing)


def stroke_counts(data: Sketches) -> pd.DataFrame | None:
    """One row a sketch with `sketch_id, concept, condition, num_strokes`; None where strokes are not counted."""
    if "num_strokes" not in data.table.columns:
        return None
    table = data.table[["sketch_id", "concept", "condition", "num_strokes"]].copy()
    table["condition"] = pd.to_numeric(table["condition"]).astype(float)
    table["num_strokes"] = pd.to_numeric(table["num_strokes"], errors="coerce").astype(float)
    table = table.dropna(subset="num_strokes").reset_index(drop=True)
    return table if len(table) else None
