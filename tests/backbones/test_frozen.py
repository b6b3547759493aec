from __future__ import annotations

import hashlib

import pytest
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from humanlike.backbones.frozen import WeightsDigest, weights_digest
from humanlike.backbones.vision import TimmBackbone


class Probe(pl.LightningModule):
    """A trained head over a frozen backbone."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.layer_shapes()[-1].shape[0], 2)

    def training_step(self, batch, batch_idx):
        x_B3HW, label_B = batch
        f_BD = self.backbone.features(x_B3HW, ["pre_logits"])["pre_logits"]
        return nn.functional.cross_entropy(self.head(f_BD), label_B)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings(
    "ignore:.*does not have many workers.*", "ignore:.*treespec, LeafSpec.*", "ignore:Found .* in eval mode.*"
)
def test_fifty_steps_of_fit_leave_every_bit_of_a_frozen_backbone():
    backbone = TimmBackbone("test_efficientnet", weights=None, transform={"size": 32})
    module = Probe(backbone)
    before = {k: v.clone() for k, v in backbone.network.state_dict().items()}
    hash_before, head_before = backbone.weights_hash, module.head.weight.detach().clone()
    assert any("running_var" in k for k in before)
    loader = DataLoader(TensorDataset(torch.randn(8, 3, 32, 32), torch.tensor([0, 1] * 4)), batch_size=2)
    trainer = pl.Trainer(
        max_steps=50,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    after = backbone.network.state_dict()
    assert trainer.global_step == 50
    assert all(torch.equal(before[k], after[k]) for k in before)
    assert backbone.weights_hash == hash_before
    assert not any(m.training for m in backbone.modules())
    assert all(p.grad is None and not p.requires_grad for p in backbone.parameters())
    assert not torch.equal(module.head.weight, head_before)


def test_the_digest_is_the_one_written_by_hand():
    module = nn.BatchNorm1d(2)
    reference = hashlib.sha256(b"name")
    entries = sorted({**dict(module.named_parameters()), **dict(module.named_buffers())}.items())
    assert [k for k, _ in entries] == ["bias", "num_batches_tracked", "running_mean", "running_var", "weight"]
    for key, value in entries:
        reference.update(f"|{key}|{value.dtype}|{tuple(value.shape)}|".encode() + value.detach().numpy().tobytes())
    assert weights_digest("name", module) == reference.hexdigest()


def test_the_digest_sees_one_bit_and_not_the_memory_format():
    module = nn.Conv2d(3, 4, 3)
    digest = WeightsDigest("conv", module)
    first = digest()
    module.to(memory_format=torch.channels_last)
    assert digest() == first
    with torch.no_grad():
        module.bias[0] = torch.nextafter(module.bias[0], torch.tensor(9.0))
    assert digest() != first


def test_buffers_outside_the_state_dict_count():
    module = nn.Module()
    module.register_buffer("table", torch.zeros(3), persistent=False)
    before = weights_digest("m", module)
    module.table[1] = 1
    assert weights_digest("m", module) != before


def test_bfloat16_weights_have_a_digest():
    assert weights_digest("m", nn.Linear(2, 2).bfloat16()) != weights_digest("m", nn.Linear(2, 2).bfloat16())
