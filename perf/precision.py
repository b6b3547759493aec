"""What a narrower type than float32 in the forward pass does to a score.

    python perf/precision.py [--backbone tf_efficientnet_lite0] [--dataset doodles] [--dtype bfloat16] [key=value ...]

Runs the benchmark twice, everything else equal, and prints every score of the model with the change, beside half the
width of its interval where it has one (what the sample of sketches leaves open); then how far single sketches moved:
share of changed top-1 labels, and changes of the entropy. Settings of the command line may follow, for example
`dataset.concepts=12`.
"""

from __future__ import annotations

import argparse

import numpy as np
import yaml

from humanlike import evaluate
from humanlike.types import Score


def main() -> None:
    """Evaluate in both types and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", default="tf_efficientnet_lite0")
    parser.add_argument("--dataset", default="doodles")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("settings", nargs="*", help="key=value, as for python evaluate.py")
    a = parser.parse_args()
    pairs = (setting.split("=", 1) for setting in a.settings)
    overrides = {key.replace(".", "__"): yaml.safe_load(value) for key, value in pairs}
    full, narrow = (
        evaluate(a.backbone, dataset=a.dataset, extraction__dtype=dtype, **overrides) for dtype in ("float32", a.dtype)
    )
    print(f"{a.backbone} on {a.dataset}, {full.result.counts['items_used']} sketches; float32 and {a.dtype}")
    print(f"{'score':36s} {'float32':>10s} {a.dtype:>10s} {'change':>10s} {'± of float32':>13s}")
    for name in (n for n in full.result.scores if not n.endswith("_people")):
        print(score_line(name, full, narrow))
    print(item_lines(full, narrow))
    moved = narrow.result.details["extraction"]["deviation_from_float32"]
    print(f"features of the first {moved['items']} sketches: relative deviation median {moved['median']:.2%}, ", end="")
    print(f"largest {moved['max']:.2%}")


def score_line(name: str, full: Score, narrow: Score) -> str:
    """A score in both types."""
    one, other = full.result.scores[name], narrow.result.scores[name]
    if one.value is None or other.value is None:
        return f"{name:36s} {'not known':>10s}"
    known = one.ci_low is not None and one.ci_high is not None
    half = f"{(one.ci_high - one.ci_low) / 2:.4f}" if known else ""
    return f"{name:36s} {one.value:10.4f} {other.value:10.4f} {other.value - one.value:+10.4f} {half:>13s}"


def item_lines(full: Score, narrow: Score) -> str:
    """How far single sketches moved."""
    key = ["sketch_id", "top1", "entropy"]
    both = full.result.items[key].merge(narrow.result.items[key], on="sketch_id", validate="1:1")
    change_N = np.abs(both["entropy_x"] - both["entropy_y"])
    return (
        f"changed top-1 labels: {(both['top1_x'] != both['top1_y']).mean():.2%} of {len(both)} sketches; "
        f"change of a sketch's entropy: median {change_N.median():.4f}, largest {change_N.max():.4f} nats"
    )


if __name__ == "__main__":
    main()
