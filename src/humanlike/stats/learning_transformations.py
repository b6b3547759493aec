"""Accuracy after one view by kind of transformation, levels averaged: a model beside people, with a test.

Legend: C conditions (a transformation at a level), B replicates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from humanlike.stats.intervals import basic
from humanlike.stats.learning_one_shot import OneShotPeople, OneShotScore
from humanlike.stats.learning_phases import bootstrap_test


def transformation_means(
    score: OneShotScore, people: OneShotPeople, transformation_C: Sequence[str], level: float = 0.95
) -> pd.DataFrame:
    """Mean accuracy over the levels of each transformation.

    Args:
        score: Of one model.
        people: What it was compared with.
        transformation_C: (C,) transformation of each condition.
        level: Coverage of the basic intervals.

    Returns:
        One row a transformation, in the order of its first condition: `transformation, levels, accuracy, ci_low,
        ci_high, accuracy_people, people_ci_low, people_ci_high, difference` (model less people), `difference_ci_low,
        difference_ci_high, p_value` (bootstrap test of no difference, two-sided, not adjusted).

    Raises:
        ValueError: If the conditions differ in number.

    References:
        Lee and DiCarlo, Figure 7C.
    """
    kinds = np.asarray(transformation_C, dtype=str)
    if not len(kinds) == len(score.p_C) == len(people.p_C):
        raise ValueError(
            f"{len(kinds)} transformations for {len(score.p_C)} conditions of the model and {len(people.p_C)} of people"
        )
    rows = []
    for kind in dict.fromkeys(kinds):
        inside = kinds == kind
        model = float(score.p_C[inside].mean()), score.replicate_BC[:, inside].mean(axis=1)
        person = float(people.p_C[inside].mean()), people.replicate_BC[:, inside].mean(axis=1)
        difference = model[0] - person[0], model[1] - person[1]
        row: dict[str, object] = {"transformation": str(kind), "levels": int(inside.sum())}
        sides = {
            ("accuracy", ""): model,
            ("accuracy_people", "people_"): person,
            ("difference", "difference_"): difference,
        }
        for (name, start), (value, drawn_B) in sides.items():
            interval = basic(value, drawn_B, level)
            row |= {name: value, f"{start}ci_low": interval.low, f"{start}ci_high": interval.high}
        usable_B = difference[1][np.isfinite(difference[1])]
        rows.append(row | {"p_value": bootstrap_test(difference[0], usable_B)["p_two_sided"]})
    return pd.DataFrame(rows)
