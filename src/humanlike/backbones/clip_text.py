"""Text towers of open_clip: sentences → vectors that are compared with an image tower's "embedding".

Legend: M texts, D width of the common space.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from humanlike.backbones.clip import build_model, open_clip_weights, published_tags, quiet
from humanlike.backbones.frozen import weights_digest
from humanlike.backbones.network import seeded_weights
from humanlike.files import atomic_path, sha256_value

_TEXTS_AT_ONCE = 256


class TextTower:
    """The text half of a language-image model of open_clip, frozen.

    Args:
        architecture: open_clip's name ("ViT-B-32-quickgelu").
        weights: open_clip's tag ("openai"), the path of a whole model's state dict, or None for random ones.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.
        seed: Seed of random weights; with the image tower's seed both halves come from one model.
        cache_dir: Where vectors of texts are kept; None keeps none.

    Raises:
        FileNotFoundError: The weights are not on this machine and cannot be fetched.
        ValueError: Unknown architecture, or weights that do not fit.
    """

    def __init__(
        self,
        architecture: str,
        weights: str | Path | None,
        *,
        offline: bool | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
    ) -> None:
        import open_clip

        tags = published_tags(architecture)
        path: Path | None = None
        if weights is not None:
            tagged = isinstance(weights, str) and weights in tags
            path = open_clip_weights(architecture, str(weights), offline) if tagged else Path(weights).expanduser()
            if not path.is_file():
                raise FileNotFoundError(
                    f"there is no weights file {path}; the tags of {architecture} are {', '.join(tags)}"
                )
        with seeded_weights(seed, architecture), quiet():
            model: nn.Module = build_model(architecture, path, {})
            self._tokenize = open_clip.get_tokenizer(architecture)
        model.visual = nn.Identity()
        self.model = model.eval().requires_grad_(False)
        self.architecture = architecture
        self.cache_dir = None if cache_dir is None else Path(cache_dir)
        self.weights_hash = weights_digest(architecture, self.model)

    @property
    def logit_scale(self) -> float:
        """What cosines are multiplied by before a softmax: one over the model's own temperature."""
        return float(self.model.logit_scale.exp())  # type: ignore[operator]

    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        """(M, D) float32 vectors of length 1, one a text; read from the cache where these very texts were seen before.

        Raises:
            ValueError: There are no texts, or one is empty.
        """
        blank = [i for i, text in enumerate(texts) if not text.strip()]
        if not texts or blank:
            raise ValueError(f"text {blank[0]} is empty" if blank else "there are no texts to embed")
        kept = None
        if self.cache_dir is not None:
            kept = self.cache_dir / f"{sha256_value([self.weights_hash, list(texts)])[:32]}.npy"
            if kept.is_file():
                return torch.from_numpy(np.load(kept, allow_pickle=False))
        vectors_MD = self._computed(texts)
        if kept is not None:
            with atomic_path(kept) as temporary, temporary.open("wb") as file:
                np.save(file, vectors_MD.numpy(), allow_pickle=False)
        return vectors_MD

    @torch.no_grad()
    def _computed(self, texts: Sequence[str]) -> torch.Tensor:
        device = next(self.model.parameters()).device
        parts = [
            self.model.encode_text(self._tokenize(list(texts[i : i + _TEXTS_AT_ONCE])).to(device))  # type: ignore[operator]
            for i in range(0, len(texts), _TEXTS_AT_ONCE)
        ]
        return functional.normalize(torch.cat(parts).float(), dim=-1).cpu()
