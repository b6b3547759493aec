"""Do people differ in how well they learn, and does anyone learn better than a model?

Legend: P participants, S subtasks, R permutations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.rng import generator
from humanlike.stats.hypothesis import welch_test

_BLOCK = 500


@dataclass(frozen=True)
class Participants:
    """Accuracy of every participant on every subtask.

    Attributes:
        name_P: (P,) participants, sorted.
        accuracy_PS: (P, S) share of correct choices; NaN where the participant did not do the subtask.
    """

    name_P: np.ndarray
    accuracy_PS: np.ndarray

    @property
    def complete(self) -> Participants:
        """Those who did all subtasks."""
        rows = ~np.isnan(self.accuracy_PS).any(axis=1)
        return Participants(self.name_P[rows], self.accuracy_PS[rows])


def participants(
    correct_ST: np.ndarray, subtask_S: np.ndarray, participant_S: np.ndarray, num_subtasks: int
) -> Participants:
    """Gather sessions by participant.

    Args:
        correct_ST: (sessions, trials) bool or 0 and 1.
        subtask_S: (sessions,) subtask of each, in [0, num_subtasks).
        participant_S: (sessions,) who did it.
        num_subtasks: S.

    Raises:
        ValueError: If lengths differ, a choice is neither 0 nor 1, or a participant did a subtask twice (they are
            named): the second session would be one of practice.
    """
    correct_ST, subtask_S, participant_S = (np.asarray(x) for x in (correct_ST, subtask_S, participant_S))
    if not len(correct_ST) == len(subtask_S) == len(participant_S):
        raise ValueError(f"{len(correct_ST)} sessions need as many subtasks and participants")
    if not np.isin(correct_ST, (0, 1)).all():
        raise ValueError("choices must be 0 or 1 on every trial; leave out sessions that are not complete")
    name_P, code_S = np.unique(participant_S, return_inverse=True)
    cell_S = code_S * num_subtasks + subtask_S
    cells, number = np.unique(cell_S, return_counts=True)
    if (number > 1).any():
        who, where = divmod(int(cells[number > 1][0]), num_subtasks)
        raise ValueError(f"participant {str(name_P[who])!r} did subtask {where} {number.max()} times; keep one session")
    accuracy_PS = np.full((len(name_P), num_subtasks), np.nan)
    accuracy_PS[code_S, subtask_S] = correct_ST.astype(np.float64).mean(axis=1)
    return Participants(name_P, accuracy_PS)


@dataclass(frozen=True)
class PermutationTest:
    """Whether participants' mean accuracies vary more than shuffled ones.

    Attributes:
        variance: Sample variance (n - 1) over participants of their mean accuracy.
        p_value: (1 + #{permuted ≥ observed}) / (R + 1), one-sided.
        permuted_R: (R,) variances when participants are shuffled within every subtask.
    """

    variance: float
    p_value: float
    permuted_R: np.ndarray


def individual_variation(accuracy_PS: np.ndarray, permutations: int = 10_000, seed: int = 0) -> PermutationTest:
    """Test that all participants learn equally well.

    Args:
        accuracy_PS: (P, S) of participants who did all subtasks (`Participants.complete`).
        permutations: R.
        seed: Global seed.

    Raises:
        ValueError: If there are fewer than two participants, or a value is NaN.

    References:
        Lee and DiCarlo, "Permutation test for individual variability in overall learning ability".
    """
    accuracy_PS = np.asarray(accuracy_PS, dtype=np.float64)
    if accuracy_PS.ndim != 2 or len(accuracy_PS) < 2 or np.isnan(accuracy_PS).any():
        raise ValueError("the test needs at least two participants who did every subtask; take `Participants.complete`")
    observed = float(accuracy_PS.mean(axis=1).var(ddof=1))
    rng = generator(seed, "learning", "individuals")
    permuted_R = np.empty(permutations)
    for start in range(0, permutations, _BLOCK):
        block = min(_BLOCK, permutations - start)
        shuffled = rng.permuted(np.broadcast_to(accuracy_PS, (block, *accuracy_PS.shape)), axis=1)
        permuted_R[start : start + block] = shuffled.mean(axis=2).var(axis=1, ddof=1)
    # Sums in another order differ in their last digits: equal variances must count as equal.
    at_least = permuted_R >= observed - 1e-12 * max(observed, 1e-12)
    return PermutationTest(observed, float((1 + at_least.sum()) / (permutations + 1)), permuted_R)


def better_than_model(people: Participants, model_S: np.ndarray, level: float = 0.05) -> pd.DataFrame:
    """Welch's t-test of each participant's accuracies on the subtasks against the model's, one-tailed.

    Args:
        people: Participants who did all subtasks.
        model_S: (S,) the model's accuracy on every subtask.
        level: Level of significance after Bonferroni's correction.

    Returns:
        One row a participant: `participant, accuracy, model, difference, statistic, df, p_value, p_bonferroni,
        better`; p_bonferroni = min(1, P p).

    Raises:
        ValueError: If numbers of subtasks differ, or a value is NaN.
    """
    if people.accuracy_PS.shape[1:] != np.shape(model_S) or np.isnan(people.accuracy_PS).any():
        raise ValueError("every participant needs an accuracy on each of the model's subtasks")
    rows = []
    for name, accuracy_S in zip(people.name_P, people.accuracy_PS, strict=True):
        test = welch_test(accuracy_S, np.asarray(model_S), alternative="greater")
        corrected = min(1.0, test.p_value * len(people.name_P))
        rows.append(
            {
                "participant": name,
                "accuracy": float(accuracy_S.mean()),
                "model": float(np.mean(model_S)),
                "difference": test.difference,
                "statistic": test.statistic,
                "df": test.df,
                "p_value": test.p_value,
                "p_bonferroni": corrected,
                "better": corrected < level,
            }
        )
    return pd.DataFrame(rows)
