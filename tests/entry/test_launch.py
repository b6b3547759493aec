"""Jobs under other launchers."""

from __future__ import annotations

import json

import pytest


@pytest.mark.slow
def test_joblib_runs_jobs_in_other_processes(command, small, tmp_path):
    pytest.importorskip("joblib")
    done = command(
        "evaluate.py", "-m", *small, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "seed=0,1", "logger=none",
        "report=false", f"paths.output_dir={tmp_path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folders = sorted(p.parent.name for p in tmp_path.rglob("score.json"))
    assert len(folders) == 2
    assert len({json.loads(p.read_text())["digest"] for p in tmp_path.rglob("score.json")}) == 2
