from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from humanlike.stats import (
    Interval,
    alignment_r2,
    basic,
    condition_model_r2,
    condition_r2,
    difference,
    jackknife,
    percentile,
    ratio_centred,
    recentred,
)

REPLICATES = np.random.default_rng(0).gamma(20, 0.02, 500)


def test_formulas():
    m, low, high = REPLICATES.mean(), *np.percentile(REPLICATES, [2.5, 97.5])
    ratio = ratio_centred(0.5, REPLICATES)
    assert ratio.low == pytest.approx(0.5 - 0.5 / m * (high - m), abs=1e-12)
    assert ratio.high == pytest.approx(0.5 + 0.5 / m * (m - low), abs=1e-12)
    plain = basic(0.5, REPLICATES)
    assert (plain.low, plain.high) == pytest.approx((0.5 - (high - m), 0.5 + (m - low)), abs=1e-12)
    assert (percentile(REPLICATES).low, percentile(REPLICATES).high) == pytest.approx((low, high), abs=1e-12)
    assert [ratio.kind, plain.kind, percentile(REPLICATES).kind] == ["ratio_centred", "basic", "percentile"]


def test_nan_replicates_are_counted_and_left_out():
    dirty = np.concatenate([[np.nan], REPLICATES, [np.nan]])
    clean = ratio_centred(0.5, REPLICATES)
    assert ratio_centred(0.5, dirty) == Interval(clean.low, clean.high, "ratio_centred", 2)
    lost = basic(0.5, np.array([np.nan, 0.1]))
    assert np.isnan([lost.low, lost.high]).all()
    assert lost.n_degenerate == 1
    assert np.isnan(ratio_centred(np.nan, REPLICATES).low)
    assert np.isnan(percentile(np.array([])).low)


def test_no_positive_ratio_is_said_and_not_used():
    interval = ratio_centred(-0.01, np.array([0.01, 0.02, 0.03]))
    plain = basic(-0.01, np.array([0.01, 0.02, 0.03]))
    assert interval == plain
    assert interval.low < -0.01 < interval.high


def test_jackknife_of_a_stratified_mean_is_the_textbook_standard_error():
    rng = np.random.default_rng(1)
    strata = [rng.normal(size=n) for n in (5, 9, 16)]
    estimate = np.mean([x.mean() for x in strata])
    left_out, stratum = [], []
    for k, x in enumerate(strata):
        for j in range(len(x)):
            left_out.append(np.mean([np.delete(x, j).mean() if i == k else y.mean() for i, y in enumerate(strata)]))
            stratum.append(k)
    interval = jackknife(estimate, np.array(left_out), np.array(stratum))
    se = np.sqrt(sum(x.var(ddof=1) / len(x) for x in strata)) / len(strata)
    half = scipy.stats.norm.ppf(0.975) * se
    assert (interval.low, interval.high) == pytest.approx((estimate - half, estimate + half), abs=1e-12)
    assert np.isnan(jackknife(estimate, np.array([np.nan, 1.0]), np.array([0, 0])).low)


def test_difference_recentres_each_side():
    rng = np.random.default_rng(2)
    a, b = 0.4 + 0.05 * rng.normal(size=400), 0.3 + 0.05 * rng.normal(size=400)
    interval = difference(0.6, a, 0.45, b)
    spread = 0.6 / a.mean() * (a - a.mean()) - 0.45 / b.mean() * (b - b.mean())
    low, high = np.percentile(spread, [2.5, 97.5])
    assert (interval.low, interval.high) == pytest.approx((0.15 - high, 0.15 - low), abs=1e-9)
    same = difference(0.6, a, 0.6, a)
    assert (same.low, same.high) == pytest.approx((0.0, 0.0), abs=1e-12)
    np.testing.assert_allclose(recentred(0.6, a).mean(), 0.6, atol=1e-12)


def test_a_difference_says_where_a_side_is_not_stretched():
    up, down = np.array([0.1, 0.2, 0.3]), np.array([-0.1, 0.0, -0.2])
    assert difference(0.4, up, 0.3, up).kind == "ratio_centred"
    assert difference(0.4, up, 0.3, down).kind == "basic"
    assert difference(0.4, down, 0.3, up).kind == "basic"


def test_coverage_for_an_attenuated_r2():
    """Cells are means of 16 noisy images; truth = mean over repeat studies. Percentile misses, ratio-centred hits."""
    rng = np.random.default_rng(3)
    cells, images, studies, replicates = 120, 16, 60, 100
    t = np.tile([4.0, 8.0, 16.0, 32.0], cells // 4)
    signal = rng.normal(size=cells) + 0.5 * np.log(t)
    points: dict[str, list] = {"r2": [], "delta": []}
    hits: dict[str, list] = {"ratio_centred": [], "percentile": [], "difference": []}
    for _ in range(studies):
        model = signal[:, None] + 2.5 * rng.normal(size=(cells, images))
        people = signal[:, None] + 2.5 * rng.normal(size=(cells, images))
        weights = rng.multinomial(images, np.full(images, 1 / images), size=(replicates, cells)) / images
        weights = np.concatenate([np.full((1, cells, images), 1 / images), weights])  # the full sample first
        model_BC, people_BC = (np.einsum("bcj,cj->bc", weights, x) for x in (model, people))
        r2 = alignment_r2(people_BC, model_BC, t)
        full, alone = condition_model_r2(people_BC, model_BC, t), condition_r2(people_BC, t, model_BC)
        points["r2"].append(r2[0])
        points["delta"].append(full[0] - alone[0])
        hits["ratio_centred"].append(ratio_centred(r2[0], r2[1:]))
        hits["percentile"].append(percentile(r2[1:]))
        hits["difference"].append(difference(full[0], full[1:], alone[0], alone[1:]))
    truth = {kind: np.mean(points["delta" if kind == "difference" else "r2"]) for kind in hits}
    coverage = {kind: np.mean([i.low <= truth[kind] <= i.high for i in hits[kind]]) for kind in hits}
    assert coverage["ratio_centred"] >= 0.88
    assert coverage["difference"] >= 0.88
    assert coverage["percentile"] <= 0.5


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        basic(0.5, REPLICATES, level=95)
    with pytest.raises(ValueError, match="list of numbers"):
        percentile(REPLICATES[:, None])
    with pytest.raises(ValueError, match="same resamples"):
        difference(0.1, REPLICATES, 0.2, REPLICATES[:3])
    with pytest.raises(ValueError, match="equal shapes"):
        jackknife(0.1, REPLICATES, np.zeros(3))
