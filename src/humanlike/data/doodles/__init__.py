"""The embedded demo: doodles by stroke programs with named elements, and simulated participants with known truth."""

from humanlike.data.doodles.catalogue import CONCEPTS
from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.dataset import doodles
from humanlike.data.doodles.drawer import Drawer, Drawers
from humanlike.data.doodles.images import DoodleImages
from humanlike.data.doodles.participants import Observer, choice_probability, simulate_responses
from humanlike.data.doodles.twin import population_alignment, sample_labels, simulate_model

__all__ = [
    "CONCEPTS",
    "Concept",
    "DoodleImages",
    "Drawer",
    "Drawers",
    "Observer",
    "choice_probability",
    "doodles",
    "population_alignment",
    "sample_labels",
    "simulate_model",
    "simulate_responses",
]
