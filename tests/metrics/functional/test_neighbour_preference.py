from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.metrics import auc

from humanlike.metrics.functional import semantic_neighbour_preference, semantic_ranks


def ranks_by_hand(embedding):
    """Sort each label's others by SciPy's cosine distance, one label at a time."""
    distance = cdist(embedding, embedding, "cosine")
    ranks = np.zeros(distance.shape, np.int64)
    for c in range(len(embedding)):
        others = [label for label in range(len(embedding)) if label != c]
        ordered = pd.Series(distance[c, others], index=others).sort_values(kind="stable").index
        ranks[c, ordered] = np.arange(1, len(embedding))
    return ranks


def paper_snp_by_hand(counts, target, ranks):
    """The published analysis: positions from 0, position 0 dropped with the correct answers, area by scikit-learn."""
    num_labels = len(counts)
    position = [
        0 if label == target else ranks[target, label] - 1 for label in range(num_labels) for _ in range(counts[label])
    ]
    if not position:
        return np.nan
    errors = pd.Series([p for p in position if p != 0])
    if errors.empty:
        return 1.0
    share = errors.value_counts(normalize=True).sort_index().cumsum()
    return auc([*(share.index / num_labels), 1.0], [*share, 1.0])


def exact_snp_by_hand(counts, target, ranks):
    """Area under the step function of cumulative errors, summed rank by rank."""
    rank = [ranks[target, label] for label in range(len(counts)) if label != target for _ in range(counts[label])]
    if not rank:
        return np.nan
    return np.mean([np.mean(np.array(rank) <= r) for r in range(1, len(counts) - 1)])


REFEREES = {"paper": paper_snp_by_hand, "exact": exact_snp_by_hand}


@pytest.fixture(scope="module")
def space():
    return np.random.default_rng(5).normal(size=(60, 7))


def test_ranks_agree_with_scipy(space):
    ranks = semantic_ranks(torch.from_numpy(space))
    assert ranks.dtype == torch.int64
    np.testing.assert_array_equal(ranks, ranks_by_hand(space))


@pytest.mark.data
def test_ranks_of_the_things_labels_agree_with_scipy(shared_data):
    file = shared_data / "things" / "spose_embedding_66d_sorted.txt"
    if not file.is_file():
        pytest.skip(f"{file.name} is absent")
    embedding = np.loadtxt(file)
    ranks = semantic_ranks(torch.from_numpy(embedding)).numpy()
    assert ranks.shape == (1854, 1854)
    distance = cdist(embedding, embedding, "cosine")
    order = np.empty_like(ranks)
    np.put_along_axis(order, ranks, np.arange(1854)[None].repeat(1854, 0), axis=1)
    assert (order[:, 0] == np.arange(1854)).all()
    # In the order found, SciPy's distances never fall by more than its rounding.
    assert np.diff(np.take_along_axis(distance, order, 1)[:, 1:], axis=1).min() > -1e-14


def test_twins_and_ties_are_ordered_by_label_index():
    # Labels 0, 2 and 3 point the same way, label 1 and 4 are mirror images at equal distance from them.
    space = torch.tensor([[1.0, 0], [1, 1], [2, 0], [3, 0], [1, -1]])
    assert semantic_ranks(space).tolist() == [
        [0, 3, 1, 2, 4],
        [1, 0, 2, 3, 4],
        [1, 3, 0, 2, 4],
        [1, 3, 2, 0, 4],
        [1, 4, 2, 3, 0],
    ]


def test_exact_copies_stay_tied_at_every_place_of_a_large_space():
    rng = np.random.default_rng(2)
    space = np.repeat(rng.normal(size=(61, 33)), 3, axis=0)[rng.permutation(183)]
    ranks = semantic_ranks(torch.from_numpy(space)).numpy()
    for label in range(183):
        twins = np.flatnonzero((space == space[label]).all(1))
        for c in set(range(183)) - set(twins):
            assert (np.diff(ranks[c, twins]) == 1).all()


@given(st.integers(2, 30), st.integers(1, 6), st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_rank_rows_are_permutations_and_scale_does_not_matter(labels, features, seed):
    rng = np.random.default_rng(seed)
    space = torch.from_numpy(rng.normal(size=(labels, features)))
    ranks = semantic_ranks(space)
    assert torch.equal(ranks.sort(dim=1).values, torch.arange(labels).expand(labels, labels))
    assert (ranks.diagonal() == 0).all()
    powers = torch.from_numpy(2.0 ** rng.integers(-300, 300, size=(labels, 1)))
    assert torch.equal(semantic_ranks(space * powers), ranks)


@pytest.mark.parametrize("variant", ["paper", "exact"])
@pytest.mark.parametrize("responses", [0, 1, 2, 5, 16, 200])
def test_preference_agrees_with_the_referee(space, variant, responses):
    rng = np.random.default_rng(responses)
    ranks, target = ranks_by_hand(space), rng.integers(0, 60, 40)
    weights = rng.dirichlet(np.full(60, 0.2), size=40)
    counts = np.stack([rng.multinomial(responses, w) for w in weights])
    counts[0] = responses * np.eye(60, dtype=np.int64)[target[0]]  # nothing but correct answers
    counts[1] = responses * (ranks[target[1]] == 1)  # nothing but the nearest neighbour
    counts[2] = responses * (ranks[target[2]] == 59)  # nothing but the farthest label
    expected = [REFEREES[variant](n, t, ranks) for n, t in zip(counts, target, strict=True)]
    value = semantic_neighbour_preference(
        torch.from_numpy(counts), torch.from_numpy(target), torch.from_numpy(ranks), variant
    )
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_bounds_of_exact_are_reached_exactly(space):
    ranks, target = torch.from_numpy(ranks_by_hand(space)), torch.arange(60)
    nearest, farthest = (ranks == 1).long() * 7, (ranks == 59).long() * 7
    assert (semantic_neighbour_preference(nearest, target, ranks, "exact") == 1).all()
    assert (semantic_neighbour_preference(farthest, target, ranks, "exact") == 0).all()
    uniform = torch.ones(60, 60, dtype=torch.int64)
    assert (semantic_neighbour_preference(uniform, target, ranks, "exact") == 0.5).all()
    # Correct answers are no evidence.
    more = nearest + farthest + 5 * torch.eye(60, dtype=torch.int64)
    assert torch.allclose(semantic_neighbour_preference(more, target, ranks, "exact"), torch.tensor(0.5).double())


def test_bias_of_paper_under_uniform_errors_is_as_stated():
    # Among many labels the area is (n - 1)/(2n) + 1/(n + 1) in expectation for n distinct uniform errors.
    rng = np.random.default_rng(0)
    num_labels, cells = 400, 1500
    ranks = torch.from_numpy(np.stack([np.roll(np.arange(num_labels), c) for c in range(num_labels)]))
    for n in (2, 16, 200):
        labels = rng.integers(1, num_labels, size=(cells, n))
        counts = np.zeros((cells, num_labels), np.int64)
        np.add.at(counts, (np.arange(cells)[:, None], labels), 1)
        args = torch.from_numpy(counts), torch.zeros(cells, dtype=torch.int64), ranks
        assert semantic_neighbour_preference(*args, "paper").mean().item() == pytest.approx(
            (n - 1) / (2 * n) + 1 / (n + 1), abs=0.015
        )
        assert semantic_neighbour_preference(*args, "exact").mean().item() == pytest.approx(0.5, abs=0.015)


@pytest.mark.parametrize("variant", ["paper", "exact"])
def test_labels_without_an_embedding_are_left_out(space, variant):
    rng = np.random.default_rng(9)
    target, counts = rng.integers(0, 60, 30), rng.poisson(0.4, (30, 60))
    kept = np.sort(rng.permutation(60)[:41])
    ranks = np.full((60, 60), -1)
    ranks[np.ix_(kept, kept)] = ranks_by_hand(space[kept])
    value = semantic_neighbour_preference(
        torch.from_numpy(counts), torch.from_numpy(target), torch.from_numpy(ranks), variant
    )
    among, small = {label: i for i, label in enumerate(kept)}, ranks_by_hand(space[kept])
    expected = [
        REFEREES[variant](n[kept], among[t], small) if t in among else np.nan
        for n, t in zip(counts, target, strict=True)
    ]
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)


def test_tiny_label_sets():
    two = torch.tensor([[0, 1], [1, 0]])
    counts, target = torch.tensor([[3, 2], [4, 0], [0, 0]]), torch.tensor([0, 0, 1])
    assert semantic_neighbour_preference(counts, target, two, "exact").isnan().all()
    np.testing.assert_array_equal(semantic_neighbour_preference(counts, target, two, "paper"), [1.0, 1.0, np.nan])
    three = torch.tensor([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    value = semantic_neighbour_preference(torch.tensor([[0, 1, 1]]), torch.tensor([0]), three, "exact")
    assert value.item() == 0.5
    assert semantic_neighbour_preference(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), three).shape == (0,)


def test_refusals_of_ranks_name_the_rows():
    space = torch.ones(5, 2)
    space[3, 0], space[1] = torch.nan, 0
    with pytest.raises(ValueError, match=r"1 row\(s\) that are not finite: \[3\]"):
        semantic_ranks(space)
    with pytest.raises(ValueError, match=r"1 row\(s\) that are zero: \[1\]"):
        semantic_ranks(space[:3])
    with pytest.raises(ValueError, match="two dimensions"):
        semantic_ranks(torch.ones(3))
    with pytest.raises(TypeError, match=r"torch\.from_numpy"):
        semantic_ranks(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("changes", "error", "sentence"),
    [
        ({"variant": "published"}, ValueError, "variant must be one of"),
        ({"target_C": torch.tensor([3])}, ValueError, r"\[0, 3\); row 0 is 3"),
        ({"target_C": torch.tensor([0, 1])}, ValueError, "2 rows for 1 rows"),
        ({"counts_CL": torch.tensor([[1, -1, 0]])}, ValueError, "row 0, label 1 is -1"),
        ({"ranks_LL": torch.zeros(3, 3)}, TypeError, "integer dtype"),
        ({"ranks_LL": torch.zeros(2, 3).long()}, ValueError, r"must be \(3, 3\)"),
        ({"ranks_LL": torch.zeros(3, 3).long()}, ValueError, r"ranks_LL\[0, 1\] is 0"),
        ({"ranks_LL": torch.full((3, 3), 3)}, ValueError, r"ranks_LL\[0, 0\] is 3"),
    ],
)
def test_refusals_of_preference_name_the_place(changes, error, sentence):
    good = {
        "counts_CL": torch.ones(1, 3),
        "target_C": torch.tensor([0]),
        "ranks_LL": torch.tensor([[0, 1, 2], [1, 0, 2], [2, 1, 0]]),
    }
    with pytest.raises(error, match=sentence):
        semantic_neighbour_preference(**(good | changes))
