"""Do people accept the order that a score gives, when they are shown it? And what do they accept otherwise?

People who say yes to everything accept every order, so a share of judgments is of orders that are not the score's
("controls"). Acceptance of the score's order minus that of controls is free of such a bias.

Legend: R judgments (a person's answer to an order), M sketches of an item, P participants, I items.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from humanlike.benchmarks.human_agreement_ranking import Orders, item_orders, orders_of
from humanlike.benchmarks.human_agreement_result import (
    DEFAULTS,
    AgreementSettings,
    HumanAgreement,
    as_table,
    comparisons,
    judged_scores,
    people_flags,
    shares_interval,
)
from humanlike.data.survey_responses import SurveyResponses
from humanlike.stats.intervals import known_mean
from humanlike.stats.order_agreement import order_accepted
from humanlike.stats.two_way_bootstrap import (
    CrossedWeights,
    crossed_means,
    crossed_weights,
    judgment_matrix,
    two_way_std_error,
)

MEASURES = ("accepted", "controls_accepted", "difference")


def acceptance_agreement(
    responses: SurveyResponses, scores: pd.DataFrame, settings: AgreementSettings = DEFAULTS
) -> HumanAgreement:
    """Hold scores against what people said of orders that they were shown.

    `accepted` is the share of accepted orders among those that were shown in the score's order, `controls_accepted`
    among those shown in any other order, `difference` the first minus the second (0 for people who do not look). The
    first two have no chance level. Which judgments are controls follows from `shown` and the score; those whose
    sketches have equal or no scores are neither, and are counted. Intervals are percentiles of crossed resamples of
    participants and items; standard errors are clustered two ways, that of the difference by `difference_std_error`.

    Args:
        responses: What was shown and whether people accepted it.
        scores: Index sketch id, a column a score.
        settings: How intervals are made.

    Returns:
        Tables `participants` (one row a person and score), `items` (one row an item and score) and, with several
        scores, `comparisons` of their differences.
    """
    table = responses.table.sort_values(["participant", "item", "sketch_id"], kind="stable")
    orders = orders_of(table.rename(columns={"shown": "rank"}))
    accepted_R = table["accepted"].to_numpy(np.float64)[:: orders.rank_RM.shape[1]]
    known = judged_scores(scores, sorted(set(orders.sketch_RM.ravel())))
    weights = crossed_weights(*orders.shape, settings.replicates, settings.seed)
    flags = people_flags(responses.counts)
    rows, by_person, by_item = [], [], []
    estimates: dict[str, dict[str, float]] = {}
    replicates: dict[str, dict[str, np.ndarray]] = {}
    for name in known.columns:
        score_RM = orders.scores(known[name])
        ordered_R = order_accepted(orders.rank_RM, score_RM)
        split_R = {m: np.where(ordered_R == own, accepted_R, np.nan) for m, own in zip(MEASURES, (1, 0), strict=False)}
        where = orders.participant_R, orders.item_R, orders.shape
        split_PI = {measure: judgment_matrix(value_R, *where) for measure, value_R in split_R.items()}
        estimates[name], replicates[name] = _values(split_PI, weights)
        std_errors = {m: two_way_std_error(v_PI) for m, v_PI in split_PI.items()}
        std_errors["difference"] = difference_std_error(*split_PI.values())
        counts = {m: int(np.isfinite(v_R).sum()) for m, v_R in split_R.items()}
        rows += [
            {
                "score": name,
                "measure": measure,
                "value": estimates[name][measure],
                **shares_interval(replicates[name][measure], orders.shape, settings.level),
                "std_error": std_errors[measure],
                "chance": 0.0 if measure == "difference" else np.nan,
                "ceiling": np.nan,
                "ceiling_high": np.nan,
                "n": counts.get(measure, sum(counts.values())),
            }
            for measure in MEASURES
        ]
        flags += _flags(name, counts, int(np.isnan(ordered_R).sum()))
        by_person.append(_participants(name, orders, split_R))
        shares = _shares(split_R, orders.item_R)
        by_item.append(pd.concat([item_orders(name, orders, score_RM), shares], axis=1))
    compared = comparisons(estimates, replicates, ("difference",), settings.level)
    tables = {"participants": pd.concat(by_person, ignore_index=True), "items": pd.concat(by_item, ignore_index=True)}
    tables |= {"comparisons": compared} if len(compared) else {}
    used = {**responses.counts, "items": orders.shape[1], "sketches": len(known), "scores": len(known.columns)}
    return HumanAgreement("acceptance", as_table(rows), tables, used, tuple(flags), settings)


def difference_std_error(one_PI: np.ndarray, other_PI: np.ndarray) -> float:
    """Standard error of the mean of some judgments minus that of others, for new participants and new items.

    A judgment moves the difference by ±(v - mean) / n of its own part; these moves are clustered by participant and by
    item as in `two_way_std_error`, so that people and items in both parts count as the same.

    Args:
        one_PI: (P, I) values, NaN where there is no judgment of this part.
        other_PI: The same of the other part; no judgment is in both.

    Returns:
        The standard error; NaN where a part is empty, and below two participants or two items.

    Example:
        >>> nan = np.nan
        >>> one, other = np.array([[1.0, nan], [nan, 0.0]]), np.array([[nan, 0.0], [0.0, nan]])
        >>> round(difference_std_error(one, other), 6)
        0.57735
    """
    known_one, known_other = np.isfinite(one_PI), np.isfinite(other_PI)
    if not known_one.any() or not known_other.any():
        return float("nan")
    count = int(known_one.sum() + known_other.sum())
    move_PI = np.full(one_PI.shape, np.nan)
    for part_PI, known_PI, sign in ((one_PI, known_one, 1), (other_PI, known_other, -1)):
        own = part_PI[known_PI]
        move_PI[known_PI] = sign * (own - own.mean()) / len(own)
    return two_way_std_error(move_PI * count)  # which takes a mean, and so divides by the count


def _values(
    split_PI: Mapping[str, np.ndarray], weights: CrossedWeights
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Every measure, and its replicates on the same draws."""
    value = {m: known_mean(v_PI.ravel()) for m, v_PI in split_PI.items()}
    drawn = {m: crossed_means(v_PI, weights) for m, v_PI in split_PI.items()}
    return (
        value | {"difference": value["accepted"] - value["controls_accepted"]},
        drawn | {"difference": drawn["accepted"] - drawn["controls_accepted"]},
    )


def _flags(name: str, counts: Mapping[str, int], undecided: int) -> list[str]:
    said = []
    if undecided:
        said.append(
            f"{undecided} judgment(s) are of orders that are neither that of {name} nor another: its scores of the "
            "sketches are equal or missing."
        )
    if not counts["accepted"]:
        said.append(f"No judgment is of the order by {name}.")
    if not counts["controls_accepted"]:
        said.append(
            f"Nothing was shown in another order than that by {name}: whoever agrees with everything cannot be told "
            "from whoever agrees with the order."
        )
    return said


def _shares(split_R: Mapping[str, np.ndarray], group_R: np.ndarray) -> pd.DataFrame:
    """Shares accepted of each group, NaN where it has no such judgment."""
    means = pd.DataFrame(dict(split_R)).groupby(group_R).mean()
    return means.assign(difference=means["accepted"] - means["controls_accepted"]).reset_index(drop=True)


def _participants(name: str, orders: Orders, split_R: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """One row a person: what they accept of the score's orders and of others."""
    facts = {"participant": orders.participants_P, "score": name, "judgments": np.bincount(orders.participant_R)}
    shares = _shares(split_R, orders.participant_R)
    seconds = pd.Series(orders.seconds_R).groupby(orders.participant_R).median().to_numpy()
    return pd.concat([pd.DataFrame(facts), shares], axis=1).assign(median_seconds=seconds)
