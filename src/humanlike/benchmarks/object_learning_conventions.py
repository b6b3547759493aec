"""What the paper's words, the code at publication and the authors' current code do differently, as named switches."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Literal

from humanlike.metrics.functional import MSEN_CONVENTIONS, MSEnSwitches


@dataclass(frozen=True)
class Simulation:
    """Switches that change sessions or features: conventions that share them share a simulation.

    Attributes:
        trial_order: "permutation": the first trials of a permutation of all images; "paper_text": object 50:50, then an
            image without replacement. The one-shot experiment has one order.
        norm_quantile: Quantile of the warm-up norms that features are divided by.
    """

    trial_order: Literal["permutation", "paper_text"]
    norm_quantile: float


@dataclass(frozen=True)
class Convention:
    """One published way to do it.

    Attributes:
        name: Its name.
        simulation: What is simulated.
        switches: How MSE_n is computed.
        catch_trials: Trials (from 0) of a one-shot session whose support images count for people's lapse rate.
        clip: Whether people's corrected one-shot accuracies are cut to [0, 1].
    """

    name: str
    simulation: Simulation
    switches: MSEnSwitches
    catch_trials: tuple[int, ...]
    clip: bool

    def record(self) -> dict[str, Any]:
        """What a result stores."""
        return asdict(self)


CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        c.name: c
        for c in (
            Convention("paper", Simulation("permutation", 0.99), MSEN_CONVENTIONS["paper"], (14, 19), False),
            Convention("v2", Simulation("permutation", 0.999), MSEN_CONVENTIONS["v2"], (9, 14, 19), True),
            Convention("paper_text", Simulation("paper_text", 0.99), MSEN_CONVENTIONS["paper_text"], (14, 19), False),
        )
    }
)
"""Name → convention: the code that made the published numbers, the authors' current code, the paper's words."""


def convention(name: str) -> Convention:
    """A convention by name.

    Raises:
        ValueError: When there is none; the sentence names the nearest.

    Example:
        >>> convention("v2").simulation.norm_quantile
        0.999
    """
    if name not in CONVENTIONS:
        near = difflib.get_close_matches(str(name), CONVENTIONS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"there is no convention {name!r}; {hint}It can be one of {', '.join(CONVENTIONS)}")
    return CONVENTIONS[name]
