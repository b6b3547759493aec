import dataclasses

import pytest

from humanlike.benchmarks.protocol import PRESETS, Protocol, preset, switch_values

PUBLISHED_TABLE = {  # switch: paper_text, paper_code, corrected
    "people_accuracy": ("all_labels", "first_guess", "first_guess"),
    "people_entropy": ("pooled", "per_sketch", "per_sketch_chao_shen"),
    "people_snp": ("all_labels_exact", "first_guess_paper", "first_guess_exact"),
    "model_accuracy": ("hard_labels", "hard_labels", "hard_labels"),
    "model_entropy": ("pooled", "per_sketch", "per_sketch"),
    "model_snp": ("exact", "paper", "exact"),
    "no_error_cell": ("missing", "one", "missing"),
    "divergence": ("distance", "rank", "both"),
    "cv": ("stratified", "stratified", "stratified_group"),
    "alignment_point": ("full_sample", "replicate_mean", "full_sample"),
    "interval": ("percentile", "percentile", "ratio_centred"),
    "human_baseline": ("split_half", "split_half", "split_half_and_spearman_brown"),
    "stroke_count_model": ("intercept", "slope", "standardised_slope"),
    "welch_test": ("per_model", "repeated_model", "per_model_with_effect"),
}


def test_presets_hold_the_published_table_in_every_cell():
    presets = [preset(name).switches for name in ("paper_text", "paper_code", "corrected")]
    assert {switch: tuple(p[switch] for p in presets) for switch in presets[0]} == PUBLISHED_TABLE


def test_the_record_of_deviations_shows_the_same_table(repository):
    text = (repository / "DEVIATIONS.md").read_text(encoding="utf-8")
    for switch, values in PUBLISHED_TABLE.items():
        assert "| " + " | ".join(f"`{x}`" for x in (switch, *values)) + " |" in text


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
