"""Early and late accuracy of a model and of people, overall and by how hard people find a subtask.

A session's number of correct choices within a phase adds up over sessions, so its replicates need one small product per
subtask. The test is a bootstrap test of the difference model - people, its replicates moved to 0: how often does chance
alone give a difference as large?

Legend: S subtasks, n sessions of a subtask, T trials, B replicates, Q quartiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from humanlike.stats.intervals import basic
from humanlike.stats.learning_resampling import PeopleReplicates, SessionDraws, resampled_counts
from humanlike.stats.learning_summary import resampled_accuracy

PHASES: Mapping[str, slice] = MappingProxyType({"early": slice(1, 6), "late": slice(94, 100), "all": slice(None)})
"""0-based trials of each phase: early after 1 to 5 examples, as the publication-time code takes it."""
PHASES_PAPER_TEXT: Mapping[str, slice] = MappingProxyType({**PHASES, "early": slice(0, 5)})
"""As the paper's words have it: early is the first five trials, the first of which is a guess by construction."""


def difficulty_quartile(people_accuracy_S: np.ndarray, groups: int = 4) -> np.ndarray:
    """(S,) 1 (easiest for people) to `groups` (hardest), of equal size as far as S allows; ties by subtask order.

    Example:
        >>> difficulty_quartile(np.array([0.9, 0.6, 0.8, 0.7])).tolist()
        [1, 4, 2, 3]
    """
    order = np.argsort(-np.asarray(people_accuracy_S), kind="stable")
    quartile_S = np.empty(len(order), dtype=np.int64)
    for number, subtasks in enumerate(np.array_split(order, groups), start=1):
        quartile_S[subtasks] = number
    return quartile_S


def phase_table(
    sessions: Sequence[np.ndarray],
    draws: SessionDraws,
    people: PeopleReplicates,
    phases: Mapping[str, slice] = PHASES,
    level: float = 0.95,
) -> pd.DataFrame:
    """Accuracy of model and people in every phase, over all subtasks and by people's difficulty quartile, with tests.

    Args:
        sessions: S tables (n, T) bool of one model.
        draws: Of its sessions, as many replicates as people have.
        people: People's counts and replicates.
        phases: Name → 0-based trials.
        level: Coverage of the basic intervals.

    Returns:
        One row a phase and group (quartile 0 is all subtasks, 1 the easiest quarter): `phase, quartile, n_subtasks,
        model, model_low, model_high, people, people_low, people_high, difference, difference_low, difference_high,
        p_below, p_two_sided`. p_below is that of "the model is no worse than people", from
        (1 + #{d_b - d ≤ d}) / (B + 1).

    Raises:
        ValueError: If subtasks or replicates do not fit, or a phase lies outside the trials.

    References:
        Lee and DiCarlo, Figure 6.
    """
    num_subtasks, num_trials = people.k_ST.shape
    if len(sessions) != num_subtasks or draws.replicates != people.replicates:
        raise ValueError(
            f"the model has {len(sessions)} subtasks and {draws.replicates} replicates, people {num_subtasks} and "
            f"{people.replicates}"
        )
    share_ST = people.k_ST / people.n_S[:, None]
    quartile_S = difficulty_quartile(share_ST.mean(axis=1))
    rows = []
    for phase, trials in phases.items():
        if len(range(*trials.indices(num_trials))) == 0 or (trials.stop or 0) > num_trials:
            raise ValueError(f"phase {phase!r} ({trials.start} to {trials.stop}) lies outside the {num_trials} trials")
        model_S, model_BS = _model_accuracy(sessions, draws, trials)
        people_S, people_BS = share_ST[:, trials].mean(axis=1), resampled_accuracy(people, trials)
        for quartile in range(int(quartile_S.max()) + 1):
            inside = quartile_S == quartile if quartile else np.full(num_subtasks, True)
            if not inside.any():
                continue  # fewer subtasks than quartiles
            sides = [
                (x[inside].mean(), drawn[:, inside].mean(axis=1))
                for x, drawn in ((model_S, model_BS), (people_S, people_BS))
            ]
            sides.append((sides[0][0] - sides[1][0], sides[0][1] - sides[1][1]))
            row = {"phase": phase, "quartile": quartile, "n_subtasks": int(inside.sum())}
            for name, (value, drawn_B) in zip(("model", "people", "difference"), sides, strict=True):
                interval = basic(float(value), drawn_B, level)
                row |= {name: float(value), f"{name}_low": interval.low, f"{name}_high": interval.high}
            rows.append(row | bootstrap_test(float(sides[2][0]), sides[2][1]))
    return pd.DataFrame(rows)


def bootstrap_test(difference: float, replicates_B: np.ndarray) -> dict[str, float]:
    """Two p-values of a difference of 0: against its being below 0, and its being other than 0.

    The replicates' deviations from the difference stand for what chance alone does to it.

    Args:
        difference: d, on the full sample.
        replicates_B: (B,) d_b.

    Example:
        >>> bootstrap_test(-1.0, np.array([-1.5, -1.0, -0.5]))
        {'p_below': 0.25, 'p_two_sided': 0.25}
    """
    deviation_B = np.asarray(replicates_B) - difference
    size = len(deviation_B) + 1
    return {
        "p_below": float((1 + (deviation_B <= difference).sum()) / size),
        "p_two_sided": float((1 + (np.abs(deviation_B) >= abs(difference)).sum()) / size),
    }


def _model_accuracy(
    sessions: Sequence[np.ndarray], draws: SessionDraws, trials: slice
) -> tuple[np.ndarray, np.ndarray]:
    """(S,) and (B, S) accuracy within a phase."""
    full_S, drawn_BS = np.empty(len(sessions)), np.empty((draws.replicates, len(sessions)))
    for s, (table, times) in enumerate(zip(sessions, draws.times, strict=True)):
        correct_N1 = table[:, trials].sum(axis=1, dtype=np.int64)[:, None]
        choices = table[:, trials].shape[1]
        full_S[s] = correct_N1.sum() / (len(table) * choices)
        drawn_BS[:, s] = resampled_counts(times, correct_N1)[:, 0].astype(np.float64) / (draws.draws_S[s] * choices)
    return full_S, drawn_BS
