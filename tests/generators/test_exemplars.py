"""A prior over remembered drawings: as wide as asked, none of its width does better, and it is what is drawn from."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.generators.exemplars import Exemplars, perplexity, tilted


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(3, 40), st.floats(0.1, 1.0), st.floats(1e-3, 1e3))
def test_no_prior_of_its_width_has_a_lower_loss(seed, count, share, scale):
    random = np.random.default_rng(seed)
    loss = torch.from_numpy(random.standard_normal(count) * scale)
    weight = tilted(loss, torch.zeros(count, dtype=torch.int64), share)
    entropy = -(weight * weight.clamp(min=1e-300).log()).sum()
    assert float(weight.sum()) == pytest.approx(1)
    assert float(entropy.exp()) == pytest.approx(max(share * count, 1), rel=1e-3)
    assert bool((weight[loss.argsort()].diff() <= 0).all())
    for other in torch.from_numpy(random.dirichlet(np.full(count, 5 * share), 50)):
        if perplexity(other) >= float(entropy.exp()):
            assert float(other @ loss) >= float(weight @ loss) - 1e-9 * scale


def test_concepts_have_a_prior_each():
    loss = torch.tensor([0.0, 1.0, 2.0, 5.0, 5.0, 0.0, 9.0])
    concept = torch.tensor([1, 1, 1, 0, 0, 2, 2])
    weight = tilted(loss, concept, 0.7)
    for c in range(3):
        own = concept == c
        torch.testing.assert_close(weight[own], tilted(loss[own], concept[own], 0.7))
    assert weight[3:5].tolist() == [0.5, 0.5]  # equally good ones stay equally likely
    assert tilted(loss, concept, 1.0)[:3].tolist() == pytest.approx([1 / 3] * 3)
    for wrong in (0.0, 1.1):
        with pytest.raises(ValueError, match="share"):
            tilted(loss, concept, wrong)
    with pytest.raises(ValueError, match="exemplar 1 is not finite"):
        tilted(torch.tensor([0.0, torch.nan]), torch.zeros(2, dtype=torch.int64), 0.5)


@pytest.fixture
def remembering(decoder, datamodule):
    """A decoder with exemplars of the training drawings."""
    model = decoder()
    model.take_templates(datamodule().train_table())
    torch.nn.init.normal_(model.to_curve.weight, std=0.3)
    model.fit_codes(datamodule().train_table())
    return model.eval()


def test_drawings_come_from_exemplars_as_often_as_they_weigh(remembering):
    assert isinstance(remembering, Exemplars)
    count = int(remembering.count_C[0])
    assert count >= 3
    concept = torch.zeros(4000, dtype=torch.int64)
    noise = remembering.noise(range(4000), 0, "often")
    equal = remembering._chosen(concept, noise)
    assert torch.equal(equal, (noise[:, 0] * count).long().clamp(max=count - 1))
    concept_N, drawn = remembering.exemplars()
    assert torch.equal(torch.bincount(concept_N), remembering.count_C)
    weight = torch.zeros(len(concept_N), dtype=torch.float64)
    weight[0], weight[2], weight[count:] = 0.75, 0.25, 1.0
    remembering.weigh(weight)
    share = torch.bincount(remembering._chosen(concept, noise), minlength=count) / 4000
    assert share[:3].tolist() == pytest.approx([0.75, 0.0, 0.25], abs=0.03)
    assert float(share[3:].sum()) == 0
    still = noise * (torch.arange(noise.shape[1]) == 0)
    torch.testing.assert_close(remembering.draw(concept[:1], still[:1] * 0).points_BK42, drawn.points_BK42[:1])


def test_equal_weights_draw_from_the_same_exemplar_by_the_noise_that_is_told(remembering):
    concept, noise = torch.tensor([0, 1, 2] * 20), remembering.noise(range(60), 0, "same")
    before = copy.deepcopy(remembering)
    concept_N, _ = remembering.exemplars()
    remembering.weigh(tilted(torch.arange(len(concept_N)).double(), concept_N, 0.4))
    drawn, plain = remembering.draw(concept, noise), before.draw(concept, noise)
    assert not torch.equal(drawn.points_BK42, plain.points_BK42)
    same = before.draw(concept, remembering.equally(concept, noise))
    assert torch.equal(drawn.points_BK42, same.points_BK42)
    assert torch.equal(remembering.equally(concept, noise)[:, 1:], noise[:, 1:])
