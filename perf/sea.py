"""Speed of sketch abstraction efficiency on a million sketches, one thread, CPU seconds.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python perf/sea.py
    ... python perf/sea.py --sketches 100000 --rounds 7

The metric is fed in one update and in batches of 1,000, from judgments (B, 12) and from counts (V, E), and is compared
with a plain loop over sketches that scores with `math` and keeps running sums, on a part of the sketches in the same
round. The functions alone and a step of the loss, forward and backward, are timed beside it.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
import torch

from humanlike.losses import SEALoss
from humanlike.metrics import SketchAbstractionEfficiency
from humanlike.metrics.functional import diagnosis, sea_terms
from humanlike.rng import torch_generator

GROUPS, ELEMENTS, BATCH, LOOP = 4, 12, 1000, 20_000


def made_up(sketches: int, seed: int) -> dict[str, torch.Tensor]:
    """P, judgments (1 in 200 sketches has a missing one), which columns are elements, and groups."""
    g = torch_generator(seed, "perf", "sea")
    present = torch.randint(0, 2, (sketches, ELEMENTS), generator=g, dtype=torch.int8)
    present[torch.rand(sketches, generator=g) < 0.005, 0] = -1
    return {
        "P_B": torch.rand(sketches, generator=g),
        "present": present,
        "group_B": torch.randint(0, GROUPS, (sketches,), generator=g),
        "mask_BE": torch.arange(ELEMENTS) < torch.randint(4, ELEMENTS + 1, (sketches, 1), generator=g),
    }


def fed(data: dict, batch: int) -> dict[str, torch.Tensor]:
    """What the metric says after updates of `batch` sketches."""
    metric = SketchAbstractionEfficiency(GROUPS)
    for start in range(0, len(data["P_B"]), batch):
        rows = slice(start, start + batch)
        present = data["present"]
        part = (present[0][rows], present[1][rows]) if isinstance(present, tuple) else present[rows]
        others = {name: x[rows] for name, x in data.items() if name != "present"}
        metric.update(present=part, **others)
    return metric.compute()


def loop(P: np.ndarray, V: np.ndarray, E: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Mean SEA of every group, sketch by sketch; V < 0 is missing."""
    total, count, delta = np.zeros(GROUPS), np.zeros(GROUPS), 1e-6
    for p, present, elements, k in zip(P.tolist(), V.tolist(), E.tolist(), group.tolist(), strict=True):
        if present < 0:
            continue
        v = present / elements
        u = math.log((1 + delta) / (v + delta))
        g = math.tanh(4 * math.log((p + delta) / (v + delta)))
        z = p**1.7 * u * g - v**0.8 * (1 - p) ** 2.3 - 0.4 * (1 - p) ** 1.7
        total[k] += math.tanh(2.2 * z)
        count[k] += 1
    return total / count


def cpu_seconds(function, *arguments):
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def training_step(log_p_B: torch.Tensor, logits_BE: torch.Tensor, mask_BE: torch.Tensor) -> None:
    """One forward and backward pass of the loss."""
    SEALoss()(log_p_B, logits_BE, mask_BE).backward()


def main() -> None:
    """Measure and print one line a way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sketches", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    torch.set_num_threads(1)
    judged = made_up(a.sketches, a.seed)
    inside = judged["mask_BE"]
    elements = inside.sum(1)
    V = torch.where(((judged["present"] < 0) & inside).any(1), -1, (judged["present"] * inside).sum(1))
    counted = {"P_B": judged["P_B"], "present": (V, elements), "group_B": judged["group_B"]}
    P, v = judged["P_B"].double(), V.clamp_min(0) / elements
    log_p = judged["P_B"].clamp_min(1e-30).log().requires_grad_()
    logits = torch.randn(a.sketches, ELEMENTS, generator=torch_generator(a.seed, "perf", "logits")).requires_grad_()
    ways = {
        f"metric, {a.sketches:,} in one update, judgments": (fed, judged, a.sketches),
        f"metric, {a.sketches:,} in batches of {BATCH:,}, judgments": (fed, judged, BATCH),
        f"metric, {a.sketches:,} in one update, counts": (fed, counted, a.sketches),
        f"metric, {a.sketches:,} in batches of {BATCH:,}, counts": (fed, counted, BATCH),
        "sea_terms": (sea_terms, P, v),
        "diagnosis": (diagnosis, P, v),
        f"SEALoss, forward and backward, {ELEMENTS} elements": (training_step, log_p, logits, inside),
    }
    columns = [x[:LOOP].numpy() for x in (judged["P_B"].double(), V, elements, judged["group_B"])]
    fed(judged, a.sketches)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    looped, means = [], []
    for _ in range(a.rounds):
        used, expected = cpu_seconds(loop, *columns)
        looped.append(used * a.sketches / LOOP)
        for name, (function, *arguments) in ways.items():
            used, result = cpu_seconds(function, *arguments)
            seconds[name].append(used)
            if function is fed:
                means.append(result["sea"])
    part = {name: (x[0][:LOOP], x[1][:LOOP]) if isinstance(x, tuple) else x[:LOOP] for name, x in counted.items()}
    away = np.abs(fed(part, LOOP)["sea"].numpy() - expected).max()
    print(f"all ways give the same bits: {all(torch.equal(m, means[0]) for m in means)}; from the loop {away:.1e}")
    print(f"plain loop, scaled from {LOOP:,}: {np.median(looped):.2f} CPU s")
    for name, used in seconds.items():
        ratio = np.sort(np.array(looped) / np.array(used))
        told = (
            f"; {ratio[0]:.1f}/{np.median(ratio):.1f}/{ratio[-1]:.1f} x the loop" if name.startswith("metric") else ""
        )
        print(f"{name}: {np.median(used):.3f} CPU s ({min(used):.3f}-{max(used):.3f}){told}")


if __name__ == "__main__":
    main()
