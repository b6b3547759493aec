"""A model's learning curves and their distance to people's, as a torchmetrics class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from humanlike.metrics.cell_tables import CellMetric, tensor_digest
from humanlike.metrics.functional.arguments import index_vector, require_length, require_tensor
from humanlike.metrics.functional.learning_curve import (
    MSEN_CONVENTIONS,
    binomial_variance,
    sums_from_counts,
)


class LearningCurve(CellMetric):
    """Share of correct choices on every trial of every subtask, and MSE_n against people.

    The states are the correct choices k (S, T) and the sessions n (S,), int64 sums; see `CellMetric`.

    Args:
        num_subtasks: S.
        num_trials: T.
        human_k: (S, T) whole numbers of people's correct choices, or None.
        human_n: (S,) people's sessions, or a whole number for all subtasks; given exactly when `human_k` is.
        kwargs: Passed on to `torchmetrics.Metric`.

    Raises:
        ValueError: If a size is not a whole number ≥ 1, only one of `human_k` and `human_n` is given, or people's
            counts do not fit (see `humanlike.metrics.functional.msen`).

    References:
        Lee and DiCarlo, "Comparing model learning with human learning".

    Example:
        >>> metric = LearningCurve(num_subtasks=2, num_trials=2)
        >>> metric.update(torch.tensor([[False, True], [True, True]]), torch.tensor([0, 0]))
        >>> {name: metric.compute()[name].tolist() for name in ("p_hat", "var_p_hat")}
        {'p_hat': [[0.5, 1.0], [nan, nan]], 'var_p_hat': [[0.25, 0.0], [nan, nan]]}
        >>> metric.empty_cells
        [1]
    """

    higher_is_better = False
    human_k: Tensor | None
    human_n: Tensor | None
    k: Tensor
    n: Tensor

    def __init__(
        self,
        num_subtasks: int,
        num_trials: int,
        human_k: Tensor | None = None,
        human_n: Tensor | int | None = None,
        **kwargs: Any,
    ) -> None:
        if (human_k is None) != (human_n is None):
            raise ValueError("human_k and human_n belong together: give both, or neither")
        sizes = None if human_n is None else torch.as_tensor(human_n)
        given = [x if x is None else tensor_digest(x, name) for x, name in ((human_k, "human_k"), (sizes, "human_n"))]
        super().__init__(num_subtasks, num_trials, tuple(given), **kwargs)
        if human_k is not None:
            if human_k.shape != (num_subtasks, num_trials):
                shape = (num_subtasks, num_trials)
                raise ValueError(f"human_k must have shape {shape} (subtasks, trials), got {tuple(human_k.shape)}")
            binomial_variance(human_k, sizes)  # refuses counts that do not fit, before hours of simulation
        self.register_buffer("human_k", human_k, persistent=False)
        self.register_buffer("human_n", sizes, persistent=False)
        self.add_count("k", num_subtasks, num_trials)
        self.add_count("n", num_subtasks)

    def update(self, correct_BT: Tensor, subtask_B: Tensor) -> None:
        """Add whole sessions.

        Args:
            correct_BT: (B, T) bool or integers 0 and 1: whether the choice on each trial was correct.
            subtask_B: (B,) integer subtask of each session.

        Raises:
            TypeError: If an argument is no tensor, or of a wrong dtype.
            ValueError: If shapes do not fit, an entry is neither 0 nor 1 (sessions of unequal length cannot be padded),
                or a subtask is out of range.
        """
        require_tensor(correct_BT, "correct_BT")
        require_tensor(subtask_B, "subtask_B")
        if correct_BT.is_floating_point() or correct_BT.is_complex():
            raise TypeError(f"correct_BT must be bool or integers 0 and 1, got dtype {correct_BT.dtype}")
        if correct_BT.ndim != 2 or correct_BT.shape[1] != self.num_labels:
            raise ValueError(
                f"correct_BT must be (sessions, {self.num_labels}): whole sessions of equal length, got shape "
                f"{tuple(correct_BT.shape)}"
            )
        bad_BT = (correct_BT != 0) & (correct_BT != 1)
        if bool(bad_BT.any()):
            row, trial = bad_BT.nonzero()[0].tolist()
            told = correct_BT[row, trial].item()
            raise ValueError(f"correct_BT must hold 0 and 1 only; session {row}, trial {trial} is {told}")
        # An empty tensor is a float by default, and an empty update is as good as any.
        subtask_B = index_vector(subtask_B if subtask_B.numel() else subtask_B.long(), "subtask_B", self.num_cells)
        require_length(subtask_B, "subtask_B", len(correct_BT), "correct_BT")
        self._count_rows(len(correct_BT))
        self.k.index_add_(0, subtask_B, correct_BT.long())
        self.n.index_add_(0, subtask_B, torch.ones_like(subtask_B))

    def compute(self) -> dict[str, Tensor]:
        """Curves and scores, float64.

        Returns:
            `p_hat` (S, T) shares of correct choices; `var_p_hat` (S, T) their variance, NaN below two sessions;
            `mean_curve` (T,) mean over subtasks; `accuracy` its mean over trials; and against people `msen` (the
            "paper" convention), `msen_v2`, `msen_paper_text`, `lapse_rate` (of "paper") and `noise_floor`. What there
            is nothing to compute from is NaN: scores and means as soon as a subtask lacks the sessions they need,
            because a mean over the others would be of another benchmark.
        """
        self._note_empty()
        p_ST = self.k.double() / self.n.double()[:, None]
        var_ST = torch.full_like(p_ST, torch.nan)
        known_S = self.n >= 2
        if bool(known_S.any()):
            var_ST[known_S] = binomial_variance(self.k[known_S], self.n[known_S])
        return {
            "p_hat": p_ST,
            "var_p_hat": var_ST,
            "mean_curve": p_ST.mean(dim=0),
            "accuracy": p_ST.mean(),
            **self._scores(bool(known_S.all())),
        }

    def _scores(self, enough_sessions: bool) -> dict[str, Tensor]:
        missing = torch.full((), torch.nan, dtype=torch.float64, device=self.k.device)
        floor = missing
        if self.human_k is not None:
            floor = binomial_variance(self.human_k, self.human_n).mean()
        if self.human_k is None or not enough_sessions:
            scores = dict.fromkeys(("msen", "msen_v2", "msen_paper_text", "lapse_rate"), missing)
            return {**scores, "noise_floor": floor}
        sums = sums_from_counts(self.k, self.n, self.human_k, self.human_n)
        by_convention = {name: sums.msen(switches) for name, switches in MSEN_CONVENTIONS.items()}
        return {
            "msen": by_convention["paper"].value,
            "msen_v2": by_convention["v2"].value,
            "msen_paper_text": by_convention["paper_text"].value,
            "lapse_rate": by_convention["paper"].lapse_rate,
            "noise_floor": floor,
        }

    def _find_empty(self) -> list[int]:
        return (self.n == 0).nonzero().flatten().tolist()

    def extra_repr(self) -> str:
        """Sizes and the empty subtasks, for `repr`."""
        sizes, told = super().extra_repr().rsplit(f"num_labels={self.num_labels}, ", 1)
        sizes = sizes.replace("num_cells", "num_subtasks")
        return f"{sizes}num_trials={self.num_labels}, {told.replace('empty cells', 'empty subtasks')}"
