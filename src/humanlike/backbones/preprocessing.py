"""Which preprocessing belongs to which weights: the published one, a side-car's or a stated one, never a guess."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from humanlike.backbones.transforms import ImageTransform, as_transform
from humanlike.backbones.weights import WeightFile
from humanlike.interfaces import Transform

SIDECARS = ("config.json", "open_clip_config.json")
# How open_clip calls what ImageTransform calls crop_mode; there the crop always covers the whole resized side.
CROP_MODES = {"shortest": "center", "squash": "squash"}


def choose_transform(
    architecture: str,
    stated: ImageTransform,
    given: Mapping[str, Any] | Transform | None,
    *,
    published: bool = False,
    source: WeightFile | None = None,
    forced: bool = False,
) -> Transform:
    """The preprocessing for a network.

    Args:
        architecture: Name, for messages.
        stated: What the architecture's published weights state about themselves.
        given: The user's: overrides of `stated`, a whole Transform, or None.
        published: The weights are the published ones, so that another preprocessing than `stated` is an error.
        source: The file that the weights come from, if any; its preprocessing must be given, or lie in a side-car.
        forced: Accept another preprocessing than the published weights' own.

    Raises:
        ValueError: Published weights with another preprocessing, or a file that says nothing about its own.
    """
    if source is not None and not states_normalisation(given):
        return _sidecar_transform(architecture, source.path(), stated, given)
    if given is None:
        return stated
    chosen = as_transform({**as_arguments(stated), **given} if isinstance(given, Mapping) else given)
    if published and not forced and chosen.fingerprint != stated.fingerprint:
        different = sorted(
            str(k)
            for k in {*chosen.fingerprint, *stated.fingerprint}
            if chosen.fingerprint.get(k) != stated.fingerprint.get(k)
        )
        raise ValueError(
            f"{architecture}: transform differs from the one that belongs to the published weights in {different} "
            f"(theirs: { {k: stated.fingerprint.get(k) for k in different} }); leave transform=null, or set "
            "force_transform=true if you mean it"
        )
    return chosen


def states_normalisation(given: Mapping[str, Any] | Transform | None) -> bool:
    """Whether a user's preprocessing says at least mean and standard deviation, which no file of weights tells."""
    return given is not None and (not isinstance(given, Mapping) or {"mean", "std"} <= set(given))


def as_arguments(transform: ImageTransform) -> dict[str, Any]:
    """The arguments that make `transform`."""
    return {key: getattr(transform, key) for key in ImageTransform.__dataclass_fields__}


def record_arguments(record: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ImageTransform out of a published record: timm's `pretrained_cfg`, open_clip's `preprocess_cfg`.

    Raises:
        ValueError: A way of resizing that ImageTransform does not have.
    """
    found = {key: record[key] for key in ImageTransform.__dataclass_fields__ if record.get(key) is not None}
    if "input_size" in record:
        found["size"] = tuple(record["input_size"][1:])
    if "resize_mode" in record:
        if record["resize_mode"] not in CROP_MODES:
            raise ValueError(
                f"resize_mode={record['resize_mode']!r} is not known, only {sorted(CROP_MODES)}; give the whole "
                "transform"
            )
        found |= {"crop_mode": CROP_MODES[record["resize_mode"]], "crop_pct": 1.0}
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def _sidecar_transform(
    architecture: str, file: Path, stated: ImageTransform, given: Mapping[str, Any] | Transform | None
) -> Transform:
    for sidecar in (file.with_suffix(".json"), *(file.with_name(name) for name in SIDECARS)):
        if sidecar.is_file():
            content = json.loads(sidecar.read_text(encoding="utf-8"))
            record = content.get("pretrained_cfg") or content.get("preprocess_cfg") or content
            if {"mean", "std"} <= set(record):
                overrides = given if isinstance(given, Mapping) else {}
                return ImageTransform(**{**as_arguments(stated), **record_arguments(record), **overrides})
    raise ValueError(
        f"{architecture}: weights from the file {file} say nothing about their preprocessing, and a wrong one passes "
        "unnoticed; give transform={mean: [...], std: [...], size: ..., interpolation: ...}, or put timm's config.json "
        "(with pretrained_cfg) or open_clip's open_clip_config.json (with preprocess_cfg) beside the file"
    )
