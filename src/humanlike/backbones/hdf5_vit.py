"""A vision transformer saved by Keras as HDF5, under timm's names.

Keras keeps the kernels of dense layers as (in, out) and of convolutions as (height, width, in, out), and has query, key
and value in three layers; timm keeps (out, in), (out, in, height, width), and the three stacked in one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

# The end of a name in the file → timm's, outside the blocks and inside block {0}.
OUTSIDE = {
    r"embedding/(kernel|bias)": r"patch_embed.proj.\1",
    r"/cls": "cls_token",
    r"/pos_embedding": "pos_embed",
    r"encoder_norm/(gamma|beta)": r"norm.\1",
    r"head/(kernel|bias)": r"head.\1",
}
INSIDE = {
    r"LayerNorm_0/(gamma|beta)": r"norm1.\1",
    r"LayerNorm_2/(gamma|beta)": r"norm2.\1",
    r"MultiHeadDotProductAttention_1/(query|key|value)/(kernel|bias)": r"attn.\1.\2",
    r"MultiHeadDotProductAttention_1/out/(kernel|bias)": r"attn.proj.\1",
    r"Dense_0/(kernel|bias)": r"mlp.fc1.\1",
    r"Dense_1/(kernel|bias)": r"mlp.fc2.\1",
}
ENDINGS = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}


def read_vit(path: Path) -> dict[str, torch.Tensor]:
    """The weights of a vision transformer in an HDF5 file, under timm's names.

    Raises:
        ModuleNotFoundError: h5py is not installed.
        ValueError: The file is no HDF5, or holds no such network.
    """
    try:
        import h5py  # type: ignore[import-not-found]  # optional, for this one format
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{path} is an HDF5 file; to read it: pip install h5py") from error
    arrays: dict[str, np.ndarray] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and not name.startswith("optimizer"):
            arrays[name] = np.asarray(item[()])

    try:
        with h5py.File(path, "r") as file:
            file.visititems(keep)
    except OSError as error:
        raise ValueError(f"{path} cannot be read as HDF5 ({str(error)[:160]})") from error
    return convert_vit(arrays, str(path))


def convert_vit(arrays: Mapping[str, np.ndarray], source: str = "the file") -> dict[str, torch.Tensor]:
    """Arrays of a Keras vision transformer under timm's names and in timm's layout.

    Args:
        arrays: Path inside the file ("Transformer/encoderblock_0/…/query/kernel:0") → array.
        source: Where they come from, for messages.

    Raises:
        ValueError: An array has a name that belongs to no such network, or a block lacks query, key or value.
    """
    named: dict[str, torch.Tensor] = {}
    for path, array in arrays.items():
        name, _, ending = _timm_name(path, source).rpartition(".")
        value = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        if ending == "kernel":
            value = value.permute(3, 2, 0, 1) if value.ndim == 4 else value.T
        full = f"{name}.{ENDINGS[ending]}" if name else ending
        named[full] = value.contiguous()
    return _stack_attention(named, source)


def _timm_name(path: str, source: str) -> str:
    plain = path.partition(":")[0]
    block = re.search(r"encoderblock_(\d+)", plain)
    for pattern, replacement in (INSIDE if block else OUTSIDE).items():
        if match := re.search(rf"{pattern}$", plain):
            return f"blocks.{block[1]}.{match.expand(replacement)}" if block else match.expand(replacement)
    raise ValueError(f"{source}: {path!r} is no weight of a Keras vision transformer")


def _stack_attention(named: dict[str, torch.Tensor], source: str) -> dict[str, torch.Tensor]:
    stacked = {name: value for name, value in named.items() if not re.search(r"attn\.(query|key|value)\.", name)}
    for name in named:
        if ".attn.query." in name:
            parts = [name.replace("query", part) for part in ("query", "key", "value")]
            if absent := [part for part in parts if part not in named]:
                raise ValueError(f"{source} lacks {absent[0]}")
            stacked[name.replace("query", "qkv")] = torch.cat([named[part] for part in parts])
    return stacked
