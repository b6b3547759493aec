"""LogisticReadout against scikit-learn's LogisticRegression in float64 at tight tolerance."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from humanlike.interfaces import Readout
from humanlike.readouts import ConvergenceWarning, LogisticReadout, lbfgs, logistic


def referee(f_ND, label_N, C=1.0, standardize=True):
    """scikit-learn's optimum on the training rows: objective, and a function giving (rows, K) probabilities."""
    f_ND = f_ND.astype(np.float64)
    mean_D, scale_D = f_ND.mean(0), f_ND.std(0)
    scale_D = np.where(scale_D == 0, 1.0, scale_D) if standardize else np.ones_like(scale_D)
    model = LogisticRegression(C=C, tol=1e-10, max_iter=20000).fit((f_ND - mean_D) / scale_D, label_N)

    def predict(g_ND):
        return model.predict_proba((g_ND.astype(np.float64) - mean_D) / scale_D)

    own_N = predict(f_ND)[np.arange(len(f_ND)), np.searchsorted(model.classes_, label_N)]
    return -C * np.log(own_N).sum() + 0.5 * (model.coef_**2).sum(), predict


def check_out_of_fold(readout, sample, p_NL):
    """Every fold at the referee's optimum; returns the share of equal predictions."""
    present = np.unique(sample.label_N)
    agree = []
    for fold in np.unique(readout.folds_):
        train = readout.folds_ != fold
        objective, predict = referee(sample.f_ND[train], sample.label_N[train], readout.C, readout.standardize)
        assert readout.objective_[fold] == pytest.approx(objective, rel=1e-6)
        # the certificate covers the distance to the referee
        assert readout.objective_[fold] / objective - 1 <= readout.gap_[fold] + 1e-8
        theirs_BK = predict(sample.f_ND[~train])
        np.testing.assert_allclose(p_NL[~train][:, present], theirs_BK, atol=2e-3)
        agree.append(p_NL[~train].argmax(1) == present[theirs_BK.argmax(1)])
    return np.concatenate(agree).mean()


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("standardize", [True, False])
def test_out_of_fold_equals_scikit_learn(sample, C, standardize):
    readout = LogisticReadout(C=C, standardize=standardize)
    p_NL = readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert check_out_of_fold(readout, sample, p_NL) >= 0.999
    assert readout.converged_.all()
    assert readout.gap_.max() <= 1e-7


def test_two_classes_single_feature(make_sample):
    sample = make_sample(n=200, d=1, labels=(0, 1), num_labels=2)
    readout = LogisticReadout(n_splits=4)
    p_NL = readout.out_of_fold_proba(sample.f_ND, sample.label_N, 2, sample.group_N)
    # scikit-learn fits two classes with one weight vector; the penalty is scaled to give the same solution
    assert check_out_of_fold(readout, sample, p_NL) == 1.0


def test_more_features_than_rows(make_sample):
    sample = make_sample(n=90, d=200, labels=(0, 1, 2), num_labels=3)
    readout = LogisticReadout(n_splits=3)
    p_NL = readout.out_of_fold_proba(sample.f_ND, sample.label_N, 3, sample.group_N)
    assert check_out_of_fold(readout, sample, p_NL) >= 0.999
    assert readout.gap_.max() <= 1e-7


def test_separable_data_and_weak_penalty(make_sample):
    sample = make_sample(n=150, d=6, labels=(0, 1, 2), num_labels=3, signal=30.0)
    readout = LogisticReadout(C=1e4, n_splits=3)
    p_NL = readout.out_of_fold_proba(sample.f_ND, sample.label_N, 3, sample.group_N)
    assert readout.converged_.all()
    assert (p_NL.argmax(1) == sample.label_N).all()
    assert check_out_of_fold(readout, sample, p_NL) == 1.0


def test_constant_features_and_those_constant_in_a_training_set_only(sample):
    odd_N = np.zeros(len(sample.f_ND))
    odd_N[sample.group_N == sample.group_N[0]] = 5.0  # varies in the fold that holds group 0 out, and nowhere else
    f_ND = np.column_stack([sample.f_ND, np.full(len(odd_N), 3.7), np.zeros(len(odd_N)), odd_N]).astype(np.float32)
    readout = LogisticReadout()
    p_NL = readout.out_of_fold_proba(f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert check_out_of_fold(readout, sample._replace(f_ND=f_ND), p_NL) >= 0.999
    assert readout.certificate()["num_constant_features"] == 2


def test_only_constant_features_give_the_class_shares():
    label_N = np.repeat([0, 1], [30, 10])
    readout = LogisticReadout(n_splits=2)
    p_NL = readout.out_of_fold_proba(np.ones((40, 3)), label_N, 2)
    np.testing.assert_allclose(p_NL, np.broadcast_to([0.75, 0.25], (40, 2)), atol=1e-6)


def test_features_far_from_zero_keep_their_precision(sample):
    readout = LogisticReadout(n_splits=3)
    near = readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    far_ND = sample.f_ND.astype(np.float64) * 1e-3 + 1e4
    far = readout.out_of_fold_proba(far_ND, sample.label_N, sample.num_labels, sample.group_N)
    np.testing.assert_allclose(far, near, atol=1e-3)


def test_absent_labels_are_exactly_zero_and_rows_sum_to_one(sample):
    readout = LogisticReadout()
    p_NL = readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert p_NL.shape == (600, 14)
    absent = np.setdiff1d(np.arange(14), sample.label_N)
    assert (p_NL[:, absent] == 0).all()
    np.testing.assert_allclose(p_NL.sum(1), 1, atol=1e-6)
    assert isinstance(readout, Readout)


def test_held_out_rows_have_no_influence(sample):
    """What happens to the held-out rows changes nothing in the fit of their fold."""
    readout = LogisticReadout(tol=1e-9)
    readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    moved_ND = sample.f_ND.copy()
    moved_ND[readout.folds_ == 1] += 100.0
    moved = LogisticReadout(tol=1e-9)
    moved.out_of_fold_proba(moved_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert moved.objective_[1] == pytest.approx(readout.objective_[1], rel=1e-5)
    assert abs(moved.objective_[0] / readout.objective_[0] - 1) > 1e-4


def test_order_of_rows_and_repetition_do_not_matter(sample):
    p_NL = LogisticReadout().out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    again = LogisticReadout().out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert np.array_equal(p_NL, again)
    order = np.random.default_rng(0).permutation(len(p_NL))
    moved = LogisticReadout().out_of_fold_proba(
        sample.f_ND[order], sample.label_N[order], sample.num_labels, sample.group_N[order]
    )
    np.testing.assert_allclose(moved, p_NL[order], atol=1e-3)


def test_stratified_ignores_groups(sample):
    readout = LogisticReadout(cv="stratified", n_splits=3)
    readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    split = [len(np.unique(readout.folds_[sample.group_N == g])) for g in range(200)]
    assert max(split) > 1
    grouped = LogisticReadout(n_splits=3)
    grouped.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert all(len(np.unique(grouped.folds_[sample.group_N == g])) == 1 for g in range(200))


def test_fit_and_predict_equal_scikit_learn(sample):
    readout = LogisticReadout().fit(sample.f_ND, sample.label_N, sample.num_labels)
    objective, predict = referee(sample.f_ND, sample.label_N)
    assert readout.objective_ == pytest.approx(objective, rel=1e-6)
    p_NL = readout.predict_proba(sample.f_ND)
    np.testing.assert_allclose(p_NL[:, readout.classes_], predict(sample.f_ND), atol=2e-3)
    logit_NK = sample.f_ND @ readout.coef_.T + readout.intercept_
    assert (readout.classes_[logit_NK.argmax(1)] == p_NL.argmax(1)).all()
    assert readout.converged_ is True
    assert readout.gap_ <= 1e-7


def test_certificate_is_plain_and_complete(sample):
    readout = LogisticReadout()
    readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    record = json.loads(json.dumps(readout.certificate()))
    assert record["converged"] is True
    assert record["max_gap"] == pytest.approx(readout.gap_.max())
    assert len(record["gap"]) == record["n_splits"] == 5
    assert record["n_splits_reduced_from"] is None


def test_not_converged_is_said(sample):
    readout = LogisticReadout(max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 5 of 5 fits: .*raise max_iter"):
        readout.out_of_fold_proba(sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    assert not readout.converged_.any()
    assert readout.certificate()["converged"] is False
    assert readout.gap_.min() > 1e-6


def test_small_class_raises_or_reduces(sample):
    keep = (sample.label_N != 11) | (sample.group_N < 30)
    few = len(np.unique(sample.group_N[keep & (sample.label_N == 11)]))
    assert few == 6
    arguments = (sample.f_ND[keep], sample.label_N[keep], sample.num_labels, sample.group_N[keep])
    with pytest.raises(ValueError, match=r"class 11 has 6 groups for 8 folds .* n_splits=6 or small_class=reduce, add"):
        LogisticReadout(n_splits=8).out_of_fold_proba(*arguments)
    readout = LogisticReadout(n_splits=8, small_class="reduce")
    readout.out_of_fold_proba(*arguments)
    assert readout.certificate()["n_splits"] == 6
    assert readout.certificate()["n_splits_reduced_from"] == 8


def test_a_class_with_one_group_is_named_whatever_the_policy(sample):
    keep = (sample.label_N != 11) | (sample.group_N < 5)
    with pytest.raises(ValueError, match="class 11 has 1 groups for 5 folds"):
        LogisticReadout(small_class="reduce").out_of_fold_proba(
            sample.f_ND[keep], sample.label_N[keep], sample.num_labels, sample.group_N[keep]
        )


def test_errors_name_the_row(sample):
    readout = LogisticReadout()
    bad_ND = sample.f_ND.copy()
    bad_ND[17, 3] = np.nan
    with pytest.raises(ValueError, match="nan in row 17, feature 3"):
        readout.out_of_fold_proba(bad_ND, sample.label_N, 14)
    with pytest.raises(ValueError, match="label_N is 11 in row 12; labels run from 0 to 10"):
        readout.fit(sample.f_ND, sample.label_N, 11)
    with pytest.raises(ValueError, match="one class only"):
        readout.fit(sample.f_ND[:3], sample.label_N[:3], 14)
    with pytest.raises(ValueError, match="one label a feature row"):
        readout.fit(sample.f_ND, sample.label_N[:-1], 14)
    with pytest.raises(TypeError, match="label indices"):
        readout.fit(sample.f_ND, sample.label_N.astype(str), 14)
    with pytest.raises(ValueError, match="must be \\(rows, features\\)"):
        readout.fit(sample.f_ND[0], sample.label_N, 14)
    with pytest.raises(TypeError, match="real numbers"):
        readout.fit(sample.f_ND.astype(str), sample.label_N, 14)
    with pytest.raises(ValueError, match="source of each of the 600 rows, got 3"):
        readout.out_of_fold_proba(sample.f_ND, sample.label_N, 14, sample.group_N[:3])
    with pytest.raises(RuntimeError, match="fitted"):
        readout.predict_proba(sample.f_ND)
    with pytest.raises(RuntimeError, match="no certificate yet"):
        readout.certificate()
    readout.fit(sample.f_ND, sample.label_N, 14)
    with pytest.raises(ValueError, match="2 features; the readout was fitted on 24"):
        readout.predict_proba(sample.f_ND[:, :2])


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"C": 0}, "C, the inverse"),
        ({"cv": "kfold"}, "cv must be one of stratified_group, stratified"),
        ({"solver": "sgd"}, "train.py task=readout"),
        ({"tol": 1e-3}, "tol must be positive"),
        ({"small_class": "drop"}, "small_class"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_settings_are_sentences(keywords, sentence):
    with pytest.raises(ValueError, match=sentence):
        LogisticReadout(**keywords)


def test_float32_that_is_not_enough_is_finished_in_float64(make_sample):
    sample = make_sample(n=150, d=8, labels=(0, 1, 2), num_labels=3)
    readout = LogisticReadout(C=1e3, tol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        readout.fit(sample.f_ND, sample.label_N, 3)
    assert readout.gap_ <= 1e-12


@pytest.mark.parametrize(("n", "d", "C"), [(300, 40, 1.0), (300, 40, 100.0), (90, 300, 1.0)])
def test_renewing_the_preconditioner_keeps_the_optimum_of_separable_data(make_sample, monkeypatch, n, d, C):
    """Rows lose a hundredfold of their curvature on the way; the optimum is scikit-learn's, with and without."""
    sample = make_sample(n=n, d=d, labels=(0, 1, 2, 3, 4), num_labels=5, signal=3.0)
    arguments = (sample.f_ND, sample.label_N, 5, sample.group_N)
    readout = LogisticReadout(C=C, n_splits=3)
    p_NL = readout.out_of_fold_proba(*arguments)
    assert check_out_of_fold(readout, sample, p_NL) >= 0.999
    assert readout.gap_.max() <= 1e-7
    monkeypatch.setattr(lbfgs, "REFRESH_PASSES", 10**9)
    fixed = LogisticReadout(C=C, n_splits=3)
    fixed.out_of_fold_proba(*arguments)
    np.testing.assert_allclose(readout.objective_, fixed.objective_, rtol=1e-6)
    assert readout.n_iter_.max() < fixed.n_iter_.max()


def test_float64_goes_on_where_float32_ended(make_sample, monkeypatch):
    """Without the curvature pairs the first steps in float64 used to undo hundreds of passes in float32."""
    sample = make_sample(n=300, d=40, labels=(0, 1, 2, 3, 4), num_labels=5, signal=3.0)
    gaps: dict[torch.dtype, list[float]] = {torch.float32: [], torch.float64: []}

    def watched(problem, paths, target, max_passes, report, each):
        dtype = next(iter(paths.values())).theta.dtype
        lbfgs.minimise(problem, paths, target, max_passes, gaps[dtype].append, each)

    monkeypatch.setattr(logistic, "minimise", watched)
    readout = LogisticReadout(C=100.0, n_splits=3, tol=1e-11)
    readout.out_of_fold_proba(sample.f_ND, sample.label_N, 5, sample.group_N)
    assert readout.gap_.max() <= 1e-11
    assert max(gaps[torch.float64]) <= 10 * gaps[torch.float32][-1]
    assert len(gaps[torch.float64]) < len(gaps[torch.float32])


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_threads_are_chosen_by_size_and_restored(sample, two_threads, monkeypatch):
    arguments = (sample.f_ND[:90], sample.label_N[:90], sample.num_labels)
    readout = LogisticReadout(tol=1e-3, accept=1e-3).fit(*arguments)
    assert readout.certificate()["threads"] == 1
    assert torch.get_num_threads() == 2
    monkeypatch.setattr(logistic, "SMALL_PASS_FLOPS", 0)
    assert LogisticReadout(tol=1e-3, accept=1e-3).fit(*arguments).certificate()["threads"] == 2
    assert torch.get_num_threads() == 2


def test_threads_are_restored_after_an_error(sample, two_threads, monkeypatch):
    def fail(*_):
        raise RuntimeError("stop")

    monkeypatch.setattr(logistic, "minimise", fail)
    with pytest.raises(RuntimeError, match="stop"):
        LogisticReadout().fit(sample.f_ND, sample.label_N, sample.num_labels)
    assert torch.get_num_threads() == 2


def test_long_solves_say_how_far_they_are(sample, monkeypatch, capfd):
    arguments = (sample.f_ND, sample.label_N, sample.num_labels, sample.group_N)
    quiet = LogisticReadout().out_of_fold_proba(*arguments)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(logistic, "PROGRESS_S", 0.0)
    loud = LogisticReadout().out_of_fold_proba(*arguments)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "readout 1 passes, far from the optimum (asked 1e-07), 0 s"
    assert re.fullmatch(r"readout \d+ passes, estimated gap at most \de-\d+ \(asked 1e-07\), \d+ s", lines[-1])
    assert np.array_equal(quiet, loud)
