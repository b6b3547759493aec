"""Single participants of the high-variation experiment: how well each learns, and who learns better than a model.

References: Lee and DiCarlo, "Individual variability in overall learning ability", Figure 8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from humanlike.benchmarks.object_learning_sweep_tables import MODEL, NotPossibleError
from humanlike.data.object_learning import HIGH_VARIATION, PeopleSessions
from humanlike.stats.learning_individuals import Participants, better_than_model, individual_variation, participants

PERMUTATIONS = 10_000


def participant_table(people: PeopleSessions, subtasks: Sequence[str]) -> pd.DataFrame:
    """One row a participant and subtask: `participant, subtask, accuracy` over the session's trials.

    Args:
        people: Sessions of complete trials, no participant twice in one subtask.
        subtasks: Names of the subtasks.
    """
    known = participants(people.correct_ST, people.subtask_S, people.participant_S, len(subtasks))
    rows, columns = np.nonzero(~np.isnan(known.accuracy_PS))
    return pd.DataFrame(
        {
            "participant": known.name_P[rows].astype(str),
            "subtask": np.asarray(subtasks, dtype=str)[columns],
            "accuracy": known.accuracy_PS[rows, columns],
        }
    )


def participant_curves(people: PeopleSessions, num_subtasks: int) -> pd.DataFrame:
    """Mean learning curve of every participant who did all subtasks: `participant, trial` (from 1), `accuracy`."""
    number = pd.Series(people.participant_S).value_counts()
    parts = []
    for name in sorted(number.index[number == num_subtasks]):
        accuracy_T = people.correct_ST[people.participant_S == name].mean(axis=0)
        trial = np.arange(1, len(accuracy_T) + 1)
        parts.append(pd.DataFrame({"participant": str(name), "trial": trial, "accuracy": accuracy_T}))
    columns = ["participant", "trial", "accuracy"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def individual_tables(
    table: pd.DataFrame,
    model: pd.DataFrame,
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    level: float = 0.05,
) -> dict[str, pd.DataFrame]:
    """Both tests over the participants who did every subtask of the model.

    Args:
        table: As `participant_table` gives it.
        model: `subtask, accuracy` of one model.
        seed: Global seed of the permutations.
        permutations: Their number.
        level: Of the tests against the model, after Bonferroni's correction.

    Returns:
        `individuals`: one row a participant who did all subtasks: `participant, n_subtasks, accuracy, std_error` (over
        subtasks), `accuracy_model, difference, statistic, df, p_value` (Welch, one-tailed), `p_adjusted` (Bonferroni),
        `is_better`. `individual_variation`: one row: `participants, did_all, variance` (of their mean accuracies),
        `variance_permuted` (mean when participants are shuffled within subtasks), `p_value, permutations,
        accuracy_model, better, accuracy_better, std_error_better`. Empty where fewer than two did all.
    """
    model_S = model.set_index("subtask")["accuracy"]
    wide = table.pivot(index="participant", columns="subtask", values="accuracy").reindex(columns=model_S.index)
    people = Participants(wide.index.to_numpy(dtype=str), wide.to_numpy(np.float64)).complete
    if len(people.name_P) < 2 or len(model_S) < 2:
        return {}
    tests = better_than_model(people, model_S.to_numpy(np.float64), level)
    individuals = pd.DataFrame(
        {
            "participant": tests["participant"],
            "n_subtasks": len(model_S),
            "accuracy": tests["accuracy"],
            "std_error": people.accuracy_PS.std(axis=1, ddof=1) / len(model_S) ** 0.5,
            "accuracy_model": tests["model"],
            **{name: tests[name] for name in ("difference", "statistic", "df", "p_value")},
            "p_adjusted": tests["p_bonferroni"],
            "is_better": tests["better"],
        }
    )
    test = individual_variation(people.accuracy_PS, permutations, seed)
    best = individuals.loc[individuals["is_better"], "accuracy"]
    variation = {
        "participants": len(wide),
        "did_all": len(people.name_P),
        "variance": test.variance,
        "variance_permuted": float(test.permuted_R.mean()),
        "p_value": test.p_value,
        "permutations": permutations,
        "accuracy_model": float(model_S.mean()),
        "better": len(best),
        "accuracy_better": float(best.mean()) if len(best) else np.nan,
        "std_error_better": float(best.std(ddof=1) / len(best) ** 0.5) if len(best) > 1 else np.nan,
    }
    return {"individuals": individuals, "individual_variation": pd.DataFrame([variation])}


def against_best(
    participants: pd.DataFrame | None, subtasks: pd.DataFrame | None, board: pd.DataFrame, seed: int = 0
) -> dict[str, pd.DataFrame]:
    """`individual_tables` against the best model of the high-variation experiment in a sweep.

    Args:
        participants: As `participant_table` gives it; None where people are not known one by one.
        subtasks: `experiment, backbone, layer, rule, subtask, accuracy` of every model, or None.
        board: The leaderboard, the best first.
        seed: Global seed of the permutations.

    Raises:
        NotPossibleError: Saying what is missing.
    """
    if participants is None or subtasks is None:
        raise NotPossibleError("participants are not known one by one (participants.parquet, subtasks.parquet)")
    best = board[(board["experiment"] == HIGH_VARIATION) & (board["place"] == 1)]
    own = subtasks.merge(best[["experiment", *MODEL]], on=["experiment", *MODEL])
    found = individual_tables(participants, own, seed=seed) if len(own) else {}
    if not found:
        raise NotPossibleError("fewer than two participants did every subtask")
    model = {name: str(best[name].iloc[0]) for name in MODEL}
    return {name: table.assign(**model) for name, table in found.items()}
