"""Tables of generated sketches that pages print."""

from __future__ import annotations

from collections.abc import Mapping

from humanlike.reports.study_observers import Observers
from humanlike.reports.study_tables import TableView, table_view
from humanlike.types import Score

PRINTED: Mapping[str, tuple[str, str]] = {
    "comparison": (
        "What was gained",
        "After less before, with 95% bootstrap intervals over sketches within concepts; pairs stay together where both "
        "sets have the same sketches.",
    ),
    "networks": (
        "Every network at every size",
        "The critic trained (or could train) the generator; the judges did not. Means over sketches, drawn by resvg.",
    ),
    "distances": (
        "Distance from the reference, and diversity",
        "In each judge's responses (Jensen–Shannon, means over concepts) and features (Fréchet, kernel). Fréchet "
        "distances are biased upwards where sketches are fewer than features: compare sets of one size.",
    ),
    "reference_conditions": ("The reference by condition", "Sketches that the critic was not fitted on."),
    "pruned": (
        "Pruned sketches",
        "Strokes are left out one after the other while SEA (of P and the mean probability of presence) rises and P "
        "hardly falls, under the first judge.",
    ),
}
"""Name → title and caption, in the order of the page."""


def generation_tables(score: Score) -> list[TableView]:
    """The further tables that the page of one run prints; none where it is not one of generated sketches."""
    if "generation" not in score.result.details:
        return []
    found = []
    for name, (title, caption) in PRINTED.items():
        table = score.result.tables.get(name)
        if table is not None and len(table):
            shown = table.drop(columns=[c for c in table.columns if c.startswith("svg") or c == "paired"])
            found.append(table_view(f"generation_{name}", title, shown, Observers(), caption))
    return found
