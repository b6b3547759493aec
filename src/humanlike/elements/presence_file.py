"""Presence heads as files: tensors and a description that loading checks; nothing is ever unpickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from humanlike.elements.grid import GridPool
from humanlike.elements.presence_head import PresenceHead
from humanlike.files import atomic_path
from humanlike.interfaces import Backbone

SCHEMA = "humanlike.presence_head/1"
KEY = "presence_head"


def save_presence_head(path: str | Path, head: PresenceHead) -> None:
    """Write a head to a `.safetensors` file, whole or not at all.

    Kept are the effective weights, the standardisation, the elements, and what the features must be: name and weights
    hash of the backbone, layer, and pooling; also the settings, and the sources that were trained on.

    Args:
        path: The file.
        head: A fitted head.

    Raises:
        ValueError: The head was never fitted, or it does not know which features it reads.
    """
    description, tensors = head_record(head)
    with atomic_path(path) as temporary:
        save_file(
            {name: value.cpu().contiguous() for name, value in tensors.items()},
            temporary,
            metadata={KEY: json.dumps(description, ensure_ascii=False)},
        )


def head_record(head: PresenceHead) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What a file keeps of a fitted head: a description that JSON can hold, and tensors.

    Raises:
        ValueError: See `save_presence_head`.
    """
    if int(head.standardize.count) == 0:
        raise ValueError("this presence head was never fitted; there is nothing to save")
    facts = dict(head.hparams)
    if facts["layer"] is None or facts["backbone_hash"] is None:
        raise ValueError(
            "a saved presence head must say which features it reads: make it with a backbone, or with layer and "
            "backbone_hash"
        )
    description = {"schema": SCHEMA, **facts, "trained_on": head.trained_on}
    tensors = {
        "weight_PD": head.effective_weight.detach(),
        "bias_P": head.bias_P.detach(),
        "mean_D": head.standardize.mean_D,
        "inverse_scale_D": head.standardize.inverse_scale_D,
        "count": head.standardize.count,
        "known_pairs": head.known_pairs,
    }
    return description, tensors


def load_presence_head(path: str | Path, backbone: Backbone | None = None) -> PresenceHead:
    """Read a head, with the backbone whose features it reads.

    Args:
        path: A file of `save_presence_head`.
        backbone: The network, if images are to be judged; None: the head reads features, and whoever gives them is
            held to the layer and the weights hash of the file.

    Returns:
        The head; its own and its shared weights are one (`share` is 0), its logits are the same.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged or no presence head, or the backbone has other weights or no such layer.
    """
    facts, tensors = _read(Path(path).expanduser())
    if backbone is not None and backbone.weights_hash != facts["backbone_hash"]:
        raise ValueError(
            f"the presence head {path} was trained on {facts['backbone_name']} with weights "
            f"{facts['backbone_hash'][:12]}…, but {backbone.name} has {backbone.weights_hash[:12]}…; use that "
            "backbone, or train a head for this one"
        )
    if backbone is not None and facts["layer"] not in backbone.layers:
        raise ValueError(f"the presence head {path} reads the layer {facts['layer']!r}, which {backbone.name} lacks")
    return head_from_record(facts, tensors, backbone, str(path))


def head_from_record(
    facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], backbone: Backbone | None, path: str
) -> PresenceHead:
    """The head that `head_record` described; see `load_presence_head`.

    Args:
        facts: The description.
        tensors: The tensors.
        backbone: The network, if images are to be judged.
        path: Where it comes from, for messages.
    """
    head = PresenceHead(
        facts["num_features"],
        facts["elements"],
        C=facts["C"],
        pool=None if facts["pool"] is None else GridPool(**facts["pool"]),
        backbone=backbone,
        layer=facts["layer"],
        backbone_hash=facts["backbone_hash"],
        backbone_name=facts["backbone_name"],
    )
    own = {
        "weight_PD": head.weight_PD,
        "bias_P": head.bias_P,
        "mean_D": head.standardize.mean_D,
        "inverse_scale_D": head.standardize.inverse_scale_D,
        "count": head.standardize.count,
        "known_pairs": head.known_pairs,
    }
    for name, tensor in own.items():
        if name not in tensors or tensors[name].shape != tensor.shape:
            got = tuple(tensors[name].shape) if name in tensors else "nothing"
            raise ValueError(f"{path}: {name} should be {tuple(tensor.shape)} for its list of elements, it is {got}")
        with torch.no_grad():
            tensor.copy_(tensors[name])
    head.trained_on = facts["trained_on"]
    head.requires_grad_(False)
    return head


def _read(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no presence head at {path}; `python train.py task=presence` makes one")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except SafetensorError as error:
        raise ValueError(f"{path} is no whole safetensors file ({error})") from error
    facts = json.loads(metadata.get(KEY, "{}"))
    if facts.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no presence head: its schema is {facts.get('schema')!r}, not {SCHEMA!r}")
    return facts, tensors
