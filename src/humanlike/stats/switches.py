"""The choices of a protocol that change what an item's answers mean; every one is named in a score's record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args, get_origin, get_type_hints

from humanlike.stats.count_entropy import Estimator

EntropyOver = Literal["pooled", "per_sketch"]
SNPVariant = Literal["paper", "exact"]
NoErrorCell = Literal["one", "missing"]
PeopleAccuracy = Literal["first_guess", "all_labels"]
Answers = Literal["first", "all"]


def _check_choices(record: object) -> None:
    """Every Literal field must hold one of its values."""
    hints = get_type_hints(type(record))
    for f in fields(record):  # type: ignore[arg-type]
        value, allowed = getattr(record, f.name), get_args(hints[f.name])
        if get_origin(hints[f.name]) is Literal and value not in allowed:
            raise ValueError(f"{type(record).__name__}.{f.name} must be one of {list(allowed)}, got {value!r}")


@dataclass(frozen=True)
class ModelSwitches:
    """How a model's answers become cell metrics; accuracy is always the share of hard labels that are the target.

    Attributes:
        entropy: "per_sketch" = mean over the sketches of the entropy of the sketch's probabilities (the published
            analysis); "pooled" = entropy of the cell's hard labels (the paper's text).
        estimator: Estimator of the pooled entropy; "plugin" is the only one for probabilities.
        snp: "exact" = 1 - (mean rank - 1)/(L - 2) over off-target answers; "paper" = area under the published curve.
        no_error_cell: SNP of a cell whose answers leave no off-target one: "missing" (NaN) or "one" (1).
    """

    entropy: EntropyOver = "per_sketch"
    estimator: Estimator = "plugin"
    snp: SNPVariant = "exact"
    no_error_cell: NoErrorCell = "missing"

    def __post_init__(self) -> None:
        _check_choices(self)
        if self.entropy == "per_sketch" and self.estimator != "plugin":
            raise ValueError(
                f"estimator={self.estimator!r} corrects counts, and a model's per_sketch entropy is of probabilities; "
                "use entropy='pooled' or estimator='plugin'"
            )


@dataclass(frozen=True)
class PeopleSwitches:
    """How people's answers become cell metrics.

    Attributes:
        accuracy: "first_guess" = share of a sketch's first guesses that are the target, mean over sketches;
            "all_labels" = share of all labels given in the cell that are the target.
        entropy: "per_sketch" = mean over the sketches of the entropy of the sketch's labels, all guesses; "pooled" = of
            all labels of the cell.
        estimator: Estimator of either entropy.
        snp: As in ModelSwitches.
        snp_answers: "first" = first guesses; "all" = every guess.
        no_error_cell: As in ModelSwitches.
    """

    accuracy: PeopleAccuracy = "first_guess"
    entropy: EntropyOver = "per_sketch"
    estimator: Estimator = "plugin"
    snp: SNPVariant = "exact"
    snp_answers: Answers = "first"
    no_error_cell: NoErrorCell = "missing"

    def __post_init__(self) -> None:
        _check_choices(self)
