import dataclasses

import pytest

from humanlike.benchmarks.protocol import PRESETS, Protocol, preset, switch_values


def test_presets_hold_the_published_table():
    text, code, corrected = (preset(n) for n in ("paper_text", "paper_code", "corrected"))
    assert (text.people_accuracy, code.people_accuracy, corrected.people_accuracy) == (
        "all_labels", "first_guess", "first_guess",
    )  # fmt: skip
    assert (text.people_entropy, code.people_entropy, corrected.people_entropy) == (
        "pooled", "per_sketch", "per_sketch_chao_shen",
    )  # fmt: skip
    assert (text.model_snp, code.model_snp, corrected.model_snp) == ("exact", "paper", "exact")
    assert (text.no_error_cell, code.no_error_cell, corrected.no_error_cell) == ("missing", "one", "missing")
    assert (text.cv, code.cv, corrected.cv) == ("stratified", "stratified", "stratified_group")
    assert (text.alignment_point, code.alignment_point) == ("full_sample", "replicate_mean")
    assert (text.interval, code.interval, corrected.interval) == ("percentile", "percentile", "ratio_centred")


def test_override_is_recorded_and_null_keeps_the_preset():
    protocol = preset("paper_code").overridden({"interval": "jackknife", "cv": None, "model_snp": "paper"})
    record = protocol.record()
    assert record["preset"] == "paper_code"
    assert record["overridden"] == ["interval"]
    assert record["interval"] == "jackknife"
    assert set(record) == {"preset", "overridden", *switch_values()}


def test_every_preset_sets_every_switch_to_a_value_it_can_take():
    for protocol in PRESETS.values():
        for switch, allowed in switch_values().items():
            assert getattr(protocol, switch) in allowed


def test_protocol_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset("corrected").cv = "stratified"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: preset("papercode"), "did you mean 'paper_code'"),
        (lambda: preset("corrected").overridden({"peple_snp": "x"}), "did you mean 'people_snp'"),
        (lambda: preset("corrected").overridden({"interval": "percentiles"}), "did you mean 'percentile'"),
        (lambda: Protocol(**{**preset("corrected").switches, "name": "mine", "cv": 5}), "cv is 5"),
    ],
)
def test_misspelt_names_are_answered_with_the_nearest(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
