"""The presence head's optimum: scikit-learn is the referee, with and without sharing; folds never see a source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from humanlike.data.doodles import doodles
from humanlike.elements import presence_fit
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.presence_fit import fit_presence, out_of_fold_presence, predict_presence
from humanlike.elements.presence_head import PresenceHead
from humanlike.elements.presence_pairs import MISSING, ElementPairs
from humanlike.readouts import ConvergenceWarning, stratified_group_folds
from humanlike.types import Features

D = 6


@pytest.fixture(scope="module")
def data():
    """Doodles of which some annotations are empty."""
    data = doodles(["lion", "taxi", "mouse"], instances=5, judgments=0)
    table = data.elements.assign(drawn=data.elements["drawn"].astype("boolean"))
    table.loc[np.random.default_rng(0).choice(len(table), 30, replace=False), "drawn"] = pd.NA
    return replace(data, elements=table)


@pytest.fixture(scope="module")
def pairs(data):
    return ElementPairs(annotated_elements(data))


@pytest.fixture(scope="module")
def features(data, pairs):
    """Noise that knows a little of what is drawn."""
    rng = np.random.default_rng(1)
    target_NE = pairs.targets(data)
    f_ND = rng.normal(size=(len(data), D)) + 0.5 * np.clip(target_NE, 0, 1) @ rng.normal(size=(target_NE.shape[1], D))
    return Features(f_ND.astype(np.float32), np.arange(len(data)), {}, "noise", {})


def referee(data, pairs, z_ND, C, share):
    """(N, P) probabilities by scikit-learn: one problem over (item, pair) rows, features (own block | shared).

    The pseudo-observations of the intercepts are two rows a pair with weight ½; intercepts are columns so large that
    their penalty is nothing.
    """
    target_NE, position_N = pairs.targets(data), pairs.concept_positions(data.table["concept"])
    P, U, big = len(pairs.pairs), len(pairs.names), 1e3
    rows, labels, weights = [], [], []

    def row(z_D, p):
        own, common, intercept = np.zeros((P, D)), np.zeros((U, D)), np.zeros(P)
        own[p], common[pairs.name_P[p]], intercept[p] = z_D, share**0.5 * z_D, big
        return np.concatenate([own.ravel(), common.ravel(), intercept])

    for i, k in enumerate(position_N):
        for j, p in enumerate(pairs.pair_KE[k]):
            if p >= 0 and target_NE[i, j] != MISSING:
                rows.append(row(z_ND[i], p))
                labels.append(int(target_NE[i, j]))
                weights.append(1.0)
    for p in range(P):
        for label in (0, 1):
            rows.append(row(np.zeros(D), p))
            labels.append(label)
            weights.append(0.5)
    model = LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(np.array(rows), labels, sample_weight=weights)
    return np.array([[model.predict_proba(row(z, p)[None])[0, 1] for p in range(P)] for z in z_ND[:20]])


@pytest.mark.parametrize("share", [0.0, 0.7])
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_the_optimum_is_that_of_scikit_learn(data, pairs, features, share, solver, monkeypatch):
    if solver == "lbfgs":
        monkeypatch.setattr(presence_fit, "NEWTON_ROWS", 0)
    head = fit_presence(PresenceHead(D, pairs, C=0.3, share=share), data, features, tol=1e-11)
    f_ND = features.f_ND.astype(np.float64)
    z_ND = (f_ND - f_ND.mean(0)) / f_ND.std(0)
    expected_NP = referee(data, pairs, z_ND, 0.3, share)
    with torch.no_grad():
        z = head.standardize(torch.from_numpy(features.f_ND[:20]))
        p_NP = torch.sigmoid(z @ head.effective_weight.T + head.bias_P).numpy()
    np.testing.assert_allclose(p_NP, expected_NP, atol=2e-5)


def test_an_element_that_is_always_drawn_stays_finite(data, pairs, features):
    always = replace(data, elements=data.elements.assign(drawn=True))
    head = fit_presence(PresenceHead(D, pairs), always, features)
    assert head.bias_P.isfinite().all()
    p_NE = predict_presence(head, features, pairs.concept_positions(data.table["concept"]))
    assert np.nanmin(p_NE) > 0.9


def test_probabilities_are_those_of_the_module(data, pairs, features):
    head = fit_presence(PresenceHead(D, pairs, C=0.1), data, features)
    concept_N = pairs.concept_positions(data.table["concept"])
    p_NE = predict_presence(head, features, concept_N)
    logit, mask = head(torch.from_numpy(features.f_ND), torch.from_numpy(concept_N))
    np.testing.assert_allclose(p_NE[mask.numpy()], torch.sigmoid(logit)[mask].detach().numpy(), rtol=1e-5)
    assert np.isnan(p_NE[~mask.numpy()]).all()
    for size in (1, 7):
        parts = [predict_presence(head, features, concept_N, r) for r in np.split(np.arange(60), range(size, 60, size))]
        np.testing.assert_allclose(np.concatenate(parts), p_NE, rtol=1e-6)


def test_out_of_fold_means_never_trained_on(data, features, monkeypatch):
    elements = annotated_elements(data)
    p_NE, fold_N = out_of_fold_presence(data, features, elements, C=0.1, n_splits=5)
    source_N = data.table["image_id"].to_numpy()
    assert (fold_N == stratified_group_folds(data.table["concept"].to_numpy(), source_N, 5, 0)).all()
    assert all(len(set(fold_N[source_N == s])) == 1 for s in set(source_N))
    # turning round all that is known of fold 2 changes nothing for fold 2, and something for the others
    held = set(data.table["sketch_id"][fold_N == 2])
    table = data.elements.copy()
    inside = table["sketch_id"].isin(held)
    table.loc[inside, "drawn"] = ~table.loc[inside, "drawn"]
    other_NE, _ = out_of_fold_presence(replace(data, elements=table), features, elements, C=0.1, n_splits=5)
    np.testing.assert_array_equal(other_NE[fold_N == 2], p_NE[fold_N == 2])
    assert np.nanmax(np.abs(other_NE[fold_N != 2] - p_NE[fold_N != 2])) > 0.01


def test_what_no_training_item_knows_is_nan(data, features):
    elements = annotated_elements(data)
    table = data.elements.copy()
    first = elements["lion"][0]
    table.loc[table["element"].eq(first) & table["sketch_id"].str.startswith("lion"), "drawn"] = pd.NA
    p_NE, _ = out_of_fold_presence(replace(data, elements=table), features, elements, C=0.1)
    lion = (data.table["concept"] == "lion").to_numpy()
    assert np.isnan(p_NE[lion, 0]).all()
    assert not np.isnan(p_NE[lion, 1]).any()


def test_items_without_features_have_no_probability(data, features):
    part = Features(features.f_ND[3:], features.rows[3:], {}, "noise", {})
    p_NE, fold_N = out_of_fold_presence(data, part, annotated_elements(data), C=0.1)
    assert np.isnan(p_NE[:3]).all()
    assert (fold_N[:3] == -1).all()
    assert not np.isnan(p_NE[3:, 0]).any()


def test_too_few_steps_are_told(data, pairs, features, monkeypatch):
    monkeypatch.setattr(presence_fit, "NEWTON_ROWS", 0)
    with pytest.warns(ConvergenceWarning, match="estimated relative gap"):
        fit_presence(PresenceHead(D, pairs, C=1.0), data, features, max_iter=2)


def test_wrong_inputs_are_named(data, pairs, features):
    with pytest.raises(ValueError, match="6 columns, the presence head 5"):
        fit_presence(PresenceHead(5, pairs), data, features)
    bad = features.f_ND.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="nan in row 3, feature 2"):
        fit_presence(PresenceHead(D, pairs), data, replace(features, f_ND=bad))
    with pytest.raises(ValueError, match="none of the training items is annotated"):
        fit_presence(PresenceHead(D, {"lion": ["propeller"]}), data, features)
    for elements, message in (({}, "got none"), ({"a": []}, "one or more"), ({"a": ["x", "x"]}, "different")):
        with pytest.raises(ValueError, match=message):
            ElementPairs(elements)
