"""The sketch analysis as a plain notebook would do it: pandas tables of names, loops over cells, SciPy, scikit-learn.

This is the reference that `perf/bootstrap.py` times the package against; nothing else uses it. It is written from the
description of the analysis alone: positions of wrong answers among the concept's neighbours are counted from 0, the
correct answer and the nearest neighbour share the code 0 and are left out, the curve of cumulative shares ends at
(1, 1), and a cell without a wrong answer has preference 1.

Columns of a table of answers: `concept`, `image`, `abstraction` (seconds), `sketch`, `response` (a name); people's also
have `guesses`, the list of all names that a judgment gave.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist, jensenshannon
from scipy.stats import entropy
from sklearn.linear_model import LinearRegression
from sklearn.metrics import auc

CELL = ["concept", "abstraction"]
METRICS = ("accuracy", "entropy", "snp")


def neighbour_lists(embedding: np.ndarray, names: list[str], concepts: list[str]) -> dict[str, list[str]]:
    """Every concept's other labels, nearest first by cosine distance."""
    lists = {}
    for concept in concepts:
        own = names.index(concept)
        order = np.argsort(cdist(embedding[[own]], embedding, "cosine")[0], kind="stable")
        lists[concept] = [names[i] for i in order if i != own]
    return lists


def answer_positions(answers: pd.DataFrame, neighbours: dict[str, list[str]]) -> list[int]:
    """Position of every response among its concept's neighbours; 0 for a correct one as for the nearest."""
    return [
        0 if response == concept else neighbours[concept].index(response)
        for concept, response in zip(answers["concept"], answers["response"], strict=True)
    ]


def people_entropy(answers: pd.DataFrame) -> pd.Series:
    """Entropy of all guesses about a sketch, by sketch."""
    values = {}
    for sketch, rows in answers.groupby("sketch"):
        guesses = [guess for row in rows["guesses"] for guess in row]
        values[sketch] = entropy(pd.Series(guesses).value_counts())
    return pd.Series(values)


def model_entropy(proba: np.ndarray) -> list[float]:
    """Entropy of the probabilities of every sketch."""
    return [float(entropy(row)) for row in proba]


def preference(positions: pd.Series, num_labels: int) -> float:
    """Semantic neighbour preference of one cell, as published."""
    wrong = positions[positions != 0]
    if len(wrong) == 0:
        return 1.0
    counts = wrong.value_counts().sort_index()
    share = counts.cumsum() / counts.sum()
    return float(auc(np.append(counts.index / num_labels, 1.0), np.append(share, 1.0)))


def preference_by_cell(answers: pd.DataFrame, num_labels: int) -> pd.Series:
    """Semantic neighbour preference, cell after cell, by selecting each cell's rows."""
    values = {}
    for concept in sorted(answers["concept"].unique()):
        for seconds in sorted(answers["abstraction"].unique()):
            rows = answers[(answers["concept"] == concept) & (answers["abstraction"] == seconds)]
            values[concept, seconds] = preference(rows["position"], num_labels)
    return pd.Series(values)


def resample(answers: pd.DataFrame, drawn: dict[str, list[str]], concept_first: bool = False) -> pd.DataFrame:
    """Rows of the drawn images of every concept, once for each time that an image was drawn.

    Args:
        answers: Table of answers.
        drawn: Concept → its drawn images, repeats included.
        concept_first: Select a concept's rows once and its images from these, rather than images from the whole table.
    """
    pieces = []
    for concept, images in drawn.items():
        rows = answers[answers["concept"] == concept] if concept_first else answers
        for draw, image in enumerate(images):
            pieces.append(rows[rows["image"] == image].assign(draw=draw))
    return pd.concat(pieces, ignore_index=True)


def cell_metrics(answers: pd.DataFrame, num_labels: int) -> pd.DataFrame:
    """Accuracy, entropy and preference of every cell of a resampled table with `correct`, `entropy`, `position`."""
    by_sketch = answers.groupby([*CELL, "sketch", "draw"])
    return pd.DataFrame(
        {
            "accuracy": by_sketch["correct"].mean().groupby(level=CELL).mean(),
            "entropy": by_sketch["entropy"].first().groupby(level=CELL).mean(),
            "snp": answers.groupby(CELL)["position"].apply(preference, num_labels=num_labels),
        }
    )


def adjusted_r2(people: pd.Series, model: pd.Series) -> float:
    """Adjusted R² of people ~ model * abstraction over cells, both indexed by (concept, abstraction)."""
    both = pd.concat([people.rename("people"), model.rename("model")], axis=1).reset_index(names=CELL)
    x = np.column_stack([both["model"], both["abstraction"], both["model"] * both["abstraction"]])
    r2 = LinearRegression().fit(x, both["people"]).score(x, both["people"])
    return 1 - (1 - r2) * (len(both) - 1) / (len(both) - x.shape[1] - 1)


def replicate(
    people: pd.DataFrame,
    model: pd.DataFrame,
    drawn: dict[str, list[str]],
    num_labels: int,
    concept_first: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, float], float]:
    """One bootstrap replicate.

    Returns:
        Cell metrics of people and of the model, alignment by metric, and the CPU seconds spent on selecting rows.
    """
    start = time.process_time()
    people, model = (resample(table, drawn, concept_first) for table in (people, model))
    selecting = time.process_time() - start
    people_cells, model_cells = cell_metrics(people, num_labels), cell_metrics(model, num_labels)
    alignment = {metric: adjusted_r2(people_cells[metric], model_cells[metric]) for metric in METRICS}
    return people_cells, model_cells, alignment, selecting


def distances(machine: np.ndarray, human: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of every row of one table from every row of the other, pair after pair."""
    return np.array([[jensenshannon(p, q) for q in human] for p in machine])
