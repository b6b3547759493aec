"""People on fixed labels: one answer a person and image, and how consistent observers are, under any weights.

Legend: P people, N items, L labels, T conditions, B sets of item weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from humanlike.benchmarks.seva_people import code_people
from humanlike.data.trials import NO_ANSWER
from humanlike.metrics.functional import kappa_from_counts
from humanlike.stats import CodedResponses
from humanlike.stats.count_entropy import ratio
from humanlike.types import Responses

UNSEEN, MISSING = -2, -1


@dataclass(frozen=True, eq=False)
class PeopleAnswers:
    """Everybody's answer to every item.

    Attributes:
        participants: P names.
        answer_PN: (P, N) label; -1 saw the item and gave no answer, -2 did not see it.
        target_N: (N,) label of the item.
        repeated: Further judgments of one item by one person, left out.
        dropped: Reason → judgments left out.
    """

    participants: tuple[str, ...]
    answer_PN: np.ndarray
    target_N: np.ndarray
    repeated: int
    dropped: dict[str, int]

    @cached_property
    def seen_PN(self) -> np.ndarray:
        """(P, N) 1 where the person saw the item."""
        return (self.answer_PN != UNSEEN).astype(np.float64)

    @cached_property
    def right_PN(self) -> np.ndarray:
        """(P, N) 1 where the person was right; a missing answer is wrong."""
        return (self.answer_PN == self.target_N).astype(np.float64)

    def label_counts(self, num_labels: int, weight_P: np.ndarray | None = None) -> np.ndarray:
        """(N, L) how often every label was given to every item, person p counted weight_P[p] times."""
        people, items = np.nonzero(self.answer_PN >= 0)
        weight = None if weight_P is None else weight_P[people]
        flat = items * num_labels + self.answer_PN[people, items]
        counts = np.bincount(flat, weights=weight, minlength=self.answer_PN.shape[1] * num_labels)
        return counts.reshape(-1, num_labels).astype(np.float64)

    def coded(self) -> CodedResponses:
        """The same as judgments, sorted by person and item."""
        person, item = np.nonzero(self.answer_PN != UNSEEN)
        return CodedResponses(person, item, self.answer_PN[person, item][:, None])


def people_answers(
    responses: Responses, sketch_ids: Sequence[str], labels: Sequence[str], target_N: np.ndarray, on_unknown: str
) -> PeopleAnswers:
    """Code people's first guesses; "na" is a missing answer, and of repeated judgments of an item the first counts.

    Args:
        responses: People's answers.
        sketch_ids: The N used items, in item order.
        labels: The L labels in label order.
        target_N: (N,) label index of every item.
        on_unknown: A guess that is no label: `raise`, or `drop` it and count it.

    Raises:
        ValueError: As `code_people`.
    """
    coded = code_people(responses, sketch_ids, (*labels, NO_ANSWER), on_unknown)
    table = responses.table
    used = table["sketch_id"].astype(str).isin(sketch_ids) & table["guess_1"].isin([*labels, NO_ANSWER])
    person_R, item_R = coded.responses.participant_R, coded.responses.item_R
    guess_R = coded.responses.guess_RG[:, 0]
    key_R = person_R * len(sketch_ids) + item_R
    _, first = np.unique(key_R, return_index=True)
    answer_PN = np.full((coded.num_participants, len(sketch_ids)), UNSEEN, np.int64)
    answer_PN[person_R[first], item_R[first]] = np.where(guess_R[first] == len(labels), MISSING, guess_R[first])
    return PeopleAnswers(
        participants=tuple(sorted(table["participant"][used].astype(str).unique())),
        answer_PN=answer_PN,
        target_N=target_N,
        repeated=len(key_R) - len(first),
        dropped={reason: n for reason, n in coded.dropped.items() if n},
    )


@dataclass(frozen=True)
class Consistency:
    """Of pairs of observers, for several sets of weights.

    Attributes:
        observed: Share of items both right or both wrong; NaN without a common item.
        kappa: The same beyond chance; NaN where it is not defined.
    """

    observed: np.ndarray
    kappa: np.ndarray


def consistency_from_counts(
    both_right: np.ndarray, right_a: np.ndarray, right_b: np.ndarray, n: np.ndarray
) -> Consistency:
    """Observed and error consistency from (weighted, whole) counts of items; see `kappa_from_counts`."""
    kappa = kappa_from_counts(
        *(torch.from_numpy(np.rint(x).astype(np.int64)) for x in (both_right, right_a, right_b, n))
    )
    return Consistency(ratio(n - right_a - right_b + 2 * both_right, n), kappa.numpy())


def with_people(correct_N: np.ndarray, people: PeopleAnswers, weight_BN: np.ndarray) -> Consistency:
    """(B, P) consistency of a model with every person, on the items that the person saw.

    Args:
        correct_N: (N,) 1 where the model is right.
        people: People's answers.
        weight_BN: (B, N) how often every item counts, whole numbers.
    """
    seen_NP, right_NP = people.seen_PN.T, people.right_PN.T
    model_N1 = correct_N[:, None].astype(np.float64)
    return consistency_from_counts(
        weight_BN @ (right_NP * model_N1), weight_BN @ (seen_NP * model_N1), weight_BN @ right_NP, weight_BN @ seen_NP
    )


def pairs_of_people(people: PeopleAnswers) -> tuple[np.ndarray, np.ndarray]:
    """First and second person of all Q = P (P - 1) / 2 pairs."""
    return np.triu_indices(len(people.participants), k=1)


def among_people(people: PeopleAnswers, weight_BN: np.ndarray) -> Iterator[Consistency]:
    """(Q,) consistency of every pair of people, on the items both saw, one set of weights after another."""
    pairs = pairs_of_people(people)
    for weight_N in weight_BN:
        seen_PN, right_PN = people.seen_PN * weight_N, people.right_PN * weight_N
        both, right_a, n = right_PN @ people.right_PN.T, right_PN @ people.seen_PN.T, seen_PN @ people.seen_PN.T
        yield consistency_from_counts(both[pairs], right_a[pairs], right_a.T[pairs], n[pairs])


def weighted_mean(value: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean over the last axis of the values that are defined; NaN where none has a weight."""
    known = np.isfinite(value)
    total = np.where(known, weight, 0.0)
    return ratio((np.where(known, value, 0.0) * total).sum(-1), total.sum(-1))
