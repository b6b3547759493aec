from __future__ import annotations

import errno

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.backbones import cache as cache_module
from humanlike.backbones.cache import FeatureCache, Shard, data_digest, extraction_facts, features_digest
from humanlike.backbones.vision import TimmBackbone

ARITHMETIC = {
    "dtype": "float32",
    "micro_batch": 4,
    "channels_last": True,
    "threads": 1,
    "device": "cpu AVX2",
}


def make(root, items: int = 10) -> FeatureCache:
    return FeatureCache(root, {"items": items, "weights": "w"}, shard_items=4)


def shard(start: int, stop: int, failed: dict[int, tuple[str, str]] | None = None) -> Shard:
    rows = np.array([i for i in range(start, stop) if i not in (failed or {})], dtype=np.int64)
    return Shard(np.float32(rows[:, None] * [1.0, 0.5, -2.0]), rows, failed or {})


def fill(cache: FeatureCache, layer: str = "a") -> None:
    for s in range(cache.num_shards):
        cache.write(layer, s, shard(*cache.bounds(s)))


def test_shards_come_back_bit_for_bit(tmp_path):
    cache = make(tmp_path)
    written = shard(4, 8, {5: ("x.png", "truncated")})
    cache.write("blocks/1 ü", 1, written)
    read = make(tmp_path).read("blocks/1 ü", 1)
    assert np.array_equal(read.f_ND, written.f_ND)
    assert np.array_equal(read.rows, [4, 6, 7])
    assert read.failed == {5: ("x.png", "truncated")}


def test_merging_is_by_index(tmp_path):
    cache = make(tmp_path)
    for s in (2, 0, 1):
        cache.write("a", s, shard(*cache.bounds(s), {6: ("y", "blank")} if s == 1 else None))
    merged = cache.merge("a")
    assert merged.rows.tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    assert np.array_equal(merged.f_ND, shard(0, 10, {6: ("y", "blank")}).f_ND)
    assert merged.failed == {6: ("y", "blank")}


@settings(deadline=None, max_examples=30)
@given(position=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_noticed(tmp_path_factory, position, bit):
    cache = make(tmp_path_factory.mktemp("cache"))
    fill(cache)
    path = cache.path("a", 1)
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] ^= 1 << bit
    path.write_bytes(bytes(content))
    again = cache.read("a", 1)
    # A flip in the header's padding or in the spelling of a key it ignores may leave the content whole.
    assert again is None or (np.array_equal(again.f_ND, shard(4, 8).f_ND) and again.rows.tolist() == [4, 5, 6, 7])


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_cut_shard_is_missing_alone_and_said(tmp_path, keep, caplog):
    cache = make(tmp_path)
    fill(cache)
    path = cache.path("a", 1)
    path.write_bytes(path.read_bytes()[:keep])
    assert cache.missing(["a"]) == [1]
    assert "is damaged" in caplog.text
    assert cache.corrupt == {str(path)}


def test_a_shard_in_another_place_is_not_taken(tmp_path):
    cache = make(tmp_path)
    fill(cache)
    cache.path("b", 0).parent.mkdir()
    cache.path("b", 0).write_bytes(cache.path("a", 0).read_bytes())
    assert cache.read("b", 0) is None


def test_missing_lists_shards_that_any_layer_lacks(tmp_path):
    cache = make(tmp_path)
    fill(cache, "a")
    cache.write("b", 1, shard(4, 8))
    assert (cache.missing(["a"]), cache.missing(["a", "b"])) == ([], [0, 2])
    with pytest.raises(FileNotFoundError, match="every node shares"):
        cache.merge("b")


def test_facts_and_shard_size_make_the_key(tmp_path):
    keys = {
        FeatureCache(tmp_path, facts, n).key
        for facts, n in [({"items": 1, "a": 1}, 4), ({"items": 1, "a": 2}, 4), ({"items": 1, "a": 1}, 8)]
    }
    assert len(keys) == 3


def test_everything_that_can_change_a_feature_is_in_the_key(noise, monkeypatch):
    backbone = TimmBackbone("test_vit", weights=None, transform={"size": 32})

    def key(b=backbone, data=None, shape=(3, 32, 32), **arithmetic):
        facts = extraction_facts(b, (data or noise(6)).images, shape, {**ARITHMETIC, **arithmetic})
        return FeatureCache("unused", facts, 8).key

    assert key() == key()
    monkeypatch.setattr(cache_module, "library_versions", lambda: {"torch": "0.0"})
    other_library = key()
    monkeypatch.undo()
    different = [
        key(),
        other_library,
        key(TimmBackbone("test_vit", weights=None, transform={"size": 48}), shape=(3, 48, 48)),
        key(TimmBackbone("test_vit", weights=None, seed=1, transform={"size": 32})),
        key(TimmBackbone("test_vit", weights=None, transform={"size": 32, "interpolation": "bilinear"})),
        key(data=noise(6, salt="edited")),
        key(data=noise(7)),
        *(key(**{name: value}) for name, value in (("dtype", "bfloat16"), ("micro_batch", 8), ("threads", 2))),
        *(key(**{name: value}) for name, value in (("channels_last", False), ("device", "cuda H200"))),
    ]
    assert len(set(different)) == len(different)


def test_the_library_versions_are_those_installed():
    import open_clip
    import PIL
    import timm
    import torch
    import torchvision

    assert cache_module.library_versions() == {
        "torch": torch.__version__.partition("+")[0],
        "torchvision": torchvision.__version__.partition("+")[0],
        "timm": timm.__version__,
        "open_clip_torch": open_clip.__version__,
        "pillow": PIL.__version__,
    }


def test_digests_follow_order_and_content(noise):
    f_ND = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows = np.arange(3)
    digests = {
        features_digest(f_ND, rows),
        features_digest(f_ND[::-1], rows),
        features_digest(f_ND.reshape(2, 3), rows[:2]),
        features_digest(f_ND, rows + 1),
    }
    assert len(digests) == 4
    assert data_digest(noise(3).images) != data_digest(noise(3, salt="x").images)


def test_a_full_disk_and_a_read_only_folder_are_sentences(tmp_path, monkeypatch):
    cache = make(tmp_path)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("humanlike.files.os.replace", full)
        with pytest.raises(OSError, match=r"cannot write .*safetensors: the disk is full; free space"):
            cache.write("a", 0, shard(0, 4))
    assert not list(cache.path("a", 0).parent.iterdir()), "nothing half-written stays"
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write into the feature cache"):
        make(tmp_path / "file").lock(0)
