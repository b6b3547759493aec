"""The tables and scores of a run of object learning."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from humanlike.benchmarks.object_learning_conventions import CONVENTIONS
from humanlike.benchmarks.object_learning_encoding import EncodedLayers
from humanlike.benchmarks.object_learning_findings import findings, subtask_table
from humanlike.benchmarks.object_learning_one_shot import OneShotSide
from humanlike.benchmarks.object_learning_people import HighVariationPeople
from humanlike.benchmarks.object_learning_scores import LayerResult
from humanlike.benchmarks.object_learning_sessions import ModelSessions, has_enough_images
from humanlike.data.object_learning import HIGH_VARIATION, ObjectLearningData, SimulatedPeople
from humanlike.types import BenchmarkResult, ScoreValue

BLOCK_TRIALS = 10


@dataclass(frozen=True)
class Study:
    """What a run is about.

    Attributes:
        data: The experiment, people resolved.
        sessions: The model's sessions.
        people: People's side, or None.
        encoded: The network's layers.
        reference: The reference layer.
        rule: The reference rule.
        convention: The main convention.
        record: Settings for the protocol.
        truth: Whom people were simulated with, or None.
    """

    data: ObjectLearningData
    sessions: ModelSessions
    people: HighVariationPeople | OneShotSide | None
    encoded: EncodedLayers
    reference: str
    rule: str
    convention: str
    record: Mapping[str, Any]
    truth: SimulatedPeople | None = None

    @property
    def share_ST(self) -> np.ndarray | None:
        """(S, T) people's shares of correct choices, not corrected for lapses; None where they are not known."""
        return None if self.people is None else self.people.share_ST


def assembled(study: Study, results: Mapping[str, LayerResult]) -> BenchmarkResult:
    """Scores of the reference layer and rule, and the tables of all."""
    tables = {
        "models": _joined(study, {layer: r.models for layer, r in results.items()}),
        "curves": _joined(study, {layer: r.curves for layer, r in results.items()}),
        "replicates": _joined(study, {layer: r.replicates for layer, r in results.items()}),
    }
    for name in dict.fromkeys(name for r in results.values() for name in r.further):
        tables[name] = _joined(study, {layer: r.further[name] for layer, r in results.items()})
    rule = study.sessions.names.index(study.rule)
    k_ST = results[study.reference].k_RST[rule]
    row = {str(k): v for k, v in results[study.reference].models.iloc[rule].items()}
    tables["subtask_curves"] = _subtask_curves(study, k_ST)
    share_MS = np.concatenate([r.k_RST.mean(axis=2) for r in results.values()]) / study.sessions.sessions
    tables["subtasks"] = subtask_table(tables["models"], share_MS, study.data)
    if study.people is None:
        tables.pop("replicates")
    tables = {name: table for name, table in tables.items() if len(table)}
    items = _items(study)
    found = findings(
        tables, study.data, (study.reference, study.rule), convention=study.convention, truth=study.truth,
        seed=study.sessions.seed,
    )  # fmt: skip
    tables |= found.tables
    details = {
        "object_learning": {
            "experiment": study.data.experiment,
            "convention": study.convention,
            "reference": {"layer": study.reference, "rule": study.rule},
            "layers_passed_over": study.encoded.passed_over,
            "best": _best(tables["models"], study.convention),
            **found.facts,
        },
        "notes": list(found.notes),
        "conditions_unit": "trials",
        "chance": {"accuracy": 0.5},
    }
    return BenchmarkResult(
        scores=_scores(study, row),
        cells=_cells(study, k_ST),
        items=items,
        conditions=_conditions(study, k_ST),
        counts=_counts(study),
        flags=_flags(study),
        protocol=study.record,
        details=details,
        tables=tables,
    )


def _joined(study: Study, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    parts = []
    for layer, table in tables.items():
        part = table.copy()
        part.insert(0, "experiment", study.data.experiment)
        part.insert(1, "backbone", study.encoded.backbone)
        part.insert(2, "layer", layer)
        part.insert(3, "relative_depth", study.encoded.depth[layer])
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _scores(study: Study, row: Mapping[str, Any]) -> dict[str, ScoreValue]:
    cells = len(study.data.subtasks) * study.data.num_trials
    scores = {}
    for name in (study.convention, *(c for c in CONVENTIONS if c != study.convention)):
        scores[f"msen_{name}"] = _value(row, f"msen_{name}", cells, "accuracy²")
    many_views = study.data.experiment == HIGH_VARIATION
    if many_views:
        scores["lapse_rate"] = _value(row, "lapse_rate", cells)
    scores["noise_floor"] = _value(row, "noise_floor", cells, "accuracy²")
    scores["p_null"] = _value(row, "p_null", None)
    if many_views:
        scores["consistency"] = _value(row, "consistency", len(study.data.subtasks), "rho")
    for name in ("accuracy", *(("early_accuracy", "late_accuracy") if many_views else ("test_accuracy",))):
        scores[name] = _value(row, name, cells)
        scores[f"{name}_people"] = _value(row, f"{name}_people", cells)
    return scores


def _value(row: Mapping[str, Any], name: str, n: int | None, unit: str = "") -> ScoreValue:
    ends = (_number(row.get(f"{name}_{end}")) for end in ("ci_low", "ci_high", "ceiling"))
    low, high, ceiling = ends
    value = _number(row.get(name))
    return ScoreValue(value, low, high, ceiling, n=None if value is None else n, unit=unit)


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _best(models: pd.DataFrame, convention: str) -> dict[str, Any] | None:
    """The best of all models by the main convention: chosen among many on the same data, hence an optimistic number."""
    column = f"msen_{convention}"
    if column not in models or models[column].isna().all():
        return None
    best = models.sort_values(column, kind="stable").iloc[0]
    return {"layer": best["layer"], "rule": best["rule"], column: float(best[column]), "optimistic": True}


def _blocks(study: Study) -> list[slice]:
    trials = study.data.num_trials
    return [slice(start, min(start + BLOCK_TRIALS, trials)) for start in range(0, trials, BLOCK_TRIALS)]


def _cells(study: Study, k_ST: np.ndarray) -> pd.DataFrame:
    """One row a subtask and block of trials; the condition is the block's last trial."""
    rows: list[dict[str, Any]] = []
    share_ST, shown = k_ST / study.sessions.sessions, study.share_ST
    for s, name in enumerate(study.data.subtask_names):
        for block in _blocks(study):
            row: dict[str, Any] = {
                "cell": len(rows),
                "concept": name,
                "condition": float(block.stop),
                "n_items": study.sessions.sessions,
                "accuracy": float(share_ST[s, block].mean()),
            }
            if shown is not None:
                row["accuracy_people"] = float(shown[s, block].mean())
            rows.append(row)
    return pd.DataFrame(rows)


def _conditions(study: Study, k_ST: np.ndarray) -> pd.DataFrame:
    """One row a block of trials: means and standard errors over subtasks."""
    sides = {"": k_ST / study.sessions.sessions}
    if study.share_ST is not None:
        sides["_people"] = study.share_ST
    rows = []
    for block in _blocks(study):
        row: dict[str, Any] = {"condition": float(block.stop)}
        for side, share_ST in sides.items():
            mean_S = share_ST[:, block].mean(axis=1)
            row[f"accuracy{side}"] = float(mean_S.mean())
            row[f"accuracy{side}_sem"] = float(mean_S.std(ddof=1) / len(mean_S) ** 0.5) if len(mean_S) > 1 else None
        rows.append(row)
    return pd.DataFrame(rows)


def _subtask_curves(study: Study, k_ST: np.ndarray) -> pd.DataFrame:
    trials = study.data.num_trials
    table = pd.DataFrame(
        {
            "backbone": study.encoded.backbone,
            "layer": study.reference,
            "rule": study.rule,
            "subtask": np.repeat(study.data.subtask_names, trials),
            "trial": np.tile(np.arange(1, trials + 1), len(study.data.subtasks)),
            "correct": k_ST.ravel(),
            "sessions": study.sessions.sessions,
            "accuracy": (k_ST / study.sessions.sessions).ravel(),
        }
    )
    if study.share_ST is not None:
        table["accuracy_people"] = study.share_ST.ravel()
    return table


def _items(study: Study) -> pd.DataFrame:
    """One row a session of the reference model; `trials_hash` makes the run's digest cover every single choice."""
    convention = CONVENTIONS[study.convention].simulation
    gram = study.encoded.read(study.reference).calibrated(convention.norm_quantile)
    tables = study.sessions.only(study.rule).simulate(gram, convention)
    parts = []
    for name, (correct_ST,) in zip(study.data.subtask_names, tables, strict=True):
        parts.append(
            pd.DataFrame(
                {
                    "session_id": [f"{name}:{s}" for s in range(len(correct_ST))],
                    "subtask": name,
                    "session": np.arange(len(correct_ST)),
                    "trials": correct_ST.shape[1],
                    "correct": correct_ST.sum(axis=1),
                    "trials_hash": [_hash(row) for row in correct_ST],
                }
            )
        )
    return pd.concat(parts, ignore_index=True).assign(error=None)


def _hash(correct_T: np.ndarray) -> int:
    """63 bits of a digest over which trials were correct."""
    return int.from_bytes(hashlib.sha256(np.packbits(correct_T).tobytes()).digest()[:8], "little") >> 1


def _counts(study: Study) -> dict[str, int]:
    data = study.data
    counts = {
        "items_total": len(data.subtasks) * study.sessions.sessions,
        "items_used": len(data.subtasks) * study.sessions.sessions,
        "items_failed": 0,
        "subtasks": len(data.subtasks),
        "trials": data.num_trials,
        "images": len(data.images),
        "warmup_images": 0 if data.warmup is None else len(data.warmup),
        "layers": len(study.encoded.layers),
        "rules": len(study.sessions.names),
    }
    if study.people is not None and study.people.n_S is not None:
        counts["people_sessions"] = int(study.people.n_S.sum())
    return counts


def _flags(study: Study) -> tuple[str, ...]:
    data, people = study.data, study.people
    told = {
        "simulated_participants": data.simulated or bool(getattr(data.people, "simulated", False)),
        "no_people": people is None,
        "calibrated_on_the_experiments_images": data.warmup is None,
        **{
            f"convention_needs_more_images:{c.name}": not has_enough_images(data, c.simulation.trial_order)
            for c in CONVENTIONS.values()
        },
        f"layers_passed_over:{study.encoded.passed_over}": study.encoded.passed_over,
        f"layer_fixed_beforehand:{study.reference}": True,
        "features_not_projected": study.record["encoding"]["projection"] == "none",
    }
    flags = [*data.flags, *(flag for flag, holds in told.items() if holds), *(people.flags if people else ())]
    return tuple(dict.fromkeys(flags))
