"""What a vision transformer's class token looks at, for any network whose blocks attend over the whole image.

Legend: B images, N tokens (first the class token, the patches last), D width, h heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from humanlike.backbones.layers import ModuleBackbone
from humanlike.interfaces import Backbone

Project = Callable[[Any, torch.Tensor], torch.Tensor]


@torch.no_grad()
def mean_attention(backbone: Backbone, x_B3HW: torch.Tensor) -> torch.Tensor | None:
    """(B, N, N) attention averaged over heads and blocks: row i is what token i reads.

    Found by asking every attention module of the kinds that timm, open_clip and torchvision build for its queries and
    keys; position biases inside the attention are left out.

    Args:
        backbone: The network.
        x_B3HW: Transformed images.

    Returns:
        The mean, or None for a network without attention over the whole image (convolutions, windows).
    """
    if not isinstance(backbone, ModuleBackbone):
        return None
    attending = [m for m in backbone.network.modules() if _project_of(m) is not None]
    if not attending:
        return None
    found: list[torch.Tensor] = []

    def reader(project: Project) -> Callable[..., None]:
        def read(module: nn.Module, inputs: tuple[torch.Tensor, ...], keywords: dict[str, Any]) -> None:
            tokens = inputs[0] if inputs else keywords["query"]
            if tokens.ndim == 3:
                found.append(project(module, tokens))

        return read

    with ExitStack() as hooks:
        for module in attending:
            project = _project_of(module)
            assert project is not None
            hooks.callback(module.register_forward_pre_hook(reader(project), with_kwargs=True).remove)
        backbone.features(x_B3HW, [backbone.default_layer])
    whole = [a for a in found if len(a) == len(x_B3HW) and a.shape == found[0].shape]
    if not whole or len(whole) < len(found) or whole[0].shape[-1] < 2:
        return None
    return torch.stack(whole).mean(dim=0)


def patch_grid(num_tokens: int) -> tuple[int, int]:
    """Rows and columns of a square grid of patches that leaves at least one token for the class.

    Example:
        >>> patch_grid(197), patch_grid(201), patch_grid(50)
        ((14, 14), (14, 14), (7, 7))
    """
    side = math.isqrt(max(num_tokens - 1, 0))
    return side, side


def _project_of(module: nn.Module) -> Project | None:
    """How an attention module of a known kind makes its weights."""
    if isinstance(module, nn.MultiheadAttention):
        return _multihead
    joint = isinstance(getattr(module, "qkv", None), nn.Linear) and hasattr(module, "num_heads")
    return _joint if joint else None


def _joint(module: Any, tokens_BND: torch.Tensor) -> torch.Tensor:
    """(B, N, N) of an attention with one projection `qkv`, as timm builds it."""
    b, n, _ = tokens_BND.shape
    q, k, _ = module.qkv(tokens_BND).reshape(b, n, 3, module.num_heads, -1).permute(2, 0, 3, 1, 4)
    norms = (getattr(module, name, None) or nn.Identity() for name in ("q_norm", "k_norm"))
    q, k = (norm(x) for norm, x in zip(norms, (q, k), strict=True))
    return _weights(q, k)


def _multihead(module: Any, tokens: torch.Tensor) -> torch.Tensor:
    """(B, N, N) of an `nn.MultiheadAttention` of tokens to one another."""
    tokens_BND = tokens if module.batch_first else tokens.transpose(0, 1)
    b, n, _ = tokens_BND.shape
    q, k, _ = nn.functional.linear(tokens_BND, module.in_proj_weight, module.in_proj_bias).chunk(3, dim=-1)
    q, k = (x.reshape(b, n, module.num_heads, -1).transpose(1, 2) for x in (q, k))
    return _weights(q, k)


def _weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(dim=-1).mean(dim=1)
