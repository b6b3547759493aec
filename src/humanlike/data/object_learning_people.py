"""What is known of people who learned novel objects: sessions, counts, a table of conditions, or a recipe.

Array legend: S sessions (or subtasks where said), T trials, C transformation conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class PeopleSessions:
    """People's choices, trial by trial.

    Attributes:
        correct_ST: (S, T) int8: 1 correct, 0 wrong (or timed out), -1 where there is no such trial.
        subtask_S: (S,) int64 index of the subtask.
        participant_S: (S,) participants' ids, texts.
        image_ST: (S, T) int64 rows of the image table; -1 where unknown.
        condition_ST: (S, T) int64 index of the transformation condition; -1 for support, catch and unscored trials
            and throughout in high-variation experiments.
        catch_ST: (S, T) bool: trials at `CATCH_POSITIONS` that show a support image (False in high variation).
        simulated: True when these "people" are a simulation.
        dropped: Reason → rows left out when reading.
        timed_out: Share of the trials that were not answered in time; they count as wrong.
    """

    correct_ST: np.ndarray
    subtask_S: np.ndarray
    participant_S: np.ndarray
    image_ST: np.ndarray
    condition_ST: np.ndarray
    catch_ST: np.ndarray
    simulated: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    timed_out: float = 0.0

    def __post_init__(self) -> None:
        shape = self.correct_ST.shape
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"correct_ST must be sessions × trials and not empty, got the shape {shape}")
        for name in ("image_ST", "condition_ST", "catch_ST"):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must have the shape {shape} of correct_ST, got {getattr(self, name).shape}")
        for name in ("subtask_S", "participant_S"):
            if getattr(self, name).shape != shape[:1]:
                raise ValueError(f"{name} must have one entry for each of {shape[0]} sessions")
        strange = ~np.isin(self.correct_ST, (-1, 0, 1))
        if strange.any():
            raise ValueError(f"correct_ST must be 1, 0 or -1, got {self.correct_ST[strange][0]}")

    def counts(self, num_subtasks: int) -> PeopleCounts:
        """Correct answers of each subtask and trial.

        Args:
            num_subtasks: Number of subtasks.

        Raises:
            ValueError: When a session lacks a trial, so that n differs between trials.
        """
        if (self.correct_ST < 0).any():
            session = int(np.flatnonzero((self.correct_ST < 0).any(axis=1))[0])
            raise ValueError(f"session {session} lacks a trial; counts need sessions of equal length")
        k_ST = np.zeros((num_subtasks, self.correct_ST.shape[1]), np.int64)
        np.add.at(k_ST, self.subtask_S, self.correct_ST.astype(np.int64))
        return PeopleCounts(k_ST, np.bincount(self.subtask_S, minlength=num_subtasks).astype(np.int64), self.simulated)


@dataclass(frozen=True)
class PeopleCounts:
    """How many sessions of a subtask answered each trial correctly; who did is not known.

    Attributes:
        k_ST: (subtasks, T) int64 correct answers.
        n_S: (subtasks,) int64 sessions.
        simulated: True when these "people" are a simulation.
    """

    k_ST: np.ndarray
    n_S: np.ndarray
    simulated: bool = False

    def __post_init__(self) -> None:
        if self.k_ST.ndim != 2 or self.n_S.shape != self.k_ST.shape[:1]:
            raise ValueError(
                f"k_ST must be subtasks × trials and n_S subtasks, got {self.k_ST.shape}, {self.n_S.shape}"
            )
        if not (np.issubdtype(self.k_ST.dtype, np.integer) and np.issubdtype(self.n_S.dtype, np.integer)):
            raise ValueError(f"counts must be integers, got {self.k_ST.dtype} and {self.n_S.dtype}")
        if (self.n_S < 2).any():
            raise ValueError(f"subtask {int(np.argmax(self.n_S < 2))} has fewer than 2 sessions; variances need 2")
        if (self.k_ST < 0).any() or (self.k_ST > self.n_S[:, None]).any():
            raise ValueError("a count of correct answers lies outside 0 … number of sessions")


@dataclass(frozen=True)
class PeopleConditions:
    """One-shot accuracy of people known only as a table of conditions: lapse-corrected values with standard errors.

    Attributes:
        p_C: (C,) accuracy of each condition, corrected for lapses.
        se_C: (C,) its standard error.
        digitised: True when the values were read off a figure.
    """

    p_C: np.ndarray
    se_C: np.ndarray
    digitised: bool = False

    def __post_init__(self) -> None:
        if self.p_C.ndim != 1 or self.se_C.shape != self.p_C.shape:
            raise ValueError(f"p_C and se_C must be vectors of one length, got {self.p_C.shape}, {self.se_C.shape}")
        if not (np.isfinite(self.p_C).all() and (self.se_C >= 0).all()):
            raise ValueError("accuracies must be finite and standard errors must not be negative")


@dataclass(frozen=True)
class SimulatedPeople:
    """A recipe for "people" that are a known learner; `simulate_people` turns it into sessions when features exist.

    Attributes:
        backbone: Name of the network whose layer is the true encoding stage.
        layer: Name of that layer.
        rule: Name of the true update rule.
        alpha: Learning rate.
        lapse: Probability that a choice is made by a fair coin instead.
        sessions: Sessions of each subtask, each by another participant.
        seed: Of orders, mappings, coins and lapses; never shared with a model's sessions.
    """

    backbone: str = "tf_efficientnet_lite0"
    layer: str = "pre_logits"
    rule: str = "square"
    alpha: float = 1.0
    lapse: float = 0.1
    sessions: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"truth.alpha must lie in [0, 1], got {self.alpha}")
        if not 0 <= self.lapse <= 1:
            raise ValueError(f"truth.lapse must lie in [0, 1], got {self.lapse}")
        if self.sessions < 2:
            raise ValueError(f"truth.sessions must be at least 2 for a variance, got {self.sessions}")


People = PeopleSessions | PeopleCounts | PeopleConditions | SimulatedPeople


def check_sessions(
    people: PeopleSessions, subtasks: int, trials: int, once: bool, names: Sequence[str], where: str
) -> None:
    """Refuse sessions of another length, subtasks with fewer than two, and (`once`) a participant twice in one.

    Raises:
        ValueError: Naming the subtask, and the participant where there is one.
    """
    if people.correct_ST.shape[1] != trials or (people.correct_ST < 0).any():
        raise ValueError(
            f"{where}: every session must have {trials} trials; sessions of unequal length were given: "
            "leave out those that are not complete"
        )
    if people.subtask_S.min() < 0 or people.subtask_S.max() >= subtasks:
        raise ValueError(f"{where}: subtask_S must lie in 0 … {subtasks - 1}")
    number = np.bincount(people.subtask_S, minlength=subtasks)
    if (number < 2).any():
        s = int(np.argmax(number < 2))
        raise ValueError(
            f"{where}: subtask {names[s]} has {number[s]} session(s); its variance needs at least 2: leave the "
            "subtask out (dataset.subtasks)"
        )
    if once:
        pairs = pd.Series(list(zip(people.subtask_S.tolist(), people.participant_S.tolist(), strict=True)))
        if pairs.duplicated().any():
            s, who = pairs[pairs.duplicated()].iloc[0]
            raise ValueError(
                f"{where}: participant {who!r} stands twice in subtask {names[s]}; one learns a pair of objects once"
            )
