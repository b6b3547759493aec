"""Fine-tuning: exact after a stop, only what is meant moves, and it ends when judge and critic part."""

from __future__ import annotations

import copy

import pytest
import pytorch_lightning as pl
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.data.drawing import Drawing
from humanlike.generators.diversity import DiversityLoss, pair_distances
from humanlike.generators.exemplars import Exemplars, perplexity
from humanlike.generators.finetune import FineTuning, steps_loader
from humanlike.generators.finetune_monitor import GapMonitor, means, read_drawings
from humanlike.metrics.functional.sea import sea
from humanlike.readouts.checkpoint_io import AtomicCheckpointIO

# Where SLURM is installed, Lightning says so.
pytestmark = pytest.mark.filterwarnings("ignore:.*srun.*command is available.*")


def tuning(generator, critic, **settings):
    return FineTuning(generator, critic, **({"size": 32, "sketches": 4, "schedule_steps": 10} | settings))


def trainer(steps, *callbacks, **more):
    return pl.Trainer(
        **{
            "accelerator": "cpu",
            "max_steps": steps,
            "max_epochs": -1,
            "logger": False,
            "enable_checkpointing": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "gradient_clip_val": 1.0,
            "callbacks": list(callbacks),
            "plugins": [AtomicCheckpointIO()],
            **more,
        }
    )


def remembering(generator):
    """The generator with four exemplars a concept, if it is one that has any."""
    if isinstance(generator, Exemplars):
        random = torch.Generator().manual_seed(7)
        generator.code_CMZ[:, :4] = torch.randn(*generator.code_CMZ[:, :4].shape, generator=random)
        generator.count_C.fill_(4)
        torch.nn.init.constant_(generator.on_template, 0.2)  # nothing drawn would be nothing to prefer
        generator.weigh(torch.full((4 * len(generator.concepts),), 0.25))
    return generator


@pytest.mark.parametrize("settings", [{}, {"gate_flips": 3, "exemplar_share": 0.5, "weigh_every": 3}])
def test_ten_steps_are_five_and_five(small_generator, linear_critic, tmp_path, settings):
    def tuning(generator, critic):
        return FineTuning(remembering(generator), critic, size=32, sketches=4, schedule_steps=10, **settings)

    straight = tuning(small_generator(), linear_critic())
    trainer(10).fit(straight, steps_loader(10))
    half = tuning(small_generator(), linear_critic())
    first = trainer(5)
    first.fit(half, steps_loader(10))
    first.save_checkpoint(tmp_path / "half.ckpt")
    torch.rand(3)
    resumed = tuning(small_generator(), linear_critic())
    trainer(10).fit(resumed, steps_loader(10), ckpt_path=tmp_path / "half.ckpt", weights_only=True)
    a, b = straight.state_dict(), resumed.state_dict()
    assert int(b["steps_done"]) == 10
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert any(not torch.equal(a[k], v) for k, v in half.state_dict().items())


def test_exemplars_that_the_critic_dislikes_are_drawn_less_often(decoder, linear_critic):
    module = tuning(remembering(decoder()), linear_critic(), exemplar_share=0.5, weigh_every=2, gate_flips=2)
    trainer(3).fit(module, steps_loader(3))
    weight_C4, reference = module.generator.weight_CM[:, :4], module.reference.weight_CM[:, :4]
    assert torch.equal(reference, torch.full((3, 4), 0.25))
    for weight in weight_C4:
        assert perplexity(weight.double()) == pytest.approx(2, rel=0.01)
    concept_N, drawn = module.reference.exemplars()
    cost = module._loss_of_each(concept_N, 0, drawn.for_training(), list(range(12))).view(3, 4)
    module.generator.load_state_dict(module.reference.state_dict())
    module._weigh_exemplars(0)
    assert torch.equal(module.generator.weight_CM[:, :4].argmax(1), cost.argmin(1))


def test_reference_and_critic_stay_as_they_were(small_generator, linear_critic):
    critic = linear_critic()
    before = copy.deepcopy(critic.state_dict())
    module = tuning(small_generator(), critic)
    reference = copy.deepcopy(module.reference.state_dict())
    trainer(3).fit(module, steps_loader(3))
    assert all(torch.equal(v, critic.state_dict()[k]) for k, v in before.items())
    assert all(torch.equal(v, module.reference.state_dict()[k]) for k, v in reference.items())
    assert any(not torch.equal(v, module.generator.state_dict()[k]) for k, v in reference.items())
    assert not any("label" in name for name in module.state_dict())


def test_tuning_lowers_the_loss_against_its_critic(decoder, linear_critic):
    make_optimizer = lambda p: torch.optim.Adam(p, 0.05)  # noqa: E731
    module = tuning(decoder(), linear_critic(), optimizer=make_optimizer, schedule_steps=None)
    monitor = GapMonitor(linear_critic(), every_n_steps=30, per_concept=4, size=32)
    trainer(30, monitor).fit(module, steps_loader(30))
    first, last = monitor.readings[0], monitor.readings[-1]
    assert last["step"] == 30
    assert last["critic/p"] > first["critic/p"]
    # The judge is the critic here, so that nothing can be believed by one alone.
    assert last["hack_gap"] == pytest.approx(0, abs=1e-9)


def test_only_the_named_parameters_move(decoder, linear_critic):
    module = tuning(decoder(), linear_critic(), tuned=["on_template"])
    before = copy.deepcopy(module.generator.state_dict())
    trainer(2).fit(module, steps_loader(2))
    moved = {k for k, v in module.generator.state_dict().items() if not torch.equal(v, before[k])}
    assert moved == {"on_template"}
    with pytest.raises(ValueError, match="names no parameter"):
        tuning(decoder(), linear_critic(), tuned=["nothing"])


def test_every_trained_parameter_gets_a_gradient_as_ddp_needs(small_generator, linear_critic):
    module = tuning(small_generator(), linear_critic())
    trained = [n for n, p in module.named_parameters() if p.requires_grad]
    assert trained
    assert all(n.startswith("generator.") for n in trained)
    assert not any("encoder" in n or "to_code" in n for n in trained)


def test_processes_share_the_requests(decoder, linear_critic):
    module = tuning(decoder(), linear_critic())
    alone = [module.requests(s, 0, 1) for s in range(4)]
    shared = [module.requests(s, r, 2) for s in range(2) for r in range(2)]
    assert [n for numbers, _ in alone for n in numbers] == [n for numbers, _ in shared for n in numbers]
    assert torch.equal(torch.cat([c for _, c in alone]), torch.cat([c for _, c in shared]))
    numbers = [n for numbers, _ in alone for n in numbers]
    assert numbers == list(range(16))
    concepts = torch.cat([c for _, c in (module.requests(s) for s in range(3))])
    # Two of each concept side by side; every concept equally often in a round.
    assert bool((concepts[::2] == concepts[1::2]).all())
    assert sorted(concepts.tolist()) == sorted([0, 1, 2] * 4)


def test_mixed_precision_keeps_strokes_in_float32(decoder, linear_critic):
    module = tuning(decoder(), linear_critic())
    trainer(2, precision="bf16-mixed").fit(module, steps_loader(2))
    with torch.autocast("cpu", torch.bfloat16):
        drawn = module.generator.draw(torch.tensor([0]), module.generator.noise([0], 0, "x"))
    assert drawn.points_BK42.dtype == torch.float32
    assert all(bool(p.isfinite().all()) for p in module.generator.parameters())


@pytest.mark.slow
def test_two_processes_train_as_one_with_twice_the_batch(decoder, linear_critic):
    both = tuning(decoder(), linear_critic(), sketches=4, diversity_weight=0.0)
    trainer(3, devices=2, strategy="ddp_fork", gradient_clip_val=None).fit(both, steps_loader(3))
    one = tuning(decoder(), linear_critic(), sketches=8, diversity_weight=0.0)
    trainer(3, gradient_clip_val=None).fit(one, steps_loader(3))
    for name, value in one.generator.state_dict().items():
        torch.testing.assert_close(both.generator.state_dict()[name], value, rtol=1e-3, atol=1e-4)


def test_training_stops_when_only_the_critic_is_pleased(decoder, linear_critic):
    class Pleased(torch.nn.Module):
        """Says that nothing of what it sees gets better."""

        name, concepts = "flat", linear_critic().concepts

        def forward(self, x, names):
            zeros = torch.zeros(len(x))
            return type(linear_critic()(x, names))(zeros - 1, zeros[:, None] + 1, zeros[:, None] == 0)

    module = tuning(decoder(), linear_critic(), optimizer=lambda p: torch.optim.Adam(p, 0.05), schedule_steps=None)
    monitor = GapMonitor(Pleased(), every_n_steps=5, per_concept=4, size=32, largest_gap=-1.0, patience=2)
    run = trainer(50, monitor)
    run.fit(module, steps_loader(50))
    assert run.global_step == 10
    assert monitor.stopped
    again = GapMonitor(Pleased())
    again.load_state_dict(monitor.state_dict())
    assert again.readings == monitor.readings
    assert again.stopped


def test_sketches_of_other_steps_are_shown_each_time(decoder, linear_critic):
    shown = []
    monitor = GapMonitor(
        linear_critic(1), 2, per_concept=2, size=32, show=lambda step, d, c: shown.append((step, len(d), tuple(c)))
    )
    trainer(4, monitor).fit(tuning(decoder(), linear_critic()), steps_loader(4))
    names = ("airplane", "airplane", "bench", "bench", "lion", "lion")
    assert shown == [(0, 6, names), (2, 6, names), (4, 6, names)]


def test_readings_are_those_of_the_critic(linear_critic):
    critic = linear_critic()
    pictures = [Drawing.from_polylines([[(0.2, 0.2), (0.8, 0.3 + i / 10)]]) for i in range(5)]
    concepts = ["airplane", "bench", "lion", "lion", "bench"]
    table = read_drawings(critic, pictures, concepts, size=32, batch_size=2)
    assert table["concept"].tolist() == concepts
    assert table["num_strokes"].tolist() == [1] * 5
    expected = sea(torch.tensor(table["p"].to_numpy()), torch.tensor(table["v"].to_numpy()))
    torch.testing.assert_close(torch.tensor(table["sea"].to_numpy()), expected)
    whole = read_drawings(critic, pictures, concepts, size=32)
    torch.testing.assert_close(torch.tensor(whole["p"].to_numpy()), torch.tensor(table["p"].to_numpy()))
    assert means(table)["p"] == pytest.approx(table["p"].mean())


def test_a_critic_that_knows_too_little_is_named(decoder, linear_critic):
    with pytest.raises(ValueError, match="does not know"):
        tuning(decoder(), linear_critic(concepts=("airplane", "bench")))
    with pytest.raises(ValueError, match="multiple of per_concept"):
        tuning(decoder(), linear_critic(), sketches=5)


def test_a_checkpoint_of_another_generator_is_refused(decoder, linear_critic, tmp_path):
    first = trainer(1)
    first.fit(tuning(decoder(), linear_critic()), steps_loader(1))
    first.save_checkpoint(tmp_path / "other.ckpt")
    with pytest.raises(ValueError, match="another generator"):
        trainer(2).fit(
            tuning(decoder(num_curves=7), linear_critic()),
            steps_loader(2),
            ckpt_path=tmp_path / "other.ckpt",
            weights_only=True,
        )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31))
def test_diversity_is_between_equal_and_as_different_as_before(seed):
    random = torch.Generator().manual_seed(seed)
    a, b = torch.rand(2, 4, 1, 32, 32, generator=random)
    concept = torch.tensor([0, 0, 1, 1])
    loss = DiversityLoss()
    value = float(loss(a, b, concept))
    assert 0 <= value <= 1
    assert float(loss(b, b, concept)) == 0
    same = a[:1].expand(4, -1, -1, -1)
    assert float(loss(same, b, concept)) == pytest.approx(1, abs=1e-2)
    turn = torch.tensor([1, 0, 3, 2])
    assert float(loss(a[turn], b[turn], concept)) == pytest.approx(value, abs=1e-6)
    assert float(loss(a[::2], b[::2], concept[::2])) == 0


def test_blank_and_equal_canvases_have_finite_small_gradients():
    canvas = torch.ones(4, 1, 32, 32)
    canvas[2:, :, 10:12, 4:20] = 0.0
    canvas.requires_grad_(True)
    DiversityLoss()(canvas, torch.rand(4, 1, 32, 32), torch.tensor([0, 0, 1, 1])).backward()
    assert bool(canvas.grad.isfinite().all())
    assert float(canvas.grad.norm()) < 100


def test_the_distance_of_pairs_is_that_of_unit_vectors():
    canvas = torch.rand(3, 1, 32, 32)
    found = pair_distances(canvas, torch.tensor([0, 0]), torch.tensor([1, 2]), cells=32)
    ink = (1 - canvas).flatten(1)
    cosine = torch.nn.functional.cosine_similarity(ink[:1], ink[1:])
    torch.testing.assert_close(found, (2 - 2 * cosine).sqrt(), atol=2e-3, rtol=0)
