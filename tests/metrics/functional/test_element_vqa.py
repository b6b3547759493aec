"""Referees: scikit-learn, the published table, and counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, precision_recall_fscore_support

from humanlike.metrics.functional import element_vqa_scores

laws = settings(deadline=None, max_examples=30)


@pytest.fixture
def study():
    g = np.random.default_rng(0)
    annotated = (g.random((60, 7)) < np.linspace(0.1, 0.95, 7)).astype(int)
    said = np.where(g.random((60, 7)) < 0.2, 1 - annotated, annotated)
    said[g.random((60, 7)) < 0.1] = -1
    mask = np.ones((60, 7), dtype=bool)
    mask[::3, 5:] = False
    return said, annotated, mask, g.integers(0, 4, 60)


def two_recalls(annotated, said):
    # scikit-learn leaves an absent class out of the mean, with a warning; here the mean is undefined then.
    return balanced_accuracy_score(annotated, said) if len(set(annotated)) == 2 else np.nan


def by_sklearn(said, annotated):
    kept = said >= 0
    precision, recall, f1, _ = precision_recall_fscore_support(
        annotated[kept], said[kept], average="binary", zero_division=np.nan
    )
    return {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "accuracy": accuracy_score(annotated[kept], said[kept]),
        "specificity": precision_recall_fscore_support(
            1 - annotated[kept], 1 - said[kept], average="binary", zero_division=np.nan
        )[1],
        "balanced_accuracy": two_recalls(annotated[kept], said[kept]),
        "present_rate_bias": said[kept].mean() - annotated[kept].mean(),
        "always_present_precision": annotated[kept].mean(),
        "always_present_f1": precision_recall_fscore_support(
            annotated[kept], np.ones(kept.sum()), average="binary", zero_division=np.nan
        )[2],
        "accuracy_over_all": (said == annotated).mean(),
        "coverage": kept.mean(),
    }


def compare(scores, expected):
    for name, value in expected.items():
        assert getattr(scores, name).item() == pytest.approx(value, abs=1e-12), name


def test_micro_is_that_of_sklearn(study):
    said, annotated, mask, _ = study
    scores = element_vqa_scores(*(torch.from_numpy(x) for x in (said, annotated, mask)))
    compare(scores, by_sklearn(said[mask], annotated[mask]))
    assert scores.unparseable.item() == (said[mask] == -1).sum()
    assert scores.pairs.item() == mask.sum()
    assert scores.f1_gain.item() == pytest.approx(scores.f1.item() - scores.always_present_f1.item())
    assert not scores.skipped.any()


@pytest.mark.parametrize("average", ["macro_class", "macro_element"])
def test_macro_is_the_mean_of_sklearns_groups(study, average):
    said, annotated, mask, class_N = study
    scores = element_vqa_scores(*map(torch.from_numpy, (said, annotated, mask)), average, torch.from_numpy(class_N))
    columns = [slice(None)] if average == "macro_class" else [slice(e, e + 1) for e in range(7)]
    groups = []
    for c in range(4):
        for column in columns:
            inside = mask[class_N == c][:, column]
            groups.append(by_sklearn(said[class_N == c][:, column][inside], annotated[class_N == c][:, column][inside]))
    for name in groups[0]:
        values = np.array([group[name] for group in groups])
        assert getattr(scores, name).item() == pytest.approx(np.nanmean(values), abs=1e-12), name
    assert scores.groups.item() == len(groups)
    names = ("precision", "recall", "f1", "accuracy", "specificity")
    skipped = [np.isnan([group[name] for group in groups]).sum() for name in names]
    assert scores.skipped[:5].tolist() == skipped


def test_an_element_is_a_column_of_its_class():
    said, annotated = torch.tensor([[1], [0]]), torch.tensor([[1], [1]])
    one = element_vqa_scores(said, annotated, average="macro_element")
    two = element_vqa_scores(said, annotated, average="macro_element", class_N=torch.tensor([0, 9]))
    assert (one.groups.item(), two.groups.item()) == (1, 2)
    assert one.f1.item() == pytest.approx(2 / 3)
    assert two.f1.item() == pytest.approx(0.5)  # mean of 1 and 0, not 2 P R / (P + R) of the means


# Published: precision, recall, F1, accuracy.
TABLE = {
    "LLaVA": (0.749, 0.819, 0.782, 0.706),
    "BLIP": (0.731, 0.760, 0.746, 0.666),
    "Molmo": (0.798, 0.949, 0.867, 0.812),
    "Qwen2.5-VL": (0.898, 0.782, 0.836, 0.802),
    "mPLUG-Owl3": (0.883, 0.686, 0.772, 0.739),
    "InternVL": (0.804, 0.890, 0.845, 0.789),
    "PaliGemma2": (0.673, 0.809, 0.735, 0.624),
    "SmolVLM": (0.808, 0.346, 0.485, 0.526),
    "GPT-4o": (0.935, 0.832, 0.881, 0.855),
}


def test_published_table_is_micro_and_five_models_do_not_beat_always_present():
    pairs, present = 100_000, 64_400
    gains = {}
    for name, (precision, recall, f1, accuracy) in TABLE.items():
        tp = round(recall * present)
        fp = round(tp / precision) - tp
        annotated = torch.arange(pairs) < present
        said = (torch.arange(pairs) < tp) | ((torch.arange(pairs) >= present) & (torch.arange(pairs) < present + fp))
        scores = element_vqa_scores(said[:, None], annotated[:, None])
        assert scores.f1.item() == pytest.approx(f1, abs=2e-3), name
        assert scores.accuracy.item() == pytest.approx(accuracy, abs=5e-3), name
        assert scores.always_present_f1.item() == pytest.approx(0.784, abs=1e-3)
        gains[name] = scores.f1_gain.item()
    assert sum(gain <= 0 for gain in gains.values()) == 5
    assert gains["Molmo"] > 0  # the yes-bias is not seen in F1; it is in the bias and in the specificity


def test_the_yes_bias_is_seen():
    annotated = torch.rand(500, 6, generator=torch.Generator().manual_seed(0)) < 0.644
    yes = element_vqa_scores(torch.ones_like(annotated), annotated)
    assert yes.recall.item() == 1
    assert yes.specificity.item() == 0
    assert yes.balanced_accuracy.item() == 0.5
    assert yes.f1_gain.item() == 0
    assert yes.present_rate_bias.item() == pytest.approx(1 - annotated.double().mean().item())
    no = element_vqa_scores(torch.zeros_like(annotated), annotated)
    assert no.precision.isnan()
    assert no.f1.item() == 0
    assert no.balanced_accuracy.item() == 0.5


def test_unparseable_is_neither_absent_nor_present():
    annotated = torch.tensor([[1, 1, 0, 0]])
    asked = element_vqa_scores(torch.tensor([[1, -1, 0, -1]]), annotated)
    assert (asked.recall.item(), asked.specificity.item(), asked.coverage.item()) == (1, 1, 0.5)
    assert asked.accuracy_over_all.item() == 0.5
    assert asked.unparseable.item() == 2
    as_floats = element_vqa_scores(torch.tensor([[1, float("nan"), 0, float("nan")]]), annotated.double())
    assert all(torch.equal(a, b) for a, b in zip(asked, as_floats, strict=True))
    nothing = element_vqa_scores(torch.full((1, 4), -1), annotated)
    assert nothing.accuracy.isnan()
    assert nothing.coverage.item() == 0


def test_pairs_without_annotation_are_left_out():
    said, annotated = torch.tensor([[1, 1, 0]]), torch.tensor([[1, -1, 0]])
    scores = element_vqa_scores(said, annotated)
    assert scores.pairs.item() == 2
    assert scores.precision.item() == 1


def test_nothing_gives_nan():
    for average in ("micro", "macro_element"):
        scores = element_vqa_scores(torch.zeros(0, 3), torch.zeros(0, 3), average=average)
        assert scores.f1.isnan()
        assert scores.pairs.item() == 0
        assert scores.groups.item() == 0


@given(st.integers(0, 2**32 - 1))
@laws
def test_order_and_relabelled_classes_do_not_matter(seed):
    g = np.random.default_rng(seed)
    said, annotated = g.integers(-1, 2, (20, 3)), g.integers(0, 2, (20, 3))
    class_N = g.integers(0, 5, 20)
    order = g.permutation(20)
    for average in ("micro", "macro_class", "macro_element"):
        first = element_vqa_scores(*map(torch.from_numpy, (said, annotated)), None, average, torch.from_numpy(class_N))
        other = element_vqa_scores(
            *(torch.from_numpy(x[order]) for x in (said, annotated)),
            None,
            average,
            torch.from_numpy(7 * class_N[order]),
        )
        for a, b in zip(first, other, strict=True):
            assert torch.equal(a.nan_to_num(-9), b.nan_to_num(-9))
        for value in first[:6]:
            assert value.isnan() or 0 <= value.item() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"predicted_NE": torch.tensor([[0.4, 1.0]])}, ValueError, "predicted_NE.*sketch 0, element 0 is 0.4"),
        ({"annotated_NE": torch.tensor([[0, 3]])}, ValueError, "annotated_NE.*sketch 0, element 1 is 3"),
        ({"annotated_NE": torch.tensor([[0, 1, 1]])}, ValueError, "paired"),
        ({"average": "macro"}, ValueError, "average must be one of"),
        ({"average": "macro_class"}, ValueError, "needs class_N"),
        ({"class_N": torch.tensor([0, 1])}, ValueError, "class_N has 2"),
        ({"class_N": torch.tensor([-1])}, ValueError, "class_N must lie in"),
        ({"predicted_NE": [[1, 0]]}, TypeError, "torch.Tensor"),
    ],
)
def test_refusals(arguments, error, sentence):
    good = {"predicted_NE": torch.tensor([[1, 0]]), "annotated_NE": torch.tensor([[1, 0]])}
    with pytest.raises(error, match=sentence):
        element_vqa_scores(**(good | arguments))
