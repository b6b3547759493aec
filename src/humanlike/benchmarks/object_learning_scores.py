"""Scores of one layer in the high-variation experiment: all update rules, all conventions, from its inner products.

Array legend: S subtasks, R rules, n sessions of a subtask, T trials, B replicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from humanlike.backbones.gram import LayerGram
from humanlike.benchmarks.object_learning_conventions import CONVENTIONS, Simulation
from humanlike.benchmarks.object_learning_people import HighVariationPeople
from humanlike.benchmarks.object_learning_sessions import ModelSessions, has_enough_images
from humanlike.stats.learning_bootstrap import MSEnEstimate, bootstrap_sums, interval_of_msen
from humanlike.stats.learning_null import p_value
from humanlike.stats.learning_phases import PHASES, phase_table
from humanlike.stats.learning_resampling import SessionDraws
from humanlike.stats.learning_summary import curve_summary, rank_correlation


@dataclass(frozen=True)
class LayerResult:
    """One layer's results.

    Attributes:
        models: One row a rule.
        curves: `rule, trial, accuracy, accuracy_people`, means over subtasks.
        replicates: `rule, r0, r1, …`: MSE_n of the main convention in the bootstrap, for paired comparisons.
        k_RST: (R, S, T) correct choices under the main convention.
        further: Name → table with a column `rule`: `phases`, or `one_shot`.
    """

    models: pd.DataFrame
    curves: pd.DataFrame
    replicates: pd.DataFrame
    k_RST: np.ndarray
    further: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        tables = {name: getattr(self, name).to_dict("list") for name in ("models", "curves", "replicates")}
        further = {name: table.to_dict("list") for name, table in self.further.items()}
        return {**tables, "k_RST": self.k_RST, "further": further}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LayerResult:
        """What `to_json` gave."""
        models, curves, replicates = (_table(content[name]) for name in ("models", "curves", "replicates"))
        further = {name: _table(table) for name, table in content["further"].items()}
        return cls(models, curves, replicates, np.array(content["k_RST"], dtype=np.int64), further)


def _table(columns: Mapping[str, list[Any]]) -> pd.DataFrame:
    """A table whose missing numbers, null in JSON, are NaN."""
    return pd.DataFrame({name: [np.nan if v is None else v for v in values] for name, values in columns.items()})


def simulations_of(main: str) -> list[Simulation]:
    """The simulations that the conventions need, that of the main convention first, each once."""
    ordered = [CONVENTIONS[main], *(c for c in CONVENTIONS.values() if c.name != main)]
    return list(dict.fromkeys(c.simulation for c in ordered))


def layer_result(
    gram: LayerGram,
    sessions: ModelSessions,
    people: HighVariationPeople | None,
    draws: SessionDraws | None,
    main: str,
) -> LayerResult:
    """Simulate and score one layer under every convention.

    Args:
        gram: Inner products of the layer.
        sessions: The model's sessions.
        people: People's side, or None.
        draws: How often each of the model's sessions is drawn in the bootstrap; None without people.
        main: Name of the convention whose accuracies and replicates are kept.

    Raises:
        ValueError: When the layer cannot be calibrated.
    """
    rows: list[dict[str, Any]] = [{"rule": name} for name in sessions.names]
    kept: dict[str, list[MSEnEstimate]] = {}
    k_RST, main_sessions = np.empty(0), list[np.ndarray]()
    calibrated: dict[float, tuple[np.ndarray, ...]] = {}
    for simulation in simulations_of(main):
        if not has_enough_images(sessions.data, simulation.trial_order):
            continue  # the convention's scores are missing, and the run is flagged
        quantile = simulation.norm_quantile
        calibrated[quantile] = calibrated.get(quantile) or gram.calibrated(quantile)
        correct = sessions.simulate(calibrated[quantile], simulation)
        if simulation == CONVENTIONS[main].simulation:
            main_sessions = correct
            k_RST = np.stack([table.sum(axis=1, dtype=np.int64) for table in correct], axis=1)
        if people is None:
            continue
        sums = bootstrap_sums(correct, people.resampled, draws)
        for convention in CONVENTIONS.values():
            if convention.simulation == simulation:
                kept[convention.name] = interval_of_msen(sums, convention.switches)
    _add_behaviour(rows, k_RST, sessions.sessions, people)
    replicates = pd.DataFrame({"rule": list(sessions.names)})
    if people is not None:
        _add_scores(rows, kept, people, main)
        value_RB = np.stack([estimate.replicates_B for estimate in kept[main]])
        replicates = pd.concat(
            [replicates, pd.DataFrame(value_RB, columns=[f"r{b}" for b in range(value_RB.shape[1])])], axis=1
        )
    further = {} if people is None or draws is None else {"phases": _phases(sessions, main_sessions, draws, people)}
    return LayerResult(pd.DataFrame(rows), _curves(sessions, k_RST, people), replicates, k_RST, further)


def _add_scores(
    rows: list[dict[str, Any]],
    kept: Mapping[str, Sequence[MSEnEstimate]],
    people: HighVariationPeople,
    main: str,
) -> None:
    for name, convention in CONVENTIONS.items():
        if name not in kept:
            continue
        null_B = people.null.values_B("refitted" if name == "v2" else "paper", convention.switches)
        floor, guess = people.null.noise_floor, people.random_guess(convention.switches)
        for row, estimate in zip(rows, kept[name], strict=True):
            value = float(estimate.score.value)
            row |= {
                f"msen_{name}": value,
                f"msen_{name}_ci_low": estimate.interval.low,
                f"msen_{name}_ci_high": estimate.interval.high,
                f"lapse_rate_{name}": float(estimate.score.lapse_rate),
                f"p_null_{name}": p_value(null_B, value if convention.switches.subtract_human_noise else value - floor),
                f"random_guess_{name}": guess,
            }
    for row, estimate in zip(rows, kept[main], strict=True):
        row |= {
            "lapse_rate": float(estimate.score.lapse_rate),
            "lapse_rate_ci_low": estimate.lapse_interval.low,
            "lapse_rate_ci_high": estimate.lapse_interval.high,
            "noise_floor": people.null.noise_floor,
            "p_null": row[f"p_null_{main}"],
        }


def _add_behaviour(
    rows: list[dict[str, Any]], k_RST: np.ndarray, sessions: int, people: HighVariationPeople | None
) -> None:
    share_RST = k_RST / sessions
    for row, share_ST, k_ST in zip(rows, share_RST, k_RST, strict=True):
        row |= phase_accuracies(share_ST)
        summary = curve_summary(k_ST, np.full(len(k_ST), sessions))
        row |= {"hardest_decile": summary.hardest_decile, "examples_to_75": summary.examples_to_75}
        row["examples_to_90_percent"] = summary.examples_to_90_percent
        if people is not None:
            row |= {f"{name}_people": value for name, value in phase_accuracies(people.share_ST).items()}
            row["consistency"] = float(rank_correlation(share_ST.mean(axis=1), people.share_ST.mean(axis=1)))
            row["consistency_ceiling"] = people.ceiling.mean
            row["consistency_ceiling_low"] = people.ceiling.range.low
            row["consistency_ceiling_high"] = people.ceiling.range.high


def phase_accuracies(share_ST: np.ndarray) -> dict[str, float]:
    """Accuracy over all trials, early, and late, means over subtasks; NaN where sessions are too short for a phase."""
    last = {phase: PHASES[phase].stop for phase in ("early", "late")}
    return {
        "accuracy": float(share_ST.mean()),
        **{
            f"{phase}_accuracy": float(share_ST[:, PHASES[phase]].mean()) if stop <= share_ST.shape[1] else float("nan")
            for phase, stop in last.items()
        },
    }


def _phases(
    sessions: ModelSessions, correct: Sequence[np.ndarray], draws: SessionDraws, people: HighVariationPeople
) -> pd.DataFrame:
    """`rule, phase, quartile, accuracy, accuracy_people, people_ci_low, people_ci_high, p_value, p_below`."""
    phases = {name: trials for name, trials in PHASES.items() if (trials.stop or 0) <= sessions.data.num_trials}
    parts = []
    for r, rule in enumerate(sessions.names):
        table = phase_table([table[r] for table in correct], draws, people.resampled, phases)
        parts.append(table.assign(rule=rule, quartile=table["quartile"].astype(str).replace("0", "all")))
    names = {
        "model": "accuracy",
        "people": "accuracy_people",
        "people_low": "people_ci_low",
        "people_high": "people_ci_high",
        "p_two_sided": "p_value",
    }
    return pd.concat(parts, ignore_index=True).rename(columns=names)


def _curves(sessions: ModelSessions, k_RST: np.ndarray, people: HighVariationPeople | None) -> pd.DataFrame:
    mean_RT = (k_RST / sessions.sessions).mean(axis=1)
    trials = np.arange(1, mean_RT.shape[1] + 1)
    parts = [
        pd.DataFrame({"rule": rule, "trial": trials, "accuracy": mean_T})
        for rule, mean_T in zip(sessions.names, mean_RT, strict=True)
    ]
    table = pd.concat(parts, ignore_index=True)
    if people is not None:
        table["accuracy_people"] = np.tile(people.share_ST.mean(axis=0), len(parts))
        table["std_error_people"] = np.tile(people.resampled.curve_std_error_T, len(parts))
    return table
