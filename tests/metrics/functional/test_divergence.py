from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import rankdata

from humanlike.metrics.functional import (
    divergence,
    divergence_rank,
    jensen_shannon_distance,
    jensen_shannon_divergence,
    pairwise_jensen_shannon_distance,
)

LOG2 = math.log(2)


def divergence_in_many_digits(p, q):
    """H(m) - (H(p) + H(q))/2 in 60 digits, where its cancellation does no harm."""
    with mpmath.workdps(60):
        p, q = ([mpmath.mpf(float(x)) for x in row] for row in (p, q))
        p, q = [x / mpmath.fsum(p) for x in p], [x / mpmath.fsum(q) for x in q]

        def entropy(row):
            return -mpmath.fsum(x * mpmath.log(x) for x in row if x)

        return float(entropy([(a + b) / 2 for a, b in zip(p, q, strict=True)]) - (entropy(p) + entropy(q)) / 2)


def sparse_rows(seed, rows=12, labels=30):
    rng = np.random.default_rng(seed)
    table = rng.gamma(0.5, size=(rows, labels)) * (rng.random((rows, labels)) < 0.4)
    table[:, 0] += table.sum(1) == 0
    return torch.from_numpy(table)


@pytest.mark.parametrize("base", [None, 2, 10.0])
def test_distance_agrees_with_scipy(base):
    p, q = sparse_rows(0), sparse_rows(1)
    expected = jensenshannon(p.numpy(), q.numpy(), base=base, axis=1)
    assert (expected > 1e-3).all()
    np.testing.assert_allclose(jensen_shannon_distance(p, q, base), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [1e-1, 1e-3, 1e-6, 1e-9, 1e-12])
def test_near_equal_rows_keep_their_digits(shift):
    rng = np.random.default_rng(2)
    p = rng.random((3, 20))
    q = p * (1 + shift * rng.standard_normal(p.shape))
    expected = [divergence_in_many_digits(a, b) for a, b in zip(p, q, strict=True)]
    value = jensen_shannon_divergence(torch.from_numpy(p), torch.from_numpy(q))
    # The rows' own rounding, one part in 1e16, is a relative error of 1e-16 / shift in their difference.
    np.testing.assert_allclose(value, expected, rtol=max(1e-13, 4e-16 / shift), atol=0)


def test_sparse_and_tiny_entries_agree_with_many_digits():
    p = torch.tensor([[0.0, 1, 1e-300, 0], [1, 1e-30, 0, 0], [1e200, 1e-200, 0, 1]], dtype=torch.float64)
    q = torch.tensor([[1, 1, 0, 1e-12], [1, 0, 0, 0], [1, 0, 1e-9, 0]], dtype=torch.float64)
    expected = [divergence_in_many_digits(a, b) for a, b in zip(p.tolist(), q.tolist(), strict=True)]
    np.testing.assert_allclose(jensen_shannon_divergence(p, q), expected, rtol=1e-13)


@given(st.integers(0, 10_000), st.integers(2, 2000), st.sampled_from([torch.float64, torch.float32]))
@settings(deadline=None, max_examples=30)
def test_proportional_rows_have_distance_exactly_zero(seed, labels, dtype):
    rng = np.random.default_rng(seed)
    p = torch.from_numpy(rng.gamma(0.3, size=(2, labels)) * (rng.random((2, labels)) < 0.7)).to(dtype)
    p[:, 0] += 1e-3
    for factor in (1, 3, 1 / 7, 1e5):
        assert (jensen_shannon_divergence(p, p * factor) == 0).all()
        assert (jensen_shannon_distance(p * factor, p) == 0).all()
    n = torch.from_numpy(rng.integers(0, 9, (2, labels)))
    n[:, 0] += 1
    assert (jensen_shannon_divergence(n, 3 * n) == 0).all()
    assert (pairwise_jensen_shannon_distance(n, 13 * n).diagonal() == 0).all()


@given(st.integers(0, 10_000), st.integers(2, 300))
@settings(deadline=None, max_examples=30)
def test_laws(seed, labels):
    p, q, r = (sparse_rows(seed + i, rows=5, labels=labels) for i in range(3))
    d = jensen_shannon_divergence(p, q)
    assert torch.equal(d, jensen_shannon_divergence(q, p))
    assert ((d >= 0) & (d <= LOG2)).all()
    assert (jensen_shannon_distance(p, q, base=2) <= 1).all()
    triangle = jensen_shannon_distance(p, q) + jensen_shannon_distance(q, r) - jensen_shannon_distance(p, r)
    assert (triangle > -1e-12).all()
    order = torch.randperm(labels, generator=torch.Generator().manual_seed(seed))
    assert torch.allclose(jensen_shannon_divergence(p[:, order], q[:, order]), d, rtol=1e-12)
    assert torch.equal(torch.stack([jensen_shannon_divergence(a, b) for a, b in zip(p, q, strict=True)]), d)


def test_disjoint_rows_are_exactly_one_bit_apart():
    eye = torch.eye(2)
    assert jensen_shannon_divergence(eye[0], eye[1]).item() == LOG2
    assert jensen_shannon_divergence(eye[0], eye[1], base=2).item() == 1.0
    assert jensen_shannon_distance(eye[:1], eye, base=2).tolist() == [0.0, 1.0]
    p = torch.rand(50, 40, generator=torch.Generator().manual_seed(0))
    far = jensen_shannon_divergence(torch.cat([p, 0 * p], 1), torch.cat([0 * p, p.flip(0)], 1), base=2)
    assert (far <= 1).all()
    assert torch.allclose(far, torch.ones(50, dtype=torch.float64), atol=1e-15)


def test_shapes_and_dtypes():
    assert jensen_shannon_divergence(torch.ones(3), torch.ones(3)).shape == ()
    assert jensen_shannon_divergence(torch.ones(4, 1, 3), torch.ones(5, 3)).shape == (4, 5)
    assert jensen_shannon_divergence(torch.ones(0, 3), torch.ones(0, 3)).shape == (0,)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.bool):
        value = jensen_shannon_distance(torch.tensor([[1, 0]], dtype=dtype), torch.tensor([[1, 1]], dtype=dtype))
        assert value.dtype == torch.float64
        assert value.item() == pytest.approx(jensenshannon([1, 0], [1, 1]), abs=1e-12)


def test_gradients_inside_agree_with_finite_differences():
    p, q = (sparse_rows(s, rows=3, labels=6).add(0.05).requires_grad_() for s in (3, 4))
    assert torch.autograd.gradcheck(jensen_shannon_divergence, (p, q))
    assert torch.autograd.gradcheck(lambda a, b: jensen_shannon_distance(a, b, 2), (p, q))
    assert torch.autograd.gradcheck(jensen_shannon_divergence, (p[:1], q))


def test_gradient_is_the_stated_one_carried_through_the_normalisation():
    p = torch.tensor([0.0, 0.5, 0.5, 0.0], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.25, 0.75, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    grad_p, grad_q = torch.autograd.grad(jensen_shannon_divergence(p, q), (p, q))
    m = (p + q)[:3] / 2
    for x, grad in ((p, grad_p), (q, grad_q)):
        direct = torch.cat(
            [0.5 * torch.log(x[:3].clamp(min=1e-12) / m), torch.tensor([0.5 * LOG2], dtype=torch.float64)]
        )
        torch.testing.assert_close(grad, (direct - (direct * x).sum()).detach(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", [jensen_shannon_divergence, jensen_shannon_distance])
def test_gradients_are_finite_everywhere_and_zero_at_zero(function):
    p = torch.tensor([[1.0, 0, 0, 0], [1, 2, 3, 0], [1, 0, 0, 0], [1e-30, 1, 0, 0]], requires_grad=True)
    q = torch.tensor([[0.0, 1, 0, 0], [3, 6, 9, 0], [1, 0, 0, 0], [0, 1, 1e-30, 0]], requires_grad=True)
    gradients = torch.autograd.grad(function(p, q).sum(), (p, q))
    for gradient in gradients:
        assert gradient.dtype == torch.float32
        assert gradient.isfinite().all()
        assert (gradient[1:3] == 0).all()


@pytest.mark.parametrize("labels", [3, 50])
def test_the_gradient_of_disjoint_rows_pulls_them_together(labels):
    p = torch.zeros(labels, dtype=torch.float64)
    p[0] = 1
    q = p.roll(1)
    p.requires_grad_()
    (grad,) = torch.autograd.grad(jensen_shannon_divergence(p, q), p)
    direct = 0.5 * torch.log(p.detach().clamp(min=1e-12) / (0.5 * (p.detach() + q)).clamp(min=5e-13))
    torch.testing.assert_close(grad, direct - direct[0], rtol=1e-12, atol=1e-14)
    assert grad[1] < -13


def test_descent_on_the_divergence_reaches_the_target():
    target = torch.tensor([0.0, 0.2, 0.8], dtype=torch.float64)
    logits = torch.tensor([3.0, 0, 0], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([logits], lr=0.1)
    for _ in range(200):
        optimiser.zero_grad()
        value = jensen_shannon_divergence(logits.softmax(0), target)
        value.backward()
        optimiser.step()
    assert value.item() < 0.01


@pytest.mark.parametrize("kind", ["counts", "probabilities"])
@pytest.mark.parametrize("swap", [False, True])
def test_pairwise_equals_scipy_pair_by_pair(kind, swap):
    p, q = sparse_rows(5, rows=7), torch.rand(9, 30, generator=torch.Generator().manual_seed(1)).double()
    if kind == "counts":
        p, q = (p * 10).ceil().long(), (q * 20).long()
    if swap:
        p, q = q, p
    expected = [[jensenshannon(a, b) for b in q.numpy()] for a in p.numpy()]
    np.testing.assert_allclose(pairwise_jensen_shannon_distance(p, q), expected, atol=1e-12)
    np.testing.assert_allclose(
        pairwise_jensen_shannon_distance(p, q, base=2), np.array(expected) / math.sqrt(LOG2), atol=1e-12
    )


@given(st.integers(0, 10_000), st.integers(2, 60), st.booleans())
@settings(deadline=None, max_examples=20)
def test_pairwise_distances_of_copies_are_equal_wherever_they_stand(seed, labels, counts):
    rng = np.random.default_rng(seed)
    p, q = sparse_rows(seed, rows=4, labels=labels), sparse_rows(seed + 1, rows=7, labels=labels)
    if counts:
        p, q = (p * 4).ceil(), (q * 4).ceil()
    place = torch.from_numpy(rng.permutation(np.repeat(np.arange(7), 5)))
    distance = pairwise_jensen_shannon_distance(p, q[place])
    for twin in range(7):
        copies = distance[:, place == twin]
        assert (copies == copies[:, :1]).all()


@pytest.mark.parametrize("counts", [False, True])
def test_pairwise_keeps_its_digits_on_both_sides_of_the_switch(counts):
    """The sum over shared labels gives way to the paired formula at 1e-4; both are held to 60 digits."""
    rng = np.random.default_rng(7)
    p = rng.gamma(0.5, size=40) * (rng.random(40) < 0.6)
    shift = np.geomspace(1e-9, 1, 40)[:, None]
    q = p * np.abs(1 + shift * rng.standard_normal((40, 40)))
    if counts:
        p, q = np.round(p * 1e6), np.round(q * 1e6)
    expected = np.array([divergence_in_many_digits(p, row) for row in q])
    assert (expected < 1e-4).sum() > 10
    assert (expected > 1e-4).sum() > 5
    assert ((expected > 3e-5) & (expected < 3e-4)).any()
    distance = pairwise_jensen_shannon_distance(torch.from_numpy(p[None]), torch.from_numpy(q)).numpy()[0]
    np.testing.assert_allclose(distance**2, expected, rtol=1e-11, atol=1e-18)
    np.testing.assert_allclose(distance, np.sqrt(expected), rtol=1e-6, atol=0)


@given(st.integers(0, 10_000), st.integers(2, 200), st.booleans())
@settings(deadline=None, max_examples=20)
def test_pairwise_is_symmetric_and_independent_of_its_blocks_to_the_last_bit(seed, labels, counts):
    p, q = sparse_rows(seed, rows=5, labels=labels), sparse_rows(seed + 1, rows=9, labels=labels)
    if counts:
        p, q = (p * 4).ceil(), (q * 4).ceil()
    q[3], q[4] = p[2] * 3, p[1] + 1e-4 * p[0]  # an equal and a near-equal row
    distance = pairwise_jensen_shannon_distance(p, q)
    assert distance[2, 3] == 0
    assert torch.equal(distance, pairwise_jensen_shannon_distance(q, p).T)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(divergence, "_ENTRIES", 7)
        assert torch.equal(distance, pairwise_jensen_shannon_distance(p, q))


def test_pairwise_disjoint_rows_are_exactly_one_bit_apart_and_empty_tables_have_no_rows():
    p = torch.rand(6, 40, generator=torch.Generator().manual_seed(0))
    p, q = torch.cat([p, 0 * p], 1), torch.cat([0 * p, p], 1)
    assert (pairwise_jensen_shannon_distance(p, q) == math.sqrt(LOG2)).all()
    assert (pairwise_jensen_shannon_distance(p, q, base=2) == 1).all()
    assert pairwise_jensen_shannon_distance(p[:0], q).shape == (0, 6)
    assert pairwise_jensen_shannon_distance(p, q[:0]).shape == (6, 0)


def divergence_rank_by_hand(machine, human, machine_concept, human_concept):
    """The published analysis with SciPy's distance and average ranks."""
    out = []
    for row, concept in zip(machine, machine_concept, strict=True):
        rank = rankdata([jensenshannon(row, other) for other in human])
        out.append(rank[human_concept == concept].min())
    return out


def test_divergence_rank_agrees_with_scipy():
    rng = np.random.default_rng(6)
    human_concept, machine_concept = np.repeat(np.arange(6), 4), np.repeat(np.arange(6), 2)
    profile = rng.dirichlet(np.full(25, 0.3), size=6)
    human = np.stack([rng.multinomial(40, profile[c]) for c in human_concept])
    machine = np.stack([rng.multinomial(8, profile[c]) for c in machine_concept])
    human[5] = human[9]  # a tie across concepts
    expected = divergence_rank_by_hand(machine, human, machine_concept, human_concept)
    value = divergence_rank(*map(torch.from_numpy, (machine, human, machine_concept, human_concept)))
    assert value.dtype == torch.float64
    np.testing.assert_array_equal(value, expected)


def test_divergence_rank_shares_ties_and_skips_empty_cells():
    human = torch.tensor([[2, 0, 0], [4, 0, 0], [0, 5, 0], [0, 0, 0], [0, 0, 7]])
    human_concept = torch.tensor([0, 1, 2, 3, 1])
    machine = torch.tensor([[1, 0, 0], [0, 3, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]])
    rank = divergence_rank(machine, human, torch.tensor([0, 2, 0, 3, 0]), human_concept)
    # First: cells 0 and 1 tie for ranks 1 and 2. Third: empty. Fourth: its concept's only cell is empty. Fifth: cell 4
    # is nearest, and the three disjoint ones share ranks 2, 3, 4.
    np.testing.assert_array_equal(rank, [1.5, 1.0, np.nan, np.nan, 3.0])


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: jensen_shannon_divergence(torch.zeros(1, 2), torch.ones(1, 2)), ValueError, "p_BL .* row 0 sums to 0"),
        (lambda: jensen_shannon_divergence(torch.ones(1, 2), torch.zeros(1, 2)), ValueError, "q_BL .* row 0 sums to 0"),
        (lambda: jensen_shannon_divergence(torch.ones(2), torch.tensor([1, -1.0])), ValueError, "label 1 is -1"),
        (lambda: jensen_shannon_divergence(torch.ones(2), torch.tensor([1, torch.nan])), ValueError, "is nan"),
        (lambda: jensen_shannon_divergence(torch.ones(2), torch.ones(3)), ValueError, "2 labels and q_BL 3"),
        (lambda: jensen_shannon_divergence(torch.ones(2, 3), torch.ones(4, 3)), ValueError, "paired row by row"),
        (lambda: jensen_shannon_divergence(torch.ones(2), torch.ones(2), base=1), ValueError, "base must be"),
        (lambda: jensen_shannon_divergence(torch.tensor(1), torch.ones(2)), ValueError, "dimension of labels"),
        (lambda: jensen_shannon_distance([1, 2], torch.ones(2)), TypeError, r"torch\.Tensor, got list"),
        (lambda: pairwise_jensen_shannon_distance(torch.ones(1, 2), torch.ones(1, 3)), ValueError, "same label order"),
        (
            lambda: divergence_rank(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([3]), torch.tensor([0])),
            ValueError,
            "machine cell 0 has concept 3",
        ),
        (
            lambda: divergence_rank(torch.ones(1, 2), torch.ones(2, 2), torch.tensor([0]), torch.tensor([0])),
            ValueError,
            "1 rows for 2 rows of human_HL",
        ),
    ],
)
def test_refusals_name_the_place(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_ties_of_rows_that_differ_by_a_permutation_share_their_rank():
    """Distances that are equal on paper differ by the order of their sums; scipy's, rounded, are the referee."""
    rng = np.random.default_rng(1)
    labels = 7
    for _ in range(30):
        human, machine = rng.integers(0, 3, (20, labels)), rng.integers(0, 3, (6, labels))
        human[:, 0] += human.sum(1) == 0
        machine[:, 0] += machine.sum(1) == 0
        concept_m, concept_h = rng.integers(0, 4, 6), np.arange(20) % 4
        value = divergence_rank(*map(torch.from_numpy, (machine, human, concept_m, concept_h)))
        for row, concept, got in zip(machine, concept_m, value.tolist(), strict=True):
            distance = np.round([jensenshannon(row, other) for other in human], 7)
            assert got == rankdata(distance)[concept_h == concept].min()
