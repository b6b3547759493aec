"""Speed of rendering novel objects, on one thread: images a second, and the seconds that the demo's images take.

Run: python perf/rendering.py [--objects 16] [--images 100] [--size 256]

The first image also compiles the rasteriser (once a machine); its time is given apart.
"""

from __future__ import annotations

import argparse
import time

from humanlike.data.novel_objects import high_variation_images, one_shot_images, warmup_images


def main() -> None:
    """Print one line a set: images, seconds of wall and CPU time, images a second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=16)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--size", type=int, default=256)
    a = parser.parse_args()
    began = time.perf_counter()
    high_variation_images(1, 1, size=a.size, seed=1).images.load(0)
    print(f"first image, compiler included: {time.perf_counter() - began:.2f} s")
    sets = {
        "high variation": high_variation_images(a.objects, a.images, size=a.size),
        "warm-up": warmup_images(size=a.size),
        "one-shot": one_shot_images(2, size=a.size),
    }
    for name, images in sets.items():
        wall, cpu = time.perf_counter(), time.process_time()
        for index in range(len(images)):
            images.images.load(index)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rate = f"{len(images) / wall:.0f} images/s wall, {len(images) / cpu:.0f} CPU"
        print(f"{name:15s} {len(images):5d} images in {wall:.1f} s wall, {cpu:.1f} s CPU: {rate}")


if __name__ == "__main__":
    main()
