"""Zero-shot classification: an image's embedding against sentences about every label, without any training.

Legend: N items, L labels, Q prompts, D width of the common space.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from humanlike.backbones.clip import published_tags
from humanlike.backbones.clip_text import TextTower
from humanlike.files import sha256_value

PROMPTS = ("a sketch of a {label}", "a line drawing of a {label}", "a doodle of a {label}", "a drawing of a {label}")


class ZeroShot:
    """Probabilities of labels from the cosines between an image and sentences about the labels.

    log p_l = log softmax_l(s · cos(f, t_l)); t_l is the mean over the prompts of the label's vectors of length 1, put
    to length 1 again; s is the model's own logit scale, or one over `temperature`. A low P says that sentences about
    other labels fit better, so P depends on which labels there are.

    Args:
        architecture: open_clip's name; the backbone must be the same model's image tower. A configuration that took it
            from a network outside open_clip gives None or a name that open_clip does not know, which is refused.
        weights: open_clip's tag, the path of a whole model's state dict, or None for random ones.
        prompts: Sentences with `{label}` in the place of the label.
        temperature: What cosines are divided by; None takes the model's own.
        underscores: Whether "_" in a label is written as a blank.
        offline: True: never download.
        seed: Seed of random weights.
        cache_dir: Where vectors of texts are kept.

    Raises:
        ValueError: No prompts, one without `{label}`, a temperature that is not positive, or an architecture that
            open_clip does not know.
        FileNotFoundError: The weights are not on this machine and cannot be fetched.

    References:
        Radford et al. (2021), Section 3.1.4 (prompt ensembles over embeddings).
    """

    reads_class_scores = False

    def __init__(
        self,
        architecture: str | None,
        weights: str | Path | None,
        prompts: Sequence[str] = PROMPTS,
        temperature: float | None = None,
        *,
        underscores: bool = True,
        offline: bool | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
    ) -> None:
        without = [prompt for prompt in prompts if "{label}" not in prompt]
        if isinstance(prompts, str) or not prompts or without:
            raise ValueError(
                f"prompts must be a list of sentences with {{label}} in them, got {list(without) or prompts!r}"
            )
        if temperature is not None and not (temperature > 0 and math.isfinite(temperature)):
            raise ValueError(f"temperature is {temperature}; it must be a positive number, or null for the model's own")
        try:
            published_tags(str(architecture))
        except ValueError as error:
            told = "the backbone names no architecture" if architecture is None else str(error)
            raise ValueError(
                f"{told}: readout=zero_shot asks the text tower of a model of open_clip. Take one as the backbone "
                "(backbone=clip_vit_b32), or set readout.architecture and readout.weights to the model whose image "
                "tower gives the features"
            ) from error
        assert architecture is not None
        self.prompts, self.temperature, self.underscores = tuple(prompts), temperature, underscores
        self.tower = TextTower(architecture, weights, offline=offline, seed=seed, cache_dir=cache_dir)
        self.labels: tuple[str, ...] = ()
        self._text_LD: torch.Tensor | None = None

    @property
    def scale(self) -> float:
        """s, what cosines are multiplied by."""
        return self.tower.logit_scale if self.temperature is None else 1.0 / self.temperature

    def for_labels(self, labels: Sequence[str]) -> ZeroShot:
        """The same readout about these labels, in this order; embeds their sentences.

        Raises:
            ValueError: Fewer than two labels, or two that read the same.
        """
        names = [label.replace("_", " ") if self.underscores else label for label in labels]
        if len(set(names)) < max(len(names), 2):
            twice = next((n for n in names if names.count(n) > 1), None)
            raise ValueError(
                f"zero-shot classification needs two labels or more, each once; got {len(names)}"
                + (f", of which {twice!r} occurs more than once" if twice else "")
            )
        sentences = [prompt.replace("{label}", name) for name in names for prompt in self.prompts]
        t_LQD = self.tower.embed(sentences).reshape(len(names), len(self.prompts), -1)
        bound = object.__new__(ZeroShot)
        bound.__dict__.update(self.__dict__)
        bound.labels, bound._text_LD = tuple(labels), functional.normalize(t_LQD.mean(1), dim=-1)
        return bound

    def log_proba(self, f_BD: torch.Tensor) -> torch.Tensor:
        """(B, L) log probabilities; differentiable with respect to `f_BD`.

        Args:
            f_BD: (B, D) embeddings of the image tower, of any length but 0.

        Raises:
            ValueError: No labels were given (`for_labels`), or another width than the text tower's.
        """
        if self._text_LD is None:
            raise ValueError("zero_shot does not know its labels yet; call for_labels first")
        text_LD = self._text_LD.to(f_BD)
        if f_BD.ndim != 2 or f_BD.shape[1] != text_LD.shape[1]:
            raise ValueError(
                f"zero_shot compares vectors of width {text_LD.shape[1]}, got features of shape {tuple(f_BD.shape)}: "
                f"use the image tower of the same model, backbone.architecture={self.tower.architecture}, at "
                "layer=embedding"
            )
        return torch.log_softmax(self.scale * functional.normalize(f_BD, dim=-1) @ text_LD.T, dim=-1)

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: np.ndarray | None = None
    ) -> np.ndarray:
        """(N, L) probabilities; no item was ever trained on, so `label_N` and `group_N` are not looked at."""
        del label_N, group_N
        if num_labels != len(self.labels):
            raise ValueError(f"zero_shot speaks of {len(self.labels)} labels, the data have {num_labels}")
        return self.predict_proba(f_ND)

    def fit(self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int) -> ZeroShot:
        """Nothing to fit."""
        del f_ND, label_N, num_labels
        return self

    def predict_proba(self, f_ND: np.ndarray) -> np.ndarray:
        """(N, L) float64 probabilities of the labels; see `log_proba`."""
        return self.log_proba(torch.from_numpy(np.asarray(f_ND, np.float64))).exp().numpy()

    def certificate(self) -> dict[str, Any]:
        """What was used: model, prompts, scale, and digests of the weights and the labels."""
        return {
            "readout": "zero_shot",
            "architecture": self.tower.architecture,
            "prompts": list(self.prompts),
            "logit_scale": self.scale,
            "temperature": "the model's own" if self.temperature is None else self.temperature,
            "weights_sha256": self.tower.weights_hash,
            "labels_sha256": sha256_value(list(self.labels)),
        }
