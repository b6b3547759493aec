"""Speed of the differentiable rasteriser, forward and backward, one thread, CPU seconds.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 python perf/rasterizer.py
    ... python perf/rasterizer.py --rounds 5 --curves 8 32 --size 224

The reference is the dense way in plain autograd: every pixel's distance to every one of 16 chords a curve, then the
largest coverage (union) or the product over strokes (`over`, with opacities and on-logits). Both draw the same curves
with the same pen edge (softness 0.5 px, per-stroke widths around 2 px) and take turns in one process. The memory of one
pass is the growth of the process's peak, measured in a process of its own. Then 16 sketches are optimised (Adam, own
targets) in one batch and one by one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import mse_loss

from humanlike.generators import Strokes, rasterize
from humanlike.rng import torch_generator

SOFTNESS, CHORDS = 0.5, 16
Parameters = list[torch.Tensor]


def made_up(batch: int, curves: int, size: int, seed: int) -> Parameters:
    """Points, widths, opacities and on-logits of random sketches, all asking for gradients."""
    g = torch_generator(seed, "perf", "rasterizer")
    centre = 0.1 + 0.8 * torch.rand(batch, curves, 1, 2, generator=g)
    values = [
        centre + 0.1 * torch.randn(batch, curves, 4, 2, generator=g),
        (1.5 + torch.rand(batch, curves, generator=g)) / size,
        0.3 + 0.7 * torch.rand(batch, curves, generator=g),
        torch.randn(batch, curves, generator=g),
    ]
    return [x.requires_grad_() for x in values]


def dense(p: Parameters, size: int, union: bool) -> torch.Tensor:
    """All pixels against all chords, in autograd."""
    points, width, opacity, logit = p
    t = torch.linspace(0, 1, CHORDS + 1)
    r = 1 - t
    weight = torch.stack([r**3, 3 * r * r * t, 3 * r * t * t, t**3], 1)
    vertex = torch.einsum("pc,bkcd->bkpd", weight, points * size)
    a = vertex[:, :, :-1].flatten(1, 2)[:, None]
    ab = vertex[:, :, 1:].flatten(1, 2)[:, None] - a
    place = torch.arange(size) + 0.5
    pixel = torch.stack(torch.meshgrid(place, place, indexing="xy"), -1).view(1, -1, 1, 2)
    ap = pixel - a
    share = ((ap * ab).sum(-1) / ab.square().sum(-1).clamp(min=1e-12)).clamp(0, 1)
    distance = ((ap - share[..., None] * ab).square().sum(-1) + 1e-12).sqrt()
    distance = distance.unflatten(2, (-1, CHORDS)).amin(3)
    half = (width * size / 2)[:, None]
    cover = ((half - distance) / SOFTNESS).sigmoid() - ((half + distance) / -SOFTNESS).sigmoid()
    light = 1 - cover.amax(2) if union else (1 - (opacity * logit.sigmoid())[:, None] * cover).prod(2)
    return light.view(-1, 1, size, size)


def ours(p: Parameters, size: int, union: bool) -> torch.Tensor:
    """The rasteriser on the same chords."""
    strokes = Strokes(p[0], p[1]) if union else Strokes(*p)
    return rasterize(strokes, size, union=union, softness=SOFTNESS, segments=CHORDS)


def gradients(draw: Callable, p: Parameters, size: int, union: bool) -> tuple[torch.Tensor, ...]:
    """Picture, and the gradient of its mean square by every parameter in use."""
    canvas = draw(p, size, union)
    return canvas.detach(), *torch.autograd.grad(canvas.square().mean(), p[:2] if union else p)


def cpu_seconds(call: Callable, repeats: int) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats


def compare(curves: int, size: int, union: bool, rounds: int, seed: int) -> str:
    """Ratios of one setting, and how far pictures and gradients are apart."""
    p = made_up(1, curves, size, seed)
    (picture, *grads), (expected, *true) = (gradients(way, p, size, union) for way in (ours, dense))
    apart = max(float((a - b).norm() / b.norm()) for a, b in zip(grads, true, strict=True))
    slow, fast = [], []
    for _ in range(rounds):
        slow.append(cpu_seconds(lambda: gradients(dense, p, size, union), 1))
        fast.append(cpu_seconds(lambda: gradients(ours, p, size, union), 20))
    ratio = np.sort(np.array(slow) / np.array(fast))
    return (
        f"{'union' if union else 'over '} K={curves:2d}: dense {1e3 * np.median(slow):7.0f} ms, ours "
        f"{1e3 * np.median(fast):5.2f} ms, {ratio[0]:.0f}/{np.median(ratio):.0f}/{ratio[-1]:.0f} x; pictures apart "
        f"{float((picture - expected).abs().max()):.1e}, gradients {apart:.1e} (relative)"
    )


def resident(which: str) -> float:
    """MB of this process in memory now (VmRSS) or at most so far (VmHWM), as Linux tells."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(which))


def memory(batch: int, curves: int, size: int, union: bool, seed: int) -> None:
    """Print by how many MB one pass raises the peak of this process."""
    gradients(ours, made_up(1, 1, 16, seed), 16, union)
    p = made_up(batch, curves, size, seed)
    before = resident("VmRSS")
    gradients(ours, p, size, union)
    print(f"{resident('VmHWM') - before:.0f}")


def optimise(p: Parameters, target: torch.Tensor, steps: int, size: int) -> None:
    """Steps of Adam towards pictures, at the default pen edge."""
    p = [x.detach().clone().requires_grad_() for x in p]
    adam = torch.optim.Adam(p, lr=1e-3)
    for _ in range(steps):
        adam.zero_grad()
        mse_loss(rasterize(Strokes(*p), size), target, reduction="sum").backward()
        adam.step()


def together(curves: int, size: int, rounds: int, steps: int, seed: int, sketches: int = 16) -> str:
    """Optimising sketches in one batch against one by one."""
    p = made_up(sketches, curves, size, seed)
    target = rasterize(Strokes(*made_up(sketches, curves, size, seed + 1)), size).detach()
    optimise(p, target, 1, size)
    alone, batch = [], []
    for _ in range(rounds):
        batch.append(cpu_seconds(lambda: optimise(p, target, steps, size), 1) / steps / sketches)
        parts = [([x[b : b + 1] for x in p], target[b : b + 1]) for b in range(4)]
        alone.append(sum(cpu_seconds(lambda q=q, t=t: optimise(q, t, steps, size), 1) for q, t in parts) / steps / 4)
    ratio = np.sort(np.array(alone) / np.array(batch))
    return (
        f"{size:3d} px K={curves:2d}: {1e3 * np.median(batch):.2f} ms a sketch and step together, "
        f"{1e3 * np.median(alone):.2f} ms alone, {ratio[0]:.1f}/{np.median(ratio):.1f}/{ratio[-1]:.1f} x"
    )


def main() -> None:
    """Measure and print one line a setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, nargs=3, metavar=("BATCH", "CURVES", "UNION"), help=argparse.SUPPRESS)
    a = parser.parse_args()
    torch.set_num_threads(1)
    if a.memory:
        memory(*a.memory[:2], a.size, bool(a.memory[2]), a.seed)
        return
    for union in (True, False):
        for curves in a.curves:
            print(compare(curves, a.size, union, a.rounds, a.seed), flush=True)
    for batch in (1, 16):
        for union in (True, False):
            setting = ["--memory", str(batch), str(max(a.curves)), str(int(union))]
            command = [sys.executable, __file__, "--size", str(a.size), "--seed", str(a.seed), *setting]
            peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
            print(
                f"peak memory of {batch} x {max(a.curves)} curves, {'union' if union else 'over'}: {peak} MB",
                flush=True,
            )
    for size in (64, a.size):
        for curves in (4, *a.curves):
            print(together(curves, size, a.rounds, a.steps, a.seed), flush=True)


if __name__ == "__main__":
    main()
