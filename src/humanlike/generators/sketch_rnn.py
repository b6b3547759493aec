"""A class-conditional SketchRNN: a variational autoencoder of pen movements that can be trained through its drawings.

Legend: B drawings, T steps, H size of the decoder, Z size of the code, M components of the mixture, C concepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax, one_hot
from torch.optim import Optimizer

from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.generators.datamodule import STEPS_A_CURVE, PenBatch, pen_movements
from humanlike.generators.drawn import Drawn, different_names
from humanlike.generators.pretrain_table import CurveBatch
from humanlike.generators.sketch_rnn_mixture import Mixture, mixture_log_prob, mixture_of, mixture_sample
from humanlike.rng import generator, torch_draws

DOWN, UP, END = 0, 1, 2
"""States of the pen after a movement."""


class Movements(NamedTuple):
    """What the network says at every step of drawings of its own.

    Attributes:
        mixture: Of offsets, (B, T, M, …), in the network's units.
        pen_logit_BT3: (B, T, 3).
        alive_BT: (B, T) bool, steps up to the first end.
    """

    mixture: Mixture
    pen_logit_BT3: torch.Tensor
    alive_BT: torch.Tensor


class SketchRNN(pl.LightningModule):
    """Concept and code z → pen movements, step after step.

    A bidirectional LSTM reads a drawing (dx, dy, pen state one-hot) into a normal distribution of z; an LSTM that is
    given z, the concept and the last movement says the next: a mixture of bivariate normal distributions of the offset
    and a categorical of the pen's state. The loss, in nats a step, is

        (1/T) Σ_t [-log p(offset_t) · (t before the end) - log p(pen_t)] + w_kl · max(KL / Z, KL_min).

    Drawing reparametrises: offsets carry gradients to means, scales and correlations of the chosen components; whether
    a movement leaves ink carries that of the pen's probabilities (straight through, see `Drawn.for_training`); a
    movement after the end leaves none. Pen movements become straight curves; those of one stroke share a number.

    Args:
        concepts: What it can draw.
        max_steps: T of drawings made.
        max_curves: Curves that drawings are fitted with before they become movements; see `StrokeDataModule`.
        hidden: H.
        encoder_hidden: Size of each direction of the encoder.
        code: Z.
        components: M.
        kl_weight: w_kl.
        kl_min: Nats a dimension below which the code costs nothing.
        temperature: τ of drawing.
        scale: Canvas sides that one unit of the network is; offsets of about this size are common.
        pen: Pen width, a fraction of the canvas side.
        optimizer: None: Adam, learning rate 1e-3.
        seed: Of the initial weights and the noise of pre-training.

    Raises:
        ValueError: For no concept, or a temperature outside (0, 1].

    References:
        Ha and Eck, A Neural Representation of Sketch Drawings, ICLR 2018.
    """

    batches_seen: torch.Tensor

    def __init__(
        self,
        concepts: Sequence[str],
        max_steps: int = 64,
        max_curves: int = 24,
        hidden: int = 192,
        encoder_hidden: int = 96,
        code: int = 32,
        components: int = 10,
        kl_weight: float = 0.05,
        kl_min: float = 0.2,
        temperature: float = 0.4,
        scale: float = 0.1,
        pen: float = DEFAULT_WIDTH,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if not 0 < temperature <= 1:
            raise ValueError(f"temperature must lie in (0, 1], got {temperature}")
        self.concepts = different_names(concepts)
        self._make_optimizer = optimizer or partial(torch.optim.Adam, lr=1e-3)
        self.save_hyperparameters(ignore=["optimizer"])
        self.max_steps, self.num_curves, self.code, self.components = max_steps, max_curves, code, components
        self.kl_weight, self.kl_min, self.temperature = kl_weight, kl_min, temperature
        self.scale, self.pen, self.seed, self.hidden = scale, pen, seed, hidden
        with torch_draws(seed, "sketch_rnn", "weights"):
            self.concept = nn.Embedding(len(self.concepts), code)
            self.encoder = nn.LSTM(5, encoder_hidden, batch_first=True, bidirectional=True)
            self.to_code = nn.Linear(2 * encoder_hidden + code, 2 * code)
            self.start = nn.Linear(2 * code, 2 * hidden)
            self.decoder = nn.LSTM(5 + 2 * code, hidden, batch_first=True)
            self.to_movement = nn.Linear(hidden, 6 * components + 3)
        self.register_buffer("batches_seen", torch.zeros((), dtype=torch.int64))

    def encode(self, pen: PenBatch, concept_B: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, Z) mean and log variance of the code of each drawing."""
        length_B = (pen.pen_BT != END).sum(1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self._inputs(pen.offset_BT2, pen.pen_BT), length_B.cpu(), batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.encoder(packed)
        read = torch.cat([last[0], last[1], self.concept(concept_B)], 1)
        mean, log_variance = self.to_code(read).chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def movements(self, pen: PenBatch, given_BG: torch.Tensor) -> tuple[Mixture, torch.Tensor]:
        """What is said of every step when the true ones before it are known: mixtures and (B, T, 3) pen logits."""
        inputs = self._inputs(pen.offset_BT2, pen.pen_BT)
        before = torch.cat([self._first(len(inputs))[:, None], inputs[:, :-1]], 1)
        given = given_BG[:, None].expand(-1, before.shape[1], -1)
        out, _ = self.decoder(torch.cat([before, given], 2), self._state(given_BG))
        return self._said(out)

    def losses(self, batch: CurveBatch, noise_BZ: torch.Tensor) -> dict[str, torch.Tensor]:
        """Means over the batch of the loss and its parts, nats a step."""
        pen = pen_movements(batch, STEPS_A_CURVE)
        mean, log_variance = self.encode(pen, batch.concept_B)
        code = mean + noise_BZ * (log_variance / 2).exp()
        mixture, pen_logit = self.movements(pen, torch.cat([code, self.concept(batch.concept_B)], 1))
        drawing = pen.pen_BT != END
        steps_B = drawing.sum(1) + 1
        until_end = torch.arange(drawing.shape[1], device=drawing.device) < steps_B[:, None]
        log_offset = mixture_log_prob(mixture, pen.offset_BT2 / self.scale)
        offset = -torch.where(drawing, log_offset, 0.0).sum(1) / steps_B
        state_BT = cross_entropy(pen_logit.transpose(1, 2), pen.pen_BT, reduction="none")
        state = torch.where(until_end, state_BT, 0.0).sum(1) / steps_B
        kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).mean()
        parts = {"offset": offset.mean(), "pen": state.mean(), "kl": kl}
        told = parts["offset"] + parts["pen"] + self.kl_weight * kl.clamp(min=self.kl_min)
        return {"loss": told, **parts}

    def training_step(self, batch: CurveBatch, batch_idx: int) -> torch.Tensor:
        """One step of pre-training; its noise is addressed by item and step, whatever process draws it."""
        del batch_idx
        rows = [
            generator(self.seed, "sketch_rnn", "pretrain", int(self.batches_seen), i).standard_normal(self.code)
            for i in batch.index_B.tolist()
        ]
        self.batches_seen += 1
        losses = self.losses(batch, torch.from_numpy(np.stack(rows)).to(self.device, torch.float32))
        logged = {f"train_{k}": v.detach() for k, v in losses.items()}
        self.log_dict(logged, on_step=False, on_epoch=True, sync_dist=True, batch_size=len(batch.index_B))
        return losses["loss"]

    def validation_step(self, batch: CurveBatch, batch_idx: int) -> None:
        """The same losses at the mean code."""
        del batch_idx
        losses = self.losses(batch, torch.zeros(len(batch.index_B), self.code, device=self.device))
        self.log_dict({f"val_{k}": v for k, v in losses.items()}, sync_dist=True, batch_size=len(batch.index_B))

    def configure_optimizers(self) -> Optimizer:
        """The optimiser."""
        return self._make_optimizer(self.parameters())

    def noise(self, index_B: Sequence[int], seed: int, *address: str | int) -> torch.Tensor:
        """(B, Z + 4T): code, then normal offsets and uniform numbers for component and pen; see `Generator.noise`."""
        rows = []
        for i in index_B:
            rng = generator(seed, "sketch_rnn", *address, int(i))
            rows.append(
                np.concatenate([rng.standard_normal(self.code + 2 * self.max_steps), rng.random(2 * self.max_steps)])
            )
        return torch.from_numpy(np.stack(rows).astype(np.float32)).to(self.device)

    def draw(self, concept_B: torch.Tensor, noise: torch.Tensor) -> Drawn:
        """Drawings of its own; see `Generator.draw`."""
        T = self.max_steps
        code, normal, uniform = noise.split([self.code, 2 * T, 2 * T], dim=1)
        normal, uniform = normal.unflatten(1, (T, 2)), uniform.unflatten(1, (T, 2))
        given = torch.cat([code, self.concept(concept_B)], 1)
        state, last = self._state(given), self._first(len(given))
        said, offsets, states = [], [], []
        for t in range(T):
            out, state = self.decoder(torch.cat([last, given], 1)[:, None], state)
            mixture, pen_logit = self._said(out)
            said.append((mixture, pen_logit))
            mixture, pen_logit = Mixture(*(x[:, 0] for x in mixture)), pen_logit[:, 0]
            offset = mixture_sample(mixture, uniform[:, t, 0], normal[:, t], self.temperature)
            cumulative = torch.softmax(pen_logit.detach() / self.temperature, 1).cumsum(1)
            pen = (uniform[:, t, 1:] >= cumulative).sum(1).clamp(max=END)
            offsets.append(offset * self.scale)
            states.append(pen)
            last = self._inputs(offsets[-1], pen)
        mixture = Mixture(*(torch.cat(x, 1) for x in zip(*(m for m, _ in said), strict=True)))
        pen_logit = torch.cat([p for _, p in said], 1)
        return self._strokes(torch.stack(offsets, 1), torch.stack(states, 1), mixture, pen_logit)

    def distance(self, drawn: Drawn, reference: Drawn) -> torch.Tensor:
        """(B,) mean nats a step: KL of the pen's states, and of the offsets' mixtures by matched components (a bound).

        Both are from the same noise. Steps after either drawing's end do not count.
        """
        ours, theirs = drawn.extra, reference.extra
        alive = ours.alive_BT & theirs.alive_BT
        log_p, log_q = (log_softmax(m.pen_logit_BT3, 2) for m in (ours, theirs))
        state = (log_p.exp() * (log_p - log_q)).sum(2)
        offset = component_kl(ours.mixture, theirs.mixture)
        return torch.where(alive, state + offset, 0.0).sum(1) / alive.sum(1).clamp(min=1)

    def _strokes(
        self, offset_BT2: torch.Tensor, pen_BT: torch.Tensor, mixture: Mixture, pen_logit: torch.Tensor
    ) -> Drawn:
        """Movement t leaves ink where the pen was down after movement t - 1 and nothing had ended."""
        end = offset_BT2.cumsum(1) + 0.5
        start = torch.cat([end.new_full((len(end), 1, 2), 0.5), end[:, :-1]], 1)
        points = torch.stack([start, (2 * start + end) / 3, (start + 2 * end) / 3, end], 2)
        B, T = pen_BT.shape
        ended = (pen_BT == END).cumsum(1) > 0
        down = torch.cat([pen_BT.new_full((B, 1), UP), pen_BT[:, :-1]], 1) == DOWN
        inked = down & ~ended
        # The logit of ink has the sign of what was sampled and the slope of the pen's probabilities: the pen state
        # that was drawn decides, and training moves how probable that state is.
        stay_down = torch.cat([pen_logit.new_zeros(B, 1), _log_odds(pen_logit, DOWN)[:, :-1]], 1)
        not_over = -_log_odds(pen_logit, END)
        soft = torch.minimum(stay_down, not_over)
        sign = torch.where(inked, 1.0, -1.0)
        logit = sign * soft.detach().abs().clamp(min=0.1) + soft - soft.detach()
        lifted = torch.cat([pen_BT.new_zeros(B, 1), (pen_BT != DOWN)[:, :-1].long()], 1)
        stroke = lifted.cumsum(1)
        alive = torch.cat([ended.new_zeros(B, 1), ended[:, :-1]], 1).logical_not()
        width = points.new_full((B, T), self.pen)
        return Drawn(points, width, logit, stroke, Movements(mixture, pen_logit, alive))

    def _said(self, out: torch.Tensor) -> tuple[Mixture, torch.Tensor]:
        with torch.autocast(out.device.type, enabled=False):
            raw = self.to_movement(out.to(self.to_movement.weight.dtype))
            return mixture_of(raw[..., : 6 * self.components]), raw[..., 6 * self.components :].float()

    def _inputs(self, offset: torch.Tensor, pen: torch.Tensor) -> torch.Tensor:
        return torch.cat([offset / self.scale, one_hot(pen, 3).to(offset.dtype)], -1)

    def _first(self, batch: int) -> torch.Tensor:
        """Before the first movement the pen is up, in the middle."""
        first = torch.zeros(batch, 5, device=self.device)
        first[:, 2 + UP] = 1.0
        return first

    def _state(self, given_BG: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h, c = self.start(given_BG).tanh().chunk(2, dim=1)
        return h[None].contiguous(), c[None].contiguous()


def component_kl(p: Mixture, q: Mixture) -> torch.Tensor:
    """(…) upper bound of KL(p ‖ q) of mixtures: Σ π_m [log π_m/κ_m + KL(N_m ‖ N'_m)] (Hershey and Olsen 2007, eq. 18).

    0 for equal mixtures.
    """
    weight = p.log_weight.exp()
    ratio = (p.log_scale - q.log_scale).exp()
    z = (p.mean - q.mean) * (-q.log_scale).exp()
    rest_q, rest_p = 1 - q.correlation.square(), 1 - p.correlation.square()
    trace = ratio.square().sum(-1) - 2 * q.correlation * p.correlation * ratio[..., 0] * ratio[..., 1]
    square = z.square().sum(-1) - 2 * q.correlation * z[..., 0] * z[..., 1]
    log_det = 2 * (q.log_scale - p.log_scale).sum(-1) + rest_q.log() - rest_p.log()
    kl = 0.5 * ((trace + square) / rest_q - 2 + log_det)
    return (weight * (p.log_weight - q.log_weight + kl)).sum(-1)


def _log_odds(logit_BT3: torch.Tensor, state: int) -> torch.Tensor:
    """(B, T) log odds of a pen state."""
    others = [s for s in (DOWN, UP, END) if s != state]
    return logit_BT3[..., state] - torch.logsumexp(logit_BT3[..., others], -1)
