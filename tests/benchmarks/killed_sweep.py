"""A small sweep of object learning as a process of its own, to be killed and started again by a test.

python killed_sweep.py CACHE [--slow]

Prints one line of JSON: a digest of all tables, images computed, layers scored in this process.
"""

import argparse
import hashlib
import json
import time
import warnings

import numpy as np
import pandas as pd
import torch
from PIL import Image

from humanlike.backbones.network import NetworkBackbone
from humanlike.benchmarks import object_learning
from humanlike.benchmarks.object_learning import ObjectLearningBenchmark
from humanlike.data.object_learning import ImageSet, ObjectLearningData, PeopleCounts
from humanlike.reports.run_folder import digest

SIDE, IMAGES, WARMUP, SHARD = 8, 60, 40, 16


class NoiseImages:
    """Seeded noise; slow where asked, so that there is time for a kill."""

    def __init__(self, number, seed, pause):
        self.number, self.seed, self.pause = number, seed, pause

    def __len__(self):
        return self.number

    def load(self, index):
        time.sleep(self.pause)
        random = np.random.default_rng([self.seed, index])
        return Image.fromarray(random.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)).convert("RGB")

    def content_hash(self, index):
        return hashlib.sha256(f"{self.seed}/{index}".encode()).hexdigest()

    def describe(self, index):
        return f"noise {index}"


def images(objects, each, seed, pause):
    owner = [o for o in objects for _ in range(each)]
    table = pd.DataFrame({"image_id": [f"{o}{i:03d}" for i, o in enumerate(owner)], "category": owner})
    return ImageSet(objects, table, NoiseImages(len(owner), seed, pause))


def network():
    width = 3 * SIDE * SIDE
    return torch.nn.Sequential(torch.nn.Flatten(), *(torch.nn.Linear(width, width) for _ in range(5)))


def table_digest(tables):
    texts = [f"{name}:{table.to_csv(index=False, float_format='%.17g')}" for name, table in sorted(tables.items())]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cache")
    parser.add_argument("--slow", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    pause = 0.01 if given.slow else 0.0
    people = PeopleCounts(np.random.default_rng(0).binomial(20, 0.7, (2, 20)), np.full(2, 20))
    data = ObjectLearningData(
        "noise",
        "high_variation",
        (("a", "b"), ("c", "d")),
        images("abcd", IMAGES, 1, pause),
        images("w", WARMUP, 2, pause),
        people,
        num_trials=20,
    )
    scored, original = [], object_learning.layer_result

    def counted(*arguments):
        time.sleep(50 * pause)
        scored.append(1)
        return original(*arguments)

    object_learning.layer_result = counted
    benchmark = ObjectLearningBenchmark("*", ["square", "mae"], sessions=20, replicates=30, size=SIDE, num_features=64)
    backbone = NetworkBackbone(network, "1", {"size": SIDE}, name="tiny", seed=0)
    found = benchmark.run_backbone(
        backbone,
        data,
        cache_dir=given.cache,
        extraction={"progress": False, "micro_batch": 8, "micro_batches_per_shard": SHARD // 8},
    )
    result = found.result
    told = {
        "digest": digest(result.items, result.counts) + table_digest(result.tables),
        "images": found.info["items_computed"],
        "scored": len(scored),
        "layers": result.counts["layers"],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
