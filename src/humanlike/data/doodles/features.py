"""The demo's semantic space: hand-written features of what each concept is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanlike.data.doodles.concept import Concept

KIND_WEIGHT = 2.0
KINDS = (
    "animal", "plant", "food", "furniture", "home", "vehicle", "tool", "instrument", "clothing", "electronic",
    "military", "sport",
)  # fmt: skip
"""Features that say what kind of thing it is; they weigh more than features of shape, matter and use."""


def feature_names(concepts: Sequence[Concept]) -> tuple[str, ...]:
    """All features of `concepts`, sorted; the columns of the semantic space."""
    return tuple(sorted({word for concept in concepts for word in concept.features.split()}))


def semantic_space(concepts: Sequence[Concept]) -> np.ndarray:
    """(L, F) float64, one row a concept: `KIND_WEIGHT` for a kind it belongs to, 1 for any other feature, 0 elsewhere.

    Only features that tell concepts apart matter: neighbours by cosine share kinds and features.

    Raises:
        ValueError: When a concept has no feature or two concepts have the same ones.
    """
    names = feature_names(concepts)
    column = {name: f for f, name in enumerate(names)}
    space = np.zeros((len(concepts), len(names)))
    seen: dict[frozenset[str], str] = {}
    for row, concept in zip(space, concepts, strict=True):
        words = frozenset(concept.features.split())
        if not words:
            raise ValueError(f"the concept {concept.name!r} has no features; give it at least one")
        if words in seen:
            raise ValueError(
                f"the concepts {seen[words]!r} and {concept.name!r} have the same features; tell them apart"
            )
        seen[words] = concept.name
        for word in words:
            row[column[word]] = KIND_WEIGHT if word in KINDS else 1.0
    return space


def cosine_similarity(space_LF: np.ndarray) -> np.ndarray:
    """(L, L) cosine of every pair of rows."""
    unit = space_LF / np.linalg.norm(space_LF, axis=1, keepdims=True)
    return np.clip(unit @ unit.T, -1.0, 1.0)
