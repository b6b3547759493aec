"""What the demo of generators gains, seed by seed, under its critic and under a judge that never trained it.

python perf/finetune.py [SEEDS=3] [OVERRIDES OF train.py …]

Runs `python train.py` once a seed in a folder of its own: drawings, generator and critic get the seed, the judge
7919 + seed. Prints a row a seed of what the run's own comparison says (`benchmark=generation`, rasters of 128 and 224
pixels): the judge's SEA, P and v before and after, strokes, diversity, the critic's gain, the hack gap with its
interval, wall and CPU time. What must hold: the judge's SEA rises by 0.10 or more at a judged recognition that does not
fall, in less than 10 minutes on 2 cores.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

JUDGE_SEED = 7919
ROOT = Path(__file__).resolve().parents[1]
PAIRS = {"SEA": "sea", "P": "recognition", "v": "visual_ratio", "strokes": "strokes", "diversity": "diversity"}


def run(folder: Path, *overrides: str) -> tuple[float, float]:
    """Wall and CPU seconds of `python train.py`, in a process of its own."""
    command = [sys.executable, str(ROOT / "train.py"), *overrides, f"hydra.run.dir={folder}"]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(seed: int, root: Path, overrides: list[str]) -> dict[str, float]:
    """Figures of one seed, and its line of the table printed."""
    folder = root / f"train-{seed}"
    judge, cache = f"task.judge.seed={JUDGE_SEED + seed}", f"paths.cache={root / f'cache-{seed}'}"
    wall_s, cpu_s = run(folder, f"seed={seed}", judge, cache, *overrides)
    told = json.loads((folder / "metrics.json").read_text())
    scores = told["scores"]
    found = {f"{name} {when}": scores[key + suffix]["value"] for name, key in PAIRS.items()
             for when, suffix in (("before", "_before"), ("after", ""))}  # fmt: skip
    gap = scores["hack_gap"]
    parts = [f"{name} {found[f'{name} before']:.3f} → {found[f'{name} after']:.3f}" for name in PAIRS]
    print(
        f"seed {seed}: "
        + "; ".join(parts)
        + f"; gain of SEA under the critic {scores['gain_sea_critic']['value']:+.3f}; "
        f"hack gap {gap['value']:+.3f} [{gap['ci_low']:+.3f}, {gap['ci_high']:+.3f}]; {told['steps']} steps; "
        f"{wall_s:.0f} s wall, {cpu_s:.0f} s CPU",
        flush=True,
    )
    return found


def main() -> None:
    """Print the table."""
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    with TemporaryDirectory() as folder:
        rows = [row(seed, Path(folder), sys.argv[2:]) for seed in seeds]
    for name in PAIRS:
        gains = [found[f"{name} after"] - found[f"{name} before"] for found in rows]
        each = ", ".join(f"{gain:+.3f}" for gain in gains)
        print(f"gain of {name}: mean {sum(gains) / len(gains):+.3f}, least {min(gains):+.3f} (by seed {each})")


if __name__ == "__main__":
    main()
