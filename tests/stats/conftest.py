"""A small ragged study, and a naive referee: one replicate, one cell, one answer at a time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.metrics import auc

from humanlike.stats import CellDesign, CodedResponses

K, T, J, L = 5, 3, 5, 12
CONDITIONS = np.array([4.0, 8.0, 32.0])


@dataclass
class Study:
    items: pd.DataFrame  # concept (label index), image_id, condition
    proba_NL: np.ndarray
    judgments: pd.DataFrame  # participant, item, guesses (tuple)
    ranks_LL: np.ndarray

    @property
    def target_N(self) -> np.ndarray:
        return self.items["concept"].to_numpy(np.int64)

    @property
    def design(self) -> CellDesign:
        return CellDesign.from_columns(self.items["concept"], self.items["image_id"], self.items["condition"])

    @property
    def coded(self) -> CodedResponses:
        guess_RG = np.full((len(self.judgments), 4), -1)
        for row, guesses in enumerate(self.judgments["guesses"]):
            guess_RG[row, : len(guesses)] = guesses
        return CodedResponses(self.judgments["participant"].to_numpy(), self.judgments["item"].to_numpy(), guess_RG)

    def permuted(self, seed: int) -> Study:
        """The same study with items and judgments in another order."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(self.items))
        place = np.argsort(order)
        judgments = self.judgments.iloc[rng.permutation(len(self.judgments))].reset_index(drop=True)
        judgments["item"] = place[judgments["item"]]
        return Study(self.items.iloc[order].reset_index(drop=True), self.proba_NL[order], judgments, self.ranks_LL)


def make_study(seed: int, missing_embeddings: bool = True) -> Study:
    """Ragged numbers of images, images without an item in a condition, doubled items, an empty cell, unjudged items."""
    rng = np.random.default_rng(seed)
    concepts = np.sort(rng.choice(L, K, replace=False))
    rows = []
    for k, concept in enumerate(concepts):
        for image in range(rng.integers(1, J + 1)):
            for t in range(T):
                if (k, t) == (2, 1):
                    continue
                rows += [(concept, f"{concept}-{image}", CONDITIONS[t])] * rng.choice([0, 1, 1, 1, 2])
    items = pd.DataFrame(rows, columns=["concept", "image_id", "condition"])
    items = items.sample(frac=1, random_state=seed).reset_index(drop=True)
    proba = rng.dirichlet(np.full(L, 0.3), size=len(items))
    proba[rng.random(proba.shape) < 0.3] = 0.0
    proba[:, 0] += 1e-3
    proba /= proba.sum(axis=1, keepdims=True)
    judgments = []
    for item, concept in enumerate(items["concept"]):
        for person in rng.choice(8, rng.integers(0, 6), replace=False):
            n = rng.integers(1, 5)
            guesses = np.where(rng.random(n) < 0.4, concept, rng.integers(0, L, n))
            judgments.append((person, item, tuple(int(g) for g in guesses)))
    ranks = np.array([[0 if a == b else 1 + (b if b < a else b - 1) for b in range(L)] for a in range(L)])
    for a in range(L):
        ranks[a, np.arange(L) != a] = rng.permutation(L - 1) + 1
    if missing_embeddings:  # one concept and one other label have no embedding
        gone = [int(concepts[1]), int(rng.choice(np.setdiff1d(np.arange(L), concepts)))]
        kept = np.setdiff1d(np.arange(L), gone)
        ranks = np.where(np.eye(L, dtype=bool), 0, -1)
        for a in kept:
            ranks[a, kept[kept != a]] = rng.permutation(len(kept) - 1) + 1
    return Study(items, proba, pd.DataFrame(judgments, columns=["participant", "item", "guesses"]), ranks)


def naive_entropy(labels: list[int], estimator: str) -> float:
    counts = list(Counter(labels).values())
    n = sum(counts)
    if n == 0:
        return math.nan
    plugin = float(scipy.stats.entropy(counts))
    if estimator == "plugin":
        return plugin
    if estimator == "miller_madow":
        return plugin + (len(counts) - 1) / (2 * n)
    if n == 1:
        return 0.0
    single = sum(c == 1 for c in counts)
    coverage = 1 - (n - 1 if single == n else single) / n
    shares = [coverage * c / n for c in counts]
    return sum(0.0 if p == 1 else -p * math.log(p) / (1 - (1 - p) ** n) for p in shares)


def naive_snp(answers: list[tuple[int, int]], ranks_LL: np.ndarray, variant: str, no_error_cell: str) -> float:
    """answers: (target, label)."""
    embedded = [row.max() > 0 for row in ranks_LL]
    answers = [(c, a) for c, a in answers if embedded[c] and embedded[a]]
    num_labels = sum(embedded)
    if not answers:
        return math.nan
    ranks = [ranks_LL[c, a] for c, a in answers if a != c]
    if variant == "exact":
        if ranks:
            return 1 - (np.mean(ranks) - 1) / (num_labels - 2)
        return 1.0 if no_error_cell == "one" else math.nan
    positions = sorted(r - 1 for r in ranks if r - 1 != 0)
    if not positions:
        return 1.0 if no_error_cell == "one" else math.nan
    share = pd.Series(positions).value_counts(normalize=True).sort_index().cumsum()
    return float(auc([*(share.index / num_labels), 1.0], [*share, 1.0]))


class NaiveCells:
    """Cell metrics of one replicate, by repeating item rows as often as their image was drawn."""

    def __init__(self, study: Study, weights_KJ: np.ndarray | None) -> None:
        self.study = study
        names = {c: sorted(set(g["image_id"])) for c, g in study.items.groupby("concept")}
        self.concepts = sorted(names)
        self.cells: dict[tuple[int, float], list[int]] = {}
        for k, concept in enumerate(self.concepts):
            for condition in sorted(set(study.items["condition"])):
                rows = []
                for j, name in enumerate(names[concept]):
                    times = 1 if weights_KJ is None else int(weights_KJ[k, j])
                    match = study.items[(study.items[["image_id", "condition"]] == [name, condition]).all(axis=1)]
                    rows += list(match.index) * times
                self.cells[concept, condition] = rows
        self.by_item = {i: list(g["guesses"]) for i, g in study.judgments.groupby("item")}

    def _each(self, cell_value) -> np.ndarray:
        return np.array([cell_value(rows) for rows in self.cells.values()])

    def model(self, metric: str, **switch) -> np.ndarray:
        p, target = self.study.proba_NL, self.study.target_N
        hard = p.argmax(axis=1)
        if metric == "accuracy":
            return self._each(lambda rows: np.mean([hard[r] == target[r] for r in rows]) if rows else math.nan)
        if metric == "snp":
            return self._each(
                lambda rows: naive_snp([(target[r], hard[r]) for r in rows], self.study.ranks_LL, **switch)
            )
        if switch["entropy"] == "pooled":
            return self._each(lambda rows: naive_entropy([hard[r] for r in rows], switch["estimator"]))
        return self._each(lambda rows: np.mean([scipy.stats.entropy(p[r]) for r in rows]) if rows else math.nan)

    def people(self, metric: str, **switch) -> np.ndarray:
        target = self.study.target_N

        def guesses(row: int, which: str) -> list[int]:
            trials = self.by_item.get(row, [])
            return [t[0] for t in trials] if which == "first" else [g for t in trials for g in t]

        def mean(values: list[float]) -> float:
            known = [v for v in values if not math.isnan(v)]
            return float(np.mean(known)) if known else math.nan

        if metric == "accuracy" and switch["accuracy"] == "first_guess":
            return self._each(
                lambda rows: mean([mean([float(g == target[r]) for g in guesses(r, "first")]) for r in rows])
            )
        if metric == "accuracy":
            return self._each(lambda rows: mean([float(g == target[r]) for r in rows for g in guesses(r, "all")]))
        if metric == "snp":
            which = switch.pop("snp_answers")
            return self._each(
                lambda rows: naive_snp(
                    [(target[r], g) for r in rows for g in guesses(r, which)], self.study.ranks_LL, **switch
                )
            )
        if switch["entropy"] == "pooled":
            return self._each(
                lambda rows: naive_entropy([g for r in rows for g in guesses(r, "all")], switch["estimator"])
            )
        return self._each(lambda rows: mean([naive_entropy(guesses(r, "all"), switch["estimator"]) for r in rows]))


@pytest.fixture(scope="session")
def study() -> Study:
    return make_study(3)


@pytest.fixture(scope="session")
def make():
    return make_study


@pytest.fixture(scope="session")
def naive_cells():
    return NaiveCells


@pytest.fixture(scope="session")
def naive():
    return {"entropy": naive_entropy, "snp": naive_snp}
