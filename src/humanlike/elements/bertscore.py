"""BERTScore (Zhang et al., ICLR 2020): two texts compared token by token, by the cosines of contextual vectors.

Legend: A tokens of the candidate, B tokens of the reference.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from humanlike.elements.text_encoders import TokenVectors

Tokens = Callable[[Sequence[str]], list[TokenVectors]]
"""Texts → tokens with vectors; for example `TransformerText(…).tokens`."""


def bertscore(
    candidates: Sequence[str], references: Sequence[str], tokens: Tokens, idf: bool = False
) -> list[dict[str, float]]:
    """Precision, recall and F1 of pairs of texts, without rescaling by a baseline.

    P is the mean over the candidate's tokens, R over the reference's, of the largest cosine with a token of the other;
    F1 = 2PR/(P+R). As in the package `bert-score`, tokens of start and end can be matched but do not count in the
    means; with `idf` a token weighs log((M+1)/(n+1)), n of the M references holding it.

    Args:
        candidates: Texts that are judged.
        references: What each is held against.
        tokens: The encoder.
        idf: Whether rare tokens weigh more.

    Returns:
        One dict a pair: precision, recall, f1.

    Raises:
        ValueError: The numbers of texts differ, or no token of a text weighs anything.
    """
    if len(candidates) != len(references) or not candidates:
        raise ValueError(f"BERTScore compares pairs of texts; got {len(candidates)} and {len(references)}")
    known = list(dict.fromkeys([*candidates, *references]))
    read = dict(zip(known, tokens(known), strict=True))
    weight = _idf([read[r] for r in references]) if idf else None
    return [_scored(read[c], read[r], weight, (c, r)) for c, r in zip(candidates, references, strict=True)]


def _idf(references: Sequence[TokenVectors]) -> Callable[[int], float]:
    """Token → its weight."""
    holding = Counter(token for text in references for token in set(text.ids_T.tolist()))
    return lambda token: math.log((len(references) + 1) / (holding[token] + 1))


def _scored(
    a: TokenVectors, b: TokenVectors, weight: Callable[[int], float] | None, texts: tuple[str, str]
) -> dict[str, float]:
    unit_a, unit_b = (t.vectors_TD / np.linalg.norm(t.vectors_TD, axis=1, keepdims=True) for t in (a, b))
    cosine_AB = unit_a @ unit_b.T
    sides = []
    for side, best, text in ((a, cosine_AB.max(1), texts[0]), (b, cosine_AB.max(0), texts[1])):
        counts = np.array([1.0 if weight is None else weight(int(token)) for token in side.ids_T])
        counts = np.where(side.special_T, 0.0, counts)
        if counts.sum() <= 0:
            raise ValueError(f"no token of {text[:60]!r} weighs anything: it is empty, or all texts hold the same ones")
        sides.append(float(best @ counts / counts.sum()))
    precision, recall = sides
    total = precision + recall
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / total if total > 0 else 0.0}
