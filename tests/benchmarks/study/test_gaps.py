from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from humanlike.benchmarks.study.gaps import consistency_gaps, order_agreement
from humanlike.stats import gap_to_consistency

MODELS = ("alpha", "beta", "gamma")


@pytest.fixture
def study():
    rng = np.random.default_rng(2)
    rows, replicates, splits = [], {}, {}
    for metric, top in {"accuracy": 0.8, "snp": 0.5}.items():
        splits[metric] = top + 0.02 * rng.normal(size=100)
        replicates[metric] = {}
        for place, name in enumerate(MODELS):
            value = top - 0.1 * (place + 1)
            rows.append({"observer": name, "metric": metric, "estimate": value, "full_sample": value})
            replicates[metric][name] = value - 0.03 + 0.04 * rng.normal(size=200)
    replicates["accuracy"]["beta"][:3] = np.nan
    return pd.DataFrame(rows), replicates, splits


def test_per_model_is_scipys_welch_test_of_each(study):
    table = consistency_gaps(*study, welch_test="per_model").set_index(["metric", "observer"])
    _, replicates, splits = study
    assert list(table.index) == [(m, o) for m in ("accuracy", "snp") for o in MODELS]
    for (metric, name), row in table.iterrows():
        usable = replicates[metric][name]
        usable = usable[np.isfinite(usable)]
        referee = stats.ttest_ind(splits[metric], usable, equal_var=False)
        assert (row["statistic"], row["df"], row["p_value"]) == pytest.approx(
            (referee.statistic, referee.df, referee.pvalue)
        )
        assert row["estimate"] == pytest.approx(splits[metric].mean() - usable.mean())
        assert np.isnan(row["ci_low"])
        assert (row["n"], row["n_splits"], row["tested"], row["note"]) == (len(usable), 100, name, "")


def test_with_effect_gives_the_gap_of_the_full_sample_and_an_interval(study):
    table = consistency_gaps(*study).set_index(["metric", "observer"])
    alignment, replicates, splits = study
    value = alignment.set_index(["metric", "observer"])["full_sample"]
    for key, row in table.iterrows():
        gap = gap_to_consistency(value[key], replicates[key[0]][key[1]], splits[key[0]])
        assert (row["estimate"], row["ci_low"], row["ci_high"]) == (
            gap.difference,
            gap.interval.low,
            gap.interval.high,
        )
        assert row["estimate"] == pytest.approx(splits[key[0]].mean() - value[key])
        assert row["ci_low"] < row["estimate"] < row["ci_high"]
    assert (table["statistic"] == consistency_gaps(*study, welch_test="per_model")["statistic"].to_numpy()).all()


def test_more_replicates_raise_t_but_not_the_effect(study):
    alignment, replicates, splits = study
    more = {m: {o: np.tile(v, 4) for o, v in models.items()} for m, models in replicates.items()}
    often = {m: np.tile(v, 4) for m, v in splits.items()}
    once, many = consistency_gaps(*study), consistency_gaps(alignment, more, often)
    np.testing.assert_allclose(many["statistic"] / once["statistic"], 2, rtol=0.02)
    np.testing.assert_allclose(many["estimate"], once["estimate"])
    np.testing.assert_allclose(many["ci_high"], once["ci_high"], atol=5e-3)


def test_repeated_model_shows_the_last_ones_test_in_every_row(study):
    repeated = consistency_gaps(*study, welch_test="repeated_model")
    own = consistency_gaps(*study, welch_test="per_model")
    for metric in ("accuracy", "snp"):
        rows, last = repeated[repeated["metric"] == metric], own[own["metric"] == metric].iloc[-1]
        assert (rows["statistic"] == last["statistic"]).all()
        assert (rows["tested"] == "gamma").all()
        assert rows["note"].str.contains("gamma repeated").tolist() == [True, True, False]


def test_switch_and_missing_models_are_named(study):
    with pytest.raises(ValueError, match="it can be one of per_model"):
        consistency_gaps(*study, welch_test="each")
    alignment, replicates, splits = study
    with pytest.raises(ValueError, match="no row of 'gamma' for 'accuracy'"):
        consistency_gaps(alignment[alignment["observer"] != "gamma"], replicates, splits)
    assert len(consistency_gaps(alignment, replicates, {"snp": splits["snp"]})) == 3
    assert len(consistency_gaps(alignment, {}, splits)) == 0


def test_order_agreement_is_scipys_spearman_of_the_pivot(study):
    alignment = study[0].copy()
    alignment.loc[alignment["metric"] == "snp", "estimate"] = [0.2, 0.5, 0.4]
    table = order_agreement(alignment).set_index(["first", "second"])
    assert table.loc[("accuracy", "snp"), "rho"] == pytest.approx(
        stats.spearmanr([0.7, 0.6, 0.5], [0.2, 0.5, 0.4]).statistic
    )
    assert list(dict.fromkeys(table.index.get_level_values(0))) == ["accuracy", "snp"]
