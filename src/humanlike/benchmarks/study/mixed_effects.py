"""The mixed-effects models of Section 3 of the SEVA paper, from the long tables of a study.

    models_by_time   metric ~ t_z + model + (1 + t_z | concept), χ² against the model without `model`
    people_by_time   metric ~ t_z + (1 + t_z | concept)
    alignment        human_metric ~ model_metric × t_z + model + (1 + model_metric × t_z | concept), χ² as above
    strokes_by_time  num_strokes ~ t + (1 | concept), (1 + t | concept) or (1 + t_z | concept)

t is the condition (seconds), t_z its values over the rows of the fit less their mean, over their sample standard
deviation. Coefficients come from the REML fit, χ² from ML fits. What cannot be fitted stands in `fits` with the reason;
fits that are singular or did not converge say so in every table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from humanlike.benchmarks.study.models import PEOPLE
from humanlike.stats import METRICS
from humanlike.stats.hypothesis import INTERCEPT
from humanlike.stats.mixed import LikelihoodRatio, MixedDesign, MixedFit, fit_mixed, likelihood_ratio_test

STROKE_RANDOM: Mapping[str, tuple[str, ...]] = {
    "intercept": ("1",),
    "slope": ("1", "t"),
    "standardised_slope": ("1", "t_z"),
}
"""Value of the protocol switch `stroke_count_model` → random terms."""

UNCORRELATED = ("entropy",)
"""Metrics whose alignment model has a variance for each random term and no covariances."""


_FIT_COLUMNS = (
    *("analysis", "metric", "formula", "chi2", "df", "p_value", "n", "groups", "dropped"),
    *("log_likelihood", "log_likelihood_reml", "aic", "bic", "converged", "singular", "note"),
)


@dataclass(frozen=True)
class MixedTables:
    """Fitted models as tables, each with the columns `analysis` and `metric`.

    Attributes:
        fits: One row a model: `formula`, `chi2, df, p_value` (likelihood-ratio test of the term `model`, NaN where
            there is none), `n, groups, dropped` (rows with a missing value), `log_likelihood` (ML),
            `log_likelihood_reml, aic, bic` (ML), `converged, singular` (over all its fits), `note`.
        terms: One row a fixed effect: `term, estimate, std_error, statistic, df, p_value, ci_low, ci_high` of the
            REML fit with Satterthwaite's degrees of freedom, `n, converged, singular`.
        random: One row a standard deviation or correlation: `first, second, sd, correlation`, `converged, singular`.
    """

    fits: pd.DataFrame
    terms: pd.DataFrame
    random: pd.DataFrame


@dataclass(frozen=True)
class Formula:
    """A mixed model in words; terms are column names, `a:b` products, `1` the intercept, `model` a factor.

    Attributes:
        analysis: Its name.
        metric: Which metric it is about.
        outcome: Name of the outcome.
        fixed: Fixed terms without the intercept.
        random: Random terms by concept, the intercept included.
        correlated: Whether random coefficients covary.
    """

    analysis: str
    metric: str
    outcome: str
    fixed: tuple[str, ...]
    random: tuple[str, ...]
    correlated: bool = True

    def __str__(self) -> str:
        bar = "|" if self.correlated else "||"
        return f"{self.outcome} ~ {' + '.join(self.fixed)} + ({' + '.join(self.random)} {bar} concept)"


def mixed_effects(
    sketch_rows: pd.DataFrame,
    cell_rows: pd.DataFrame,
    strokes: pd.DataFrame | None = None,
    *,
    stroke_count_model: str = "standardised_slope",
) -> MixedTables:
    """All mixed-effects models that the tables allow.

    Args:
        sketch_rows: One row an observer and sketch: `observer, concept, condition, accuracy, entropy`.
        cell_rows: One row an observer and cell: `observer, concept, condition, accuracy, entropy, snp`.
        strokes: One row a sketch: `concept, condition, num_strokes`; None leaves its model out.
        stroke_count_model: The protocol's switch: random part of the stroke model.

    References:
        Mukherjee et al. 2023 (SEVA), Section 3.
    """
    parts = [models_by_time(sketch_rows, cell_rows)]
    if (cell_rows["observer"] == PEOPLE).any():
        parts += [people_by_time(sketch_rows, cell_rows), alignment_by_model(cell_rows)]
    if strokes is not None:
        parts.append(strokes_by_time(strokes, stroke_count_model))
    return joined(parts)


def models_by_time(sketch_rows: pd.DataFrame, cell_rows: pd.DataFrame) -> MixedTables:
    """How the models' metrics depend on time and differ between models; arguments as `mixed_effects`."""
    return _by_time("models_by_time", sketch_rows, cell_rows, of_people=False)


def people_by_time(sketch_rows: pd.DataFrame, cell_rows: pd.DataFrame) -> MixedTables:
    """How people's metrics depend on time; arguments as `mixed_effects`."""
    return _by_time("people_by_time", sketch_rows, cell_rows, of_people=True)


def alignment_by_model(cell_rows: pd.DataFrame) -> MixedTables:
    """How people's cells follow the models' cells, and whether models differ in it.

    Rows are cells × models that both sides have. Random coefficients covary for accuracy and SNP, and have separate
    variances for entropy, as in the published analysis. `model_metric` keeps its unit.

    As published, people's value of a cell stands in the row of every model, so that residuals of these rows are not
    independent: t and χ² overstate the evidence, the more the more models there are. Intervals that do not: the
    bootstrap's.
    """
    people = cell_rows[cell_rows["observer"] == PEOPLE]
    models = cell_rows[cell_rows["observer"] != PEOPLE]
    both = models.merge(people, on=["concept", "condition"], suffixes=("", "_people"), validate="m:1")
    several = both["observer"].nunique() > 1
    parts = []
    for metric in METRICS:
        rows = pd.DataFrame(
            {
                "concept": both["concept"],
                "t": both["condition"],
                "model": both["observer"],
                "model_metric": both[metric],
                "human_metric": both[f"{metric}_people"],
            }
        )
        crossed = ("model_metric", "t_z", "model_metric:t_z")
        fixed = (*crossed, "model") if several else crossed
        formula = Formula(
            "alignment", metric, "human_metric", fixed, ("1", *crossed), correlated=metric not in UNCORRELATED
        )
        parts.append(fit_formula(formula, rows))
    return joined(parts)


def strokes_by_time(strokes: pd.DataFrame, stroke_count_model: str = "standardised_slope") -> MixedTables:
    """How many strokes a sketch has, by seconds of drawing.

    The fixed slope is per second whatever the random part. (1 + t | concept) and (1 + t_z | concept) are the same model
    in different coordinates.

    Args:
        strokes: `concept, condition, num_strokes`.
        stroke_count_model: `intercept`, `slope` or `standardised_slope`.

    Raises:
        ValueError: On another value of the switch.
    """
    if stroke_count_model not in STROKE_RANDOM:
        raise ValueError(f"stroke_count_model is {stroke_count_model!r}; it can be one of {', '.join(STROKE_RANDOM)}")
    rows = strokes.rename(columns={"condition": "t"})[["concept", "t", "num_strokes"]]
    random = STROKE_RANDOM[stroke_count_model]
    return fit_formula(Formula("strokes_by_time", "num_strokes", "num_strokes", ("t",), random), rows)


def fit_formula(formula: Formula, rows: pd.DataFrame, note: str = "") -> MixedTables:
    """Fit one model by REML and ML, and without its term `model` where it has one.

    Args:
        formula: The model.
        rows: Its columns: the outcome, `concept`, `t`, and those that the terms name; `t_z` is added here.
        note: What must be said beside it.

    Returns:
        One row in `fits`. Data that cannot carry the model give a row without numbers, the reason in `note`.
    """
    numeric = rows.drop(columns=["concept", "model"], errors="ignore").astype(float)
    usable = rows[pd.Series(np.asarray(np.isfinite(numeric.to_numpy()).all(axis=1)), index=rows.index)]
    fact = {
        "analysis": formula.analysis,
        "metric": formula.metric,
        "formula": str(formula),
        "n": len(usable),
        "groups": usable["concept"].nunique(),
        "dropped": len(rows) - len(usable),
    }
    try:
        design = _design(formula, usable)
        restricted, full = (fit_mixed(design, reml=reml, correlated=formula.correlated) for reml in (True, False))
        test = _test_of_model(design, full)
    except ValueError as error:
        return _not_fitted(fact, f"not fitted: {error}" + (f"; {note}" if note else ""))
    notes = [note, restricted.note, "" if "model" in formula.fixed else _one_model(rows)]
    state = {
        "converged": restricted.converged and full.converged and (test is None or test.converged),
        "singular": restricted.singular or full.singular or (test is not None and test.singular),
    }
    fact |= {
        "chi2": np.nan if test is None else test.chi2,
        "df": np.nan if test is None else float(test.df),
        "p_value": np.nan if test is None else test.p_value,
        "log_likelihood": full.log_likelihood,
        "log_likelihood_reml": restricted.log_likelihood,
        "aic": full.aic,
        "bic": full.bic,
        **state,
        "note": "; ".join(text for text in notes if text),
    }
    key = {"analysis": formula.analysis, "metric": formula.metric}
    own = {"converged": restricted.converged, "singular": restricted.singular}
    return MixedTables(
        fits=pd.DataFrame([fact], columns=list(_FIT_COLUMNS)),
        terms=_keyed(key, restricted.terms()).assign(n=restricted.n, **own),
        random=_keyed(key, restricted.random_terms()).assign(**own),
    )


def joined(parts: Iterable[MixedTables]) -> MixedTables:
    """Tables below each other."""
    listed = list(parts)

    def below(name: str) -> pd.DataFrame:
        tables = [getattr(part, name) for part in listed]
        filled = [table for table in tables if len(table)]
        return pd.concat(filled, ignore_index=True) if filled else tables[0]

    return MixedTables(**{f.name: below(f.name) for f in fields(MixedTables)})


def _by_time(analysis: str, sketch_rows: pd.DataFrame, cell_rows: pd.DataFrame, *, of_people: bool) -> MixedTables:
    parts = []
    for metric in METRICS:
        table, note = cell_rows, ""
        if metric in sketch_rows.columns:
            mine = sketch_rows[(sketch_rows["observer"] == PEOPLE) == of_people]
            if mine[metric].notna().any():
                table = sketch_rows
            else:
                note = "this protocol pools the answers of a cell, so that rows are cells and not sketches"
        mine = table[(table["observer"] == PEOPLE) == of_people]
        columns = {"concept": mine["concept"], "t": mine["condition"], metric: mine[metric]}
        rows = pd.DataFrame(columns if of_people else columns | {"model": mine["observer"]})
        several = not of_people and mine["observer"].nunique() > 1
        fixed = ("t_z", "model") if several else ("t_z",)
        parts.append(fit_formula(Formula(analysis, metric, metric, fixed, ("1", "t_z")), rows, note))
    return joined(parts)


def _design(formula: Formula, rows: pd.DataFrame) -> MixedDesign:
    """The model's columns; rows that share all regressors are given as one, which leaves the fit as it is."""
    if len(rows) == 0:
        raise ValueError("there are no rows without a missing value")
    t = rows["t"].to_numpy(float)
    if np.ptp(t) == 0:
        raise ValueError("there is one condition only, so nothing can depend on it")
    table = rows.assign(t_z=(t - t.mean()) / t.std(ddof=1))
    keys = [name for name in table.columns if name != formula.outcome]
    cells = table.groupby(keys, sort=False)[formula.outcome].agg(["size", "mean"]).reset_index()
    mean_N = table.groupby(keys, sort=False)[formula.outcome].transform("mean")
    return MixedDesign(
        outcome_N=cells["mean"].to_numpy(float),
        fixed=dict(_columns(cells, ("1", *formula.fixed))),
        random=dict(_columns(cells, formula.random)),
        group_N=cells["concept"].to_numpy(object),
        count_N=cells["size"].to_numpy(),
        within=float(((table[formula.outcome] - mean_N) ** 2).sum()),
    )


def _columns(table: pd.DataFrame, terms: tuple[str, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Name → column of every term; a factor has a column for each level but the first in alphabetical order."""
    for term in terms:
        if term == "1":
            yield INTERCEPT, np.ones(len(table))
        elif term == "model":
            for level in sorted(set(table["model"]))[1:]:
                yield f"model[{level}]", (table["model"] == level).to_numpy(float)
        else:
            yield term, np.prod([table[part].to_numpy(float) for part in term.split(":")], axis=0)


def _test_of_model(design: MixedDesign, full: MixedFit) -> LikelihoodRatio | None:
    levels = [name for name in design.fixed if name.startswith("model[")]
    if not levels:
        return None
    return likelihood_ratio_test(fit_mixed(design.without(*levels), reml=False, correlated=full.correlated), full)


def _one_model(rows: pd.DataFrame) -> str:
    return "one model, so that none differ" if "model" in rows.columns else ""


def _keyed(key: Mapping[str, str], table: pd.DataFrame) -> pd.DataFrame:
    for place, (name, value) in enumerate(key.items()):
        table.insert(place, name, value)
    return table


def _not_fitted(fact: Mapping[str, object], note: str) -> MixedTables:
    row = {**fact, "converged": False, "singular": False, "note": note}  # the numbers are missing
    return MixedTables(pd.DataFrame([row], columns=list(_FIT_COLUMNS)), pd.DataFrame(), pd.DataFrame())
