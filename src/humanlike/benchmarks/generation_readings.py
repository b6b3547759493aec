"""What critics read from sets of sketches: every sketch, every critic, every size of the hard raster.

Legend: N sketches, K labels of a critic, E the most elements of a concept, D features.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.generation_sketches import SketchSet
from humanlike.elements.critic import Critic
from humanlike.metrics.functional.sea import SEAParameters, sea_terms

CRITIC, JUDGE = "critic", "judge"
MEASURES = ("recognition", "visual_ratio", "sea", "accuracy")


@dataclass(frozen=True)
class Readings:
    """One critic's readings of one set at one size.

    Attributes:
        p_NK: (N, K) probabilities of its labels.
        f_ND: (N, D) float32 its features.
        recognition_N: (N,) P of the sketch's own concept.
        visual_ratio_N: (N,) v = V / E, an element counting from probability ½.
        soft_ratio_N: (N,) mean probability of presence, which moves with every stroke.
        present_N: (N,) V.
        elements_N: (N,) E.
        sea_N: (N,) SEA of (P, v).
        top1_N: (N,) position of the likeliest label among its labels.
        correct_N: (N,) bool.
    """

    p_NK: np.ndarray
    f_ND: np.ndarray
    recognition_N: np.ndarray
    visual_ratio_N: np.ndarray
    soft_ratio_N: np.ndarray
    present_N: np.ndarray
    elements_N: np.ndarray
    sea_N: np.ndarray
    top1_N: np.ndarray
    correct_N: np.ndarray


def read(
    critic: Critic,
    canvas_NHW: torch.Tensor,
    concepts: Sequence[str],
    parameters: SEAParameters | None = None,
    batch: int = 64,
) -> Readings:
    """Let a critic look at canvases.

    Args:
        critic: The critic; it must know every concept and its elements.
        canvas_NHW: (N, H, W) uint8, 255 paper.
        concepts: What each is meant to show.
        parameters: Hyperparameters of SEA.
        batch: Canvases in one pass.

    Raises:
        ValueError: The critic knows no such concept, or no elements of it.
    """
    features, logits, masks = [], [], []
    with torch.no_grad():
        for start in range(0, len(canvas_NHW), batch):
            x_BHW = canvas_NHW[start : start + batch].float() / 255
            f_BD = critic.features(x_BHW[:, None].expand(-1, 3, -1, -1))
            logit_BE, mask_BE = critic.presence_logits_of(f_BD, concepts[start : start + batch])
            features.append(f_BD)
            logits.append(logit_BE)
            masks.append(mask_BE)
        f_ND, logit_NE, mask_NE = torch.cat(features), torch.cat(logits).double(), torch.cat(masks)
        p_NK = critic.log_proba_of(f_ND).double().exp()
    p_NK = p_NK / p_NK.sum(1, keepdim=True)
    position_N = np.array([critic.concepts.index(c) if c in critic.concepts else -1 for c in concepts])
    if (position_N < 0).any():
        raise ValueError(f"the critic {critic.name} was fitted without {concepts[int(position_N.argmin())]!r}")
    elements_N = mask_NE.sum(1).numpy()
    present_N = ((logit_NE >= 0) & mask_NE).sum(1).numpy()
    P_N = p_NK.numpy()[np.arange(len(p_NK)), position_N].clip(0, 1)
    v_N = present_N / elements_N
    top1_N = p_NK.argmax(1).numpy()
    return Readings(
        p_NK=p_NK.numpy(),
        f_ND=f_ND.numpy(),
        recognition_N=P_N,
        visual_ratio_N=v_N,
        soft_ratio_N=(logit_NE.sigmoid() * mask_NE).sum(1).numpy() / elements_N,
        present_N=present_N,
        elements_N=elements_N,
        sea_N=sea_terms(P_N, v_N, **asdict(parameters or SEAParameters())).sea.numpy(),
        top1_N=top1_N,
        correct_N=top1_N == position_N,
    )


def with_own_names(networks: Sequence[Critic]) -> list[Critic]:
    """Networks whose names differ, as tables tell them by name: a second one of a name gets a number.

    Example:
        >>> from types import SimpleNamespace as Network
        >>> [n.name for n in with_own_names([Network(name="a"), Network(name="b"), Network(name="a")])]
        ['a', 'b', 'a (2)']
    """
    found: list[Critic] = []
    for network in networks:
        taken, name, number = {n.name for n in found}, network.name, 1
        while name in taken:
            number += 1
            name = f"{network.name} ({number})"
        if name != network.name:
            network = copy(network)
            network.name = name
        found.append(network)
    return found


def readings_table(sketches: SketchSet, critic: Critic, role: str, size: int, readings: Readings) -> pd.DataFrame:
    """One row a sketch: `set, sketch_id, concept, network, role, size`, the measures, `num_present`, `num_elements`."""
    return pd.DataFrame(
        {
            "set": sketches.name,
            "sketch_id": list(sketches.ids),
            "concept": list(sketches.concepts),
            "network": critic.name,
            "role": role,
            "size": size,
            "strokes": sketches.strokes_N,
            "recognition": readings.recognition_N,
            "visual_ratio": readings.visual_ratio_N,
            "soft_ratio": readings.soft_ratio_N,
            "sea": readings.sea_N,
            "accuracy": readings.correct_N.astype(np.float64),
            "top1": [critic.concepts[k] for k in readings.top1_N],
            "num_present": readings.present_N,
            "num_elements": readings.elements_N,
        }
    )


def over_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the sizes: one row a set, network and sketch, in the order in which they came."""
    keys = ["set", "network", "role", "sketch_id", "concept"]
    return table.groupby(keys, sort=False)[[*MEASURES, "soft_ratio", "strokes"]].mean().reset_index()
