"""People's side of the high-variation experiment: counts, resamples and the null test, made once for all models.

Array legend: S subtasks, T trials, B replicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from humanlike.benchmarks.simulated_people import simulate_people
from humanlike.data.object_learning import ObjectLearningData, PeopleCounts, PeopleSessions, SimulatedPeople
from humanlike.files import sha256_value
from humanlike.metrics.functional import MSEnSwitches
from humanlike.stats.learning_null import NullDistribution, null_distribution
from humanlike.stats.learning_resampling import PeopleReplicates, sessions_by_subtask
from humanlike.stats.learning_summary import ConsistencyCeiling, consistency_ceiling, random_guess_score


@dataclass(frozen=True)
class HighVariationPeople:
    """What models are compared with.

    Attributes:
        resampled: Counts as observed and in every replicate.
        sessions: S tables (n, T) bool; None where only counts are known.
        null: Scores of a perfect model.
        ceiling: Consistency between two repetitions of the experiment.
        flags: What limits all comparisons.
    """

    resampled: PeopleReplicates
    sessions: tuple[np.ndarray, ...] | None
    null: NullDistribution
    ceiling: ConsistencyCeiling
    flags: tuple[str, ...]

    @property
    def n_S(self) -> np.ndarray:
        """(S,) sessions."""
        return self.resampled.n_S

    @property
    def share_ST(self) -> np.ndarray:
        """(S, T) share of correct choices."""
        return self.resampled.k_ST / self.resampled.n_S[:, None]

    @property
    def digest(self) -> str:
        """Hex digest of people's choices, or counts."""
        known = self.sessions if self.sessions is not None else (self.resampled.k_ST, self.resampled.n_S)
        return sha256_value([np.asarray(table).astype(int) for table in known])

    def random_guess(self, switches: MSEnSwitches) -> float:
        """MSE_n of a model that is right with probability ½ on every trial, without sampling noise."""
        return float(random_guess_score(self.resampled.k_ST, self.resampled.n_S, switches).value)


def with_known_people(data: ObjectLearningData, gram_of: Callable[[int], np.ndarray] | None) -> ObjectLearningData:
    """The data with a recipe for people turned into their sessions; other data as they are.

    Args:
        data: The experiment.
        gram_of: Subtask → inner products of its images on the true encoding stage; needed for a recipe alone.
    """
    if not isinstance(data.people, SimulatedPeople):
        return data
    if gram_of is None:
        raise ValueError(f"{data.name}: simulated people need the features of {data.people.backbone}")
    return replace(data, people=simulate_people(data, gram_of))


def high_variation_people(
    data: ObjectLearningData, simulations: int, replicates: int, seed: int
) -> HighVariationPeople | None:
    """People's counts with resamples and null test; None where nothing is known of people.

    Args:
        data: An experiment whose recipe for people, if any, is resolved.
        simulations: Sessions of a model in each subtask, for the null test.
        replicates: B.
        seed: Global seed.

    Raises:
        ValueError: When sessions are of unequal length, a subtask has fewer than two, or counts do not fit.
        TypeError: When people are known in a form that this experiment cannot use.
    """
    people = data.people
    if people is None:
        return None
    if isinstance(people, PeopleSessions):
        sessions = sessions_by_subtask(people.correct_ST, people.subtask_S, len(data.subtasks))
        resampled = PeopleReplicates.from_sessions(sessions, replicates, seed)
        again = PeopleReplicates.from_sessions(sessions, replicates, seed, "people again")
    elif isinstance(people, PeopleCounts):
        sessions = None
        resampled = PeopleReplicates.from_counts(people.k_ST, people.n_S, replicates, seed)
        again = PeopleReplicates.from_counts(people.k_ST, people.n_S, replicates, seed, "people again")
    else:
        raise TypeError(f"{data.name}: {type(people).__name__} is not for a high-variation experiment")
    null = null_distribution(resampled, np.array([simulations]), sessions=sessions, seed=seed)
    flags = tuple(dict.fromkeys((*resampled.flags, *null.flags)))
    return HighVariationPeople(resampled, sessions, null, consistency_ceiling(resampled, again), flags)
