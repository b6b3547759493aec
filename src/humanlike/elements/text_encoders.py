"""Text encoders of transformers: whole texts and their tokens as vectors, for comparing words by meaning.

Legend: M texts, T tokens of one text, D width.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.elements.vlm_files import ModelFiles, model_files

POOLINGS = ("mean", "first", "last")
_TEXTS_AT_ONCE = 64


@dataclass(frozen=True)
class TokenVectors:
    """A text as a model reads it.

    Attributes:
        ids_T: Numbers of the tokens.
        vectors_TD: Their vectors, float64.
        special_T: Which tokens are no part of the text (its start, its end).
    """

    ids_T: np.ndarray
    vectors_TD: np.ndarray
    special_T: np.ndarray


class TransformerText:
    """A frozen encoder of texts: any model that transformers' AutoModel reads.

    Texts of one length are computed together and none is padded, so that no result depends on its neighbours.

    Args:
        model: A folder, "owner/name" on Hugging Face, or a .gguf file.
        revision: Commit, tag or branch of a repository.
        pooling: How tokens become one vector: "mean" of all, the "first", the "last"; None: as the model's own
            `1_Pooling/config.json` says, which sentence-transformers writes, else "mean".
        layer: Hidden layer, from 0 (the word vectors) or from the end (-1); None: the last.
        prefix: What stands before every text ("query: " for E5).
        longest: Most tokens of a text.
        offline: True: never download. Otherwise as HF_HUB_OFFLINE says.

    Raises:
        FileNotFoundError: The model is not on this machine and cannot be fetched.
        ValueError: An argument is out of range, or the model has a pooling or a further layer that is not known here.
        ModuleNotFoundError: transformers is not installed.
    """

    def __init__(
        self,
        model: str | Path,
        revision: str | None = None,
        pooling: str | None = None,
        layer: int | None = None,
        prefix: str = "",
        longest: int = 512,
        offline: bool | None = None,
    ) -> None:
        if importlib.util.find_spec("transformers") is None:
            raise ModuleNotFoundError(
                "a text encoder needs transformers: pip install 'humanlike[vlm]'", name="transformers"
            )
        if pooling not in (*POOLINGS, None) or longest < 1:
            raise ValueError(
                f"a text encoder needs pooling {', '.join(POOLINGS)} or None, and longest ≥ 1; got {pooling!r}, "
                f"{longest}"
            )
        self._file = Path(model).expanduser() if str(model).endswith(".gguf") else None
        self._files = self._found(model, revision, offline)
        self.pooling = pooling or _own_pooling(self._files.folder)
        self.layer, self.prefix, self.longest = layer, prefix, longest

    def _found(self, model: str | Path, revision: str | None, offline: bool | None) -> ModelFiles:
        if self._file is not None:
            if not self._file.is_file():
                raise FileNotFoundError(f"there is no file {self._file}")
            return ModelFiles(self._file.parent, self._file.name)
        try:
            return model_files(model, revision, offline)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"the text encoder {str(model)!r} is not on this machine and cannot be fetched; give a folder with "
                "config.json, tokenizer and model.safetensors, or run `hf download` where there is a network "
                f"({str(error).split(': ')[-1].split('. Run')[0]})"
            ) from error

    @property
    def source(self) -> str:
        """One line for the record."""
        from humanlike.files import sha256_file

        content = f"file:{sha256_file(self._file)[:12]}" if self._file else self._files.revision[:18]
        layer = "last layer" if self.layer is None else f"layer {self.layer}"
        prefix = f", prefix {self.prefix!r}" if self.prefix else ""
        return f"{self._files.name}@{content}, {layer}, {self.pooling} of tokens{prefix}"

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Tokenizer and model."""
        import torch
        from transformers import AutoModel, AutoTokenizer

        given: dict[str, Any] = {"pretrained_model_name_or_path": str(self._files.folder), "local_files_only": True}
        if self._file is not None:
            given["gguf_file"] = self._file.name
        try:
            tokenizer = AutoTokenizer.from_pretrained(**given)
            further: dict[str, Any] = {} if self._file is not None else {"use_safetensors": True}
            model = AutoModel.from_pretrained(**given, **further, dtype=torch.float32)
        except (ValueError, OSError, KeyError) as error:
            text = " ".join(str(error).split())[:200]
            raise ValueError(f"{self._files.name} cannot be read as an encoder of texts ({text})") from error
        return tokenizer, model.eval().requires_grad_(False)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """(M, D) float64 vectors, one a text.

        Raises:
            ValueError: There are no texts, or one has no token.
        """
        found = self.tokens(texts)
        if self.pooling == "first":
            return np.stack([t.vectors_TD[0] for t in found])
        if self.pooling == "last":
            return np.stack([t.vectors_TD[-1] for t in found])
        return np.stack([t.vectors_TD.mean(0) for t in found])

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The tokens of every text with their vectors.

        Raises:
            ValueError: There are no texts, one has no token, or the model has no such layer.
        """
        if not texts:
            raise ValueError("there are no texts to encode")
        tokenizer, _ = self._loaded
        read = tokenizer(
            [self.prefix + text for text in texts],
            truncation=True,
            max_length=self.longest,
            return_special_tokens_mask=True,
        )
        ids = [np.asarray(row, dtype=np.int64) for row in read["input_ids"]]
        empty = next((text for text, row in zip(texts, ids, strict=True) if not len(row)), None)
        if empty is not None:
            raise ValueError(f"the text {empty!r} has no token")
        special = [np.asarray(row, dtype=bool) for row in read["special_tokens_mask"]]
        vectors: dict[int, np.ndarray] = {}
        for group in _alike([len(row) for row in ids]):
            vectors |= dict(zip(group, self._hidden(np.stack([ids[i] for i in group])), strict=True))
        return [TokenVectors(ids[i], vectors[i], special[i]) for i in range(len(texts))]

    def _hidden(self, ids_MT: np.ndarray) -> np.ndarray:
        """(M, T, D) vectors of texts of one length."""
        import torch

        with torch.inference_mode():
            said = self._loaded[1](
                input_ids=torch.from_numpy(ids_MT),
                attention_mask=torch.ones(ids_MT.shape, dtype=torch.long),
                output_hidden_states=self.layer is not None,
            )
            if self.layer is None:
                return np.asarray(said.last_hidden_state.double().numpy())
            if not -len(said.hidden_states) <= self.layer < len(said.hidden_states):
                raise ValueError(
                    f"{self._files.name} has the layers 0 … {len(said.hidden_states) - 1}, not {self.layer}"
                )
            return np.asarray(said.hidden_states[self.layer].double().numpy())


def _alike(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Positions of texts of one length, not too many at once."""
    for length in sorted(set(lengths)):
        same = [i for i, found in enumerate(lengths) if found == length]
        yield from (same[i : i + _TEXTS_AT_ONCE] for i in range(0, len(same), _TEXTS_AT_ONCE))


def _own_pooling(folder: Path) -> str:
    """What a model of sentence-transformers says of itself; "mean" where it says nothing."""
    modules = folder / "modules.json"
    if modules.is_file():
        types = [str(m.get("type", "")).rpartition(".")[2] for m in json.loads(modules.read_text(encoding="utf-8"))]
        further = [t for t in types if t not in ("Transformer", "Pooling", "Normalize")]
        if further:
            raise ValueError(f"{folder.name} has a layer {further[0]!r} after its tokens, which is not known here")
    said = folder / "1_Pooling" / "config.json"
    if not said.is_file():
        return "mean"
    config = json.loads(said.read_text(encoding="utf-8"))
    modes = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first", "pooling_mode_lasttoken": "last"}
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    if len(chosen) != 1 or chosen[0] not in modes:
        raise ValueError(f"{folder.name} pools its tokens by {chosen}, which is not known here; say pooling=mean")
    return modes[chosen[0]]
