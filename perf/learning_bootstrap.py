"""Speed of the bootstrap of MSE_n against a plain NumPy loop over subtasks and replicates, on synthetic sessions.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/learning_bootstrap.py
    ... python perf/learning_bootstrap.py --quick        # small, to see that both sides agree

64 subtasks × 500 simulations and 50 people × 100 trials, 1,000 replicates, lapse rate fitted in each. Both versions run
in turn in one process and one thread; times are CPU seconds. The plain version draws sessions, gathers and counts them
replicate by replicate, and scores the tables of all replicates at once. The package's time is given with everything
drawn anew, with people's replicates at hand, and with the draws at hand too, as in a sweep. Where, on equal draws, a
count of the two differs, or MSE_n by more than 1e-12, the script stops.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from humanlike.metrics.functional import MSEN_CONVENTIONS
from humanlike.rng import generator
from humanlike.stats.learning_bootstrap import bootstrap_sums
from humanlike.stats.learning_resampling import PeopleReplicates, SessionDraws, draw_sessions, resampled_counts

TOLERANCE = 1e-12


def synthetic(subtasks: int, sessions: int, trials: int, seed: int, role: str) -> list[np.ndarray]:
    """Sessions that learn at their subtask's pace."""
    rng = generator(seed, "perf", "learning", role)
    pace_S = generator(seed, "perf", "pace").uniform(5, 40, size=subtasks)
    curve_ST = 1 - 0.5 * np.exp(-np.arange(trials) / pace_S[:, None]) - (0.05 if role == "people" else 0.0)
    return [rng.random((sessions, trials)) < curve_ST[s] for s in range(subtasks)]


def plain_counts(sessions: list[np.ndarray], indices: Callable[[int, int], np.ndarray], replicates: int) -> np.ndarray:
    """(S, B, T) correct choices of the drawn sessions, one replicate after the other."""
    counts = np.empty((len(sessions), replicates, sessions[0].shape[1]), dtype=np.int64)
    for s, table in enumerate(sessions):
        for b in range(replicates):
            counts[s, b] = table[indices(s, b)].sum(axis=0)
    return counts


def plain_scores(k_model: np.ndarray, n_model: int, k_people: np.ndarray, n_people: int) -> np.ndarray:
    """(B,) MSE_n from full tables of shares, people's noise left in."""
    m, h = k_model / n_model, k_people / n_people
    gamma = np.clip(1 - ((m - 0.5) * (h - 0.5)).mean(axis=(0, 2)) / ((m - 0.5) ** 2).mean(axis=(0, 2)), 0, 1)
    g = gamma[None, :, None]
    variance = (1 - g) ** 2 * m * (1 - m) / (n_model - 1)
    return (((1 - g) * m + g / 2 - h) ** 2).mean(axis=(0, 2)) - variance.mean(axis=(0, 2))


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds and result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def check(model: list[np.ndarray], people: PeopleReplicates, draws: SessionDraws, rows: int) -> float:
    """Largest difference in MSE_n on equal draws, over the first `rows` replicates; stops where a count differs."""

    def indices(s: int, b: int) -> np.ndarray:
        return np.repeat(np.arange(len(model[s])), draws.times[s][b])

    k_model = plain_counts(model, indices, rows)
    for s, table in enumerate(model):
        if (resampled_counts(draws.times[s][:rows], table) != k_model[s]).any():
            raise SystemExit(f"counts of subtask {s} differ")
    plain = plain_scores(k_model, len(model[0]), people.replicate_SBT[:, :rows], int(people.n_S[0]))
    ours = bootstrap_sums(model, people, draws).replicates.msen(MSEN_CONVENTIONS["paper"]).value[0, :rows].numpy()
    difference = float(np.abs(ours - plain).max())
    if difference > TOLERANCE:
        raise SystemExit(f"MSE_n differs by {difference:.1e}")
    return difference


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    quick = parser.parse_args().quick
    rounds = parser.parse_args().rounds
    subtasks, simulations, trials, replicates = (6, 60, 20, 40) if quick else (64, 500, 100, 1000)
    model = synthetic(subtasks, simulations, trials, 0, "model")
    sessions = synthetic(subtasks, 50, trials, 0, "people")
    draw_sessions(np.array([3]), 2, 0)  # compiled once, outside the measurement
    people = PeopleReplicates.from_sessions(sessions, replicates, 0)
    draws = draw_sessions(np.array([simulations] * subtasks), replicates, 0, "model")
    difference = check(model, people, draws, min(replicates, 50))
    print(f"largest difference in MSE_n on equal draws: {difference:.1e}; counts equal")

    def plain() -> np.ndarray:
        rng = np.random.default_rng(0)
        k_model = plain_counts(model, lambda s, b: rng.integers(0, simulations, simulations), replicates)
        k_people = plain_counts(sessions, lambda s, b: rng.integers(0, 50, 50), replicates)
        return plain_scores(k_model, simulations, k_people, 50)

    def anew() -> Any:
        resampled = PeopleReplicates.from_sessions(sessions, replicates, 0)
        return bootstrap_sums(model, resampled, seed=0).replicates.msen()

    ways = {
        "all drawn anew": anew,
        "people at hand": lambda: bootstrap_sums(model, people, seed=0).replicates.msen(),
        "draws at hand": lambda: bootstrap_sums(model, people, draws).replicates.msen(),
    }
    for number in range(rounds):
        slow, _ = seconds(plain)
        told = []
        for name, run in ways.items():
            fast, _ = seconds(run)
            told.append(f"{name} {fast:.3f} s ({slow / fast:.0f} ×)")
        print(f"round {number + 1}: plain {slow:.2f} s; " + "; ".join(told))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
