"""Do people's ratings of sketches rise with a score? Correlations of mean ratings, bins, and how reliable ratings are.

Legend: P participants, S sketches, B replicates.
"""

from __future__ import annotations

from typing import Any

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
)
from humanlike.data.survey_responses import SurveyResponses
from humanlike.stats.intervals import basic, known_mean
from humanlike.stats.intraclass import intraclass_correlations
from humanlike.stats.rating_agreement import (
    CORRELATIONS,
    correlation_interval,
    correlations_under,
    mean_ratings,
    noise_corrected_correlation,
    quantile_bins,
    split_half_reliability,
    weighted_correlations,
)
from humanlike.stats.two_way_bootstrap import CrossedWeights, crossed_means, crossed_weights, judgment_matrix

CORRECTED = "pearson_corrected"


def rating_agreement(
    responses: SurveyResponses, scores: pd.DataFrame, settings: AgreementSettings = DEFAULTS
) -> HumanAgreement:
    """Hold scores against people's mean ratings.

    `pearson`, `spearman` and `kendall` (τ_b) are of a sketch's mean rating with its score over sketches;
    `pearson_corrected` is Pearson's r divided by the square root of the ratings' reliability, and √reliability is the
    ceiling of `pearson`. Intervals are of crossed resamples of participants and sketches, centred on Fisher's scale.

    Args:
        responses: People's ratings.
        scores: Index sketch id, a column a score.
        settings: How intervals are made.

    Returns:
        Tables `participants` (a person's own correlation with each score and with the others' mean), `sketches` (mean
        ratings), `bins` (mean rating in bins of equal numbers of sketches by score), `reliability` and, with several
        scores, `comparisons`.
    """
    people_P, person_R = coded(responses.table["participant"])
    ids_S, sketch_R = coded(responses.table["sketch_id"])
    rating_PS = judgment_matrix(
        responses.table["rating"].to_numpy(np.float64), person_R, sketch_R, (len(people_P), len(ids_S))
    )
    known = judged_scores(scores, ids_S.tolist())
    weights = crossed_weights(len(people_P), len(ids_S), settings.replicates, settings.seed)
    reliability, stepped_up, said = _reliability(rating_PS, settings)
    mean_S = mean_ratings(rating_PS)
    rows: list[dict[str, Any]] = []
    bins, estimates, replicates = [], {}, {}
    for name in known.columns:
        score_S = known[name].to_numpy()
        estimates[name] = weighted_correlations(score_S, mean_S)
        replicates[name] = correlations_under(score_S, rating_PS, weights)
        rows += _rows(name, estimates[name], replicates[name], score_S, rating_PS, stepped_up, settings)
        scored = int(np.isfinite(score_S).sum())
        if scored >= settings.bins:
            bins.append(_bins(name, score_S, rating_PS, weights, settings))
        else:
            said.append(
                f"{scored} sketch(es) with {name} cannot fill {settings.bins} bins, which are left out (--bins)."
            )
        if not np.isfinite(estimates[name]["spearman"]):
            said.append(f"Nothing can be said of {name}: mean ratings, or its scores of the sketches, are all equal.")
        lacking = int(np.isnan(score_S).sum())
        said += [f"{lacking} rated sketch(es) have no {name} and are left out of its rows."] if lacking else []
    tables = {
        "participants": _participants(people_P, rating_PS, known, responses.table, person_R),
        "sketches": _sketches(ids_S, rating_PS, mean_S, known),
        "reliability": reliability,
    }
    tables |= {"bins": pd.concat(bins, ignore_index=True)} if bins else {}
    compared = comparisons(estimates, replicates, ("pearson", "spearman"), settings.level)
    tables |= {"comparisons": compared} if len(compared) else {}
    counts = {**responses.counts, "sketches": len(ids_S), "scores": len(known.columns)}
    flags = (*people_flags(responses.counts), *said)
    return HumanAgreement("rating", as_table(rows), tables, counts, flags, settings)


def _rows(
    name: str,
    values: dict[str, float],
    replicates: dict[str, np.ndarray],
    score_S: np.ndarray,
    rating_PS: np.ndarray,
    reliability: float,
    settings: AgreementSettings,
) -> list[dict[str, Any]]:
    """The agreement of one score by every measure."""
    n = int((np.isfinite(score_S) & np.isfinite(rating_PS).any(axis=0)).sum())
    several = min(rating_PS.shape) > 1
    out: list[dict[str, Any]] = []
    for measure in CORRELATIONS:
        interval = correlation_interval(values[measure], replicates[measure], settings.level)
        out.append(
            {
                "score": name,
                "measure": measure,
                "value": values[measure],
                "ci_low": interval.low if several else np.nan,
                "ci_high": interval.high if several else np.nan,
                "std_error": _spread(replicates[measure]) if several else np.nan,
                "chance": 0.0,
                "ceiling": np.sqrt(reliability) if measure == "pearson" and reliability > 0 else np.nan,
                "ceiling_high": np.nan,
                "n": n,
            }
        )
    corrected = noise_corrected_correlation(values["pearson"], reliability)
    return [*out, {**out[0], "measure": CORRECTED, "value": corrected, "ci_low": np.nan, "ci_high": np.nan,
                   "std_error": np.nan, "ceiling": np.nan}]  # fmt: skip


def _spread(values_B: np.ndarray) -> float:
    known = values_B[np.isfinite(values_B)]
    return float(known.std(ddof=1)) if len(known) > 1 else float("nan")


def _reliability(rating_PS: np.ndarray, settings: AgreementSettings) -> tuple[pd.DataFrame, float, list[str]]:
    """How reliable mean ratings are, the reliability that corrects correlations, and what could not be said."""
    if len(rating_PS) < 2:
        return pd.DataFrame({"measure": ["split_half"], "value": [np.nan]}), np.nan, []
    halves = split_half_reliability(rating_PS, settings.splits, settings.seed)
    rows: list[dict[str, Any]] = []
    for measure, values in (("split_half", halves["correlation"]), ("spearman_brown", halves["spearman_brown"])):
        low, high = np.nanquantile(values, [0.025, 0.975]) if np.isfinite(values).any() else (np.nan, np.nan)
        rows.append({"measure": measure, "value": known_mean(values), "ci_low": low, "ci_high": high,
                     "of": "random halves of the participants"})  # fmt: skip
    said = []
    absent = int(np.isnan(rating_PS).sum())
    if absent or rating_PS.shape[1] < 2:
        said.append(
            f"{absent} rating(s) of a participant × sketch are missing, so there are no intraclass correlations, which "
            "need every participant on every sketch; split halves need not."
        )
    else:
        models = {1: "participants differ from sketch to sketch", 2: "participants are a sample of people",
                  3: "these participants alone"}  # fmt: skip
        for name, icc in intraclass_correlations(rating_PS.T, settings.level).items():
            whose = "mean over participants" if icc.average else "one participant"
            rows.append({"measure": name, "value": icc.value, "ci_low": icc.low, "ci_high": icc.high,
                         "of": f"{whose}; {models[icc.model]}"})  # fmt: skip
    return as_table(rows), known_mean(halves["spearman_brown"]), said


def _bins(
    name: str, score_S: np.ndarray, rating_PS: np.ndarray, weights: CrossedWeights, settings: AgreementSettings
) -> pd.DataFrame:
    """Mean rating of the sketches in each bin of the score."""
    code_S, edges = quantile_bins(score_S, settings.bins)
    rows = []
    for number in range(settings.bins):
        inside_PS = np.where(code_S == number, rating_PS, np.nan)
        estimate = known_mean(inside_PS)
        interval = basic(estimate, crossed_means(inside_PS, weights), settings.level)
        rows.append(
            {
                "score": name,
                "bin": number + 1,
                "from": edges[number],
                "to": edges[number + 1],
                "sketches": int((code_S == number).sum()),
                "mean_score": known_mean(score_S[code_S == number]),
                "mean_rating": estimate,
                "ci_low": interval.low,
                "ci_high": interval.high,
                "sd": float(np.nanstd(inside_PS, ddof=1)) if np.isfinite(inside_PS).sum() > 1 else np.nan,
            }
        )
    return as_table(rows)


def _participants(
    names_P: np.ndarray, rating_PS: np.ndarray, known: pd.DataFrame, table: pd.DataFrame, person_R: np.ndarray
) -> pd.DataFrame:
    """One row a person: ratings, and Spearman's ρ with every score and with the mean of the others."""
    seconds = table["seconds"] if "seconds" in table.columns else pd.Series(np.nan, index=table.index)
    rows = []
    for p, name in enumerate(names_P):
        others_S = mean_ratings(np.delete(rating_PS, p, axis=0)) if len(names_P) > 1 else np.full(len(known), np.nan)
        with_scores = {
            f"spearman_{score}": weighted_correlations(known[score].to_numpy(), rating_PS[p])["spearman"]
            for score in known.columns
        }
        rows.append(
            {
                "participant": name,
                "ratings": int(np.isfinite(rating_PS[p]).sum()),
                "mean": known_mean(rating_PS[p]),
                "sd": float(np.nanstd(rating_PS[p])),
                **with_scores,
                "spearman_others": weighted_correlations(others_S, rating_PS[p])["spearman"],
                "median_seconds": float(seconds[person_R == p].median()),
            }
        )
    return as_table(rows)


def _sketches(ids_S: np.ndarray, rating_PS: np.ndarray, mean_S: np.ndarray, known: pd.DataFrame) -> pd.DataFrame:
    count_S = np.isfinite(rating_PS).sum(axis=0)
    deviation_PS = np.where(np.isfinite(rating_PS), rating_PS - mean_S, 0.0)
    sd_S = np.sqrt(np.divide((deviation_PS**2).sum(axis=0), count_S - 1, out=np.full(len(ids_S), np.nan),
                             where=count_S > 1))  # fmt: skip
    return pd.DataFrame(
        {"sketch_id": ids_S, "ratings": count_S, "mean_rating": mean_S, "sd": sd_S,
         **{str(name): known[name].to_numpy() for name in known.columns}}
    )  # fmt: skip
