"""How far a drawing is from a picture in the eyes of a network: geometry in its layers, meaning in its embedding.

Legend: B drawings, D width of a layer; pictures are RGB in [0, 1] of any size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from humanlike.backbones.gradient import differentiable_layers
from humanlike.backbones.pixels import PixelTransform
from humanlike.interfaces import Backbone

Activations = dict[str, Tensor]
"""Layer → (B, D) activations."""


class FeatureLoss(nn.Module):
    """Distance of drawings from pictures, by activations of layers (where) and the final embedding (what).

    distance = Σ_l w_l d(f_l(drawing), f_l(picture)) + w_s (1 - cos(e(drawing), e(picture))),

    with d the mean squared difference over the layer's units, or with `relative` that over the mean square of the
    picture's activation, so that weights mean the same for every network.

    Args:
        backbone: Any frozen network with a gradient to the pixels.
        layers: Layers compared in place; none: meaning alone.
        weights: w_l, one a layer; 1 each by default.
        embedding: Layer of the embedding; None: the backbone's default layer.
        semantic_weight: w_s ≥ 0.
        relative: Divide by the mean square of the picture's activation. False is CLIPasso's distance, which needs
            weights that suit the network.
        reduction: "mean", "sum" or "none" over drawings.

    Raises:
        ValueError: A weight is negative, weights and layers differ in number, nothing is compared, or the reduction is
            unknown.

    References:
        Vinker et al., CLIPasso, SIGGRAPH 2022, section 3.2 (ResNet101 layers 3 and 4, w_s = 0.1).
        Deviates: `relative` is the default.
    """

    def __init__(
        self,
        backbone: Backbone,
        layers: Sequence[str] = (),
        weights: Sequence[float] | None = None,
        embedding: str | None = None,
        semantic_weight: float = 1.0,
        relative: bool = True,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        chosen = [1.0] * len(layers) if weights is None else [float(w) for w in weights]
        if len(chosen) != len(layers):
            raise ValueError(f"weights must have one entry a layer: {len(layers)} layers, {len(chosen)} weights")
        if not all(0 <= w < math.inf for w in [*chosen, semantic_weight]):
            raise ValueError(f"weights must be finite and ≥ 0, got {chosen} and semantic_weight={semantic_weight}")
        if not sum(chosen) + semantic_weight > 0:
            raise ValueError("nothing is compared: name layers, or set semantic_weight above 0")
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        if isinstance(backbone, nn.Module):
            backbone.requires_grad_(False).eval()
        self._backbone = (backbone,)  # in a tuple: frozen, and no part of a state dict
        self.layers, self.weights = tuple(layers), tuple(chosen)
        self.embedding = embedding or backbone.default_layer
        self.semantic_weight, self.relative, self.reduction = float(semantic_weight), relative, reduction
        self.pixels = PixelTransform(backbone.transform)

    @property
    def backbone(self) -> Backbone:
        """The frozen network."""
        return self._backbone[0]

    def activations(self, x_B3HW: Tensor) -> Activations:
        """Everything that is compared, from one pass, with a gradient to the pixels."""
        backbone = self.backbone
        if isinstance(backbone, nn.Module):
            backbone.to(x_B3HW.device)
        semantic = [self.embedding] if self.semantic_weight > 0 else []
        return differentiable_layers(backbone, self.pixels(x_B3HW), list(dict.fromkeys([*self.layers, *semantic])))

    def embed(self, x_B3HW: Tensor) -> Tensor:
        """(B, D) embedding alone."""
        return differentiable_layers(self.backbone, self.pixels(x_B3HW), [self.embedding])[self.embedding]

    def parts(self, drawn: Mapping[str, Tensor], pictured: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """(B,) unweighted distances by layer name, and "semantic"."""
        found = {}
        for layer in self.layers:
            squares_B = (drawn[layer] - pictured[layer]).square().mean(dim=1)
            if self.relative:
                scale_B = pictured[layer].square().mean(dim=1)
                squares_B = squares_B / scale_B.clamp(min=torch.finfo(scale_B.dtype).tiny)
            found[layer] = squares_B
        if self.semantic_weight > 0:
            found["semantic"] = 1 - cosine_similarity(drawn[self.embedding], pictured[self.embedding], dim=1)
        return found

    def between(self, drawn: Mapping[str, Tensor], pictured: Mapping[str, Tensor]) -> Tensor:
        """(B,) distances from activations."""
        parts = self.parts(drawn, pictured)
        terms = [w * parts[layer] for w, layer in zip(self.weights, self.layers, strict=True)]
        if self.semantic_weight > 0:
            terms.append(self.semantic_weight * parts["semantic"])
        return torch.stack(terms).sum(dim=0)

    def forward(self, drawing_B3HW: Tensor, picture_B3HW: Tensor) -> Tensor:
        """The distance, ≥ 0 up to rounding; 0 for equal pictures.

        Args:
            drawing_B3HW: Drawings, RGB in [0, 1].
            picture_B3HW: Pictures, RGB in [0, 1], of the same or another size; they get no gradient.

        Returns:
            A scalar, or (B,) with `reduction="none"`.

        Raises:
            ValueError: There are not as many pictures as drawings.
        """
        if len(drawing_B3HW) != len(picture_B3HW):
            raise ValueError(f"give a picture for each of the {len(drawing_B3HW)} drawings, got {len(picture_B3HW)}")
        with torch.no_grad():
            pictured = self.activations(picture_B3HW)
        distance_B = self.between(self.activations(drawing_B3HW), pictured)
        if self.reduction == "none":
            return distance_B
        return distance_B.mean() if self.reduction == "mean" else distance_B.sum()
