"""The token that follows a prompt: forward passes over questions of equal length, so that nothing is padded.

Legend: Q questions, T tokens, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

Inputs = dict[str, torch.Tensor]


def on_device(inputs: Mapping[str, Any], model: Any) -> Inputs:
    """A processor's output as tensors where the model is: pixels in its type; what is no tensor, and labels, go."""
    weight = next(model.parameters())
    return {
        name: value.to(weight.device, weight.dtype) if value.is_floating_point() else value.to(weight.device)
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and name != "labels"
    }


def next_token_logits(model: Any, rows: Sequence[Inputs], batch_size: int, **further: Any) -> torch.Tensor:
    """(Q, V) logits of the token after each of Q inputs.

    Inputs of one length share a forward pass; a question's logits do not depend on which others were asked.

    Args:
        model: A model of transformers whose output has `logits`.
        rows: Inputs of every question, each with a batch of one.
        batch_size: Most questions in one pass.
        further: Further arguments of the forward pass, equal for all.
    """
    logits: dict[int, torch.Tensor] = {}
    for group in equal_lengths([row["input_ids"].shape[1] for row in rows], batch_size):
        batch = {name: torch.cat([rows[i][name] for i in group]) for name in rows[group[0]]}
        found = model(**batch, **last_only(model), use_cache=False, **further).logits[:, -1].float()
        logits.update(zip(group, found, strict=True))
    return torch.stack([logits[i] for i in range(len(rows))])


def equal_lengths(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions in groups of one length, at most `batch_size` each.

    Example:
        >>> equal_lengths([3, 5, 3, 3], 2)
        [[0, 2], [3], [1]]
    """
    by_length: dict[int, list[int]] = {}
    for i, length in enumerate(lengths):
        by_length.setdefault(length, []).append(i)
    return [
        group[start : start + batch_size]
        for _, group in sorted(by_length.items())
        for start in range(0, len(group), batch_size)
    ]


def last_only(model: Any) -> dict[str, int]:
    """The argument that spares logits of all tokens but the last, where the model's forward pass has it."""
    return {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
