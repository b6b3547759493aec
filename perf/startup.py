"""Time from a command to its first answer: `--help` of evaluate.py, train.py and humanlike, against a bare Python.

Run: python perf/startup.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "evaluate.py --help": [str(ROOT / "evaluate.py"), "--help"],
    "train.py --help": [str(ROOT / "train.py"), "--help"],
    "python -m humanlike --help": ["-m", "humanlike", "--help"],
}


def cpu() -> float:
    """CPU seconds of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Run every command in turn, several rounds, and print medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    wall: dict[str, list[float]] = {name: [] for name in COMMANDS}
    used: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            began, before = time.perf_counter(), cpu()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            wall[name].append(time.perf_counter() - began)
            used[name].append(cpu() - before)
    for name in COMMANDS:
        print(f"{name:28s} {statistics.median(wall[name]):.2f} s wall  {statistics.median(used[name]):.2f} s CPU")


if __name__ == "__main__":
    main()
