"""Activations of named layers: hooks on any network, several layers from one forward pass."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import nn

from humanlike.backbones.frozen import FrozenModule, WeightsDigest
from humanlike.interfaces import Backbone, Transform

LOGITS = "logits"
PRE_LOGITS = "pre_logits"


class LayerShape(NamedTuple):
    """A layer, the shape of its activation for one image, and its relative depth in (0, 1]."""

    name: str
    shape: tuple[int, ...]
    depth: float


ReadLayer = Callable[[str, torch.Tensor], torch.Tensor]


class ModuleBackbone(FrozenModule, ABC):
    """A backbone around an `nn.Module`: its modules' names are its layers, read by hooks.

    An adapter says in `_heads` what comes out of a forward pass besides the modules (pooled features, logits).

    Args:
        network: The network; it is frozen in place.
        name: Name of the backbone, as written into results.
        architecture: Name of the architecture, part of the weights' digest.
        transform: The network's own preprocessing.
        layer: Default layer.
        heads: Names that `_heads` gives, in depth order.
        classifiers: Names of modules whose output is the logits.
        allow_logits: Whether logits may be asked for as features. Class scores carry the training set's categories,
            not an embedding, and are often taken for one by mistake.
        unfilled: Names of parameters and buffers that a checkpoint left random. Where the classifier is among them,
            logits cannot be asked for.
        info: Facts for tables: architecture, training paradigm, training data, licence, download_mb.

    Raises:
        ValueError: The default layer is unknown, or gives logits without `allow_logits`.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        name: str,
        architecture: str,
        transform: Transform,
        layer: str,
        heads: Sequence[str],
        classifiers: Sequence[str] = (),
        allow_logits: bool = False,
        unfilled: Sequence[str] = (),
        info: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.name = name
        self.architecture = architecture
        self.transform = transform
        self.allow_logits = allow_logits
        self.info = dict(info or {})
        self._head_names = tuple(heads)
        self._logit_names = frozenset({LOGITS, *classifiers})
        self._random_scores = tuple(n for n in unfilled if any(n.startswith(f"{c}.") for c in classifiers))
        self._digest = WeightsDigest(architecture, network)
        self._shapes: tuple[LayerShape, ...] | None = None
        self.freeze()
        self.check_layers([layer])
        self.default_layer = layer

    @abstractmethod
    def _heads(self, x_B3HW: torch.Tensor, wanted: frozenset[str]) -> dict[str, torch.Tensor]:
        """One forward pass that reaches every layer of `wanted`; the outputs among them that are no module's."""

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers in the order in which they finish, the default ones last."""
        return tuple(layer.name for layer in self.layer_shapes())

    @property
    def weights_hash(self) -> str:
        """Hex digest over the architecture's name and all parameters and buffers."""
        return self._digest()

    def check_layers(self, layers: Sequence[str]) -> None:
        """Raise a ValueError that names the nearest layers when one of `layers` cannot be asked for."""
        modules = {name for name, _ in self.network.named_modules() if name}
        if not layers:
            raise ValueError(f"{self.name}: layers is empty; name at least one, for example {self._head_names[0]!r}")
        for layer in layers:
            if layer in self._logit_names and not self.allow_logits:
                raise ValueError(
                    f"{self.name}: layer {layer!r} gives class scores (logits), not an embedding; "
                    f"use {self._head_names[0]!r}, or set allow_logits=true if scores are what you want"
                )
            if layer in self._logit_names:
                self._require_known_scores()
            if layer not in modules and layer not in self._head_names:
                known = [*self._head_names, *modules]
                near = difflib.get_close_matches(str(layer), known, n=3, cutoff=0.4)
                hint = f"nearest are {', '.join(near)}" if near else f"the default is {self._head_names[0]!r}"
                raise ValueError(f"{self.name} has no layer {layer!r}; {hint} (`python -m humanlike layers` lists all)")

    def open_class_scores(self) -> str:
        """The name of the layer of class scores, which may be asked for from now on.

        Raises:
            ValueError: The network has no classifier, or its checkpoint left it random.
        """
        if LOGITS not in self._head_names:
            raise ValueError(
                f"{self.name} has no classifier head, so there are no class scores to read; train a readout on its "
                "features instead: readout=logistic"
            )
        self._require_known_scores()
        self.allow_logits = True
        self._shapes = None
        return LOGITS

    def _require_known_scores(self) -> None:
        if self._random_scores:
            raise ValueError(
                f"{self.name}: the checkpoint has no weights for the classifier ({', '.join(self._random_scores[:3])} "
                "kept random values, as allow_missing permits), so that its class scores mean nothing; use a "
                f"checkpoint with its head, or train a readout on {self._head_names[0]!r}: readout=logistic"
            )

    @torch.no_grad()
    def features(self, x_B3HW: torch.Tensor, layers: Sequence[str]) -> dict[str, torch.Tensor]:
        """Activations of `layers` from one forward pass.

        A module that runs several times in a pass gives its last output.

        Args:
            x_B3HW: Transformed images.
            layers: Names out of `layers`.

        Returns:
            Layer → (B, D) float32, D = product of the activation's other axes in (channel, height, width) order.

        Raises:
            ValueError: A layer is unknown, gave no tensor, or was not reached.
        """
        return self.activations(x_B3HW, layers, lambda _layer, a_B: a_B.flatten(1))

    @torch.no_grad()
    def activations(self, x_B3HW: torch.Tensor, layers: Sequence[str], read: ReadLayer) -> dict[str, torch.Tensor]:
        """What `read` makes of every layer's activation as soon as the forward pass reaches it.

        The activation itself is let go at once, so that many large layers can be pooled or projected in one pass.

        Args:
            x_B3HW: Transformed images.
            layers: Names out of `layers`.
            read: (layer, (B, …) float32 activation in its own shape) → what to keep of it.

        Raises:
            ValueError: See `features`.
        """
        self.check_layers(layers)
        found = self._run(x_B3HW, layers, lambda layer, a_B: read(layer, a_B.to(torch.float32)))
        missing = [layer for layer in layers if layer not in found]
        if missing:
            raise ValueError(
                f"{self.name}: layer {missing[0]!r} gave no tensor in the forward pass (it was not reached, or gives a "
                "tuple); choose a layer that `python -m humanlike layers` lists"
            )
        return {layer: found[layer] for layer in layers}

    def layer_shapes(self) -> tuple[LayerShape, ...]:
        """Every layer with the shape of its activation, found by one forward pass on an empty image (kept)."""
        if self._shapes is None:
            modules = [
                name
                for name, module in self.network.named_modules()
                if name
                and not isinstance(module, nn.Identity | nn.Dropout)  # both hand on what the layer before gave
                and (self.allow_logits or name not in self._logit_names)
            ]
            weight = next(self.network.parameters(), torch.zeros(0))
            x_13HW = torch.zeros(1, *input_shape(self.transform), device=weight.device, dtype=weight.dtype)
            with torch.no_grad():
                heads = [h for h in self._head_names if self.allow_logits or h not in self._logit_names]
                found = self._run(x_13HW, [*modules, *heads], lambda _layer, a_B: torch.tensor(a_B.shape))
            # Modules that see windows or tokens in the place of images give no row an image.
            shapes = {
                n: tuple(int(s) for s in shape[1:]) for n, shape in found.items() if len(shape) > 1 and shape[0] == 1
            }
            names = [n for n in shapes if n not in heads] + heads
            self._shapes = tuple(LayerShape(n, shapes[n], (i + 1) / len(names)) for i, n in enumerate(names))
        return self._shapes

    def _run(self, x_B3HW: torch.Tensor, layers: Sequence[str], read: ReadLayer) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}

        def keep(name: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
                if isinstance(output, torch.Tensor):
                    # A clone, because an in-place ReLU that follows would overwrite what the hook was handed.
                    found.pop(name, None)
                    found[name] = read(name, output.detach().clone(memory_format=torch.contiguous_format))

            return hook

        modules = dict(self.network.named_modules())
        with ExitStack() as hooks:
            for layer in layers:
                if layer not in self._head_names:
                    hooks.callback(modules[layer].register_forward_hook(keep(layer)).remove)
            heads = self._heads(x_B3HW, frozenset(layers))
        return found | {name: read(name, output.contiguous()) for name, output in heads.items()}


def input_shape(transform: Transform) -> tuple[int, int, int]:
    """(3, H, W) that a transform gives, found by applying it to a white image."""
    from PIL import Image

    channels, height, width = transform(Image.new("RGB", (256, 256), "white")).shape
    return int(channels), int(height), int(width)


def class_score_layer(backbone: Backbone) -> str:
    """The layer of a backbone that gives the scores of its own classes; of a user's callable, its output.

    Raises:
        ValueError: The network has no classifier.
    """
    own = getattr(backbone, "open_class_scores", None)
    return backbone.default_layer if own is None else str(own())


def layer_shapes(backbone: Backbone) -> list[LayerShape]:
    """Every layer of a backbone with the shape of its activation for one image and its relative depth.

    Backbones that cannot say the shape themselves are run once on an empty image, and the shape is the flattened (D,).

    Returns:
        One record a layer in depth order; depth is (i + 1) / n, so that the last layer has 1.
    """
    own = getattr(backbone, "layer_shapes", None)
    if own is not None:
        return list(own())
    names = backbone.layers
    found = backbone.features(torch.zeros(1, *input_shape(backbone.transform)), names)
    return [LayerShape(n, tuple(found[n].shape[1:]), (i + 1) / len(names)) for i, n in enumerate(names)]
