"""The rules' formulas against the table of the paper, written out anew, and against gradients by autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from humanlike.learners import RULES, ExemplarRule, LinearRule, resolve_rule
from humanlike.learners.update_rules import BOUNDARY, exp, inferred_action

LOSSES = {  # the losses whose gradients the rules descend; r is ±1
    "square": lambda r, z: 0.5 * (r - z) ** 2,
    "perceptron": lambda r, z: torch.relu(-r * z),
    "hinge": lambda r, z: torch.relu(1 - r * z),
    "mae": lambda r, z: (r - z).abs(),
    "exponential": lambda r, z: torch.exp(-r * z),
    "cross_entropy": lambda r, z: 4 * torch.nn.functional.softplus(-r * z),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_steps_descend_the_gradient_of_their_loss(name, reward):
    for preference in (-1.7, -0.6, 0.3, 0.9, 2.2):
        z = torch.tensor(preference, dtype=torch.float64, requires_grad=True)
        LOSSES[name](reward, z).backward()
        assert float(RULES[name].step(reward, preference)) == pytest.approx(-float(z.grad), rel=1e-12)


def test_steps_with_real_rewards():
    r, z = 0.25, -0.5
    expected = {
        "square": r - z,
        "perceptron": r,
        "hinge": r,
        "mae": 1.0,
        "exponential": r * math.exp(-r * z),
        "cross_entropy": 4 * r / (1 + math.exp(r * z)),
    }
    assert {name: float(RULES[name].step(r, z)) for name in expected} == pytest.approx(expected, rel=1e-15)
    assert float(RULES["perceptron"].step(0.25, 0.5)) == 0
    assert float(RULES["hinge"].step(0.25, 4.1)) == 0
    assert float(RULES["mae"].step(0.25, 0.5)) == -1


def test_what_lies_on_the_boundary():
    for rounding in (-3e-16, 0.0, 3e-16, 0.9 * BOUNDARY):
        assert float(RULES["hinge"].step(1.0, 1.0 + rounding)) == 1
        assert float(RULES["hinge"].step(-1.0, -1.0 - rounding)) == -1
        assert float(RULES["mae"].step(1.0, 1.0 + rounding)) == 0
        assert float(RULES["mae"].step(-0.5, -0.5 - rounding)) == 0
    assert float(RULES["hinge"].step(1.0, 1.0 + 2 * BOUNDARY)) == 0
    assert float(RULES["mae"].step(1.0, 1.0 + 2 * BOUNDARY)) == -1
    assert float(RULES["perceptron"].step(1.0, 0.0)) == 1


def test_floats_arrays_and_tensors_agree():
    rng = np.random.default_rng(0)
    r, z = rng.uniform(-1, 1, 50), rng.normal(size=50)
    for name in LOSSES:
        step = RULES[name].step
        one_by_one = [float(step(float(a), float(b))) for a, b in zip(r, z, strict=True)]
        np.testing.assert_allclose(step(r, z), one_by_one, rtol=1e-14)
        np.testing.assert_allclose(step(torch.from_numpy(r), torch.from_numpy(z)).numpy(), one_by_one, rtol=1e-14)
    assert math.isfinite(exp(1e4))


def test_reinforce_against_the_gradient_of_the_log_probability():
    l_M = torch.tensor([0.3, -1.0, 0.8], dtype=torch.float64, requires_grad=True)
    (0.7 * torch.log_softmax(l_M, 0)[1]).backward()
    steps_M = RULES["reinforce"].steps(0.7, l_M.detach().numpy(), 1)
    np.testing.assert_allclose(steps_M, l_M.grad.numpy(), rtol=1e-13)
    assert steps_M.sum() == pytest.approx(0, abs=1e-15)


def test_inferred_actions():
    assert [inferred_action(a, r, 2) for a in (0, 1) for r in (1.0, -1.0)] == [0, 1, 1, 0]
    assert [inferred_action(2, r, 4) for r in (0.5, -1.0)] == [2, -1]
    actions, rewards = torch.tensor([0, 1, 1]), torch.tensor([-1.0, -1.0, 1.0])
    assert inferred_action(actions, rewards, 2).tolist() == [1, 0, 1]
    assert inferred_action(actions, rewards, 3).tolist() == [-1, -1, 1]


def test_the_rules_are_those_of_the_paper_and_two_more():
    assert list(RULES)[:7] == ["square", "perceptron", "hinge", "mae", "exponential", "cross_entropy", "reinforce"]
    assert list(RULES)[7:] == ["exemplar", "prototype"]
    assert RULES["exponential"].norm_cap == 10
    assert (RULES["exemplar"].c, RULES["exemplar"].p) == (10, 1)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: resolve_rule("sqare"), ValueError, "unknown update rule 'sqare'; the rules are square, "),
        (lambda: resolve_rule(3), TypeError, "name of an update rule or an UpdateRule, got int"),
        (lambda: ExemplarRule(c=0), ValueError, "c of the exemplar rule"),
        (lambda: ExemplarRule(p=3), ValueError, "p of the exemplar rule must be 1 or 2, got 3"),
        (lambda: ExemplarRule(gamma=0.0), ValueError, "gamma of the exemplar rule"),
        (lambda: LinearRule("x", RULES["square"].step, norm_cap=0.0), ValueError, "norm_cap must be positive"),
    ],
)
def test_bad_rules(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()
