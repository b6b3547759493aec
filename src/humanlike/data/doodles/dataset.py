"""`doodles`, the embedded demo data set: sketches, their elements, a semantic space, and simulated participants."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np
import pandas as pd

from humanlike.data.doodles.catalogue import CONCEPTS
from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.features import semantic_space
from humanlike.data.doodles.images import DoodleImages
from humanlike.data.doodles.participants import Observer, simulate_responses
from humanlike.data.doodles.program import progress
from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.data.render import Renderer
from humanlike.types import Sketches

CONDITIONS_S = (4.0, 8.0, 16.0, 32.0)


def doodles(
    concepts: Sequence[str] | int | None = None,
    instances: int = 16,
    conditions: Sequence[float] = CONDITIONS_S,
    judgments: int = 13,
    seed: int = 0,
    size: int = 256,
    stroke_width: float = DEFAULT_WIDTH,
    variation: float = 1.0,
    observer: Observer | None = None,
) -> Sketches:
    """The embedded demo: doodles made by stroke programs under time limits, and *simulated* people who name them.

    Nothing is read or downloaded, images are rendered when asked for, and every item depends on the seed, its concept,
    instance and time limit only: a smaller data set is a part of a larger one.

    Args:
        concepts: Names of concepts, or how many (evenly spread over the alphabet), or None for all 48.
        instances: Exemplars a concept; its conditions share proportions, pose and `image_id`.
        conditions: Time limits in seconds.
        judgments: Simulated judgments a sketch; 0 gives a data set without people.
        seed: Seed of drawings and simulated people.
        size: Side of the images in pixels.
        stroke_width: Pen width as a fraction of the side.
        variation: How much the people who draw differ, on the scale of `Drawers`: 0 = everyone draws tidily and alike,
            1 = as different people do; up to 2.
        observer: The simulated people's perception; default `Observer()`.

    Returns:
        A data set with the tables `elements` (ground truth, one row a sketch and element of its concept) and
        `responses` (`simulated=True`), the column `num_strokes`, and the flag "simulated_participants".

    Raises:
        ValueError: For unknown or fewer than two concepts, and numbers out of range.

    Example:
        >>> data = doodles(concepts=["lion", "taxi"], instances=2, judgments=12)
        >>> len(data), data.labels, data.flags
        (16, ('lion', 'taxi'), ('simulated_participants',))
    """
    for name, value, least in (("instances", instances, 1), ("judgments", judgments, 0)):
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")
    if not 0 <= variation <= 2:
        raise ValueError(f"variation must lie between 0 and 2, got {variation}")
    chosen = _chosen(concepts)
    seconds = _seconds(conditions)
    address = tuple((c, i, t) for c in range(len(chosen)) for i in range(instances) for t in seconds)
    images = DoodleImages(chosen, address, int(seed), Renderer(size=size), stroke_width, float(variation))
    table = _table(images)
    data = Sketches(
        name="doodles",
        table=table,
        labels=tuple(concept.name for concept in chosen),
        images=images,
        condition_unit="s",
        semantic_space=semantic_space(chosen),
        elements=_elements(images, table["sketch_id"].to_numpy()),
        source="doodles drawn by stroke programs of this package (Apache-2.0); people are simulated",
    )
    if judgments == 0:
        return data
    return simulate_responses(data, judgments, int(seed), observer or Observer())


def _chosen(concepts: Sequence[str] | int | None) -> tuple[Concept, ...]:
    if concepts is None:
        return CONCEPTS
    by_name = {concept.name: concept for concept in CONCEPTS}
    if isinstance(concepts, int):
        if not 2 <= concepts <= len(CONCEPTS):
            raise ValueError(f"concepts, as a number, must lie between 2 and {len(CONCEPTS)}, got {concepts}")
        return tuple(CONCEPTS[i * len(CONCEPTS) // concepts] for i in range(concepts))
    if isinstance(concepts, str):
        raise ValueError(f"concepts must be a list of names, a number or None, got the text {concepts!r}")
    for name in concepts:
        if name not in by_name:
            near = difflib.get_close_matches(str(name), by_name, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(by_name)}"
            raise ValueError(f"there is no doodle of {name!r}; {hint}")
    unique = set(concepts)
    if len(unique) < 2 or len(unique) < len(concepts):
        raise ValueError(f"concepts must name two or more different doodles, got {list(concepts)}")
    return tuple(concept for concept in CONCEPTS if concept.name in unique)


def _seconds(conditions: Sequence[float]) -> tuple[float, ...]:
    seconds = tuple(float(t) for t in conditions)
    if not seconds or len(set(seconds)) < len(seconds):
        raise ValueError(f"conditions must be one or more different time limits in seconds, got {list(conditions)}")
    for t in seconds:
        progress(t)
    return seconds


def _table(images: DoodleImages) -> pd.DataFrame:
    names = [images.concepts[c].name for c, _, _ in images.address]
    ids = [f"{name}-{i:02d}" for name, (_, i, _) in zip(names, images.address, strict=True)]
    seconds = [t for _, _, t in images.address]
    return pd.DataFrame(
        {
            "sketch_id": [f"{i}@{t:g}s" for i, t in zip(ids, seconds, strict=True)],
            "concept": names,
            "condition": seconds,
            # Doodles of another seed are other sources: what was trained on one seed has not seen those of another.
            "image_id": [f"seed{images.seed}-{i}" if images.seed else i for i in ids],
            "num_strokes": [images.num_strokes(i) for i in range(len(images))],
        }
    )


def _elements(images: DoodleImages, sketch_ids: np.ndarray) -> pd.DataFrame:
    names = [images.concepts[c].elements for c, _, _ in images.address]
    return pd.DataFrame(
        {
            "sketch_id": np.repeat(sketch_ids, [len(n) for n in names]),
            "element": [element for row in names for element in row],
            "drawn": np.concatenate([images.drawn_elements(i) for i in range(len(images))]),
        }
    )
