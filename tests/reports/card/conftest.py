"""Run folders of four simulated models on three benchmarks, two seeds each, and their card."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from humanlike.reports.card.card import build_card
from humanlike.reports.run_folder import read_record, score_of_record

MODELS, SEEDS = 4, 2


def measuring_script(repository, name):
    """A module of perf/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, repository / "perf" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def report_twin(repository):
    """The module that writes synthetic runs; see perf/report_twin.py."""
    return measuring_script(repository, "report_twin")


@pytest.fixture
def browser(repository):
    """Makes a browser with a window of a size; skips where there is no Chromium."""
    pipe = measuring_script(repository, "browser_pipe")
    if pipe.program() is None:
        pytest.skip("Chromium is not installed")
    return pipe.Browser


@pytest.fixture(scope="session")
def run_folders(report_twin, tmp_path_factory) -> list[Path]:
    """Folders of finished runs."""
    twin = report_twin.ReportTwin(concepts=6, instances=5, replicates=40)
    return twin.write(tmp_path_factory.mktemp("runs"), MODELS, SEEDS)


@pytest.fixture(scope="session")
def run_scores(run_folders):
    """The runs as the card reads them."""
    return [score_of_record(read_record(folder), folder) for folder in run_folders]


@pytest.fixture(scope="session")
def card(run_scores):
    """The card of all runs."""
    return build_card(run_scores)
