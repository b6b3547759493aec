from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.stats

from humanlike.stats.count_entropy import group_sums, grouped_entropy


def entropy_of(counts: list[float], estimator: str) -> float:
    n = np.array(counts, dtype=float)[:, None]
    return float(grouped_entropy(n, group_sums(np.array([0]), len(counts)), estimator)[0, 0])


@pytest.mark.parametrize("counts", [[1, 1, 1], [5, 2, 1, 1], [16], [200, 1], [3, 3, 3, 3], [0, 4, 0, 1]])
def test_estimators_agree_with_scipy_and_mpmath(counts):
    assert entropy_of(counts, "plugin") == pytest.approx(scipy.stats.entropy(counts), abs=1e-12)
    n, kinds = sum(counts), sum(c > 0 for c in counts)
    assert entropy_of(counts, "miller_madow") == pytest.approx(
        scipy.stats.entropy(counts) + (kinds - 1) / (2 * n), abs=1e-12
    )
    with mpmath.workdps(40):
        single = sum(c == 1 for c in counts)
        coverage = 1 - mpmath.mpf(single - 1 if single == n else single) / n
        terms = [coverage * c / n for c in counts if c]
        expected = sum(-p * mpmath.log(p) / (1 - (1 - p) ** n) for p in terms if p != 1)
    assert entropy_of(counts, "chao_shen") == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("estimator", ["plugin", "miller_madow", "chao_shen"])
def test_one_answer_gives_zero_and_none_gives_nan(estimator):
    assert entropy_of([1], estimator) == 0
    assert np.isnan(entropy_of([0, 0], estimator))


@pytest.mark.parametrize("estimator", ["plugin", "miller_madow", "chao_shen"])
def test_answers_that_all_agree_have_entropy_exactly_zero(estimator):
    n = np.arange(1.0, 400.0)[None, :]
    assert (grouped_entropy(n, group_sums(np.array([0]), 1), estimator) == 0).all()


def test_bias_at_sixteen_answers_is_the_documented_one():
    """True H = 3.52 over a long-tailed distribution: the plug-in is far too low, Chao-Shen least."""
    rng = np.random.default_rng(0)
    p = 1 / np.arange(1, 201) ** 1.05
    p /= p.sum()
    truth = scipy.stats.entropy(p)
    n = rng.multinomial(16, p, size=400).T.astype(float)
    sums = group_sums(np.array([0]), len(p))
    bias = {e: grouped_entropy(n, sums, e).mean() - truth for e in ("plugin", "miller_madow", "chao_shen")}
    assert bias["plugin"] < bias["miller_madow"] < bias["chao_shen"] < 0.2
    assert bias["plugin"] < -0.8


def test_corrected_estimators_refuse_probabilities():
    with pytest.raises(ValueError, match=r"miller_madow.*whole counts"):
        entropy_of([0.5, 0.5], "miller_madow")
