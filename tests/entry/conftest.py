"""Runs of the commands as a user starts them: in a process of their own, with folders of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SMALL = (
    "backbone=random_tiny",
    "dataset.concepts=5",
    "dataset.instances=5",
    "benchmark.replicates=20",
    "benchmark.splits=5",
    "extraction.num_workers=0",
)


@pytest.fixture(scope="session")
def small():
    """Overrides that make an evaluation take seconds: 100 doodles, a random network, few replicates."""
    return SMALL


@pytest.fixture(scope="session")
def command(repository, tmp_path_factory):
    """Run `python SCRIPT.py arguments…` from a foreign folder; every session has its own cache."""
    home = tmp_path_factory.mktemp("home")
    environment = {
        **os.environ,
        "HUMANLIKE_CACHE": str(home / "cache"),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(home / "hf"),
        "WANDB_MODE": "offline",
        "COLUMNS": "120",
    }

    def run(script, *arguments, cwd=home, **extra):
        return subprocess.run(
            [sys.executable, str(repository / script), *arguments],
            cwd=cwd,
            env={**environment, **extra},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    run.home = home
    run.repository = repository
    run.environment = environment
    return run
