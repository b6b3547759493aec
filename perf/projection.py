"""Random projections of wide layers: the structured one against the Gaussian one, whose matrix is in memory.

python perf/projection.py [--features 100352] [--outputs 2048] [--batch 64] [--rounds 5]

CPU seconds of one thread; both are timed in turn in one process. Then how well each keeps squared distances, beside the
theoretical spread √(2/K) of the Gaussian one.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from humanlike.backbones.projection import GaussianProjection, StructuredProjection


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("features", 100_352), ("outputs", 2048), ("batch", 64), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    torch.set_num_threads(1)
    x_BD = torch.from_numpy(np.random.default_rng(0).standard_normal((given.batch, given.features), dtype=np.float32))
    x_BD.clamp_(min=0)
    projections = {
        "gaussian": GaussianProjection(given.features, given.outputs),
        "srft": StructuredProjection(given.features, given.outputs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in projections}
    for projection in projections.values():
        projection(x_BD)  # draws
    for _ in range(given.rounds):
        for name, projection in projections.items():
            start = time.process_time()
            projection(x_BD)
            seconds[name].append(time.process_time() - start)
    before = torch.pdist(x_BD.double()).square()
    for name, projection in projections.items():
        ratio = torch.pdist(projection(x_BD).double()).square() / before
        milliseconds = 1000 * np.median(seconds[name]) / given.batch
        print(f"{name:9s} {milliseconds:7.3f} ms an image, squared distances {ratio.mean():.4f} ± {ratio.std():.4f}")
    ratios = np.array(seconds["gaussian"]) / np.array(seconds["srft"])
    print(f"ratio {ratios.min():.1f} / {np.median(ratios):.1f} / {ratios.max():.1f} (least, median, most)")
    print(f"theory: ± {(2 / given.outputs) ** 0.5:.4f}")


if __name__ == "__main__":
    main()
