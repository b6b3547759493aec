"""Sketch abstraction efficiency of groups of sketches (conditions, classes, generators), as a torchmetrics class."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from humanlike.metrics.cell_tables import CellMetric
from humanlike.metrics.exact_moments import DIGITS, add_moments, means_and_deviations
from humanlike.metrics.functional.arguments import index_vector, require_length, require_tensor
from humanlike.metrics.functional.sea import (
    DIAGNOSES,
    PARAMETER_NAMES,
    SEAParameters,
    diagnosis_of_terms,
    sea_terms,
)
from humanlike.metrics.functional.visual_ratio import VisualRatio, named, visual_ratio

_log = logging.getLogger(__name__)

QUANTITIES = ("sea", "reward", "penalty", "u", "g", "visual_ratio", "recognition")
"""What `compute` gives the mean of and, with `_sd` at the end, the standard deviation of."""


class SketchAbstractionEfficiency(CellMetric):
    """Mean and standard deviation of SEA and of its parts, diagnoses and coverage, group by group.

    Every sketch is scored by itself and the scores are averaged. The states are whole numbers (see
    `humanlike.metrics.exact_moments`), so that order, batch size and number of processes cannot change a bit; see
    `CellMetric` too.

    A sketch whose judgment failed is missing: it is in no mean, and `missing` and `coverage` tell it. Sketches with
    v = 0 are scored as the formula says and counted in `zero_v`, because the formula rewards a drawing (or a judge)
    that shows nothing: look at them before believing a high mean. A sketch whose class has no elements has no score;
    it is counted in `without_elements` and named in the log, its group in `repr`.

    Args:
        num_groups: G, for example the conditions.
        group_names: What the groups are called in sentences; their numbers by default.
        min_judged: Share in (0, 1] of a sketch's elements that must have a judgment, else the sketch is missing.
        kwargs: Hyperparameters by name (`delta=1e-7`; see `SEAParameters`), kept in `hyperparameters` to be written
            beside every score; all others are passed on to `torchmetrics.Metric`.

    Raises:
        ValueError: If a size, share or hyperparameter is out of range, or names do not fit the groups.

    References:
        SEA (CVPR 2026), "Sketch abstraction efficiency".

    Example:
        >>> metric = SketchAbstractionEfficiency(num_groups=2)
        >>> metric.update(torch.tensor([0.9, 0.2]), torch.tensor([[1, 0, 0], [1, 1, -1]]), torch.tensor([0, 0]))
        >>> value = metric.compute()
        >>> [round(x, 4) for x in value["sea"].tolist()], value["coverage"].tolist(), value["efficient"].tolist()
        ([0.9638, nan], [0.5, nan], [1, 0])
    """

    higher_is_better = True
    digits: Tensor
    scored: Tensor
    diagnoses: Tensor
    zero_v: Tensor
    missing: Tensor
    without_elements: Tensor
    elements: Tensor
    judged: Tensor

    def __init__(
        self,
        num_groups: int = 1,
        *,
        group_names: Sequence[str] | None = None,
        min_judged: float = 1.0,
        **kwargs: Any,
    ) -> None:
        hyperparameters = SEAParameters(**{name: kwargs.pop(name) for name in PARAMETER_NAMES if name in kwargs})
        super().__init__(num_groups, 1, (hyperparameters, min_judged), **kwargs)
        if not 0 < min_judged <= 1:
            raise ValueError(f"min_judged must lie in (0, 1], got {min_judged!r}")
        if group_names is not None and len(group_names) != num_groups:
            raise ValueError(f"group_names must name all {num_groups} groups, got {len(group_names)} names")
        self.hyperparameters = hyperparameters
        self.min_judged = min_judged
        self.group_names = None if group_names is None else tuple(map(str, group_names))
        self.add_count("digits", DIGITS, len(QUANTITIES), num_groups)
        self.add_count("diagnoses", len(DIAGNOSES), num_groups)
        for name in ("scored", "zero_v", "missing", "without_elements", "elements", "judged"):
            self.add_count(name, num_groups)

    def update(
        self,
        P_B: Tensor,
        present: Tensor | tuple[Tensor, Tensor],
        group_B: Tensor | None = None,
        mask_BE: Tensor | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        """Add sketches.

        Args:
            P_B: (B,) probabilities of the true class, in [0, 1].
            present: (B, E) judgments or two (B,) tensors (V, E), with missing ones; see `visual_ratio`.
            group_B: (B,) integer group of each sketch; may be left out where there is one group.
            mask_BE: (B, E) bool, True for columns that are elements of the sketch's class.
            names: What the sketches are called in errors and warnings; their row numbers by default.

        Raises:
            TypeError: If an argument is no tensor or of a wrong dtype.
            ValueError: If P is outside [0, 1] or NaN, V > E, a judgment is none of the codes (the sketch is named), a
                group is out of range, or shapes do not fit. Nothing is added then.
        """
        require_tensor(P_B, "P_B")
        if P_B.ndim != 1:
            raise ValueError(f"P_B must have one entry a sketch, got shape {tuple(P_B.shape)}")
        group_B = self._checked_groups(group_B, P_B)
        ratio = visual_ratio(present, mask_BE, min_judged=self.min_judged, names=names)
        require_length(ratio.v_B, "present", len(P_B), "P_B")
        known_B = ~ratio.v_B.isnan()
        # Probabilities of sketches without a judgment are checked too: a NaN there is a fault all the same.
        P_B, v_B = P_B.detach().double(), ratio.v_B
        terms = sea_terms(P_B, torch.where(known_B, v_B, 1.0), names=names, **vars(self.hyperparameters))
        codes_B = diagnosis_of_terms(terms, P_B, v_B, self.hyperparameters)
        values_QB = torch.stack([terms.sea, terms.reward, terms.penalty, terms.u, terms.g, v_B, P_B])

        add_moments(self.digits, group_B[known_B], values_QB[:, known_B])
        self._count_rows(len(P_B))
        self._count_sketches(ratio, known_B, group_B)
        at_N = codes_B[known_B] * self.num_cells + group_B[known_B]
        self.diagnoses.view(-1).index_add_(0, at_N, torch.ones_like(at_N))
        self._tell_without_elements(ratio, group_B, names)

    def compute(self) -> dict[str, Tensor]:
        """What the groups score.

        Returns:
            Each (G,): float64 means `sea`, `reward`, `penalty`, `u`, `g`, `visual_ratio`, `recognition` (P) and, under
            the same names with `_sd`, sample standard deviations (n - 1) over sketches; NaN without a sketch (two for
            a deviation). int64 counts of sketches `scored`, `efficient`, `overdrawn`, `not_recognisable`, `zero_v`,
            `missing`, `without_elements`. float64 `coverage` = scored / (scored + missing) and `judgment_coverage`,
            the share of elements with a judgment.
        """
        self._note_empty()
        mean_QG, deviation_QG = means_and_deviations(self.digits, self.scored)
        counts = {name: getattr(self, name).clone() for name in ("scored", "zero_v", "missing", "without_elements")}
        return {
            **dict(zip(QUANTITIES, mean_QG, strict=True)),
            **{f"{name}_sd": sd_G for name, sd_G in zip(QUANTITIES, deviation_QG, strict=True)},
            **dict(zip(DIAGNOSES, self.diagnoses.clone(), strict=True)),
            **counts,
            "coverage": self.scored.double() / (self.scored + self.missing).double(),
            "judgment_coverage": self.judged.double() / self.elements.double(),
        }

    def extra_repr(self) -> str:
        """Groups, hyperparameters that are not the published ones, empty groups and groups without elements."""
        changed = [
            f"{name}={value:g}"
            for name, value in asdict(self.hyperparameters).items()
            if name == "delta" or value != getattr(SEAParameters(), name)
        ]
        told = [f"num_groups={self.num_cells}", *changed]
        for what, groups in (("empty", self.empty_cells), ("with classes without elements", self._without())):
            if groups:
                told.append(f"groups {what}: {', '.join(self._group_name(g) for g in groups)}")
        return ", ".join(told)

    def _checked_groups(self, group_B: Tensor | None, P_B: Tensor) -> Tensor:
        if group_B is None:
            if self.num_cells > 1:
                raise ValueError(f"group_B is needed: there are {self.num_cells} groups")
            group_B = torch.zeros(len(P_B), dtype=torch.int64, device=P_B.device)
        require_tensor(group_B, "group_B")
        # An empty tensor is a float by default, and an empty update is as good as any.
        group_B = index_vector(group_B if group_B.numel() else group_B.long(), "group_B", self.num_cells)
        require_length(group_B, "group_B", len(P_B), "P_B")
        return group_B

    def _count_sketches(self, ratio: VisualRatio, known_B: Tensor, group_B: Tensor) -> None:
        no_elements_B = ratio.elements_B == 0
        for state, counts_B in (
            (self.scored, known_B.long()),
            (self.zero_v, (known_B & (ratio.present_B == 0)).long()),
            (self.missing, (~known_B & ~no_elements_B).long()),
            (self.without_elements, no_elements_B.long()),
            (self.elements, ratio.elements_B),
            (self.judged, ratio.judged_B),
        ):
            state.index_add_(0, group_B, counts_B)

    def _tell_without_elements(self, ratio: VisualRatio, group_B: Tensor, names: Sequence[str] | None) -> None:
        rows = (ratio.elements_B == 0).nonzero().flatten().tolist()
        if rows:
            first = f"{named(rows[0], names)} of group {self._group_name(int(group_B[rows[0]]))}"
            _log.warning(
                "%d sketches are of a class without elements and have no score, the first is %s; give the class a list",
                len(rows),
                first,
            )

    def _group_name(self, group: int) -> str:
        return str(group) if self.group_names is None else repr(self.group_names[group])

    def _without(self) -> list[int]:
        return self.without_elements.nonzero().flatten().tolist()

    def _find_empty(self) -> list[int]:
        return (self.scored == 0).nonzero().flatten().tolist()
