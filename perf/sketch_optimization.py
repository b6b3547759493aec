"""Optimising 16 sketches in one program against one by one: CPU time a sketch and step, one thread, and whose it is.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python perf/sketch_optimization.py
    ... python perf/sketch_optimization.py --backbone random_tiny --inputs 160 --rounds 5

Both ways run the same `optimize_sketches`, in turns in one process, after a warm-up: one view, K = 16 strokes, and a
readout with random weights on the backbone (weights do not move the time). Shares of the rasteriser and of the critic
are timed apart, forward and backward. `--inputs` are sides of the network's input in pixels; the canvas is as large,
128 at most. A network that fills a core with one image gains nothing from company; what gains is all around it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from humanlike.elements.critic import Critic
from humanlike.entry.conf import compose
from humanlike.entry.targets import build
from humanlike.generators import Strokes, rasterize
from humanlike.generators.augment import Views
from humanlike.generators.initial import curves_from, scattered_points
from humanlike.generators.optimize import Optimization, optimize_sketches
from humanlike.generators.optimize_objectives import ConceptObjective
from humanlike.rng import torch_generator

SKETCHES, STROKES = 16, 16
NAMES = [f"sketch {i}" for i in range(SKETCHES)]


def random_critic(backbone_name: str, side: int) -> Critic:
    """A readout with random weights on a network that takes images of `side` pixels."""
    settings = [f"backbone={backbone_name}", f"++backbone.transform.size={side}", "++backbone.transform.crop_pct=1.0"]
    backbone = build(compose("evaluate", settings).backbone)
    width = backbone.features(torch.zeros(1, 3, side, side), [backbone.default_layer])[backbone.default_layer].shape[1]
    coef = torch.randn(10, width, generator=torch_generator(0, "perf", "critic")) / width**0.5
    return Critic(backbone, [f"label {i}" for i in range(10)], coef, torch.zeros(10), range(10))


def cpu_seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def whole(critic: Critic, rows: slice, size: int, steps: int) -> None:
    """Steps of the optimisation of some sketches."""
    names = NAMES[rows]
    points = curves_from(scattered_points(STROKES, 0, names), 0, names, radius=0.15)
    objective = ConceptObjective(critic, ("label 3",) * len(names), None)
    optimize_sketches(
        points, [objective], Optimization(steps=steps, size=size, views=Views(num=1, plain=False), frames=1)
    )


def drawing(rows: slice, size: int) -> None:
    """Forward and backward of the rasteriser alone."""
    names = NAMES[rows]
    points = curves_from(scattered_points(STROKES, 0, names), 0, names, radius=0.15).requires_grad_()
    rasterize(Strokes(points), size).sum().backward()


def judging(critic: Critic, count: int, size: int) -> None:
    """Forward and backward of the critic alone."""
    x = torch.full((count, 3, size, size), 0.9, requires_grad=True)
    critic.log_p(x, ["label 3"] * count).sum().backward()


def measure(backbone: str, side: int, rounds: int, steps: int) -> str:
    """One line: milliseconds a sketch and step, together and alone, of all, the rasteriser and the critic."""
    critic, size = random_critic(backbone, side), min(side, 128)
    found: dict[str, list[tuple[float, float]]] = {"all": [], "rasteriser": [], "critic": []}
    everyone, alone = slice(0, SKETCHES), slice(0, 1)
    for number in range(rounds + 1):
        pairs = {
            # The two verdicts around the steps count as well, in both ways.
            "all": [cpu_seconds(lambda r=r: whole(critic, r, size, steps)) / (steps + 2) for r in (everyone, alone)],
            "rasteriser": [cpu_seconds(lambda r=r: drawing(r, size), 3) for r in (everyone, alone)],
            "critic": [cpu_seconds(lambda n=n: judging(critic, n, size), 2) for n in (SKETCHES, 1)],
        }
        if number:  # the first round warms up
            for name, (batch, single) in pairs.items():
                found[name].append((batch / SKETCHES, single))
    parts = []
    for name, seconds in found.items():
        batch, single = np.median(np.array(seconds), axis=0) * 1e3
        parts.append(f"{name} {batch:.2f} ms together, {single:.2f} alone: {single / batch:.1f} x")
    return f"{backbone} at {side} px, canvas {size}: " + "; ".join(parts)


def main() -> None:
    """Measure and print one line an input size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="tf_efficientnet_lite0")
    parser.add_argument("--inputs", type=int, nargs="+", default=[32, 64, 96, 224])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    a = parser.parse_args()
    torch.set_num_threads(1)
    for side in a.inputs:
        print(measure(a.backbone, side, a.rounds, a.steps), flush=True)


if __name__ == "__main__":
    main()
