"""Gram matrices of groups of images, kept on disk in the place of features.

Whoever learns by adding multiples of seen features to weights needs nothing but the inner products of the images, so
a layer of a network is one small matrix a subtask, whatever its width.

Matrices hold inner products of features that were centred on the mean of the warm-up images. Scaling and clipping
(`LayerGram.calibrated`) are a division of rows and columns, so one stored matrix serves every calibration quantile.

Shape legend: G groups (subtasks), N images of a group, M warm-up images, D features.
"""

from __future__ import annotations

import logging
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanlike.files import atomic_path, sha256_value, write_json

FORMAT = "humanlike.gram/1"
COLUMNS = 4096
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LayerGram:
    """One layer as inner products.

    Attributes:
        gram_GNN: For every group the (N, N) float64 inner products of its images' centred features.
        warmup_norm_M: (M,) Euclidean norms of the warm-up images' centred features, by which the layer is scaled.
        num_features: D.
    """

    gram_GNN: tuple[np.ndarray, ...]
    warmup_norm_M: np.ndarray
    num_features: int

    def calibrated(self, norm_quantile: float = 0.99) -> tuple[np.ndarray, ...]:
        """Inner products after calibration: divided by a quantile of the warm-up norms, norms above 1 cut to 1.

        Equal to the inner products of `humanlike.learners.calibrate`d features up to rounding.

        Args:
            norm_quantile: Quantile in (0, 1].

        Raises:
            ValueError: When the quantile is out of range, or the norm it picks is zero.

        Example:
            >>> gram = LayerGram((np.diag([4.0, 25.0]),), np.array([4.0, 4.0]), 2)
            >>> gram.calibrated(0.99)[0].tolist()
            [[0.25, 0.0], [0.0, 1.0]]
        """
        if not 0 < norm_quantile <= 1:
            raise ValueError(f"norm_quantile must lie in (0, 1], got {norm_quantile}")
        scale = float(np.quantile(self.warmup_norm_M, norm_quantile))
        if not scale > 0:
            raise ValueError(
                f"the {norm_quantile} quantile of the warm-up norms is {scale}: the layer is constant over the warm-up "
                "images, so that it cannot be calibrated; leave it out"
            )
        found = []
        for gram_NN in self.gram_GNN:
            length_N = np.maximum(scale, np.sqrt(np.maximum(np.diagonal(gram_NN), 0.0)))
            found.append(gram_NN / np.outer(length_N, length_N))
        return tuple(found)


def warmup_statistics(blocks: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(D,) mean of warm-up features in float64, and the (M,) norms of what is left when it is subtracted.

    Args:
        blocks: (m, D) rows, block by block; each may be read from disk whenever it is asked for.

    Raises:
        ValueError: When there are no rows.
    """
    total, number = 0.0, 0
    for block_MD in blocks:
        total = total + block_MD.sum(axis=0, dtype=np.float64)
        number += len(block_MD)
    if number == 0:
        raise ValueError("calibration needs at least one warm-up image")
    mean_D = np.asarray(total) / number
    norms = [np.sqrt(sum(_squares(part) for part in _centred_parts(block, mean_D))) for block in blocks]
    return mean_D, np.concatenate(norms)


def centred_gram(f_ND: np.ndarray, mean_D: np.ndarray) -> np.ndarray:
    """(N, N) float64 inner products of rows less a mean, summed over columns in order, a few at a time.

    Args:
        f_ND: Rows.
        mean_D: What is subtracted from each.

    Raises:
        ValueError: On widths that differ, or a product that is not finite.
    """
    if f_ND.shape[1] != len(mean_D):
        raise ValueError(f"features have {f_ND.shape[1]} columns, the warm-up mean {len(mean_D)}")
    gram_NN = np.zeros((len(f_ND), len(f_ND)))
    for part in _centred_parts(f_ND, mean_D):
        gram_NN += part @ part.T
    if not np.isfinite(gram_NN).all():
        raise ValueError("features hold NaN or values too large for inner products; check the weights")
    return gram_NN


def _centred_parts(f_ND: np.ndarray, mean_D: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(mean_D), COLUMNS):
        columns = slice(start, start + COLUMNS)
        yield f_ND[:, columns].astype(np.float64) - mean_D[columns]


def _squares(part: np.ndarray) -> Any:
    return np.einsum("nd,nd->n", part, part)


class GramStore:
    """Gram matrices on disk, addressed by everything that can change a number in them; every file is whole or absent.

    Layout: `<root>/<key>/<layer key>/<block>.npz`, where a block is a run of groups that were computed together.

    Args:
        root: Folder of all stores.
        facts: What the matrices depend on, apart from the layer: weights, transform, arithmetic, projection, seed,
            images, warm-up images, groups.
        blocks: For every block, its groups.
    """

    def __init__(self, root: str | Path, facts: Mapping[str, Any], blocks: Sequence[Sequence[int]]) -> None:
        self.facts = {"format": FORMAT, **facts}
        self.blocks = tuple(tuple(block) for block in blocks)
        self.key = sha256_value({**self.facts, "blocks": self.blocks})
        self.folder = Path(root) / self.key[:32]

    def path(self, layer: str, block: int) -> Path:
        """File of a layer's block; the folder's name is a digest, because a layer's name may hold any character."""
        return self.folder / sha256_value([self.key, layer])[:32] / f"{block:05d}.npz"

    def missing(self, layers: Sequence[str]) -> list[tuple[str, int]]:
        """(layer, block) that are absent or cannot be read."""
        wanted = [(layer, block) for block in range(len(self.blocks)) for layer in layers]
        return [(layer, block) for layer, block in wanted if self._read(layer, block) is None]

    def write(self, layer: str, block: int, content: LayerGram) -> None:
        """Write the matrices of a block's groups.

        Raises:
            OSError: The disk is full or the folder cannot be written; the sentence names the file and the way out.
        """
        arrays: dict[str, Any] = {f"gram_{i}": gram for i, gram in enumerate(content.gram_GNN)}
        with atomic_path(self.path(layer, block)) as temporary:
            np.savez(
                temporary, warmup_norm_M=content.warmup_norm_M, num_features=np.int64(content.num_features), **arrays
            )

    def read(self, layer: str) -> LayerGram:
        """All groups of a layer, in order.

        Raises:
            FileNotFoundError: A block is absent or damaged.
        """
        grams: dict[int, np.ndarray] = {}
        norms, width = np.empty(0), 0
        for block, groups in enumerate(self.blocks):
            part = self._read(layer, block)
            if part is None:
                raise FileNotFoundError(
                    f"the Gram matrices {self.path(layer, block)} are absent after they were computed; nobody may "
                    "clear the cache (paths.cache) during a run"
                )
            grams |= dict(zip(groups, part.gram_GNN, strict=True))
            norms, width = part.warmup_norm_M, part.num_features
        return LayerGram(tuple(grams[group] for group in sorted(grams)), norms, width)

    def describe(self) -> None:
        """Write the facts beside the matrices, for whoever wonders what a folder holds."""
        if not (self.folder / "facts.json").exists():
            write_json(self.folder / "facts.json", self.facts)

    def _read(self, layer: str, block: int) -> LayerGram | None:
        path = self.path(layer, block)
        try:
            with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as arrays:
                grams = tuple(arrays[f"gram_{i}"] for i in range(len(self.blocks[block])))
                return LayerGram(grams, arrays["warmup_norm_M"], int(arrays["num_features"]))
        except FileNotFoundError:
            return None
        except (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError) as error:
            _log.warning("the Gram matrices %s are damaged (%s); they are computed again", path, error)
            return None
