"""Tables of object learning that reports print: which, under what heads, of a run and of a sweep."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from humanlike.reports.object_learning_figures import EXPERIMENT_WORDS, KEY
from humanlike.reports.object_learning_scores import MSEN
from humanlike.reports.study_observers import PEOPLE, Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.reports.wording import SIMULATED
from humanlike.types import Score

PRINTED: Mapping[str, tuple[str, str]] = {
    "summary": (
        "Both ends of the scale",
        "Floor: what a perfect model is expected to score. Roots are in units of accuracy. Rejected: models whose "
        "behaviour is not that of {people} by the null test.",
    ),
    "leaderboard": ("All models, the best first", "Low scores are good; the conventions stand side by side."),
    "rank_groups": (
        "Rank groups of the best models",
        "Pairs are compared on the same resamples, with p adjusted for the number of pairs. Rank: 1 + the number of "
        "models that are significantly better. Two models share a letter if and only if they cannot be told apart.",
    ),
    "anova": (
        "What explains the spread of scores",
        "Two-way analysis of variance, encoding stage × update rule. Share: of the whole sum of squares. With one "
        "score a combination, interaction and residual are one.",
    ),
    "rules": ("Update rules", "Best of stages: encoding stages for which the rule is the best."),
    "depth": ("Score by depth, network by network", "ρ between depth and score: negative where deeper is better."),
    "conventions": ("Agreement of the conventions", "Spearman's ρ of the orders of the models."),
    "relation": (
        "The two experiments over models",
        "r is of the logarithms; scores that are not positive are left out of it.",
    ),
    "phases_strong": (
        "Early and late in learning",
        "Tests of each model by itself, not adjusted for their number: worse and better at 5%, alike otherwise.",
    ),
    "transformations": (
        "After one view",
        "Strong baselines less {people}, levels averaged. Tests of each model by itself, not adjusted for their "
        "number: worse and better at 5%, alike otherwise.",
    ),
    "phases": (
        "Early and late in learning",
        "The reference model beside {people}; quartile 1 are the subtasks that {people} find easiest. p is of no "
        "difference, two-sided, not adjusted; p, not worse: of the model being as good or better.",
    ),
    "one_shot_kinds": (
        "After one view, kind by kind",
        "The reference model beside {people}, levels averaged; p is of no difference, two-sided, not adjusted.",
    ),
    "individual_variation": (
        "Do participants differ?",
        "p: that all learn equally well, by shuffling participants within every subtask. Better: of those who did all "
        "subtasks, how many learn better than the model.",
    ),
    "individuals": (
        "Single participants",
        "Those who did every subtask. p is one-tailed (Welch) against the model, and adjusted for their number "
        "(Bonferroni).",
    ),
}
"""Tables that a page prints → title and caption; the others are in their files alone."""

_HEADS = {
    "is_strong": "strong baseline",
    "relative_depth": "depth",
    "msen_paper": f"{MSEN} (paper)",
    "msen_v2": f"{MSEN} (v2)",
    "msen_paper_text": f"{MSEN} (paper text)",
    "lapse_rate": "lapse rate",
    "p_null": "p, null test",
    "p_adjusted": "p_adjusted",
    "high_variation": "many views",
    "pearson_log": "r, logarithms",
    "n_log": "n, logarithms",
    "sum_sq": "sum of squares",
    "mean_sq": "mean square",
    "f_statistic": "F",
    "accuracy_people": "accuracy, {people}",
    "early_accuracy_people": "early accuracy, {people}",
    "late_accuracy_people": "late accuracy, {people}",
    "std_error": "standard error",
    "std_error_better": "its standard error",
    "accuracy_better": "their mean accuracy",
    "accuracy_model": "accuracy, model",
    "did_all": "did all subtasks",
    "variance_permuted": "variance, shuffled",
    "is_better": "better than the model",
    "n_subtasks": "subtasks",
    "p_below": "p, not worse",
    "statistic": "Welch's t",
    "rank_high": "lowest rank",
    "rank": "rank",
}

_SMALL: Mapping[str, tuple[str, ...]] = {
    "summary": ("best", "median", "floor", "random_guess"),
    "rank_groups": ("estimate", "ci_low"),
    "rules": ("best", "mean", "median"),
    "depth": ("best", "last"),
}
"""Table → columns of squared errors, which three decimals would make alike."""

_BOARD = (
    "experiment", "place", "is_strong", "backbone", "layer", "relative_depth", "rule", "msen_", "lapse_rate",
    "accuracy", "early_accuracy", "late_accuracy", "consistency", "p_null",
)  # fmt: skip
"""What the columns of the printed leaderboard begin with; the file has all."""
_NOT_ON_BOARD = {
    f"{name}{end}"
    for name in ("lapse_rate", "p_null", "consistency_ceiling")
    for end in ("_paper", "_v2", "_paper_text", "_ci_low", "_ci_high", "_low", "_high", "")
} - {"lapse_rate", "p_null"}


def printed_table(name: str, table: pd.DataFrame, observers: Observers) -> TableView:
    """A table of object learning in words.

    Args:
        name: One of `PRINTED`.
        table: The rows.
        observers: How people are called.
    """
    title, caption = PRINTED[name]
    if "experiment" in table:
        table = table.assign(experiment=table["experiment"].map(EXPERIMENT_WORDS))
    if name == "leaderboard":
        table = table[[c for c in table.columns if c.startswith(_BOARD) and c not in _NOT_ON_BOARD]]
    heads = {old: new.format(people=observers.people) for old, new in _HEADS.items()}
    for column in table.columns:
        for end in ("_ci_low", "_ci_high"):
            start = column.removesuffix(end)
            if column.endswith(end) and start in heads:
                heads[column] = heads[start] + end.removeprefix("_ci")
    shown = table.rename(columns=heads)
    small = [*(str(c) for c in shown if str(c).startswith(MSEN)), *_SMALL.get(name, ())]
    return table_view(name, title, shown, observers, caption.format(people=observers.people), fine=small)


OF_REFERENCE = ("phases", "one_shot_kinds")
"""Tables with rows of every model, of which a run's page prints those of its reference model."""
OF_SWEEP = tuple(name for name in PRINTED if name not in OF_REFERENCE)
"""Tables that a sweep's page prints."""
_OF_RUN = (
    "rank_groups", "rules", "anova", "depth", "conventions", "phases", "one_shot_kinds", "individual_variation",
    "individuals",
)  # fmt: skip


def run_tables(score: Score) -> list[TableView]:
    """The further tables that the page of one run prints; none where it is not one of object learning."""
    details = score.result.details.get(KEY)
    if not details:
        return []
    simulated = SIMULATED in score.result.flags
    observers = Observers(simulated=frozenset({PEOPLE}) if simulated else frozenset())
    reference, views = details.get("reference") or {}, []
    for name in _OF_RUN:
        table = score.result.tables.get(name)
        if table is None:
            continue
        if name in OF_REFERENCE:
            table = table[(table["layer"] == reference.get("layer")) & (table["rule"] == reference.get("rule"))]
        dropped = [c for c in ("experiment", "backbone") if c in table and table[c].nunique() == 1]
        if name in OF_REFERENCE:
            dropped += [c for c in ("layer", "rule", "relative_depth") if c in table]
        if len(table):
            views.append(printed_table(name, table.drop(columns=dropped), observers))
    return views
