"""Optimising 16 sketches in one program against one by one: time a sketch and step, and whose it is.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python perf/sketch_optimization.py
    ... python perf/sketch_optimization.py --critics random_tiny:160 --strokes 4 32 --rounds 5
    python perf/sketch_optimization.py --threads 2

With one thread CPU time is taken; with several the time on the clock, which both ways may use all of them for.

Both ways run the same `optimize_sketches`, in turns in one process, after a warm-up. A critic is `drawn`, the small
network that `task=sketch` trains by default, or a readout on a backbone with its input's side in pixels; weights are
random, for they do not move the time. Shares of the rasteriser and of the critic are timed apart, forward and backward.
What 16 sketches share is the overhead of every operation; arithmetic they do not share. A network that fills a core
with one image gains nothing from company, and the rasteriser's share of arithmetic grows with the strokes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from humanlike.backbones.architectures.sketch_mixer import SketchMixer
from humanlike.backbones.arithmetic import reused_memory
from humanlike.backbones.network import NetworkBackbone
from humanlike.elements.critic import Critic
from humanlike.elements.critic_drawn import WIDTH
from humanlike.elements.critic_training import ScratchSettings
from humanlike.entry.conf import compose
from humanlike.entry.targets import build
from humanlike.generators import Strokes, rasterize
from humanlike.generators.augment import Views
from humanlike.generators.initial import curves_from, scattered_points
from humanlike.generators.optimize import Optimization, optimize_sketches
from humanlike.generators.optimize_objectives import ConceptObjective
from humanlike.rng import torch_generator

SKETCHES = 16
NAMES = [f"sketch {i}" for i in range(SKETCHES)]
LABELS = 48


def random_critic(name: str) -> Critic:
    """`drawn`, or a readout on the backbone `name` (`NAME:SIDE`), with random weights."""
    if name == "drawn":
        side = ScratchSettings(steps=1).size
        plain = {"size": side, "crop_pct": 1.0, "mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
        backbone = NetworkBackbone(
            lambda: SketchMixer(LABELS, WIDTH), "pre_logits", plain, name=name, classifier="classifier"
        )
    else:
        name, _, side = name.partition(":")
        settings = [f"backbone={name}", f"++backbone.transform.size={side}", "++backbone.transform.crop_pct=1.0"]
        backbone = build(compose("evaluate", settings).backbone)
    x = torch.zeros(1, 3, int(side), int(side))
    width = backbone.features(x, [backbone.default_layer])[backbone.default_layer].shape[1]
    coef = torch.randn(LABELS, width, generator=torch_generator(0, "perf", "critic")) / width**0.5
    return Critic(backbone, [f"label {i}" for i in range(LABELS)], coef, torch.zeros(LABELS), range(LABELS))


def seconds_of(call: Callable[[], object], repeats: int = 1) -> float:
    """Seconds of one call: of CPU with one thread, else on the clock."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


def whole(critic: Critic, rows: slice, strokes: int, size: int, steps: int, views: Views) -> None:
    """Steps of the optimisation of some sketches."""
    names = NAMES[rows]
    points = curves_from(scattered_points(strokes, 0, names), 0, names, radius=0.15)
    objective = ConceptObjective(critic, ("label 3",) * len(names), None)
    optimize_sketches(points, [objective], Optimization(steps=steps, size=size, views=views, frames=1))


def drawing(rows: slice, strokes: int, size: int) -> None:
    """Forward and backward of the rasteriser alone."""
    names = NAMES[rows]
    points = curves_from(scattered_points(strokes, 0, names), 0, names, radius=0.15).requires_grad_()
    rasterize(Strokes(points), size).sum().backward()


def judging(critic: Critic, count: int, size: int) -> None:
    """Forward and backward of the critic alone."""
    x = torch.full((count, 1, size, size), 0.9, requires_grad=True)
    critic.log_p(x.expand(-1, 3, -1, -1), ["label 3"] * count).sum().backward()


def measure(critic: Critic, name: str, strokes: int, a: argparse.Namespace) -> str:
    """One line: milliseconds a sketch and step, together and alone, of all, the rasteriser and the critic."""
    found: dict[str, list[tuple[float, float]]] = {"all": [], "rasteriser": [], "critic": []}
    everyone, alone, views = slice(0, SKETCHES), slice(0, 1), Views(num=a.views)
    for number in range(a.rounds + 1):
        # The two verdicts around the steps count as well, in both ways.
        pairs = {
            "all": [
                seconds_of(lambda r=r: whole(critic, r, strokes, a.size, a.steps, views)) / (a.steps + 2)
                for r in (everyone, alone)
            ],
            "rasteriser": [seconds_of(lambda r=r: drawing(r, strokes, a.size), 3) for r in (everyone, alone)],
            "critic": [seconds_of(lambda n=n: judging(critic, n * a.views, a.size), 2) for n in (SKETCHES, 1)],
        }
        if number:  # the first round warms up
            for part, (batch, single) in pairs.items():
                found[part].append((batch / SKETCHES, single))
    told = []
    for part, seconds in found.items():
        batch, single = np.median(np.array(seconds), axis=0) * 1e3
        told.append(f"{part} {batch:.2f} ms together, {single:.2f} alone: {single / batch:.1f} x")
    return f"{name}, {strokes} strokes, canvas {a.size}, {a.views} views: " + "; ".join(told)


def main() -> None:
    """Measure and print one line a critic and number of strokes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--critics", nargs="+", default=["drawn", "tf_efficientnet_lite0:224"])
    parser.add_argument("--strokes", type=int, nargs="+", default=[4, 16, 32])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--views", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    with reused_memory():
        for name in a.critics:
            critic = random_critic(name)
            for strokes in a.strokes:
                print(measure(critic, name, strokes, a), flush=True)


if __name__ == "__main__":
    main()
