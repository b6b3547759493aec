"""A judge of "is this element drawn?" against people's annotation, as a torchmetrics class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from humanlike.metrics.cell_tables import CellMetric
from humanlike.metrics.functional.arguments import require_choice, require_tensor
from humanlike.metrics.functional.element_vqa import CATEGORIES, Average, confusion_table, scores_from_table


class ElementVQA(CellMetric):
    """Precision, recall, F1 and what they must be read beside, of a judge of elements; see `element_vqa_scores`.

    The state is one int64 table of counts (C, E, 6), which serves all averages.

    Args:
        num_elements: E, the largest number of elements of a class; batches may have fewer columns.
        num_classes: C, for the averages over classes and elements.
        average: "micro", "macro_class" or "macro_element".
        kwargs: Passed on to `torchmetrics.Metric`.

    Raises:
        ValueError: If a size is no whole number ≥ 1, or `average` is unknown.

    References:
        SEA (CVPR 2026), "Element-level commonsense VQA".

    Example:
        >>> metric = ElementVQA(num_elements=4)
        >>> metric.update(torch.tensor([[1, 1, 0, -1]]), torch.tensor([[1, 0, 0, 1]]))
        >>> value = metric.compute()
        >>> value["precision"].item(), value["recall"].item(), value["unparseable"].item()
        (0.5, 1.0, 1)
    """

    higher_is_better = True
    table: Tensor

    def __init__(self, num_elements: int, num_classes: int = 1, average: Average = "micro", **kwargs: Any) -> None:
        super().__init__(num_classes, num_elements, (average,), **kwargs)
        require_choice(average, "average", Average)
        self.average = average
        self.add_count("table", num_classes, num_elements, CATEGORIES)

    def update(
        self,
        predicted_NE: Tensor,
        annotated_NE: Tensor,
        mask_NE: Tensor | None = None,
        class_N: Tensor | None = None,
    ) -> None:
        """Add sketches; arguments and errors as for `element_vqa_scores`.

        Args:
            predicted_NE: (N, E) answers: bool, or 0, 1 and -1 or NaN for an answer that could not be read.
            annotated_NE: (N, E) people's annotation in the same codes.
            mask_NE: (N, E) bool, True for columns that are elements of the sketch's class.
            class_N: (N,) integer class of each sketch; may be left out where there is one class.

        Raises:
            TypeError: If an argument is no tensor, or of a wrong dtype.
            ValueError: If shapes do not fit, an entry is none of the codes or a class is out of range. Nothing is
                added then.
        """
        require_tensor(predicted_NE, "predicted_NE")
        if class_N is None:
            if self.num_cells > 1:
                raise ValueError(f"class_N is needed: there are {self.num_cells} classes")
            class_N = torch.zeros(len(predicted_NE), dtype=torch.int64, device=predicted_NE.device)
        counts_CE6 = confusion_table(predicted_NE, annotated_NE, mask_NE, class_N, self.num_cells)
        elements = counts_CE6.shape[1]
        if elements > self.num_labels:
            raise ValueError(f"predicted_NE has {elements} columns, but num_elements is {self.num_labels}")
        self._count_rows(len(predicted_NE))
        self.table[:, :elements] += counts_CE6

    def compute(self) -> dict[str, Tensor]:
        """The fields of `ElementVQAScores` by name; NaN where nothing was annotated."""
        self._note_empty()
        return scores_from_table(self.table, self.average)._asdict()

    def extra_repr(self) -> str:
        """Sizes, average and the classes without an annotated pair, for `repr`."""
        told = super().extra_repr().replace("num_cells", "num_classes").replace("num_labels", "num_elements")
        return f"average={self.average!r}, {told.replace('empty cells', 'empty classes')}"

    def _find_empty(self) -> list[int]:
        return (self.table.sum(dim=(1, 2)) == 0).nonzero().flatten().tolist()
