"""What the demo of generators gains, seed by seed, under its critic and under a judge that never trained it.

python perf/finetune.py [SEEDS=3] [OVERRIDES OF train.py …]

Runs `python train.py` once a seed in a folder of its own, lets `benchmark=generation` look at the sketches it left,
with the very critic that trained it, at two sizes, and prints a row a seed: wall and CPU time, the judge's SEA and P
before and after, the critic's gain, and the hack gap with its interval. What must hold: the judge's SEA rises by 0.10
or more at a judged recognition that does not fall, in less than 10 minutes on 2 cores.
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

CRITIC = ("backbone=tf_efficientnet_lite0_128", "dataset=doodle_strokes")
ROOT = Path(__file__).resolve().parents[1]
HEADS = (
    "seed  wall s   CPU s   SEA before  SEA after   gain   P before  P after  critic's gain  hack gap [95% interval]"
)


def run(script: str, folder: Path, *overrides: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command, in a process of its own."""
    command = [sys.executable, str(ROOT / script), *overrides, f"hydra.run.dir={folder}"]
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - started, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(seed: int, root: Path, overrides: list[str]) -> tuple[str, float, float]:
    """A line of the table, the judge's gain in SEA, and its gain in P."""
    training, evaluation, cache = root / f"train-{seed}", root / f"evaluate-{seed}", f"paths.cache={root / 'cache'}"
    wall_s, cpu_s = run("train.py", training, f"seed={seed}", cache, *overrides)
    looked_at = ["benchmark=generation", "critic=saved", f"critic.file={training / 'critic.safetensors'}"]
    run("evaluate.py", evaluation, *looked_at, *CRITIC, f"sketches={training / 'sketches'}", f"seed={seed}", cache)
    score = json.loads((evaluation / "score.json").read_text())["scores"]
    value = {name: found["value"] for name, found in score.items()}
    gap = score["hack_gap"]
    text = (
        f"{seed:4d}  {wall_s:6.0f}  {cpu_s:6.0f}   {value['sea_before']:10.3f}  {value['sea']:9.3f}  "
        f"{value['gain_sea']:+.3f}  {value['recognition_before']:8.3f}  {value['recognition']:7.3f}  "
        f"{value['gain_sea_critic']:+13.3f}  {gap['value']:+.3f} [{gap['ci_low']:+.3f}, {gap['ci_high']:+.3f}]"
    )
    return text, value["gain_sea"], value["recognition"] - value["recognition_before"]


def main() -> None:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    gains = []
    print(HEADS, flush=True)
    with TemporaryDirectory() as folder:
        for seed in range(seeds):
            text, sea, recognition = row(seed, Path(folder), sys.argv[2:])
            print(text, flush=True)
            gains.append((sea, recognition))
    smallest = min(sea for sea, _ in gains)
    print(f"smallest gain of the judge's SEA {smallest:+.3f}, of its P {min(p for _, p in gains):+.3f}")


if __name__ == "__main__":
    main()
