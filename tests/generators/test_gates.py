"""Gates learn from measured effects: the gradient is that of the expected loss, by brute force over all gates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from humanlike.generators.drawn import TEMPERATURE, Drawn
from humanlike.generators.finetune import FineTuning
from humanlike.generators.gates import chosen_curves, flipped, gate_loss

B, K = 2, 4


@pytest.fixture
def drawn():
    random = torch.Generator().manual_seed(0)
    logit = torch.tensor([[1.0, -0.5, 2.0, -3.0], [0.3, 0.2, -0.1, 4.0]])
    points = torch.rand(B, K, 4, 2, generator=random)
    stroke = torch.arange(K).expand(B, K) // 2
    return Drawn(points, torch.full((B, K), 0.02), logit.requires_grad_(True), stroke)


def table_loss(values):
    """A loss that is any function of a sketch's gates."""

    def loss_of(strokes, owner):
        rows = (strokes.opacity_BK.long() * (2 ** torch.arange(K))).sum(1)
        return values[torch.tensor(owner), rows]

    return loss_of


def test_one_gate_is_turned_in_each_copy(drawn):
    curves = torch.tensor([[0, 3], [1, 2]])
    turned = flipped(drawn, curves)
    before = (drawn.on_logit_BK > 0).float()
    for b, f in itertools.product(range(B), range(2)):
        row = 2 * b + f
        differing = (turned.opacity_BK[row] != before[b]).nonzero().flatten().tolist()
        assert differing == [int(curves[b, f])]
        assert torch.equal(turned.points_BK42[row], drawn.points_BK42[b])
        assert torch.equal(turned.stroke_BK[row], drawn.stroke_BK[b])


def test_the_gradient_is_the_effect_times_the_slope_of_the_chance(drawn):
    values = torch.randn(B, 2**K, generator=torch.Generator().manual_seed(1))
    every = torch.arange(K).expand(B, K)
    gate_loss(drawn, every, table_loss(values)).backward()
    mode = (drawn.on_logit_BK > 0).numpy()
    for b, k in itertools.product(range(B), range(K)):
        cost = []
        for on in (0, 1):
            gates = mode[b].astype(int).copy()
            gates[k] = on
            cost.append(float(values[b, int((gates * 2 ** np.arange(K)).sum())]))
        p = 1 / (1 + np.exp(-float(drawn.on_logit_BK[b, k].detach()) / TEMPERATURE))
        expected = (cost[1] - cost[0]) * p * (1 - p) / TEMPERATURE / B
        assert float(drawn.on_logit_BK.grad[b, k]) == pytest.approx(expected, rel=1e-5)


def test_a_part_of_the_curves_gives_the_same_gradient_on_average(drawn):
    values = torch.randn(B, 2**K, generator=torch.Generator().manual_seed(2))
    (whole,) = torch.autograd.grad(
        gate_loss(drawn, torch.arange(K).expand(B, K), table_loss(values)), drawn.on_logit_BK
    )
    parts = []
    for pair in itertools.combinations(range(K), 2):
        loss = gate_loss(drawn, torch.tensor(pair).expand(B, 2), table_loss(values))
        parts.append(torch.autograd.grad(loss, drawn.on_logit_BK)[0])
    torch.testing.assert_close(torch.stack(parts).mean(0), whole)


def test_which_curves_are_turned_depends_on_the_sketch_and_step_alone(drawn):
    first = chosen_curves(drawn, 3, 0, 5, [8, 9])
    assert torch.equal(first[1:], chosen_curves(drawn, 3, 0, 5, [9, 8])[:1])
    assert not torch.equal(first, chosen_curves(drawn, 3, 0, 6, [8, 9]))
    assert all(len(set(row)) == 3 for row in first.tolist())
    assert chosen_curves(drawn, 99, 0, 5, [8, 9]).sort(1)[0].tolist() == [[0, 1, 2, 3]] * 2


def test_gates_close_where_that_is_what_a_critic_wants(decoder, linear_critic):
    """Curves that cost are left out, and slopes that are not measured do not move the gates of others."""
    module = FineTuning(
        decoder(), linear_critic(), size=32, sketches=3, per_concept=1, stay_weight=0.0, diversity_weight=0.0,
        tuned=["on_template"], gate_flips=10, optimizer=lambda p: torch.optim.SGD(p, 1.0),
    )  # fmt: skip
    concept = torch.arange(3)
    noise = module.generator.noise(range(3), 0, "x")
    (optimizer,) = [module.configure_optimizers()]

    def cost():
        drawn = module.generator.draw(concept, noise)
        return float(module._loss_of_each(concept, 0, drawn.for_training(), [0, 1, 2]).mean())

    before = cost()
    for _ in range(30):
        drawn = module.generator.draw(concept, noise)
        loss = gate_loss(
            drawn, torch.arange(10).expand(3, 10), lambda s, owner: module._loss_of_each(concept, 0, s, owner)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert cost() < before - 0.05
