"""Classification networks of torchvision as backbones."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from humanlike.backbones.downloads import download
from humanlike.backbones.layers import LOGITS, PRE_LOGITS, ModuleBackbone
from humanlike.backbones.network import classifier_heads, logit_modules, seeded_weights
from humanlike.backbones.preprocessing import choose_transform
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.weights import WeightFile, read_tensors, weight_file
from humanlike.interfaces import Transform

DEFAULT = "DEFAULT"


class TorchvisionBackbone(ModuleBackbone):
    """Any classification network of torchvision, frozen, with its own preprocessing.

    Layers are the network's modules, and "pre_logits": what goes into the classifier.

    Args:
        architecture: torchvision's name ("resnet50").
        weights: "DEFAULT" for torchvision's newest weights, or the name of others ("IMAGENET1K_V1"); None for random
            ones, drawn from `seed`; a WeightFile such as Checkpoint; or the path of a state dict.
        layer: Default layer.
        transform: Overrides of the preprocessing (arguments of ImageTransform) or a whole Transform; see TimmBackbone.
        name: Name in results; the architecture if None.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.
        seed: Seed of random weights.
        allow_logits: Allow "logits" and the classifier as layers.
        force_transform: Accept a preprocessing that differs from the published weights' own.
        options: More arguments for the network, such as num_classes.
        info: Facts for tables: architecture, paradigm, data, licence, download_mb.

    Raises:
        FileNotFoundError: The weights are not on this machine and cannot be fetched.
        ValueError: Unknown architecture, weights or layer, weights that do not fit, a preprocessing that is missing or
            not theirs.

    Example:
        >>> backbone = TorchvisionBackbone("squeezenet1_1", weights=None)
        >>> backbone.features(torch.zeros(1, 3, 64, 64), ["pre_logits"])["pre_logits"].shape
        torch.Size([1, 512])
    """

    def __init__(
        self,
        architecture: str,
        weights: str | Path | WeightFile | None = DEFAULT,
        layer: str = PRE_LOGITS,
        transform: Mapping[str, Any] | Transform | None = None,
        *,
        name: str | None = None,
        offline: bool | None = None,
        seed: int = 0,
        allow_logits: bool = False,
        force_transform: bool = False,
        options: Mapping[str, Any] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        published = published_weights(architecture)
        member = published.get(weights) if isinstance(weights, str) else None
        advice = f"published weights are {', '.join(published)}"
        source = weight_file(weights, advice) if member is None else None
        chosen = choose_transform(
            architecture,
            own_transform(member or published[DEFAULT]),
            transform,
            published=member is not None,
            source=source,
            forced=force_transform,
        )
        with seeded_weights(seed, architecture):
            network = _build(architecture, member, offline, dict(options or {}))
        unfilled = source.load_into(network) if source is not None else ()
        classifier = classifier_name(network)
        super().__init__(
            network,
            name=name or architecture,
            architecture=architecture,
            transform=chosen,
            layer=layer,
            heads=(PRE_LOGITS, LOGITS),
            classifiers=logit_modules(network, classifier),
            allow_logits=allow_logits,
            unfilled=unfilled,
            info=info,
        )
        self.classifier = classifier

    def _heads(self, x_B3HW: torch.Tensor, wanted: frozenset[str]) -> dict[str, torch.Tensor]:
        outputs = classifier_heads(self.network, self.classifier, x_B3HW)
        return {name: outputs[name] for name in outputs if name in wanted}


def published_weights(architecture: str) -> dict[str, Any]:
    """Name → torchvision's record of an architecture's published weights, "DEFAULT" among them.

    Raises:
        ValueError: torchvision has no such classification network; the nearest names are given.
    """
    from torchvision import models

    names = models.list_models(module=models)
    if architecture not in names:
        near = difflib.get_close_matches(architecture, names, n=3, cutoff=0.5)
        hint = f"nearest are {', '.join(near)}" if near else "torchvision.models.list_models() gives all names"
        raise ValueError(f"torchvision knows no classification network {architecture!r}; {hint}")
    enum = models.get_model_weights(architecture)
    return {DEFAULT: enum.DEFAULT, **{member.name: member for member in enum}}


def torchvision_weights(member: Any, offline: bool | None = None) -> Path:
    """The file of published weights; torchvision puts the first digits of its SHA-256 into its name."""
    digest = re.search(r"-([0-9a-f]{8,64})\.pth$", member.url)
    return download(member.url, digest[1] if digest else None, offline=offline)


def own_transform(member: Any) -> ImageTransform:
    """The evaluation transform that torchvision's record states for its weights: resize, centre crop, normalise."""
    preset = member.transforms()
    (crop,), (resize,) = preset.crop_size, preset.resize_size
    return ImageTransform(
        size=crop,
        crop_pct=crop / resize,
        crop_mode="center",
        interpolation=preset.interpolation.value,
        mean=tuple(preset.mean),
        std=tuple(preset.std),
    )


def classifier_name(network: nn.Module) -> str:
    """The module that gives the logits: in every classification network of torchvision the last one with weights."""
    return [name for name, module in network.named_modules() if isinstance(module, nn.Linear | nn.Conv2d)][-1]


def _build(architecture: str, member: Any, offline: bool | None, options: dict[str, Any]) -> nn.Module:
    from torchvision import models

    path = None if member is None else torchvision_weights(member, offline)
    with _as_plain_tensors(member, path), warnings.catch_warnings():
        # Two networks of 2014 announce another initialisation, which published weights overwrite anyway.
        warnings.filterwarnings("ignore", "The default weight initialization", FutureWarning)
        try:
            return models.get_model(architecture, weights=member, **options)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"torchvision cannot build {architecture!r} with {options}: {error}") from error


@contextmanager
def _as_plain_tensors(member: Any, path: Path | None) -> Iterator[None]:
    """Inside the block the published weights come from `path`, read without unpickling.

    The network is still built by torchvision with its own record: it renames and sets what belongs to its files.
    """
    if member is None or path is None:
        yield
        return
    member.get_state_dict = lambda *_, **__: read_tensors(path)
    try:
        yield
    finally:
        del member.get_state_dict
