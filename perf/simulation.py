"""Speed of simulated learning sessions against loops with weight vectors, one thread, CPU seconds.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/simulation.py
    ... python perf/simulation.py --features 512 --rounds 3 --sessions 2000

Two loops run the same sessions, one at a time, as learners are usually written. In the plain one the rule gives the
change of the whole weight matrix, which is then added (the square rule, as the simplest, moves the chosen row alone);
the lean one moves one row under every rule but REINFORCE. Ratios are of sessions per CPU second in the same round; all
choices of the loops are compared with ours. Compilation, done before, is printed by itself.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from humanlike.learners import PAPER_RULES, ReinforceRule, calibrate, draw_high_variation, simulate_gram
from humanlike.learners.update_rules import SQUARE, LinearRule, UpdateRule
from humanlike.rng import generator


def synthetic_features(features: int, seed: int) -> np.ndarray:
    """Calibrated features of 100 images of each of two objects, of about the difficulty of real ones."""
    rng = generator(seed, "perf", "simulation", features)
    spectrum_D = np.arange(1, features + 1) ** -0.4
    object_2D = 0.5 * rng.normal(size=(2, features)) * spectrum_D
    images_ND = rng.normal(size=(200, features)) * spectrum_D + np.repeat(object_2D, 100, 0)
    return calibrate(images_ND, rng.normal(size=(400, features)) * spectrum_D)


def loop_session(
    x_ND: np.ndarray, order_T: np.ndarray, correct_T: np.ndarray, coins_T: np.ndarray, rule: UpdateRule, lean: bool
) -> np.ndarray:
    """Choices of one session with a weight matrix W (2, D)."""
    W = np.zeros((2, x_ND.shape[1]))
    choices_T = np.empty(len(order_T), dtype=np.int64)
    for t, image in enumerate(order_T):
        x = x_ND[image]
        l0, l1 = W @ x
        action = int(coins_T[t] >= 0.5) if l0 == l1 else int(l1 > l0)
        reward = 1.0 if action == correct_T[t] else -1.0
        choices_T[t] = action
        if isinstance(rule, ReinforceRule):
            W += np.outer(rule.steps(reward, np.array([l0, l1]), action), x)
        elif isinstance(rule, LinearRule):
            step = rule.step(reward, float(l1 if action else l0))
            if lean or rule is SQUARE:
                W[action] += step * x
            else:
                change = np.zeros_like(W)
                change[action] = step * x
                W += change
            if np.isfinite(rule.norm_cap) and (norm := np.linalg.norm(W)) > rule.norm_cap:
                W *= rule.norm_cap / norm
    return choices_T


def cpu_seconds(function, *arguments):
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def main() -> None:
    """Measure and print one line a rule, then all rules together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--sessions", type=int, default=8000, help="sessions a round of the fast paths")
    parser.add_argument("--loops", type=int, default=60, help="sessions a round of each loop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x_ND = synthetic_features(options.features, options.seed)
    gram_NN = x_ND @ x_ND.T
    draws = draw_high_variation(options.seed, "perf", options.sessions)
    given = (draws.order_ST, draws.correct_action_ST, draws.coins_ST)
    few = tuple(a[:200] for a in given)
    seconds, _ = cpu_seconds(simulate_gram, gram_NN, *few, PAPER_RULES)
    print(f"first call, with compilation or loading of compiled code: {seconds:.2f} CPU s")
    simulate_gram(gram_NN, *few, PAPER_RULES, 1.0, 2)
    loop_totals, fast_total, mismatches = {False: [], True: []}, [], 0
    for rule in PAPER_RULES:
        rates: dict[str, list[float]] = {"fast": [], "plain": [], "lean": []}
        for _ in range(options.rounds):
            seconds, choices_RST = cpu_seconds(simulate_gram, gram_NN, *given, [rule])
            rates["fast"].append(options.sessions / seconds)
            for name, lean in (("plain", False), ("lean", True)):
                seconds = 0.0
                for s in range(options.loops):
                    used, choices_T = cpu_seconds(loop_session, x_ND, *(a[s] for a in given), rule, lean)
                    seconds += used
                    mismatches += int((choices_T != choices_RST[0, s]).sum())
                rates[name].append(options.loops / seconds)
        fast, plain, lean_rate = (np.array(rates[name]) for name in ("fast", "plain", "lean"))
        fast_total.append(1 / np.median(fast))
        loop_totals[False].append(1 / np.median(plain))
        loop_totals[True].append(1 / np.median(lean_rate))
        ratio, lean_ratio = np.sort(fast / plain), np.sort(fast / lean_rate)
        print(
            f"{rule.name:14s} {np.median(fast):9.0f} sessions/s;  plain loop {np.median(plain):6.0f}, ratio "
            f"{ratio[0]:.0f}/{np.median(ratio):.0f}/{ratio[-1]:.0f};  lean loop {np.median(lean_rate):6.0f}, ratio "
            f"{np.median(lean_ratio):.0f};  accuracy {(choices_RST[0] == given[1]).mean():.3f}"
        )
    print(f"trials whose choice differs from a loop's: {mismatches}")
    thousand = tuple(a[:1000] for a in given)
    simulate_gram(gram_NN, *few, PAPER_RULES, device="cpu")
    batched = min(
        cpu_seconds(lambda: simulate_gram(gram_NN, *thousand, PAPER_RULES, device="cpu"))[0]
        for _ in range(options.rounds)
    )
    rate = len(thousand[0]) / batched
    plain, lean, fast = (sum(seconds) for seconds in (loop_totals[False], loop_totals[True], fast_total))
    print(f"all seven rules, compiled: {7 / fast:.0f} rule-sessions/s, ratio {plain / fast:.0f} and {lean / fast:.0f}")
    print(f"all seven, batched tensors: {7 * rate:.0f} rule-sessions/s, ratio {plain * rate:.0f} and {lean * rate:.0f}")


if __name__ == "__main__":
    main()
