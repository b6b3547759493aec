"""Do people order sketches as a score does? Shares of accepted orders, pairs, and what people reach themselves.

Legend: R judgments (a person's order of an item), M sketches of an item, P participants, I items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from humanlike.benchmarks.human_agreement_result import (
    DEFAULTS,
    AgreementSettings,
    HumanAgreement,
    as_table,
    coded,
    comparisons,
    judged_scores,
    people_flags,
    shares_interval,
)
from humanlike.data.survey_responses import SurveyResponses
from humanlike.stats.intervals import known_mean
from humanlike.stats.order_agreement import (
    PAIR_CHANCE,
    order_accepted,
    order_chance,
    order_consistency,
    order_spearman,
    pair_concordance,
)
from humanlike.stats.two_way_bootstrap import crossed_means, crossed_weights, judgment_matrix, two_way_std_error

MEASURES = ("accepted", "concordance", "kendall", "spearman")


@dataclass(frozen=True)
class Orders:
    """People's orders as numbers.

    Attributes:
        rank_RM: Ranks, things of an item in the order of `sketch_RM`.
        sketch_RM: Sketch ids, sorted within an item.
        participants_P: Names.
        participant_R: Who.
        items_I: Ids.
        item_R: Which.
        seconds_R: How long.
    """

    rank_RM: np.ndarray
    sketch_RM: np.ndarray
    participants_P: np.ndarray
    participant_R: np.ndarray
    items_I: np.ndarray
    item_R: np.ndarray
    seconds_R: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(P, I)."""
        return len(self.participants_P), len(self.items_I)

    def scores(self, score: pd.Series) -> np.ndarray:
        """(R, M) scores of what was judged.

        Args:
            score: Index sketch id, sorted.
        """
        values: np.ndarray = score.to_numpy()[np.searchsorted(score.index.to_numpy(str), self.sketch_RM)]
        return values


def orders_of(table: pd.DataFrame) -> Orders:
    """A table `participant, item, sketch_id, rank` (and perhaps `seconds`) as orders.

    Raises:
        ValueError: When items have different numbers of sketches, one item has different sketches for different
            people, or an order is incomplete.
    """
    table = table.sort_values(["participant", "item", "sketch_id"], kind="stable").reset_index(drop=True)
    sizes = table.groupby(["participant", "item"], sort=False).size()
    if sizes.nunique() != 1:
        odd = int((sizes.to_numpy() != sizes.iloc[0]).argmax())
        person, item = sizes.index.to_frame().iloc[odd]
        count = int(sizes.iloc[odd])
        raise ValueError(
            f"{person!r} ordered {count} sketches of item {item!r}, but {sizes.iloc[0]} are ordered in the first item; "
            "all items of a ranking must have equally many"
        )
    m = int(sizes.iloc[0])
    sketch_RM = table["sketch_id"].to_numpy(dtype=object).astype(str).reshape(-1, m)
    first = table.iloc[::m]
    participants_P, participant_R = coded(first["participant"])
    items_I, item_R = coded(first["item"])
    sketches_IM = np.empty((len(items_I), m), dtype=sketch_RM.dtype)
    sketches_IM[item_R] = sketch_RM
    differs_R = (sketches_IM[item_R] != sketch_RM).any(axis=1)
    if differs_R.any():
        row = int(differs_R.argmax())
        raise ValueError(
            f"item '{items_I[item_R[row]]}' was answered by '{participants_P[participant_R[row]]}' for "
            f"{sketch_RM[row].tolist()}, by others for {sketches_IM[item_R[row]].tolist()}; are these two surveys?"
        )
    seconds = first["seconds"].to_numpy(np.float64) if "seconds" in table.columns else np.full(len(first), np.nan)
    return Orders(
        table["rank"].to_numpy(np.float64).reshape(-1, m), sketch_RM, participants_P, participant_R, items_I, item_R,
        seconds,
    )  # fmt: skip


def ranking_agreement(
    responses: SurveyResponses, scores: pd.DataFrame, settings: AgreementSettings = DEFAULTS
) -> HumanAgreement:
    """Hold scores against people's orders.

    `accepted` is the share of judgments whose whole order is the score's (1/M! by chance), `concordance` that of pairs
    (1/2), `kendall` and `spearman` are means of each judgment's correlation. Judgments whose sketches have equal or no
    scores are left out of what they cannot decide, and counted. Intervals are percentiles of crossed resamples of
    participants and items; the standard error is `two_way_std_error`.

    The ceiling of `accepted` is how often a person gives the order that most of the others gave, its upper bound how
    often the order that most people gave, the person included; that of `concordance`, how often a pair is ordered as
    by the others' mean rank.

    Args:
        responses: People's orders.
        scores: Index sketch id, a column a score.
        settings: How intervals are made.

    Returns:
        Tables `participants` (one row a person and score), `items` (one row an item and score) and, with several
        scores, `comparisons`.
    """
    orders = orders_of(responses.table)
    known = judged_scores(scores, sorted(set(orders.sketch_RM.ravel())))
    shape = orders.shape
    weights = crossed_weights(*shape, settings.replicates, settings.seed)
    people = order_consistency(orders.rank_RM, orders.item_R)
    ceilings = _ceilings(orders, people.left_out_R, people.best_R)
    rows, by_person, by_item, unused = [], [], [], {}
    estimates: dict[str, dict[str, float]] = {}
    replicates: dict[str, dict[str, np.ndarray]] = {}
    for name in known.columns:
        score_RM = orders.scores(known[name])
        values = judgment_values(orders.rank_RM, score_RM)
        estimates[name], replicates[name] = {}, {}
        for measure, value_R in values.items():
            value_PI = judgment_matrix(value_R, orders.participant_R, orders.item_R, shape)
            estimates[name][measure] = known_mean(value_R)
            replicates[name][measure] = crossed_means(value_PI, weights)
            rows.append(
                {
                    "score": name,
                    "measure": measure,
                    "value": estimates[name][measure],
                    **shares_interval(replicates[name][measure], shape, settings.level),
                    "std_error": two_way_std_error(value_PI),
                    "chance": _chance(measure, orders.rank_RM.shape[1]),
                    **ceilings.get(measure, {"ceiling": np.nan, "ceiling_high": np.nan}),
                    "n": int(np.isfinite(value_R).sum()),
                }
            )
        unused[name] = int(np.isnan(values["accepted"]).sum())
        by_person.append(_participants(name, orders, values, people.left_out_R))
        by_item.append(_items(name, orders, values, score_RM, people.pair_share_I))
    compared = comparisons(estimates, replicates, ("accepted", "concordance"), settings.level)
    tables = {"participants": pd.concat(by_person, ignore_index=True), "items": pd.concat(by_item, ignore_index=True)}
    counts = {**responses.counts, "items": shape[1], "sketches": len(known), "scores": len(known.columns)}
    flags = people_flags(responses.counts)
    flags += [
        f"{count} judgment(s) cannot accept or reject {name}: its scores of the sketches are equal or missing."
        for name, count in unused.items()
        if count
    ]
    tables |= {"comparisons": compared} if len(compared) else {}
    return HumanAgreement("ranking", as_table(rows), tables, counts, tuple(flags), settings)


def judgment_values(rank_RM: np.ndarray, score_RM: np.ndarray) -> dict[str, np.ndarray]:
    """`MEASURES` → (R,) value of every judgment, NaN where the scores do not decide it."""
    concordance_R = pair_concordance(rank_RM, score_RM)
    accepted_R = order_accepted(rank_RM, score_RM)
    # τ and ρ of a judgment with tied or missing scores are of another scale than the others', so they are left out.
    whole_R = np.isfinite(accepted_R)
    return {
        "accepted": accepted_R,
        "concordance": concordance_R,
        "kendall": np.where(whole_R, 2 * concordance_R - 1, np.nan),
        "spearman": np.where(whole_R, order_spearman(rank_RM, score_RM), np.nan),
    }


def _chance(measure: str, num_things: int) -> float:
    return {"accepted": order_chance(num_things), "concordance": PAIR_CHANCE}.get(measure, 0.0)


def _ceilings(orders: Orders, left_out_R: np.ndarray, best_R: np.ndarray) -> dict[str, dict[str, float]]:
    sum_IM = np.zeros((len(orders.items_I), orders.rank_RM.shape[1]))
    np.add.at(sum_IM, orders.item_R, orders.rank_RM)
    others_RM = sum_IM[orders.item_R] - orders.rank_RM
    pair_R = pair_concordance(orders.rank_RM, -others_RM)
    best_pair_R = pair_concordance(orders.rank_RM, -sum_IM[orders.item_R])
    return {
        "accepted": {"ceiling": known_mean(left_out_R), "ceiling_high": known_mean(best_R)},
        "concordance": {"ceiling": known_mean(pair_R), "ceiling_high": known_mean(best_pair_R)},
    }


def _participants(name: str, orders: Orders, values: dict[str, np.ndarray], left_out_R: np.ndarray) -> pd.DataFrame:
    """One row a person: their judgments of a score, and how often they give the order that most others give."""
    frame = pd.DataFrame({measure: values[measure] for measure in ("accepted", "concordance", "spearman")})
    frame = frame.assign(others=left_out_R, seconds=orders.seconds_R)
    means = frame.groupby(orders.participant_R).mean()
    return pd.DataFrame(
        {
            "participant": orders.participants_P,
            "score": name,
            "judgments": np.bincount(orders.participant_R),
            **{c: means[c].to_numpy() for c in ("accepted", "concordance", "spearman", "others")},
            "median_seconds": frame["seconds"].groupby(orders.participant_R).median().to_numpy(),
        }
    )


def item_orders(name: str, orders: Orders, score_RM: np.ndarray) -> pd.DataFrame:
    """One row an item: `item, score, order` (by the score), `least_gap` in it, `judgments`.

    Args:
        name: The score.
        orders: What was judged.
        score_RM: Scores of it.
    """
    _, first_I = np.unique(orders.item_R, return_index=True)
    score_IM, sketch_IM = score_RM[first_I], orders.sketch_RM[first_I]
    order_IM = np.argsort(-score_IM, axis=1, kind="stable")
    gaps_I = -np.diff(np.take_along_axis(score_IM, order_IM, axis=1), axis=1).max(axis=1, initial=-np.inf)
    return pd.DataFrame(
        {
            "item": orders.items_I,
            "score": name,
            "order": [" > ".join(row) for row in np.take_along_axis(sketch_IM, order_IM, axis=1)],
            "least_gap": gaps_I,
            "judgments": np.bincount(orders.item_R),
        }
    )


def _items(
    name: str, orders: Orders, values: dict[str, np.ndarray], score_RM: np.ndarray, pair_share_I: np.ndarray
) -> pd.DataFrame:
    """One row an item: the score's order, the least gap in it, how many accept it, and how far people agree."""
    means = pd.DataFrame({m: values[m] for m in ("accepted", "concordance")}).groupby(orders.item_R).mean()
    return item_orders(name, orders, score_RM).assign(
        accepted=means["accepted"].to_numpy(), concordance=means["concordance"].to_numpy(), pair_agreement=pair_share_I
    )
