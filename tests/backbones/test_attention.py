"""Mean attention against the weights that the networks' own attention computes."""

from __future__ import annotations

import pytest
import torch

from humanlike.backbones.attention import mean_attention, patch_grid
from humanlike.backbones.network import NetworkBackbone
from humanlike.backbones.vision import TimmBackbone


def test_a_timm_network_attends_as_its_own_unfused_attention_does():
    backbone = TimmBackbone("test_vit", weights=None)
    x = torch.rand(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))
    seen = []
    for block in backbone.network.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].mean(dim=1)))
    found = mean_attention(backbone, x)
    assert torch.allclose(found, torch.stack(seen).mean(dim=0), atol=1e-6)
    assert torch.allclose(found.sum(dim=2), torch.ones(found.shape[:2]), atol=1e-5)
    assert patch_grid(found.shape[1]) == (10, 10)


class Multihead(torch.nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)

    def forward(self, x):
        tokens = x.flatten(1).reshape(len(x), 6, 8)
        turned = tokens if self.attention.batch_first else tokens.transpose(0, 1)
        given, self.weights = self.attention(turned, turned, turned, need_weights=True)
        return given.reshape(len(x), -1)


@pytest.mark.parametrize("batch_first", [True, False])
def test_an_attention_of_pytorch_says_the_same_as_its_weights(batch_first):
    backbone = NetworkBackbone(
        lambda: Multihead(batch_first), "output", {"size": 4, "mean": [0, 0, 0], "std": [1, 1, 1]}, name="attending"
    )
    x = torch.rand(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    found = mean_attention(backbone, x)
    assert torch.allclose(found, backbone.network.weights, atol=1e-6)


def test_a_convolutional_network_attends_to_nothing():
    assert mean_attention(TimmBackbone("test_efficientnet", weights=None), torch.rand(1, 3, 64, 64)) is None
