"""The grid from the command line: one sweep, one gathering; a killed or repeated sweep repeats nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_grid_is_one_sweep_and_one_gathering(repository, tmp_path):
    command = [
        sys.executable, "evaluate.py", "-m", "experiment=sea_grid", "backbone=random_tiny", "readout.n_splits=2",
        "dataset.concepts=[lion,owl,taxi,chair]", "dataset.instances=6", "dataset.judgments=0",
        "benchmark.replicates=20", "benchmark.sensitivity_draws=0", "report=false", "logger=none",
        "extraction.num_workers=0", f"paths.output_dir={tmp_path / 'out'}", f"paths.cache={tmp_path / 'cache'}",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = sorted((tmp_path / "out").rglob("score.json"))
    assert len(runs) == 4  # element source × judge; the classifier is one here
    gather = [sys.executable, "-m", "humanlike", "gather", str(tmp_path / "out"), "--output", str(tmp_path / "grid")]
    said = subprocess.run(gather, cwd=repository, env=environment, capture_output=True, text=True, check=True).stdout
    assert "SEA of these runs cannot be compared" in said
    grid = pd.read_parquet(tmp_path / "grid" / "tables" / "grid.parquet")
    assert grid["judge"].nunique() == 2
    assert grid["elements"].nunique() == 2
    pairs = pd.read_parquet(tmp_path / "grid" / "tables" / "rank_correlations.parquet")
    assert len(pairs) == 6
    assert pairs["spearman"].between(-1, 1).all()
    again = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0
    assert again.stderr.count("done before") == 4
