"""`python evaluate.py benchmark=generation` on anyone's folder, as a user starts it."""

from __future__ import annotations

import json

import pytest

from humanlike.data.doodles import doodles
from humanlike.data.svg import drawing_to_svg

CONCEPTS = ["airplane", "lion", "taxi"]
SMALL = (
    "benchmark=generation",
    "backbone=random_tiny",
    f"dataset.concepts=[{','.join(CONCEPTS)}]",
    "dataset.instances=5",
    "dataset.judgments=0",
    "benchmark.judges.doodle_judge.instances=4",
    "benchmark.judges.doodle_judge.steps=10",
    "benchmark.replicates=20",
    "benchmark.sizes=[64]",
    "benchmark.credit=1",
    "extraction.num_workers=0",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two drawings a concept, before and after."""
    root = tmp_path_factory.mktemp("drawn")
    for stage, seconds in (("before", 32), ("after", 8)):
        data = doodles(CONCEPTS, instances=2, conditions=[seconds], judgments=0, seed=3)
        (root / stage).mkdir()
        for i, concept in enumerate(data.table["concept"]):
            (root / stage / f"{concept}-{i:02d}.svg").write_text(drawing_to_svg(data.images.drawing(i)))
    return root


@pytest.mark.slow
def test_a_folder_is_scored_and_the_page_is_there(command, folder, tmp_path):
    done = command("evaluate.py", *SMALL, f"sketches={folder}", f"hydra.run.dir={tmp_path}")
    assert done.returncode == 0, done.stderr
    score = json.loads((tmp_path / "score.json").read_text())
    assert score["counts"]["items_used"] == score["counts"]["items_before"] == 6
    assert {"sea", "hack_gap", "diversity", "jsd", "frechet", "kernel", "strokes"} <= set(score["scores"])
    for name in ("report.html", "before_after.html", "pareto.parquet", "figures/generation_gains.svg"):
        assert (tmp_path / name).is_file(), name
    assert list((tmp_path / "sketches").glob("*.pruned.svg"))


@pytest.mark.slow
def test_a_missing_folder_is_one_sentence(command, tmp_path):
    done = command("evaluate.py", *SMALL, f"hydra.run.dir={tmp_path}")
    assert done.returncode == 1
    assert "give sketches=FOLDER" in done.stderr
    assert "Traceback" not in done.stderr
