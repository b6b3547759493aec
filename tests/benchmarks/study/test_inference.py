from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from humanlike.benchmarks.study.inference import (
    alignment_table,
    comparisons_table,
    power_table,
    rank_groups_table,
    resampled_alignments,
)
from humanlike.stats import (
    CellDesign,
    CodedResponses,
    SplitHalf,
    alignment_r2,
    cell_metrics,
    image_weights,
    model_statistics,
    people_statistics,
    ratio_centred,
)
from humanlike.stats.crossed import PeopleUnderWeights, participant_weights
from humanlike.stats.power import needed_size, variance_components

B = 400
ESTIMATES = {
    "accuracy": {"a": 0.8, "b": 0.5, "c": 0.49, "d": np.nan},
    "snp": {"a": 0.2, "b": 0.21, "c": 0.7, "d": 0.3},
}


@pytest.fixture(scope="module")
def replicates() -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    out = {}
    for metric, by_observer in ESTIMATES.items():
        shared_B = rng.normal(0, 0.05, B)
        out[metric] = {name: 0.9 * e + shared_B + rng.normal(0, 0.01, B) for name, e in by_observer.items()}
    return out


def split_half(seed: int = 0) -> SplitHalf:
    rng = np.random.default_rng(seed)
    return SplitHalf(
        r2_S=0.6 + rng.normal(0, 0.01, 20),
        correlation_S=0.78 + rng.normal(0, 0.01, 20),
        correlation_B=0.78 + rng.normal(0, 0.02, B),
        r2_B=0.6 + rng.normal(0, 0.03, B),
    )


def test_alignment_stands_beside_its_correction_and_its_ceiling(replicates):
    half = split_half()
    table = alignment_table(ESTIMATES, replicates, {"accuracy": half}).set_index(["metric", "observer"])
    assert len(table) == 8
    row = table.loc["accuracy", "a"]
    wanted = ratio_centred(0.8, replicates["accuracy"]["a"])
    assert (row["ci_low"], row["ci_high"], row["interval"]) == (wanted.low, wanted.high, "ratio_centred")
    brown = np.mean(2 * half.correlation_S / (1 + half.correlation_S))
    assert row["corrected"] == pytest.approx(0.8 / brown, rel=1e-12)
    assert row["fraction_of_ceiling"] == pytest.approx(0.8 / half.r2_S.mean(), rel=1e-12)
    split_B = np.arange(B) * 20 // B
    ceiling_B = half.r2_S.mean() + half.r2_B - half.r2_S[split_B]
    fraction = ratio_centred(0.8 / half.r2_S.mean(), replicates["accuracy"]["a"] / ceiling_B)
    assert (row["fraction_low"], row["fraction_high"]) == pytest.approx((fraction.low, fraction.high), rel=1e-12)
    assert row["corrected_low"] < row["corrected"] < row["corrected_high"]
    assert row["note"] == ""
    assert np.isnan(table.loc["accuracy", "d"]["estimate"])
    without = table.loc["snp", "a"]
    assert np.isnan(without["ceiling"])
    assert without["note"] == "people's halves are not known"


def test_unreliable_people_leave_a_note(replicates):
    nothing = SplitHalf(np.full(4, -0.01), np.full(4, 0.02))
    row = alignment_table({"snp": {"a": 0.2}}, replicates, {"snp": nothing}).iloc[0]
    assert np.isnan(row["corrected"])
    assert np.isnan(row["fraction_of_ceiling"])
    assert row["note"].count(";") == 1


def test_pairs_and_ranks_agree(replicates):
    pairs = comparisons_table(ESTIMATES, replicates)
    assert len(pairs) == 12
    assert set(pairs["metric"]) == {"accuracy", "snp"}
    by_pair = pairs.set_index(["metric", "a", "b"])
    assert by_pair.loc[("accuracy", "a", "b"), "difference"] == pytest.approx(0.3)
    assert by_pair.loc[("accuracy", "a", "b"), "separable"]
    assert not by_pair.loc[("accuracy", "b", "c"), "separable"]
    assert np.isnan(by_pair.loc[("accuracy", "a", "d"), "p_value"])
    ranks = rank_groups_table(ESTIMATES, replicates).set_index(["metric", "observer"])
    assert ranks.loc["accuracy"]["rank"].to_dict() == {"a": 1, "b": 2, "c": 2, "d": 0}
    assert ranks.loc["accuracy"]["letters"].to_dict() == {"a": "a", "b": "b", "c": "b", "d": ""}
    # The family is the pairs of one metric: 3 with a value under accuracy, 6 under snp.
    known = pairs[(pairs["metric"] == "accuracy") & pairs["p_value"].notna()]
    assert known["p_adjusted"].min() == pytest.approx(known["p_value"].min() * 3)
    for metric, letters in ranks["letters"].groupby("metric"):
        for row in pairs[pairs["metric"] == metric].itertuples():
            shared = set(letters[metric, row.a]) & set(letters[metric, row.b])
            if "" not in (letters[metric, row.a], letters[metric, row.b]):
                assert bool(shared) == (not row.separable)


def test_power_is_of_the_components(replicates):
    people = {m: {n: 0.9 * v for n, v in by.items()} for m, by in replicates.items()}
    table = power_table(ESTIMATES, replicates, people, images=16, participants=100).set_index(["metric", "a", "b"])
    pairs = comparisons_table(ESTIMATES, replicates).set_index(["metric", "a", "b"])
    other = comparisons_table(ESTIMATES, people).set_index(["metric", "a", "b"])
    key = ("accuracy", "b", "c")
    parts = variance_components(pairs.loc[key, "std_error"] ** 2, other.loc[key, "std_error"] ** 2)
    wanted = needed_size(pairs.loc[key, "difference"], parts, 16, 100)
    assert table.loc[key, "power"] == pytest.approx(wanted.power)
    assert table.loc[key, "images_both"] == wanted.images_both > 16
    assert np.isnan(table.loc[("accuracy", "a", "d"), "power"])
    assert len(table) == 12


def test_order_of_the_observers_does_not_matter(replicates):
    turned = {m: dict(reversed(by.items())) for m, by in ESTIMATES.items()}
    pd.testing.assert_frame_equal(rank_groups_table(ESTIMATES, replicates), rank_groups_table(turned, replicates))


def test_resampled_alignments_are_those_of_their_cells():
    rng = np.random.default_rng(1)
    concept, image, condition = (a.ravel() for a in np.indices((6, 3, 4)))
    design = CellDesign.from_columns(concept, image, condition)
    person, item = (a.ravel() for a in np.indices((9, len(design))))
    guess = np.where(
        rng.random(len(item)) < 0.1 * (concept + condition)[item], concept[item], rng.integers(6, size=len(item))
    )
    coded = CodedResponses(person, item, guess[:, None])
    model = model_statistics(rng.dirichlet(np.ones(6), len(design)), concept)
    people = PeopleUnderWeights(design, coded, concept)
    r2 = {r: resampled_alignments(people, {"m": model}, r, 5, seed=2) for r in ("images", "participants", "crossed")}
    images = image_weights(design, 5, seed=2)
    usual = cell_metrics(design, people_statistics(coded, concept), images)["accuracy"]
    wanted = alignment_r2(usual, cell_metrics(design, model, images)["accuracy"], design.condition_C)
    np.testing.assert_allclose(r2["images"]["accuracy"]["m"], wanted, rtol=1e-10)
    drawn = people.cells(participant_weights(9, 5, seed=2))["accuracy"]
    wanted = alignment_r2(drawn, cell_metrics(design, model)["accuracy"], design.condition_C)
    np.testing.assert_allclose(r2["participants"]["accuracy"]["m"], wanted, rtol=1e-10)
    assert np.isnan(r2["crossed"]["snp"]["m"]).all()


def test_sentences():
    with pytest.raises(ValueError, match="no replicates"):
        alignment_table({"snp": {"a": 0.1}}, {"snp": {}})
    assert comparisons_table({"snp": {}}, {}).empty
