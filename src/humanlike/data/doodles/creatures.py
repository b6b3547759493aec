"""Stroke programs of birds, insects, spiders and other small animals."""

from __future__ import annotations

import math

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import (
    arc,
    curve,
    dots,
    ellipse,
    line,
    mirrored,
    poly,
    scallops,
    spiral,
)


def butterfly(v: Vary) -> Parts:
    """A butterfly with open wings."""
    span, low = v(34), v(26)
    return {
        "wing": mirrored([curve((52, 46), (62, 24), (50 + span, 16), (50 + span + 5, 34), (70, 50), (52, 48))]),
        "body": [ellipse(50, 52, 2.6, v(17))],
        "antenna": mirrored([curve((51, 33), (54, 24), (59, 18), (61, 20))]),
        "hindwing": mirrored([curve((52, 52), (68, 54), (50 + low + 3, 66), (50 + low * 0.7, 82), (58, 74), (52, 58))]),
        "head": [ellipse(50, 33, 3.6)],
        "spot": mirrored([ellipse(73, 33, v(6), 5, -30), ellipse(67, 66, v(4.5)), ellipse(60, 41, 2.5)]),
    }


def mosquito(v: Vary) -> Parts:
    """A mosquito from the side, ready to sting."""
    sting = v(24)
    knee = v(66, 0.05)
    return {
        "proboscis": [line(30, 45, 30 - sting * 0.75, 45 + sting)],
        "wing": [
            curve((46, 40), (58, 20), (80, 8), (84, 16), (68, 32), (48, 41)),
            curve((48, 40), (50, 20), (62, 4), (68, 9), (58, 28), (48, 40)),
        ],
        "body": [ellipse(45, 45, 8, 6.5), curve((51, 42), (68, 47), (86, 60), (88, 64), (68, 57), (50, 50))],
        "leg": [
            poly((40, 50), (28, knee - 4), (26, 90)),
            poly((43, 51), (36, knee), (40, 92)),
            poly((47, 51), (56, knee - 2), (54, 92)),
            poly((50, 50), (68, knee), (72, 91)),
            poly((51, 49), (76, knee + 4), (88, 86)),
        ],
        "head": [ellipse(32, 42, v(5.5))],
        "antenna": [curve((30, 37), (24, 30), (18, 30)), curve((32, 37), (29, 28), (24, 24))],
        "eye": dots([(31, 41)], 1.6),
        "stripe": [line(x, 40 + (x - 50) * 0.45, x - 3, 54 + (x - 58) * 0.36) for x in (60, 66, 72, 78)],
    }


def owl(v: Vary) -> Parts:
    """An owl on a branch."""
    eye, half = v(8), v(22, 0.1)
    return {
        "eye": [*mirrored([ellipse(41, 32, eye)]), *dots([(41, 32), (59, 32)], 2.6)],
        "beak": [poly((47, 38), (53, 38), (50, 46), closed=True)],
        "body": [
            curve(
                (50 - half, 28), (50 - half - 2, 55), (42, 80), (50, 83), (58, 80), (50 + half + 2, 55), (50 + half, 28)
            ),
        ],
        "tuft": [
            poly(
                (50 - half, 28), (50 - half - 1, 10), (42, 19), (50, 21), (58, 19), (50 + half + 1, 10), (50 + half, 28)
            )
        ],
        "wing": mirrored([curve((50 + half - 1, 46), (50 + half + 7, 60), (50 + half - 1, 78), (60, 70), (62, 54))]),
        "feather": [scallops(61 - d, y, 39 + d, y, n, 4) for y, n, d in ((54, 4, 0), (62, 4, 0), (70, 3, 4))],
        "foot": mirrored([line(44 + d, 82, 43 + 1.6 * d, 89) for d in (-2.5, 0, 2.5)]),
        "branch": [curve((14, 88), (40, 86), (70, 88), (88, 85)), curve((15, 94), (45, 92), (88, 92))],
    }


def snail(v: Vary) -> Parts:
    """A snail creeping to the left."""
    r, neck = v(23, 0.1), v(40, 0.08)
    return {
        "shell": [ellipse(58, 72 - r, r)],
        "body": [
            curve(
                (94, 78),
                (80, 72),
                (60, 73),
                (38, 70),
                (28, 58),
                (26, neck + 6),
                (18, neck),
                (10, neck + 7),
                (12, 62),
                (20, 77),
                (40, 80),
                (94, 78),
            )
        ],
        "spiral": [spiral(58, 72 - r, r * 0.86, v.count(2, 3), 40)],
        "tentacle": [
            line(14, neck + 2, 9, neck - 14),
            line(20, neck + 1, 22, neck - 14),
            *dots([(9, neck - 16), (22, neck - 16)], 1.7),
        ],
        "eye": dots([(16, neck + 7)], 1.3),
        "mouth": [arc(14, neck + 12, 4, 3, 30, 150)],
        "trail": [curve((30, 86), (55, 84), (75, 86), (98, 84))],
    }


def snake(v: Vary) -> Parts:
    """A winding snake."""
    a, half = v(15), v(5)
    spine = [(16 + 7.4 * i, 50 + a * math.sin(0.25 * math.pi * 1.4 * (i - 1)) * min(1, i / 2)) for i in range(11)]
    width = [half * (0.8 if i == 0 else 1 - 0.085 * i) for i in range(11)]
    slope = [math.atan2(q[1] - p[1], q[0] - p[0]) for p, q in zip(spine, [*spine[1:], spine[-1]], strict=True)]
    normal = [(math.sin(t) * w, -math.cos(t) * w) for t, w in zip(slope, width, strict=True)]
    upper = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(spine, normal, strict=True)]
    lower = [(x - dx, y - dy) for (x, y), (dx, dy) in zip(spine, normal, strict=True)]
    tip_x, tip_y = spine[-1]
    x, y = spine[0]
    return {
        "body": [curve(*upper), curve(*lower)],
        "tongue": [line(x - 14, y + 1, x - 21, y + 2), poly((x - 25, y - 1), (x - 21, y + 2), (x - 25, y + 5))],
        "head": [
            curve(
                upper[0],
                (x - 5, y - 6.5),
                (x - 11, y - 6),
                (x - 15, y + 1),
                (x - 11, y + 6.5),
                (x - 5, y + 6.5),
                lower[0],
            )
        ],
        "eye": dots([(x - 7, y - 1.5)], 1.3),
        "stripe": [line(*upper[i], *lower[i]) for i in range(1, 10, 2)],
        "rattle": [ellipse(tip_x + 3 * i + 1.5, tip_y + 0.4 * i, 2.2 - 0.3 * i, 2.2 - 0.3 * i) for i in range(3)],
    }


def tarantula(v: Vary) -> Parts:
    """A tarantula from above."""
    reach, fat = v(36, 0.1), v(16)
    legs = []
    for angle, bend in ((-62, 22), (-24, 14), (16, -14), (52, -20)):
        a, b = math.radians(angle), math.radians(angle + bend)
        knee = (50 + 0.55 * reach * math.cos(a - 0.12), 46 + 0.62 * reach * math.sin(a) - 7)
        legs.append(
            poly((56, 46 + angle * 0.08), knee, (50 + reach * 1.15 * math.cos(b), 46 + reach * 1.15 * math.sin(b)))
        )
    return {
        "leg": mirrored(legs),
        "abdomen": [ellipse(50, 52 + fat, fat * 0.85, fat)],
        "head": [ellipse(50, 44, 8.5, 8)],
        "eye": dots([(47, 41), (53, 41), (45, 44.5), (55, 44.5)], 1.2),
        "fang": mirrored([curve((52, 36), (55, 31), (52, 27))]),
        "hair": [
            line(
                50 + 0.85 * fat * math.cos(t),
                52 + fat + fat * math.sin(t),
                50 + 1.08 * fat * math.cos(t),
                52 + fat + 1.2 * fat * math.sin(t),
            )
            for t in (x * 0.33 for x in range(-2, 12))
        ],
    }


CREATURES = (
    Concept("butterfly", "animal insect wings flies small symmetric colourful antennae", butterfly, turn=9),
    Concept("mosquito", "animal insect wings flies small legs antennae stings many_legs", mosquito, turn=6),
    Concept("owl", "animal bird wings flies wild predator feathers", owl),
    Concept("snail", "animal small slow shelled round antennae spiral", snail),
    Concept("snake", "animal reptile wild predator long stings", snake, turn=8),
    Concept("tarantula", "animal small legs fur stings many_legs predator symmetric", tarantula, turn=10),
)
