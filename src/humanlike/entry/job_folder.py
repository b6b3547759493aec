"""Folder names of sweep jobs: what was overridden, readable, safe on every file system, the same on every rerun."""

from __future__ import annotations

import hashlib
import re

LONGEST = 120


def job_folder(override_dirname: str) -> str:
    """A folder name for one job of a sweep.

    The name is a pure function of the overrides, so that running a sweep again finds what an earlier run finished.

    Args:
        override_dirname: Hydra's comma-joined overrides of the job.

    Returns:
        The overrides with unsafe characters replaced. Where that loses information or the name would be too long, a
        digest of the original keeps names apart.

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
    return f"{safe[:LONGEST]}-{digest}"
