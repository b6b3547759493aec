"""What a second process costs: extraction by two processes against one, in CPU time and in wall time.

python perf/processes.py [--items 2048] [--rounds 3] [--backbone tf_efficientnet_lite0] [--devices 2]

Ideal is the CPU time of one process, split; and its wall time divided by the number of processes, where every process
has a core. One thread and one core a process throughout: the images are decoded in a thread beside the network, which
would otherwise use a second core. The rounds alternate, and the medians are compared.
CPU time is of the whole tree of processes (fork, rendezvous and writing included).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import torch

from humanlike.backbones.features import extract_features
from humanlike.data.doodles import doodles
from humanlike.entry.conf import compose
from humanlike.entry.environment import build_trainer, prepare
from humanlike.entry.targets import build


def cpu_seconds() -> float:
    """CPU seconds of this process and of all its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--backbone", default="tf_efficientnet_lite0")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    config = compose("evaluate", [f"backbone={given.backbone}"])
    prepare(config)
    backbone, data = build(config.backbone), doodles(instances=-(-given.items // 192), judgments=0)
    data = data.select(range(given.items)) if hasattr(data, "select") else data
    measured: dict[int, list[tuple[float, float]]] = {1: [], given.devices: []}
    hashes, cores = set(), sorted(os.sched_getaffinity(0))
    for _ in range(given.rounds):
        for devices, figures in measured.items():
            os.sched_setaffinity(0, cores[:devices])
            trainer = build_trainer(compose("evaluate", [f"trainer.devices={devices}"]))
            with tempfile.TemporaryDirectory() as folder:
                cpu, wall = cpu_seconds(), time.perf_counter()
                found = extract_features(
                    backbone, data, trainer=trainer, cache_dir=Path(folder), threads=1, progress=False
                )[backbone.default_layer]
                figures.append((cpu_seconds() - cpu, time.perf_counter() - wall))
                hashes.add(found.hashes["features"])
    assert len(hashes) == 1, "the processes do not agree"
    (cpu_1, wall_1), (cpu_n, wall_n) = (
        (statistics.median(c for c, _ in figures), statistics.median(w for _, w in figures))
        for figures in measured.values()
    )
    told = {
        "items": len(data),
        "processes": given.devices,
        "cpu_s": [round(cpu_1, 2), round(cpu_n, 2)],
        "cpu_overhead": round(cpu_n / cpu_1 - 1, 3),
        "wall_s": [round(wall_1, 2), round(wall_n, 2)],
        "wall_overhead_of_ideal": round(wall_n * given.devices / wall_1 - 1, 3),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
