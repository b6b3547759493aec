"""Absent-element controls: parts of other things, asked of a judge beside the real ones, which no sketch can show.

A judge that calls them present says yes too easily. What is close in meaning to the concept is no control: a wolf's
muzzle may well be seen in a dog that has no muzzle on its list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from humanlike.elements.extraction_words import normal
from humanlike.elements.lists import shipped
from humanlike.elements.presence import ElementsOf
from humanlike.rng import generator

_LINES = """
band bar base body border bottom bump circle corner crack cross cut dent disc dot drip edge end face
frame fringe groove head highlight hole joint knob lattice letter line loop mark middle neck notch
opening outline pad pattern patch pin plate point ridge ring rim rod root scale scratch seam segment
shadow shell side skin slit spot stalk stem strand string stripe surface tail texture thread tip top
tread tube vein wave weave wedge wrinkle
"""
ANY_LINES = frozenset(_LINES.split())
"""Words for what a few lines of nearly any drawing may pass for; no control is made of them."""
_FAMILIAR = 2


def draw_controls(
    elements: ElementsOf, number: int, seed: int = 0, vocabulary: ElementsOf | None = None
) -> dict[str, tuple[str, ...]]:
    """Concept → elements of other concepts that none of its sketches can be expected to show.

    Left out are words of the concept's own elements (its "front leg" rules out "leg" and "table leg"), every element of
    a concept with which it has a word in common, so that no eye's pupil is asked of an owl, and words for mere lines
    (`ANY_LINES`). Where that leaves too little, having two words in common, or three, is what makes concepts alike.
    Elements of several concepts come before those of one, which may be odd.

    Args:
        elements: Concept → elements that are asked about.
        number: Controls a concept.
        seed: Seed; a concept's controls do not depend on the other concepts' draws.
        vocabulary: Concept → elements to draw from, besides `elements`; None: the lists of this package.

    Raises:
        ValueError: `number` is below 1, or fewer controls than that are left for a concept.

    Example:
        >>> lists = {"owl": ("beak", "wing", "claw"), "duck": ("beak", "wing", "foot"), "cup": ("handle", "saucer")}
        >>> draw_controls(lists, 2, vocabulary={})["owl"]
        ('handle', 'saucer')
    """
    if number < 1:
        raise ValueError(f"controls must be at least 1 a concept, got {number}; 0 or null asks none")
    known: dict[str, Sequence[str]] = {**dict((shipped() if vocabulary is None else vocabulary).items()), **elements}
    words_of = {concept: _words([concept, *row]) for concept, row in known.items()}
    parts_of = {concept: _words(row) - ANY_LINES for concept, row in known.items()}
    count = Counter(e for row in known.values() for e in dict.fromkeys(row))
    pool = {e: words for e in sorted(count) if not (words := _words([e])) & ANY_LINES}
    found = {}
    for concept in elements:
        left: list[str] = []
        for shared in (1, 2, 3):
            alike = [o for o, parts in parts_of.items() if o == concept or len(parts & parts_of[concept]) >= shared]
            taken = set().union(*(words_of[other] for other in alike))
            left = [e for e, words in pool.items() if not words & taken]
            if len(left) >= number:
                break
        else:
            raise ValueError(
                f"{concept}: {len(left)} elements of other concepts are unlike its own, but {number} controls are "
                "asked for; ask for fewer (benchmark.calibration.controls)"
            )
        familiar = [e for e in left if count[e] >= _FAMILIAR]
        chosen = familiar if len(familiar) >= number else left
        order = generator(seed, "absent_controls", concept).permutation(len(chosen))
        found[concept] = tuple(chosen[i] for i in order[:number])
    return found


def beside(elements: ElementsOf, controls: ElementsOf, seed: int = 0) -> dict[str, tuple[str, ...]]:
    """Elements and controls of every concept in one shuffled list, so that no place gives a control away.

    Args:
        elements: Concept → elements.
        controls: Concept → controls.
        seed: Seed of the order.
    """
    merged = {concept: [*row, *controls.get(concept, ())] for concept, row in elements.items()}
    return {
        concept: tuple(row[i] for i in generator(seed, "controls_among", concept).permutation(len(row)))
        for concept, row in merged.items()
    }


def asks_anything(judge: Any) -> bool:
    """Whether a judge can be asked about any element; one that was trained on a list, or reads one, cannot."""
    return bool(getattr(judge, "open_vocabulary", True))


def _words(elements: Sequence[str]) -> set[str]:
    """Words of elements, singular and in lower case."""
    return {word for e in elements for word in (normal(e) or e.lower()).replace("-", " ").replace("_", " ").split()}
