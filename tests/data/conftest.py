"""SEVA's published files made small, with the tool that makes them in full."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def seva_tree() -> ModuleType:
    """The tool that writes SEVA's published layout."""
    path = Path(__file__).resolve().parents[1] / "reference" / "seva_tree.py"
    spec = importlib.util.spec_from_file_location("seva_tree", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def seva_small(seva_tree, shared_data, tmp_path_factory) -> Path:
    """Eight concepts, two photographs, four times, three judgments a sketch; not to be changed."""
    folder = tmp_path_factory.mktemp("seva_small")
    return seva_tree.build(folder, shared_data, concepts=8, photographs=2, judgments=3, every=20, models=("vgg",))


@pytest.fixture
def seva_copy(seva_small, tmp_path) -> Path:
    """A copy of the small tree for a test to change, without the embedding, which takes the longest to read."""
    return Path(shutil.copytree(seva_small, tmp_path / "seva", ignore=shutil.ignore_patterns("THINGS_spose.txt")))
