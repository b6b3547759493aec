"""Features with a gradient with respect to the pixels, through a backbone whose weights stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from humanlike.backbones.callable import OUTPUT, CallableBackbone, _evaluating
from humanlike.backbones.layers import ModuleBackbone
from humanlike.interfaces import Backbone


def differentiable_features(backbone: Backbone, x_B3HW: torch.Tensor, layer: str | None = None) -> torch.Tensor:
    """What `backbone.features` gives for one layer, as part of the computation that autograd records.

    `Backbone.features` is without gradient, because extraction needs none. Values are the same here; parameters of the
    backbone get no gradient as long as they are frozen, pixels do.

    Args:
        backbone: The network; one of this package, or any whose `features` records gradients by itself.
        x_B3HW: Transformed images.
        layer: Name of the layer; None: the default one.

    Returns:
        (B, D) float32.

    Raises:
        ValueError: The layer is unknown or gave no tensor, or the backbone cuts the gradient.

    Example:
        >>> from humanlike.backbones.vision import TimmBackbone
        >>> backbone = TimmBackbone("test_vit", weights=None)
        >>> x_B3HW = torch.rand(1, 3, 160, 160, requires_grad=True)
        >>> differentiable_features(backbone, x_B3HW)[0, 0].backward()
        >>> bool(x_B3HW.grad.abs().sum() > 0)
        True
    """
    name = layer or backbone.default_layer
    return differentiable_layers(backbone, x_B3HW, [name])[name]


def differentiable_layers(backbone: Backbone, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
    """Several layers from one forward pass, as `differentiable_features` gives one.

    Args:
        backbone: See `differentiable_features`.
        x_B3HW: Transformed images.
        layers: Names of the layers.

    Returns:
        Layer → (B, D) float32.

    Raises:
        ValueError: See `differentiable_features`.
    """
    if isinstance(backbone, ModuleBackbone):
        # As in extraction, colours of a pixel side by side: convolutions run a third faster, and sums round alike.
        found = _activations(backbone, x_B3HW.contiguous(memory_format=torch.channels_last), layers)
    elif isinstance(backbone, CallableBackbone):
        found = {name: _called(backbone, x_B3HW, name) for name in dict.fromkeys(layers)}
    else:
        with torch.enable_grad():
            found = backbone.features(x_B3HW, list(layers))
    wanted = x_B3HW.requires_grad and torch.is_grad_enabled()
    if wanted and not all(found[name].requires_grad for name in layers):
        raise ValueError(
            f"{backbone.name} gives features without a gradient (its `features` runs under no_grad, or detaches), so "
            "that nothing can be trained through it; use a backbone of this package, or let `features` record gradients"
        )
    return {name: found[name].to(torch.float32).flatten(1) for name in layers}


def _activations(backbone: ModuleBackbone, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
    backbone.check_layers(layers)
    found: dict[str, torch.Tensor] = {}

    def keeper(layer: str) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, torch.Tensor):
                # A clone, because an in-place activation that follows would overwrite what the hook was handed.
                found[layer] = output.clone(memory_format=torch.contiguous_format)

        return keep

    modules = dict(backbone.network.named_modules())
    with ExitStack() as hooks:
        for layer in layers:
            if layer in modules:
                hooks.callback(modules[layer].register_forward_hook(keeper(layer)).remove)
        found |= backbone._heads(x_B3HW, frozenset(layers))
    missing = [layer for layer in layers if layer not in found]
    if missing:
        raise ValueError(
            f"{backbone.name}: layer {missing[0]!r} gave no tensor in the forward pass (it was not reached, or gives a "
            "tuple); choose a layer that `python -m humanlike layers` lists"
        )
    return found


def _called(backbone: CallableBackbone, x_B3HW: torch.Tensor, layer: str) -> torch.Tensor:
    if layer != OUTPUT:
        raise ValueError(f"{backbone.name} is a callable with one layer, {OUTPUT!r}; asked for {layer!r}")
    with _evaluating(backbone.module):
        return backbone._fn[0](x_B3HW)
