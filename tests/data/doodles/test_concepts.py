from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity as reference_cosine

from humanlike.data.doodles import CONCEPTS, Concept
from humanlike.data.doodles.concept import Vary
from humanlike.data.doodles.features import KINDS, cosine_similarity, feature_names, semantic_space
from humanlike.rng import generator

NAMES = [concept.name for concept in CONCEPTS]


def test_there_are_48_in_order() -> None:
    assert len(NAMES) == 48
    assert sorted(set(NAMES)) == NAMES


@pytest.mark.data
def test_names_are_those_of_seva_and_quickdraw(shared_data: Path) -> None:
    with open(shared_data / "seva_index" / "concepts128.csv") as handle:
        seva = {row["concept"] for row in csv.DictReader(handle)}
    with open(shared_data / "quickdraw_raw" / "classes.csv") as handle:
        quickdraw = {row["quickdraw_class"] for row in csv.DictReader(handle)}
    assert set(NAMES) <= seva | quickdraw
    assert len(set(NAMES) & seva) >= 38


@pytest.mark.parametrize("concept", CONCEPTS, ids=NAMES)
def test_every_instance_has_the_same_named_elements(concept: Concept) -> None:
    assert 5 <= len(concept.elements) <= 9
    for number in range(5):
        parts = concept.draw(Vary(generator(1, concept.name, number)))
        assert tuple(parts) == concept.elements
        for name, paths in parts.items():
            assert len(paths) > 0, name
            assert name.isalpha()
            assert name.islower()
            for path in paths:
                assert path.shape[1:] == (4, 2)
                assert np.isfinite(path).all()
                np.testing.assert_allclose(path[:-1, 3], path[1:, 0], atol=1e-9)


def test_instances_differ_and_the_nominal_one_is_fixed() -> None:
    for concept in CONCEPTS:

        def length(vary: Vary, concept: Concept = concept) -> float:
            return sum(float(np.square(path).sum()) for paths in concept.draw(vary).values() for path in paths)

        assert length(Vary()) == length(Vary())
        assert len({length(Vary(generator(0, concept.name, i))) for i in range(4)}) == 4, concept.name


def test_vary_stays_in_range() -> None:
    vary = Vary(generator(0, "vary"))
    factors = [vary(10, 0.2) for _ in range(500)]
    assert 8 <= min(factors) < 8.2
    assert 11.8 < max(factors) <= 12
    assert {vary.count(2, 4) for _ in range(100)} == {2, 3, 4}
    assert max(abs(vary.shift(3)) for _ in range(100)) <= 3
    nominal = Vary()
    assert (nominal(7), nominal.shift(3), nominal.count(1, 3)) == (7, 0, 2)


def test_semantic_space_has_no_zero_and_no_equal_rows() -> None:
    space = semantic_space(CONCEPTS)
    assert space.shape == (48, len(feature_names(CONCEPTS)))
    assert (np.linalg.norm(space, axis=1) > 0).all()
    assert len(np.unique(space, axis=0)) == 48
    assert (space.max(axis=1) <= 2).all()
    cosine = cosine_similarity(space)
    np.testing.assert_allclose(cosine, reference_cosine(space), atol=1e-12)
    assert (cosine - 2 * np.eye(48)).max() < 0.97


def test_neighbours_make_sense() -> None:
    cosine = cosine_similarity(semantic_space(CONCEPTS))
    np.fill_diagonal(cosine, -1)
    nearest = {name: NAMES[i] for name, i in zip(NAMES, cosine.argmax(axis=1), strict=True)}
    assert nearest["guitar"] == "banjo"
    assert nearest["butterfly"] == "mosquito"
    assert nearest["beer"] == "margarita"
    assert nearest["chair"] in {"bench", "couch"}
    assert nearest["lion"] in {"bear", "elephant"}


def test_every_feature_tells_something() -> None:
    counts = (semantic_space(CONCEPTS) > 0).sum(axis=0)
    assert counts.max() < 48
    assert set(KINDS) <= set(feature_names(CONCEPTS))


def test_faults_of_features_are_named() -> None:
    draw = CONCEPTS[0].draw
    with pytest.raises(ValueError, match="'b' has no features"):
        semantic_space([Concept("a", "round", draw), Concept("b", "", draw)])
    with pytest.raises(ValueError, match="'a' and 'b' have the same features"):
        semantic_space([Concept("a", "round big", draw), Concept("b", "big round", draw)])
