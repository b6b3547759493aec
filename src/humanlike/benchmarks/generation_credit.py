"""What every stroke of a sketch is worth: what leaving it out costs in P and saves in v; and what can go.

Legend: S strokes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import torch

from humanlike.benchmarks.generation_readings import read
from humanlike.data.drawing import Drawing
from humanlike.data.render import Renderer
from humanlike.elements.critic import Critic
from humanlike.metrics.functional.sea import SEAParameters, sea_terms


@dataclass(frozen=True)
class Credit:
    """A sketch's strokes by their worth, and the sketch without those that are worth nothing.

    Attributes:
        table: One row a stroke: `stroke`, `element`, `cost_recognition` = P - P without it, `saved_ratio` = v - v
            without it (v the mean probability of presence), `gain_sea` = SEA without it - SEA, `kept` after pruning.
        drawing: The whole sketch.
        pruned: The sketch after pruning.
        before: `recognition`, `ratio`, `sea` of the whole.
        after: The same of the pruned one.
    """

    table: pd.DataFrame
    drawing: Drawing
    pruned: Drawing
    before: dict[str, float]
    after: dict[str, float]


def stroke_credit(
    critic: Critic,
    drawing: Drawing,
    concept: str,
    size: int = 224,
    tolerance: float = 0.02,
    parameters: SEAParameters | None = None,
) -> Credit:
    """Leave strokes out one at a time, then prune greedily.

    Pruning takes out, again and again, the stroke whose absence raises SEA most, as long as it does and P stays above
    (1 - tolerance) P of the whole sketch; one stroke is always left.

    Args:
        critic: Who looks.
        drawing: The sketch; drawn by resvg.
        concept: What it shows.
        size: Pixels a side.
        tolerance: Share of P that pruning may cost in all.
        parameters: Hyperparameters of SEA.

    Raises:
        ValueError: The drawing has no stroke.
    """
    S = drawing.num_strokes
    if S == 0:
        raise ValueError(f"a blank drawing of {concept!r} has no stroke to leave out")
    worth = _Worth(critic, drawing, concept, size, parameters or SEAParameters())
    every = tuple(range(S))
    (whole,) = worth([every])
    without = worth([_without(every, s) for s in every])
    kept, current = every, whole
    candidates = dict(zip(every, without, strict=True))
    while len(kept) > 1:
        allowed = {s: w for s, w in candidates.items() if w[0] >= (1 - tolerance) * whole[0]}
        best = max(allowed, key=lambda s: allowed[s][2], default=None)
        if best is None or allowed[best][2] <= current[2]:
            break
        kept, current = _without(kept, best), allowed[best]
        candidates = dict(zip(kept, worth([_without(kept, s) for s in kept]), strict=True)) if len(kept) > 1 else {}
    table = pd.DataFrame(
        {
            "stroke": every,
            "element": [s.element for s in drawing.strokes],
            "cost_recognition": [whole[0] - w[0] for w in without],
            "saved_ratio": [whole[1] - w[1] for w in without],
            "gain_sea": [w[2] - whole[2] for w in without],
            "kept": [s in kept for s in every],
        }
    )
    names = ("recognition", "ratio", "sea")
    return Credit(
        table,
        drawing,
        Drawing(tuple(drawing.strokes[s] for s in kept)),
        dict(zip(names, whole, strict=True)),
        dict(zip(names, current, strict=True)),
    )


class _Worth:
    """(P, v, SEA) of a sketch reduced to some of its strokes; each reduction is looked at once."""

    def __init__(self, critic: Critic, drawing: Drawing, concept: str, size: int, parameters: SEAParameters) -> None:
        self.critic, self.strokes, self.concept = critic, drawing.strokes, concept
        self.renderer, self.parameters = Renderer(size=size), parameters
        self.known: dict[tuple[int, ...], tuple[float, float, float]] = {}

    def __call__(self, subsets: Sequence[tuple[int, ...]]) -> list[tuple[float, float, float]]:
        new = [s for s in dict.fromkeys(subsets) if s not in self.known]
        if new:
            sheets = [self.renderer(Drawing(tuple(self.strokes[i] for i in subset))).convert("L") for subset in new]
            canvas_NHW = torch.from_numpy(np.stack([np.array(sheet) for sheet in sheets]))
            found = read(self.critic, canvas_NHW, [self.concept] * len(new), self.parameters)
            sea_N = sea_terms(found.recognition_N, found.soft_ratio_N, **asdict(self.parameters)).sea.tolist()
            rows = zip(found.recognition_N.tolist(), found.soft_ratio_N.tolist(), sea_N, strict=True)
            self.known |= dict(zip(new, rows, strict=True))
        return [self.known[s] for s in subsets]


def _without(strokes: tuple[int, ...], stroke: int) -> tuple[int, ...]:
    return tuple(s for s in strokes if s != stroke)
