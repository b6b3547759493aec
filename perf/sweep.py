"""What a sweep costs beside its jobs: CPU seconds a job of launcher, configuration, imports and records.

The jobs are as small as jobs can be (a few random features of 60 doodles that lie in the cache), so that nearly all
that is measured is overhead; what the evaluation itself takes is not taken off.

Run: python perf/sweep.py [--jobs 200] [--launchers basic joblib submitit_local]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TINY = (
    "backbone=random_tiny", "dataset.concepts=3", "dataset.instances=5", "benchmark.replicates=2", "benchmark.splits=2",
    "extraction.num_workers=0", "report=false", "logger=none",
)  # fmt: skip
ALLOWED = 3.0


def cpu() -> float:
    """CPU seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def sweep(folder: Path, launcher: str, jobs: int) -> tuple[float, float]:
    """CPU and wall seconds of one sweep; its jobs differ in the seed of folds and intervals alone."""
    seeds = ",".join(str(k) for k in range(jobs))
    command = [
        sys.executable, str(ROOT / "evaluate.py"), "-m", *TINY, f"hydra/launcher={launcher}",
        f"seed={seeds}", f"paths.output_dir={folder / launcher}", f"paths.cache={folder / 'cache'}",
    ]  # fmt: skip
    if launcher == "basic":
        command.remove("hydra/launcher=basic")
    before, began = cpu(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the sweep under {launcher} failed: {done.stderr[-2000:]}")
    return cpu() - before, time.perf_counter() - began


def main() -> None:
    """Measure every launcher, first and again when all is finished, and exit with 1 above the allowed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--launchers", nargs="+", default=["basic", "joblib", "submitit_local"])
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    most = 0.0
    with tempfile.TemporaryDirectory() as folder:
        sweep(Path(folder), "basic", 1)  # fills the cache of features
        for launcher in arguments.launchers:
            first, wall = sweep(Path(folder), launcher, arguments.jobs)
            again, _ = sweep(Path(folder), launcher, arguments.jobs)
            most = max(most, first / arguments.jobs)
            each, walled, skipped = (seconds / arguments.jobs for seconds in (first, wall, again))
            print(
                f"{launcher:15s} {arguments.jobs} jobs: {each:.2f} CPU s a job with the tiny job itself, "
                f"{walled:.2f} s wall; {skipped:.2f} CPU s a job when all is finished"
            )
    print(f"most: {most:.2f} CPU s a job; allowed: {ALLOWED} s")
    sys.exit(most > ALLOWED)


if __name__ == "__main__":
    main()
