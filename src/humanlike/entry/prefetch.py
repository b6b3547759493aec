"""`humanlike prefetch`: fetch weights and data now, so that the same settings work with offline=true."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

USAGE = """humanlike prefetch [key=value …]: build the configured backbone, data set and judge once, so that their files
are in the caches; afterwards the same settings work with offline=true

  humanlike prefetch backbone=resnet50
  humanlike prefetch benchmark=sea judge=smolvlm      the vision-language model of a judge
"""


def main(arguments: Sequence[str]) -> None:
    """Run the command."""
    if any(a in {"--help", "-h"} for a in arguments):
        print(USAGE)
        return
    from humanlike.entry.conf import compose
    from humanlike.entry.targets import build

    config = compose("evaluate", list(arguments))
    backbone, data = build(config.backbone), build(config.dataset)
    print(f"ready: {backbone.name} (weights {backbone.weights_hash[:12]}) and {data.name} ({len(data)} items)")
    judge = config.get("judge")
    if judge is not None and _has_files(judge):
        about = _made(build(judge), backbone)
        if about:
            print(f"ready: {about}")


def _has_files(config: Any) -> bool:
    """Whether a judge brings a network of its own; endpoints, which want a key, and annotations do not."""
    from hydra.utils import get_object

    from humanlike.entry.targets import check_target

    check_target(config["_target_"], "judge")
    return bool(config.get("_partial_")) or hasattr(get_object(config["_target_"]), "ready")


def _made(judge: Any, backbone: Any) -> str:
    """What of a judge is on this machine now, in one line; "" for one that reads the backbone alone."""
    made = judge(backbone=backbone) if isinstance(judge, functools.partial) else judge
    return str(getattr(made, "ready", None) or getattr(made, "source", None) or "")
