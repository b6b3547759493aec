"""Image towers of open_clip as backbones."""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from humanlike.backbones.downloads import download
from humanlike.backbones.layers import ModuleBackbone
from humanlike.backbones.network import seeded_weights
from humanlike.backbones.preprocessing import choose_transform, record_arguments
from humanlike.backbones.pretrained import hub_weights
from humanlike.backbones.transforms import ImageTransform
from humanlike.backbones.weights import WeightFile, weight_file
from humanlike.interfaces import Transform

EMBEDDING = "embedding"


class OpenClipBackbone(ModuleBackbone):
    """The image tower of a language-image model of open_clip, frozen, with its own preprocessing.

    Layers are the tower's modules ("transformer.resblocks.11"), and "embedding": what is compared with texts, not
    normalised. The text tower is built to load the weights and then let go.

    Args:
        architecture: open_clip's name ("ViT-B-32-quickgelu").
        weights: open_clip's tag ("openai", "laion2b_s34b_b79k"); None for random ones, drawn from `seed`; a WeightFile
            for the image tower such as Checkpoint; or the path of a whole model's state dict.
        layer: Default layer.
        transform: Overrides of the preprocessing (arguments of ImageTransform) or a whole Transform. A tag carries its
            own, and another one is an error unless forced; a file has none that could be known: give at least `mean`
            and `std`, or a side-car `open_clip_config.json` beside it.
        name: Name in results; the architecture if None.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.
        seed: Seed of random weights.
        force_transform: Accept a preprocessing that differs from the tag's own.
        options: More arguments for `open_clip.create_model`.
        info: Facts for tables: architecture, paradigm, data, licence, download_mb.

    Raises:
        FileNotFoundError: The weights are not on this machine and cannot be fetched.
        ValueError: Unknown architecture, tag or layer, weights that do not fit, a preprocessing that is missing or not
            theirs.
    """

    def __init__(
        self,
        architecture: str,
        weights: str | Path | WeightFile | None,
        layer: str = EMBEDDING,
        transform: Mapping[str, Any] | Transform | None = None,
        *,
        name: str | None = None,
        offline: bool | None = None,
        seed: int = 0,
        force_transform: bool = False,
        options: Mapping[str, Any] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        tags = published_tags(architecture)
        tag = weights if isinstance(weights, str) and weights in tags else None
        source = weight_file(weights, f"the tags of {architecture} are {', '.join(tags)}") if tag is None else None
        both_towers: Path | None = open_clip_weights(architecture, tag, offline) if tag is not None else None
        if source is not None and isinstance(weights, str | Path):
            both_towers = source.path()
        with seeded_weights(seed, architecture), quiet():
            model = build_model(architecture, both_towers, dict(options or {}))
            tower: nn.Module = model.visual
            del model
        if source is not None and both_towers is None:
            source.load_into(tower)
        chosen = choose_transform(
            architecture,
            own_transform(architecture, tag, tower),
            transform,
            published=tag is not None,
            source=source,
            forced=force_transform,
        )
        super().__init__(
            tower,
            name=name or architecture,
            architecture=architecture,
            transform=chosen,
            layer=layer,
            heads=(EMBEDDING,),
            info=info,
        )

    def _heads(self, x_B3HW: torch.Tensor, wanted: frozenset[str]) -> dict[str, torch.Tensor]:
        output = self.network(x_B3HW)
        pooled = output[0] if isinstance(output, tuple) else output  # some towers give their tokens too
        return {EMBEDDING: pooled} if EMBEDDING in wanted else {}


def published_tags(architecture: str) -> list[str]:
    """Tags of the weights that open_clip knows for an architecture.

    Raises:
        ValueError: open_clip knows no such architecture; the nearest names are given.
    """
    import open_clip

    names = open_clip.list_models()
    if architecture not in names:
        near = difflib.get_close_matches(architecture, names, n=3, cutoff=0.4)
        hint = f"nearest are {', '.join(near)}" if near else "open_clip.list_models() gives all names"
        raise ValueError(f"open_clip knows no architecture {architecture!r}; {hint}")
    return open_clip.list_pretrained_tags_by_model(architecture)


def open_clip_weights(architecture: str, tag: str, offline: bool | None = None) -> Path:
    """The file with a tag's weights, both towers, fetched now if it is not here yet and that is allowed.

    Raises:
        FileNotFoundError: It is not on this machine and cannot be fetched; says how to get it.
    """
    import open_clip
    from open_clip.constants import HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME

    record = open_clip.get_pretrained_cfg(architecture, tag)
    if not record.get("hf_hub"):
        return download(record["url"], offline=offline)
    repository, _, file = record["hf_hub"].rpartition("/")
    names = (file,) if file else (HF_SAFE_WEIGHTS_NAME, HF_WEIGHTS_NAME)
    return hub_weights(f"{architecture} ({tag})", repository, names, offline=offline)


def own_transform(architecture: str, tag: str | None, tower: nn.Module) -> ImageTransform:
    """The evaluation transform that open_clip states for a tag; for random weights, that of the first tag."""
    import open_clip

    tags = published_tags(architecture)
    record: dict[str, Any] = {"interpolation": "bicubic", "resize_mode": "shortest"}
    if tag or tags:
        record |= open_clip.get_pretrained_cfg(architecture, tag or tags[0])
    return ImageTransform(**{**record_arguments(record), "size": tower.image_size})


def build_model(architecture: str, path: Path | None, options: dict[str, Any]) -> Any:
    """Both towers of an open_clip model, with the weights of `path` or random ones.

    Raises:
        ValueError: open_clip cannot build it, or the weights do not fit.
    """
    import open_clip

    try:
        device = torch.get_default_device()
        model = open_clip.create_model(architecture, device=device, pretrained_text=False, **options)
        if path is not None:
            open_clip.load_checkpoint(model, str(path), weights_only=True)
    except (RuntimeError, TypeError, KeyError) as error:
        raise ValueError(f"open_clip cannot build {architecture!r} from {path or 'random weights'}: {error}") from error
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep open_clip still: it logs to the root logger, which it would set up, and warns of weights that come later."""
    root = logging.getLogger()
    level, silent = root.level, logging.NullHandler()
    root.addHandler(silent)
    root.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*QuickGELU mismatch.*", UserWarning)
            yield
    finally:
        root.setLevel(level)
        root.removeHandler(silent)
