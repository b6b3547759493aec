from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from humanlike.backbones.cache import FeatureCache
from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.extractor import FeatureExtractor
from humanlike.backbones.features import extract_features
from humanlike.backbones.vision import TimmBackbone
from humanlike.data.images import BadImageError

SMALL = {"micro_batch": 4, "micro_batches_per_shard": 2, "progress": False, "threads": 1}
TRAINER = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def extract(backbone, data, layers=None, **options):
    return extract_features(backbone, data, layers, **{**SMALL, **options})


def test_the_features_are_those_of_one_image_after_the_other(convolutional, noise, plain_features):
    data = noise(19)
    found = extract(convolutional, data)["pre_logits"]
    assert found.f_ND.dtype == np.float32
    assert found.rows.tolist() == list(range(19))
    assert found.layer == "pre_logits"
    assert set(found.hashes) == {"weights", "transform", "data", "features"}
    np.testing.assert_allclose(found.f_ND, plain_features(convolutional, data), rtol=1e-5, atol=1e-5)


def test_micro_batch_sizes_agree_to_1e_5(convolutional, noise):
    data = noise(13)
    sizes = [extract(convolutional, data, micro_batch=b)["pre_logits"].f_ND for b in (1, 3, 8, 32)]
    for other in sizes[1:]:
        np.testing.assert_allclose(other, sizes[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{"num_workers": 2}, {"micro_batches_per_shard": 1}, {"micro_batches_per_shard": 9}]
)
def test_loading_and_sharding_change_no_bit(convolutional, noise, options):
    data = noise(19)
    reference = extract(convolutional, data)["pre_logits"]
    found = extract(convolutional, data, **options)["pre_logits"]
    assert np.array_equal(found.f_ND, reference.f_ND)
    assert found.hashes == reference.hashes


@pytest.mark.parametrize("num", [3, 19, 33])
@pytest.mark.parametrize("devices", [2, 3])
def test_several_processes_change_no_bit(convolutional, noise, num, devices):
    """With 3 items there is one shard, so that all processes but one have nothing to do."""
    data = noise(num)
    reference = extract(convolutional, data)["pre_logits"]
    trainer = pl.Trainer(devices=devices, strategy="ddp_fork", use_distributed_sampler=False, **TRAINER)
    found = extract(convolutional, data, trainer=trainer)["pre_logits"]
    assert np.array_equal(found.f_ND, reference.f_ND)
    assert found.hashes == reference.hashes
    assert found.info["processes"] == devices


def test_several_layers_come_from_one_pass_and_later_ones_leave_the_known_alone(own, noise, tmp_path, counting):
    data = noise(9)
    passes = counting(own)
    first = extract(own, data, ["pre_logits", "blocks.0"], cache_dir=tmp_path)
    assert passes() == 3
    shards = sorted(p for p in tmp_path.rglob("*.safetensors"))
    times = [p.stat().st_mtime_ns for p in shards]
    again = extract(own, data, ["blocks.0", "pre_logits"], cache_dir=tmp_path)
    assert passes() == 3
    more = extract(own, data, ["pre_logits", "blocks.1"], cache_dir=tmp_path)
    assert passes() == 6
    assert [p.stat().st_mtime_ns for p in shards] == times
    alone = extract(own, data, ["blocks.1"])["blocks.1"]
    assert np.array_equal(first["pre_logits"].f_ND, again["pre_logits"].f_ND)
    assert np.array_equal(more["blocks.1"].f_ND, alone.f_ND)
    assert (first["pre_logits"].info["from_cache"], again["pre_logits"].info["from_cache"]) == (False, True)
    assert again["pre_logits"].info["images_per_second"] is None


@pytest.mark.parametrize(
    "change",
    ["size", "weights", "dtype", "transform", "data", "library", "micro_batch", "channels_last"],
)
def test_whatever_changes_is_computed_again(own, noise, tmp_path, monkeypatch, change, counting):
    data, options, other = noise(6), {}, own
    before = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    if change == "size":
        other = TimmBackbone("test_efficientnet", weights=None, transform={"size": 48})
    elif change == "weights":
        other = TimmBackbone("test_efficientnet", weights=None, transform={"size": 32}, seed=1)
    elif change == "transform":
        other = TimmBackbone("test_efficientnet", weights=None, transform={"size": 32, "interpolation": "nearest"})
    elif change == "data":
        data = noise(6, salt="new")
    elif change == "library":
        monkeypatch.setattr("humanlike.backbones.cache.library_versions", lambda: {"torch": "9.9"})
    else:
        options = {"dtype": {"dtype": "bfloat16"}, "micro_batch": {"micro_batch": 2}}.get(change, {change: False})
    passes = counting(other)
    after = extract(other, data, cache_dir=tmp_path, **options)["pre_logits"]
    assert passes() > 0
    assert after.info["cache_key"] != before.info["cache_key"]
    assert not after.info["from_cache"]


def test_weights_changed_in_place_are_noticed(own, noise, tmp_path):
    data = noise(4)
    before = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    with torch.no_grad():
        own.network.conv_stem.weight += 0.1
    after = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    assert before.hashes["weights"] != after.hashes["weights"]
    assert not np.array_equal(before.f_ND, after.f_ND)


def test_a_killed_run_loses_the_shard_in_work_only(own, noise, tmp_path, monkeypatch, counting):
    data = noise(30)  # four shards of eight items

    class Killed(BaseException):
        pass

    original = FeatureExtractor.predict_step

    def dies(self, batch, batch_idx):
        if batch["index"] == 5:
            raise Killed
        return original(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(FeatureExtractor, "predict_step", dies)
        with pytest.raises(Killed):
            extract(own, data, cache_dir=tmp_path)
    passes = counting(own)
    found = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    assert found.info["shards_computed"] == 2
    assert passes() == 4
    assert np.array_equal(found.f_ND, extract(own, data)["pre_logits"].f_ND)
    assert not list(tmp_path.rglob("*.tmp*"))


def test_a_damaged_shard_is_computed_again_alone(own, noise, tmp_path, caplog, counting):
    data = noise(30)
    before = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    path = sorted(tmp_path.rglob("*.safetensors"))[2]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    passes = counting(own)
    after = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    assert passes() == 2
    assert (after.info["shards_computed"], after.info["shards_damaged"]) == (1, 1)
    assert f"{path} is damaged" in caplog.text
    assert after.hashes == before.hashes


def test_a_job_waits_for_the_shard_that_another_computes(own, noise, tmp_path, counting):
    data = noise(8)
    first = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    (path,) = tmp_path.rglob("*.safetensors")
    content = path.read_bytes()
    path.unlink()
    other = FeatureCache(tmp_path, {}, 8)
    other.folder = path.parent.parent
    holds = threading.Event()

    def another_job() -> None:
        with other.lock(0):
            holds.set()
            time.sleep(0.3)
            path.write_bytes(content)

    passes = counting(own)
    thread = threading.Thread(target=another_job)
    thread.start()
    holds.wait()
    second = extract(own, data, cache_dir=tmp_path)["pre_logits"]
    thread.join()
    assert passes() == 0
    assert second.hashes == first.hashes


def test_a_nan_names_layer_and_item(noise):
    def nan_for_dark(x_B3HW):
        return x_B3HW.mean((2, 3)).where(x_B3HW[:, :1, 0, 0] < 9, torch.nan)

    data = noise(7)

    def transform(image):
        value = 10.0 if image.size == data.images.load(5).size else 0.0
        return torch.full((3, 8, 8), value)

    backbone = CallableBackbone(nan_for_dark, transform, name="broken")
    with pytest.raises(ValueError, match=r"broken: layer 'output' gives NaN or infinity for item 5 \(noise_5.png\)"):
        extract(backbone, data)


def test_a_bad_image_raises_with_its_name_or_is_left_out(own, noise, tmp_path, plain_features):
    data = noise(19, broken=(3, 17))
    with pytest.raises(BadImageError, match=r"noise_3.png: truncated"):
        extract(own, data, cache_dir=tmp_path)
    found = extract(own, data, cache_dir=tmp_path, on_bad_image="skip")["pre_logits"]
    kept = [i for i in range(19) if i not in (3, 17)]
    assert found.rows.tolist() == kept
    assert found.failed == {3: "noise_3.png: truncated", 17: "noise_17.png: truncated"}
    np.testing.assert_allclose(found.f_ND, plain_features(own, data, kept), rtol=1e-5, atol=1e-5)
    again = extract(own, data, cache_dir=tmp_path, on_bad_image="skip")["pre_logits"]
    assert again.info["from_cache"]
    assert again.failed == found.failed
    with pytest.raises(BadImageError, match=r"noise_3.png: truncated"):
        extract(own, data, cache_dir=tmp_path)


def test_a_file_that_is_gone_can_be_left_out_and_counts_once_it_is_back(own, noise, tmp_path, monkeypatch):
    data = noise(5, broken=(2,))
    whole = type(data.images).content_hash

    def content_hash(images, index):
        if index in images.broken:
            raise BadImageError(f"noise_{index}.png", "the file is missing")
        return whole(images, index)

    monkeypatch.setattr(type(data.images), "content_hash", content_hash)
    with pytest.raises(BadImageError, match=r"noise_2.png"):
        extract(own, data, cache_dir=tmp_path)
    found = extract(own, data, cache_dir=tmp_path, on_bad_image="skip")["pre_logits"]
    assert found.rows.tolist() == [0, 1, 3, 4]
    back = extract(own, noise(5), cache_dir=tmp_path, on_bad_image="skip")["pre_logits"]
    assert back.rows.tolist() == [0, 1, 2, 3, 4]
    assert not back.info["from_cache"]


def test_a_whole_shard_of_bad_images_and_a_whole_set(own, noise):
    found = extract(own, noise(17, broken=tuple(range(8, 16))), on_bad_image="skip")["pre_logits"]
    assert found.rows.tolist() == [*range(8), 16]
    with pytest.raises(ValueError, match="none of the 2 images could be read"):
        extract(own, noise(2, broken=(0, 1)), on_bad_image="skip")


def test_a_read_only_cache_that_holds_everything_is_enough(own, noise, tmp_path, monkeypatch):
    data = noise(6)
    before = extract(own, data, cache_dir=tmp_path)["pre_logits"]

    def refuse(*args, **kwargs):
        raise PermissionError(13, "read-only")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    assert extract(own, data, cache_dir=tmp_path)["pre_logits"].hashes == before.hashes


def test_reduced_precision_is_close_and_is_said(own, noise):
    data = noise(6)
    full = extract(own, data)["pre_logits"]
    reduced = extract(own, data, dtype="bfloat16")["pre_logits"]
    assert reduced.info["dtype"] == "bfloat16"
    error = np.abs(reduced.f_ND - full.f_ND).max() / np.abs(full.f_ND).max()
    assert 0 < error < 0.1


def test_global_settings_are_put_back(own, noise):
    torch.set_float32_matmul_precision("high")
    try:
        before = (torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
        extract(own, noise(4))
        after = (torch.get_num_threads(), torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32)
        assert before == after
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"micro_batch": 0}, "micro_batch must be at least 1"),
        ({"threads": 0}, "threads"),
        ({"dtype": "float8"}, "dtype must be one of"),
        ({"on_bad_image": "ignore"}, "on_bad_image must be one of"),
        ({"layers": ["blocks.9"]}, "no layer 'blocks.9'; nearest"),
        ({"layers": ["logits"]}, "class scores"),
    ],
)
def test_wrong_arguments_are_sentences(convolutional, noise, options, word):
    with pytest.raises(ValueError, match=word):
        extract(convolutional, noise(2), **options)


def test_one_layer_as_a_string_is_pointed_out(convolutional, noise):
    with pytest.raises(TypeError, match=r"\['pre_logits'\]"):
        extract(convolutional, noise(2), "pre_logits")


def test_trainers_that_would_change_the_result_are_refused(convolutional, noise, tmp_path):
    with pytest.raises(ValueError, match="dtype=bfloat16"):
        extract(convolutional, noise(2), trainer=pl.Trainer(precision="bf16-mixed", devices=1, **TRAINER))
    with pytest.raises(ValueError, match="needs every batch"):
        extract(convolutional, noise(2), trainer=pl.Trainer(limit_predict_batches=1, devices=1, **TRAINER))
    with pytest.raises(ValueError, match="cache_dir"):
        extract(convolutional, noise(2), trainer=pl.Trainer(strategy="ddp", devices=2, **TRAINER))
