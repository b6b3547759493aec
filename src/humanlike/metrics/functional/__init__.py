"""The metrics as pure functions over tensors; every formula of the project's scores exists here once."""

from humanlike.metrics.functional.agreement import error_consistency, kappa_from_counts
from humanlike.metrics.functional.divergence import (
    divergence_rank,
    jensen_shannon_distance,
    jensen_shannon_divergence,
    pairwise_jensen_shannon_distance,
)
from humanlike.metrics.functional.element_vqa import ElementVQAScores, element_vqa_scores
from humanlike.metrics.functional.learning_curve import (
    MSEN_CONVENTIONS,
    CurveSums,
    MSEn,
    MSEnSwitches,
    binomial_variance,
    fit_lapse_rate,
    msen,
)
from humanlike.metrics.functional.neighbour_preference import semantic_neighbour_preference, semantic_ranks
from humanlike.metrics.functional.response import response_entropy, row_entropy, top1_accuracy
from humanlike.metrics.functional.sea import (
    DIAGNOSES,
    SEAParameters,
    SEATerms,
    diagnosis,
    sea,
    sea_terms,
)
from humanlike.metrics.functional.visual_ratio import VisualRatio, visual_ratio

__all__ = [
    "DIAGNOSES",
    "MSEN_CONVENTIONS",
    "CurveSums",
    "ElementVQAScores",
    "MSEn",
    "MSEnSwitches",
    "SEAParameters",
    "SEATerms",
    "VisualRatio",
    "binomial_variance",
    "diagnosis",
    "divergence_rank",
    "element_vqa_scores",
    "error_consistency",
    "fit_lapse_rate",
    "jensen_shannon_distance",
    "jensen_shannon_divergence",
    "kappa_from_counts",
    "msen",
    "pairwise_jensen_shannon_distance",
    "response_entropy",
    "row_entropy",
    "sea",
    "sea_terms",
    "semantic_neighbour_preference",
    "semantic_ranks",
    "top1_accuracy",
    "visual_ratio",
]
