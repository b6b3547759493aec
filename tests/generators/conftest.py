"""Small generators, drawings and a critic that has no network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from humanlike.data.doodles.dataset import doodles
from humanlike.generators.datamodule import StrokeDataModule
from humanlike.generators.decoder import StrokeDecoder
from humanlike.generators.sketch_rnn import SketchRNN
from humanlike.readouts.folds import stratified_group_folds

CONCEPTS = ("airplane", "bench", "lion")


class Reading(NamedTuple):
    log_p_B: torch.Tensor
    presence_logits_BE: torch.Tensor
    mask_BE: torch.Tensor


class LinearCritic(nn.Module):
    """A critic whose opinion is a fixed linear map of the picture at 16 x 16 pixels."""

    def __init__(self, concepts=CONCEPTS, seed=0):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.name, self.concepts = f"linear {seed}", tuple(concepts)
        self.register_buffer("label", torch.randn(256, len(concepts), generator=random) / 4)
        self.register_buffer("element", torch.randn(256, len(concepts), 4, generator=random) / 4)

    def forward(self, x, concepts):
        f = nn.functional.adaptive_avg_pool2d(1 - x.mean(1, keepdim=True), 16).flatten(1)
        at = torch.tensor([self.concepts.index(c) for c in concepts], device=x.device)
        log_p = torch.log_softmax(f @ self.label, 1).gather(1, at[:, None])[:, 0]
        logits = torch.einsum("bd,dke->bke", f, self.element)[torch.arange(len(at)), at]
        return Reading(log_p, logits, torch.ones_like(logits, dtype=torch.bool))


@pytest.fixture
def linear_critic():
    """Makes a critic from a seed."""
    return lambda seed=0, concepts=CONCEPTS: LinearCritic(concepts, seed)


@pytest.fixture(scope="session")
def drawings():
    """48 annotated drawings of three concepts."""
    return doodles(concepts=CONCEPTS, instances=4, judgments=0, variation=0.5)


@pytest.fixture
def datamodule(drawings):
    """Makes a data module with a batch size of 12 by default."""
    fold_N = stratified_group_folds(drawings.target_N, drawings.table["image_id"].to_numpy(), 4)

    def make(batch_size=12, seed=0, fold_N=fold_N):
        return StrokeDataModule(drawings, CONCEPTS, np.array(fold_N), 10, batch_size=batch_size, seed=seed)

    return make


@pytest.fixture
def decoder():
    """Makes a small decoder."""

    def make(**settings):
        return StrokeDecoder(
            CONCEPTS, **({"num_curves": 10, "width": 16, "depth": 1, "heads": 2, "code": 4} | settings)
        )

    return make


@pytest.fixture
def sketch_rnn():
    """Makes a small SketchRNN."""

    def make(**settings):
        small = {"max_steps": 12, "max_curves": 10, "hidden": 16, "encoder_hidden": 8, "code": 4, "components": 3}
        return SketchRNN(CONCEPTS, **(small | settings))

    return make


@pytest.fixture(params=["decoder", "sketch_rnn"])
def small_generator(request, decoder, sketch_rnn):
    """Makes either generator; every test with it is a law of both."""
    return {"decoder": decoder, "sketch_rnn": sketch_rnn}[request.param]
