"""Where the strong baselines of a sweep differ from people: phases of learning, kinds of transformation."""

from __future__ import annotations

import pandas as pd

from humanlike.benchmarks.object_learning_sweep_tables import MODEL, NotPossibleError


def phase_counts(phases: pd.DataFrame | None, strong: pd.DataFrame, size: float) -> pd.DataFrame:
    """How many models learn worse, alike or better than people, early and late, by people's difficulty.

    Returns:
        `phase, quartile, over` (strong baselines, all models), `n, accuracy_people, accuracy` (mean), `worse, alike,
        better`: tests at `size`, not adjusted for their number, as in the paper.

    Raises:
        NotPossibleError: If there is no table of phases, or no strong baseline has a row in it.
    """
    if phases is None or "p_value" not in phases or phases["p_value"].isna().all():
        raise NotPossibleError("the runs hold no tests of accuracies by phase (phases.parquet)")
    chosen = phases.merge(strong, on=list(MODEL))
    if chosen.empty:
        raise NotPossibleError("no strong baseline has accuracies by phase")
    rows = []
    for over, table in (("strong baselines", chosen), ("all models", phases)):
        for (phase, quartile), group in table.groupby(["phase", "quartile"], sort=False):
            rows.append({"phase": phase, "quartile": str(quartile), "over": over, **_phase(group, size)})
    return pd.DataFrame(rows)


def _phase(rows: pd.DataFrame, size: float) -> dict[str, float]:
    told = (rows["p_value"] <= size).to_numpy()
    below = (rows["accuracy"] < rows["accuracy_people"]).to_numpy()
    return {
        "n": len(rows),
        "accuracy_people": float(rows["accuracy_people"].mean()),
        "accuracy": float(rows["accuracy"].mean()),
        "worse": int((told & below).sum()),
        "alike": int((~told).sum()),
        "better": int((told & ~below).sum()),
    }


def transformation_table(one_shot: pd.DataFrame | None, strong: pd.DataFrame) -> pd.DataFrame:
    """Accuracy after one view by kind of transformation, levels averaged: people and strong baselines.

    Returns:
        `transformation, accuracy_people, accuracy, lowest, highest, difference` (models less people), `n`.

    Raises:
        NotPossibleError: If there is no one-shot table, or no strong baseline in it.
    """
    if one_shot is None:
        raise NotPossibleError("no one-shot experiment is among the runs")
    chosen = one_shot.merge(strong, on=list(MODEL))
    if chosen.empty:
        raise NotPossibleError("no strong baseline took part in the one-shot experiment")
    kinds = list(dict.fromkeys(chosen["transformation"]))
    by_model = chosen.groupby(["transformation", *MODEL], sort=False)[["accuracy", "accuracy_people"]].mean()
    grouped = by_model.groupby(level="transformation", sort=False)
    table = grouped["accuracy"].agg(accuracy="mean", lowest="min", highest="max", n="size")
    table.insert(0, "accuracy_people", grouped["accuracy_people"].mean())
    table.insert(4, "difference", table["accuracy"] - table["accuracy_people"])
    return table.loc[kinds].reset_index()
