"""Training a small network for drawings from scratch: labels and elements together, on jittered pictures.

Shapes: N drawings, B drawings a step, D features, L labels, E most elements of a concept, P (concept, element) pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import affine_grid, binary_cross_entropy_with_logits, cross_entropy, grid_sample

from humanlike.backbones.architectures.sketch_net import SketchNet
from humanlike.backbones.progress import Progress
from humanlike.elements.annotation import annotated_elements
from humanlike.elements.presence_pairs import MISSING, ElementPairs
from humanlike.rng import torch_draws, torch_generator
from humanlike.types import Sketches

STEPS = 1920
THREADS = 1
"""Sums over a batch depend on their number, so it is fixed."""


@dataclass(frozen=True)
class ScratchSettings:
    """How a network for drawings is trained.

    Attributes:
        size: Side of the pictures in pixels.
        width: See `SketchNet`.
        batch_size: Drawings a step.
        steps: Optimiser steps.
        lr: Largest learning rate, of AdamW in one cycle.
        weight_decay: Of AdamW.
        jitter: Strength of random turning (to 8.6°), scaling (88–118%), shift (9% of the side), stretching (7%) and
            mirroring, all times this over 0.6.
        label_smoothing: Of the labels' cross-entropy.
        seed: Of weights, order and jitter.
    """

    size: int = 64
    width: int = 20
    batch_size: int = 32
    steps: int = STEPS
    lr: float = 8e-3
    weight_decay: float = 0.02
    jitter: float = 0.6
    label_smoothing: float = 0.05
    seed: int = 0


def train_sketch_net(
    sketches: Sketches,
    settings: ScratchSettings,
    make: Callable[[int, int], Any] = SketchNet,
    label: str = "training of a critic",
) -> tuple[Any, nn.Linear]:
    """Train a network for drawings on labels and elements together.

    Args:
        sketches: Square pictures with annotated elements.
        settings: How.
        make: Makes the network from the number of labels and `settings.width`; like `SketchNet` it has a `trunk`, a
            `classifier` and `num_features`.
        label: What stands before the progress.

    Returns:
        The network, in evaluation mode, and its head of elements: D features → P pairs.
    """
    ink_NHW = 255 - gray_pictures(sketches)
    label_N = torch.tensor(sketches.target_N)
    pairs = ElementPairs(annotated_elements(sketches))
    target_NE = torch.from_numpy(pairs.targets(sketches))
    column_LE = torch.from_numpy(pairs.pair_KE[pairs.concept_positions(sketches.labels)])
    generator = torch_generator(settings.seed, "scratch", "order")
    with _fixed_arithmetic(settings.seed):
        network = make(len(sketches.labels), settings.width).to(memory_format=torch.channels_last)
        elements = nn.Linear(network.num_features, len(pairs.pairs))
        parameters = [*network.parameters(), *elements.parameters()]
        optimizer = torch.optim.AdamW(parameters, settings.lr, weight_decay=settings.weight_decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.lr, total_steps=settings.steps)
        network.train()
        progress = Progress(settings.steps, label, unit="steps")
        for rows in _batches(len(label_N), settings, generator):
            x = 1 - jittered(ink_NHW[rows, None].float() / 255, settings.jitter, generator)
            f_BD = network.trunk(x.expand(-1, 3, -1, -1))
            loss = cross_entropy(
                network.classifier(f_BD), label_N[rows], label_smoothing=settings.label_smoothing
            ) + _element_loss(elements(f_BD), column_LE[label_N[rows]], target_NE[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            progress.advance(1)
    progress.close()
    return network.eval(), elements


def gray_pictures(sketches: Sketches) -> torch.Tensor:
    """(N, H, W) uint8, 255 white."""
    return torch.from_numpy(np.stack([np.array(sketches.images.load(i).convert("L")) for i in range(len(sketches))]))


def jittered(ink_B1HW: torch.Tensor, strength: float, generator: torch.Generator) -> torch.Tensor:
    """Pictures turned, scaled, stretched, shifted and mirrored at random; what comes from outside is empty (0).

    Args:
        ink_B1HW: Ink, 0 where there is none.
        strength: See `ScratchSettings.jitter`.
        generator: Where randomness comes from.
    """

    def between(low: float, high: float) -> torch.Tensor:
        return torch.rand(len(ink_B1HW), generator=generator) * (high - low) + low

    turn, stretch = between(-0.25 * strength, 0.25 * strength), between(-0.12 * strength, 0.12 * strength).exp()
    scale, side = between(1 - 0.2 * strength, 1 + 0.3 * strength), (between(-1, 1) > 0) * 2.0 - 1
    dx, dy = between(-0.15 * strength, 0.15 * strength), between(-0.15 * strength, 0.15 * strength)
    cos, sin = scale * turn.cos(), scale * turn.sin()
    to_x = torch.stack([cos * side * stretch, -sin, dx], 1)
    to_y = torch.stack([sin * side, cos / stretch, dy], 1)
    grid = affine_grid(torch.stack([to_x, to_y], 1), list(ink_B1HW.shape), align_corners=False)
    return grid_sample(ink_B1HW, grid, align_corners=False)


def _element_loss(logit_BP: torch.Tensor, pair_BE: torch.Tensor, target_BE: torch.Tensor) -> torch.Tensor:
    known_BE = (pair_BE >= 0) & (target_BE != MISSING)
    logit_BE = logit_BP.gather(1, pair_BE.clamp(min=0))
    return binary_cross_entropy_with_logits(logit_BE[known_BE], (target_BE[known_BE] > 0).float())


def _batches(count: int, settings: ScratchSettings, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Rows of every step: the drawings in a new order each time round."""
    size = min(settings.batch_size, count)
    order = torch.empty(0, dtype=torch.int64)
    for _ in range(settings.steps):
        if len(order) < size:
            order = torch.randperm(count, generator=generator)
        rows, order = order[:size], order[size:]
        yield rows


@contextmanager
def _fixed_arithmetic(seed: int) -> Iterator[None]:
    """Torch's threads and global generator (initial weights, dropout) as told, and put back."""
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with torch_draws(seed, "scratch", "weights"):
            yield
    finally:
        torch.set_num_threads(before)
