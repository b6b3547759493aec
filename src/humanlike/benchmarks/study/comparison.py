"""A model beside people, or one observer alone, under any protocol; every fit of all replicates is computed once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from humanlike.benchmarks.protocol import Protocol
from humanlike.benchmarks.seva_comparison import Estimate, Estimator
from humanlike.benchmarks.study.observers import Observer, StudyResamples
from humanlike.stats import condition_model_r2, paired_cells


class Comparison:
    """One model beside people, or one observer alone.

    Args:
        resamples: What is drawn anew.
        model: The model (or people, for the means of their cells).
        people: People; None where only the model's own means are asked for.
    """

    def __init__(self, resamples: StudyResamples, model: Observer, people: Observer | None = None) -> None:
        self.resamples, self.model, self._people = resamples, model, people
        self._remembered: dict[tuple, np.ndarray] = {}

    @property
    def has_people(self) -> bool:
        """Whether there is anything to compare with."""
        return self._people is not None

    @property
    def people(self) -> Observer:
        """People.

        Raises:
            ValueError: Where there are none.
        """
        if self._people is None:
            raise ValueError("an alignment needs people's answers, and this data set has none")
        return self._people

    def cell_mean(self, metric: str, protocol: Protocol) -> Estimate:
        """Mean of a metric over the cells that have it."""
        return self.estimator(protocol).cell_mean(self.model.side(metric, protocol), metric)

    def alignment(self, metric: str, protocol: Protocol) -> Estimate:
        """Adjusted R² of people ~ 1 + model + t + model·t over cells."""
        people, model = (observer.side(metric, protocol) for observer in (self.people, self.model))
        return self.estimator(protocol).alignment(people, model, metric)

    def added_r2(self, metric: str, protocol: Protocol) -> Estimate:
        """What the model adds over the condition."""
        people, model = (observer.side(metric, protocol) for observer in (self.people, self.model))
        return self.estimator(protocol).added_r2(people, model, metric)

    def cells_paired(self, metric: str, protocol: Protocol) -> int:
        """Number of cells that both sides have."""
        return int(paired_cells(*(observer.full(metric, protocol) for observer in (self.people, self.model)))[0])

    def estimator(self, protocol: Protocol) -> Estimator:
        """Estimates as a protocol says, from fits that are remembered."""
        of_people = {} if self._people is None else self._people.fits
        return _RememberingEstimator(self.resamples, protocol, self._remembered, of_people)


class _RememberingEstimator(Estimator):
    """An estimator that computes no fit of the same cells twice.

    Cells are told apart by the identity of their arrays, which observers keep for as long as they live.
    """

    def __init__(
        self,
        resamples: StudyResamples,
        protocol: Protocol,
        remembered: dict[tuple, np.ndarray],
        of_people: dict[tuple[int, int], np.ndarray],
    ) -> None:
        super().__init__(resamples.design, protocol, resamples.of(protocol))
        self._remembered, self._of_people = remembered, of_people

    def _alignment_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        return self._once("alignment", super()._alignment_r2, people_BC, model_BC)

    def _delta_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        both_B = self._once("both", self._condition_model_r2, people_BC, model_BC)
        return both_B - self._condition_r2(people_BC, model_BC)

    def _condition_model_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        return condition_model_r2(people_BC, model_BC, self.design.condition_C)

    def _condition_r2(self, people_BC: np.ndarray, model_BC: np.ndarray) -> np.ndarray:
        if not np.isfinite(model_BC).all():
            return self._once("condition", super()._condition_r2, people_BC, model_BC)
        # The model only says which cells are left out: none here, so that all such models share the fit.
        if (id(people_BC), len(model_BC)) not in self._of_people:
            self._of_people[id(people_BC), len(model_BC)] = super()._condition_r2(people_BC, model_BC)
        return self._of_people[id(people_BC), len(model_BC)]

    def _once(self, name: str, fit: Callable[..., np.ndarray], *cells: np.ndarray) -> np.ndarray:
        key = (name, *map(id, cells))
        if key not in self._remembered:
            self._remembered[key] = fit(*cells)
        return self._remembered[key]
