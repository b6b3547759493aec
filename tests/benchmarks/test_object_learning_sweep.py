"""Analyses of a sweep, against a made-up sweep whose effects are known and against scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from humanlike.benchmarks.object_learning_sweep import SweepSettings, analyse_sweep

RULES = ("square", "hinge", "mae")
NETWORKS = {"alexnet": 4, "resnet": 6}
KEY = ["experiment", "backbone", "layer", "rule"]


def made_up_models(seed=0):
    """Scores that fall with depth, hardly move with the rule, and are related between the experiments."""
    rng, rows = np.random.default_rng(seed), []
    for backbone, depth in NETWORKS.items():
        for k in range(depth):
            base = 0.01 + 0.08 * (1 - k / (depth - 1)) + 0.004 * rng.random()
            for r, rule in enumerate(RULES):
                for experiment, factor in (("high_variation", 1.0), ("one_shot", 2.0)):
                    value = factor * (base + 1e-4 * r + 1e-5 * rng.random())
                    rows.append(
                        {
                            "experiment": experiment, "backbone": backbone, "layer": f"l{k}",
                            "relative_depth": k / (depth - 1), "rule": rule, "msen_paper": value,
                            "msen_paper_ci_low": value - 1e-3, "msen_paper_ci_high": value + 1e-3,
                            "msen_v2": value - 0.004, "noise_floor": 0.004, "random_guess_paper": 0.05 * factor,
                            "p_null": 0.001 if k < depth - 1 else 0.2, "accuracy": 0.9 - value,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def made_up_replicates(models, spread):
    noise = np.random.default_rng(1).normal(0, spread, (len(models), 200))
    values = models["msen_paper"].to_numpy()[:, None] + 0.002 + noise
    return pd.concat([models[KEY], pd.DataFrame(values, columns=[f"r{b}" for b in range(200)])], axis=1)


def made_up_phases(models):
    rows = models.loc[models["experiment"] == "high_variation", ["backbone", "layer", "rule", "msen_paper"]]
    parts = []
    for phase, people in (("early", 0.72), ("late", 0.85)):
        for quartile in ("all", "1", "4"):
            known = {"phase": phase, "quartile": quartile, "accuracy_people": people}
            accuracy = 0.75 - rows["msen_paper"] if phase == "early" else 0.88
            p = 0.001 if quartile == "all" else 0.5
            parts.append(rows.drop(columns="msen_paper").assign(accuracy=accuracy, p_value=p, **known))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def models():
    return made_up_models()


@pytest.fixture(scope="module")
def result(models):
    inputs = {"models": models, "replicates": made_up_replicates(models, 1e-4), "phases": made_up_phases(models)}
    return analyse_sweep(inputs, SweepSettings(strong_share=0.1, ranked=8))


def test_the_best_stand_first_and_a_share_of_them_is_strong(models, result):
    board = result.tables["leaderboard"]
    for experiment, rows in board.groupby("experiment"):
        assert rows["msen_paper"].is_monotonic_increasing
        assert rows["place"].tolist() == list(range(1, 31))
        assert rows["is_strong"].tolist() == [True] * 3 + [False] * 27
        expected = models[models["experiment"] == experiment]["msen_paper"].min()
        assert rows["msen_paper"].iloc[0] == expected
    assert result.counts["high_variation_models"] == 30
    assert result.counts["one_shot_encoding_stages"] == 10
    assert result.counts["one_shot_networks"] == 2


def test_the_encoding_stage_explains_what_it_was_made_to_explain(models, result):
    table = result.tables["anova"].set_index(["experiment", "source"])
    for experiment in ("high_variation", "one_shot"):
        rows = models[models["experiment"] == experiment]
        value = rows.pivot(index=["backbone", "layer"], columns="rule", values="msen_paper").to_numpy()
        total = ((value - value.mean()) ** 2).sum()
        stage = 3 * ((value.mean(1) - value.mean()) ** 2).sum() / total
        rule = 10 * ((value.mean(0) - value.mean()) ** 2).sum() / total
        assert table.loc[(experiment, "encoding stage"), "share"] == pytest.approx(stage)
        assert table.loc[(experiment, "update rule"), "share"] == pytest.approx(rule)
        assert stage > 0.998
        assert rule < 0.001


def test_depth_and_relation_are_scipys(models, result):
    depth = result.tables["depth"].set_index(["experiment", "backbone"])
    rows = models[models["experiment"] == "one_shot"].groupby(["backbone", "layer"], sort=False)
    stages = rows.agg(depth=("relative_depth", "first"), value=("msen_paper", "mean")).reset_index()
    for name, group in [*stages.groupby("backbone"), ("all networks", stages)]:
        expected = stats.spearmanr(group["depth"], group["value"])
        assert depth.loc[("one_shot", name), "rho"] == pytest.approx(expected.statistic)
        assert depth.loc[("one_shot", name), "p_value"] == pytest.approx(expected.pvalue)
    assert depth.loc[("one_shot", "alexnet"), "best_layer"] == "l3"
    wide = models.pivot(index=["backbone", "layer", "rule"], columns="experiment", values="msen_paper")
    relation = result.tables["relation"].set_index("over").loc["models"]
    assert relation["rho"] == pytest.approx(stats.spearmanr(wide["high_variation"], wide["one_shot"]).statistic)
    assert relation["pearson_log"] == pytest.approx(stats.pearsonr(*np.log(wide.to_numpy()).T).statistic)
    assert result.tables["conventions"]["rho"].tolist() == pytest.approx([1.0, 1.0])


def test_summary_counts_guessers_and_rejections(models, result):
    row = result.tables["summary"].set_index("experiment").loc["high_variation"]
    board = result.tables["leaderboard"].query("experiment == 'high_variation'")
    assert (row["floor"], row["random_guess"]) == (0.004, 0.05)
    assert row["better_than_guessing"] == (board["msen_paper"] < 0.05).sum()
    assert row["rejected"] == (board["p_null"] <= 0.05).sum() == 24
    assert row["root_best"] == pytest.approx(board["msen_paper"].min() ** 0.5)
    own = analyse_sweep({"models": models.assign(p_null_v2=1.0, p_null_paper=0.001)}, SweepSettings(convention="v2"))
    v2 = own.tables["summary"].set_index("experiment").loc["high_variation"]
    assert (v2["rejected"], v2["floor"]) == (0, 0)
    rules = result.tables["rules"].query("experiment == 'one_shot'").set_index("rule")
    assert rules.index.tolist() == ["square", "hinge", "mae"]
    assert rules.loc["square", "best_of_stages"] == 10


def test_ranks_separate_stages_and_not_what_is_alike(models, result):
    table = result.tables["rank_groups"].query("experiment == 'high_variation'")
    assert len(table) == 8
    assert table["compared"].eq(8).all()
    assert table["rank"].iloc[0] == 1
    blurred = analyse_sweep({"models": models, "replicates": made_up_replicates(models, 0.1)})
    ranks = blurred.tables["rank_groups"]
    assert ranks["rank"].eq(1).all()
    assert ranks["letters"].eq("a").all()


def test_phases_count_models_beside_people(result):
    table = result.tables["phases_strong"].set_index(["over", "phase", "quartile"])
    early = table.loc[("strong baselines", "early", "all")]
    late = table.loc[("strong baselines", "late", "all")]
    assert (early["n"], early["worse"], early["alike"], early["better"]) == (3, 0, 0, 3)
    assert (late["worse"], late["better"]) == (0, 3)
    assert table.loc[("all models", "early", "4"), "alike"] == 30
    worse = table.loc[("all models", "early", "all"), "worse"]
    assert worse == (result.tables["models"].query("experiment == 'high_variation'")["msen_paper"] > 0.03).sum()


def test_transformations_average_levels_of_the_strong(models):
    strong = models.query("experiment == 'high_variation'").nsmallest(2, "msen_paper")
    rows = [
        {**{k: row[k] for k in KEY[1:]}, "transformation": kind, "level": level,
         "accuracy": base + level / 10 + i / 100, "accuracy_people": 0.9 - level / 10}
        for i, row in enumerate(strong.to_dict("records"))
        for kind, base in (("scale", 0.6), ("blur", 0.5))
        for level in (1, 2)
    ]  # fmt: skip
    table = analyse_sweep(
        {"models": models, "one_shot": pd.DataFrame(rows)}, SweepSettings(strong_share=2 / 30)
    ).tables["transformations"].set_index("transformation")  # fmt: skip
    assert table.index.tolist() == ["scale", "blur"]
    assert table.loc["scale", ["accuracy", "lowest", "highest"]].tolist() == pytest.approx([0.755, 0.75, 0.76])
    assert table.loc["blur", "difference"] == pytest.approx(0.655 - 0.75)
    assert table.loc["blur", "n"] == 2


def test_what_cannot_be_made_says_why(models):
    lone = models.query("experiment == 'high_variation' and layer == 'l0' and rule == 'hinge' and backbone == 'resnet'")
    result = analyse_sweep({"models": lone.drop(columns="msen_v2")})
    assert set(result.missing) == {
        "rank_groups", "anova", "depth", "conventions", "relation", "experiments", "phases_strong", "transformations",
        "individual_variation", "individuals",
    }  # fmt: skip
    assert result.missing["anova"] == "it needs two or more encoding stages and two or more update rules"
    assert result.tables["leaderboard"]["is_strong"].tolist() == [True]


def test_several_seeds_are_replicates_of_the_anova_and_averaged_elsewhere(models):
    both = pd.concat([models.assign(seed=0), made_up_models(5).assign(seed=1)], ignore_index=True)
    result = analyse_sweep({"models": both})
    assert "interaction" in result.tables["anova"]["source"].tolist()
    assert result.flags == ["seeds_averaged:2"]
    board = result.tables["leaderboard"]
    row = board.iloc[0]
    same = both[(both[KEY] == row[KEY]).all(axis=1)]
    assert len(same) == 2
    assert row["msen_paper"] == pytest.approx(same["msen_paper"].mean())
    assert "msen_paper_ci_low" not in board


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.iloc[:0], "needs a table of models"),
        (lambda m: m.drop(columns="rule"), r"lacks the column\(s\) \['rule'\]"),
        (lambda m: pd.concat([m, m.head(2)]), "2 model\\(s\\) occur twice, for example alexnet"),
        (lambda m: m.assign(msen_paper=np.nan), "no model has a msen_paper"),
        (lambda m: m.assign(experiment="other"), r"got \['other'\]"),
        (lambda m: m.assign(noise_floor=np.arange(len(m))), "not compared with the same people"),
    ],
)
def test_bad_tables_are_refused_with_a_sentence(models, change, said):
    with pytest.raises(ValueError, match=said):
        analyse_sweep({"models": change(models)})


@pytest.mark.parametrize("setting", [{"convention": "v3"}, {"strong_share": 0.0}, {"ranked": 1}])
def test_bad_settings(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        SweepSettings(**setting)
