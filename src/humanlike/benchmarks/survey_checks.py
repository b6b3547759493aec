"""Attention checks of a survey: questions that say which answer to give."""

from __future__ import annotations

from humanlike.data.survey import RatingScale, SurveyCheck, SurveyItem
from humanlike.rng import generator


def attention_checks(
    items: tuple[SurveyItem, ...],
    count: int,
    scale: RatingScale | None,
    seed: int = 0,
    *,
    accepting: bool = False,
) -> tuple[SurveyCheck, ...]:
    """Checks with the sketches of questions drawn at random.

    Args:
        items: The survey's questions.
        count: How many checks, at most one a question.
        scale: Of a rating; None: a ranking, whose check asks for an order other than that on the page.
        seed: Global seed.
        accepting: Of an acceptance, whose check asks to accept (1) or to reject (0).

    Raises:
        ValueError: When there are fewer questions than checks.

    Example:
        >>> attention_checks((SurveyItem("t1", ("a", "b", "c")),), 1, None)[0].expected != (0, 1, 2)
        True
    """
    if not 0 <= count <= len(items):
        raise ValueError(f"{count} attention checks among {len(items)} questions; ask for 0 to {len(items)}")
    rng = generator(seed, "survey checks")
    checks = []
    for number, place in enumerate(rng.permutation(len(items))[:count], start=1):
        shown = [items[place].sketch_ids[i] for i in rng.permutation(len(items[place].sketch_ids))]
        if accepting:
            expected = [int(rng.integers(2))]
        elif scale is None:
            expected = [int(i) for i in rng.permutation(len(shown))]
            while expected == sorted(expected):
                expected = [int(i) for i in rng.permutation(len(shown))]
        else:
            expected = [int(rng.choice(range(scale.low, scale.high + 1, scale.step)))]
        checks.append(SurveyCheck(f"check-{number}", tuple(shown), tuple(expected)))
    return tuple(checks)
