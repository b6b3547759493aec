"""A small made-up study: 8 concepts × 6 images × 4 conditions, 20 labels, people with up to 5 guesses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from humanlike.types import Features, Responses, Sketches

CONDITIONS = (4.0, 8.0, 16.0, 32.0)
NUM_LABELS = 20


@dataclass(frozen=True)
class NoImages:
    """Stands where pixels are never asked for."""

    size: int

    def __len__(self) -> int:
        return self.size

    def load(self, index: int):
        raise AssertionError("a benchmark never loads images")

    def content_hash(self, index: int) -> str:
        return str(index)

    def describe(self, index: int) -> str:
        return f"item {index}"


class SoftmaxReadout:
    """A readout whose probabilities are the softmax of the features: known without fitting, in any order."""

    def __init__(self, converged: bool = True):
        self.converged_ = converged
        self.groups: list[np.ndarray | None] = []

    def out_of_fold_proba(self, f_ND, label_N, num_labels, group_N=None):
        self.groups.append(group_N)
        self.folds_ = (np.arange(len(label_N)) if group_N is None else group_N) % 5
        e = np.exp(f_ND.astype(np.float64) - f_ND.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def fit(self, f_ND, label_N, num_labels):
        return self

    def predict_proba(self, f_ND):
        raise AssertionError("a benchmark reads predictions out of fold, never those of the whole fit")

    def certificate(self):
        return {"converged": self.converged_}


def _table(concepts, images, rng):
    rows = [
        (f"s{i:04d}", concept, condition, f"{concept}_{image}")
        for i, (concept, image, condition) in enumerate(
            (c, j, t) for c in concepts for j in range(images) for t in CONDITIONS
        )
    ]
    table = pd.DataFrame(rows, columns=["sketch_id", "concept", "condition", "image_id"])
    return table.iloc[rng.permutation(len(table))].reset_index(drop=True)


def _answers(table, labels, rng, participants=14):
    """Participants judge three quarters of the sketches; the more time, the more often right."""
    rows = []
    for p in range(participants):
        for row in table.itertuples():
            if rng.random() < 0.25:
                continue
            difficulty = (labels.index(row.concept) % 4) * 0.08
            right = 0.25 + 0.1 * np.log2(row.condition) - difficulty
            guesses = [row.concept if rng.random() < right else labels[rng.integers(len(labels))]]
            while len(guesses) < 5 and rng.random() < 0.3:
                guesses.append(labels[rng.integers(len(labels))])
            rows.append((f"p{p:02d}", row.sketch_id, *guesses, *[None] * (5 - len(guesses))))
    return pd.DataFrame(rows, columns=["participant", "sketch_id", *[f"guess_{i}" for i in range(1, 6)]])


@pytest.fixture(scope="session")
def study() -> tuple[Sketches, Features]:
    """The made-up study and features that are logits over the labels."""
    rng = np.random.default_rng(7)
    labels = tuple(f"label_{i:02d}" for i in range(NUM_LABELS))
    table = _table(labels[2:18:2], 6, rng)
    target = np.array([labels.index(c) for c in table["concept"]])
    logits = rng.normal(size=(len(table), NUM_LABELS))
    logits[np.arange(len(table)), target] += 0.6 * np.log2(table["condition"].to_numpy()) - 0.15 * (target % 8)
    data = Sketches(
        name="made_up",
        table=table,
        labels=labels,
        images=NoImages(len(table)),
        condition_unit="s",
        semantic_space=rng.normal(size=(NUM_LABELS, 6)),
        responses=Responses(_answers(table, list(labels), rng), simulated=True),
        flags=("simulated_participants",),
    )
    return data, as_features(logits.astype(np.float32))


def as_features(f_ND: np.ndarray, failed=()) -> Features:
    rows = np.array([i for i in range(len(f_ND)) if i not in set(failed)], np.int64)
    why = {int(i): f"item {i}: truncated" for i in failed}
    return Features(f_ND[rows], rows, why, layer="logits", hashes={})


@pytest.fixture(scope="session")
def features_of():
    """Build features from an array, with some items marked as unreadable."""
    return as_features


@pytest.fixture
def readout() -> SoftmaxReadout:
    """A readout that is known in closed form."""
    return SoftmaxReadout()


@pytest.fixture
def unconverged_readout() -> SoftmaxReadout:
    """A readout that says it did not reach its optimum."""
    return SoftmaxReadout(converged=False)


@pytest.fixture(scope="session")
def without():
    """The study without people, semantic space, or some items."""

    def change(data: Sketches, **fields) -> Sketches:
        return replace(data, **fields)

    return change
