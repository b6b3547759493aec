"""The tables of a sweep of object learning, one function a table; see `humanlike.benchmarks.object_learning_sweep`.

Every function takes the table of models (`experiment, backbone, layer, relative_depth, rule`, scores) and the name of
the score's column, and gives one table with a column `experiment`; low scores are good.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from humanlike.data.object_learning import EXPERIMENTS
from humanlike.stats.anova import two_way_anova
from humanlike.stats.comparison import Adjustment, compare_pairs
from humanlike.stats.hypothesis import spearman_table
from humanlike.stats.rank_groups import rank_groups

MODEL = ("backbone", "layer", "rule")
STAGE, RULE = "encoding stage", "update rule"
ALL_NETWORKS = "all networks"
_KEY = ["experiment", *MODEL]


class NotPossibleError(ValueError):
    """A table cannot be made of what is there; the sentence says why."""


def experiments_of(models: pd.DataFrame) -> list[str]:
    """The experiments that a table holds, in their fixed order."""
    return [e for e in EXPERIMENTS if (models["experiment"] == e).any()]


def mean_over_seeds(models: pd.DataFrame) -> pd.DataFrame:
    """One row a model: its numbers averaged over seeds where there are several; ends of intervals are then left out."""
    if not models.duplicated(_KEY).any():
        return models
    numbers = [c for c in models.select_dtypes("number").columns if c != "seed"]
    kept = [c for c in numbers if not c.endswith(("_ci_low", "_ci_high"))]
    return models.groupby(_KEY, sort=False)[kept].mean().reset_index()


def leaderboard(models: pd.DataFrame, score: str, strong_share: float) -> pd.DataFrame:
    """All models, the best first, with their place and whether they are strong baselines.

    Strong baselines are the best `strong_share` of an experiment's models, rounded, one at least (of 2,408 models the
    best 1% are 24; the paper's text counts 20).
    """
    tables = []
    for experiment in experiments_of(models):
        rows = models[(models["experiment"] == experiment)].sort_values(score, kind="stable", na_position="last")
        known = int(rows[score].notna().sum())
        strong = max(1, round(strong_share * known)) if known else 0
        table = rows.reset_index(drop=True)
        table.insert(1, "place", np.where(table[score].notna(), np.arange(len(table)) + 1, 0))
        table.insert(2, "is_strong", np.arange(len(table)) < strong)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def strong_models(board: pd.DataFrame) -> pd.DataFrame:
    """The strong baselines (`backbone, layer, rule`) of the first experiment that the leaderboard holds."""
    first = experiments_of(board)[0]
    rows = board[(board["experiment"] == first) & board["is_strong"]]
    return rows[list(MODEL)].reset_index(drop=True)


def summary_table(models: pd.DataFrame, convention: str, size: float) -> pd.DataFrame:
    """One row an experiment: the best score, the lowest possible one, a guesser's, and what the null test says.

    Returns:
        `experiment, models, best, median, floor, random_guess, root_best, root_floor, better_than_guessing, rejected`.
        `floor` is what a perfect model is expected to score: σ²_h where people's noise is not subtracted, else 0.
        `rejected` counts the models whose p is at most `size`; NaN where there is none. Roots are in accuracy.
    """
    score, rows = f"msen_{convention}", []
    for experiment in experiments_of(models):
        table = models[models["experiment"] == experiment]
        value = table[score].to_numpy(float)
        floor = 0.0 if convention == "v2" else _constant(table, "noise_floor")
        guess = _constant(table, f"random_guess_{convention}")
        p = _column(table, f"p_null_{convention}" if f"p_null_{convention}" in table else "p_null")
        tested = np.isfinite(p)
        row = {
            "experiment": experiment,
            "models": int(np.isfinite(value).sum()),
            "best": np.nanmin(value) if np.isfinite(value).any() else np.nan,
            "median": np.nanmedian(value) if np.isfinite(value).any() else np.nan,
            "floor": floor,
            "random_guess": guess,
            "better_than_guessing": float((value < guess).sum()) if np.isfinite(guess) else np.nan,
            "tested": int(tested.sum()),
            "rejected": float((p[tested] <= size).sum()) if tested.any() else np.nan,
        }
        row |= {f"root_{name}": _root(row[name]) for name in ("best", "floor", "random_guess")}
        rows.append(row)
    return pd.DataFrame(rows)


def anova_table(models: pd.DataFrame, score: str) -> pd.DataFrame:
    """Two-way analysis of variance, encoding stage × update rule, for every experiment.

    Returns:
        `experiment`, the columns of `TwoWayAnova.table`, and `sums, is_balanced, n`. Sums of squares are of type II.

    Raises:
        NotPossibleError: If no experiment has two stages and two rules.
    """
    tables = []
    for experiment in experiments_of(models):
        rows = models[(models["experiment"] == experiment) & models[score].notna()]
        stage = rows["backbone"].astype(str) + "/" + rows["layer"].astype(str)
        if stage.nunique() < 2 or rows["rule"].nunique() < 2:
            continue
        anova = two_way_anova(rows[score].to_numpy(), stage.to_numpy(), rows["rule"].to_numpy(), names=(STAGE, RULE))
        table = anova.table.assign(sums=anova.sums, is_balanced=anova.is_balanced, n=anova.n)
        table.insert(0, "experiment", experiment)
        tables.append(table)
    if not tables:
        raise NotPossibleError("it needs two or more encoding stages and two or more update rules")
    return pd.concat(tables, ignore_index=True)


def rules_table(models: pd.DataFrame, score: str) -> pd.DataFrame:
    """One row an update rule: `experiment, rule, models, best, mean, median`, and `best_of_stages`.

    `best_of_stages` is the number of encoding stages for which the rule is the best of those that were run with it.
    """
    known = models[models[score].notna()]
    winner = known.sort_values(score, kind="stable").drop_duplicates(["experiment", "backbone", "layer"])
    wins = winner.groupby(["experiment", "rule"]).size().rename("best_of_stages")
    grouped = known.groupby(["experiment", "rule"], sort=False)[score]
    table = grouped.agg(models="size", best="min", mean="mean", median="median").join(wins)
    table["best_of_stages"] = table["best_of_stages"].fillna(0).astype(int)
    return table.reset_index().sort_values(["experiment", "mean"], kind="stable").reset_index(drop=True)


def depth_table(models: pd.DataFrame, score: str) -> pd.DataFrame:
    """Score against relative depth, network by network; scores are averaged over rules.

    Returns:
        `experiment, backbone, layers, rho, p_value, best_layer, best_depth, best, last`: Spearman's ρ between depth and
        score over the layers (negative: deeper is more human-like); the row `all networks` is over all their layers.

    Raises:
        NotPossibleError: If no network has two layers.
    """
    grouped = models[models[score].notna()].groupby(["experiment", "backbone", "layer"], sort=False)
    stages = grouped.agg(relative_depth=("relative_depth", "mean"), value=(score, "mean")).reset_index()
    rows = []
    for experiment in experiments_of(stages):
        of_experiment = stages[stages["experiment"] == experiment]
        for name, group in [*of_experiment.groupby("backbone", sort=False), (ALL_NETWORKS, of_experiment)]:
            if len(group) > 1:
                rows.append({"experiment": experiment, "backbone": str(name), **_depth(group)})
    if not rows:
        raise NotPossibleError("no network was run with two or more layers")
    return pd.DataFrame(rows)


def _depth(stages: pd.DataFrame) -> dict[str, Any]:
    table = spearman_table(stages[["relative_depth", "value"]]).iloc[1]
    ordered = stages.sort_values("relative_depth", kind="stable")
    best = stages.sort_values("value", kind="stable").iloc[0]
    return {
        "layers": len(stages),
        "rho": table["rho"],
        "p_value": table["p_value"],
        "best_layer": best["layer"],
        "best_depth": best["relative_depth"],
        "best": best["value"],
        "last": ordered["value"].iloc[-1],
    }


def conventions_table(models: pd.DataFrame) -> pd.DataFrame:
    """How far the conventions agree on the order of models: `experiment, first, second, rho, p_value, n`.

    Raises:
        NotPossibleError: If there is one convention only.
    """
    columns: list[Any] = [
        c for c in ("msen_paper", "msen_v2", "msen_paper_text") if c in models and models[c].notna().any()
    ]
    if len(columns) < 2:
        raise NotPossibleError("the runs hold scores of one convention only")
    tables = []
    for experiment in experiments_of(models):
        table = spearman_table(models.loc[models["experiment"] == experiment, columns].astype(float))
        table = table[table["first"].map(columns.index) < table["second"].map(columns.index)]
        table.insert(0, "experiment", experiment)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def experiments_table(board: pd.DataFrame, score: str) -> pd.DataFrame:
    """Models that took part in both experiments: `backbone, layer, rule, high_variation, one_shot, is_strong`.

    Raises:
        NotPossibleError: If there is none.
    """
    wide = board[board[score].notna()].pivot(index=list(MODEL), columns="experiment", values=score)
    if not set(EXPERIMENTS) <= set(wide.columns) or wide.dropna().empty:
        raise NotPossibleError("no model was run in both experiments")
    strong = strong_models(board).assign(is_strong=True)
    table = wide.dropna().reset_index().rename_axis(columns=None).merge(strong, on=list(MODEL), how="left")
    return table.assign(is_strong=table["is_strong"].eq(True))


def relation_table(board: pd.DataFrame, score: str) -> pd.DataFrame:
    """Relation of the two experiments' scores over models: `over, n, rho, p_value, pearson_log`.

    `pearson_log` is Pearson's r of the logarithms; scores that are not positive (possible where noise is subtracted)
    are left out of it, as `n_log` says. Rows: all models, and the best of each encoding stage.

    Raises:
        NotPossibleError: If no model was run in both.
    """
    both = experiments_table(board, score)
    stages = both.groupby(["backbone", "layer"])[list(EXPERIMENTS)].min()
    rows = []
    for over, table in (("models", both), ("encoding stages, best rule", stages)):
        rho = spearman_table(table[list(EXPERIMENTS)]).iloc[1]
        positive = table[(table[list(EXPERIMENTS)] > 0).all(axis=1)]
        logs = np.log(positive[list(EXPERIMENTS)].to_numpy(float))
        varied = len(logs) > 1 and bool((np.ptp(logs, axis=0) > 0).all())
        r = float(np.corrcoef(logs.T)[0, 1]) if varied else np.nan
        rows.append(
            {"over": over, "n": len(table), "rho": rho["rho"], "p_value": rho["p_value"], "pearson_log": r}
            | {"n_log": len(positive)}
        )
    return pd.DataFrame(rows)


def rank_table(
    models: pd.DataFrame, replicates: pd.DataFrame | None, score: str, ranked: int, adjustment: str, level: float
) -> pd.DataFrame:
    """Ranks of the best models that say no more than the data do: pairs compared on the same resamples.

    Returns:
        `experiment, backbone, layer, rule, estimate, ci_low, ci_high, rank, rank_high, letters, compared`; the first
        `ranked` models of each experiment, and those alone are compared with one another (`compared` of them).

    Raises:
        NotPossibleError: If there are no replicates of two models, or models are means over seeds.
    """
    if replicates is None:
        raise NotPossibleError("the runs kept no bootstrap replicates of this score (replicates.parquet)")
    columns = [c for c in replicates.columns if str(c).startswith("r") and str(c)[1:].isdigit()]
    if replicates.duplicated(_KEY).any():
        raise NotPossibleError("models were run with several seeds, so replicates are not of one resample")
    joined = models[models[score].notna()].merge(replicates, on=_KEY, suffixes=("", "_replicates"))
    tables = []
    for experiment in experiments_of(joined):
        rows = joined[joined["experiment"] == experiment].sort_values(score, kind="stable").head(ranked)
        if len(rows) > 1:
            tables.append(_ranked(rows.reset_index(drop=True), columns, score, adjustment, level))
    if not tables:
        raise NotPossibleError("fewer than two models kept bootstrap replicates")
    return pd.concat(tables, ignore_index=True)


def _ranked(rows: pd.DataFrame, columns: list[str], score: str, adjustment: str, level: float) -> pd.DataFrame:
    estimate_M, value_MB = rows[score].to_numpy(float), rows[columns].to_numpy(float)
    # Replicates of an MSE lie above it by the noise of resampling; moved to the estimate, their spread is right.
    pairs = compare_pairs(
        estimate_M, value_MB, centring="basic", adjustment=cast("Adjustment", adjustment), level=level
    )
    groups = rank_groups(estimate_M, pairs.separable(len(rows)), higher_is_better=False)
    table = rows[_KEY].assign(estimate=estimate_M)
    for end in ("low", "high"):
        table[f"ci_{end}"] = _column(rows, f"{score}_ci_{end}")
    return table.assign(rank=groups.rank_M, rank_high=groups.rank_high_M, letters=groups.letters_M, compared=len(rows))


def _constant(table: pd.DataFrame, column: str) -> float:
    """A value that all rows share; NaN where it is not known.

    Raises:
        ValueError: If rows differ: they were not compared with the same people.
    """
    known = _column(table, column)
    known = known[np.isfinite(known)]
    if len(known) and np.ptp(known) > 1e-12 * max(1.0, float(np.abs(known).max())):
        raise ValueError(f"{column} differs between models of {table['experiment'].iloc[0]}: {known.min()} to "
                         f"{known.max()}; the runs were not compared with the same people")  # fmt: skip
    return float(known[0]) if len(known) else np.nan


def _column(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(float, na_value=np.nan) if name in table else np.full(len(table), np.nan)


def _root(value: Any) -> float:
    return float(np.sqrt(value)) if value >= 0 else np.nan
