"""What a run of object learning says beyond its scores: all its models compared, single participants, the known truth.

Array legend: S subtasks, R rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from humanlike.benchmarks.object_learning_individuals import individual_tables, participant_curves, participant_table
from humanlike.benchmarks.object_learning_sweep import SweepSettings, analyse_sweep
from humanlike.data.object_learning import HIGH_VARIATION, ObjectLearningData, PeopleSessions, SimulatedPeople

OF_ALL_MODELS = ("rank_groups", "anova", "rules", "depth", "conventions")
"""Tables of a sweep that one run, several layers and rules of one network, gives as well."""


@dataclass(frozen=True)
class Findings:
    """Further tables, and what is worth a line.

    Attributes:
        tables: Name → table.
        facts: For the result's details.
        notes: Sentences for the console and the report.
    """

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def subtask_table(models: pd.DataFrame, share_RS: np.ndarray, data: ObjectLearningData) -> pd.DataFrame:
    """Mean accuracy over trials: `experiment, backbone, layer, rule, subtask, accuracy`, a row a model and subtask.

    Args:
        models: One row a model.
        share_RS: (models, S) accuracies in the order of `models`.
        data: The experiment.
    """
    names = data.subtask_names
    key = models[["experiment", "backbone", "layer", "rule"]]
    table = key.loc[key.index.repeat(len(names))].reset_index(drop=True)
    return table.assign(subtask=np.tile(names, len(models)), accuracy=share_RS.ravel())


def findings(
    tables: Mapping[str, pd.DataFrame],
    data: ObjectLearningData,
    reference: tuple[str, str],
    *,
    convention: str,
    truth: SimulatedPeople | None = None,
    seed: int = 0,
) -> Findings:
    """Compare the models of a run with one another, and participants with the reference model.

    Args:
        tables: `models, replicates, subtasks` and others of the run.
        data: The experiment, people resolved.
        reference: Layer and rule whose scores are the run's.
        convention: The main convention.
        truth: Whom people were simulated with, or None.
        seed: Global seed.
    """
    further: dict[str, pd.DataFrame] = {}
    facts: dict[str, Any] = {}
    notes: list[str] = []
    score = f"msen_{convention}"
    if score in tables["models"] and tables["models"][score].notna().any():
        compared = analyse_sweep(tables, SweepSettings(convention=convention))
        further |= {name: compared.tables[name] for name in OF_ALL_MODELS if name in compared.tables}
    ranks = further.get("rank_groups")
    if ranks is not None:
        notes.append(_rank_note(ranks))
        if truth is not None and (ranks["backbone"] == truth.backbone).any():
            facts["truth"] = _recovered(ranks, truth)
            notes.append(_truth_note(facts["truth"]))
    people = data.people
    if isinstance(people, PeopleSessions) and data.experiment == HIGH_VARIATION:
        further["participants"] = participant_table(people, data.subtask_names)
        own = tables["subtasks"]
        own = own[(own["layer"] == reference[0]) & (own["rule"] == reference[1])]
        single = individual_tables(further["participants"], own, seed=seed)
        if single:
            further |= single
            further["individual_curves"] = participant_curves(people, len(data.subtasks))
            row = single["individual_variation"].iloc[0]
            facts["individuals"] = {str(k): v for k, v in row.items()}
            notes.append(_individual_note(row, "simulated participants" if people.simulated else "participants"))
    return Findings(further, facts, tuple(notes))


def _rank_note(ranks: pd.DataFrame) -> str:
    best, top = ranks.iloc[0], top_group(ranks)
    others = f"{len(top) - 1} of the others cannot be told apart from it" if len(top) > 1 else "all others are worse"
    return f"Best of {len(ranks)} models: layer {best['layer']}, rule {best['rule']}; {others}."


def top_group(ranks: pd.DataFrame) -> pd.DataFrame:
    """The models that cannot be told apart from the best: those that share a letter with it."""
    letters = set(str(ranks.iloc[0]["letters"]))
    return ranks[[bool(letters & set(str(own))) for own in ranks["letters"]]]


def _recovered(ranks: pd.DataFrame, truth: SimulatedPeople) -> dict[str, Any]:
    top = top_group(ranks)
    return {
        "layer": truth.layer,
        "rule": truth.rule,
        "lapse": truth.lapse,
        "layer_is_best": bool(ranks.iloc[0]["layer"] == truth.layer),
        "rule_in_top_group": bool(((top["layer"] == truth.layer) & (top["rule"] == truth.rule)).any()),
        "top_group": [f"{layer}/{rule}" for layer, rule in zip(top["layer"], top["rule"], strict=True)],
    }


def _truth_note(truth: Mapping[str, Any]) -> str:
    layer = "is" if truth["layer_is_best"] else "is NOT"
    rule = "is" if truth["rule_in_top_group"] else "is NOT"
    return (
        f"The simulated people saw with layer {truth['layer']} and learned by rule {truth['rule']}: that layer {layer} "
        f"the best one, and that model {rule} in the top rank group."
    )


def _individual_note(row: pd.Series, people: str) -> str:
    vary = f"p = {row['p_value']:.2g} that they all learn equally well"
    return (
        f"{int(row['did_all'])} of {int(row['participants'])} {people} did every subtask ({vary}); "
        f"{int(row['better'])} learned better than the reference model."
    )
