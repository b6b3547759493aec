"""Referees: mpmath with 40 digits, the published table by numerical integration, and the definition's own words."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from humanlike.metrics.functional import (
    DIAGNOSES,
    SEAParameters,
    SEATerms,
    diagnosis,
    sea,
    sea_terms,
    visual_ratio,
)

DEFAULTS = {"alpha": 2.2, "beta": 8, "lam": 1, "eta": 0.8, "k": 2.3, "tau": 0.4, "r": 1.7, "gamma": 1.7, "delta": 1e-6}
unit = st.floats(0, 1)
laws = settings(deadline=None, max_examples=30)


def referee(P, v, **changed):
    """u, g, reward, penalty, z, sea in 40 digits."""
    with mpmath.workdps(40):
        c = {name: mpmath.mpf(value) for name, value in {**DEFAULTS, **changed}.items()}
        P, v = mpmath.mpf(P), mpmath.mpf(v)
        u = mpmath.log((1 + c["delta"]) / (v + c["delta"]))
        g = mpmath.tanh(c["beta"] / 2 * mpmath.log((P + c["delta"]) / (v + c["delta"])))
        reward = P ** c["gamma"] * u * g
        penalty = c["lam"] * v ** c["eta"] * (1 - P) ** c["k"] + c["tau"] * (1 - P) ** c["r"]
        z = reward - penalty
        return [float(x) for x in (u, g, reward, penalty, z, mpmath.tanh(c["alpha"] * z))]


@pytest.mark.parametrize(
    ("P", "v", "expected"), [(0.17, 0.22, -0.832), (0.37, 0.31, -0.388), (0.64, 0.40, 0.568), (0.75, 0.45, 0.721)]
)
def test_reference_values(P, v, expected):
    assert sea(P, v).item() == pytest.approx(expected, abs=5e-4)


def test_parameters_are_the_published_ones():
    assert asdict(SEAParameters()) == DEFAULTS


@pytest.mark.parametrize("delta", [1e-6, 1e-7])
def test_every_term_is_that_of_mpmath_corners_included(delta):
    grid = [0.0, 1e-300, 1e-12, 1e-6, 1 / 12, 0.17, 0.2, 0.22, 0.45, 0.5, 0.9, 1 - 1e-9, 1 - 2**-53, 1.0]
    pairs = list(product(grid, grid))
    terms = sea_terms([p for p, _ in pairs], [v for _, v in pairs], delta=delta)
    expected = np.array([referee(p, v, delta=delta) for p, v in pairs]).T
    for name, value, want in zip(SEATerms._fields, terms, expected, strict=True):
        assert value.dtype == torch.float64
        np.testing.assert_allclose(value, want, rtol=0, atol=1e-12, err_msg=name)


@given(unit, unit, st.sampled_from(list(DEFAULTS)), st.floats(0.5, 2))
@laws
def test_every_parameter_has_its_place(P, v, name, factor):
    changed = {name: DEFAULTS[name] * factor}
    np.testing.assert_allclose(
        [x.item() for x in sea_terms(P, v, **changed)], referee(P, v, **changed), rtol=1e-12, atol=1e-12
    )


def test_faults_of_the_formula_are_kept_and_known():
    assert sea_terms(1, 0).reward.item() == pytest.approx(13.8155, abs=1e-4)
    assert sea(1, 0).item() == 1.0
    assert sea(0.2, 0).item() == pytest.approx(0.88, abs=5e-3)
    assert sea(0.1, 0).item() == pytest.approx(-0.129, abs=5e-4)
    assert sea(0.1, 0, delta=1e-7).item() == pytest.approx(-0.028, abs=5e-4)
    # Mean P and mean v must never be plugged in.
    assert sea(0.75, 0.45).item() == pytest.approx(0.72, abs=5e-3)


PUBLISHED = {  # mean P, mean v → mean SEA, reward, penalty, at 4, 8, 16, 32 s
    (0.17, 0.22): (-0.56, 0.16, 0.53),
    (0.37, 0.31): (-0.23, 0.30, 0.41),
    (0.64, 0.40): (0.29, 0.52, 0.24),
    (0.75, 0.45): (0.43, 0.57, 0.18),
}
STATED = {
    (0.17, 0.22): (-0.540, 0.187, 0.532),
    (0.37, 0.31): (-0.201, 0.330, 0.416),
    (0.64, 0.40): (0.264, 0.504, 0.226),
    (0.75, 0.45): (0.434, 0.539, 0.154),
}


def beta_means(mean_P, mean_v, gate=True, nodes=300, **parameters):
    """Means of SEA, reward and penalty for P ~ Beta(.8 P̄, .8 (1 - P̄)) and v ~ Beta with mean v̄ and s.d. .12.

    Gauss-Legendre nodes in the quantiles of both: the densities have poles at 0 and 1, the quantile functions none.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1) / 2, w / 2
    concentration = mean_v * (1 - mean_v) / 0.12**2 - 1
    P = stats.beta(0.8 * mean_P, 0.8 * (1 - mean_P)).ppf(x)[:, None]
    v = stats.beta(mean_v * concentration, (1 - mean_v) * concentration).ppf(x)[None]
    terms = sea_terms(P, v, **parameters)
    reward = terms.reward if gate else terms.reward / terms.g
    score = torch.tanh(2.2 * (reward - terms.penalty))
    return [float((w[:, None] * w * value.numpy()).sum()) for value in (score, reward, terms.penalty)]


def test_published_table():
    for (P, v), published in PUBLISHED.items():
        means = beta_means(P, v)
        np.testing.assert_allclose(means, published, atol=0.04)
        np.testing.assert_allclose(means, STATED[P, v], atol=1.5e-3)
        np.testing.assert_allclose(means, beta_means(P, v, nodes=150), atol=2e-3)  # the quadrature has converged


def test_published_table_needs_the_gate():
    away = [np.abs(np.subtract(beta_means(*at, gate=False), published)).max() for at, published in PUBLISHED.items()]
    assert max(away) > 0.06


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [
        ("gamma", (1.6, 1.96), (1.5, 2.1)),
        ("k", (1.85, 2.75), (1.6, 3.0)),
        ("r", (1.4, 1.95), (1.25, 2.1)),
        ("tau", (0.375, 0.445), (0.35, 0.47)),
        ("lam", (0.9, 1.15), (0.8, 1.25)),
        ("eta", (0.72, 0.85), (0.65, 0.92)),
    ],
)
def test_published_table_pins_the_parameters(name, inside, outside):
    def fits(value):
        return all(
            np.abs(np.subtract(beta_means(*at, nodes=100, **{name: value}), published)).max() <= 0.04
            for at, published in PUBLISHED.items()
        )

    assert all(fits(value) for value in inside)
    assert not any(fits(value) for value in outside)


@given(unit, unit)
@laws
def test_bounds(P, v):
    terms = sea_terms(P, v)
    assert -1 <= terms.sea.item() <= 1
    assert -1 <= terms.g.item() <= 1
    assert terms.u.item() >= 0
    assert 0 <= terms.penalty.item() <= 1.4
    assert all(torch.isfinite(x) for x in terms)
    assert terms.z.item() == terms.reward.item() - terms.penalty.item()


@given(unit)
@laws
def test_the_self_consistency_line(x):
    assert sea_terms(x, x).g.item() == 0
    assert sea_terms(x, 1).u.item() == 0
    assert sea_terms(1, x).penalty.item() == 0


@given(unit, unit, unit)
@laws
def test_what_is_monotone(a, b, other):
    low, high = sorted((a, b))
    by_v, by_P = sea_terms(other, [low, high]), sea_terms([low, high], other)
    assert by_v.u[0] >= by_v.u[1]
    assert by_v.g[0] >= by_v.g[1]
    assert by_v.penalty[0] <= by_v.penalty[1]
    assert by_P.g[0] <= by_P.g[1]
    assert by_P.penalty[0] >= by_P.penalty[1]
    # Where less is drawn than recognised, SEA itself is: better for less drawn, better for more recognised.
    if high <= other:
        assert by_v.sea[0] >= by_v.sea[1] - 1e-15
    if low >= other:
        assert by_P.sea[0] <= by_P.sea[1] + 1e-15


def test_what_is_not_monotone():
    # Beyond the line the gate's punishment ends with u: a drawing of everything scores above one of three quarters.
    assert sea(0.6, 1.0) > sea(0.6, 0.75) + 0.05


def test_rows_do_not_depend_on_the_batch():
    P, v = torch.rand(2, 1003, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = sea_terms(P, v)
    strided = sea_terms(torch.stack([P, P], dim=1)[:, 0], torch.stack([v, v], dim=1)[:, 1])
    for rows in (*(slice(n, n + 1 + n % 13) for n in range(0, 900, 7)), slice(500, 1003)):
        for part, all_rows, other in zip(sea_terms(P[rows], v[rows]), whole, strided, strict=True):
            assert torch.equal(part, all_rows[rows])
            assert torch.equal(part, other[rows])


def test_shapes_and_dtypes():
    assert sea(0.5, 0.2).shape == ()
    assert sea(torch.rand(3, 1), torch.rand(4)).shape == (3, 4)
    assert sea(torch.tensor([1, 0]), torch.tensor([0, 1])).dtype == torch.float64
    assert sea([], []).shape == (0,)


@given(unit, unit)
@laws
def test_diagnosis_is_that_of_the_definition(P, v):
    _, _, reward, _, z, _ = referee(P, v)
    drawing = v**0.8 * (1 - P) ** 2.3 + max(0.0, -reward)
    unrecognised = 0.4 * (1 - P) ** 1.7
    expected = "efficient" if z > 0 else "overdrawn" if drawing > unrecognised else "not_recognisable"
    if min(abs(z), abs(drawing - unrecognised)) > 1e-12 or z > 0:
        assert DIAGNOSES[diagnosis(P, v).item()] == expected


def test_diagnosis_of_the_corners():
    assert diagnosis([0, 0, 1, 1], [0, 1, 0, 1]).tolist() == [2, 1, 0, 2]
    assert diagnosis(torch.rand(2, 3), torch.rand(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("function", [sea, sea_terms, diagnosis])
@pytest.mark.parametrize(
    ("P", "v", "sentence"),
    [
        ([0.1, 1.1], [0.2, 0.2], "P must lie in.*sketch 1 has P = 1.1"),
        ([0.1, float("nan")], [0.2, 0.2], "sketch 1 has P = nan"),
        ([0.1, 0.1], [-0.01, 0.2], "v must lie in.*sketch 0 has v = -0.01"),
        ([0.1, 0.1], [0.2, float("nan")], "sketch 1 has v = nan"),
        ([0.1, 0.1], [0.2, float("inf")], "sketch 1 has v = inf"),
        ([[0.1], [2.0]], [[0.2], [0.2]], r"sketch \(1, 0\) has P = 2.0"),
        (7.0, 0.5, "it has P = 7.0"),
        ([0.1, 0.2], [0.1, 0.2, 0.3], "broadcast"),
    ],
)
def test_refusals_name_the_sketch(function, P, v, sentence):
    with pytest.raises(ValueError, match=sentence):
        function(P, v)


def test_refusals_use_the_sketches_own_names():
    with pytest.raises(ValueError, match=r"sketch 'owl_3' \(row 1\) has P = 1.5"):
        sea([0.5, 1.5], [0.5, 0.5], names=["owl_2", "owl_3"])


@pytest.mark.parametrize(
    "wrong", [{"delta": 0}, {"alpha": -1}, {"k": float("nan")}, {"lam": -0.1}, {"tau": float("inf")}]
)
def test_refusals_of_parameters(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        sea(0.5, 0.5, **wrong)


def test_visual_ratio_of_judgments():
    nan = float("nan")
    given_as = {
        "integers": torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [1, -1, 0, 0], [-1, -1, -1, -1]]),
        "floats": torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [1, nan, 0, 0], [nan] * 4]),
    }
    for judgments in given_as.values():
        ratio = visual_ratio(judgments)
        np.testing.assert_array_equal(ratio.v_B, [0.75, 0, nan, nan])
        assert ratio.present_B.tolist() == [3, 0, 1, 0]
        assert ratio.judged_B.tolist() == [4, 4, 3, 0]
        assert ratio.elements_B.tolist() == [4] * 4
        np.testing.assert_array_equal(visual_ratio(judgments, min_judged=0.75).v_B, [0.75, 0, 1 / 3, nan])
    assert visual_ratio(torch.tensor([[True, False]])).v_B.tolist() == [0.5]


def test_what_the_mask_hides_is_not_read():
    judgments = torch.tensor([[1.0, 0.3, float("nan")], [1.0, 0.0, 1.0], [7.0, 7.0, 7.0]])
    mask = torch.tensor([[1, 0, 0], [1, 1, 0], [0, 0, 0]], dtype=torch.bool)
    ratio = visual_ratio(judgments, mask)
    np.testing.assert_array_equal(ratio.v_B, [1.0, 0.5, np.nan])  # E = 0: no value
    assert ratio.elements_B.tolist() == [1, 2, 0]


def test_visual_ratio_of_counts():
    nan = float("nan")
    ratio = visual_ratio((torch.tensor([3.0, 0.0, nan, -1.0, 0.0]), torch.tensor([4, 4, 4, 4, 0])))
    np.testing.assert_array_equal(ratio.v_B, [0.75, 0, nan, nan, nan])
    assert ratio.judged_B.tolist() == [4, 4, 0, 0, 0]


@pytest.mark.parametrize(
    ("present", "kwargs", "error", "sentence"),
    [
        ((torch.tensor([1, 5]), torch.tensor([4, 4])), {}, ValueError, "V cannot exceed E: sketch 1 has 5"),
        ((torch.tensor([1, 5]), torch.tensor([4, 4])), {"names": ["a", "b"]}, ValueError, "sketch 'b'"),
        ((torch.tensor([1, 0]), torch.tensor([4, -1])), {}, ValueError, "that of sketch 1 is -1"),
        ((torch.tensor([1, -2]), torch.tensor([4, 4])), {}, ValueError, "that of sketch 1 is -2"),
        ((torch.tensor([0.5, 1]), torch.tensor([4, 4])), {}, ValueError, "V must be a whole number"),
        ((torch.tensor([1.0]), torch.tensor([float("nan")])), {}, ValueError, "E must be a whole number"),
        ((torch.tensor([1]), torch.tensor([4, 4])), {}, ValueError, "paired"),
        ((torch.tensor([1]), torch.tensor([4])), {"mask_BE": torch.ones(1, 4)}, ValueError, "leave it out"),
        (torch.tensor([[0.0, 1.0], [0.7, 1.0]]), {}, ValueError, "sketch 1, element 0 is 0.69"),
        (torch.tensor([[0, 2]]), {}, ValueError, "sketch 0, element 1 is 2"),
        (torch.tensor([0, 1]), {}, ValueError, "sketches, elements"),
        (torch.ones(2, 2), {"mask_BE": torch.ones(2, 3, dtype=torch.bool)}, ValueError, "the mask must have the shape"),
        (torch.ones(2, 2), {"mask_BE": torch.ones(2, 2)}, TypeError, "the mask must be bool"),
        (torch.ones(2, 2), {"min_judged": 0}, ValueError, "min_judged"),
        ([[1, 0]], {}, TypeError, "torch.Tensor"),
        (torch.ones(1, 2, dtype=torch.complex64), {}, TypeError, "bool, integers or floats"),
    ],
)
def test_refusals_of_judgments(present, kwargs, error, sentence):
    with pytest.raises(error, match=sentence):
        visual_ratio(present, **kwargs)
