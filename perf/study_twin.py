"""A study of the size of the published one with many models: what `perf/study.py` measures on and a slow test runs.

It is `bootstrap_study.Study` (sketches, people's guesses, a semantic space) with participants, stroke counts and
models of different skill that find the same concepts hard as people do, each to another degree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from bootstrap_study import SECONDS, Study, image_name

from humanlike.benchmarks.study.models import StudyModel, model_from_probabilities
from humanlike.rng import generator
from humanlike.types import GUESS_COLUMNS, Responses, Sketches

PARADIGMS = ("supervised", "self-supervised", "vision-language", "semi-supervised")


@dataclass(frozen=True)
class NoImages:
    """Stands where pixels are never asked for."""

    size: int

    def __len__(self) -> int:
        return self.size

    def load(self, index: int) -> None:
        """Never called."""
        raise AssertionError("the twin has no pixels")

    def content_hash(self, index: int) -> str:
        """See ImageSource."""
        return str(index)

    def describe(self, index: int) -> str:
        """See ImageSource."""
        return f"item {index}"


@dataclass(frozen=True)
class StudyTwin:
    """The twin.

    Attributes:
        study: Arrays of people's answers.
        data: The same as a data set.
        seed: Seed of everything.
    """

    study: Study
    data: Sketches
    seed: int

    @classmethod
    def synthetic(
        cls, concepts: int = 128, images: int = 16, labels: int = 1854, participants: int = 1709, seed: int = 0
    ) -> StudyTwin:
        """The twin of a given size; the default is the published one."""
        study = Study.synthetic(concepts, images, labels, seed)
        names = tuple(f"label_{i:04d}" for i in range(labels))
        rng = generator(seed, "perf", "study_twin", concepts, images, labels)
        table = _sketches(study, names, rng)
        guesses = np.array([*names, None], dtype=object)[study.guess_RG]  # -1 is the last: no guess
        responses = pd.DataFrame(guesses, columns=list(GUESS_COLUMNS))
        # judgments of a sketch are neighbours in the table, so that nobody judges one twice
        people = rng.permutation(participants)[np.arange(len(study.item_R)) % participants]
        responses.insert(0, "participant", [f"p{i:04d}" for i in people])
        responses.insert(1, "sketch_id", table["sketch_id"].to_numpy()[study.item_R])
        data = Sketches(
            name="study_twin",
            table=table,
            labels=names,
            images=NoImages(len(table)),
            condition_unit="s",
            semantic_space=study.embedding_LD,
            responses=Responses(responses, simulated=True),
            flags=("simulated_participants",),
            source="made up by perf/study_twin.py",
        )
        return cls(study, data, seed)

    def probabilities(self, index: int) -> np.ndarray:
        """(N, L) class probabilities of model `index`: the higher the index, the better and the more like people."""
        study = self.study
        rng = generator(self.seed, "perf", "study_twin", "model", index)
        target_K, concept_N = np.unique(study.target_N, return_inverse=True)
        people_K = np.bincount(concept_N[study.item_R], weights=study.guess_RG[:, 0] == study.target_N[study.item_R])
        judged_K = np.bincount(concept_N[study.item_R])
        share_K = (people_K + 1) / (judged_K + 2)
        ease_K = np.log(share_K / (1 - share_K))
        likeness = 0.2 + 0.04 * index
        ease_K = likeness * (ease_K - ease_K.mean()) / ease_K.std() + (1 - likeness) * rng.normal(size=len(ease_K))
        time_N = np.searchsorted(SECONDS, study.seconds_N)
        logits_NK = rng.normal(size=(len(concept_N), len(target_K)))
        skill_N = 0.8 + 0.1 * index + ease_K[concept_N] + 0.5 * time_N + rng.normal(size=len(concept_N))
        logits_NK[np.arange(len(concept_N)), concept_N] += skill_N
        proba_NL = np.zeros((len(concept_N), study.num_labels))
        proba_NL[:, target_K] = np.exp(logits_NK) / np.exp(logits_NK).sum(axis=1, keepdims=True)
        return proba_NL

    def model(self, index: int) -> StudyModel:
        """Model `index` as a study takes it."""
        info = {"architecture": "made up", "paradigm": PARADIGMS[index % len(PARADIGMS)], "data": "none"}
        return model_from_probabilities(
            f"model_{index:02d}",
            self.data.table["sketch_id"].tolist(),
            self.probabilities(index),
            info=info,
            source="made up by perf/study_twin.py",
        )


def _sketches(study: Study, names: tuple[str, ...], rng: np.random.Generator) -> pd.DataFrame:
    concept = [names[i] for i in study.target_N]
    image = [image_name(c, j) for c, j in zip(concept, study.image_N, strict=True)]
    strokes = 1 + rng.poisson(1.5 + 0.25 * study.seconds_N)
    return pd.DataFrame(
        {
            "sketch_id": [f"{name}_{seconds:02d}" for name, seconds in zip(image, study.seconds_N, strict=True)],
            "concept": concept,
            "condition": study.seconds_N.astype(float),
            "image_id": image,
            "num_strokes": strokes,
        }
    )
