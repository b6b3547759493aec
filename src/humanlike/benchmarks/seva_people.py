"""People's side of a SEVA run: answers coded as integers, cell metrics, and consistency of people with each other.

Legend: R judgments, G guesses, N items, L labels, C cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_agreement import distance_between_halves, people_label_counts
from humanlike.benchmarks.seva_answers import NeighbourRanks, people_switches
from humanlike.benchmarks.seva_comparison import Resamples, Side, resampled_side
from humanlike.benchmarks.seva_items import SevaItems
from humanlike.stats import (
    CodedResponses,
    PeopleSwitches,
    SplitHalf,
    people_statistics,
    split_half_consistency,
)
from humanlike.stats.consistency import HalfResamples
from humanlike.stats.count_entropy import ratio
from humanlike.stats.crossed import PeopleUnderWeights, fewer_people, participant_weights
from humanlike.stats.sketch_statistics import MeanEntropy
from humanlike.types import GUESS_COLUMNS, Responses


@dataclass(frozen=True)
class People:
    """Coded answers of people to the used items.

    Attributes:
        responses: Participant, item and guesses of every judgment.
        num_participants: Participants who judged a used item.
        dropped: Reason → number of judgments or guesses left out.
    """

    responses: CodedResponses
    num_participants: int
    dropped: dict[str, int]


def code_people(
    responses: Responses, sketch_ids: Sequence[str], labels: Sequence[str], on_unknown: str = "raise"
) -> People:
    """Code people's answers against the used items and the label order.

    Judgments of sketches that are not among the items (unread images, a subset) are left out and counted.
    Judgments are sorted by participant and item, so that their order in the file cannot matter.

    Args:
        responses: People's answers.
        sketch_ids: The N used items, in item order.
        labels: The L labels in label order.
        on_unknown: What to do with a guess that is not a label: `raise`, or `drop` it and count it. A
            judgment whose first guess is unknown is dropped whole: promoting its second guess would invent a
            first one.

    Raises:
        ValueError: On an unknown label (with its rows), a missing first guess, or an unknown `on_unknown`.
    """
    if on_unknown not in ("raise", "drop"):
        raise ValueError(f"on_unknown is {on_unknown!r}; it can be 'raise' or 'drop'")
    item_of = pd.Series(np.arange(len(sketch_ids)), index=pd.Index(sketch_ids).astype(str))
    table = responses.table
    item_R = item_of.reindex(table["sketch_id"].astype(str)).fillna(-1).to_numpy(np.int64)
    seen = item_R >= 0
    dropped = {"judgments_of_other_sketches": int((~seen).sum())}
    guess_RG = _code_guesses(table, labels)
    if (unknown := (guess_RG == -2) & seen[:, None]).any():
        if on_unknown == "raise":
            raise ValueError(_unknown_labels(table, unknown))
        dropped["guesses_outside_the_labels"] = int(unknown.sum())
        dropped["judgments_with_unknown_first_guess"] = int(unknown[:, 0].sum())
    if (absent := (guess_RG[:, 0] == -1) & seen).any():
        raise ValueError(f"guess_1 is missing in row {int(absent.argmax())} of the responses; every judgment has one")
    kept = seen & (guess_RG[:, 0] >= 0)
    participant, names = pd.factorize(table["participant"].astype(str).to_numpy()[kept], sort=True)
    guess_RG = np.where(guess_RG < 0, -1, guess_RG)[kept]
    order = np.lexsort((*guess_RG.T[::-1], item_R[kept], participant))
    coded = CodedResponses(participant[order].astype(np.int64), item_R[kept][order], guess_RG[order])
    return People(coded, len(names), dropped)


def _code_guesses(table: pd.DataFrame, labels: Sequence[str]) -> np.ndarray:
    """(R, 5) label codes; -1 where there is no guess, -2 where the guess is no label."""
    code_of = pd.Index(labels)
    columns = []
    for column in GUESS_COLUMNS:
        guess = table[column]
        code = code_of.get_indexer(pd.Index(guess.to_numpy(dtype=object)))
        absent = (guess.isna() | (guess == "")).to_numpy(bool)
        columns.append(np.where(absent, -1, np.where(code < 0, -2, code)))
    return np.stack(columns, 1).astype(np.int64)


def _unknown_labels(table: pd.DataFrame, unknown_RG: np.ndarray) -> str:
    row, column = np.argwhere(unknown_RG)[0]
    rows = np.flatnonzero(unknown_RG.any(1))
    return (
        f"{int(unknown_RG.sum())} guess(es) in {len(rows)} row(s) of the responses are not labels, first "
        f"{table[GUESS_COLUMNS[column]].iloc[row]!r} in row {int(row)}, {GUESS_COLUMNS[column]} (rows "
        f"{', '.join(str(r) for r in rows[:10])}{', …' if len(rows) > 10 else ''}); correct the spelling, or "
        "set on_unknown=drop to leave them out and count them"
    )


@dataclass(frozen=True)
class PeopleSide:
    """Everything about people that does not depend on the model, so that it can be shared by many models.

    Attributes:
        coded: Their answers.
        side: Their cell metrics and replicates.
        by_item: `accuracy`, `entropy` and `n_responses` of every item, (N,) each.
        label_counts_CL: (C, L) all guesses by cell.
        halves_distance_C: (C,) Jensen-Shannon distance between random halves; NaN with fewer than two participants.
        consistency: Metric → split-half consistency; empty with fewer than two participants.
    """

    coded: People
    side: Side
    by_item: Mapping[str, np.ndarray]
    label_counts_CL: np.ndarray
    halves_distance_C: np.ndarray
    consistency: Mapping[str, SplitHalf]


def people_side(
    coded: People,
    items: SevaItems,
    num_labels: int,
    ranks: NeighbourRanks,
    protocol: Protocol,
    resamples: Resamples,
    splits: int,
    seed: int,
) -> PeopleSide:
    """Everything about people: cells, replicates, values by item, and consistency between halves of the participants.

    Args:
        coded: Their answers, at least one.
        items: The used items.
        num_labels: L.
        ranks: Semantic ranks of the labels.
        protocol: The switches.
        resamples: What is drawn anew in the replicates.
        splits: Random halves for the split-half consistency.
        seed: Global seed.
    """
    answers, design, switches = coded.responses, items.design, people_switches(protocol)
    statistics = people_statistics(answers, items.target_N, ranks.ranks_LL, switches)
    cells = (design.cell_N, design.num_cells, num_labels)
    halves_distance_C, consistency = np.full(design.num_cells, np.nan), {}
    if coded.num_participants > 1:
        halves_distance_C = distance_between_halves(answers, *cells, seed)
        consistency = split_half_consistency(
            design,
            answers,
            items.target_N,
            ranks.ranks_LL,
            switches,
            splits=splits,
            seed=seed,
            resamples=halves_resampled(resamples, coded.num_participants),
        )
    side = resampled_side(design, statistics, resamples)
    if resamples.kind != "images":
        weighted = PeopleUnderWeights(design, answers, items.target_N, ranks.ranks_LL, switches)
        draws = (len(resamples), resamples.seed)
        side = replace(
            side,
            fewer_participants=fewer_people(weighted, *draws, "participants"),
            fewer_judgments=fewer_people(weighted, *draws, "judgments"),
        )
    return PeopleSide(
        coded=coded,
        side=side,
        by_item=_by_item(answers, items.target_N, switches),
        label_counts_CL=people_label_counts(answers, *cells),
        halves_distance_C=halves_distance_C,
        consistency=consistency,
    )


def halves_resampled(resamples: Resamples, num_participants: int) -> HalfResamples:
    """Weights for the halves of the participants, who are drawn anew only where images are not."""
    if resamples.kind == "participants":
        return HalfResamples(None, participant_weights(num_participants, len(resamples), resamples.seed))
    return HalfResamples(resamples.bootstrap_BKJ)


def _by_item(answers: CodedResponses, target_N: np.ndarray, switches: PeopleSwitches) -> dict[str, np.ndarray]:
    """Accuracy, entropy (per sketch, whatever the cells' entropy is of) and number of judgments of every item."""
    per_sketch = PeopleSwitches(accuracy=switches.accuracy, entropy="per_sketch", estimator=switches.estimator)
    statistics = people_statistics(answers, target_N, None, per_sketch)
    assert isinstance(statistics.entropy, MeanEntropy)  # by the switch above
    return {
        "accuracy": ratio(statistics.accuracy_sum_N, statistics.accuracy_weight_N),
        "entropy": ratio(statistics.entropy.sum_N, statistics.entropy.weight_N),
        "n_responses": np.bincount(answers.item_R, minlength=len(target_N)),
    }
