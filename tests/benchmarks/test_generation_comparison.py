"""Gains and hack gaps: NumPy and scipy's bootstrap as referees."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap

from humanlike.benchmarks.generation_comparison import compared


def rows(before: np.ndarray, after: np.ndarray, role: str, concepts: list[str], shift: str = "") -> pd.DataFrame:
    """Readings of one network; values of SEA before and after."""
    parts = []
    for name, value in (("before", before), ("after", after)):
        ids = [f"{shift if name == 'after' else ''}{i}" for i in range(len(value))]
        parts.append(
            pd.DataFrame(
                {
                    "set": name,
                    "network": f"the {role}",
                    "role": role,
                    "sketch_id": ids,
                    "concept": concepts[: len(value)],
                    "sea": value,
                    "recognition": value / 2,
                    "visual_ratio": 0.5,
                    "accuracy": 1.0,
                }
            )
        )
    return pd.concat(parts)


def test_pairs_are_resampled_together_as_scipy_does():
    rng = np.random.default_rng(0)
    before = rng.normal(size=60)
    critic, judge = before + rng.normal(0.5, 0.2, 60), before + rng.normal(0.2, 0.2, 60)
    one = ["lion"] * 60
    table = pd.concat([rows(before, critic, "critic", one), rows(before, judge, "judge", one)])
    found, gaps = compared(table, replicates=4000)
    assert found["paired"].all()
    sea = found[found["measure"] == "sea"].set_index("network")
    for name, after in (("the critic", critic), ("the judge", judge)):
        wanted = bootstrap((after - before,), np.mean, n_resamples=4000, method="basic", rng=1).confidence_interval
        assert sea.loc[name, "gain"] == pytest.approx((after - before).mean())
        np.testing.assert_allclose(sea.loc[name, ["gain_low", "gain_high"]].astype(float), wanted, atol=0.01)
    gap = gaps["the judge"]
    wanted = bootstrap((critic - judge,), np.mean, n_resamples=4000, method="basic", rng=1).confidence_interval
    assert gap.value == pytest.approx(critic.mean() - judge.mean())
    np.testing.assert_allclose((gap.low, gap.high), wanted, atol=0.01)
    assert gap.low > 0  # it is open


def test_sets_of_other_sketches_are_resampled_by_themselves():
    rng = np.random.default_rng(1)
    before, after = rng.normal(size=80), rng.normal(0.3, 1, size=50)
    one = ["lion"] * 80
    table = pd.concat([rows(before, after, role, one, shift="x") for role in ("critic", "judge")])
    found, gaps = compared(table, replicates=4000)
    assert not found["paired"].any()
    sea = found[found["measure"] == "sea"].iloc[0]

    def gain(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return a.mean(axis) - b.mean(axis)

    wanted = bootstrap((after, before), gain, n_resamples=4000, method="basic", rng=1).confidence_interval
    np.testing.assert_allclose((sea["gain_low"], sea["gain_high"]), wanted, atol=0.03)
    # Critic and judge say the same of every sketch: whatever is drawn, nothing is left between them.
    assert gaps["the judge"] == pytest.approx((0, 0, 0))


def test_concepts_keep_their_numbers():
    value = np.array([0.0, 0.0, 1.0, 1.0])
    concepts = ["lion", "lion", "taxi", "taxi"]  # no spread within concepts: no spread of the gain
    table = pd.concat([rows(value, value + 0.25, role, concepts) for role in ("critic", "judge")])
    found, _ = compared(table, replicates=200)
    sea = found[found["measure"] == "sea"]
    np.testing.assert_allclose(sea[["gain", "gain_low", "gain_high"]], 0.25)


def test_what_is_missing_is_told():
    table = rows(np.zeros(2), np.ones(2), "critic", ["lion"] * 2)
    with pytest.raises(ValueError, match="there is no judge"):
        compared(table)
    with pytest.raises(ValueError, match="there is no"):
        compared(table[table["set"] == "after"])
