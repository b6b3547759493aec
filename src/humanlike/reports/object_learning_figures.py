"""Every figure of object learning, drawn from its tables: what there is to draw is drawn, and nothing else.

A run has its tables in `result.tables`, and in `details["object_learning"]` its `experiment` (high_variation or
one_shot), `convention` and `reference` (the `layer` and `rule` whose score is the run's). A sweep has one folder
of tables (`humanlike.benchmarks.object_learning_sweep`). The tables are described where each figure is made:
    subtask_curves, curves, individuals, individual_curves: `humanlike.reports.object_learning_curves`
    one_shot_kinds: `humanlike.stats.learning_transformations`
    models (leaderboard), summary, experiments: `humanlike.reports.object_learning_scores`
    phases, one_shot: `humanlike.reports.object_learning_patterns`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from humanlike.data.object_learning import HIGH_VARIATION
from humanlike.reports.object_learning_curves import (
    MODEL_KEY,
    individual_differences,
    model_curves,
    subtask_curves,
)
from humanlike.reports.object_learning_patterns import accuracy_by_phase, one_shot_by_kind, one_shot_pattern
from humanlike.reports.object_learning_scores import (
    MSEN,
    STRONG,
    accuracy_and_consistency,
    rules_by_layer,
    score_by_depth,
    score_distribution,
    two_experiments,
)
from humanlike.reports.wording import people_word
from humanlike.types import Score

EXPERIMENT_WORDS = {"high_variation": "many views", "one_shot": "one view"}
KEY = "object_learning"
REFERENCE = "reference model"

FIGURE_TITLES: Mapping[str, str] = {
    "subtask_curves": "Learning curves, subtask by subtask (Figure 1 D)",
    "scores": "Distribution of scores (Figure 3)",
    "rules_by_layer": "Update rules and layers (Figure 4 A)",
    "depth": "Score by depth (Figure 4 C)",
    "accuracy_consistency": "Accuracy and consistency (Figure 5 B)",
    "curves": "Mean learning curves (Figure 6 A)",
    "phases": "Early and late in learning (Figure 6 B)",
    "one_shot": "After one view, level by level (Figure 7 B)",
    "one_shot_kinds": "After one view, kind by kind (Figure 7 C)",
    "experiments": "Scores of the two experiments (Figure 7 D)",
    "individuals": "Single participants (Figure 8)",
}
"""What the names of figures begin with → title; the numbers are those of the paper's figures."""

CAPTIONS: Mapping[str, str] = {
    "subtask_curves": "Accuracy of {people} by trial; every subtask is a pair of objects to be told apart.",
    "scores": "Every encoding stage with every update rule. No model is expected left of the noise floor, which the "
    "number of sessions of {people} sets.",
    "rules_by_layer": "The network whose best model is the best of all.",
    "depth": "Means over update rules; bands from the best to the worst rule.",
    "accuracy_consistency": "Consistency: whether a model finds the same subtasks hard as {people} do. Bands: 95% "
    "ranges of {people}.",
    "curves": "Accuracy over all subtasks; the band is one standard error of {people}.",
    "phases": "Early: after 1 to 5 images; late: trials 95 to 100. Bars are 95% intervals of {people}.",
    "one_shot": "Bars are 95% intervals of {people}, cut off at the frame, and standard errors of the model. Corrected "
    "for lapses, accuracies of {people} can exceed 1.",
    "one_shot_kinds": "Means over the levels of a transformation; bars are 95% intervals of {people}.",
    "experiments": "Dashed: the noise floors.",
    "individuals": "Participants who did all subtasks; the best and the worst of them are named.",
}


def figure_title(name: str) -> str | None:
    """A figure's name in words; None where it is not one of object learning.

    Example:
        >>> figure_title("depth_one_shot"), figure_title("alignment")
        ('Score by depth (Figure 4 C), one view', None)
    """
    start, experiment = _split(name)
    if start not in FIGURE_TITLES:
        return None
    return FIGURE_TITLES[start] + (f", {EXPERIMENT_WORDS[experiment]}" if experiment else "")


def figure_caption(name: str, people: str) -> str | None:
    """What to know before reading a figure; None where it is not one of object learning."""
    start, _ = _split(name)
    return CAPTIONS[start].format(people=people) if start in CAPTIONS else None


def _split(name: str) -> tuple[str, str]:
    """A figure's name as what begins it and the experiment that ends it, "" without one."""
    for experiment in EXPERIMENT_WORDS:
        start = name.removesuffix(f"_{experiment}")
        if start != name and start:
            return start, experiment
    return name, ""


def run_figures(score: Score) -> dict[str, Figure]:
    """The figures of one run, name → figure; none where it is not one of object learning."""
    details = score.result.details.get(KEY)
    if not details:
        return {}
    tables = {n: t for n, t in score.result.tables.items() if len(t)}
    reference = {"backbone": score.backbone, "layer": score.layer, **(details.get("reference") or {})}
    experiment = str(details.get("experiment", ""))
    chosen = pd.DataFrame([reference]) if "rule" in reference else None
    column = f"msen_{details.get('convention', 'paper')}"
    people = people_word(score)
    drawn = dict(_behaviour(tables, chosen, people, f"{score.backbone}, {reference.get('rule', '')}".rstrip(", ")))
    models = tables.get("models")
    if models is not None and column in models:
        board = models.assign(experiment=experiment)
        key = board[["layer", "rule"]].astype(str).agg("/".join, axis=1)
        board["is_strong"] = key == f"{reference['layer']}/{reference.get('rule')}"
        first = models.iloc[0]
        lines = {"floor": first.get("noise_floor"), "random_guess": first.get(f"random_guess_{column[5:]}")}
        drawn |= dict(_scores(board, column, lines, "", people, REFERENCE, _people_range(tables)))
    known = {name: figure for name, figure in drawn.items() if figure is not None}
    return {name: known[name] for name in FIGURE_TITLES if name in known}


def sweep_figures(
    tables: Mapping[str, pd.DataFrame], *, convention: str = "paper", people: str = "people"
) -> dict[str, Figure]:
    """The figures of a sweep, in the order in which they are shown.

    Args:
        tables: Name → table of `humanlike.benchmarks.object_learning_sweep.SweepResult`.
        convention: Whose score orders the models.
        people: What to call people.

    Returns:
        Name → figure; those of one experiment end with its name.
    """
    known = {name: table for name, table in tables.items() if len(table)}
    column, drawn = f"msen_{convention}", dict[str, Figure | None]()
    floors: dict[str, float] = {}
    board = known.get("leaderboard")
    strong = None
    if board is not None:
        summary = known["summary"].set_index("experiment").to_dict("index") if "summary" in known else {}
        for experiment in dict.fromkeys(board["experiment"]):
            lines = {str(k): v for k, v in summary.get(experiment, {}).items()}
            floors[experiment] = float(lines.get("floor", float("nan")))
            rows = board[board["experiment"] == experiment]
            strong = rows[rows["is_strong"]] if strong is None else strong
            spread = _people_range(known) if experiment == HIGH_VARIATION else None
            drawn |= dict(_scores(rows, column, lines, f"_{experiment}", people, STRONG, spread))
    drawn |= dict(_behaviour(known, strong, people, STRONG))
    if "experiments" in known:
        drawn["experiments"] = two_experiments(known["experiments"], floors, label=_label(convention))
    return {name: figure for name, figure in drawn.items() if figure is not None}


Drawn = Iterator[tuple[str, Figure | None]]


def _label(convention: str) -> str:
    return f"{MSEN} ({convention.replace('_', ' ')})"


def _people_range(tables: Mapping[str, pd.DataFrame]) -> tuple[float, float] | None:
    """95% interval of people's accuracy over everything; None where the tables do not hold it."""
    phases = tables.get("phases")
    if phases is None or not {"people_ci_low", "people_ci_high"} <= set(phases):
        return None
    rows = phases[(phases["phase"] == "all") & (phases["quartile"].astype(str) == "all")]
    return (float(rows["people_ci_low"].iloc[0]), float(rows["people_ci_high"].iloc[0])) if len(rows) else None


def _scores(
    board: pd.DataFrame,
    column: str,
    lines: Mapping[str, Any],
    suffix: str,
    people: str,
    name: str,
    people_range: tuple[float, float] | None,
) -> Drawn:
    label = _label(column.removeprefix("msen_"))
    yield f"scores{suffix}", score_distribution(board, column, lines, label=label, name=name)
    yield f"depth{suffix}", score_by_depth(board, column, lines, label=label)
    yield f"rules_by_layer{suffix}", rules_by_layer(board, column, label=label)
    figure = accuracy_and_consistency(board, column, people_range, people=people, name=name, label=label)
    yield f"accuracy_consistency{suffix}", figure


def _behaviour(tables: Mapping[str, pd.DataFrame], chosen: pd.DataFrame | None, people: str, name: str) -> Drawn:
    """Figures of what models and people do; the chosen models are set off."""
    if chosen is not None:
        chosen = chosen[list(MODEL_KEY)]
    if "subtask_curves" in tables:
        # These set one model beside people: the reference of a run, which the table names.
        shown = tables["subtask_curves"]
        named = [str(shown[c].iloc[0]) for c in MODEL_KEY if c in shown]
        yield "subtask_curves", subtask_curves(shown, people=people, model=", ".join(named) or "model")
    if "curves" in tables:
        yield "curves", model_curves(tables["curves"], chosen, people=people, name=name)
    if "phases" in tables:
        yield "phases", accuracy_by_phase(tables["phases"], chosen, people=people, name=name)
    if "one_shot" in tables:
        yield "one_shot", one_shot_pattern(tables["one_shot"], chosen, people=people, name=name)
        intervals = tables.get("one_shot_kinds")
        yield "one_shot_kinds", one_shot_by_kind(tables["one_shot"], chosen, intervals, people=people, name=name)
    if "individuals" in tables:
        yield "individuals", _individuals(tables, people)


def _individuals(tables: Mapping[str, pd.DataFrame], people: str) -> Figure | None:
    """Participants beside the model that their table names, with its curve where that is known."""
    individuals, name, model = tables["individuals"], "model", None
    key = [str(individuals[c].iloc[0]) for c in MODEL_KEY if c in individuals]
    shown = tables.get("subtask_curves")
    if shown is not None and "accuracy" in shown:
        own = [str(shown[c].iloc[0]) for c in MODEL_KEY if c in shown]
        if not key or key == own:
            key, model = own, shown.groupby("trial")["accuracy"].mean().reset_index()
    return individual_differences(
        individuals, tables.get("individual_curves"), model, people=people, name=", ".join(key) or name
    )
