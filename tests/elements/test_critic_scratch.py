"""The offline judge: deterministic, cached, useful; its accuracy and its temperatures against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from humanlike.backbones.architectures.sketch_net import SketchNet
from humanlike.data.doodles import doodles
from humanlike.elements.critic_scratch import accuracy_of, calibrated, doodle_judge, doodle_judge_of
from humanlike.elements.critic_training import ScratchSettings, jittered, train_sketch_net
from humanlike.elements.presence_pairs import ElementPairs
from humanlike.rng import address_seed

SMALL = {"instances": 4, "calibration_instances": 2, "held_out_instances": 2, "steps": 8, "width": 4, "size": 32}
CONCEPTS = ["lion", "taxi", "mouse"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("judges")


@pytest.fixture(scope="module")
def judge(folder):
    return doodle_judge(CONCEPTS, seed=3, cache_dir=folder, **SMALL)


def test_the_same_seed_gives_the_same_judge_and_another_another(judge):
    again = doodle_judge(CONCEPTS, seed=3, **SMALL)
    other = doodle_judge(CONCEPTS, seed=4, **SMALL)
    assert again.backbone.weights_hash == judge.backbone.weights_hash != other.backbone.weights_hash
    assert torch.equal(again.coef_KD, judge.coef_KD)
    assert torch.equal(again.head.weight_PD, judge.head.weight_PD)


def test_what_was_trained_is_kept(judge, folder):
    before = sorted(p.name for p in (folder / "critics").iterdir())
    again = doodle_judge_of(doodles(CONCEPTS, instances=1, judgments=0), cache_dir=folder, seed=3, **SMALL)
    assert sorted(p.name for p in (folder / "critics").iterdir()) == before
    assert again.record == judge.record
    x_B3HW = torch.rand(2, 3, 40, 40, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for a, b in zip(judge(x_B3HW, ["lion", "taxi"]), again(x_B3HW, ["lion", "taxi"]), strict=True):
            torch.testing.assert_close(a, b)
    doodle_judge(CONCEPTS, seed=3, cache_dir=folder, **(SMALL | {"steps": 3}))
    assert len(list((folder / "critics").iterdir())) == 2 * len(before)


def test_accuracy_is_counted_right(judge):
    data = doodles(CONCEPTS, instances=2, conditions=[8, 32], judgments=0, size=32)
    found = accuracy_of(judge, data)
    wanted = ElementPairs(judge.elements).targets(data)
    right, elements_right, present = [], [], []
    for i in range(len(data)):
        x = torch.from_numpy(np.array(data.images.load(i).convert("L"))).float()[None, None].expand(-1, 3, -1, -1) / 255
        with torch.no_grad():
            right.append(int(judge.log_proba(x).argmax()) == data.target_N[i])
            logits, mask = judge.presence_logits(x, [data.table["concept"][i]])
        for logit, real, is_drawn in zip(logits[0], mask[0], wanted[i], strict=True):
            if real:
                elements_right.append(bool(logit >= 0) == bool(is_drawn))
                present.append(bool(is_drawn))
    assert found["top1"] == pytest.approx(np.mean(right))
    assert found["presence_accuracy"] == pytest.approx(np.mean(elements_right))
    assert found["presence_base"] == pytest.approx(max(np.mean(present), 1 - np.mean(present)))
    assert found["items"] == 12


def test_temperature_is_the_likeliest(folder):
    data = doodles(CONCEPTS, instances=3, judgments=0, size=32)
    critic = doodle_judge(CONCEPTS, seed=3, cache_dir=folder, **SMALL)
    x = torch.from_numpy(np.stack([np.array(data.images.load(i)) for i in range(len(data))])).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        logp_NL = critic.log_proba(x).double().numpy()

    def loss(log_heat: float) -> float:
        z = logp_NL / np.exp(log_heat)
        return float(-(z - np.log(np.exp(z).sum(1, keepdims=True)))[np.arange(len(data)), data.target_N].mean())

    best = minimize_scalar(loss, bounds=(-np.log(8), np.log(8)), method="bounded")
    calibrated(critic, data)
    assert critic.record["temperature"] == pytest.approx(np.exp(best.x), rel=0.05)  # the loss is flat around it
    with torch.no_grad():
        after = -critic.log_proba(x).gather(1, torch.tensor(data.target_N)[:, None]).mean()
    assert float(after) == pytest.approx(best.fun, abs=1e-4)


def test_jitter_moves_ink_and_makes_none():
    ink = torch.zeros(3, 1, 32, 32)
    ink[:, :, 12:20, 12:20] = 1
    moved = jittered(ink, 1.0, torch.Generator().manual_seed(0))
    assert moved.min() >= 0
    assert moved.max() <= 1 + 1e-6
    assert not torch.equal(moved[0], moved[1])
    mirrored_or_not = jittered(ink, 0.0, torch.Generator().manual_seed(0))
    torch.testing.assert_close(mirrored_or_not, ink)  # a square in the middle is its own mirror image


@pytest.mark.slow
def test_a_short_training_is_useful():
    judge = doodle_judge(["airplane", "lion", "mouse", "taxi"], instances=24, steps=240)
    held_out = judge.record["held_out"]
    assert held_out["top1"] > 0.6
    assert held_out["presence_accuracy"] > held_out["presence_base"] + 0.05


def test_training_reaches_every_part():
    data = doodles(CONCEPTS, instances=2, judgments=0, size=32)
    network, elements = train_sketch_net(data, ScratchSettings(size=32, width=4, steps=2))
    fresh, _ = train_sketch_net(data, ScratchSettings(size=32, width=4, steps=1))
    moved = [not torch.equal(a, b) for a, b in zip(network.parameters(), fresh.parameters(), strict=True)]
    assert all(moved)
    assert not network.training
    assert elements.weight.abs().sum() > 0


def test_weights_have_an_address_and_the_global_generator_goes_on():
    """Torch's own way, written out: the weights of a judge that was trained before must be those of one trained now."""
    data = doodles(["lion", "vase"], instances=2, judgments=0)
    made = []

    class Net(SketchNet):
        def __init__(self, labels, width):
            super().__init__(labels, width)
            made.append([p.detach().clone() for p in self.parameters()])

    before = torch.get_rng_state()
    train_sketch_net(data, ScratchSettings(size=64, width=4, steps=1, seed=5), Net)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(address_seed(5, "scratch", "weights") % 2**63)
        Net(2, 4)
    assert all(torch.equal(a, b) for a, b in zip(*made, strict=True))
