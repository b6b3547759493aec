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


def transformation_table(one_shot: pd.DataFrame | None, strong: pd.DataFrame, size: float = 0.05) -> pd.DataFrame:
    """Accuracy after one view by kind of transformation, levels averaged: people and strong baselines.

    Args:
        one_shot: One row a model and transformation, or transformation and level; with `p_value`, tests are counted.
        strong: The strong baselines.
        size: Of the tests.

    Returns:
        `transformation, accuracy_people` (and `people_ci_low, people_ci_high` where they are known), `accuracy, lowest,
        highest, difference` (models less people), `n`, and, with tests, `worse, alike, better`.

    Raises:
        NotPossibleError: If there is no one-shot table, or no strong baseline in it.
    """
    if one_shot is None:
        raise NotPossibleError("no one-shot experiment is among the runs")
    chosen = one_shot.merge(strong, on=list(MODEL))
    if chosen.empty:
        raise NotPossibleError("no strong baseline took part in the one-shot experiment")
    kept = [c for c in ("people_ci_low", "people_ci_high", "p_value") if c in chosen]
    by_model = chosen.groupby(["transformation", *MODEL], sort=False)[["accuracy", "accuracy_people", *kept]].mean()
    rows = []
    for kind, group in by_model.groupby(level="transformation", sort=False):
        people = {name: float(group[name].iloc[0]) for name in kept if name != "p_value"}
        row = {"transformation": kind, "accuracy_people": float(group["accuracy_people"].mean()), **people}
        value, of_people = group["accuracy"], float(group["accuracy_people"].mean())
        row |= {"accuracy": float(value.mean()), "lowest": float(value.min()), "highest": float(value.max())}
        row |= {"difference": float(value.mean()) - of_people, "n": len(group)}
        if "p_value" in kept:
            row |= {k: v for k, v in _phase(group, size).items() if k in ("worse", "alike", "better")}
        rows.append(row)
    return pd.DataFrame(rows)
