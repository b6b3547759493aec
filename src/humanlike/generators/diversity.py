"""Keeping a generator from drawing one picture for everything it is asked.

Legend: B sketches, M pairs of sketches of one concept.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d


class DiversityLoss(nn.Module):
    """How far sketches of one concept have moved together, measured against those of the generator before fine-tuning.

    With d the root mean square difference of two canvases' ink, averaged over cells of a coarse grid (so that strokes
    count by where they lie and not by their edges), and d₀ that of the reference's two sketches from the same noise,

        loss = mean over pairs of relu(1 - d / d₀),

    0 where every pair differs at least as much as it did, 1 for one and the same drawing. Sketches with fewer strokes
    have less ink to differ in, so every canvas' ink is divided by its root mean square first.

    Args:
        cells: Cells a side of the grid.

    Raises:
        ValueError: For no cells.

    Example:
        >>> canvas = torch.rand(2, 1, 32, 32)
        >>> DiversityLoss()(canvas, canvas, torch.tensor([0, 0])).item()
        0.0
    """

    def __init__(self, cells: int = 16) -> None:
        super().__init__()
        if cells < 1:
            raise ValueError(f"cells must be 1 or more, got {cells}")
        self.cells = cells

    def forward(self, canvas_B1HW: torch.Tensor, reference_B1HW: torch.Tensor, concept_B: torch.Tensor) -> torch.Tensor:
        """The loss; 0 where no concept has two sketches.

        Args:
            canvas_B1HW: Canvases in [0, 1], ink dark.
            reference_B1HW: Those of the reference from the same noise; no gradient reaches them.
            concept_B: (B,) int64 concept of each.
        """
        first, second = torch.triu_indices(len(concept_B), len(concept_B), 1, device=concept_B.device)
        same = concept_B[first] == concept_B[second]
        first, second = first[same], second[same]
        if not len(first):
            return canvas_B1HW.sum() * 0
        ours = pair_distances(canvas_B1HW, first, second, self.cells)
        theirs = pair_distances(reference_B1HW.detach(), first, second, self.cells)
        return torch.relu(1 - ours / theirs.clamp(min=1e-3)).mean()


def pair_distances(
    canvas_B1HW: torch.Tensor, first_M: torch.Tensor, second_M: torch.Tensor, cells: int = 16
) -> torch.Tensor:
    """(M,) distance of two canvases: of their normalised ink over a grid of cells; between 0 and √2."""
    ink = adaptive_avg_pool2d(1 - canvas_B1HW, cells).flatten(1)
    # The root has no slope at 0: an empty canvas, or two equal ones, would give NaN.
    shape = ink / (ink.square().sum(1, keepdim=True) + 1e-12).sqrt()
    return ((shape[first_M] - shape[second_M]).square().sum(1) + 1e-12).sqrt()
