"""A synthetic study of the size of the published one: what `perf/bootstrap.py` measures on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from humanlike.metrics.functional import semantic_ranks
from humanlike.rng import generator
from humanlike.stats import CellDesign

SECONDS = (4, 8, 16, 32)


@dataclass
class Study:
    """People's, a model's and machine drawings' answers, as arrays.

    K concepts, J images, N sketches, R judgments, G guesses, L labels.
    """

    embedding_LD: np.ndarray
    ranks_LL: np.ndarray
    target_N: np.ndarray
    image_N: np.ndarray
    seconds_N: np.ndarray
    proba_NL: np.ndarray
    item_R: np.ndarray
    guess_RG: np.ndarray
    machine_item_R: np.ndarray
    machine_guess_RG: np.ndarray

    @classmethod
    def synthetic(cls, concepts: int, images: int, labels: int, seed: int) -> Study:
        """Answers that get better with drawing time; wrong ones are near neighbours more often than far ones."""
        rng = generator(seed, "perf", "bootstrap", concepts, images, labels)
        embedding_LD = rng.gamma(0.5, size=(labels, 66))
        ranks_LL = semantic_ranks(torch.from_numpy(embedding_LD)).numpy()
        target_K = np.sort(rng.choice(labels, concepts, replace=False))
        concept_N, image_N, time_N = (
            x.ravel() for x in np.meshgrid(range(concepts), range(images), range(len(SECONDS)), indexing="ij")
        )
        ease_N = rng.normal(size=concepts)[concept_N] + 0.6 * time_N - 2.0
        logits_NK = rng.normal(size=(len(concept_N), concepts))
        logits_NK[np.arange(len(concept_N)), concept_N] += 3.0 + ease_N + rng.normal(size=len(concept_N))
        proba_NL = np.zeros((len(concept_N), labels))
        proba_NL[:, target_K] = np.exp(logits_NK) / np.exp(logits_NK).sum(axis=1, keepdims=True)
        near_LL = ranks_LL.argsort(axis=1)
        people, machine = (judgments(rng, target_K[concept_N], ease_N + shift, near_LL) for shift in (0.0, -0.5))
        seconds_N = np.array(SECONDS)[time_N]
        image_ids_N = np.array([f"{image:02d}" for image in image_N])  # their order as text is that of their numbers
        return cls(embedding_LD, ranks_LL, target_K[concept_N], image_ids_N, seconds_N, proba_NL, *people, *machine)

    @property
    def num_labels(self) -> int:
        """L."""
        return len(self.ranks_LL)

    @cached_property
    def top1_N(self) -> np.ndarray:
        """(N,) the model's label of every sketch."""
        return self.proba_NL.argmax(axis=1)

    @cached_property
    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """(N,) cell of every sketch and (C,) target of every cell."""
        design = self.design()
        return design.cell_N, design.concept_C

    def design(self) -> CellDesign:
        """Where every sketch stands."""
        return CellDesign.from_columns(self.target_N, self.image_N, self.seconds_N)


def judgments(
    rng: np.random.Generator, target_N: np.ndarray, ease_N: np.ndarray, near_LL: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(R,) sketches and (R, 5) guesses, -1 where there is none: the target, or another label.

    Half of the wrong guesses are neighbours at a log-uniform rank, half of them any label.
    """
    item_R = np.repeat(np.arange(len(target_N)), rng.integers(12, 15, size=len(target_N)))
    right_RG = rng.random((len(item_R), 5)) < 1 / (1 + np.exp(-ease_N[item_R]))[:, None]
    near_RG = np.exp(rng.random(right_RG.shape) * np.log(len(near_LL))).astype(np.int64)
    any_RG = rng.integers(1, len(near_LL), size=right_RG.shape)
    rank_RG = np.where(rng.random(right_RG.shape) < 0.5, near_RG, any_RG)
    target_R1 = target_N[item_R][:, None]
    guess_RG = np.where(right_RG, target_R1, near_LL[target_R1, rank_RG])
    given_RG = np.arange(5) < rng.integers(1, 6, size=(len(item_R), 1))
    return item_R, np.where(given_RG, guess_RG, -1)


def image_name(concept: str, image: str) -> str:
    """Name of a source image."""
    return f"{concept}_{image}"
