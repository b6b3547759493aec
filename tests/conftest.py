"""Settings that must stand before torch is imported, and the folder of shared real data."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("WANDB_SILENT", "true")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data that lies beside a checkout; tests that need it skip where it is absent."""
    root = Path(os.environ.get("HUMANLIKE_SHARED", REPOSITORY.parent / "shared")) / "data"
    if not root.is_dir():
        pytest.skip("the shared data folder is absent (set HUMANLIKE_SHARED to the folder that holds data/)")
    return root
