"""What a second process costs: extraction by two processes against one, in CPU time and in wall time.

python perf/processes.py [--items 2048] [--rounds 3] [--backbone tf_efficientnet_lite0] [--devices 2] [--source files]

Ideal is the CPU time of one process, split; and its wall time divided by the number of processes, where every process
has a core. One thread and one core a process throughout: the images are decoded in a thread beside the network, which
would otherwise use a second core. The ways take turns, and the medians are compared.
CPU time is of the whole tree of processes (fork, rendezvous and writing included).

Cores of one machine share its memory, so that no program that fills two of them is twice as fast. How much that costs
is told by a third way: processes that know nothing of one another, each with its share of the images.

`--source files` reads PNG files, as published sketches are; `doodles` draws the images itself, and twice: to hash them
before the processes are started, and for the network.
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
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import torch

from humanlike.backbones.features import extract_features
from humanlike.data.doodles import doodles
from humanlike.data.image_folder import image_folder
from humanlike.entry.conf import compose
from humanlike.entry.environment import build_trainer, prepare
from humanlike.entry.targets import build

Figures = tuple[float, float]
"""CPU seconds and wall seconds."""


def clock() -> Figures:
    """CPU seconds of this process and of all its children that have ended, and the time of day."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used), time.perf_counter()


def extract(backbone: Any, data: Any, devices: int) -> tuple[str, Figures]:
    """Digest of the features, and what they took."""
    trainer = build_trainer(compose("evaluate", [f"trainer.devices={devices}"]))
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = clock()
        found = extract_features(backbone, data, trainer=trainer, cache_dir=Path(folder), threads=1, progress=False)
        cpu_end, wall_end = clock()
    return found[backbone.default_layer].hashes["features"], (cpu_end - cpu, wall_end - wall)


def apart(backbone: Any, data: Any, cores: list[int]) -> Figures:
    """What processes take that are not one program, each with a core and an equal share of the images."""
    cpu, wall = clock()
    children = []
    for number, core in enumerate(cores):
        if not (pid := os.fork()):
            os.sched_setaffinity(0, [core])
            extract(backbone, data.select(range(number, len(data), len(cores))), 1)
            os._exit(0)
        children.append(pid)
    if any(os.waitpid(pid, 0)[1] for pid in children):
        raise SystemExit("a process of the third way failed; its messages stand above")
    cpu_end, wall_end = clock()
    return cpu_end - cpu, wall_end - wall


def images(source: str, items: int, folder: Path) -> Any:
    """`items` doodles, drawn when asked for or read from PNG files."""
    drawn = doodles(instances=-(-items // 192), judgments=0).select(range(items))
    if source == "doodles":
        return drawn
    for i, concept in enumerate(drawn.table["concept"]):
        (folder / concept).mkdir(exist_ok=True)
        drawn.images.load(i).save(folder / concept / f"{i}.png")
    return image_folder(folder)


def main() -> None:
    """Measure and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--backbone", default="tf_efficientnet_lite0")
    parser.add_argument("--source", choices=["files", "doodles"], default="files")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    config = compose("evaluate", [f"backbone={given.backbone}"])
    prepare(config)
    cores = sorted(os.sched_getaffinity(0))[: given.devices]
    if len(cores) < given.devices:
        raise SystemExit(f"{given.devices} processes need a core each, and this machine lends {len(cores)}")
    with tempfile.TemporaryDirectory() as folder:
        backbone, data = build(config.backbone), images(given.source, given.items, Path(folder))
        one, several, strangers = [], [], []
        hashes = set()
        for _ in range(given.rounds):
            for devices, figures in ((1, one), (given.devices, several)):
                os.sched_setaffinity(0, cores[:devices])
                digest, took = extract(backbone, data, devices)
                figures.append(took)
                hashes.add(digest)
            strangers.append(apart(backbone, data, cores))
    if len(hashes) != 1:
        raise SystemExit("the processes do not agree")
    cpu_1, wall_1 = (statistics.median(column) for column in zip(*one, strict=True))
    cpu_n, wall_n = (statistics.median(column) for column in zip(*several, strict=True))
    wall_apart = statistics.median(wall for _, wall in strangers)
    told = {
        "items": len(data),
        "source": given.source,
        "processes": given.devices,
        "cpu_s": [round(cpu_1, 2), round(cpu_n, 2)],
        "cpu_overhead": round(cpu_n / cpu_1 - 1, 3),
        "wall_s": [round(wall_1, 2), round(wall_n, 2)],
        "wall_overhead_of_ideal": round(wall_n * given.devices / wall_1 - 1, 3),
        "wall_s_of_strangers": round(wall_apart, 2),
        "strangers_overhead_of_ideal": round(wall_apart * given.devices / wall_1 - 1, 3),
        "rounds_wall_s": [[round(wall, 2) for _, wall in way] for way in (one, several, strangers)],
        "load": os.getloadavg()[0],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
