"""A network's own ImageNet classifier as a readout: class scores → a decision among a few categories.

Legend: N items, I ImageNet classes, L labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.files import sha256_value


class ImageNetHead:
    """Probabilities of categories from the scores (logits) of ImageNet's classes; nothing is trained.

    A category's score is the mean probability of its classes, s_l = mean_{i ∈ l} softmax(z)_i, and the decision is the
    category with the highest one. Scores are divided by their sum, which changes no decision, so that a row is a
    distribution over the labels.

    Args:
        mapping: Category → class indices, or a JSON file with it. None: nothing can be read (a model's recorded answers
            need no readout).
        num_classes: I, the number of classes the network must have.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A category is empty, or an index lies outside 0 … I-1 or in two categories.

    References:
        Geirhos et al. (2018), "Generalisation in humans and deep neural networks", Section 2.4 (16-class ImageNet).

    Example:
        >>> head = ImageNetHead({"cat": [0, 1], "dog": [2]}, num_classes=4).for_labels(["dog", "cat"])
        >>> z_NI = np.log([[0.2, 0.4, 0.1, 0.3]])
        >>> head.predict_proba(z_NI).round(3).tolist()
        [[0.25, 0.75]]
    """

    def __init__(
        self, mapping: str | Path | Mapping[str, Sequence[int]] | None = None, num_classes: int = 1000
    ) -> None:
        self.mapping = {} if mapping is None else _checked(_read(mapping), num_classes)
        self.num_classes = num_classes
        self.labels: tuple[str, ...] = tuple(sorted(self.mapping))

    @property
    def reads_class_scores(self) -> bool:
        """True: the layer to read is the network's classifier. Raises ValueError where no mapping says how."""
        if not self.mapping:
            raise ValueError(
                "imagenet_head needs readout.mapping, a JSON file {category: [ImageNet class indices]}; for labels "
                "that are no groups of ImageNet classes train a readout instead: readout=logistic"
            )
        return True

    def for_labels(self, labels: Sequence[str]) -> ImageNetHead:
        """The same readout with columns in the order of `labels`.

        Raises:
            ValueError: When a label has no classes.
        """
        unknown = [label for label in labels if label not in self.mapping]
        if unknown:
            raise ValueError(
                f"{len(unknown)} label(s) have no ImageNet classes in the mapping: {unknown[:5]}; it has "
                f"{', '.join(sorted(self.mapping)[:20])}; use readout=logistic for other labels"
            )
        bound = ImageNetHead({label: self.mapping[label] for label in labels}, self.num_classes)
        bound.labels = tuple(labels)
        return bound

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: np.ndarray | None = None
    ) -> np.ndarray:
        """(N, L) probabilities; no item was ever trained on, so `label_N` and `group_N` are not looked at."""
        del label_N, group_N
        if num_labels != len(self.labels):
            raise ValueError(f"the mapping has {len(self.labels)} categories, the data {num_labels} labels")
        return self.predict_proba(f_ND)

    def fit(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> ImageNetHead:
        """Nothing to fit."""
        del f_ND, label_N, num_labels
        return self

    def predict_proba(self, f_ND: np.ndarray) -> np.ndarray:
        """(N, L) float64 probabilities of the labels; rows sum to 1.

        Args:
            f_ND: (N, I) class scores before the softmax.

        Raises:
            ValueError: When there are not I columns.
        """
        assert self.reads_class_scores
        z_NI = np.asarray(f_ND, np.float64)
        if z_NI.ndim != 2 or z_NI.shape[1] != self.num_classes:
            raise ValueError(
                f"imagenet_head reads the scores of {self.num_classes} ImageNet classes, got features of shape "
                f"{z_NI.shape}: the backbone has no such head, or the layer is another one; use layer=null, a backbone "
                "with an ImageNet-1k head, or readout=logistic"
            )
        known = np.concatenate([self.mapping[label] for label in self.labels])
        # The softmax's denominator cancels; the largest score of a class that counts keeps the rest from underflowing.
        e_NI = np.exp(np.minimum(z_NI - z_NI[:, known].max(1, keepdims=True), 0.0))
        p_NL = np.stack([e_NI[:, self.mapping[label]].mean(1) for label in self.labels], axis=1)
        return p_NL / p_NL.sum(1, keepdims=True)

    def certificate(self) -> dict[str, Any]:
        """What was used: number of categories and classes, and a digest of the mapping."""
        classes = sum(len(indices) for indices in self.mapping.values())
        return {
            "readout": "imagenet_head",
            "categories": len(self.labels),
            "classes": classes,
            "mapping_sha256": sha256_value(self.mapping),
        }


def _read(mapping: str | Path | Mapping[str, Sequence[int]]) -> Mapping[str, Sequence[int]]:
    if isinstance(mapping, Mapping):
        return mapping
    file = Path(mapping).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"imagenet_head: there is no mapping {file}, a JSON file {{category: [indices]}}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{file} must hold an object {{category: [indices]}}, got a {type(content).__name__}")
    return content


def _checked(mapping: Mapping[str, Sequence[int]], num_classes: int) -> dict[str, list[int]]:
    owner: dict[int, str] = {}
    for label, indices in mapping.items():
        if not isinstance(indices, list | tuple) or not indices:
            raise ValueError(f"the mapping of {label!r} must be a list of class indices, got {indices!r}")
        for i in indices:
            if not isinstance(i, int) or not 0 <= i < num_classes:
                raise ValueError(f"the mapping of {label!r} holds {i!r}; indices lie in 0 … {num_classes - 1}")
            if i in owner:
                raise ValueError(f"class {i} stands in two categories or twice in one: {owner[i]!r} and {label!r}")
            owner[i] = str(label)
    if len(mapping) < 2:
        raise ValueError(f"a decision needs at least two categories, the mapping has {list(mapping)}")
    return {str(label): [int(i) for i in indices] for label, indices in mapping.items()}
