"""How alike two sources of elements are, concept by concept: by letters, by lemma, by noun, and by meaning.

Legend: M texts, D width of an encoder's vectors, A and B elements of one concept in the two sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from humanlike.elements.bertscore import Tokens, bertscore
from humanlike.elements.extraction_words import head, normal
from humanlike.elements.prompts import spoken
from humanlike.rng import generator
from humanlike.stats.intervals import Interval, basic

Encoder = Callable[[Sequence[str]], Any]
"""Texts → (M, D) vectors, as an array or a tensor; for example `TextTower(…).embed`."""

KINDS = ("precision", "recall", "f1")


@dataclass(frozen=True)
class ElementComparison:
    """Two sources side by side; precision is the share of a's elements that b has, recall the share of b's that a has.

    Attributes:
        table: One row a shared concept: `concept`, `num_a`, `num_b`, then `exact_…`, `lemma_…` and `head_…`
            precision, recall and f1; with an encoder `soft_…` and `text_cosine`; with CLIP's text tower `clip_cosine`;
            with BERTScore `bertscore_…`.
        only_a: Concepts that only the first source has.
        only_b: Concepts that only the second source has.
        sources: Names of the two.
    """

    table: pd.DataFrame
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    sources: tuple[str, str]

    @property
    def means(self) -> dict[str, float]:
        """Means over shared concepts, every concept counting alike."""
        return {str(k): float(v) for k, v in self.table.drop(columns="concept").mean().items()}

    def intervals(self, replicates: int = 2000, seed: int = 0, level: float = 0.95) -> dict[str, Interval]:
        """Basic bootstrap intervals of the means over concepts, which are drawn with replacement.

        Args:
            replicates: Number of resamples.
            seed: Seed of the resamples, one and the same for every column.
            level: Coverage asked for, in (0, 1).

        Raises:
            ValueError: There are no replicates.
        """
        if replicates < 1:
            raise ValueError(f"intervals need one replicate or more, got {replicates}")
        values_CK = self.table.drop(columns="concept").to_numpy(dtype=np.float64)
        count = len(values_CK)
        drawn_RC = generator(seed, "compare_elements").multinomial(count, np.full(count, 1 / count), size=replicates)
        means_RK = drawn_RC @ values_CK / count
        return {name: basic(mean, means_RK[:, k], level) for k, (name, mean) in enumerate(self.means.items())}


def compare_elements(
    a: Mapping[str, Sequence[str]],
    b: Mapping[str, Sequence[str]],
    encoder: Encoder | None = None,
    clip: Encoder | None = None,
    tokens: Tokens | None = None,
    idf: bool = False,
    element_text: str = "{element}",
    list_text: str = "{elements}",
) -> ElementComparison:
    """Compare two sources over the concepts that both have.

    Soft precision is the mean over A of the largest cosine with an element of B, soft recall the same with A and B
    exchanged, soft F1 their harmonic mean. `text_cosine` and `clip_cosine` are cosines between the vectors of the two
    whole lists. BERTScore is that of the whole lists, a's the candidate.

    Args:
        a: Concept → elements, the source that is judged.
        b: The source that it is held against.
        encoder: Text encoder for the soft scores and the cosine.
        clip: Text tower of CLIP, `TextTower(…).embed`, for its own cosine.
        tokens: Encoder of tokens, `TransformerText(…).tokens`, for BERTScore; see `bertscore`.
        idf: Whether rare tokens weigh more in BERTScore.
        element_text: What is encoded of an element, with {element} and, where wanted, {label}.
        list_text: What is encoded of a list, with {elements} and, where wanted, {label}.

    Raises:
        ValueError: The sources share no concept, a list is empty, or the encoder gives vectors of the wrong number.

    Example:
        >>> found = compare_elements({"owl": ["Wings", "beak"]}, {"owl": ["wing", "beak", "long tail"]})
        >>> [round(found.means[f"{kind}_f1"], 3) for kind in ("exact", "lemma")]
        [0.4, 0.8]
    """
    shared = [concept for concept in a if concept in b]
    if not shared:
        raise ValueError(f"the two sources share no concept: {list(a)[:3]} … and {list(b)[:3]} …")
    empty = [concept for concept in shared if not a[concept] or not b[concept]]
    if empty:
        raise ValueError(f"the list of {empty[0]!r} is empty in a source ({len(empty)} such concepts); leave it out")
    rows = [_by_words(concept, a[concept], b[concept]) for concept in shared]
    if encoder is not None:
        vectors = _Vectors(encoder)
        rows = [
            {**row, **_by_meaning(spoken(c), a[c], b[c], vectors.unit, element_text, list_text)}
            for c, row in zip(shared, rows, strict=True)
        ]
    whole = [[_text(list_text, spoken(c), x[c]) for c in shared] for x in (a, b)]
    if clip is not None:
        unit = _Vectors(clip).unit
        cosines = (unit(whole[0]) * unit(whole[1])).sum(1)
        rows = [{**row, "clip_cosine": float(cosine)} for row, cosine in zip(rows, cosines, strict=True)]
    if tokens is not None:
        scores = bertscore(whole[0], whole[1], tokens, idf)
        rows = [
            {**row, **{f"bertscore_{kind}": score[kind] for kind in KINDS}}
            for row, score in zip(rows, scores, strict=True)
        ]
    names = tuple(str(getattr(x, "source", "unnamed")) for x in (a, b))
    only_a, only_b = tuple(c for c in a if c not in b), tuple(c for c in b if c not in a)
    return ElementComparison(pd.DataFrame(rows), only_a, only_b, (names[0], names[1]))


def _by_words(concept: str, a: Sequence[str], b: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"concept": concept, "num_a": len(a), "num_b": len(b)}
    for name, spelled in (("exact", str.strip), ("lemma", _lemma), ("head", _head)):
        in_a, in_b = {spelled(e) for e in a}, {spelled(e) for e in b}
        both = len(in_a & in_b)
        row |= _named(name, both / len(in_a), both / len(in_b))
    return row


def _lemma(element: str) -> str:
    return normal(element) or element.strip().lower()


def _head(element: str) -> str:
    return head(element) or element.strip().lower()


def _named(name: str, precision: float, recall: float) -> dict[str, float]:
    total = precision + recall
    f1 = 2 * precision * recall / total if total > 0 else 0.0
    return dict(zip((f"{name}_{kind}" for kind in KINDS), (precision, recall, f1), strict=True))


class _Vectors:
    """Unit vectors of texts, each text encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._known = encoder, {}  # type: tuple[Encoder, dict[str, np.ndarray]]

    def unit(self, texts: Sequence[str]) -> np.ndarray:
        """(M, D) vectors of length 1."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            given = self._encoder(new)
            vector_MD = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given, dtype=np.float64)
            if vector_MD.ndim != 2 or len(vector_MD) != len(new):
                raise ValueError(f"the encoder made vectors of shape {vector_MD.shape} of {len(new)} texts")
            length_M1 = np.linalg.norm(vector_MD, axis=1, keepdims=True)
            if not np.isfinite(length_M1).all() or (length_M1 == 0).any():
                raise ValueError("the encoder made a vector that is zero or not finite")
            self._known |= dict(zip(new, vector_MD / length_M1, strict=True))
        return np.stack([self._known[text] for text in texts])


def _by_meaning(
    label: str, a: Sequence[str], b: Sequence[str], unit: Encoder, element_text: str, list_text: str
) -> dict[str, float]:
    sides = [unit([element_text.format(label=label, element=e) for e in side]) for side in (a, b)]
    cosine_AB = sides[0] @ sides[1].T
    whole = unit([_text(list_text, label, side) for side in (a, b)])
    soft = _named("soft", float(cosine_AB.max(1).mean()), float(cosine_AB.max(0).mean()))
    return {**soft, "text_cosine": float(whole[0] @ whole[1])}


def _text(template: str, label: str, elements: Sequence[str]) -> str:
    return template.format(label=label, elements=", ".join(elements))
