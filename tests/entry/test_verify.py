"""`humanlike verify`: an untouched run holds; whatever is tampered with, exactly that stage is named first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
import yaml
from PIL import Image, ImageDraw
from safetensors import safe_open
from safetensors.numpy import save_file
from safetensors.torch import load_file
from safetensors.torch import save_file as save_tensors

from humanlike import evaluate
from humanlike.backbones.cache import Shard
from humanlike.data.doodles import doodles
from humanlike.data.svg import drawing_to_svg
from humanlike.entry import cli
from humanlike.entry.overrides import OverrideError
from humanlike.entry.provenance import signatures, stored_cache
from humanlike.entry.verify import verify
from humanlike.entry.verify_stages import STAGES

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
CONCEPTS = ("bars", "circles", "squares")
ITEMS = 18


def _draw(path: Path, concept: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (64, 64), "white")
    pen = ImageDraw.Draw(image)
    for _ in range(3):
        x, y, s = (int(v) for v in rng.integers(4, 40, 3))
        box = (x, y, x + s // 2 + 4, y + s // 2 + 4)
        shape = {"bars": pen.line, "circles": pen.ellipse, "squares": pen.rectangle}[concept]
        shape(box, **({"fill": "black", "width": 3} if concept == "bars" else {"outline": "black", "width": 3}))
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A finished run on image files and weights in a file, with its cache, and a copy to tamper with."""
    home = tmp_path_factory.mktemp("verify")
    for concept in CONCEPTS:
        for i in range(ITEMS // len(CONCEPTS)):
            _draw(home / "images" / concept / f"{i}.png", concept, 10 * i + CONCEPTS.index(concept))
    torch.manual_seed(0)
    save_tensors(timm.create_model("test_vit").state_dict(), home / "weights.safetensors")
    evaluate(
        "checkpoint",
        dataset="image_folder",
        dataset__root=str(home / "images"),
        backbone__architecture="test_vit",
        backbone__weights__file=str(home / "weights.safetensors"),
        backbone__transform={"size": 160, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
        benchmark__replicates=20,
        readout__n_splits=3,
        extraction__micro_batch=8,
        extraction__num_workers=0,
        paths__cache=str(home / "cache"),
        report=False,
        out_dir=home / "run",
    )
    return home


@pytest.fixture
def home(original, tmp_path):
    """The same at another place, so that each test may tamper."""
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    config = (copy / "run" / "config.yaml").read_text().replace(str(original), str(copy))
    (copy / "run" / "config.yaml").write_text(config)
    return copy


def found(home: Path, *settings: str, from_scratch: bool = False):
    findings = verify(home / "run", from_scratch, settings)
    return findings.first, " | ".join(findings.differences.get(findings.first, ()))


def change_config(home: Path, path: str, value) -> None:
    file = home / "run" / "config.yaml"
    config = yaml.safe_load(file.read_text())
    *keys, last = path.split(".")
    place = config
    for key in keys:
        place = place[key]
    assert last in place
    place[last] = value
    file.write_text(yaml.safe_dump(config))


def change_record(home: Path, change) -> None:
    file = home / "run" / "score.json"
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))


def test_the_record_holds_what_the_run_was_made_of(original):
    record = json.loads((original / "run" / "score.json").read_text())
    assert set(record["hashes"]) == {"weights", "transform", "data", "features", "config", "labels"}
    assert {"python", "torch", "timm", "numpy", "pillow", "humanlike"} <= set(record["versions"])
    table = pd.read_parquet(original / "run" / "provenance.parquet")
    assert len(table) == ITEMS
    assert table["content"].nunique() == ITEMS


@pytest.mark.parametrize("from_scratch", [False, True])
def test_an_untouched_run_holds(home, from_scratch):
    # Another place changes the paths in the configuration, and with them its hash, which is compared last.
    findings = verify(home / "run", from_scratch)
    assert findings.first == "config"
    assert set(findings.differences) == {"config"}
    assert findings.checked == set(STAGES)
    assert findings.notes == []


def test_the_command_leaves_with_0_or_1_and_says_which_stage(original, home, capsys):
    def code(*arguments):
        with pytest.raises(SystemExit) as left:
            cli._verify(list(arguments))
        return left.value.code

    assert code(str(original / "run")) == 0
    assert "the record holds" in capsys.readouterr().out
    change_record(home, lambda r: r["scores"]["accuracy"].update(value=0.99))
    assert code(str(home / "run")) == 1
    said = capsys.readouterr().out
    assert "the first stage that differs is: metric" in said
    assert "scores.accuracy.value: recorded 0.99, now" in said
    assert code(str(home / "run"), "--fast") == 2
    assert code(str(home / "images")) == 1
    assert "holds no score.json" in capsys.readouterr().err


@pytest.mark.parametrize("from_scratch", [False, True])
def test_a_changed_image(home, from_scratch):
    _draw(home / "images" / "circles" / "3.png", "circles", 999)
    stage, said = found(home, from_scratch=from_scratch)
    assert stage == "data"
    assert "1 of 18 items have other content; the first is 'circles/3" in said


def test_a_missing_image(home):
    (home / "images" / "bars" / "0.png").unlink()
    stage, said = found(home)
    assert stage == "data"
    assert "18 recorded, 17 now; gone: 'bars/0" in said


def test_another_transform(home):
    change_config(home, "backbone.transform.mean", [0.4, 0.4, 0.4])
    stage, said = found(home)
    assert (stage, said.split(":")[0]) == ("transform", "transform")


def test_other_weights(home):
    state = load_file(home / "weights.safetensors")
    name = next(k for k in state if k.endswith("weight"))
    state[name].view(-1)[0] += 1e-3
    save_tensors(state, home / "weights.safetensors")
    assert found(home)[0] == "weights"


def test_weights_that_are_gone(home):
    (home / "weights.safetensors").unlink()
    stage, said = found(home)
    assert stage == "weights"
    assert "weights.safetensors" in said


def shard_of(home: Path) -> Path:
    return next((home / "cache" / "features").glob("*/*/*.safetensors"))


def test_a_damaged_shard(home):
    path = shard_of(home)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)
    stage, said = found(home)
    assert stage == "features"
    assert f"{path} is damaged (items 0 to 17)" in said
    assert found(home, from_scratch=True)[0] == "config"  # scores do not rest on what is stored


def test_a_forged_shard(home):
    """Whole, with a checksum that fits, but with another number in it."""
    record = json.loads((home / "run" / "score.json").read_text())
    cache = stored_cache(home / "cache" / "features", record["details"]["extraction"])
    path = shard_of(home)
    with safe_open(str(path), framework="np") as handle:
        layer = handle.metadata()["layer"]
    shard = cache.read(layer, 0)
    f_ND = shard.f_ND.copy()
    f_ND[7, 3] += 0.5
    cache.write(layer, 0, Shard(f_ND, shard.rows, shard.failed))
    stage, said = found(home)
    assert stage == "features"
    assert "1 of 18 items have other features; the first is 'circles/1" in said


def test_a_shard_that_is_none(home):
    save_file({"x": np.zeros(3, np.float32)}, shard_of(home))
    assert found(home)[0] == "features"


@pytest.mark.parametrize(("key", "value"), [("readout.C", 0.01), ("readout.seed", 5)])
def test_another_readout(home, key, value):
    change_config(home, key, value)
    stage, said = found(home)
    assert stage == "readout"
    assert f"{key}: recorded" in said


def test_a_forged_answer(home):
    items = pd.read_parquet(home / "run" / "items.parquet")
    items.loc[4, "top1_index"] = (items.loc[4, "top1_index"] + 1) % 3
    items.to_parquet(home / "run" / "items.parquet")
    stage, said = found(home)
    assert stage == "readout"
    assert "items.top1_index: 1 of 18 differ; the first is 'bars/4" in said


def test_another_switch_of_the_metric(home):
    change_config(home, "benchmark.metric.model_entropy", "pooled")
    stage, said = found(home)
    assert stage == "metric"
    assert "protocol." in said


@pytest.mark.parametrize("name", ["counts", "digest"])
def test_a_forged_record(home, name):
    change_record(home, lambda r: r["counts"].update(items_used=17) if name == "counts" else r.update(digest="0" * 64))
    assert found(home)[0] == "metric"


def test_stored_features_that_are_gone_are_computed_and_said_so(home):
    shutil.rmtree(home / "cache")
    findings = verify(home / "run")
    assert findings.first == "config"
    assert any("they are computed anew" in note for note in findings.notes)


def test_other_libraries_are_named_and_give_more_room(home):
    change_record(home, lambda r: r["versions"].update(torch="1.0"))
    items = pd.read_parquet(home / "run" / "items.parquet")
    items["probability_target"] += 1e-4
    items.to_parquet(home / "run" / "items.parquet")
    findings = verify(home / "run")
    assert findings.first == "config"
    assert any(note.startswith("torch is ") and "1.0 in the record" in note for note in findings.notes)


def test_a_model_from_python_cannot_be_made_again(home):
    change_record(home, lambda r: r.update(backbone="lambda"))
    with pytest.raises(ValueError, match="handed over in Python"):
        verify(home / "run")


def test_a_masked_setting_has_to_be_given(home):
    change_config(home, "backbone.weights.key", "***")
    with pytest.raises(ValueError, match=r"give it as backbone\.weights\.key="):
        verify(home / "run")
    assert found(home, "backbone.weights.key=null")[0] == "config"


def test_a_setting_that_cannot_be_read_is_wrong_use(home):
    with pytest.raises(OverrideError, match=r"cannot read the value of backbone\.weights\.key=\[1; put it into quotes"):
        verify(home / "run", settings=["backbone.weights.key=[1"])


def test_signatures_against_exact_sums():
    f = np.random.default_rng(0).normal(size=(5, 300)).astype(np.float32)
    found = signatures(f)
    np.testing.assert_allclose(found[:, 0], np.linalg.norm(f.astype(float), axis=1), rtol=1e-12)
    assert np.array_equal(signatures(f[2:3])[0], found[2])  # each row by itself
    assert abs(found[:, 1:]).max() < 5 * np.sqrt(300)


SMALL = {
    "seva": {"dataset__instances": 5, "benchmark__splits": 4},
    "seva_layers": {"dataset__instances": 5, "benchmark__splits": 4, "benchmark__layers": "spread:2"},
    "sea": {"dataset__instances": 5, "benchmark__sensitivity_draws": 0},
    "object_learning": {
        "dataset": "novel_objects", "dataset__subtasks": 2, "dataset__images": 100, "dataset__warmup": 8,
        "dataset__size": 64, "dataset__people": "none", "benchmark__sessions": 20, "benchmark__layers": "pre_logits",
    },
    "fixed_labels": {"dataset__instances": 5, "readout": "logistic", "readout__n_splits": 3},
    "generation": {
        "dataset__concepts": ["airplane", "lion", "taxi"], "dataset__instances": 5, "dataset__judgments": 0,
        "benchmark__judges__doodle_judge__instances": 4, "benchmark__judges__doodle_judge__steps": 10,
        "benchmark__sizes": [64], "benchmark__credit": 1,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", SMALL)
def test_runs_of_every_benchmark_hold_and_a_change_is_named(benchmark, tmp_path):
    settings = {"dataset": "doodles", **SMALL[benchmark]}
    if settings["dataset"] == "doodles":
        settings.setdefault("dataset__concepts", 4)
    if benchmark == "generation":
        settings["sketches"] = str(tmp_path / "drawn")
        drawn = doodles(settings["dataset__concepts"], instances=2, conditions=[32], judgments=0, seed=3)
        (tmp_path / "drawn").mkdir()
        for i, concept in enumerate(drawn.table["concept"]):
            (tmp_path / "drawn" / f"{concept}-{i:02d}.svg").write_text(drawing_to_svg(drawn.images.drawing(i)))
    evaluate(
        "random_tiny", benchmark, benchmark__replicates=20, extraction__num_workers=0, report=False,
        paths__cache=str(tmp_path / "cache"), out_dir=tmp_path / "run", **settings,
    )  # fmt: skip
    for from_scratch in (False, True):
        findings = verify(tmp_path / "run", from_scratch)
        assert findings.differences == {}, findings.differences
        assert findings.checked == set(STAGES)
    if benchmark == "generation":
        one, other = sorted((tmp_path / "drawn").glob("*.svg"))[:2]
        content = one.read_text()
        one.write_text(other.read_text())
        stage, said = found(tmp_path)
        assert stage == "data"
        assert said.startswith("sketches: recorded")
        one.write_text(content)
    if benchmark == "object_learning":
        (path,) = (tmp_path / "cache").rglob("00000.npz")
        with np.load(path) as arrays:
            whole = dict(arrays)
        np.savez(path, **{**whole, "gram_0": whole["gram_0"] * 1.01})
        stage, said = found(tmp_path)
        assert stage == "features"
        assert "the stored inner products of layer 'pre_logits'" in said
        assert found(tmp_path, from_scratch=True)[0] is None
        path.write_bytes(b"torn")
        assert found(tmp_path)[0] == "features"
        np.savez(path, **whole)
        (kept,) = (tmp_path / "cache" / "features" / "object_learning").glob("*.json")
        kept.write_text(kept.read_text().replace("0.", "0.9", 1))
        assert found(tmp_path)[0] is None, "a replay starts at the features, not at results that were kept"
    change_config(tmp_path, "dataset.seed", 1)
    assert found(tmp_path)[0] == "data"
    change_config(tmp_path, "dataset.seed", 0)
    change_config(tmp_path, "backbone.seed", 1)
    assert found(tmp_path)[0] == "weights"
    change_config(tmp_path, "backbone.seed", 0)
    change_record(tmp_path, lambda r: next(iter(r["scores"].values())).update(value=0.123))
    assert found(tmp_path)[0] == "metric"
