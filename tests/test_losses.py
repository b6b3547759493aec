from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from humanlike.losses import SEALoss, floored_ratio
from humanlike.metrics.functional import sea, sea_terms

CORNERS_LOG_P = [-math.inf, -1e4, -745.0, -104.0, -88.0, -20.0, math.log(0.5), -1e-3, -1e-8, 0.0, 1e-7]
CORNERS_LOGIT = [-math.inf, -1e4, -104.0, -20.0, -2.0, 0.0, 20.0, 1e4, math.inf]


def logits_of(v):
    return torch.special.logit(v)


def pairs(first, second, dtype=torch.float64):
    return (torch.tensor(x, dtype=dtype) for x in zip(*product(first, second), strict=True))


def referee(P, v, elements, weight=1.0, **changed):
    """The loss in 40 digits, from the definition."""
    c = {"beta": 8, "lam": 1, "eta": 0.8, "k": 2.3, "tau": 0.4, "r": 1.7, "gamma": 1.7, "delta": 1e-6, **changed}
    c = {name: mpmath.mpf(value) for name, value in c.items()}
    P, v, v0 = mpmath.mpf(P), mpmath.mpf(v), mpmath.mpf(1) / (2 * elements)
    v = v0 * (1 + (v / v0) ** 8) ** (mpmath.mpf(1) / 8)
    u = mpmath.log((1 + c["delta"]) / (v + c["delta"]))
    g = mpmath.tanh(c["beta"] / 2 * mpmath.log((P + c["delta"]) / (v + c["delta"])))
    z = P ** c["gamma"] * u * g - c["lam"] * v ** c["eta"] * (1 - P) ** c["k"] - c["tau"] * (1 - P) ** c["r"]
    return weight * max(mpmath.mpf(0), mpmath.log(mpmath.mpf(1) / 2) - mpmath.log(P)) - z


@pytest.mark.parametrize("delta", [1e-6, 1e-7])
def test_values_are_those_of_mpmath(delta):
    P, v = pairs([1e-30, 1e-6, 0.01, 0.2, 0.499, 0.51, 0.9, 1 - 1e-9, 1.0], [0.0, 1e-9, 0.1, 0.125, 0.3, 0.75, 1.0])
    loss = SEALoss(reduction="none", delta=delta)(P.log(), logits_of(v)[:, None].expand(-1, 4))
    with mpmath.workdps(40):
        expected = [float(referee(p, x, 4, delta=delta)) for p, x in zip(P.tolist(), v.tolist(), strict=True)]
    np.testing.assert_allclose(loss, expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_mpmath():
    P, v = pairs([1e-6, 0.02, 0.3, 0.7, 0.99], [0.02, 0.11, 0.4, 0.9])
    log_p, logits = P.log().requires_grad_(), logits_of(v)[:, None].requires_grad_()
    SEALoss(reduction="sum")(log_p, logits).backward()
    with mpmath.workdps(40):
        for row, (p, x) in enumerate(zip(P.tolist(), v.tolist(), strict=True)):
            by_P = mpmath.diff(lambda y, x=x: referee(y, x, 1), p) * p
            by_v = mpmath.diff(lambda y, p=p: referee(p, y, 1), x) * x * (1 - x)
            assert log_p.grad[row].item() == pytest.approx(float(by_P), rel=1e-9, abs=1e-12)
            assert logits.grad[row, 0].item() == pytest.approx(float(by_v), rel=1e-9, abs=1e-12)


def test_equals_the_metrics_z_for_one_element_or_more():
    P = torch.linspace(0, 1, 401, dtype=torch.float64)
    farthest = {}
    for elements in (*range(1, 13), 20, 40):
        drawn = torch.arange(1, elements + 1, dtype=torch.float64)
        v = drawn / elements
        z = sea_terms(P[:, None], v).z
        floored = sea_terms(P[:, None], floored_ratio(v, torch.tensor(elements)).clamp(max=1)).z
        away = (z - floored).abs().max().item()
        hard = torch.where(torch.arange(elements) < drawn[:, None], math.inf, -math.inf).double()
        log_p, logits = P[1:].log().repeat_interleave(elements), hard.repeat(400, 1)
        loss = SEALoss(recognition_weight=0.0, reduction="none")(log_p, logits).reshape(400, elements)
        farthest[elements] = max(away, (z[1:] + loss).abs().max().item())
    # One of two elements drawn, P = .556, is the one place above 5·10⁻⁴.
    assert 5e-4 < farthest.pop(2) < 5.3e-4
    assert max(farthest.values()) < 5e-4


def test_rank_agreement_with_sea():
    P, v = (x.flatten() for x in torch.meshgrid(torch.linspace(0.001, 1, 200), torch.arange(1, 9) / 8, indexing="ij"))
    P, v = P.double(), v.double()
    score = sea(P, v).numpy()
    logits = logits_of(v)[:, None].expand(-1, 8)
    for objective in ("z", "sea"):
        pure = SEALoss(objective, recognition_weight=0.0, reduction="none")(P.log(), logits)
        assert spearmanr(-pure, score).statistic > 0.99999
    # The recognition term says more about drawings that are not recognised than SEA does.
    whole = SEALoss(reduction="none")(P.log(), logits)
    assert spearmanr(-whole, score).statistic > 0.95
    recognised = (P >= 0.5).numpy()
    assert spearmanr(-whole[recognised], score[recognised]).statistic > 0.99999


def test_a_blank_drawing_is_no_jackpot():
    loss = SEALoss(recognition_weight=0.0, reduction="none")
    log_p = torch.tensor([0.2, 0.2], dtype=torch.float64).log()
    blank, one = loss(log_p, torch.tensor([[-math.inf] * 5, [math.inf] + [-math.inf] * 4], dtype=torch.float64))
    assert blank.item() == pytest.approx(float(referee(0.2, 0, 5, weight=0)), abs=1e-12)
    # SEA pays Z = .62 for it; with half an element it is in the red, like every unrecognised drawing.
    assert blank.item() > 0
    assert one.item() > 0


def finite_gradients(log_p, logits, loss):
    log_p, logits = log_p.clone().requires_grad_(), logits.clone().requires_grad_()
    value = loss(log_p, logits)
    assert value.isfinite().all()
    value.sum().backward()
    assert log_p.grad.isfinite().all()
    assert logits.grad.isfinite().all()
    return log_p.grad, logits.grad


@pytest.mark.parametrize("objective", ["z", "sea"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_gradients_are_finite_in_the_corners(dtype, objective):
    log_p, logit = pairs(CORNERS_LOG_P, CORNERS_LOGIT, dtype)
    for elements in (1, 12):
        logits = logit[:, None].expand(-1, elements)
        finite_gradients(log_p, logits, SEALoss(objective, reduction="none"))
        mixed = torch.where(torch.arange(elements) % 2 == 0, logits, -logits)
        finite_gradients(log_p, mixed, SEALoss(objective, reduction="none"))


@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
def test_under_autocast_all_is_float32(autocast):
    log_p, logit = pairs(CORNERS_LOG_P, CORNERS_LOGIT, torch.float32)
    logits = logit[:, None].repeat(1, 3)
    loss = SEALoss(reduction="none")
    plain, wide = loss(log_p, logits), loss(log_p.double(), logits.double())
    with torch.autocast("cpu", dtype=autocast):
        value = loss(log_p, logits)
        halves = loss(log_p.to(autocast), logits.to(autocast))
        finite_gradients(log_p, logits, loss)
        finite_gradients(log_p.to(autocast), logits.to(autocast), loss)
    assert torch.equal(value, plain)
    assert halves.dtype == value.dtype == torch.float32
    # log 0 has the floor of its type; all else agrees with float64.
    kept = ~log_p.isinf()
    torch.testing.assert_close(value[kept].double(), wide[kept], rtol=1e-6, atol=1e-5)


def test_float32_is_within_1e_5_of_float64():
    g = torch.Generator().manual_seed(0)
    log_p = torch.log_softmax(4 * torch.randn(5000, 10, generator=g), 1)[:, 0]
    logits = 6 * torch.randn(5000, 8, generator=g)
    loss = SEALoss(reduction="none", recognition_weight=0.0)
    assert (loss(log_p, logits).double() - loss(log_p.double(), logits.double())).abs().max() < 1e-5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("elements", [1, 8, 100_000])
def test_gradients_by_p_and_v_are_finite_on_the_closed_square(dtype, elements):
    grid = [0.0, 1e-30, 1e-9, 1e-6, 0.5 / elements, 1 / elements, 0.3, 0.5, 1 - 1e-7, 1.0]
    P, v = (x.requires_grad_() for x in pairs(grid, grid, dtype))
    terms = sea_terms(P, floored_ratio(v, torch.tensor(float(elements), dtype=dtype)).clamp(max=1))
    (terms.z.sum() + terms.sea.sum()).backward()
    assert P.grad.isfinite().all()
    assert v.grad.isfinite().all()


@pytest.mark.parametrize("objective", ["z", "sea"])
def test_gradcheck_inside(objective):
    g = torch.Generator().manual_seed(1)
    log_p = -(3 * torch.rand(6, generator=g, dtype=torch.float64) + 0.05)
    logits = torch.randn(6, 4, generator=g, dtype=torch.float64)
    mask = torch.ones(6, 4, dtype=torch.bool)
    mask[::2, 3] = False
    loss = SEALoss(objective, reduction="none")
    inputs = (log_p.requires_grad_(), logits.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, mask), inputs)
    assert torch.autograd.gradgradcheck(lambda a, b: loss(a, b, mask), inputs)


def test_the_pull_towards_recognition_does_not_die():
    loss = SEALoss(reduction="sum")
    log_p = torch.tensor([-math.inf, -1e3, -50.0, -5.0])
    by_log_p, _ = finite_gradients(log_p, torch.zeros(4, 3), loss)
    assert (by_log_p < -0.9).all()
    pure, _ = finite_gradients(log_p, torch.zeros(4, 3), SEALoss(recognition_weight=0.0, reduction="sum"))
    assert pure.abs().max() < 0.05


def test_no_gradient_is_lost_to_saturation_where_tanh_is_flat():
    # Large Z: P near 1, one of 200 elements drawn.
    P = torch.tensor([0.999], dtype=torch.float64)
    logits = torch.tensor([[8.0] + [-8.0] * 199], dtype=torch.float64)
    assert sea_terms(P, torch.sigmoid(logits).mean(dim=1)).z > 4
    grads = {
        objective: finite_gradients(P.log(), logits, SEALoss(objective, reduction="sum"))[1].abs().sum().item()
        for objective in ("z", "sea")
    }
    assert grads["z"] > 1e3 * grads["sea"] > 0


def test_masked_columns_take_no_part_whatever_they_hold():
    g = torch.Generator().manual_seed(2)
    log_p, logits = torch.log(torch.rand(5, generator=g)), torch.randn(5, 3, generator=g)
    wide = torch.cat([logits, torch.tensor([[math.nan, math.inf, -math.inf]]).expand(5, -1)], dim=1)
    mask = torch.arange(6).expand(5, 6) < 3
    loss = SEALoss(reduction="none")
    assert torch.equal(loss(log_p, logits), loss(log_p, wide, mask))
    wide = wide.requires_grad_()
    loss(log_p, wide, mask).sum().backward()
    assert (wide.grad[:, 3:] == 0).all()
    assert wide.grad.isfinite().all()


def test_reductions_weights_and_rows():
    g = torch.Generator().manual_seed(3)
    log_p, logits = torch.log(torch.rand(50, generator=g)), torch.randn(50, 6, generator=g)
    rows = SEALoss(reduction="none")(log_p, logits)
    assert torch.equal(SEALoss()(log_p, logits), rows.mean())
    assert torch.equal(SEALoss(reduction="sum")(log_p, logits), rows.sum())
    loss = SEALoss(reduction="none", recognition_weight=0.0)
    pure = loss(log_p, logits)
    loss.recognition_weight = 2.5  # annealed between steps
    shortfall = torch.relu(math.log(0.5) - log_p)
    torch.testing.assert_close(loss(log_p, logits), pure + 2.5 * shortfall)
    for batch in (1, 3):
        parts = [SEALoss(reduction="none")(p, x) for p, x in zip(log_p.split(batch), logits.split(batch), strict=True)]
        torch.testing.assert_close(torch.cat(parts), rows, rtol=1e-6, atol=1e-6)
    assert list(SEALoss().parameters()) == []
    assert "recognition_weight=1, reduction='mean', alpha=2.2" in repr(SEALoss())


def test_the_raw_formula_stays_available():
    log_p, logits = torch.tensor([0.2], dtype=torch.float64).log(), torch.full((1, 4), -math.inf, dtype=torch.float64)
    raw = SEALoss("sea", floor="none", recognition_weight=0.0)(log_p, logits)
    assert raw.item() == pytest.approx(-sea(0.2, 0).item(), abs=1e-12)


def drawn_by_training(loss, steps=500, runs=32, seed=0):
    """(share of blank drawings, mean SEA) of made-up sketches that start at P ≈ .014 and are optimised.

    A sketch is eight presence logits; its class is recognised by its elements, some of which tell more than others,
    among 1,000 classes. What is reported is of hard decisions.
    """
    diagnostic = torch.tensor([1.0, 0.8, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1])
    generator = torch.Generator().manual_seed(seed)
    logits = (-2 + 0.5 * torch.randn(runs, 8, generator=generator)).requires_grad_()

    def log_p(presence):
        evidence = 6 * presence @ diagnostic
        return evidence - torch.logaddexp(evidence, torch.tensor(math.log(999.0)))

    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(log_p(torch.sigmoid(logits)), logits).backward()
        optimizer.step()
    hard = (logits.detach() > 0).float()
    drawn = hard.sum(dim=1)
    return (drawn == 0).double().mean().item(), sea(log_p(hard).exp(), drawn / 8).mean().item()


@pytest.mark.slow
def test_training_on_the_raw_formula_ends_blank_and_on_the_loss_does_not():
    raw = drawn_by_training(SEALoss("sea", floor="none", recognition_weight=0.0, reduction="sum"))
    assert raw[0] >= 0.9
    assert raw[1] < -0.4
    for objective in ("z", "sea"):
        blank, score = drawn_by_training(SEALoss(objective, reduction="sum"))
        assert blank == 0
        assert score > 0.8


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ((torch.tensor([0.5]), torch.zeros(1, 2)), ValueError, "sketch 0 has 0.5: give log_softmax"),
        ((torch.tensor([-1.0, -1.0]), torch.zeros(1, 2)), ValueError, r"must be \(B,\) and"),
        ((torch.tensor([-1.0]), torch.zeros(1)), ValueError, r"must be \(B,\) and"),
        ((torch.tensor([[-1.0]]), torch.zeros(1, 2)), ValueError, r"must be \(B,\) and"),
        ((torch.tensor([-1]), torch.zeros(1, 2)), TypeError, "floating-point"),
        (([-1.0], torch.zeros(1, 2)), TypeError, "torch.Tensor"),
        ((torch.tensor([-1.0]), torch.zeros(1, 2), torch.ones(1, 2)), TypeError, "mask_BE must be bool"),
        ((torch.tensor([-1.0]), torch.zeros(1, 2), torch.ones(1, 3, dtype=torch.bool)), ValueError, "must have shape"),
        (
            (torch.tensor([-1.0]), torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool)),
            ValueError,
            "sketch 0 has none",
        ),
        ((torch.tensor([-1.0]), torch.zeros(1, 0)), ValueError, "sketch 0 has none"),
    ],
)
def test_refusals(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        SEALoss()(*arguments)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"objective": "Z"}, ValueError, "objective must be one of"),
        ({"floor": "half"}, ValueError, "floor must be one of"),
        ({"reduction": "avg"}, ValueError, "reduction must be one of"),
        ({"recognition_weight": -1}, ValueError, "recognition_weight"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"k": 0.9}, ValueError, "k must be ≥ 1"),
        ({"detla": 1e-7}, TypeError, "detla"),
    ],
)
def test_refusals_of_settings(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        SEALoss(**settings)
