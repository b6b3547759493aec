"""Before and after: what sketches gained under the critic that trained them and under judges that did not.

The *hack gap* is the gain in SEA under the critic minus the gain under a judge: what is above 0 was gained by pleasing
the critic, not by drawing better. Legend: N sketches of a set, B bootstrap replicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from humanlike.benchmarks.generation_readings import CRITIC, JUDGE, MEASURES
from humanlike.rng import generator
from humanlike.stats.intervals import basic

BEFORE, AFTER = "before", "after"


class Estimate(NamedTuple):
    """A number with its 95% basic bootstrap interval."""

    value: float
    low: float
    high: float


def compared(rows: pd.DataFrame, replicates: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, dict[str, Estimate]]:
    """Gains of every network, and hack gaps.

    Sketches are resampled within their concepts, the same for all networks. Where both sets have the same ids (drawings
    of the same seeds, before and after), they are pairs and stay together; else each set is resampled by itself.

    Args:
        rows: One row a set ("before", "after"), network and sketch, as of `over_sizes`.
        replicates: B.
        seed: Of the resamples.

    Returns:
        A table, one row a network and measure: `network, role, measure, before, after, gain, gain_low, gain_high,
        paired`; and judge → hack gap in SEA.

    Raises:
        ValueError: There is no critic or no judge, or a set is missing.
    """
    roles = dict(zip(rows["network"], rows["role"], strict=True))
    missing = {BEFORE, AFTER} - set(rows["set"]) | ({CRITIC, JUDGE} - set(roles.values()))
    if missing:
        raise ValueError(f"a comparison needs both sets, a critic and a judge; there is no {sorted(missing)[0]}")
    first = next(iter(roles))
    sides = {side: rows[(rows["set"] == side) & (rows["network"] == first)] for side in (BEFORE, AFTER)}
    paired = set(sides[BEFORE]["sketch_id"]) == set(sides[AFTER]["sketch_id"])
    order = {side: table["sketch_id"].tolist() for side, table in sides.items()}
    order = order if not paired else {side: order[AFTER] for side in order}
    weights = _weights(sides, order, paired, replicates, seed)
    found, gains = [], {}
    for network, role in roles.items():
        own = rows[rows["network"] == network]
        value = {s: own[own["set"] == s].set_index("sketch_id").loc[order[s]] for s in (BEFORE, AFTER)}
        for measure in MEASURES:
            before_N, after_N = (value[s][measure].to_numpy(float) for s in (BEFORE, AFTER))
            gain = float(after_N.mean() - before_N.mean())
            gain_B = weights[AFTER] @ after_N - weights[BEFORE] @ before_N
            interval = basic(gain, gain_B)
            found.append((network, role, measure, before_N.mean(), after_N.mean(), gain, interval.low, interval.high))
            if measure == "sea":
                gains[network] = (gain, gain_B)
    columns = ["network", "role", "measure", BEFORE, AFTER, "gain", "gain_low", "gain_high"]
    return pd.DataFrame(found, columns=columns).assign(paired=paired), _gaps(roles, gains)


def _gaps(roles: Mapping[str, str], gains: Mapping[str, tuple[float, np.ndarray]]) -> dict[str, Estimate]:
    """Judge → gain of the critic minus its own, on the same resamples."""
    critic = next(name for name, role in roles.items() if role == CRITIC)
    gaps = {}
    for judge in (name for name, role in roles.items() if role == JUDGE):
        gap = gains[critic][0] - gains[judge][0]
        interval = basic(gap, gains[critic][1] - gains[judge][1])
        gaps[judge] = Estimate(gap, interval.low, interval.high)
    return gaps


def _weights(
    sides: Mapping[str, pd.DataFrame], order: Mapping[str, Sequence[str]], paired: bool, replicates: int, seed: int
) -> dict[str, np.ndarray]:
    """Side → (B, N) weights of the sketches, rows summing to 1."""
    found = {}
    for side in (BEFORE, AFTER):
        concept_N = sides[side].set_index("sketch_id")["concept"].loc[list(order[side])].to_numpy()
        rng = generator(seed, "generation", "resamples", AFTER if paired else side)
        weight_BN = np.zeros((replicates, len(concept_N)))
        for concept in sorted(set(concept_N)):
            own = np.flatnonzero(concept_N == concept)
            weight_BN[:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=replicates)
        found[side] = weight_BN / len(concept_N)
    return found
