from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from humanlike.stats import PeopleSwitches, cell_metrics, condition_summary, model_statistics, people_statistics


def check(summary, value, condition, over):
    frame = pd.DataFrame({"value": value, "condition": condition}).dropna()
    grouped = frame.groupby("condition")["value"]
    np.testing.assert_allclose(summary.mean_T, grouped.mean(), atol=1e-12)
    np.testing.assert_allclose(summary.sem_T, grouped.sem(), atol=1e-12)
    np.testing.assert_array_equal(summary.n_T, grouped.count())
    assert summary.over == over


def test_people_by_condition_equal_pandas(study, naive):
    side = people_statistics(study.coded, study.target_N, study.ranks_LL)
    summary = condition_summary(study.design, side)
    judged = study.judgments.assign(
        right=[
            g[0] == study.target_N[i] for i, g in zip(study.judgments["item"], study.judgments["guesses"], strict=True)
        ]
    )
    items = range(len(study.items))
    check(
        summary["accuracy"], judged.groupby("item")["right"].mean().reindex(items), study.items["condition"], "sketches"
    )
    entropy = judged.groupby("item")["guesses"].apply(lambda g: naive["entropy"]([x for t in g for x in t], "plugin"))
    check(summary["entropy"], entropy.reindex(items), study.items["condition"], "sketches")
    cells = cell_metrics(study.design, side)["snp"][0]
    check(summary["snp"], cells, study.design.condition_C, "concepts")


def test_model_by_condition_equals_pandas(study):
    summary = condition_summary(study.design, model_statistics(study.proba_NL, study.target_N))
    check(
        summary["accuracy"],
        (study.proba_NL.argmax(axis=1) == study.target_N).astype(float),
        study.items["condition"],
        "sketches",
    )
    check(summary["entropy"], scipy.stats.entropy(study.proba_NL, axis=1), study.items["condition"], "sketches")
    assert np.isnan(summary["snp"].mean_T).all()
    assert summary["snp"].n_T.tolist() == [0, 0, 0]


def test_pooled_entropy_is_summarised_over_concepts(study):
    side = people_statistics(study.coded, study.target_N, switches=PeopleSwitches(entropy="pooled"))
    cells = cell_metrics(study.design, side)["entropy"][0]
    check(condition_summary(study.design, side)["entropy"], cells, study.design.condition_C, "concepts")


def test_one_sketch_has_no_standard_error(study):
    one = study.items.index[:1]
    design = type(study.design).from_columns(
        study.items["concept"][one], study.items["image_id"][one], study.items["condition"][one]
    )
    summary = condition_summary(design, model_statistics(study.proba_NL[:1], study.target_N[:1]))
    assert np.isnan(summary["accuracy"].sem_T).all()
    assert summary["accuracy"].mean_T[0] == pytest.approx(float(study.proba_NL[0].argmax() == study.target_N[0]))
