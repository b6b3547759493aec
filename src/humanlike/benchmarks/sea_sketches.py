"""Sketches as SEA sees them: recognition P and visual ratio v of each, and the terms that follow.

Legend: N used items, Q quantities, B replicates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import torch

from humanlike.benchmarks.seva_items import SevaItems
from humanlike.elements.presence import Presence
from humanlike.metrics.functional.sea import SEAParameters, diagnosis_of_terms, sea_terms
from humanlike.stats import image_weights

QUANTITIES = ("sea", "reward", "penalty", "visual_ratio", "recognition", "economy", "gate")
"""What is averaged over sketches."""
_BLOCK = 100


@dataclass(frozen=True, eq=False)
class JudgedSketches:
    """N sketches with what SEA is made of.

    Attributes:
        items: The used items and their cells.
        value_QN: `QUANTITIES` and `z` of every sketch; NaN where v is missing, except recognition.
        diagnosis_N: (N,) index into `DIAGNOSES`, -1 where v is missing.
        elements_N: (N,) E.
        judged_N: (N,) elements with a judgment.
        present_N: (N,) V.
        parameters: The hyperparameters.
    """

    items: SevaItems
    value_QN: Mapping[str, np.ndarray]
    diagnosis_N: np.ndarray
    elements_N: np.ndarray
    judged_N: np.ndarray
    present_N: np.ndarray
    parameters: SEAParameters

    @property
    def scored_N(self) -> np.ndarray:
        """(N,) bool: v is known."""
        return self.diagnosis_N >= 0

    @property
    def zero_v_N(self) -> np.ndarray:
        """(N,) bool: nothing is drawn of what people expect, as far as the judge can see."""
        return self.scored_N & (self.present_N == 0)

    @property
    def missing_N(self) -> np.ndarray:
        """(N,) bool: the concept has elements, but too few of them were judged."""
        return ~self.scored_N & (self.elements_N > 0)


def judged_sketches(
    items: SevaItems, P_N: np.ndarray, presence: Presence, parameters: SEAParameters, min_judged: float
) -> JudgedSketches:
    """Bring recognition and presence together and score every sketch.

    Args:
        items: The used items.
        P_N: (N,) probability of the target.
        presence: Judgments of these sketches, and perhaps of others.
        parameters: Hyperparameters of SEA.
        min_judged: Share of a sketch's elements that must have a judgment, else v is missing.
    """
    ratio = presence.visual_ratio.set_index("sketch_id").loc[items.table["sketch_id"].tolist()]
    v_N = ratio["v"].to_numpy(np.float64)
    enough_N = (ratio["coverage"] >= min_judged).to_numpy() & np.isfinite(v_N)
    P, v = torch.from_numpy(np.asarray(P_N, np.float64)), torch.from_numpy(np.where(enough_N, v_N, 1.0))
    terms = sea_terms(P, v, names=items.table["sketch_id"].tolist(), **asdict(parameters))
    found = {
        "sea": terms.sea, "reward": terms.reward, "penalty": terms.penalty, "visual_ratio": v,
        "economy": terms.u, "gate": terms.g, "z": terms.z,
    }  # fmt: skip
    values = {name: np.where(enough_N, value.numpy(), np.nan) for name, value in found.items()}
    return JudgedSketches(
        items=items,
        value_QN={**values, "recognition": P.numpy()},
        diagnosis_N=np.where(enough_N, diagnosis_of_terms(terms, P, v, parameters).numpy(), -1),
        elements_N=ratio["num_elements"].to_numpy(np.int64),
        judged_N=ratio["num_judged"].to_numpy(np.int64),
        present_N=ratio["num_present"].to_numpy(np.int64),
        parameters=parameters,
    )


def means(value_N: np.ndarray, weight_GN: np.ndarray) -> np.ndarray:
    """(G,) weighted means over the sketches whose value is known; NaN where there is none."""
    known_N = np.isfinite(value_N)
    total_G = weight_GN[:, known_N].sum(1)
    with np.errstate(invalid="ignore"):
        return (weight_GN[:, known_N] @ value_N[known_N]) / total_G


def resampled_means(sketches: JudgedSketches, value_QN: Mapping[str, np.ndarray], replicates: int, seed: int) -> dict:
    """Name → (B,) means under resamples of the source images within their concepts; every mean on the same ones."""
    design = sketches.items.design
    parts: list[dict[str, np.ndarray]] = []
    for start in range(0, replicates, _BLOCK):
        count = min(_BLOCK, replicates - start)
        weight_BN = design.weights_GB(image_weights(design, count, seed, start))[design.slot_N].T
        parts.append({name: means(value_N, weight_BN) for name, value_N in value_QN.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in value_QN}
