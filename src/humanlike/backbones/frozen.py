"""Frozen means frozen: evaluation mode survives `fit`, nothing requires a gradient, and the weights have a digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Self

import torch
from torch import nn


class FrozenModule(nn.Module):
    """A module that stays in evaluation mode for good.

    `LightningModule.fit` calls `train()` on everything it holds; BatchNorm statistics of a "frozen" backbone then drift
    from batch to batch although no parameter has a gradient. Here `train()` is deaf, and PyTorch's recursion from a
    parent ends here, so that no module inside ever hears it.

    Example:
        >>> class Tiny(FrozenModule):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.norm = nn.BatchNorm2d(3)
        ...         self.freeze()
        >>> parent = nn.Sequential(Tiny()).train()
        >>> parent.training, parent[0].training, parent[0].norm.training
        (True, False, False)
    """

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode, whatever `mode` says."""
        del mode
        return super().train(False)

    def freeze(self) -> Self:
        """Evaluation mode, and no gradient for any parameter; call it when the module is complete."""
        self.requires_grad_(False)
        return self.eval()


def tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and value of every parameter and buffer, buffers that a state dict leaves out included."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def weights_digest(architecture: str, module: nn.Module) -> str:
    """Hex SHA-256 over the architecture's name and every parameter and buffer (name, dtype, shape, bytes).

    It depends on neither the device nor the memory format of the tensors.

    Example:
        >>> weights_digest("a", nn.Identity()) != weights_digest("b", nn.Identity())
        True
    """
    digest = hashlib.sha256(architecture.encode())
    for name, tensor in sorted(tensors(module), key=lambda item: item[0]):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"|{name}|{value.dtype}|{tuple(value.shape)}|".encode())
        # A view as bytes serves every dtype, bfloat16 (which NumPy lacks) included.
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class WeightsDigest:
    """The digest of a module's weights, computed once and again only after a tensor has been written to or replaced.

    Args:
        architecture: Name that goes into the digest.
        module: Whose parameters and buffers are hashed.
    """

    def __init__(self, architecture: str, module: nn.Module) -> None:
        self.architecture = architecture
        self.module = module
        self._seen: tuple[tuple[int, int], ...] | None = None
        self._digest = ""

    def __call__(self) -> str:
        """The hex digest of the weights as they are now."""
        state = tuple((t.data_ptr(), -1 if t.is_inference() else t._version) for _, t in tensors(self.module))
        if state != self._seen:
            self._digest = weights_digest(self.architecture, self.module)
            self._seen = state
        return self._digest
