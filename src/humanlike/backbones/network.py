"""Any network of a known architecture as a backbone: what torchvision, this package or a user's own package builds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from humanlike.backbones.layers import LOGITS, PRE_LOGITS, ModuleBackbone
from humanlike.backbones.preprocessing import choose_transform
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.weights import WeightFile, weight_file
from humanlike.interfaces import Transform
from humanlike.rng import torch_draws

OUTPUT = "output"


class NetworkBackbone(ModuleBackbone):
    """A network that is called with images, frozen; its modules' names are its layers.

    With `classifier` there are "pre_logits", what goes into that module, and "logits"; without it, "output".

    Args:
        network: Makes the network (in a configuration: `_target_` with `_partial_: true`), so that random weights can
            be drawn from `seed`.
        layer: Default layer.
        transform: Preprocessing: arguments of ImageTransform or a whole Transform. Weights from a file need at least
            `mean` and `std`, or a side-car; see TimmBackbone.
        weights: None for random ones; a WeightFile such as Checkpoint; or the path of a state dict.
        name: Name in results.
        architecture: Name of the architecture, part of the weights' digest; `name` if None.
        classifier: Module whose output is the logits.
        seed: Seed of random weights.
        allow_logits: Allow "logits" and the classifier as layers.
        info: Facts for tables.

    Raises:
        FileNotFoundError: The weights are not on this machine and cannot be fetched.
        ValueError: Unknown layer, weights that do not fit, or no preprocessing for weights from a file.

    Example:
        >>> from humanlike.backbones.architectures.ipcl_alexnet import AlexNetGN
        >>> backbone = NetworkBackbone(AlexNetGN, "fc7", {"size": 224}, name="alexnet_gn")
        >>> backbone.features(torch.zeros(1, 3, 224, 224), ["fc7"])["fc7"].shape
        torch.Size([1, 4096])
    """

    def __init__(
        self,
        network: Callable[[], nn.Module],
        layer: str,
        transform: Mapping[str, Any] | Transform | None = None,
        weights: str | Path | WeightFile | None = None,
        *,
        name: str,
        architecture: str | None = None,
        classifier: str | None = None,
        seed: int = 0,
        allow_logits: bool = False,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        architecture = architecture or name
        source = weight_file(weights)
        chosen = choose_transform(architecture, ImageTransform(), transform, source=source)
        with seeded_weights(seed, architecture):
            built = network()
        unfilled = source.load_into(built) if source is not None else ()
        super().__init__(
            built,
            name=name,
            architecture=architecture,
            transform=chosen,
            layer=layer,
            heads=(PRE_LOGITS, LOGITS) if classifier else (OUTPUT,),
            classifiers=logit_modules(built, classifier) if classifier else (),
            allow_logits=allow_logits,
            unfilled=unfilled,
            info=info,
        )
        self.classifier = classifier

    def _heads(self, x_B3HW: torch.Tensor, wanted: frozenset[str]) -> dict[str, torch.Tensor]:
        if self.classifier is None:
            outputs = {OUTPUT: self.network(x_B3HW)}
        else:
            outputs = classifier_heads(self.network, self.classifier, x_B3HW)
        return {name: outputs[name] for name in outputs if name in wanted}


def classifier_heads(network: nn.Module, classifier: str, x_B3HW: torch.Tensor) -> dict[str, torch.Tensor]:
    """One call of a network: "pre_logits", what went into its classifier, and "logits", what the network gave.

    A classifier that is a convolution is fed a map; its mean over the positions is taken, as pooling after it would.
    """
    found: dict[str, torch.Tensor] = {}

    def keep(_module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        found[PRE_LOGITS] = inputs[0].mean((2, 3)) if inputs[0].ndim == 4 else inputs[0].clone()

    handle = network.get_submodule(classifier).register_forward_pre_hook(keep)
    try:
        found[LOGITS] = network(x_B3HW)
    finally:
        handle.remove()
    return found


def logit_modules(network: nn.Module, classifier: str) -> tuple[str, ...]:
    """Modules that give logits: the classifier, those that end with it, and those that follow it in a sequence."""
    parts = classifier.split(".")
    around = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
    parent = ".".join(parts[:-1])
    container = network.get_submodule(parent)
    children = [f"{parent}.{name}" if parent else name for name, _ in container.named_children()]
    after = children[children.index(classifier) + 1 :] if isinstance(container, nn.Sequential) else []
    return (*around, *after)


@contextmanager
def seeded_weights(seed: int, architecture: str) -> Iterator[None]:
    """Initial weights inside the block come from `seed`; torch's global generator, which draws them, is put back."""
    with torch_draws(seed, "backbone weights", architecture):
        yield
