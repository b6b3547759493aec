"""Genomes of novel objects: a body plan, its horns, and how many of them stand where.

In the spirit of the "Mutator" forms (Todd & Latham, 1992): an object is a horn that carries other horns along a coil.
Every object is drawn from its own address, so it is the same in every data set that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from humanlike.data.novel_objects.horn import Frame, Horn, Mesh, merged, normalised
from humanlike.data.novel_objects.rotations import turn
from humanlike.rng import generator

GENOME_VERSION = 1
BASE = Frame(np.zeros(3), np.eye(3))


@dataclass(frozen=True)
class Sprout:
    """Horns that grow from a trunk.

    Attributes:
        horn: Their genes.
        count: Number of places along the trunk.
        start, stop: First and last place, as fractions of the trunk's length.
        fold: Horns at each place, evenly around the trunk.
        tilt: Angle in degrees between the trunk's direction and theirs.
        spin: Turn in degrees about the trunk from one place to the next.
        grow: Size of the last over size of the first.
        skip: Angle in degrees about the trunk of the first.
    """

    horn: Horn
    count: int
    start: float
    stop: float
    fold: int
    tilt: float
    spin: float
    grow: float
    skip: float = 0.0

    def frames(self, trunk: Horn) -> list[Frame]:
        """Where each horn starts."""
        places = np.linspace(self.start, self.stop, self.count)
        points, axes = trunk.axis(places, BASE)
        found = []
        for i, (point, axis) in enumerate(zip(points, axes, strict=True)):
            scale = self.grow ** (i / max(1, self.count - 1))
            for k in range(self.fold):
                about = self.skip + i * self.spin + 360 * k / self.fold
                found.append(Frame(point, axis @ turn("z", about) @ turn("y", self.tilt), scale))
        return found


@dataclass(frozen=True)
class Genome:
    """Genes of an object: a trunk and what sprouts from it."""

    plan: str
    trunk: Horn
    sprouts: tuple[Sprout, ...]

    def mesh(self) -> Mesh:
        """The object's surface in the unit ball."""
        parts = [self.trunk.mesh(BASE, 1.3)]
        for sprout in self.sprouts:
            parts += [sprout.horn.mesh(frame) for frame in sprout.frames(self.trunk)]
        return normalised(merged(parts))


def genome(seed: int, name: str) -> Genome:
    """The genes of the object `name` below a global seed."""
    rng = generator(seed, "novel objects", "genome", name)
    plan = PLANS[int(rng.integers(len(PLANS)))]
    return plan(rng)


@lru_cache(maxsize=256)
def object_mesh(seed: int, name: str) -> Mesh:
    """The surface of the object `name` in the unit ball, computed once a process."""
    return genome(seed, name).mesh()


def _sign(rng: np.random.Generator) -> int:
    return 1 if rng.random() < 0.5 else -1


def _section(rng: np.random.Generator) -> dict[str, Any]:
    """Genes of a cross-section: round, flat or lobed."""
    kind = rng.integers(3)
    if kind == 0:
        return {}
    if kind == 1:
        return {"flat": rng.uniform(0.4, 0.6)}
    return {"lobes": int(rng.integers(2, 5)), "lobe_depth": rng.uniform(0.15, 0.3)}


def _ribs(rng: np.random.Generator, most: int) -> dict[str, Any]:
    """Genes of ribs; half of all horns are smooth."""
    if rng.random() < 0.45:
        return {}
    return {"ribs": int(rng.integers(3, most + 1)), "rib_depth": rng.uniform(0.25, 0.55)}


def _finger(rng: np.random.Generator, length: tuple[float, float], thickness: tuple[float, float]) -> Horn:
    """A slender side horn: straight, hooked or curled, pointed or with a knob."""
    long = rng.uniform(*length)
    knob = rng.random() < 0.45
    return Horn(
        length=long,
        radius=long * rng.uniform(*thickness),
        taper=rng.uniform(0.5, 0.9) if knob else rng.uniform(0.2, 0.6),
        bend=_sign(rng) * float(rng.choice([rng.uniform(0, 30), rng.uniform(60, 130), rng.uniform(170, 300)])),
        twist=_sign(rng) * rng.uniform(0, 120),
        bulge=rng.uniform(0.5, 1.3) if knob else 0.0,
        **_section(rng),
    )


def fan(rng: np.random.Generator) -> Genome:
    """Long fingers spread along a short coil, growing from one to the next."""
    trunk = Horn(
        length=rng.uniform(0.7, 1.2),
        radius=rng.uniform(0.13, 0.2),
        taper=rng.uniform(0.5, 0.9),
        bend=_sign(rng) * rng.uniform(150, 330),
        twist=_sign(rng) * rng.uniform(0, 90),
        bulge=rng.uniform(0, 1),
        **_ribs(rng, 9),
    )
    sprout = Sprout(
        _finger(rng, (0.8, 1.3), (0.08, 0.12)),
        count=int(rng.integers(7, 15)),
        start=0.05,
        stop=0.95,
        fold=1,
        tilt=rng.uniform(70, 110),
        spin=_sign(rng) * rng.uniform(0, 22),
        grow=rng.uniform(0.45, 1.9),
        skip=rng.uniform(0, 360),
    )
    return Genome("fan", trunk, (sprout,))


def coil(rng: np.random.Generator) -> Genome:
    """A thick ribbed shell or ram's horn, with a few spikes."""
    ribs: dict[str, Any] = (
        {"ribs": int(rng.integers(8, 17)), "rib_depth": rng.uniform(0.2, 0.5)} if rng.random() < 0.75 else {}
    )
    trunk = Horn(
        length=rng.uniform(2.6, 3.6),
        radius=rng.uniform(0.28, 0.42),
        taper=rng.uniform(0.12, 0.3),
        bend=_sign(rng) * rng.uniform(300, 620),
        twist=_sign(rng) * float(rng.choice([rng.uniform(10, 60), rng.uniform(120, 220)])),
        **ribs,
        **_section(rng),
    )
    sprout = Sprout(
        _finger(rng, (0.45, 0.8), (0.13, 0.2)),
        count=int(rng.integers(2, 6)),
        start=0.03,
        stop=rng.uniform(0.3, 0.6),
        fold=int(rng.integers(1, 3)),
        tilt=rng.uniform(50, 100),
        spin=rng.uniform(0, 40),
        grow=rng.uniform(0.4, 1.0),
        skip=rng.uniform(0, 360),
    )
    return Genome("coil", trunk, (sprout,))


def ladder(rng: np.random.Generator) -> Genome:
    """A bowed spine with pairs or triples of ribs on its sides, and a head."""
    trunk = Horn(
        length=rng.uniform(1.7, 2.3),
        radius=rng.uniform(0.17, 0.28),
        taper=rng.uniform(0.35, 0.9),
        bend=_sign(rng) * rng.uniform(20, 170),
        twist=_sign(rng) * rng.uniform(0, 60),
        bulge=rng.uniform(0.6, 1.6),
        **_ribs(rng, 12),
    )
    sprout = Sprout(
        _finger(rng, (0.6, 1.0), (0.1, 0.16)),
        count=int(rng.integers(3, 8)),
        start=0.08,
        stop=rng.uniform(0.6, 0.8),
        fold=int(rng.integers(2, 4)),
        tilt=rng.uniform(45, 115),
        spin=float(rng.choice([0.0, rng.uniform(15, 50)])),
        grow=float(rng.choice([rng.uniform(0.35, 0.6), rng.uniform(1.3, 2.0)])),
        skip=rng.uniform(0, 360),
    )
    return Genome("ladder", trunk, (sprout,))


def star(rng: np.random.Generator) -> Genome:
    """A bulging body with one or two whorls of arms and a stalk."""
    trunk = Horn(
        length=rng.uniform(0.9, 1.8),
        radius=rng.uniform(0.3, 0.5),
        taper=rng.uniform(0.15, 0.7),
        bend=_sign(rng) * rng.uniform(0, 90),
        waist=rng.uniform(-0.3, 0.5),
        **_ribs(rng, 7),
        **_section(rng),
    )
    whorls = []
    for start in (0.12, rng.uniform(0.5, 0.9))[: int(rng.integers(1, 3))]:
        whorls.append(
            Sprout(
                _finger(rng, (0.7, 1.4), (0.11, 0.18)),
                count=1,
                start=start,
                stop=start,
                fold=int(rng.integers(3, 8)),
                tilt=rng.uniform(50, 125),
                spin=0.0,
                grow=1.0,
                skip=rng.uniform(0, 360),
            )
        )
    return Genome("star", trunk, tuple(whorls))


def beads(rng: np.random.Generator) -> Genome:
    """Discs or beads threaded on a bent stem, with feelers at its end."""
    trunk = Horn(
        length=rng.uniform(1.8, 2.6),
        radius=rng.uniform(0.09, 0.15),
        taper=rng.uniform(0.6, 1.0),
        bend=_sign(rng) * rng.uniform(30, 240),
        twist=_sign(rng) * rng.uniform(0, 150),
    )
    thick = rng.uniform(0.2, 0.45)
    flat = thick < 0.3
    bead = Horn(
        length=rng.uniform(0.12, 0.2) if flat else 2 * thick,
        radius=thick + (0.15 if flat else 0),
        taper=1.0,
        waist=0.2,
        twist=rng.uniform(0, 60),
        **_section(rng),
    )
    threaded = Sprout(bead, int(rng.integers(4, 8)), 0.1, 0.85, 1, 0.0, rng.uniform(0, 45), rng.uniform(0.35, 1.0))
    feelers = Sprout(
        _finger(rng, (0.6, 1.0), (0.1, 0.15)), 1, 0.97, 0.97, int(rng.integers(2, 6)), rng.uniform(35, 100), 0.0, 1.0
    )
    return Genome("beads", trunk, (threaded, feelers))


def crown(rng: np.random.Generator) -> Genome:
    """Few big, unlike horns, each with its own curl, from a small lobed heart."""
    trunk = Horn(
        length=0.7,
        radius=rng.uniform(0.25, 0.4),
        taper=rng.uniform(0.6, 1.0),
        waist=rng.uniform(0.1, 0.5),
        lobes=int(rng.integers(0, 6)),
        lobe_depth=rng.uniform(0.1, 0.3),
    )
    horns = []
    for _ in range(int(rng.integers(2, 5))):
        long = rng.uniform(0.9, 1.9)
        horn = Horn(
            length=long,
            radius=rng.uniform(0.17, 0.28),
            taper=rng.uniform(0.1, 0.6),
            bend=_sign(rng) * rng.uniform(30, 330),
            twist=_sign(rng) * rng.uniform(0, 120),
            **_ribs(rng, 10),
            **_section(rng),
        )
        place = rng.uniform(0.2, 0.8)
        horns.append(
            Sprout(horn, 1, place, place, int(rng.integers(1, 3)), rng.uniform(20, 140), 0.0, 1.0, rng.uniform(0, 360))
        )
    return Genome("crown", trunk, tuple(horns))


PLANS: tuple[Callable[[np.random.Generator], Genome], ...] = (fan, coil, ladder, star, beads, crown)
