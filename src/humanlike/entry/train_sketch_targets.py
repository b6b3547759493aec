"""What sketches are to show: concepts, pictures of a user's own, or items of a data set; and where strokes begin.

Legend: B sketches, K strokes, S pixels a side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import pad

from humanlike.backbones.attention import mean_attention, patch_grid
from humanlike.backbones.transforms import ImageTransform
from humanlike.data.images import IMAGE_SUFFIXES, DecodeOptions, decode_image
from humanlike.generators.initial import curves_from, sample_points, scattered_points
from humanlike.generators.saliency import attention_saliency, brightness, gradient_saliency, initial_weight, squared
from humanlike.losses_features import FeatureLoss
from humanlike.types import Sketches


@dataclass(frozen=True)
class Targets:
    """B sketches to be made.

    Attributes:
        names: What they are called; files are named after it.
        concepts: What each is to be recognised as; empty where nothing is to be recognised.
        pictures: RGB pictures to look like, one a sketch; empty where there are none.
        sources: Where each picture comes from, "" without one.
    """

    names: tuple[str, ...]
    concepts: tuple[str, ...]
    pictures: tuple[Image.Image, ...]
    sources: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def part(self, rows: slice) -> Targets:
        """Some of the sketches."""
        return Targets(self.names[rows], self.concepts[rows], self.pictures[rows], self.sources[rows])

    def canvases(self, size: int) -> torch.Tensor:
        """(B, 3, S, S) pictures as squares on white, in [0, 1]."""
        x = [torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].float() / 255 for picture in self.pictures]
        return torch.cat([squared(picture, size) for picture in x])


def concept_targets(known: Sequence[str], concepts: Sequence[str] | int | None, repeats: int) -> Targets:
    """Sketches from class names alone.

    Args:
        known: What the critic can recognise.
        concepts: Names; how many, evenly spread over what is known; or None: all.
        repeats: Sketches a concept, which differ in where their strokes begin.

    Raises:
        ValueError: A concept is unknown, or a number out of range.
    """
    chosen = tuple(known) if concepts is None else concepts
    if isinstance(chosen, int):
        if not 1 <= chosen <= len(known):
            raise ValueError(f"concepts must be names, or a number in [1, {len(known)}], got {chosen}")
        chosen = [known[i * len(known) // chosen] for i in range(chosen)]
    _check_known(chosen, known)
    if repeats < 1 or not chosen:
        raise ValueError(f"there is nothing to draw: repeats={repeats}, concepts={list(chosen)}")
    pairs = [(concept, f"{concept}_{i}" if repeats > 1 else concept) for concept in chosen for i in range(repeats)]
    return _named([name for _, name in pairs], tuple(concept for concept, _ in pairs), (), ("",) * len(pairs))


def image_targets(images: str | Path | Sequence[str | Path], concepts: Sequence[str], known: Sequence[str]) -> Targets:
    """Sketches of picture files.

    Args:
        images: A file, a folder (every picture in it, by name), or a list of them.
        concepts: What they show, one a picture or one for all; empty: they only look like the pictures.
        known: What the critic can recognise.

    Raises:
        FileNotFoundError: A file is missing, or a folder holds no picture.
        ValueError: Concepts do not fit the pictures.
    """
    files = [file for place in ([images] if isinstance(images, str | Path) else images) for file in _files(Path(place))]
    named = tuple(concepts) * len(files) if len(concepts) == 1 else tuple(concepts)
    if named and len(named) != len(files):
        raise ValueError(f"give one concept for all pictures, one a picture ({len(files)}), or none; got {len(named)}")
    _check_known(named, known)
    options = DecodeOptions(svg_size=512)
    pictures = tuple(decode_image(file, options).image for file in files)
    return _named([file.stem for file in files], named, pictures, tuple(map(str, files)))


def item_targets(data: Sketches, items: int, concepts: Sequence[str]) -> Targets:
    """Sketches of items of a data set, evenly spread over it.

    Args:
        data: The data set.
        items: How many.
        concepts: Concepts whose items are taken, and that the sketches are to be recognised as; empty: items of all,
            which only are to look alike.

    Raises:
        ValueError: There are not so many items.
    """
    _check_known(concepts, data.labels)
    own = np.flatnonzero(data.table["concept"].isin(concepts)) if concepts else np.arange(len(data))
    if not 1 <= items <= len(own):
        raise ValueError(f"items must lie in [1, {len(own)}], what {data.name} has of these concepts, got {items}")
    rows = [int(own[i * len(own) // items]) for i in range(items)]
    table = data.table.iloc[rows]
    sources = tuple(data.images.describe(row) for row in rows)
    names, shown = list(table["sketch_id"]), tuple(table["concept"]) if concepts else ()
    return _named(names, shown, tuple(data.images.load(row) for row in rows), sources)


def initial_strokes(
    targets: Targets,
    num_strokes: int,
    seed: int,
    size: int,
    network: FeatureLoss | None,
    attention: bool = True,
    radius: float | None = None,
) -> torch.Tensor:
    """(B, K, 4, 2) short curves, on salient lines of the pictures, or anywhere where there is no picture.

    Args:
        targets: The sketches.
        num_strokes: K.
        seed: Global seed.
        size: Side at which pictures are looked at, pixels.
        network: Whose saliency counts; needed where there are pictures.
        attention: Take a transformer's attention; else, and for other networks, the gradient.
        radius: How far control points are from one another; None: 0.15, and 0.05 on pictures.
    """
    if not targets.pictures or network is None:
        points_BK2 = scattered_points(num_strokes, seed, targets.names)
    else:
        x_B3SS = targets.canvases(size)
        weight = initial_weight(brightness(x_B3SS), saliency(network, x_B3SS, attention))
        points_BK2 = sample_points(weight, num_strokes, seed, targets.names)
    reach = (0.05 if targets.pictures else 0.15) if radius is None else radius
    return curves_from(points_BK2, seed, targets.names, reach)


def saliency(network: FeatureLoss, x_B3SS: torch.Tensor, attention: bool = True) -> torch.Tensor:
    """(B, S, S) what a network looks at: its attention where it has one and that is wanted, else its gradient."""
    found = mean_attention(network.backbone, network.pixels(x_B3SS)) if attention else None
    if found is None:
        return gradient_saliency(network.embed, x_B3SS, sigma=x_B3SS.shape[-1] / 64)
    size = x_B3SS.shape[-1]
    inner = round(size * _seen_share(network))
    before = (size - inner) // 2
    seen = attention_saliency(found, (inner, inner), patch_grid(found.shape[-1]))
    return pad(seen, (before, size - inner - before, before, size - inner - before))


def _seen_share(network: FeatureLoss) -> float:
    """Share of a square picture's side that the network's crop keeps."""
    transform = network.pixels.transform
    assert isinstance(transform, ImageTransform)
    return transform.crop_pct


def _files(place: Path) -> list[Path]:
    place = place.expanduser()
    if place.is_file():
        return [place]
    found = sorted(p for p in place.glob("*") if p.suffix.lower() in IMAGE_SUFFIXES) if place.is_dir() else []
    if not found:
        what = "holds no picture" if place.is_dir() else "does not exist"
        raise FileNotFoundError(f"images: {place} {what}; give files or folders of {', '.join(IMAGE_SUFFIXES)}")
    return found


def _check_known(concepts: Sequence[str], known: Sequence[str]) -> None:
    unknown = [concept for concept in concepts if concept not in known]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it knows {', '.join(list(known)[:8])} …"
        raise ValueError(f"the critic cannot recognise {unknown[0]!r}; {hint}")


def _named(
    names: Sequence[str], concepts: tuple[str, ...], pictures: tuple[Image.Image, ...], sources: tuple[str, ...]
) -> Targets:
    """Targets with names that can be file names and differ from one another."""
    safe = ["".join(c if c.isalnum() or c in "-_." else "_" for c in str(name)) or "sketch" for name in names]
    seen: dict[str, int] = {}
    unique = []
    for name in safe:
        number = seen[name] = seen.get(name, -1) + 1
        unique.append(f"{name}-{number}" if number else name)
    if len(set(unique)) < len(unique):
        unique = [f"{i:03d}_{name}" for i, name in enumerate(safe)]
    return replace(Targets((), concepts, pictures, sources), names=tuple(unique))
