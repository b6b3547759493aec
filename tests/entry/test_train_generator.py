"""`task=generator` in process: what it leaves behind, and that a second start goes on instead of anew."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import pytest
from pytorch_lightning.loggers import CSVLogger

from humanlike.data.doodles.dataset import doodles
from humanlike.data.svg import read_svg
from humanlike.elements.critic import fit_critic
from humanlike.entry.conf import compose
from humanlike.entry.targets import build
from humanlike.entry.train_generator import train_generator
from humanlike.entry.train_generator_files import spread_over
from humanlike.generators.decoder import StrokeDecoder
from humanlike.generators.sketch_rnn import SketchRNN

# Where SLURM is installed, Lightning says so.
pytestmark = pytest.mark.filterwarnings("ignore:.*srun.*command is available.*")
CONCEPTS = ("airplane", "bench", "lion")
SMALL = {
    "decoder": partial(StrokeDecoder, num_curves=8, width=16, depth=1, heads=2, code=4),
    "sketch_rnn": partial(SketchRNN, max_steps=8, max_curves=8, hidden=8, encoder_hidden=8, code=4, components=2),
}


def other_doodles(backbone, sketches, cache_dir=None):
    """A judge from drawings of another seed."""
    del sketches
    drawings = doodles(concepts=CONCEPTS, instances=3, judgments=0, seed=9)
    return fit_critic(backbone, drawings, cache_dir=cache_dir, name="other")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["decoder", "sketch_rnn"])
def test_a_run_leaves_sketches_tables_and_a_state_to_go_on_from(kind, tmp_path):
    backbone = build(compose("train", ["backbone=random_tiny"]).backbone)
    data = doodles(concepts=CONCEPTS, instances=4, judgments=0)
    run = partial(
        train_generator,
        backbone,
        data,
        tmp_path / "run",
        generator=SMALL[kind],
        judge=partial(other_doodles, backbone),
        concepts=2,
        pretrain_steps=4,
        pretrain_batch_size=8,
        val_every=1,
        n_splits=4,
        sketches=4,
        size=32,
        judge_every=2,
        judged_per_concept=2,
        judge_size=32,
        largest_gap=10.0,
        cache_dir=tmp_path / "cache",
        trainer_kwargs={"accelerator": "cpu", "devices": 1},
    )
    first = run(steps=2, loggers=[CSVLogger(tmp_path / "log", name="", version="")])
    assert first["steps"] == 2
    assert not first["resumed"]
    assert first["hack_gap"] == pytest.approx(first["gain"]["critic"]["sea"] - first["gain"]["judge"]["sea"])
    table = pd.read_parquet(tmp_path / "run" / "sketches.parquet")
    assert table.groupby("stage").size().to_dict() == {"before": 4, "after": 4}
    for stage in ("before", "after"):
        rows = table[table["stage"] == stage]
        assert first[stage]["judge"]["sea"] == pytest.approx(rows["sea_judge"].mean())
        for path, strokes in zip(rows["path"], rows["num_strokes"], strict=True):
            assert (tmp_path / "run" / path).is_file()
            assert strokes == 0 or read_svg(tmp_path / "run" / path).num_strokes == strokes
    assert "<svg" in (tmp_path / "run" / "before_after.html").read_text()
    assert first["scores"]
    assert sorted(p.name for p in (tmp_path / "log" / "sketches").iterdir()) == ["000000.png", "000002.png"]
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["judge"] == first["judge"]
    longer = run(steps=4)
    assert longer["resumed"]
    assert longer["steps"] == 4
    assert [r["step"] for r in longer["readings"]] == [0, 2, 4]
    assert longer["readings"][:2] == first["readings"]


@pytest.mark.slow
def test_a_training_that_the_judge_ended_is_not_gone_on_with(tmp_path):
    backbone = build(compose("train", ["backbone=random_tiny"]).backbone)
    run = partial(
        train_generator,
        backbone,
        doodles(concepts=CONCEPTS, instances=4, judgments=0),
        tmp_path / "run",
        generator=SMALL["decoder"],
        judge=partial(other_doodles, backbone),
        concepts=2,
        pretrain_steps=2,
        val_every=1,
        n_splits=4,
        steps=9,
        sketches=4,
        size=32,
        judge_every=1,
        judged_per_concept=2,
        judge_size=32,
        largest_gap=-100.0,
        patience=2,
        cache_dir=tmp_path / "cache",
        trainer_kwargs={"accelerator": "cpu", "devices": 1},
    )
    first, again = run(), run()
    assert (first["steps"], again["steps"]) == (2, 2)
    assert again["stopped"]
    for stage in ("before", "after"):
        for who in ("critic", "judge"):
            assert again[stage][who] == pytest.approx(first[stage][who], abs=1e-5)


def test_concepts_by_name_and_number():
    assert spread_over(CONCEPTS, None) == CONCEPTS
    assert spread_over(CONCEPTS, ["lion", "airplane"]) == ("airplane", "lion")
    for wrong in (0, 4, ["cat"], []):
        with pytest.raises(ValueError, match="concepts"):
            spread_over(CONCEPTS, wrong)
