"""Comparison of sources against counts by hand, plain loops, and real lists of four language models."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
import torch

from humanlike.backbones.clip_text import TextTower
from humanlike.elements.extraction_compare import compare_elements
from humanlike.elements.extraction_norms import norm_lists, norm_models
from humanlike.elements.lists import shipped

A = {"owl": ["Wings", "beak", "big eyes"], "car": ["wheel", "door"], "cup": ["handle"]}
B = {"owl": ["wing", "beak", "eye", "tail"], "car": ["wheels", "bonnet"], "hat": ["brim"]}


def encoder(texts):
    """Vectors that the words decide."""
    return np.stack(
        [np.frombuffer(hashlib.sha256(t.encode()).digest(), dtype=np.uint8)[:16].astype(float) - 100 for t in texts]
    )


def test_words_counted_by_hand():
    found = compare_elements(A, B)
    owl, car = (found.table.set_index("concept").loc[c] for c in ("owl", "car"))
    assert (owl["exact_precision"], owl["exact_recall"]) == (1 / 3, 1 / 4)
    assert owl["exact_f1"] == pytest.approx(2 / 7)
    assert (owl["lemma_precision"], owl["lemma_recall"]) == (2 / 3, 2 / 4)
    assert (owl["head_precision"], owl["head_recall"]) == (3 / 3, 3 / 4)
    assert (car["exact_f1"], car["lemma_f1"]) == (0, 0.5)
    assert (found.only_a, found.only_b) == (("cup",), ("hat",))
    assert found.means["lemma_f1"] == pytest.approx((4 / 7 + 0.5) / 2)


def test_soft_scores_against_a_loop():
    found = compare_elements(A, B, encoder, element_text="{element} of a {label}").table.set_index("concept")
    for concept in ("owl", "car"):
        va, vb = ([encoder([f"{e} of a {concept}"])[0] for e in x[concept]] for x in (A, B))

        def cosine(x, y):
            return float(np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y)))

        p = sum(max(cosine(x, y) for y in vb) for x in va) / len(va)
        r = sum(max(cosine(x, y) for x in va) for y in vb) / len(vb)
        assert found.loc[concept, "soft_precision"] == pytest.approx(p)
        assert found.loc[concept, "soft_recall"] == pytest.approx(r)
        assert found.loc[concept, "soft_f1"] == pytest.approx(2 * p * r / (p + r))
        whole = [encoder([", ".join(x[concept])])[0] for x in (A, B)]
        assert found.loc[concept, "text_cosine"] == pytest.approx(cosine(*whole))


def test_a_source_is_like_itself_in_every_score():
    means = compare_elements(A, A, encoder).means
    assert {k: round(v, 12) for k, v in means.items() if not k.startswith("num")} == {
        k: 1.0 for k in means if not k.startswith("num")
    }


@pytest.mark.slow
def test_the_text_half_of_clip_is_an_encoder():
    tower = TextTower("ViT-B-32-quickgelu", None)
    found = compare_elements({"car": A["car"]}, {"car": B["car"]}, tower.embed)
    wheel = tower.embed(["wheel", "wheels", "bonnet"]).double()
    by_hand = torch.nn.functional.cosine_similarity(wheel[:1], wheel[1:]).max()
    door = torch.nn.functional.cosine_similarity(tower.embed(["door"]).double(), wheel[1:]).max()
    assert found.table["soft_precision"][0] == pytest.approx(float((by_hand + door) / 2), abs=1e-6)


def test_every_text_is_encoded_once():
    seen = []
    compare_elements(A, B, lambda texts: seen.extend(texts) or encoder(texts))
    assert len(seen) == len(set(seen))


def test_mistakes_are_said():
    with pytest.raises(ValueError, match="share no concept"):
        compare_elements({"a": ["x"]}, {"b": ["x"]})
    with pytest.raises(ValueError, match="'a' is empty"):
        compare_elements({"a": []}, {"a": ["x"]})
    with pytest.raises(ValueError, match="the encoder made vectors of shape"):
        compare_elements(A, B, lambda texts: np.ones(3))
    with pytest.raises(ValueError, match="zero or not finite"):
        compare_elements(A, B, lambda texts: np.zeros((len(texts), 3)))


def test_the_cosine_of_clip_is_that_of_whole_lists():
    found = compare_elements(A, B, clip=encoder).table.set_index("concept")
    assert "soft_f1" not in found
    for concept in ("owl", "car"):
        va, vb = (encoder([", ".join(x[concept])])[0] for x in (A, B))
        cosine = np.dot(va, vb) / np.sqrt(np.dot(va, va) * np.dot(vb, vb))
        assert found.loc[concept, "clip_cosine"] == pytest.approx(cosine)


def test_intervals_are_those_of_concepts_drawn_again():
    many = {f"c{i}": ["a", "b", "c"][: 1 + i % 3] for i in range(30)}
    other = {f"c{i}": ["a", "x", "c"][: 1 + i % 3] for i in range(30)}
    found = compare_elements(many, other)
    intervals = found.intervals(replicates=4000, seed=1)
    f1 = found.table["exact_f1"].to_numpy()
    half = 1.96 * f1.std() / np.sqrt(30)  # the normal approximation of the bootstrap of a mean
    assert intervals["exact_f1"].low == pytest.approx(f1.mean() - half, abs=0.1 * half)
    assert intervals["exact_f1"].high == pytest.approx(f1.mean() + half, abs=0.1 * half)
    assert intervals == found.intervals(replicates=4000, seed=1)
    with pytest.raises(ValueError, match="one replicate or more"):
        found.intervals(replicates=0)


@pytest.mark.data
def test_lists_of_four_language_models(shared_data):
    path = shared_data / "llm_elements" / "features.csv.gz"
    table = pd.read_csv(path)
    assert norm_models(path) == tuple(sorted(table["llm"].unique()))
    assert len(norm_models(path)) == 4
    gpt4 = norm_lists(path, "gpt-4", words=False)
    said = table.query("llm == 'gpt-4' and concept_id == 'banjo' and is_part and n_runs >= 4")["feature"]
    bare = {f.removeprefix("has ").removeprefix("a ").removeprefix("an ").removeprefix("the ") for f in said}
    assert set(gpt4["banjo"]) == {f for f in bare if len(f.split()) <= 4}
    with pytest.raises(ValueError, match="has no model 'gpt-5'"):
        norm_lists(path, "gpt-5")


@pytest.mark.data
def test_models_against_the_shipped_lists_by_sets(shared_data):
    path = shared_data / "llm_elements" / "features.csv.gz"
    for model in norm_models(path):
        lists = norm_lists(path, model, words=False)
        found = compare_elements(lists, shipped())
        f1 = []
        for concept in sorted(set(lists) & {c for c in lists if c in shipped()}):
            a, b = set(lists[concept]), set(shipped()[concept])
            f1.append(2 * len(a & b) / (len(a) + len(b)))
        assert found.means["exact_f1"] == pytest.approx(np.mean(f1))
        assert found.means["exact_f1"] <= found.means["lemma_f1"] <= found.means["head_f1"]
        assert len(found.table) > 120
