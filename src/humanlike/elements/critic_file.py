"""Critics as files: one safetensors file with the readout, the presence head and what they read; never unpickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from humanlike.elements.critic import Critic
from humanlike.elements.presence_file import head_from_record, head_record
from humanlike.files import atomic_path, json_ready
from humanlike.interfaces import Backbone

SCHEMA = "humanlike.critic/1"
KEY = "critic"
HEAD = "presence."


def save_critic(path: str | Path, critic: Critic) -> None:
    """Write readout and presence head, whole or not at all; the backbone is named by its weights' hash.

    Args:
        path: A `.safetensors` file.
        critic: The critic.
    """
    head_facts, head_tensors = (None, {}) if critic.head is None else head_record(critic.head)
    description = {
        "schema": SCHEMA,
        "name": critic.name,
        "labels": list(critic.labels),
        "classes": list(critic.classes),
        "layer": critic.layer,
        "backbone_name": critic.backbone.name,
        "backbone_hash": critic.backbone.weights_hash,
        "record": json_ready(critic.record),
        "head": head_facts,
    }
    tensors = {"coef_KD": critic.coef_KD, "intercept_K": critic.intercept_K}
    tensors |= {HEAD + name: value for name, value in head_tensors.items()}
    with atomic_path(path) as temporary:
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in tensors.items()},
            temporary,
            metadata={KEY: json.dumps(description, ensure_ascii=False)},
        )


def saved_critic(file: str | Path, backbone: Backbone, **others: Any) -> Critic:
    """`load_critic` for who makes critics from `backbone` and `sketches`, such as `benchmark=generation`.

    Args:
        file: The file.
        backbone: The network.
        others: What a saved critic has no need of: sketches, layer, cache_dir, seed, …
    """
    del others
    return load_critic(file, backbone)


def critic_facts(path: str | Path) -> dict[str, Any]:
    """What a critic's file says of it, without its tensors: labels, layer, backbone, record.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged or no critic.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"there is no critic at {path}; `save_critic` writes one")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is no whole safetensors file ({error})") from error
    facts: dict[str, Any] = json.loads(metadata.get(KEY, "{}"))
    if facts.get("schema") != SCHEMA:
        raise ValueError(f"{path} is no critic: its schema is {facts.get('schema')!r}, not {SCHEMA!r}")
    return facts


def load_critic(path: str | Path, backbone: Backbone) -> Critic:
    """Read a critic for the backbone that it was fitted on.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is damaged or no critic, or the backbone has other weights.
    """
    path = Path(path).expanduser()
    facts = critic_facts(path)
    with safe_open(path, framework="pt") as file:
        tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if backbone.weights_hash != facts["backbone_hash"]:
        raise ValueError(
            f"the critic {path} was fitted on {facts['backbone_name']} with weights {facts['backbone_hash'][:12]}…, "
            f"but {backbone.name} has {backbone.weights_hash[:12]}…; use that backbone, or fit a critic for this one"
        )
    head = None
    if facts["head"] is not None:
        own = {name.removeprefix(HEAD): value for name, value in tensors.items() if name.startswith(HEAD)}
        head = head_from_record(facts["head"], own, backbone, str(path))
    return Critic(
        backbone,
        facts["labels"],
        tensors["coef_KD"],
        tensors["intercept_K"],
        facts["classes"],
        head,
        facts["layer"],
        facts["name"],
        facts["record"],
    )
