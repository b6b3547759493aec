"""Speed of simulated learning sessions against loops with weight vectors, one thread, CPU seconds.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/simulation.py
    ... python perf/simulation.py --features 512 --rounds 5 --sessions 2000

Two loops run the same sessions, one at a time, as learners are usually written. In the plain one the rule gives the
change of the whole weight matrix, which is then added (the square rule, as the simplest, moves the chosen row alone);
the lean one moves one row under every rule but REINFORCE. Ratios are of sessions per CPU second in the same round, as
min/median/max over the rounds: for every rule simulated alone, and for all seven in one call, whose time is shared out
evenly, so that it stands against a rule's own loop and against the mean of the seven loops. All choices of the loops
are compared with ours. Compilation, done before, is printed by itself.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

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


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def spread(values: list[float]) -> str:
    """Min/median/max."""
    return f"{min(values):.0f}/{np.median(values):.0f}/{max(values):.0f}"


def over(rates: list[float], others: list[float]) -> list[float]:
    """Ratios round by round."""
    return [rate / other for rate, other in zip(rates, others, strict=True)]


def loop_rate(
    x_ND: np.ndarray, given: tuple[np.ndarray, ...], rule: UpdateRule, lean: bool, choices_ST: list[np.ndarray]
) -> tuple[float, int]:
    """Sessions per CPU second of a loop, and the trials in which it differs from each of the given choices."""
    seconds, mismatches = 0.0, 0
    for s in range(len(given[0])):
        used, choices_T = cpu_seconds(loop_session, x_ND, *(a[s] for a in given), rule, lean)
        seconds += used
        mismatches += sum(int((choices_T != other_ST[s]).sum()) for other_ST in choices_ST)
    return len(given[0]) / seconds, mismatches


def main() -> None:
    """Measure in rounds; print one line a rule, then all rules together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--sessions", type=int, default=8000, help="sessions a round of the fast paths")
    parser.add_argument("--loops", type=int, default=200, help="sessions a round of each loop")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x_ND = synthetic_features(options.features, options.seed)
    gram_NN = x_ND @ x_ND.T
    draws = draw_high_variation(options.seed, "perf", options.sessions)
    given: Any = (draws.order_ST, draws.correct_action_ST, draws.coins_ST)
    few = tuple(a[: options.loops] for a in given)
    seconds, _ = cpu_seconds(simulate_gram, gram_NN, *few, PAPER_RULES)
    print(f"first call, with compilation or loading of compiled code: {seconds:.2f} CPU s")

    def run(rules: Sequence[UpdateRule], device: str | None = None) -> np.ndarray:
        return simulate_gram(gram_NN, given[0], given[1], given[2], rules, device=device)

    run(PAPER_RULES)  # so that no round pays for fresh memory
    run(PAPER_RULES, device="cpu")
    rates: dict[tuple[str, str], list[float]] = {}
    mismatches = 0
    for _ in range(options.rounds):
        for name, device in (("together", None), ("batched", "cpu")):
            seconds, every_RST = cpu_seconds(functools.partial(run, PAPER_RULES, device=device))
            rates.setdefault((name, "all"), []).append(len(PAPER_RULES) * options.sessions / seconds)
            if device is None:
                compiled_RST = every_RST
        for r, rule in enumerate(PAPER_RULES):
            seconds, alone_RST = cpu_seconds(run, [rule])
            rates.setdefault(("alone", rule.name), []).append(options.sessions / seconds)
            for name, lean in (("plain", False), ("lean", True)):
                rate, differing = loop_rate(x_ND, few, rule, lean, [alone_RST[0], compiled_RST[r], every_RST[r]])
                rates.setdefault((name, rule.name), []).append(rate)
                mismatches += differing
    report(rates, [rule.name for rule in PAPER_RULES])
    compared = 3 * 2 * options.rounds * len(PAPER_RULES) * options.loops
    print(f"trials whose choice differs from a loop's, in {compared} comparisons of a session: {mismatches}")


def report(rates: dict[tuple[str, str], list[float]], rules: list[str]) -> None:
    """Print rates and ratios."""
    together = rates["together", "all"]
    for rule in rules:
        plain, lean, alone = (rates[name, rule] for name in ("plain", "lean", "alone"))
        ratios = (spread(over(fast, loop)) for fast, loop in ((alone, plain), (alone, lean), (together, plain)))
        print(
            f"{rule:14s} alone {np.median(alone):7.0f} sessions/s; loops {np.median(plain):5.0f} (plain) and "
            f"{np.median(lean):5.0f} (lean), ratios {next(ratios)} and {next(ratios)}; "
            f"in a call of all seven {next(ratios)} times the plain loop"
        )
    means = {
        name: [len(rules) / sum(1 / rates[name, rule][k] for rule in rules) for k in range(len(rates[name, rules[0]]))]
        for name in ("plain", "lean", "alone")
    }
    for name, all_rates in (
        ("each rule alone", means["alone"]),
        ("all seven in one call", together),
        ("all seven, batched tensors", rates["batched", "all"]),
    ):
        ratios = (spread(over(all_rates, means[loop])) for loop in ("plain", "lean"))
        print(f"{name}: {np.median(all_rates):.0f} rule-sessions/s; mean of the loops, ratio {' and '.join(ratios)}")


if __name__ == "__main__":
    main()
