"""What a SEA run counts and flags: sketches that could not be read or judged, and those in which nothing was seen."""

from __future__ import annotations

from typing import Any

from humanlike.benchmarks.sea_sketches import JudgedSketches
from humanlike.benchmarks.seva_answers import ModelReading
from humanlike.elements.presence import Presence
from humanlike.types import Features, Sketches


def about_sketches(data: Sketches) -> list[str]:
    """The flags of a data set but that of its people, who are not asked here."""
    return [flag for flag in data.flags if flag != "simulated_participants"]


def counts(data: Sketches, features: Features, sketches: JudgedSketches, presence: Presence) -> dict[str, int]:
    """Numbers of items, judgments and cells for the record.

    Args:
        data: The data set.
        features: Features of what could be read.
        sketches: The sketches as judged.
        presence: The judgments.
    """
    design = sketches.items.design
    return {
        "items_total": len(data),
        "items_used": len(sketches.items),
        "items_failed": len(features.failed),
        "items_scored": int(sketches.scored_N.sum()),
        "items_not_judged": int(sketches.missing_N.sum()),
        "items_without_elements": int((sketches.elements_N == 0).sum()),
        "items_zero_v": int(sketches.zero_v_N.sum()),
        "concepts": design.num_concepts,
        "conditions": design.num_conditions,
        "cells": design.num_cells,
        "judgments": int(presence.table["decision"].notna().sum()),
        "judgments_missing": int(presence.table["decision"].isna().sum()),
    }


def flags(features: Features, sketches: JudgedSketches, reading: ModelReading, presence: Presence) -> list[str]:
    """What must stand next to the scores.

    Args:
        features: Features of what could be read.
        sketches: The sketches as judged.
        reading: What the readout said.
        presence: The judgments.
    """
    failed, zero = len(features.failed), int(sketches.zero_v_N.sum())
    missing, without = int(sketches.missing_N.sum()), int((sketches.elements_N == 0).sum())
    unread = int(presence.table["decision"].isna().sum())
    told: dict[str, Any] = {
        "readout_not_converged": not reading.converged,
        f"folds_reduced:{reading.certificate.get('n_splits')}": reading.certificate.get("n_splits_reduced_from"),
        f"images_failed:{failed}": failed,
        f"zero_v:{zero}": zero,
        f"sketches_not_judged:{missing}": missing,
        f"judgments_missing:{unread}": unread,
        f"sketches_without_elements:{without}": without,
        "single_condition": sketches.items.design.num_conditions == 1,
    }
    return [*(flag for flag, holds in told.items() if holds), *presence.facts.get("flags", ())]
