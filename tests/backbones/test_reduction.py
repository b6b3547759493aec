"""Layers pooled and projected in the pass that computes them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features, layer_features
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.reduction import BLOCK_ROWS, GaussianProjection, ReducedBackbone, Reduction, pooled
from humanlike.backbones.vision import TimmBackbone

SMALL = {"micro_batch": 4, "micro_batches_per_shard": 2, "progress": False, "threads": 1}
CONVOLUTION = "blocks.0.0.bn1"


def test_the_average_is_that_of_the_whole_map(own, noise):
    data = noise(9)
    shape = next(s.shape for s in own.layer_shapes() if s.name == CONVOLUTION)
    whole = extract_features(own, data, [CONVOLUTION], **SMALL)[CONVOLUTION]
    found = extract_features(own, data, [CONVOLUTION], pool="average", **SMALL)[CONVOLUTION]
    assert len(shape) == 3
    np.testing.assert_allclose(found.f_ND, whole.f_ND.reshape(9, *shape).mean((2, 3)), rtol=1e-5, atol=1e-6)
    assert found.layer == CONVOLUTION
    assert found.info["reduction"] == {
        "pool": "average", "max_features": None, "projection": None, "projection_seed": None,
    }  # fmt: skip
    assert "reduction" not in whole.info


def test_tokens_are_averaged_or_the_first_is_taken(noise):
    vit, data = TimmBackbone("test_vit", weights=None), noise(3)
    shape = next(s.shape for s in vit.layer_shapes() if s.name == "blocks.1")
    a_NTC = extract_features(vit, data, ["blocks.1"], **SMALL)["blocks.1"].f_ND.reshape(3, *shape)
    for pool, expected in (("average", a_NTC.mean(1)), ("first_token", a_NTC[:, 0])):
        found = extract_features(vit, data, ["blocks.1"], pool=pool, **SMALL)["blocks.1"]
        np.testing.assert_allclose(found.f_ND, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((5, 3, 3), (2, 3)), ((3, 3, 5), (1, 2)), ((4, 4, 4), (2, 3)), ((5, 2, 3), (2, 3)), ((7, 5), (1,))],
)
def test_positions_are_found(shape, axes):
    a_B = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(pooled(a_B, "average").numpy(), a_B.numpy().mean(axes), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(5,), (2, 2, 2, 2)])
def test_without_positions_nothing_is_pooled(shape):
    assert pooled(torch.ones(2, *shape), "average").shape == (2, int(np.prod(shape)))


def test_one_pass_serves_all_and_every_reduction_has_its_own_place(own, noise, tmp_path, counting):
    data, layers, passes = noise(9), ["pre_logits", CONVOLUTION], counting(own)
    small = {**SMALL, "cache_dir": tmp_path, "max_features": 8}
    first = extract_features(own, data, layers, pool="average", **small)
    assert passes() == 3
    again = extract_features(own, data, layers, pool="average", **small)
    assert passes() == 3
    other_seed = extract_features(own, data, layers, pool="average", projection_seed=1, **small)
    assert passes() == 6
    whole = extract_features(own, data, layers, **{**SMALL, "cache_dir": tmp_path})
    assert passes() == 9
    assert [first[layer].f_ND.shape for layer in layers] == [(9, 8), (9, 8)]
    for layer in layers:
        assert np.array_equal(first[layer].f_ND, again[layer].f_ND)
        assert not np.array_equal(first[layer].f_ND, other_seed[layer].f_ND)
        assert whole[layer].f_ND.shape[1] > 8


def test_layers_are_read_when_asked_for(own, noise, monkeypatch):
    from humanlike.backbones.cache import FeatureCache

    read, merge = [], FeatureCache.merge
    monkeypatch.setattr(FeatureCache, "merge", lambda cache, layer: (read.append(layer), merge(cache, layer))[1])
    with layer_features(own, noise(5), ["pre_logits", "blocks.0"], **SMALL) as found:
        assert (list(found), len(found), read) == (["pre_logits", "blocks.0"], 2, [])
        assert found["blocks.0"].layer == "blocks.0"
        assert read == ["blocks.0"]
        with pytest.raises(KeyError):
            found["blocks.1"]
    with pytest.raises(TypeError, match="poool"), layer_features(own, noise(5), poool="average"):
        pass


def test_reduced_layers_in_a_narrower_type_say_how_far_they_are(own, noise):
    found = extract_features(own, noise(5), [CONVOLUTION], pool="average", max_features=3, dtype="bfloat16", **SMALL)
    deviation = found[CONVOLUTION].info["deviation_from_float32"]
    assert deviation["items"] == 5
    assert 0 < deviation["max"] < 0.1


def test_a_projection_is_the_matrix_it_says_and_does_not_depend_on_what_is_kept():
    x_BD = torch.randn(6, BLOCK_ROWS + 300, generator=torch.Generator().manual_seed(1))
    kept, drawn = (GaussianProjection(x_BD.shape[1], 40, seed=3, keep=keep) for keep in (True, False))
    y_BK = kept(x_BD)
    assert torch.equal(y_BK, drawn(x_BD))
    assert torch.equal(y_BK, kept(x_BD))
    matrix_DK = torch.cat([kept._block(b, torch.device("cpu")) for b in range(2)]).double().numpy()
    np.testing.assert_allclose(y_BK.numpy(), x_BD.double().numpy() @ matrix_DK, rtol=1e-4, atol=1e-4)
    assert abs(matrix_DK.mean()) < 5 * (1 / 40 / matrix_DK.size) ** 0.5
    assert matrix_DK.var() * 40 == pytest.approx(1, abs=5 * (2 / matrix_DK.size) ** 0.5)
    assert kept.nbytes == matrix_DK.size * 4


def test_squared_distances_are_kept_on_average():
    """|xG|²/|x|² is χ²(K)/K: mean 1, standard deviation √(2/K)."""
    x_BD = torch.randn(200, 3000, generator=torch.Generator().manual_seed(2))
    x_BD /= x_BD.norm(dim=1, keepdim=True)
    ratio_B = GaussianProjection(3000, 128, seed=0)(x_BD).square().sum(1).numpy()
    assert ratio_B.mean() == pytest.approx(1, abs=5 * (2 / 128 / 200) ** 0.5)
    assert ratio_B.std() == pytest.approx((2 / 128) ** 0.5, rel=0.25)


def test_matrices_beyond_the_limit_are_drawn_again(own, monkeypatch):
    from humanlike.backbones import reduction

    monkeypatch.setattr(reduction, "KEEP_BYTES", 0)
    backbone, x_B3HW = ReducedBackbone(own, Reduction(max_features=4)), torch.randn(2, 3, 32, 32)
    view = backbone.default_layer
    first, second = (backbone.features(x_B3HW, [view])[view] for _ in range(2))
    assert torch.equal(first, second)
    assert [p.keep for p in backbone._projections.values()] == [False]


def test_a_callable_gives_flat_rows_and_can_be_projected(noise):
    class Flatten(nn.Module):
        def forward(self, x_B3HW):
            return x_B3HW.flatten(1)

    backbone = CallableBackbone(Flatten(), {"size": 8}, name="pixels")
    found = extract_features(backbone, noise(5), pool="average", max_features=16, **SMALL)["output"]
    assert found.f_ND.shape == (5, 16)


@pytest.mark.parametrize(
    ("options", "words"), [({"pool": "max"}, "pool must be one of"), ({"max_features": 0}, "at least 1")]
)
def test_wrong_reductions_are_sentences(own, noise, options, words):
    with pytest.raises(ValueError, match=words):
        extract_features(own, noise(2), **SMALL, **options)


class Windows(nn.Module):
    """Splits an image into four windows that stand where images stood, as window attention does."""

    def __init__(self):
        super().__init__()
        self.windows = nn.Unfold(4, stride=4)
        self.inside = nn.Linear(48, 5)
        self.out = nn.Linear(20, 3)

    def forward(self, x_B3HW):
        w = self.windows(x_B3HW).transpose(1, 2).reshape(-1, 48)
        return self.out(self.inside(w).reshape(len(x_B3HW), 20))


def test_layers_with_windows_in_the_place_of_images_are_not_listed():
    backbone = NetworkBackbone(Windows, "output", {"size": 8}, name="windows")
    assert backbone.layers == ("windows", "out", "output")
