"""How far a set of generated sketches is from reference sketches, and how diverse it is.

Legend: N and M sketches of two sets, K labels, D features of a judge.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import nn

from humanlike.metrics.functional.divergence import jensen_shannon_distance, jensen_shannon_divergence


class Passed(nn.Module):
    """A feature extractor for features that are extracted already, as torchmetrics' distances take one."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features

    def forward(self, f_BD: torch.Tensor) -> torch.Tensor:
        """What it is given."""
        return f_BD


class Kernel(NamedTuple):
    """Squared maximum mean discrepancy with the polynomial kernel: mean and standard deviation over subsets."""

    mean: float
    std: float


def frechet_distance(f_ND: np.ndarray, reference_MD: np.ndarray) -> float:
    """Fréchet distance of normal distributions fitted to the features, through torchmetrics; NaN below two sketches.

    |μ₁ - μ₂|² + tr(Σ₁ + Σ₂ - 2 (Σ₁Σ₂)^½). With fewer sketches than features it is biased upwards, so compare sets of
    the same size only.
    """
    from torchmetrics.image.fid import FrechetInceptionDistance

    if min(len(f_ND), len(reference_MD)) < 2:
        return float("nan")
    metric = FrechetInceptionDistance(Passed(f_ND.shape[1])).set_dtype(torch.float64)
    metric.update(torch.from_numpy(np.asarray(reference_MD, np.float64)), real=True)
    metric.update(torch.from_numpy(np.asarray(f_ND, np.float64)), real=False)
    return float(metric.compute())


def kernel_distance(
    f_ND: np.ndarray, reference_MD: np.ndarray, subset_size: int = 100, subsets: int = 50, seed: int = 0
) -> Kernel:
    """Kernel distance ((x · y / D + 1)³, unbiased) through torchmetrics; NaN below two sketches.

    Args:
        f_ND: Features.
        reference_MD: Those of the reference.
        subset_size: Sketches of either set in a subset, at most as many as there are.
        subsets: Number of random subsets.
        seed: Of the subsets.
    """
    from torchmetrics.image.kid import KernelInceptionDistance

    size = min(subset_size, len(f_ND), len(reference_MD))
    if size < 2:
        return Kernel(float("nan"), float("nan"))
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.filterwarnings("ignore", message=".*will save all extracted features.*")
        torch.manual_seed(seed)
        metric = KernelInceptionDistance(Passed(f_ND.shape[1]), subsets=subsets, subset_size=size)
        metric.update(torch.from_numpy(np.asarray(reference_MD, np.float64)), real=True)
        metric.update(torch.from_numpy(np.asarray(f_ND, np.float64)), real=False)
        mean, std = metric.compute()
    return Kernel(float(mean), float(std))


def diversity(f_ND: np.ndarray, concepts: Sequence[str]) -> float:
    """Mean Euclidean distance between two sketches of one concept, averaged over concepts with two or more.

    Example:
        >>> diversity(np.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]]), ["a", "a", "b"])
        5.0
    """
    label_N = np.asarray(concepts, dtype=object)
    found = []
    for concept in dict.fromkeys(concepts):
        own = torch.from_numpy(np.asarray(f_ND[label_N == concept], np.float64))
        if len(own) > 1:
            found.append(float(torch.pdist(own).mean()))
    return float(np.mean(found)) if found else float("nan")


def response_divergence(
    p_NK: np.ndarray, concepts: Sequence[str], reference_MK: np.ndarray, reference_concepts: Sequence[str]
) -> pd.DataFrame:
    """Jensen-Shannon distance and divergence of the mean responses, concept by concept.

    Args:
        p_NK: Responses to the sketches: probabilities of labels.
        concepts: Their concepts.
        reference_MK: Responses to reference sketches.
        reference_concepts: Their concepts.

    Returns:
        `concept, n, n_reference, jsd` (distance, √nats), `js_divergence` (nats); concepts without a reference are
            left out.
    """
    own_N, reference_M = np.asarray(concepts, dtype=object), np.asarray(reference_concepts, dtype=object)
    rows = []
    for concept in sorted(set(concepts) & set(reference_concepts)):
        p_K, q_K = (x[at == concept].mean(0) for x, at in ((p_NK, own_N), (reference_MK, reference_M)))
        p_BL, q_BL = torch.from_numpy(p_K)[None], torch.from_numpy(q_K)[None]
        rows.append(
            {
                "concept": concept,
                "n": int((own_N == concept).sum()),
                "n_reference": int((reference_M == concept).sum()),
                "jsd": float(jensen_shannon_distance(p_BL, q_BL)[0]),
                "js_divergence": float(jensen_shannon_divergence(p_BL, q_BL)[0]),
            }
        )
    return pd.DataFrame(rows, columns=["concept", "n", "n_reference", "jsd", "js_divergence"])


def pareto_front(recognition_N: np.ndarray, ratio_N: np.ndarray) -> np.ndarray:
    """(N,) bool: no other sketch is recognised at least as well with at most as many elements, and better in one.

    Example:
        >>> pareto_front(np.array([0.9, 0.5, 0.4]), np.array([0.6, 0.2, 0.4])).tolist()
        [True, True, False]
    """
    order = np.lexsort((-recognition_N, ratio_N))
    front = np.zeros(len(ratio_N), dtype=bool)
    best, best_ratio = -np.inf, np.nan
    for i in order:
        if recognition_N[i] > best:
            best, best_ratio, front[i] = recognition_N[i], ratio_N[i], True
        elif recognition_N[i] == best and ratio_N[i] == best_ratio:
            front[i] = True  # a tie in both is dominated by nobody
    return front
