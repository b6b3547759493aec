"""Analyses over a sweep of object learning: many encoding stages × update rules beside people.

Tables in (those that are missing leave their analyses out, with the reason):
    models: one row a model: `experiment` (high_variation or one_shot), `backbone, layer, relative_depth, rule`, a score
        `msen_<convention>` (and `…_ci_low`, `…_ci_high`), and, where known, `accuracy, accuracy_people, consistency,
        consistency_ceiling, p_null, lapse_rate, noise_floor` (σ²_h), `random_guess_<convention>`, `seed`.
    replicates: `experiment, backbone, layer, rule`, then a column a replicate (`r0`, `r1`, …) of the score's bootstrap.
    phases: `backbone, layer, rule, phase` (early, late), `quartile` (all, 1 easiest … 4), `accuracy, accuracy_people,
        p_value`.
    one_shot: `backbone, layer, rule, transformation, level, accuracy, accuracy_people`.
    one_shot_kinds: `backbone, layer, rule`, then as `humanlike.stats.learning_transformations` gives it.
    subtasks: `experiment, backbone, layer, rule, subtask, accuracy`; participants: `participant, subtask, accuracy`.
Further tables are handed on as they are.

A model is one row of (backbone, layer, rule); an encoding stage is one of (backbone, layer). Low MSE_n is good.

References: Lee & DiCarlo, "An empirical assay of visual object learning in humans and baseline image-computable
models", Figures 3 to 7 and Appendix 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from humanlike.benchmarks import object_learning_sweep_tables as parts
from humanlike.benchmarks.object_learning_individuals import against_best
from humanlike.benchmarks.object_learning_sweep_people import phase_counts, transformation_table
from humanlike.benchmarks.object_learning_sweep_tables import MODEL
from humanlike.data.object_learning import EXPERIMENTS

CONVENTIONS = ("paper", "v2", "paper_text")
_NEEDED = ("experiment", "relative_depth", *MODEL)


@dataclass(frozen=True)
class SweepSettings:
    """What a sweep's analyses are asked for.

    Attributes:
        convention: Whose MSE_n orders the models (the others stand beside it).
        strong_share: Share of the models, the best first, that are called strong baselines.
        ranked: How many of the best models are compared pair by pair.
        adjustment: How p-values of pairs are adjusted for their number.
        level: Coverage of intervals; 1 - level is the size of tests.
    """

    convention: str = "paper"
    strong_share: float = 0.01
    ranked: int = 100
    adjustment: str = "holm"
    level: float = 0.95

    def __post_init__(self) -> None:
        if self.convention not in CONVENTIONS:
            raise ValueError(f"convention must be one of {list(CONVENTIONS)}, got {self.convention!r}")
        if not 0 < self.strong_share <= 1:
            raise ValueError(f"strong_share is a share of the models in (0, 1], got {self.strong_share}")
        if self.ranked < 2:
            raise ValueError(f"ranked must be 2 or more, so that there is a pair to compare, got {self.ranked}")

    @property
    def score(self) -> str:
        """Column of the score."""
        return f"msen_{self.convention}"


@dataclass
class SweepResult:
    """What was found.

    Attributes:
        tables: Name → table, in the order in which they are shown.
        missing: Name of a table that could not be made → why.
        flags: Statements that must stand beside the scores.
        counts: Models, encoding stages, networks, rules, of each experiment.
    """

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def analyse_sweep(inputs: Mapping[str, pd.DataFrame], settings: SweepSettings | None = None) -> SweepResult:
    """Every analysis of a sweep that its tables allow.

    Strong baselines are chosen in the high-variation experiment and followed into the other one; where only the
    one-shot experiment was run, they are chosen there.

    Args:
        inputs: See the module.
        settings: What is asked for; None for the paper's choices.

    Raises:
        ValueError: If there is no table of models, it lacks a column, a model occurs twice, or no score is known.
    """
    settings = settings or SweepSettings()
    models, flags = _checked_models(inputs.get("models"), settings.score)
    single = parts.mean_over_seeds(models)
    if len(single) < len(models):
        flags.append(f"seeds_averaged:{models['seed'].nunique()}")
    result = SweepResult(flags=flags, counts=_counts(single))
    board = parts.leaderboard(single, settings.score, settings.strong_share)
    strong = parts.strong_models(board)
    known = {name: table for name, table in inputs.items() if table is not None and len(table)}
    single_people = functools.cache(lambda: against_best(known.get("participants"), known.get("subtasks"), board))
    makers: dict[str, Callable[[], pd.DataFrame]] = {
        "summary": lambda: parts.summary_table(single, settings.convention, 1 - settings.level),
        "leaderboard": lambda: board,
        "rank_groups": lambda: parts.rank_table(
            single, known.get("replicates"), settings.score, settings.ranked, settings.adjustment, settings.level
        ),
        "anova": lambda: parts.anova_table(models, settings.score),
        "rules": lambda: parts.rules_table(single, settings.score),
        "depth": lambda: parts.depth_table(single, settings.score),
        "conventions": lambda: parts.conventions_table(single),
        "relation": lambda: parts.relation_table(board, settings.score),
        "experiments": lambda: parts.experiments_table(board, settings.score),
        "phases_strong": lambda: phase_counts(known.get("phases"), strong, 1 - settings.level),
        "transformations": lambda: transformation_table(
            known.get("one_shot_kinds", known.get("one_shot")), strong, 1 - settings.level
        ),
        "individual_variation": lambda: single_people()["individual_variation"],
        "individuals": lambda: single_people()["individuals"],
    }
    for name, make in makers.items():
        try:
            result.tables[name] = make()
        except parts.NotPossibleError as why:
            result.missing[name] = str(why)
    handed_on = [name for name in known if name not in ("models", "replicates", *result.tables)]
    result.tables |= {name: known[name] for name in handed_on}
    result.missing = {name: why for name, why in result.missing.items() if name not in result.tables}
    result.tables["models"] = models
    return result


def _checked_models(models: pd.DataFrame | None, score: str) -> tuple[pd.DataFrame, list[str]]:
    """The table of models, with nothing twice and every score a number or missing."""
    if models is None or models.empty:
        raise ValueError("a sweep needs a table of models; no run holds models.parquet with a row")
    absent = [c for c in (*_NEEDED, score) if c not in models]
    if absent:
        raise ValueError(f"the table of models lacks the column(s) {absent}; it has {list(models.columns)}")
    unknown = sorted(set(models["experiment"]) - set(EXPERIMENTS))
    if unknown:
        raise ValueError(f"an experiment is one of {list(EXPERIMENTS)}, got {unknown}")
    key = ["experiment", *MODEL, *(["seed"] if "seed" in models else [])]
    twice = models[models.duplicated(key)]
    if len(twice):
        row = twice.iloc[0]
        raise ValueError(
            f"{len(twice)} model(s) occur twice, for example {row['backbone']}, layer {row['layer']}, rule "
            f"{row['rule']} in {row['experiment']}; gather each run once, and runs of one seed or with their seeds"
        )
    known = np.isfinite(models[score].to_numpy(float))
    if not known.any():
        raise ValueError(f"no model has a {score}; were there people to compare with?")
    flags = [f"models_without_score:{int((~known).sum())}"] if not known.all() else []
    return models.reset_index(drop=True), flags


def _counts(models: pd.DataFrame) -> dict[str, int]:
    counts: dict[str, int] = {}
    for experiment in parts.experiments_of(models):
        rows = models[models["experiment"] == experiment]
        counts |= {
            f"{experiment}_models": len(rows),
            f"{experiment}_encoding_stages": len(rows.drop_duplicates(["backbone", "layer"])),
            f"{experiment}_networks": int(rows["backbone"].nunique()),
            f"{experiment}_rules": int(rows["rule"].nunique()),
        }
    return counts
