"""Critics: the readout and the head of the ordinary path as referees, gradients by finite differences, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from humanlike.backbones.callable import CallableBackbone
from humanlike.backbones.features import extract_features
from humanlike.data.doodles import doodles
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.critic import Critic, fit_critic
from humanlike.elements.critic_file import load_critic, save_critic, saved_critic
from humanlike.elements.presence import DifferentiablePresence
from humanlike.elements.presence_fit import fit_presence, predict_presence
from humanlike.elements.presence_head import PresenceHead
from humanlike.losses import SEALoss
from humanlike.readouts import LogisticReadout

CONCEPTS = ["lion", "taxi", "mouse"]


@pytest.fixture(scope="module")
def data():
    return doodles(CONCEPTS, instances=5, judgments=0, size=48)


@pytest.fixture(scope="module")
def backbone(smooth_backbone):
    return smooth_backbone


@pytest.fixture(scope="module")
def critic(backbone, data):
    return fit_critic(backbone, data)


@pytest.fixture(scope="module")
def pictures(data):
    """(B, 3, 48, 48) every tenth drawing in [0, 1], and its concepts."""
    rows = range(0, len(data), 10)
    x = np.stack([np.asarray(data.images.load(i), dtype=np.float32) / 255 for i in rows])
    return torch.from_numpy(x).permute(0, 3, 1, 2), data.table["concept"].iloc[list(rows)].tolist()


def test_agrees_with_readout_and_head_on_the_ordinary_path(critic, backbone, data):
    features = extract_features(backbone, data, progress=False)["output"]
    p_NL = LogisticReadout().fit(features.f_ND, data.target_N, 3).predict_proba(features.f_ND)
    head = PresenceHead(features.f_ND.shape[1], annotated_elements(data), backbone=backbone)
    fit_presence(head, data, features)
    concepts = data.table["concept"].tolist()
    presence_NE = predict_presence(head, features, head.pairs.concept_positions(concepts))
    x = torch.stack([torch.from_numpy(np.array(data.images.load(i))) for i in range(len(data))])
    x_N3HW = x.permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        reading = critic(x_N3HW, concepts)
        logp_NL = critic.log_proba(x_N3HW)
    # Without rounding to bytes pixels move by up to 1/255, which this network turns into less than 1% of probability.
    np.testing.assert_allclose(logp_NL.exp(), p_NL, atol=0.01)
    np.testing.assert_allclose(reading.log_p_B.exp(), p_NL[np.arange(len(data)), data.target_N], atol=0.01)
    found = torch.sigmoid(reading.presence_logits_BE)[reading.mask_BE]
    np.testing.assert_allclose(found, presence_NE[reading.mask_BE], atol=0.01)
    # On the very features, to rounding.
    with torch.no_grad():
        exact_NL = critic.log_proba_of(torch.from_numpy(features.f_ND)).exp()
    np.testing.assert_allclose(exact_NL, p_NL, atol=2e-5)


def test_one_pass_says_what_two_say(critic, pictures):
    x, concepts = pictures
    assert isinstance(critic, DifferentiablePresence)
    with torch.no_grad():
        reading = critic(x, concepts)
        torch.testing.assert_close(reading.log_p_B, critic.log_p(x, concepts))
        logits, mask = critic.presence_logits(x, concepts)
    torch.testing.assert_close(reading.presence_logits_BE, logits)
    assert torch.equal(mask, reading.mask_BE)
    assert critic.concepts == data_order()


def data_order() -> tuple[str, ...]:
    return tuple(sorted(CONCEPTS))


def test_gradient_of_the_loss_reaches_the_pixels_and_is_right(critic, pictures):
    x, concepts = pictures
    canvas = x[:, :1].clone().requires_grad_()

    def loss(canvas_B1HW: torch.Tensor) -> torch.Tensor:
        return SEALoss()(*critic(canvas_B1HW.expand(-1, 3, -1, -1), concepts))

    loss(canvas).backward()
    assert canvas.grad.isfinite().all()
    assert (canvas.grad.flatten(1).abs().sum(1) > 0).all()
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        # Away from 0 and 1, where the resize clips, a central difference along a random direction is the referee.
        direction = torch.randn(canvas.shape, generator=generator)
        inside = (0.2 + 0.6 * x[:, :1]).requires_grad_()
        loss(inside).backward()
        slope = (inside.grad * direction).sum()
        with torch.no_grad():
            step = 1e-2
            difference = (loss(inside + step * direction) - loss(inside - step * direction)) / (2 * step)
        torch.testing.assert_close(slope, difference, rtol=0.02, atol=2e-3)


def test_weights_stay_as_they_are(critic, backbone, pictures):
    x, concepts = pictures
    before = backbone.weights_hash
    SEALoss()(*critic(x.clone().requires_grad_(), concepts)).backward()
    assert backbone.weights_hash == before
    assert not any(p.requires_grad for p in critic.parameters())


def test_labels_without_a_drawing_have_no_probability(backbone, data, pictures):
    x, concepts = pictures
    two = data.select(np.flatnonzero(data.table["concept"] != "taxi"))
    critic = fit_critic(backbone, two)
    assert critic.concepts == ("lion", "mouse")
    with torch.no_grad():
        logp_BL = critic.log_proba(x)
    assert logp_BL[:, list(critic.labels).index("taxi")].eq(-torch.inf).all()
    torch.testing.assert_close(logp_BL.exp().sum(1), torch.ones(len(x)))
    with pytest.raises(ValueError, match="fitted without 'taxi'"):
        critic.log_p(x, ["taxi"] * len(x))
    with pytest.raises(ValueError, match="a concept for each"):
        critic.log_p(x, concepts[:1])


def test_without_annotation_there_is_no_head(backbone, data, pictures):
    from dataclasses import replace

    x, concepts = pictures
    critic = fit_critic(backbone, replace(data, elements=None))
    assert critic.elements == {}
    assert critic.log_p(x, concepts).shape == (len(x),)
    with pytest.raises(ValueError, match="no presence head"):
        critic.presence_logits(x, concepts)


def test_files_keep_everything(critic, backbone, pictures, tmp_path):
    x, concepts = pictures
    save_critic(tmp_path / "c.safetensors", critic)
    again = load_critic(tmp_path / "c.safetensors", backbone)
    assert isinstance(again, Critic)
    assert again.record["dataset"] == "doodles"
    assert again.elements == critic.elements
    with torch.no_grad():
        for a, b in zip(critic(x, concepts), again(x, concepts), strict=True):
            torch.testing.assert_close(a, b)
    assert saved_critic(tmp_path / "c.safetensors", backbone, sketches=None, seed=1).concepts == critic.concepts
    other = CallableBackbone(torch.nn.Sequential(torch.nn.Conv2d(3, 6, 5), torch.nn.Flatten()), {"size": 32}, name="o")
    with pytest.raises(ValueError, match="use that backbone"):
        load_critic(tmp_path / "c.safetensors", other)
    (tmp_path / "d.safetensors").write_bytes(b"x")
    with pytest.raises(ValueError, match="no whole safetensors"):
        load_critic(tmp_path / "d.safetensors", backbone)
    with pytest.raises(FileNotFoundError, match="save_critic"):
        load_critic(tmp_path / "e.safetensors", backbone)
