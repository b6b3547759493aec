"""Mixed models against R's lme4: stored answers, and R itself where it is installed.

`HUMANLIKE_WRITE_LME4=1 pytest -m r tests/stats/mixed` writes the stored answers anew.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from humanlike.files import write_text
from humanlike.stats.mixed import MixedFit, fit_mixed, likelihood_ratio_test

SCRIPT = Path(__file__).parent / "lme4_fixtures.R"


@pytest.fixture(scope="module")
def case(lme4, make_table, make_design):
    """Stored answers, data, design."""
    path, stored = lme4
    table = make_table(**stored["data"])
    return path, stored, table, make_design(table, stored["fixed"], stored["random"])


def check_fit(fit: MixedFit, answer: dict) -> None:
    names = list(fit.fixed_names)
    assert set(names) == set(answer["estimate"])

    def referee(kind):
        return np.array([answer[kind][name] for name in names])

    # a coefficient near 0 is held to its standard error, any other to its own size
    scale = np.maximum(np.abs(referee("estimate")), 0.1 * referee("std_error"))
    np.testing.assert_array_less(np.abs(fit.estimate_P - referee("estimate")), 1e-4 * scale)
    np.testing.assert_allclose(fit.std_error_P, referee("std_error"), rtol=1e-4)
    np.testing.assert_allclose(fit.statistic_P, referee("statistic"), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fit.df_P, referee("df"), rtol=1e-3)
    assert fit.log_likelihood == pytest.approx(answer["log_likelihood"], abs=1e-5)
    # never worse than lme4's optimum
    assert fit.log_likelihood >= answer["log_likelihood"] - 1e-6
    assert (fit.aic, fit.bic) == pytest.approx((answer["aic"], answer["bic"]), abs=2e-3)
    assert (fit.n, fit.converged) == (answer["n"], True)
    assert fit.singular == bool(answer["singular"])
    variance = {**{name: fit.random_covariance_QQ[i, i] for i, name in enumerate(fit.random_names)}}
    for i, first in enumerate(fit.random_names):
        for j, second in enumerate(fit.random_names[:i]):
            variance[f"{second} & {first}"] = fit.random_covariance_QQ[i, j]
    variance["residual"] = fit.sigma**2
    for name, expected in answer["covariance"].items():
        assert variance[name] == pytest.approx(expected, rel=1e-3, abs=1e-5 * fit.sigma**2), name


def test_the_data_are_those_that_lme4_saw(case):
    _, stored, table, _ = case
    assert float(table["y"].sum()) == pytest.approx(stored["sum_of_y"], rel=1e-12)


@pytest.mark.parametrize("reml", [True, False])
def test_fits_equal_lme4(case, reml):
    _, stored, _, design = case
    answer = stored["lme4"]["reml" if reml else "ml"]
    fit = fit_mixed(design, reml=reml, correlated=stored["correlated"])
    check_fit(fit, answer)


def test_likelihood_ratio_equals_lme4(case):
    _, stored, _, design = case
    if not stored["smaller_formula"]:
        assert "test" not in stored["lme4"]
        return
    models = [name for name in design.fixed if name.startswith("model")]
    small, large = (
        fit_mixed(d, reml=False, correlated=stored["correlated"]) for d in (design.without(*models), design)
    )
    test, answer = likelihood_ratio_test(small, large), stored["lme4"]["test"]
    assert test.chi2 == pytest.approx(answer["chi2"], rel=1e-3)
    assert test.df == answer["df"]
    assert test.p_value == pytest.approx(answer["p_value"], rel=1e-3)


@pytest.mark.r
def test_lme4_still_says_what_is_stored(case, tmp_path):
    path, stored, table, _ = case
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed (Debian: r-base-core, r-cran-lme4, r-cran-lmertest)")
    table.to_csv(tmp_path / "data.csv", index=False, float_format="%.17g")
    formulas = [f for f in (stored["formula"], stored["smaller_formula"]) if f]
    command = ["Rscript", str(SCRIPT), str(tmp_path / "data.csv"), *formulas]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    answer, versions = parsed(done.stdout)
    if os.environ.get("HUMANLIKE_WRITE_LME4") == "1":
        shown = " ".join(["Rscript", SCRIPT.name, "data.csv", *(f'"{f}"' for f in formulas)])
        renewed = {"sum_of_y": float(table["y"].sum()), "command": shown, "versions": versions, "lme4": answer}
        write_text(path, json.dumps({**stored, **renewed}, indent=1) + "\n")
        return
    for kind in ("reml", "ml"):
        assert answer[kind]["log_likelihood"] == pytest.approx(stored["lme4"][kind]["log_likelihood"], abs=1e-4)
        assert answer[kind]["estimate"] == pytest.approx(stored["lme4"][kind]["estimate"], rel=1e-4, abs=1e-6)


def parsed(text: str) -> tuple[dict, list[str]]:
    answer: dict = {}
    versions = []
    for line in text.splitlines():
        kind, name, value = line.split("\t")
        if kind == "version":
            versions.append(name)
            continue
        into = answer
        for part in kind.split(":"):
            into = into.setdefault(part, {})
        into[name] = float(value)
    return answer, versions
