"""Scores of one layer in the one-shot experiment: accuracy by transformation and level, all rules, all conventions.

Array legend: S subtasks, R rules, n sessions of a subtask, T trials, C conditions, B replicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from humanlike.backbones.gram import LayerGram
from humanlike.benchmarks.object_learning_conventions import CONVENTIONS, Convention
from humanlike.benchmarks.object_learning_scores import LayerResult, simulations_of
from humanlike.benchmarks.object_learning_sessions import ModelSessions
from humanlike.data.object_learning import ObjectLearningData, PeopleConditions, PeopleSessions
from humanlike.files import sha256_value
from humanlike.stats.learning_null import p_value
from humanlike.stats.learning_one_shot import OneShotPeople, OneShotScore, one_shot_null, one_shot_score
from humanlike.stats.learning_one_shot_counts import ONE_SHOT_CONVENTIONS, OneShotCounts
from humanlike.stats.learning_transformations import transformation_means

_NEVER = ()


@dataclass(frozen=True)
class OneShotSide:
    """People under every convention.

    Attributes:
        people: Convention → accuracies, corrected for lapses.
        null: Convention → MSE_n of a perfect model; empty where people are known by a table alone.
        share_ST: (S, T) share of correct choices by subtask and trial; None where people are known by a table alone.
        n_S: (S,) sessions, or None.
        digest: Hex digest of what is known of people.
        flags: What limits all comparisons.
    """

    people: Mapping[str, OneShotPeople]
    null: Mapping[str, np.ndarray]
    share_ST: np.ndarray | None
    n_S: np.ndarray | None
    digest: str
    flags: tuple[str, ...]


def one_shot_people(
    data: ObjectLearningData, simulations: int, replicates: int, seed: int, *, compat: bool = False
) -> OneShotSide | None:
    """People's accuracy under every condition and convention; None where nothing is known.

    Args:
        data: An experiment whose recipe for people, if any, is resolved.
        simulations: Sessions of a model in each subtask.
        replicates: B.
        seed: Global seed.
        compat: Where workers are resampled (`v2`), take people's accuracy on catch trials from each one's last session.

    Raises:
        ValueError: When people's lapses cannot be corrected, or a condition has fewer than two trials.
        TypeError: When people are known in a form that this experiment cannot use.
    """
    known = data.people
    if known is None:
        return None
    if isinstance(known, PeopleConditions):
        estimate = OneShotPeople.from_estimates(known.p_C, known.se_C, replicates, seed)
        flags = (*estimate.flags, *(("people_digitised",) if known.digitised else ()))
        digest = sha256_value([known.p_C, known.se_C])
        return OneShotSide(dict.fromkeys(CONVENTIONS, estimate), {}, None, None, digest, flags)
    if not isinstance(known, PeopleSessions):
        raise TypeError(f"{data.name}: {type(known).__name__} is not for a one-shot experiment")
    people, null = {}, {}
    for name, published in ONE_SHOT_CONVENTIONS.items():
        switches = replace(published, compat=compat and published.people_resampling == "workers")
        counts = OneShotCounts.from_trials(
            known.correct_ST, known.condition_ST, switches.catch_trials, len(data.conditions)
        )
        people[name] = OneShotPeople.from_sessions(
            counts, known.participant_S, known.subtask_S, switches, replicates, seed
        )
        drawn = simulations * len(data.subtasks)
        null[name] = one_shot_null(counts, people[name], drawn, clip=switches.clip, seed=seed)
    own = known.counts(len(data.subtasks))
    digest = sha256_value([known.correct_ST, known.condition_ST, known.subtask_S, compat])
    flags = tuple(dict.fromkeys(flag for side in people.values() for flag in side.flags))
    return OneShotSide(people, null, own.k_ST / own.n_S[:, None], own.n_S, digest, flags)


def one_shot_layer(gram: LayerGram, sessions: ModelSessions, side: OneShotSide | None, main: str) -> LayerResult:
    """Simulate and score one layer under every convention.

    Args:
        gram: Inner products of the layer.
        sessions: The model's sessions.
        side: People's side, or None.
        main: Name of the convention whose accuracies and replicates are kept.
    """
    rows: list[dict[str, Any]] = [{"rule": name} for name in sessions.names]
    kind_C = [condition.transformation for condition in sessions.data.conditions]
    quantiles: dict[float, list[np.ndarray]] = {}
    for simulation in simulations_of(main):
        if simulation.norm_quantile not in quantiles:  # this experiment has one order of trials
            grams = gram.calibrated(simulation.norm_quantile)
            quantiles[simulation.norm_quantile] = sessions.simulate(grams, simulation)
    condition_NT = one_shot_conditions(sessions, CONVENTIONS[main])
    own = quantiles[CONVENTIONS[main].simulation.norm_quantile]
    k_RST = np.stack([table.sum(axis=1, dtype=np.int64) for table in own], axis=1)
    replicates = pd.DataFrame({"rule": list(sessions.names)})
    patterns, kinds, drawn_RB = list[pd.DataFrame](), list[pd.DataFrame](), []
    for r, row in enumerate(rows):
        row["accuracy"] = float(k_RST[r].mean() / sessions.sessions)
        if side is not None and side.share_ST is not None:
            row["accuracy_people"] = float(side.share_ST.mean())
        for name, convention in CONVENTIONS.items() if side is not None else ():
            assert side is not None
            correct = quantiles[convention.simulation.norm_quantile]
            score = _score(correct, r, condition_NT, side.people[name], sessions, convention)
            row |= _scored(name, score, side)
            if name == main:
                row |= {"noise_floor": side.people[name].noise_floor, "p_null": row[f"p_null_{name}"]}
                drawn_RB.append(score.replicates_B)
                row |= {"test_accuracy": float(score.p_C.mean())}
                row |= {"test_accuracy_people": float(side.people[name].p_C.mean())}
                patterns.append(_pattern(sessions, sessions.names[r], score, side.people[name]))
                means = transformation_means(score, side.people[name], kind_C)
                kinds.append(means.assign(rule=sessions.names[r]))
    if side is not None:
        named = pd.DataFrame(np.stack(drawn_RB), columns=[f"r{b}" for b in range(len(drawn_RB[0]))])
        replicates = pd.concat([replicates, named], axis=1)
    further = {"one_shot": patterns, "one_shot_kinds": kinds}
    joined = {name: pd.concat(t, ignore_index=True) if t else pd.DataFrame({"rule": []}) for name, t in further.items()}
    return LayerResult(pd.DataFrame(rows), pd.DataFrame({"rule": []}), replicates, k_RST, joined)


def one_shot_conditions(sessions: ModelSessions, convention: Convention) -> np.ndarray:
    """(S·n, T) condition of every trial, -1 for support, catch and unscored images."""
    data, of_row = sessions.data, sessions.data.condition_rows()
    parts = []
    for subtask in range(len(data.subtasks)):
        rows_N, _ = data.subtask_rows(subtask)
        parts.append(of_row[rows_N[sessions.draws(subtask, convention.simulation.trial_order).order_ST]])
    return np.concatenate(parts)


def _score(
    correct: list[np.ndarray],
    rule: int,
    condition_NT: np.ndarray,
    people: OneShotPeople,
    sessions: ModelSessions,
    convention: Convention,
) -> OneShotScore:
    correct_NT = np.concatenate([table[rule] for table in correct])
    counts = OneShotCounts.from_trials(correct_NT, condition_NT, _NEVER, len(sessions.data.conditions))
    switches = ONE_SHOT_CONVENTIONS[convention.name]
    return one_shot_score(
        counts,
        people,
        subtract_human_noise=switches.subtract_human_noise,
        stratum_N=np.repeat(np.arange(len(correct)), sessions.sessions)
        if switches.people_resampling == "sessions"
        else None,
        seed=sessions.seed,
    )


def _scored(name: str, score: OneShotScore, side: OneShotSide) -> dict[str, float]:
    value, people = float(score.score.value), side.people[name]
    subtracted = ONE_SHOT_CONVENTIONS[name].subtract_human_noise
    statistic = value if subtracted else value - people.noise_floor
    null_B = side.null.get(name)
    guess = float(((0.5 - people.p_C) ** 2).mean()) - (people.noise_floor if subtracted else 0.0)
    return {
        f"msen_{name}": value,
        f"msen_{name}_ci_low": score.interval.low,
        f"msen_{name}_ci_high": score.interval.high,
        f"p_null_{name}": float("nan") if null_B is None else p_value(null_B[np.isfinite(null_B)], statistic),
        f"random_guess_{name}": guess,
        f"lapse_rate_people_{name}": people.lapse_rate,
    }


def _pattern(sessions: ModelSessions, rule: str, score: OneShotScore, people: OneShotPeople) -> pd.DataFrame:
    intervals = people.intervals()
    return pd.DataFrame(
        {
            "rule": rule,
            "transformation": [c.transformation for c in sessions.data.conditions],
            "level": [c.level for c in sessions.data.conditions],
            "accuracy": score.p_C,
            "std_error": np.sqrt(score.variance_C),
            "accuracy_people": people.p_C,
            "std_error_people": np.sqrt(people.variance_C),
            "people_ci_low": [i.low for i in intervals],
            "people_ci_high": [i.high for i in intervals],
        }
    )
