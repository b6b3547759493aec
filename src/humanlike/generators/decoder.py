"""A class-conditional stroke decoder: a transformer that turns a concept and noise into K curves at once.

Pre-trained as a conditional variational autoencoder of sets of curves. Legend: B drawings, K curves, D width of the
network, Z size of the code, C concepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.optim import Optimizer

from humanlike.data.drawing import DEFAULT_WIDTH
from humanlike.generators.drawn import Drawn, different_names
from humanlike.generators.pretrain_table import CurveBatch
from humanlike.rng import address_seed, generator, torch_draws

WIDTHS = (0.6, 1.8)
"""Narrowest and widest pen, in usual pen widths: a hairline would hide from a critic what a pen draws."""
DOUBT = 0.05
"""Share that a slot's being used or not is smoothed by in pre-training: a curve more certain than 95% would hardly feel
a gradient later, and never vanish or come."""
ON_RATE = 10.0
"""A step moves on-logits by this times as much as coordinates: the ones go from -3 to 3, the others by hundredths."""
REACH = 0.1
"""How far beyond the canvas control points may lie, canvas sides."""


class StrokeDecoder(pl.LightningModule):
    """Concept and code z → K cubic Béziers with widths and on-logits, in one pass of a small transformer.

    K learned queries a concept carry the code through the layers; each becomes a curve, beginning as that of a
    template. For pre-training an encoder maps a drawing to a normal distribution of z; the loss is

        points + w_on · on + w_width · width + β · KL(q(z|drawing) ‖ N(0, 1)),

    where points is the mean L1 distance of control points of the curves that the drawing has, on the cross-entropy of
    the slots being used (smoothed), and width the mean |log| ratio of pen widths. Drawings are `aligned` first: what
    stands in slot k is the same part of a thing in all of them. After pre-training `fit_codes` keeps the codes of
    training drawings, and new drawings come from around these (Norouzi et al., Exemplar VAE, NeurIPS 2020): with a
    small β the codes keep detail, and need not look like N(0, 1). Fine-tuning may make some exemplars likelier than
    others (`weigh`).

    Logged: `train_loss`, `val_loss` and their parts.

    Args:
        concepts: What it can draw.
        num_curves: K.
        width: D.
        depth: Layers of the decoder.
        heads: Attention heads.
        code: Z.
        beta: β.
        on_weight: w_on.
        width_weight: w_width.
        spread: Codes are drawn around those of training drawings with this times their standard deviation.
        exemplars: Most training drawings a concept whose codes are kept.
        pen: Usual pen width, a fraction of the canvas side.
        optimizer: Makes the optimiser; None: AdamW, learning rate 1e-3.
        seed: Of the initial weights and the noise of pre-training.

    Raises:
        ValueError: For numbers out of range or no concept.
    """

    code_CMZ: torch.Tensor
    spread_CZ: torch.Tensor
    count_C: torch.Tensor
    weight_CM: torch.Tensor
    batches_seen: torch.Tensor

    def __init__(
        self,
        concepts: Sequence[str],
        num_curves: int = 24,
        width: int = 96,
        depth: int = 3,
        heads: int = 4,
        code: int = 32,
        beta: float = 1e-5,
        on_weight: float = 0.1,
        width_weight: float = 0.02,
        spread: float = 0.2,
        exemplars: int = 64,
        pen: float = DEFAULT_WIDTH,
        optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if num_curves < 1 or width % heads:
            raise ValueError(
                f"num_curves must be ≥ 1 and width a multiple of heads, got {num_curves}, {width}, {heads}"
            )
        self.concepts = different_names(concepts)
        self._make_optimizer = optimizer or partial(torch.optim.AdamW, lr=1e-3)
        self.save_hyperparameters(ignore=["optimizer"])
        self.beta, self.on_weight, self.width_weight, self.spread = beta, on_weight, width_weight, spread
        self.pen, self.seed, self.code, self.num_curves = pen, seed, code, num_curves
        with torch_draws(seed, "decoder", "weights"):
            self._build(len(self.concepts), num_curves, width, depth, heads, code)
        self.register_buffer("code_CMZ", torch.zeros(len(self.concepts), exemplars, code))
        self.register_buffer("spread_CZ", torch.ones(len(self.concepts), code))
        self.register_buffer("count_C", torch.ones(len(self.concepts), dtype=torch.int64))
        self.register_buffer("weight_CM", torch.eye(1, exemplars).repeat(len(self.concepts), 1))
        self.register_buffer("batches_seen", torch.zeros((), dtype=torch.int64))

    def _build(self, concepts: int, curves: int, width: int, depth: int, heads: int, code: int) -> None:
        self.concept = nn.Embedding(concepts, width)
        self.read = nn.Sequential(nn.Linear(10 * curves + width, 4 * width), nn.GELU(), nn.Linear(4 * width, 2 * code))
        self.query = nn.Parameter(torch.randn(concepts, curves, width) * 0.3)
        self.template = nn.Parameter(torch.randn(concepts, curves, 9) * 0.3)
        self.on_template = nn.Parameter(torch.zeros(concepts, curves))
        self.from_code = nn.Sequential(nn.Linear(code, width), nn.GELU(), nn.Linear(width, width))
        self.decoder = _transformer(width, heads, depth)
        self.to_curve = nn.Linear(width, 10)

    def encode(self, batch: CurveBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, Z) mean and log variance of the code of each drawing."""
        on = (batch.stroke_BK >= 0)[..., None].to(batch.points_BK42.dtype)
        pen = (batch.width_BK / self.pen - 1)[..., None] * on
        curves = torch.cat([(4 * batch.points_BK42.flatten(2) - 2) * on, pen, 2 * on - 1], -1)
        read = self.read(torch.cat([curves.flatten(1), self.concept(batch.concept_B)], 1))
        mean, log_variance = read.chunk(2, dim=1)
        return mean, log_variance.clamp(-10, 4)

    def noise(self, index_B: Sequence[int], seed: int, *address: str | int) -> torch.Tensor:
        """(B, 1 + Z): a uniform number that chooses an exemplar, then standard normal; see `Generator.noise`."""
        rows = []
        for i in index_B:
            rng = generator(seed, "decoder", *address, int(i))
            rows.append(np.concatenate([[rng.random()], rng.standard_normal(self.code)]))
        return torch.from_numpy(np.stack(rows).astype(np.float32)).to(self.device)

    def draw(self, concept_B: torch.Tensor, noise: torch.Tensor) -> Drawn:
        """Drawings whose codes lie around those of training drawings; see `Generator.draw`."""
        chosen = self._chosen(concept_B, noise)
        z_BZ = self.code_CMZ[concept_B, chosen] + self.spread * self.spread_CZ[concept_B] * noise[:, 1:]
        return self.decode(concept_B, z_BZ)

    def _chosen(self, concept_B: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """(B,) exemplar that each drawing comes from."""
        sum_BM = self.weight_CM[concept_B].cumsum(1)
        chosen = (sum_BM <= noise[:, :1] * sum_BM[:, -1:]).sum(1)
        return chosen.clamp(max=self.count_C[concept_B] - 1)

    def exemplars(self) -> tuple[torch.Tensor, Drawn]:
        """See `Exemplars.exemplars`."""
        concept_N = torch.arange(len(self.concepts), device=self.device).repeat_interleave(self.count_C)
        code_NZ = torch.cat([code[:count] for code, count in zip(self.code_CMZ, self.count_C.tolist(), strict=True)])
        return concept_N, self.decode(concept_N, code_NZ)

    @torch.no_grad()
    def weigh(self, weight_N: torch.Tensor) -> None:
        """See `Exemplars.weigh`."""
        for c, own in enumerate(weight_N.split(self.count_C.tolist())):
            self.weight_CM[c, : len(own)] = own.to(self.weight_CM)

    def equally(self, concept_B: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """See `Exemplars.equally`."""
        place = (self._chosen(concept_B, noise) + 0.5) / self.count_C[concept_B]
        return torch.cat([place.to(noise)[:, None], noise[:, 1:]], 1)

    def decode(self, concept_B: torch.Tensor, z_BZ: torch.Tensor) -> Drawn:
        """Drawings of given codes."""
        given = self.concept(concept_B) + self.from_code(z_BZ)
        token = self.decoder(self.query[concept_B] + given[:, None])
        # The strokes themselves are float32 or wider under mixed precision: half a pixel is 2⁻⁸ of the canvas.
        with torch.autocast(token.device.type, enabled=False):
            out = self.to_curve(token.to(self.to_curve.weight.dtype))
            on = out[..., 9] + ON_RATE * self.on_template[concept_B]
            out = out[..., :9] + self.template[concept_B]
            points = (1 + 2 * REACH) * out[..., :8].unflatten(-1, (4, 2)).sigmoid() - REACH
            low, high = WIDTHS
            width = self.pen * (low + (high - low) * out[..., 8].sub(0.7).sigmoid())
            return Drawn(points, width, on)

    def distance(self, drawn: Drawn, reference: Drawn) -> torch.Tensor:
        """(B,) mean L1 distance of the control points of curves that either shows, plus KL of the on-probabilities.

        Both are from the same noise, so that curve k there is curve k here. The first is in canvas sides, times 10 to
        be of the order of the second, which is in nats a curve: KL(Bernoulli here ‖ Bernoulli there).
        """
        p, q = drawn.on_logit_BK.sigmoid(), reference.on_logit_BK.sigmoid()
        weight = torch.maximum(p, q).detach()
        moved = (drawn.points_BK42 - reference.points_BK42).abs().sum(-1).mean(-1)
        log = nn.functional.logsigmoid
        yes = log(drawn.on_logit_BK) - log(reference.on_logit_BK)
        no = log(-drawn.on_logit_BK) - log(-reference.on_logit_BK)
        kl = p * yes + (1 - p) * no
        return 10 * (moved * weight).sum(1) / weight.sum(1).clamp(min=1e-6) + kl.mean(1)

    def losses(self, batch: CurveBatch, noise_BZ: torch.Tensor) -> dict[str, torch.Tensor]:
        """Means over the batch of the loss and its parts."""
        mean, log_variance = self.encode(batch)
        drawn = self.decode(batch.concept_B, mean + noise_BZ * (log_variance / 2).exp())
        on = batch.stroke_BK >= 0
        count_B = on.sum(1).clamp(min=1)
        moved = (drawn.points_BK42 - batch.points_BK42).abs().sum(-1).mean(-1)
        ratio = (drawn.width_BK / torch.where(on, batch.width_BK, drawn.width_BK.detach())).log().abs()
        parts = {
            "points": torch.where(on, moved, 0.0).sum(1) / count_B,
            "width": torch.where(on, ratio, 0.0).sum(1) / count_B,
            "on": bce(drawn.on_logit_BK, torch.where(on, 1 - DOUBT, DOUBT), reduction="none").mean(1),
        }
        kl_B = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
        parts = {name: value.mean() for name, value in (parts | {"kl": kl_B}).items()}
        told = parts["points"] + self.on_weight * parts["on"] + self.width_weight * parts["width"]
        return {"loss": told + self.beta * parts["kl"], **parts}

    def on_fit_start(self) -> None:
        """Templates from the training drawings, unless training goes on from a checkpoint."""
        datamodule = getattr(self.trainer, "datamodule", None)
        if int(self.batches_seen) == 0 and datamodule is not None:
            every = list(datamodule.train_table())
            self.take_templates(CurveBatch(*(x.to(self.device) for x in b)) for b in every)

    def training_step(self, batch: CurveBatch, batch_idx: int) -> torch.Tensor:
        """One step of pre-training; its noise is addressed by item and step, whatever process draws it."""
        del batch_idx
        noise = self.noise(batch.index_B.tolist(), self.seed, "pretrain", int(self.batches_seen))[:, 1:]
        self.batches_seen += 1
        losses = self.losses(batch, noise)
        self.log_dict(
            {f"train_{k}": v.detach() for k, v in losses.items()}, on_step=False, on_epoch=True, sync_dist=True
        )
        return losses["loss"]

    def validation_step(self, batch: CurveBatch, batch_idx: int) -> None:
        """The same losses at the mean code."""
        del batch_idx
        losses = self.losses(batch, torch.zeros(len(batch.index_B), self.code, device=self.device))
        self.log_dict({f"val_{k}": v for k, v in losses.items()}, sync_dist=True, batch_size=len(batch.index_B))

    def configure_optimizers(self) -> Any:
        """The optimiser, with a cosine schedule over the whole of training where its length is known."""
        optimizer = self._make_optimizer(self.parameters())
        steps = int(self.trainer.estimated_stepping_batches)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=[g["lr"] for g in optimizer.param_groups], total_steps=max(steps, 1), pct_start=0.1
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    @torch.no_grad()
    def take_templates(self, batches: Iterable[CurveBatch]) -> None:
        """Begin at a drawing of every concept, the one with the most curves, and fill up with curves of the next ones.

        Slots then stand for something from the first step on, and matching does not have to break the tie between
        equal ones, which takes most of the training otherwise.
        """
        every = CurveBatch(*(torch.cat(column) for column in zip(*batches, strict=True)))
        curves_N = (every.stroke_BK >= 0).sum(1)
        for c in range(len(self.concepts)):
            row = (every.concept_B == c).nonzero().squeeze(1)
            row = row[curves_N[row].argsort(descending=True, stable=True)]
            shown = every.stroke_BK[row] >= 0
            found = every.points_BK42[row][shown][: self.num_curves]
            share = ((found + REACH) / (1 + 2 * REACH)).clamp(0.01, 0.99)
            self.template[c, : len(found), :8] = share.logit().flatten(1)
        nn.init.zeros_(self.to_curve.weight)
        nn.init.zeros_(self.to_curve.bias)

    @torch.no_grad()
    def fit_codes(self, batches: Iterable[CurveBatch]) -> None:
        """Take the codes of every concept's training drawings, up to `exemplars` of them.

        Raises:
            ValueError: A concept has no drawing.
        """
        pairs = [(b.concept_B, b.index_B, self.encode(b)[0]) for b in batches]
        concept_N, index_N, code_NZ = (torch.cat(column) for column in zip(*pairs, strict=True))
        for c, name in enumerate(self.concepts):
            row = (concept_N == c).nonzero().squeeze(1)
            if not len(row):
                raise ValueError(f"no drawing of {name!r} to take codes of")
            keys = [address_seed(self.seed, "exemplars", int(i)) for i in index_N[row]]
            row = row[sorted(range(len(row)), key=keys.__getitem__)][: self.code_CMZ.shape[1]]
            self.code_CMZ[c, : len(row)], self.count_C[c] = code_NZ[row], len(row)
            self.weight_CM[c] = 0
            self.weight_CM[c, : len(row)] = 1 / len(row)
            self.spread_CZ[c] = code_NZ[row].std(0, correction=0)


def _transformer(width: int, heads: int, depth: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, depth, norm=nn.LayerNorm(width), enable_nested_tensor=False)
