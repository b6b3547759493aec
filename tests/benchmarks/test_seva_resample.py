"""What a replicate draws anew: images, participants, or both."""

from __future__ import annotations

import numpy as np
import pytest

from humanlike.benchmarks.seva import SevaBenchmark

METRICS = ("accuracy", "entropy", "snp")


def run(study, readout, **kwargs):
    data, features = study
    return SevaBenchmark(**{"replicates": 60, "splits": 10, **kwargs}).run(data, features, readout)


def width(score) -> float:
    return score.ci_high - score.ci_low


def test_values_do_not_depend_on_what_is_resampled_and_intervals_do(study, readout):
    images, people, both = (run(study, readout, resample=r) for r in ("images", "participants", "crossed"))
    for name, score in images.scores.items():
        if name.startswith("jsd") or score.value is None:
            continue
        assert people.scores[name].value == pytest.approx(score.value, abs=1e-12), name
        assert both.scores[name].value == pytest.approx(score.value, abs=1e-12), name
    for metric in METRICS:
        alone, crossed, usual = (r.scores[f"{metric}_people"] for r in (people, both, images))
        assert width(alone) > 0
        assert width(crossed) > 0.95 * width(usual)  # participants add variance or none; ends are quantiles of 60
        # A model's own scores do not depend on who else would have answered.
        own = people.scores[metric]
        assert own.value is not None
        assert own.ci_low is own.ci_high is None
        assert both.scores[metric] == images.scores[metric]
        assert width(people.scores[f"alignment_{metric}"]) > 0
    assert both.details["interval"]["resample"] == "crossed"


def test_corrected_alignment_is_the_ratio_to_the_reliability(study, readout):
    result = run(study, readout)
    assert result.scores["alignment_snp_corrected"].value is None  # made-up people err at random: nothing to rely on
    assert result.details["human_consistency"]["snp"]["reliability"] < 0.1
    assert "alignment_snp_corrected_undefined" in result.flags
    for metric in ("accuracy", "entropy"):
        aligned, corrected = result.scores[f"alignment_{metric}"], result.scores[f"alignment_{metric}_corrected"]
        reliability = result.details["human_consistency"][metric]["reliability"]
        assert corrected.value == pytest.approx(aligned.value / reliability, rel=1e-12)
        assert corrected.ci_low < corrected.value < corrected.ci_high


def test_runs_repeat_themselves(study, readout):
    first, second = (run(study, readout, resample="crossed") for _ in range(2))
    assert first.scores == second.scores


def test_order_of_the_data_does_not_matter(study, readout, features_of):
    data, features = study
    order = np.random.default_rng(0).permutation(len(data))
    other = data.select(order), features_of(features.f_ND[order])
    first, second = (run(s, readout, resample="crossed").scores for s in (study, other))
    for name, score in first.items():
        for end in ("value", "ci_low", "ci_high"):
            one, other_one = getattr(score, end), getattr(second[name], end)
            assert (one is None) == (other_one is None), (name, end)
            assert one is None or other_one == pytest.approx(one, rel=1e-10), (name, end)


def test_sentences():
    with pytest.raises(ValueError, match="resample is 'people'"):
        SevaBenchmark(resample="people")
    with pytest.raises(ValueError, match="jackknife leaves out one image"):
        SevaBenchmark(resample="crossed", interval="jackknife")
