from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.study.mixed_effects import (
    alignment_by_model,
    mixed_effects,
    models_by_time,
    people_by_time,
    strokes_by_time,
)
from humanlike.benchmarks.study.mixed_published import PUBLISHED_TERMS, with_published
from humanlike.stats.mixed import MixedDesign, fit_mixed

CONDITIONS = (4.0, 8.0, 16.0, 32.0)
MODELS = ("alpha", "beta", "gamma")


@pytest.fixture(scope="module")
def study():
    """12 concepts × 3 images × 4 conditions, people and three models, with real differences between concepts."""
    rng = np.random.default_rng(8)
    base = pd.DataFrame(
        [(f"c{c:02d}", t, f"c{c:02d}_{j}") for c in range(12) for j in range(3) for t in CONDITIONS],
        columns=["concept", "condition", "image_id"],
    )
    base["sketch_id"] = [f"s{i}" for i in range(len(base))]
    code = base["concept"].str[1:].astype(int).to_numpy()
    level, slope = rng.normal(size=12)[code], rng.normal(size=12)[code]
    t = np.log2(base["condition"].to_numpy()) - 3.5
    parts = []
    for place, name in enumerate(("people", *MODELS)):
        p = 0.45 + 0.1 * t + 0.12 * level + 0.04 * slope * t + 0.05 * place
        table = base.assign(
            accuracy=(rng.random(len(base)) < p) * 1.0, entropy=2 - p + 0.2 * rng.normal(size=len(base))
        )
        table.insert(0, "observer", name)
        parts.append(table)
    sketches = pd.concat(parts, ignore_index=True)
    cells = sketches.groupby(["observer", "concept", "condition"], as_index=False)[["accuracy", "entropy"]].mean()
    cells["snp"] = 0.6 + 0.2 * cells["accuracy"] + 0.05 * rng.normal(size=len(cells))
    strokes = base.assign(num_strokes=rng.poisson(np.exp(1 + 0.3 * t + 0.3 * level)).astype(float))
    return sketches, cells, strokes


def z_scored(t):
    return (t - t.mean()) / t.std(ddof=1)


def fitted(outcome, fixed, random, group, **kwargs):
    """The model from columns spelled out, one row an observation."""
    one = np.ones(len(outcome))
    arrays = [{k: np.asarray(v, float) for k, v in columns.items()} for columns in (fixed, random)]
    design = MixedDesign(
        np.asarray(outcome), *({"(Intercept)": one, **columns} for columns in arrays), np.asarray(group, object)
    )
    return fit_mixed(design, **kwargs)


def test_models_by_time_is_the_model_spelled_out(study):
    sketches, cells, _ = study
    tables = models_by_time(sketches, cells)
    for metric, table in {"accuracy": sketches, "entropy": sketches, "snp": cells}.items():
        rows = table[table["observer"] != "people"]
        t_z = z_scored(rows["condition"])
        contrasts = {f"model[{m}]": rows["observer"] == m for m in MODELS[1:]}
        args = (rows[metric], {"t_z": t_z, **contrasts}, {"t_z": t_z}, rows["concept"])
        restricted, full = fitted(*args), fitted(*args, reml=False)
        smaller = fitted(args[0], {"t_z": t_z}, *args[2:], reml=False)
        terms = tables.terms[tables.terms["metric"] == metric]
        assert tuple(terms["term"]) == restricted.fixed_names
        np.testing.assert_allclose(terms["estimate"], restricted.estimate_P, rtol=1e-6)
        np.testing.assert_allclose(terms["statistic"], restricted.statistic_P, rtol=1e-5)
        fit = tables.fits.set_index("metric").loc[metric]
        assert fit["chi2"] == pytest.approx(2 * (full.log_likelihood - smaller.log_likelihood), abs=1e-6)
        assert (fit["df"], fit["n"], fit["groups"], fit["dropped"]) == (2, len(rows), 12, 0)
        assert fit["log_likelihood"] == pytest.approx(full.log_likelihood, abs=1e-7)
        assert fit["log_likelihood_reml"] == pytest.approx(restricted.log_likelihood, abs=1e-7)
        assert fit["formula"] == f"{metric} ~ t_z + model + (1 + t_z | concept)"


def test_people_by_time_has_no_model_term(study):
    sketches, cells, _ = study
    tables = people_by_time(sketches, cells)
    rows = sketches[sketches["observer"] == "people"]
    t_z = z_scored(rows["condition"])
    fit = fitted(rows["entropy"], {"t_z": t_z}, {"t_z": t_z}, rows["concept"])
    terms = tables.terms[tables.terms["metric"] == "entropy"].set_index("term")
    assert list(terms.index) == ["(Intercept)", "t_z"]
    assert terms.loc["t_z", "estimate"] == pytest.approx(fit.estimate_P[1], rel=1e-6)
    assert terms.loc["t_z", "df"] == pytest.approx(fit.df_P[1], rel=1e-3)
    assert tables.fits["chi2"].isna().all()
    assert not tables.fits["note"].str.contains("one model").any()


@pytest.mark.parametrize(("metric", "bar"), [("accuracy", "|"), ("entropy", "||"), ("snp", "|")])
def test_alignment_is_the_model_spelled_out(study, metric, bar):
    _, cells, _ = study
    tables = alignment_by_model(cells)
    wide = cells.pivot(index=["concept", "condition"], columns="observer", values=metric)
    rows = wide[list(MODELS)].stack().rename("model_metric").reset_index()
    people = wide["people"].loc[pd.MultiIndex.from_frame(rows[["concept", "condition"]])].to_numpy()
    t_z = z_scored(rows["condition"])
    crossed = {
        "model_metric": rows["model_metric"],
        "t_z": t_z,
        "model_metric:t_z": rows["model_metric"] * t_z,
    }
    contrasts = {f"model[{m}]": rows["observer"] == m for m in MODELS[1:]}
    fit = fitted(people, {**crossed, **contrasts}, crossed, rows["concept"], correlated=bar == "|")
    terms = tables.terms[tables.terms["metric"] == metric].set_index("term")
    np.testing.assert_allclose(terms.loc[list(fit.fixed_names), "estimate"], fit.estimate_P, rtol=1e-4, atol=1e-6)
    row = tables.fits.set_index("metric").loc[metric]
    assert row["formula"] == (
        "human_metric ~ model_metric + t_z + model_metric:t_z + model + "
        f"(1 + model_metric + t_z + model_metric:t_z {bar} concept)"
    )
    assert row["log_likelihood_reml"] == pytest.approx(fit.log_likelihood, abs=1e-6)
    correlations = tables.random[(tables.random["metric"] == metric) & (tables.random["second"] != "")]
    assert len(correlations) == (6 if bar == "|" else 0)


def test_stroke_models_differ_in_their_random_part_only(study):
    strokes = study[2]
    tables = {switch: strokes_by_time(strokes, switch) for switch in ("intercept", "slope", "standardised_slope")}
    fit = {switch: t.fits.iloc[0] for switch, t in tables.items()}
    assert fit["intercept"]["formula"] == "num_strokes ~ t + (1 | concept)"
    assert fit["slope"]["formula"] == "num_strokes ~ t + (1 + t | concept)"
    # the same model in other coordinates
    assert fit["slope"]["log_likelihood"] == pytest.approx(fit["standardised_slope"]["log_likelihood"], abs=1e-6)
    slopes = {switch: t.terms.set_index("term").loc["t"] for switch, t in tables.items()}
    assert slopes["slope"]["std_error"] == pytest.approx(slopes["standardised_slope"]["std_error"], rel=1e-5)
    direct = fitted(strokes["num_strokes"], {"t": strokes["condition"]}, {}, strokes["concept"])
    assert slopes["intercept"]["estimate"] == pytest.approx(direct.estimate_P[1], rel=1e-9)
    assert slopes["intercept"]["std_error"] == pytest.approx(direct.std_error_P[1], rel=1e-6)
    with pytest.raises(ValueError, match="it can be one of intercept, slope"):
        strokes_by_time(strokes, "none")


def test_missing_values_are_dropped_and_counted(study):
    sketches, cells, _ = study
    gone = cells.assign(snp=cells["snp"].where(cells.index % 5 != 0))
    fits = mixed_effects(sketches, gone).fits.set_index(["analysis", "metric"])
    models = gone[gone["observer"] != "people"]
    assert fits.loc[("models_by_time", "snp"), "dropped"] == models["snp"].isna().sum()
    both = models.merge(gone[gone["observer"] == "people"], on=["concept", "condition"])
    missing = (both["snp_x"].isna() | both["snp_y"].isna()).sum()
    assert fits.loc[("alignment", "snp"), "dropped"] == missing
    assert fits.loc[("alignment", "snp"), "n"] == len(models) - missing
    assert fits.loc[("models_by_time", "accuracy"), "dropped"] == 0


def test_what_cannot_be_fitted_says_why(study):
    sketches, cells, strokes = study
    one = [table[table["condition"] == 4] for table in study]
    fits = mixed_effects(*one).fits
    assert fits["note"].str.contains("one condition only").all()
    assert not fits["converged"].any()
    assert fits[["log_likelihood", "chi2"]].isna().all(axis=None)
    alone = [t[t["observer"].isin(["people", "alpha"])] for t in (sketches, cells)]
    fits = mixed_effects(*alone, strokes).fits.set_index(["analysis", "metric"])
    assert fits.loc[("models_by_time", "accuracy"), "note"].startswith("one model")
    assert "cannot tell 4 random coefficients" in fits.loc[("alignment", "snp"), "note"]
    empty = mixed_effects(sketches, cells.assign(snp=np.nan)).fits.set_index(["analysis", "metric"])
    assert "no rows without a missing value" in empty.loc[("people_by_time", "snp"), "note"]


def test_pooled_entropies_are_fitted_on_cells_and_said_so(study):
    sketches, cells, _ = study
    fits = people_by_time(sketches.assign(entropy=np.nan), cells).fits.set_index("metric")
    assert fits.loc["entropy", "n"] == 48
    assert "pools the answers" in fits.loc["entropy", "note"]
    assert fits.loc["accuracy", "n"] == 144


def test_singular_fits_are_reported(study):
    sketches, cells, _ = study
    flat = cells.assign(
        snp=cells.groupby(["observer", "condition"])["snp"].transform("mean") + 1e-3 * (cells.index % 7)
    )
    flat["snp"] -= flat.groupby(["observer", "concept"])["snp"].transform("mean")
    tables = models_by_time(sketches, flat)
    row = tables.fits.set_index("metric").loc["snp"]
    assert row["singular"]
    assert "singular fit" in row["note"]
    assert tables.terms.loc[tables.terms["metric"] == "snp", "singular"].all()


def test_without_people_only_models_are_fitted(study):
    sketches, cells, _ = study
    alone = mixed_effects(*(t[t["observer"] != "people"] for t in (sketches, cells)))
    assert set(alone.fits["analysis"]) == {"models_by_time"}


def test_published_numbers_stand_beside_the_terms_they_are_of(study):
    tables = with_published(mixed_effects(*study))
    known = tables.terms.dropna(subset="published")
    assert len(known) == len(PUBLISHED_TERMS)
    assert tables.fits["published_chi2"].notna().sum() == 6
    assert list(tables.fits["analysis"]) == list(mixed_effects(*study).fits["analysis"])
