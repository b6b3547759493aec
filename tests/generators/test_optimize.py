"""Optimisation of strokes: Adam by PyTorch alone as the referee, resume to the bit, company, NaN, learned numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from humanlike.data.render import render_gray
from humanlike.data.strokes import Strokes
from humanlike.generators.augment import Views
from humanlike.generators.initial import curves_from, scattered_points
from humanlike.generators.optimize import Optimization, optimize_sketches
from humanlike.generators.optimize_objectives import ConceptObjective, StrokeEconomy, Verdict
from humanlike.generators.optimize_parameters import Rates, StrokeParameters
from humanlike.generators.rasterizer import rasterize
from humanlike.losses import SEALoss
from humanlike.metrics.functional.sea import sea_terms

PLAIN = Views(num=0, plain=True)


@dataclass(frozen=True)
class Pixels:
    """Looks like given canvases, pixel by pixel; `poison` sketches give NaN at the calls named."""

    target_B1HW: torch.Tensor
    poison: tuple[int, ...] = ()
    calls: frozenset[int] | None = None
    seen: tuple[list[int], ...] = ()

    def __call__(self, canvas, look):
        distance_B = (look(canvas) - look(self.target_B1HW)).square().mean(dim=(0, 2, 3, 4))
        if self.poison and (self.calls is None or len(self.seen[0]) in self.calls):
            factor = torch.ones(len(canvas))
            factor[list(self.poison)] = torch.nan
            distance_B = distance_B * factor
        if self.seen:
            self.seen[0].append(1)
        return Verdict(distance_B, -distance_B, {"distance": distance_B.detach()})


def begin(num=2, strokes=3, seed=0, names="abcdef"):
    chosen = list(names[:num])
    return curves_from(scattered_points(strokes, seed, chosen), seed, chosen, radius=0.2)


def goal(num=2, size=32):
    return rasterize(Strokes(begin(num, 3, seed=99, names="uvwxyz"), 0.05, 1.0), size)


SETTINGS = Optimization(
    steps=12, size=32, width=0.05, views=Views(num=2), frames=4, rates=Rates(points=0.01, width=0.001, final=0.1)
)


def test_a_step_is_that_of_adam_on_the_mean_over_the_same_views():
    settings = replace(SETTINGS, steps=3)
    found = optimize_sketches(begin(), [Pixels(goal())], settings)
    points, width = begin().requires_grad_(), torch.full((2, 3), 0.05, requires_grad=True)
    adam = torch.optim.Adam([{"params": [points], "lr": 0.01}, {"params": [width], "lr": 0.001}], betas=(0.9, 0.95))
    for step in range(3):
        for group, rate in zip(adam.param_groups, (0.01, 0.001), strict=True):
            group["lr"] = rate * Rates(final=0.1).factor(step, 3)
        adam.zero_grad()
        canvas = rasterize(Strokes(points, width, 1.0), 32, softness=0.4 * (0.18 / 0.4) ** (step / 2))
        a, b = (settings.views(x, 0, step) for x in (canvas, goal()))
        (a - b).square().mean(dim=(0, 2, 3, 4)).sum().backward()
        adam.step()
        with torch.no_grad():
            width.clamp_(0.004, 0.05)
    assert torch.equal(found.parameters.points, points)
    assert torch.equal(found.parameters.width, width)


def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path):
    settings = replace(SETTINGS, learn_number=True, economy=0.1)
    straight = optimize_sketches(begin(), [Pixels(goal())], settings)
    file = tmp_path / "state.ckpt"
    optimize_sketches(begin(), [Pixels(goal())], settings, checkpoint=file, until=5)
    resumed = optimize_sketches(begin(), [Pixels(goal())], settings, checkpoint=file)
    for name, value in straight.parameters.named_parameters():
        assert torch.equal(value, dict(resumed.parameters.named_parameters())[name]), name
    assert torch.equal(straight.loss_TB, resumed.loss_TB)
    for name, value in straight.trajectory.tensors().items():
        assert torch.equal(value, resumed.trajectory.tensors()[name])
    again = optimize_sketches(begin(), [Pixels(goal())], settings)
    assert torch.equal(again.parameters.points, straight.parameters.points)
    other = optimize_sketches(begin(), [Pixels(goal())], replace(settings, seed=1))
    assert not torch.equal(other.parameters.points, straight.parameters.points)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    file = tmp_path / "state.ckpt"
    optimize_sketches(begin(), [Pixels(goal())], SETTINGS, checkpoint=file, until=2, identity="cat")
    with pytest.raises(ValueError, match="belongs to other settings, targets or weights"):
        optimize_sketches(begin(), [Pixels(goal())], SETTINGS, checkpoint=file, identity="dog")
    with pytest.raises(ValueError, match="belongs to other settings"):
        optimize_sketches(begin(), [Pixels(goal())], replace(SETTINGS, steps=13), checkpoint=file, identity="cat")
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"cannot be read .* delete it to start anew"):
        optimize_sketches(begin(), [Pixels(goal())], SETTINGS, checkpoint=file, identity="cat")


def test_a_sketch_alone_is_a_sketch_in_company():
    settings = replace(SETTINGS, learn_number=True, economy=0.1, rates=Rates(points=0.01, width=0.001, opacity=0.01))
    together = optimize_sketches(begin(4), [Pixels(goal(4))], settings)
    alone = optimize_sketches(begin(4)[2:3], [Pixels(goal(4)[2:3])], settings)
    assert torch.allclose(together.parameters.points[2:3], alone.parameters.points, atol=1e-5)
    assert torch.allclose(together.loss_TB[:, 2:3], alone.loss_TB, atol=1e-6)


def test_the_loss_falls_and_the_strokes_come_to_the_goal():
    settings = Optimization(steps=150, size=48, width=0.05, views=PLAIN, rates=Rates(points=0.02), softness=(2.0, 0.3))
    goal_B1HW = rasterize(Strokes(begin(2, 2, seed=5, names="uv"), 0.05, 1.0), 48)
    found = optimize_sketches(begin(2, 4), [Pixels(goal_B1HW)], settings)
    assert (found.last.loss_B < 0.35 * found.first.loss_B).all()
    assert found.loss_TB.shape == (150, 2)
    assert not found.bad_B.any()


def test_numbers_that_are_not_finite_leave_a_sketch_where_it_was():
    clean = optimize_sketches(begin(3), [Pixels(goal(3))], replace(SETTINGS, views=PLAIN))
    hurt = optimize_sketches(
        begin(3), [Pixels(goal(3), poison=(1,), seen=([],), calls=frozenset({4, 5}))], replace(SETTINGS, views=PLAIN)
    )
    assert hurt.bad_B.tolist() == [0, 2, 0]
    assert not hurt.stopped_B.any()
    assert torch.equal(hurt.parameters.points[[0, 2]], clean.parameters.points[[0, 2]])
    assert hurt.parameters.points.isfinite().all()
    assert hurt.loss_TB[:, 1].isnan().nonzero().flatten().tolist() == [4, 5]


def test_a_sketch_that_stays_nan_is_given_up_and_all_of_them_are_an_error():
    settings = replace(SETTINGS, max_bad_steps=3)
    given_up = optimize_sketches(begin(2), [Pixels(goal(2), poison=(0,))], settings)
    assert given_up.stopped_B.tolist() == [True, False]
    assert torch.equal(given_up.parameters.points[0], begin(2)[0])
    with pytest.raises(ValueError, match="every sketch was given up after 3 steps"):
        optimize_sketches(begin(2), [Pixels(goal(2), poison=(0, 1))], settings)


def test_economy_is_seas_formula_with_strokes_as_elements():
    on = torch.tensor([[9.0, 9.0, -9.0, -9.0], [9.0, 9.0, 9.0, 9.0]], dtype=torch.float64)
    log_p = torch.tensor([0.8, 0.8], dtype=torch.float64).log()
    expected = -sea_terms(torch.tensor([0.8, 0.8]), on.sigmoid().mean(1)).z
    assert torch.allclose(StrokeEconomy(2.0)(log_p, on), 2 * expected, atol=2e-3)
    assert not StrokeEconomy(2.0)(log_p, None).any()


def test_strokes_that_add_nothing_are_switched_off():
    goal_B1HW = rasterize(Strokes(begin(1, 1, seed=5, names="u"), 0.05, 1.0), 48)
    points = torch.cat([begin(1, 1, seed=5, names="u"), begin(1, 5)], dim=1)
    settings = Optimization(
        steps=80, size=48, width=0.05, views=PLAIN, learn_number=True, economy=0.002, rates=Rates(points=0.001)
    )
    found = optimize_sketches(points, [Pixels(goal_B1HW)], settings)
    assert found.parameters.drawn().mask_BK.tolist() == [[True, False, False, False, False, False]]
    assert found.last.loss_B < 1e-4 * found.first.loss_B


def test_what_is_drawn_is_what_is_written():
    parameters = StrokeParameters(begin(1, 4), 0.03, on_logit=1.0)
    with torch.no_grad():
        parameters.on_logit[0, 1] = -1.0
    (svg,) = parameters.drawn().to_svg(size=128)
    assert svg.count("<path") == 3
    canvas = rasterize(parameters.drawn(), 128)[0, 0].numpy()
    (drawing,) = Strokes.from_svg(svg).to_drawings()
    assert abs(canvas - render_gray(drawing, 128)).mean() < 0.02


class Critic:
    """P falls with the mean ink; three elements of which the third does not exist."""

    def __call__(self, x, concepts):
        assert x.shape[1] == 3
        assert len(concepts) == len(x)
        ink = 1 - x.mean(dim=(1, 2, 3))
        logits = torch.stack([ink - 0.05, ink - 0.5, ink * torch.nan], dim=1)
        mask = torch.tensor([True, True, False]).expand(len(x), 3)
        return -ink, torch.where(mask, logits, 0.0), mask

    def log_p(self, x, concepts):
        return self(x, concepts)[0]


def test_a_concept_is_judged_by_sea_in_every_view_and_averaged():
    canvas = goal(2)

    def look(x):
        return Views(num=3)(x, 0, 0)

    found = ConceptObjective(Critic(), ("cat", "dog"), SEALoss(reduction="none"), weight=2.0)(canvas, look)
    losses = [SEALoss(reduction="none")(*Critic()(view.expand(-1, 3, -1, -1), "cd")) for view in look(canvas)]
    assert torch.allclose(found.loss_B, 2 * torch.stack(losses).mean(dim=0))
    assert set(found.parts) == {"P", "v", "v_mean_probability", "sea"}
    assert ((found.parts["v"] == 0.5) | (found.parts["v"] <= 0.5)).all()
    plain = ConceptObjective(Critic(), ("cat", "dog"), None)(canvas, look)
    assert torch.allclose(plain.loss_B, -plain.log_likeness_B)
    with pytest.raises(ValueError, match="a loss a sketch"):
        ConceptObjective(Critic(), ("cat",), SEALoss())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"steps": 0}, "steps must be a whole number"),
        ({"temperature": (1.0, 0.0)}, "temperature must be two positive"),
        ({"economy": 0.5}, "set learn_number=true"),
        ({"softness": (1.0,)}, "softness must be two"),
    ],
)
def test_settings_out_of_range_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Optimization(**wrong)


@pytest.mark.parametrize("wrong", [{"points": -1.0}, {"points": 0.0, "on_logit": 0.0}, {"final": 0.0}])
def test_rates_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match="rates"):
        Rates(**wrong)


def test_nothing_to_optimise_for_or_to_move_is_said():
    with pytest.raises(ValueError, match="something to be optimised for"):
        optimize_sketches(begin(), [], SETTINGS)
    with pytest.raises(ValueError, match="no parameter has a rate above 0"):
        optimize_sketches(begin(), [Pixels(goal())], replace(SETTINGS, rates=Rates(points=0.0)))
    with pytest.raises(ValueError, match=r"width must lie in width_range"):
        StrokeParameters(begin(), 0.5)
