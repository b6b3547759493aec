"""A sweep of object learning end to end: synthetic layers × seven rules, from features to scores with intervals.

python perf/object_learning_sweep.py [--layers 20] [--subtasks 64] [--sessions 500] [--replicates 1000]

Each layer: calibrated inner products of features, the three conventions' simulations, bootstrap with lapse refit, null
test. CPU seconds of one thread; compiling is left out and said. Memory is the peak above that after the imports.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
import pandas as pd
import torch

from humanlike.backbones.gram import LayerGram, centred_gram, warmup_statistics
from humanlike.benchmarks.object_learning import PAPER_RULE_NAMES
from humanlike.benchmarks.object_learning_conventions import CONVENTIONS
from humanlike.benchmarks.object_learning_people import high_variation_people
from humanlike.benchmarks.object_learning_scores import layer_result
from humanlike.benchmarks.object_learning_sessions import ModelSessions
from humanlike.data.object_learning import ImageSet, ObjectLearningData, PeopleCounts
from humanlike.data.trials import AbsentImages
from humanlike.stats.learning_resampling import draw_sessions

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
    for name, value in (("layers", 20), ("subtasks", 64), ("sessions", 500), ("replicates", 1000)):
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
        sessions.draws(0, order)
    shared = time.process_time() - start
    start = time.process_time()
    small = ModelSessions(data, 2, 0, PAPER_RULE_NAMES)
    small.simulate(layer_gram(0, 1).calibrated() * given.subtasks, CONVENTIONS["paper"].simulation)
    compiling = time.process_time() - start
    seconds, gram_seconds = [], []
    for layer in range(given.layers):
        start = time.process_time()
        gram = layer_gram(layer, given.subtasks)
        made = time.process_time()
        layer_result(gram, sessions, people, draws, "paper")
        gram_seconds.append(made - start)
        seconds.append(time.process_time() - made)
    each = float(np.median(seconds))
    print(f"shared by all models {shared:.1f} s; compiling or loading {compiling:.1f} s; imports {imports_mb:.0f} MB")
    print(f"features and inner products {np.median(gram_seconds):.2f} s a layer (synthetic features included)")
    spread = f"{min(seconds):.2f} / {each:.2f} / {max(seconds):.2f} s"
    print(f"a layer × {len(PAPER_RULE_NAMES)} rules under three conventions: {spread} (least, median, most)")
    total = shared + (each + float(np.median(gram_seconds))) * PAPER_MODELS / len(PAPER_RULE_NAMES)
    print(f"{PAPER_MODELS} models: {total / 60:.1f} min on one core, {total / 120:.1f} min on two")
    print(f"peak memory above the imports {_peak_mb() - imports_mb:.0f} MB")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
