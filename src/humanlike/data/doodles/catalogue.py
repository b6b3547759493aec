"""All concepts of the demo, in label order."""

from __future__ import annotations

from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.creatures import CREATURES
from humanlike.data.doodles.furniture import FURNITURE
from humanlike.data.doodles.mammals import MAMMALS
from humanlike.data.doodles.plants_food import PLANTS_FOOD
from humanlike.data.doodles.things import THINGS
from humanlike.data.doodles.vehicles import VEHICLES

CONCEPTS: tuple[Concept, ...] = tuple(
    sorted((*MAMMALS, *CREATURES, *PLANTS_FOOD, *FURNITURE, *VEHICLES, *THINGS), key=lambda concept: concept.name)
)
