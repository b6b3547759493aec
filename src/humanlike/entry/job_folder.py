"""Folder names of sweep jobs: what was overridden, readable, safe on every file system, the same on every rerun."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

LONGEST = 120
UNNAMED = frozenset({"logger", "resume", "offline", "tracebacks", "report", "debug", "paths", "hydra", "max_failures"})
"""Settings that say nothing about what a run measures."""


def job_folder(override_dirname: str) -> str:
    """A folder name for one job of a sweep.

    The name is a pure function of the overrides, so that running a sweep again finds what an earlier run finished.

    Args:
        override_dirname: Hydra's comma-joined overrides of the job.

    Returns:
        The overrides with unsafe characters replaced. Where they are too long together, those that say nothing about
        what is measured are left out and the others shortened. Where that loses information, a digest of the original
        keeps names apart.

    Example:
        >>> job_folder("backbone=resnet50,seed=1")
        'backbone=resnet50,seed=1'
        >>> job_folder("dataset.root=/data/a") == job_folder("dataset.root=/data_a")
        False
    """
    if not override_dirname:
        return "defaults"
    safe = re.sub(r"[^A-Za-z0-9_.,=+@-]+", "_", override_dirname)
    if safe == override_dirname and len(safe) <= LONGEST and safe.strip("."):
        return safe
    digest = hashlib.sha256(override_dirname.encode()).hexdigest()[:10]
    parts = re.split(r",(?=[~+]*[\w./@]+=)", safe)
    telling = [part for part in parts if re.split(r"[=.@/]", part.lstrip("~+"))[0] not in UNNAMED]
    return f"{fitted(telling if len(safe) > LONGEST else parts, LONGEST, ',')}-{digest}"


def fitted(overrides: Sequence[str], longest: int, between: str) -> str:
    """Overrides on one line of at most `longest` characters, of which each can still be seen.

    Where they are too long, `dataset.concepts=5` becomes `concepts=5`; where that is not enough, the longest are cut.

    Args:
        overrides: `key=value`.
        longest: Most characters.
        between: What stands between two.

    Example:
        >>> fitted(["dataset.concepts=5", "readout.C=0.1", "seed=1"], 26, " ")
        'concepts=5 C=0.1 seed=1'
        >>> fitted(["dataset.root=/very/long/path", "seed=1"], 20, " ")
        'root=/very/lo seed=1'
    """
    line = between.join(overrides)
    if len(line) <= longest:
        return line
    parts = []
    for override in overrides:
        key, equals, value = override.partition("=")
        parts.append(f"{key.rpartition('.')[2]}{equals}{value}")
    width = max(map(len, parts))
    while width > 1 and len(between.join(part[:width] for part in parts)) > longest:
        width -= 1
    return between.join(part[:width] for part in parts)[:longest]
