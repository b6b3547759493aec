"""Speed of feature extraction against plain loops of the same network, in alternating rounds of one process.

    python perf/extraction.py [--backbone tf_efficientnet_lite0] [--images 256] [--rounds 3] [--threads 1]
        [--dtype bfloat16]

Three ways to the same features: `naive` builds the autograd graph of each batch, on contiguous tensors; `fastest` runs
in inference mode with channels-last tensors; `ours` is `extract_features`, which also hashes, checks and writes every
feature. With `--dtype bfloat16` a fourth way is `extract_features` in that type, including the measurement of the
deviation from float32. With `--images-ready` the plain loops are handed finished tensors; without it they prepare each
batch before they run it. Ratios are of medians over rounds; CPU time counts all threads and shows what the wall time
of a busy machine hides.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import pandas as pd
import torch
from PIL import Image, ImageDraw

from humanlike.backbones.features import extract_features
from humanlike.backbones.vision import TimmBackbone
from humanlike.types import Sketches


class LineDrawings:
    """Random polylines, black on white, as sketches are."""

    def __init__(self, num: int, side: int) -> None:
        self.num, self.side = num, side

    def __len__(self) -> int:
        return self.num

    def load(self, index: int) -> Image.Image:
        """Drawing `index`."""
        points = np.random.default_rng(index).uniform(0, self.side, (12, 2))
        image = Image.new("RGB", (self.side, self.side), "white")
        ImageDraw.Draw(image).line([tuple(p) for p in points], fill="black", width=3)
        return image

    def content_hash(self, index: int) -> str:
        """Name of the drawing."""
        return f"{self.side}:{index}"

    def describe(self, index: int) -> str:
        """Name of the drawing."""
        return f"line drawing {index}"


def data_set(num: int, side: int) -> Sketches:
    """A data set of `num` line drawings."""
    table = pd.DataFrame({"sketch_id": [f"d{i}" for i in range(num)], "concept": "line", "condition": 0.0})
    return Sketches("lines", table.assign(image_id=table["sketch_id"]), ("line",), LineDrawings(num, side))


def prepared(data: Sketches, backbone: TimmBackbone, start: int, batch: int, channels_last: bool) -> torch.Tensor:
    """Transformed images [start, start + batch)."""
    x_B3HW = torch.stack([backbone.transform(data.images.load(i)) for i in range(start, start + batch)])
    return x_B3HW.contiguous(memory_format=torch.channels_last if channels_last else torch.contiguous_format)


def plain_loop(
    backbone: TimmBackbone, batches: list[torch.Tensor] | None, data: Sketches, batch: int, fast: bool
) -> np.ndarray:
    """Features by the loop one writes in a notebook, with (`fast`) or without the two tricks."""
    network = backbone.network.to(memory_format=torch.channels_last if fast else torch.contiguous_format)
    network.requires_grad_(not fast)
    rows = []
    with torch.inference_mode(fast):
        for b in range(len(data) // batch):
            x_B3HW = batches[b] if batches is not None else prepared(data, backbone, b * batch, batch, fast)
            rows.append(network.forward_head(network.forward_features(x_B3HW), pre_logits=True).detach())
    network.requires_grad_(False)
    return torch.cat(rows).numpy()


def main() -> None:
    """Print one line a way: images/s by wall and by CPU time, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="tf_efficientnet_lite0")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--images-ready", action="store_true")
    parser.add_argument("--dtype", default="float32")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    backbone = TimmBackbone(a.backbone, weights=None)
    data = data_set(a.images // a.batch * a.batch, a.side)
    num = len(data) // a.batch
    ready = {
        fast: [prepared(data, backbone, b * a.batch, a.batch, fast) for b in range(num)] if a.images_ready else None
        for fast in (False, True)
    }
    options = {"micro_batch": a.batch, "threads": a.threads, "num_workers": a.num_workers, "progress": False}
    ways = {
        "naive": lambda: plain_loop(backbone, ready[False], data, a.batch, fast=False),
        "fastest": lambda: plain_loop(backbone, ready[True], data, a.batch, fast=True),
        "ours": lambda: extract_features(backbone, data, **options)["pre_logits"].f_ND,
    }
    if a.dtype != "float32":
        ways[a.dtype] = lambda: extract_features(backbone, data, dtype=a.dtype, **options)["pre_logits"].f_ND
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    features = {}
    for _ in range(a.rounds):
        for name, way in ways.items():
            wall, cpu = time.perf_counter(), sum(os.times()[:4])
            features[name] = way()
            seconds[name].append((time.perf_counter() - wall, sum(os.times()[:4]) - cpu))
    print(f"{a.backbone}, {len(data)} images, batch {a.batch}, {a.threads} thread(s), {a.num_workers} worker(s)")
    rates = {}
    for name, times in seconds.items():
        rates[name] = [len(data) / statistics.median(column) for column in zip(*times, strict=True)]
        error = float(np.abs(features[name] - features["fastest"]).max())
        print(
            f"{name:17s} {rates[name][0]:7.1f} images/s wall {rates[name][1]:7.1f} images/s CPU  max diff {error:.1e}"
        )
    for way in list(ways)[2:]:
        for plain in ("fastest", "naive"):
            wall_ratio, cpu_ratio = (rates[way][i] / rates[plain][i] for i in range(2))
            print(f"{way} / {plain}: {wall_ratio:.2f} wall, {cpu_ratio:.2f} CPU")


if __name__ == "__main__":
    main()
