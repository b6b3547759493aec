"""Laws of both generators: what they draw, how it is trained through, and how pre-training goes on after a stop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch.nn.functional import binary_cross_entropy

from humanlike.data.strokes import Strokes
from humanlike.generators.datamodule import pen_movements
from humanlike.generators.drawn import Generator, straight_through
from humanlike.generators.rasterizer import rasterize
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO

CONCEPT_B = torch.tensor([0, 1, 2, 1])


# Where SLURM is installed, Lightning says so.
pytestmark = pytest.mark.filterwarnings("ignore:.*srun.*command is available.*")


def drawn_by(model, numbers=range(4), concept_B=CONCEPT_B, seed=0):
    return model.draw(concept_B, model.noise(list(numbers), seed, "test"))


class StopAt(pl.Callback):
    """Ends training early, as a kill would, with the length of the whole still known."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        trainer.should_stop = trainer.global_step >= self.step


def trainer(steps, *callbacks):
    return pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        max_epochs=-1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        plugins=[AtomicCheckpointIO()],
        callbacks=list(callbacks),
    )


def test_it_is_a_generator_and_draws_finite_strokes(small_generator):
    model = small_generator()
    assert isinstance(model, Generator)
    drawn = drawn_by(model)
    canvas = rasterize(drawn.for_training(), 32)
    assert canvas.shape == (4, 1, 32, 32)
    assert bool(canvas.isfinite().all())
    assert 0 <= float(canvas.detach().min()) <= float(canvas.detach().max()) <= 1


def test_a_drawing_depends_on_its_own_number_alone(small_generator):
    model = small_generator().eval()
    together = drawn_by(model)
    for b in range(4):
        alone = drawn_by(model, [b], CONCEPT_B[b : b + 1])
        torch.testing.assert_close(alone.points_BK42[0], together.points_BK42[b], rtol=1e-4, atol=1e-5)
        assert torch.equal(model.noise([b], 0, "test")[0], model.noise(range(4), 0, "test")[b])
    assert not torch.equal(model.noise([0], 0, "test"), model.noise([0], 1, "test"))


def test_equal_seeds_make_equal_networks_whatever_was_drawn_before(small_generator):
    a = small_generator(seed=3).state_dict()
    torch.rand(7)
    b = small_generator(seed=3).state_dict()
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert any(not torch.equal(a[k], v) for k, v in small_generator(seed=4).state_dict().items())


def test_what_is_kept_looks_like_what_was_trained_on(small_generator):
    drawn = drawn_by(small_generator())
    trained = rasterize(drawn.for_training(), 64).detach()
    again = Strokes.from_drawings(drawn.strokes().to_drawings())
    torch.testing.assert_close(rasterize(again, 64), trained, atol=2e-3, rtol=0)
    from_json = Strokes.from_json(drawn.strokes().to_json())
    torch.testing.assert_close(rasterize(from_json, 64), trained, atol=2e-3, rtol=0)
    inked = [b for b, d in enumerate(drawn.strokes().to_drawings()) if d.num_strokes]
    from_svg = Strokes.from_svg(*(drawn.strokes().to_svg(512)[b] for b in inked))
    assert float((rasterize(from_svg, 64) - trained[inked]).abs().mean()) < 2e-3


def test_a_gradient_of_the_picture_reaches_the_network(small_generator):
    model = small_generator()
    weight = torch.rand(4, 1, 32, 32)
    (rasterize(drawn_by(model).for_training(), 32) * weight).sum().backward()
    reached = [n for n, p in model.named_parameters() if p.grad is not None and bool((p.grad != 0).any())]
    assert len(reached) > 5
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_distance_is_zero_to_itself_and_grows(small_generator):
    model, other = small_generator(), small_generator()
    drawn = drawn_by(model)
    assert model.distance(drawn, drawn_by(other)).abs().max() < 1e-5
    with torch.no_grad():
        for p in other.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    far = model.distance(drawn, drawn_by(other))
    assert far.shape == (4,)
    assert bool((far > 0).all())


def test_pretraining_lowers_the_loss(small_generator, datamodule):
    model, data = small_generator(), datamodule()
    batch = next(iter(data.train_table()))
    if hasattr(model, "take_templates"):
        model.take_templates([batch])
    zero = torch.zeros(len(batch.index_B), model.code)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    values = []
    for _ in range(40):
        loss = model.losses(batch, zero)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(float(loss.detach()))
    assert values[-1] < 0.8 * values[0] if values[0] > 0 else values[-1] < values[0]


def test_pretraining_goes_on_bit_by_bit_in_the_middle_of_an_epoch(small_generator, datamodule, tmp_path):
    straight = small_generator()
    trainer(8).fit(straight, datamodule=datamodule())
    stopped, first = small_generator(), trainer(8, StopAt(5))
    first.fit(stopped, datamodule=datamodule())
    first.save_checkpoint(tmp_path / "stop.ckpt")
    resumed = small_generator(seed=0)
    trainer(8).fit(resumed, datamodule=datamodule(), ckpt_path=tmp_path / "stop.ckpt", weights_only=True)
    a, b = straight.state_dict(), resumed.state_dict()
    assert int(a["batches_seen"]) == 8
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert any(not torch.equal(a[k], v) for k, v in stopped.state_dict().items())


def test_losses_do_not_depend_on_the_order_of_the_batch(small_generator, datamodule):
    model = small_generator()
    batch = next(iter(datamodule().train_table()))
    turned = type(batch)(*(x.flip(0) for x in batch))
    zero = torch.zeros(len(batch.index_B), model.code)
    a, b = model.losses(batch, zero), model.losses(turned, zero)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-4, atol=1e-5)


def test_the_decoders_loss_by_hand(decoder, datamodule):
    model = decoder(beta=0.5, on_weight=2.0, width_weight=3.0)
    batch = next(iter(datamodule().train_table()))
    noise = torch.randn(len(batch.index_B), 4, generator=torch.Generator().manual_seed(0))
    parts = {k: float(v.detach()) for k, v in model.losses(batch, noise).items()}
    mean, log_variance = (x.detach().double().numpy() for x in model.encode(batch))
    z = torch.from_numpy(mean + noise.double().numpy() * np.exp(log_variance / 2)).float()
    drawn = model.decode(batch.concept_B, z)
    points, on = drawn.points_BK42.detach().numpy(), (batch.stroke_BK >= 0).numpy()
    each = [
        np.mean([np.abs(points[b, k] - batch.points_BK42[b, k].numpy()).sum(1).mean() for k in np.flatnonzero(on[b])])
        for b in range(len(on))
    ]
    assert parts["points"] == pytest.approx(np.mean(each), rel=1e-4)
    p = drawn.on_logit_BK.detach().sigmoid()
    wanted = torch.from_numpy(0.05 + 0.9 * on).float()
    assert parts["on"] == pytest.approx(float(binary_cross_entropy(p, wanted)), rel=1e-4)
    kl = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum(1).mean()
    assert parts["kl"] == pytest.approx(kl, rel=1e-4)
    total = parts["points"] + 2 * parts["on"] + 3 * parts["width"] + 0.5 * parts["kl"]
    assert parts["loss"] == pytest.approx(total, rel=1e-5)


def test_the_sketch_rnns_loss_counts_offsets_to_the_end_and_pens_including_it(sketch_rnn, datamodule):
    model = sketch_rnn()
    batch = next(iter(datamodule().train_table()))
    one = type(batch)(*(x[:1] for x in batch))
    zero = torch.zeros(1, model.code)
    parts = {k: float(v.detach()) for k, v in model.losses(one, zero).items()}
    pen = pen_movements(one)
    mean, _ = model.encode(pen, one.concept_B)
    with torch.no_grad():
        mixture, logit = model.movements(pen, torch.cat([mean, model.concept(one.concept_B)], 1))
    n = int((pen.pen_BT != 2).sum())
    state = [-float(torch.log_softmax(logit[0, t], 0)[pen.pen_BT[0, t]]) for t in range(n + 1)]
    assert parts["pen"] == pytest.approx(sum(state) / (n + 1), rel=1e-4)
    total = 0.0
    for t in range(n):
        x = (pen.offset_BT2[0, t] / model.scale).double()
        density = 0.0
        for m in range(3):
            sx, sy = mixture.log_scale[0, t, m].double().exp().tolist()
            rho = float(mixture.correlation[0, t, m])
            cov = torch.tensor([[sx**2, rho * sx * sy], [rho * sx * sy, sy**2]], dtype=torch.float64)
            normal = torch.distributions.MultivariateNormal(mixture.mean[0, t, m].double().detach(), cov)
            density += math.exp(float(mixture.log_weight[0, t, m]) + float(normal.log_prob(x)))
        total -= math.log(density)
    assert parts["offset"] == pytest.approx(total / (n + 1), rel=1e-3)


def test_codes_come_from_training_drawings_of_the_concept(decoder, datamodule):
    model, data = decoder(spread=0.0, exemplars=64), datamodule()
    model.fit_codes(data.train_table())
    batch = next(iter(data.train_table()))
    code_NZ, _ = model.encode(batch)
    for c in range(3):
        own = code_NZ[batch.concept_B == c]
        assert int(model.count_C[c]) == len(own)
        noise = torch.cat([torch.rand(1, 1), torch.randn(1, 4)], 1)
        drawn = model.draw(torch.tensor([c]), noise)
        made = model.decode(torch.full((len(own),), c), own)
        gaps = (made.points_BK42 - drawn.points_BK42).abs().amax((1, 2, 3))
        assert float(gaps.detach().min()) < 1e-4


def test_a_pen_that_is_up_and_a_drawing_that_is_over_leave_no_ink(sketch_rnn):
    model = sketch_rnn()
    offset = torch.full((1, 4, 2), 0.05)
    mixture, logit = model._said(torch.zeros(1, 4, model.hidden))
    drawn = model._strokes(offset, torch.tensor([[0, 1, 0, 2]]), mixture, logit)
    # Movement 0 comes from nowhere, 1 follows a pen that is down, 2 one that is up, 3 ends the drawing.
    assert (drawn.on_logit_BK > 0).tolist() == [[False, True, False, False]]
    assert drawn.stroke_BK.tolist() == [[0, 0, 1, 1]]
    assert drawn.extra.alive_BT.tolist() == [[True, True, True, True]]


def test_the_gate_is_hard_and_its_slope_soft():
    logit = torch.tensor([-3.0, -0.1, 0.1, 3.0], requires_grad=True)
    gate = straight_through(logit, temperature=2.0)
    gate.sum().backward()
    assert gate.tolist() == [0, 0, 1, 1]
    s = torch.sigmoid(logit.detach() / 2)
    torch.testing.assert_close(logit.grad, s * (1 - s) / 2)


@pytest.mark.parametrize(
    ("settings", "sentence"), [({"num_curves": 0}, "num_curves"), ({"width": 15}, "multiple of heads")]
)
def test_settings_that_cannot_be_are_named(decoder, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        decoder(**settings)


def test_a_hot_pen_is_refused(sketch_rnn):
    with pytest.raises(ValueError, match="temperature"):
        sketch_rnn(temperature=1.5)


def test_pictures_without_strokes_are_refused(drawings, datamodule):
    with pytest.raises(ValueError, match="no concepts of the generator"):
        type(datamodule())(drawings, ("airplane", "bench"), np.zeros(len(drawings)), 8)
