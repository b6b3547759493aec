"""A sweep of object learning end to end: synthetic layers × seven rules, from features to scores with intervals.

python perf/object_learning_sweep.py [--layers 20] [--subtasks 64] [--sessions 500] [--replicates 1000] [--networks 19]

Each layer: inner products of features, written to a store and read back (`store=gram`: no features on disk), the three
conventions' simulations, bootstrap with lapse refit, tests by phase, null test. CPU seconds of one thread; compiling is
left out and said. The projection to the paper's 2,408 models counts what layers share once for each network, as if each
were a process of its own. Memory is the peak above that after the imports.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from humanlike.backbones.gram import GramStore, LayerGram, centred_gram, warmup_statistics
from humanlike.benchmarks.object_learning import PAPER_RULE_NAMES
from humanlike.benchmarks.object_learning_conventions import CONVENTIONS
from humanlike.benchmarks.object_learning_people import HighVariationPeople, high_variation_people
from humanlike.benchmarks.object_learning_scores import layer_result
from humanlike.benchmarks.object_learning_sessions import ModelSessions
from humanlike.data.object_learning import ImageSet, ObjectLearningData, PeopleCounts
from humanlike.data.trials import AbsentImages
from humanlike.stats.learning_resampling import SessionDraws, draw_sessions

IMAGES, TRIALS, WIDTH, PAPER_MODELS = 100, 100, 2048, 2408


def experiment(subtasks: int) -> ObjectLearningData:
    """An experiment of the published size without pixels, with binomial people."""
    objects = [f"object{i:03d}" for i in range(2 * subtasks)]
    owner = [o for o in objects for _ in range(IMAGES)]
    table = pd.DataFrame({"image_id": [f"{o}-{i}" for i, o in enumerate(owner)], "category": owner})
    random = np.random.default_rng(0)
    curve_T = 0.9 - 0.4 * np.exp(-np.arange(TRIALS) / 8)
    k_ST = random.binomial(50, np.tile(curve_T, (subtasks, 1)))
    pairs = tuple(zip(objects[::2], objects[1::2], strict=True))
    images = ImageSet("synthetic", table, AbsentImages(table["image_id"].tolist()))
    return ObjectLearningData(
        "synthetic", "high_variation", pairs, images, None, PeopleCounts(k_ST, np.full(subtasks, 50))
    )


def layer_gram(layer: int, subtasks: int) -> LayerGram:
    """Inner products of synthetic features, subtask by subtask."""
    random = np.random.default_rng(layer)
    warm_MD = random.standard_normal((400, WIDTH), dtype=np.float32)
    mean_D, norm_M = warmup_statistics([warm_MD])
    grams = []
    for _ in range(subtasks):
        centres = random.standard_normal((2, WIDTH), dtype=np.float32) * 0.25
        f_ND = random.standard_normal((2 * IMAGES, WIDTH), dtype=np.float32) + np.repeat(centres, IMAGES, axis=0)
        grams.append(centred_gram(f_ND, mean_D))
    return LayerGram(tuple(grams), norm_M, WIDTH)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"layers": 20, "subtasks": 64, "sessions": 500, "replicates": 1000, "networks": 19}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    torch.set_num_threads(1)
    imports_mb = _peak_mb()
    start = time.process_time()
    data = experiment(given.subtasks)
    sessions = ModelSessions(data, given.sessions, 0, PAPER_RULE_NAMES)
    people = high_variation_people(data, given.sessions, given.replicates, 0)
    draws = draw_sessions(np.full(given.subtasks, given.sessions), given.replicates, 0, "model")
    for order in ("permutation", "paper_text"):
        for subtask in range(given.subtasks):
            sessions.draws(subtask, order)
    shared = time.process_time() - start
    start = time.process_time()
    small = ModelSessions(data, 2, 0, PAPER_RULE_NAMES)
    small.simulate(layer_gram(0, 1).calibrated() * given.subtasks, CONVENTIONS["paper"].simulation)
    compiling = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        store = GramStore(folder, {"images": "synthetic"}, [range(given.subtasks)])
        times = [_layer(layer, store, sessions, people, draws) for layer in range(given.layers)]
        on_disk_mb = sum(path.stat().st_size for path in Path(folder).rglob("*.npz")) / 2**20 / given.layers
    gram_seconds, seconds = zip(*times, strict=True)
    rules = len(PAPER_RULE_NAMES)
    each, inner = float(np.median(seconds)), float(np.median(gram_seconds))
    print(f"shared by a network's layers {shared:.1f} s; compiling or loading {compiling:.1f} s")
    print(
        f"features and inner products {inner:.2f} s a layer (synthetic features included), {on_disk_mb:.0f} MB on disk"
    )
    spread = f"{min(seconds):.2f} / {each:.2f} / {max(seconds):.2f} s"
    print(f"a layer × {rules} rules under three conventions: {spread} (least, median, most of {given.layers})")
    measured = shared + sum(seconds) + sum(gram_seconds)
    print(f"{given.layers * rules} models end to end: {measured:.1f} s")
    total = given.networks * (shared + compiling) + (each + inner) * PAPER_MODELS / rules
    minutes = f"{total / 60:.1f} min on one core, {total / 120:.1f} min on two"
    print(f"{PAPER_MODELS} models of {given.networks} networks: {minutes}")
    print(f"peak memory {_peak_mb() - imports_mb:.0f} MB above the imports' {imports_mb:.0f} MB")


def _layer(
    layer: int, store: GramStore, sessions: ModelSessions, people: HighVariationPeople, draws: SessionDraws
) -> tuple[float, float]:
    """CPU seconds of the features with their inner products, and of everything after."""
    start = time.process_time()
    name = f"layer {layer}"
    store.write(name, 0, layer_gram(layer, len(store.blocks[0])))
    made = time.process_time()
    layer_result(store.read(name), sessions, people, draws, "paper")
    return made - start, time.process_time() - made


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
