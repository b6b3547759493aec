"""Networks of timm as backbones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from humanlike.backbones.layers import LOGITS, PRE_LOGITS, ModuleBackbone, layer_shapes
from humanlike.backbones.network import seeded_weights
from humanlike.backbones.preprocessing import choose_transform, record_arguments
from humanlike.backbones.pretrained import timm_config, timm_weights
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.weights import WeightFile, weight_file
from humanlike.interfaces import Transform

__all__ = ["PRETRAINED", "PRE_LOGITS", "TimmBackbone", "layer_shapes", "own_transform"]

PRETRAINED = "pretrained"


class TimmBackbone(ModuleBackbone):
    """Any image network of timm, frozen, with its own preprocessing.

    Layers are the network's modules, and "pre_logits": the pooled features that go into the classifier.

    Args:
        architecture: timm's name, with the pretrained tag after a dot ("resnet50.a1_in1k").
        weights: "pretrained" for timm's published weights; None for random ones, drawn from `seed`; a WeightFile such
            as PackagedWeights or CheckpointFile; or the path of a state dict.
        layer: Default layer.
        transform: Overrides of the preprocessing (arguments of ImageTransform) or a whole Transform. Published weights
            carry their own, and another one is an error unless forced. Weights from a file have none that could be
            known: give at least `mean` and `std`, or a side-car (`<file stem>.json` or `config.json` beside the file,
            in timm's format, with `pretrained_cfg`).
        name: Name in results; the architecture if None.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.
        seed: Seed of random weights.
        allow_logits: Allow "logits" and the classifier as layers.
        force_transform: Accept a preprocessing that differs from the published weights' own.
        options: More arguments for `timm.create_model`.
        info: Facts for tables: architecture, paradigm, data, licence, download_mb.

    Raises:
        FileNotFoundError: The weights are not on this machine and cannot be fetched.
        ValueError: Unknown architecture or layer, weights that do not fit, a preprocessing that is missing or not
            theirs.

    Example:
        >>> backbone = TimmBackbone("test_vit", weights=None)
        >>> x_B3HW = torch.zeros(2, 3, 160, 160)
        >>> backbone.features(x_B3HW, ["pre_logits"])["pre_logits"].shape
        torch.Size([2, 64])
    """

    def __init__(
        self,
        architecture: str,
        weights: str | Path | WeightFile | None = PRETRAINED,
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
        config = timm_config(architecture)
        published = weights == PRETRAINED
        file = timm_weights(architecture, offline) if published else None
        source = None if published else weight_file(weights)
        stated = own_transform(config.to_dict(remove_null=False)) if config is not None else ImageTransform()
        chosen = choose_transform(
            architecture,
            stated,
            transform,
            published=published,
            source=source,
            forced=force_transform,
        )
        create = {**_size_options(config, chosen), **(options or {})}
        if file is not None:
            # `file` lets timm apply the renaming and reshaping that belong to the architecture's published files.
            create |= {
                "pretrained": True,
                "pretrained_cfg_overlay": {"file": str(file), "custom_load": False},
            }
        network = _build(architecture, seed, create)
        unfilled = source.load_into(network) if source is not None else ()
        has_classifier = getattr(network, "num_classes", 0) > 0
        classifier = config.classifier or () if config is not None else ()
        super().__init__(
            network,
            name=name or architecture,
            architecture=architecture,
            transform=chosen,
            layer=layer,
            heads=(PRE_LOGITS, LOGITS) if has_classifier else (PRE_LOGITS,),
            classifiers=(classifier,) if isinstance(classifier, str) else tuple(classifier),
            allow_logits=allow_logits,
            unfilled=unfilled,
            info=info,
        )

    def _heads(self, x_B3HW: torch.Tensor, wanted: frozenset[str]) -> dict[str, torch.Tensor]:
        f = self.network.forward_features(x_B3HW)  # type: ignore[operator]
        outputs: dict[str, torch.Tensor] = {}
        if wanted & self._logit_names:
            outputs[LOGITS] = self.network.forward_head(f)  # type: ignore[operator]
        # Last, so that modules inside the head are left with what they give on the way to the pooled features.
        outputs[PRE_LOGITS] = self.network.forward_head(f, pre_logits=True)  # type: ignore[operator]
        return {name: outputs[name] for name in outputs if name in wanted}


def own_transform(config: Mapping[str, Any]) -> ImageTransform:
    """The evaluation transform that timm's record (a `pretrained_cfg`) states for its weights."""
    return ImageTransform(**record_arguments(config))


def _size_options(config: Any, transform: Transform) -> dict[str, Any]:
    """`img_size` for networks whose position table has one entry a patch, when another size is asked for."""
    if config is None or not config.fixed_input_size or not isinstance(transform, ImageTransform):
        return {}
    return {} if tuple(config.input_size[1:]) == transform.height_width else {"img_size": transform.height_width}


def _build(architecture: str, seed: int, create: Mapping[str, Any]) -> nn.Module:
    import timm

    with seeded_weights(seed, architecture):
        try:
            return timm.create_model(architecture, **create)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"timm cannot build {architecture!r} with {dict(create)}: {error}") from error
