"""Element-level visual question answering: "is this element drawn?", a judge's answers against people's annotation.

Legend: N sketches, E element columns, G groups of (sketch, element) pairs (classes, or elements of a class). A table of
a group has six counts: annotated absent or present × answered absent, present, or unparseable.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from humanlike.metrics.functional.arguments import (
    INTEGER_DTYPES,
    index_vector,
    require_choice,
    require_length,
    require_tensor,
)

Average = Literal["micro", "macro_class", "macro_element"]
"""What a score is a mean over: nothing (all pairs pooled), classes, or elements of classes."""

ABSENT, PRESENT, UNPARSEABLE, OUTSIDE = 0, 1, 2, 3
"""Codes of judgments: two decisions, an answer that is neither, and a column that is no element of the class."""
CATEGORIES = 6
"""Entries of a table: 3 × annotated present + code of the answer."""


class ElementVQAScores(NamedTuple):
    """Scores of a judge; float64 scalars (with leading dimensions of the tables, if any) unless stated.

    "Present" is the positive class. TP, FP, FN, TN count pairs with an answer; pairs without one are not in them.

    Attributes:
        precision: TP/(TP + FP).
        recall: TP/(TP + FN), sensitivity.
        f1: 2 TP/(2 TP + FP + FN).
        accuracy: (TP + TN)/(TP + FP + FN + TN).
        specificity: TN/(TN + FP): share of absent elements that are called absent.
        balanced_accuracy: Mean of recall and specificity; ½ for a judge that always answers the same.
        present_rate_bias: Share of pairs called present minus share annotated present; above 0 says yes too often.
        always_present_precision: What a judge that always says "present" reaches on the same pairs; its accuracy too.
        always_present_f1: The same for F1.
        f1_gain: f1 - always_present_f1: at 0 or below, the F1 says nothing for the judge.
        accuracy_over_all: Share right of all annotated pairs; a pair without an answer counts as wrong.
        coverage: Share of annotated pairs with an answer that could be read.
        unparseable: int64 number of pairs without one.
        pairs: int64 number of annotated pairs.
        groups: int64 number of groups with an annotated pair.
        skipped: int64 (..., 8) groups left out of the mean because the score is 0/0 there: for precision, recall, f1,
            accuracy, specificity, balanced_accuracy, present_rate_bias and always_present_f1, in this order.
    """

    precision: Tensor
    recall: Tensor
    f1: Tensor
    accuracy: Tensor
    specificity: Tensor
    balanced_accuracy: Tensor
    present_rate_bias: Tensor
    always_present_precision: Tensor
    always_present_f1: Tensor
    f1_gain: Tensor
    accuracy_over_all: Tensor
    coverage: Tensor
    unparseable: Tensor
    pairs: Tensor
    groups: Tensor
    skipped: Tensor


def element_vqa_scores(
    predicted_NE: Tensor,
    annotated_NE: Tensor,
    mask_NE: Tensor | None = None,
    average: Average = "micro",
    class_N: Tensor | None = None,
) -> ElementVQAScores:
    """How well answers "present" and "absent" agree with people's annotation.

    "micro" pools all (sketch, element) pairs. "macro_class" and "macro_element" compute every score in each group and
    average over groups (so F1 is averaged, not computed from averaged precision and recall); groups where a score is
    0/0 are left out of its mean and counted in `skipped`. An element is a column of a class: the same column of two
    classes is two elements; without `class_N` all sketches are of one class.

    The share of present elements is high in such data, so always saying "present" scores well (F1 .784 at the .644 of
    the published benchmark, more than five of its nine models): read F1 beside `always_present_f1`, specificity and
    balanced accuracy.

    Args:
        predicted_NE: (N, E) answers: bool; integers 0, 1 and -1 for an unparseable answer; or floats 0, 1 and NaN for
            one. Unparseable answers are a category of their own, neither absent nor present.
        annotated_NE: (N, E) people's annotation in the same codes; a pair without an annotation is left out.
        mask_NE: (N, E) bool, True for columns that are elements of the sketch's class; all by default.
        average: See above.
        class_N: (N,) class of every sketch, integers ≥ 0; needed for "macro_class".

    Returns:
        `ElementVQAScores`; NaN where there is nothing to divide by.

    Raises:
        TypeError: If an argument is no tensor, or of a wrong dtype.
        ValueError: If shapes do not fit, an entry is none of the codes (sketch and element are named), `average` is
            unknown, or "macro_class" comes without `class_N`.

    References:
        SEA (CVPR 2026), "Element-level commonsense VQA".

    Example:
        >>> said, drawn = torch.tensor([[1, 1, 0, -1]]), torch.tensor([[1, 0, 0, 1]])
        >>> scores = element_vqa_scores(said, drawn)
        >>> scores.precision.item(), scores.recall.item(), scores.unparseable.item(), scores.coverage.item()
        (0.5, 1.0, 1, 0.75)
    """
    if class_N is None:
        if average == "macro_class":
            raise ValueError("average='macro_class' needs class_N, the class of every sketch")
        require_tensor(predicted_NE, "predicted_NE")
        class_N = torch.zeros(len(predicted_NE), dtype=torch.int64, device=predicted_NE.device)
    class_N = index_vector(class_N if class_N.numel() else class_N.long(), "class_N", 2**31)
    # Classes may be any integers; their order is kept.
    classes, class_N = class_N.unique(return_inverse=True)
    table_CE6 = confusion_table(predicted_NE, annotated_NE, mask_NE, class_N, max(1, len(classes)))
    return scores_from_table(table_CE6, average)


def confusion_table(
    predicted_NE: Tensor, annotated_NE: Tensor, mask_NE: Tensor | None, class_N: Tensor, num_classes: int
) -> Tensor:
    """(C, E, 6) int64 counts of pairs by class, element and 3 × annotated present + code of the answer.

    Args:
        predicted_NE: As for `element_vqa_scores`.
        annotated_NE: As for `element_vqa_scores`.
        mask_NE: As for `element_vqa_scores`.
        class_N: (N,) integers in [0, C).
        num_classes: C.

    Raises:
        TypeError: As for `element_vqa_scores`.
        ValueError: As for `element_vqa_scores`.
    """
    said_NE = judgment_codes(predicted_NE, "predicted_NE", mask_NE)
    drawn_NE = judgment_codes(annotated_NE, "annotated_NE", mask_NE)
    if said_NE.shape != drawn_NE.shape:
        raise ValueError(
            f"predicted_NE and annotated_NE must be paired, got shapes {tuple(said_NE.shape)} and "
            f"{tuple(drawn_NE.shape)}"
        )
    class_N = index_vector(class_N if class_N.numel() else class_N.long(), "class_N", num_classes)
    require_length(class_N, "class_N", len(said_NE), "predicted_NE")
    elements = said_NE.shape[1]
    column_E = torch.arange(elements, device=said_NE.device)
    # The int8 codes become int64 with the class and column they are added to.
    entry_NE = ((class_N[:, None] * elements + column_E) * 2 + drawn_NE) * 3 + said_NE
    counted_NE = drawn_NE <= PRESENT
    counts = torch.bincount(entry_NE[counted_NE], minlength=num_classes * elements * CATEGORIES)
    return counts.view(num_classes, elements, CATEGORIES)


def scores_from_table(table_CE6: Tensor, average: Average = "micro") -> ElementVQAScores:
    """`element_vqa_scores` from the counts of `confusion_table`.

    Args:
        table_CE6: (..., C, E, 6) integers; leading dimensions, such as replicates, are kept.
        average: As for `element_vqa_scores`.

    Raises:
        ValueError: If `average` is unknown.

    Example:
        >>> scores_from_table(torch.tensor([[[5, 1, 0, 2, 8, 0]]])).accuracy.item()
        0.8125
    """
    require_choice(average, "average", Average)
    if average == "micro":
        table_G6 = table_CE6.sum(dim=(-3, -2))[..., None, :]
    elif average == "macro_class":
        table_G6 = table_CE6.sum(dim=-2)
    else:
        table_G6 = table_CE6.flatten(-3, -2)
    tn, fp, lost_absent, fn, tp, lost_present = table_G6.unbind(dim=-1)
    drawn, said, answered = tp + fn, tp + fp, tp + fp + fn + tn
    lost = lost_absent + lost_present
    pairs = answered + lost
    recall, specificity, f1 = _ratio(tp, drawn), _ratio(tn, tn + fp), _ratio(2 * tp, said + drawn)
    by_group = {
        "precision": _ratio(tp, said),
        "recall": recall,
        "f1": f1,
        "accuracy": _ratio(tp + tn, answered),
        "specificity": specificity,
        "balanced_accuracy": (recall + specificity) / 2,
        "present_rate_bias": _ratio(said - drawn, answered),
        "always_present_f1": _ratio(2 * drawn, drawn + answered),
    }
    # A group of masked columns alone is no group: it is not "skipped".
    real = pairs > 0
    skipped = torch.stack([(score.isnan() & real).sum(dim=-1) for score in by_group.values()], dim=-1)
    mean = {name: score.nanmean(dim=-1) for name, score in by_group.items()}
    return ElementVQAScores(
        **mean,
        always_present_precision=_ratio(drawn, answered).nanmean(dim=-1),
        f1_gain=mean["f1"] - mean["always_present_f1"],
        accuracy_over_all=_ratio(tp + tn, pairs).nanmean(dim=-1),
        coverage=_ratio(answered, pairs).nanmean(dim=-1),
        unparseable=lost.sum(dim=-1),
        pairs=pairs.sum(dim=-1),
        groups=real.sum(dim=-1),
        skipped=skipped,
    )


def judgment_codes(judgments_NE: Tensor, name: str, mask_NE: Tensor | None = None) -> Tensor:
    """Judgments as int8 codes `ABSENT`, `PRESENT`, `UNPARSEABLE`, and `OUTSIDE` where the mask is False.

    Args:
        judgments_NE: (N, E) bool; integers 0, 1 and -1 (missing); or floats 0, 1 and NaN (missing).
        name: The argument's name, for errors.
        mask_NE: (N, E) bool, True for columns that are elements of the sketch's class. What stands outside is not read.

    Raises:
        TypeError: If an argument is no tensor, or of a wrong dtype.
        ValueError: If the shape is wrong, or an entry inside the mask is none of the codes.
    """
    require_tensor(judgments_NE, name)
    if judgments_NE.ndim != 2:
        raise ValueError(f"{name} must be (sketches, elements), got shape {tuple(judgments_NE.shape)}")
    if judgments_NE.is_floating_point():
        missing_NE = judgments_NE.isnan()
    elif judgments_NE.dtype in INTEGER_DTYPES:
        missing_NE = judgments_NE == -1
    elif judgments_NE.dtype == torch.bool:
        missing_NE = torch.zeros_like(judgments_NE)
    else:
        raise TypeError(f"{name} must be bool, integers or floats, got {judgments_NE.dtype}")
    codes_NE = torch.where(missing_NE, UNPARSEABLE, (judgments_NE == 1).to(torch.int8))
    bad_NE = ~((judgments_NE == 0) | (judgments_NE == 1) | missing_NE)
    if mask_NE is not None:
        require_tensor(mask_NE, "mask")
        if mask_NE.dtype != torch.bool:
            raise TypeError(f"the mask must be bool (True: an element of the class), got {mask_NE.dtype}")
        if mask_NE.shape != judgments_NE.shape:
            raise ValueError(
                f"the mask must have the shape of {name}, {tuple(judgments_NE.shape)}, got {tuple(mask_NE.shape)}"
            )
        codes_NE = torch.where(mask_NE, codes_NE, OUTSIDE)
        bad_NE = bad_NE & mask_NE
    if bool(bad_NE.any()):
        row, column = (int(i) for i in bad_NE.nonzero()[0])
        raise ValueError(
            f"{name} must hold 0 (absent), 1 (present) and -1 or NaN (no answer that could be read); sketch {row}, "
            f"element {column} is {judgments_NE[row, column].item()!r}: turn probabilities into decisions first"
        )
    return codes_NE


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    """Part / whole as float64, NaN for 0/0."""
    return part.double() / whole.double()
