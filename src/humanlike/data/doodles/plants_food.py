"""Stroke programs of plants, food and drinks."""

from __future__ import annotations

import math

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import (
    Path,
    arc,
    bumps,
    curve,
    dots,
    ellipse,
    line,
    mirrored,
    poly,
    rays,
    rect,
    scallops,
    turned,
    wave,
    zigzag,
)


def beer(v: Vary) -> Parts:
    """A mug of beer with foam."""
    left, right, top, floor = 26, 26 + v(40), 30, v(86, 0.06)
    return {
        "glass": [poly((left, top), (left + 1, floor), (right - 1, floor), (right, top))],
        "foam": [bumps((left + right) / 2, top - 1, (right - left) / 2 + 3, v(8), 9, 4, 150, 510)],
        "handle": [
            curve((right, 42), (right + 17, 42), (right + 18, 58), (right + 14, 72), (right, 72)),
            curve((right, 48), (right + 10, 48), (right + 11, 58), (right + 8, 66), (right, 66)),
        ],
        "ridge": [line(left + f * (right - left), 46, left + f * (right - left), floor - 7) for f in (0.25, 0.5, 0.75)],
        "drip": [curve((left + 6, 37), (left + 5, 47), (left + 9, 50), (left + 12, 46), (left + 11, 38))],
        "bubble": dots([(left + 5, 62), (left + 15, 54), (right - 14, 74), (right - 5, 58), (left + 14, 76)], 1.6),
    }


def cactus(v: Vary) -> Parts:
    """A cactus with two arms in a pot."""
    half, top = v(9), v(12, 0.3)
    return {
        "trunk": [
            curve(
                (50 - half, 72),
                (50 - half, 40),
                (50 - half, top + 10),
                (50, top),
                (50 + half, top + 10),
                (50 + half, 40),
                (50 + half, 72),
            )
        ],
        "arm": [
            curve(
                (50 - half, 56), (30, 57), (24, 48), (23, 34), (27, 29), (31, 34), (32, 45), (36, 47), (50 - half, 47)
            ),
            curve(
                (50 + half, 50), (68, 50), (74, 42), (75, 28), (71, 23), (67, 28), (67, 38), (63, 41), (50 + half, 41)
            ),
        ],
        "spine": [
            poly((x - 3, y - 3), (x, y), (x + 3, y - 3))
            for x, y in ((50, 22), (45, 34), (55, 38), (47, 50), (54, 60), (28, 42), (71, 34))
        ],
        "pot": [poly((34, 78), (38, 97), (62, 97), (66, 78)), rect(31, 71, 69, 78)],
        "flower": [bumps(50, top - 2, 5, 4, 5, 3), *dots([(50, top - 2)], 1.6)],
        "rib": [curve((45, 70), (45, 45), (47, top + 10)), curve((55, 70), (55, 45), (53, top + 10))],
    }


def cupcake(v: Vary) -> Parts:
    """A cupcake with a swirl of frosting and a cherry."""
    half, low, base = v(27), v(20, 0.1), 88
    return {
        "frosting": [
            scallops(50 - half - 3, 56, 50 + half + 3, 56, 5, -4),
            curve(
                (50 - half - 3, 56),
                (50 - half - 3, 46),
                (50 - half * 0.6, 42),
                (50 - half * 0.66, 34),
                (50 - half * 0.3, 30),
                (46, 22),
                (52, 17),
            ),
            curve(
                (50 + half + 3, 56),
                (50 + half + 3, 46),
                (50 + half * 0.6, 42),
                (50 + half * 0.66, 34),
                (50 + half * 0.3, 29),
                (52, 17),
            ),
        ],
        "wrapper": [poly((50 - half, 57), (50 - low, base), (50 + low, base), (50 + half, 57))],
        "cherry": [ellipse(51, 12, v(6)), curve((52, 7), (54, 0), (61, -3))],
        "pleat": [line(50 + half * f, 60, 50 + low * f, base) for f in (-0.66, -0.33, 0, 0.33, 0.66)],
        "swirl": [
            curve((50 - half * 0.6, 43), (50, 47), (50 + half * 0.6, 42)),
            curve((50 - half * 0.3, 31), (51, 34), (50 + half * 0.3, 29)),
        ],
        "sprinkle": [
            line(50 + x, y, 50 + x + 2.5, y + d)
            for x, y, d in ((-18, 49, 2), (-7, 39, -2), (4, 50, 2), (14, 48, -2), (6, 38, 2), (-9, 51, -1))
        ],
    }


def flower(v: Vary) -> Parts:
    """A flower with a stem and leaves."""
    n, r, core, y = v.count(5, 8), v(19), v(7.5), 30
    width = 0.75 * math.pi * (core + r / 2) / n
    petals: list[Path] = []
    for i in range(n):
        petal = curve(
            (50, y - core),
            (50 - width, y - core - r * 0.6),
            (50, y - core - r),
            (50 + width, y - core - r * 0.6),
            (50, y - core),
        )
        petals.append(turned(petal, 360 * i / n, 50, y))
    return {
        "petal": petals,
        "center": [ellipse(50, y, core)],
        "stem": [curve((50, y + core + r * 0.7), (52 + v.shift(4), 75), (50, 100))],
        "leaf": [
            curve((51, 84), (58, 70), (72, 68), (68, 80), (51, 84)),
            curve((51, 92), (43, 79), (30, 77), (34, 88), (51, 92)),
        ],
        "vein": [line(55, 81, 68, 71), line(47, 89, 34, 80)],
        "seed": dots([(48, y - 2), (52, y - 1), (50, y + 3)], 0.8),
    }


def margarita(v: Vary) -> Parts:
    """A cocktail in a wide glass with a slice of lime."""
    half, deep = v(29), v(24)
    y = 26
    return {
        "bowl": [
            ellipse(50, y, half, 4.5),
            curve(
                (50 - half, y),
                (50 - half * 0.8, y + deep * 0.55),
                (50 - half * 0.35, y + deep * 0.7),
                (50, y + deep + 5),
                (50 + half * 0.35, y + deep * 0.7),
                (50 + half * 0.8, y + deep * 0.55),
                (50 + half, y),
            ),
        ],
        "stem": [line(48.7, y + deep + 5, 48.7, 86), line(51.3, y + deep + 5, 51.3, 86)],
        "base": [ellipse(50, 89, v(17), 4)],
        "lime": [
            ellipse(50 + half, y - 5, v(10)),
            ellipse(50 + half, y - 5, 7),
            *rays(50 + half, y - 5, 0.5, 7, 6, 20, 380),
        ],
        "straw": [line(44, y + deep * 0.5, 30, 4), line(47, y + deep * 0.5, 33, 3), line(30, 4, 33, 3)],
        "salt": dots([(50 - half - 1 + d, y - 4 - (d % 3)) for d in (0, 4, 9, 15, 22, 30)], 0.8),
        "liquid": [wave(50 - half * 0.84, y + 9, 50 + half * 0.84, y + 9, 4, 1.5)],
    }


def mushroom(v: Vary) -> Parts:
    """A spotted mushroom."""
    half, high, foot = v(36), v(36), v(13)
    y = 52
    return {
        "cap": [arc(50, y, half, high, 180, 360), curve((50 - half, y), (50, y + 6), (50 + half, y))],
        "stem": [curve((42, y + 4), (43, 70), (50 - foot, 88), (50, 91), (50 + foot, 88), (57, 70), (58, y + 4))],
        "spot": [
            ellipse(50, y - high * 0.6, v(7)),
            ellipse(50 - half * 0.55, y - high * 0.3, 6, 5),
            ellipse(50 + half * 0.55, y - high * 0.32, v(6), 5),
            ellipse(53, y - 6, 3.5),
        ],
        "ring": [scallops(60, 66, 40, 66, 4, 3)],
        "gill": [line(50 + f * half * 0.8, y + 3, 50 + f * half * 0.45, y + 9) for f in (-0.8, -0.5, 0.5, 0.8)],
        "grass": [zigzag(20, 92, 38, 92, 3, 8), zigzag(62, 92, 82, 92, 3, 8)],
    }


def pineapple(v: Vary) -> Parts:
    """A pineapple with its crown of leaves."""
    rx, ry, y = v(21), v(29, 0.1), 66
    top = y - ry
    rise = [(-0.62, -0.24), (-0.25, 0.25), (0.24, 0.62)]
    lattice: list[Path] = []
    for low, high in rise:
        # Chords of the outline, one family rising to the right and its mirror image.
        x0, x1 = rx * math.sqrt(1 - low * low), rx * math.sqrt(1 - high * high)
        lattice += mirrored(
            [
                curve(
                    (50 - x0, y + low * ry - 0.45 * ry),
                    (50, y + (low + high) / 2 * ry),
                    (50 + x1, y + high * ry + 0.3 * ry),
                )
            ]
        )
    return {
        "crown": [
            curve((47, top + 1), (41, top - 14), (30, top - 20), (42, top - 18), (50, top - 6)),
            curve((46, top - 6), (42, top - 24), (50, top - 36), (57, top - 24), (54, top - 6)),
            curve((50, top - 6), (58, top - 18), (70, top - 20), (59, top - 14), (53, top + 1)),
            *mirrored([curve((53, top + 1), (62, top - 6), (72, top - 5))]),
        ],
        "body": [ellipse(50, y, rx, ry)],
        "lattice": lattice,
        "thorn": [
            poly(
                (50 + x * rx - 1.5, y + d * ry - 1.5),
                (50 + x * rx, y + d * ry + 1),
                (50 + x * rx + 1.5, y + d * ry - 1.5),
            )
            for x, d in ((0, 0), (-0.4, 0.3), (0.4, 0.3), (-0.4, -0.35), (0.4, -0.35), (0, 0.6), (0, -0.65))
        ],
        "base": [line(44, y + ry + 1, 56, y + ry + 1)],
    }


def pumpkin(v: Vary) -> Parts:
    """A ribbed pumpkin with a curly tendril."""
    rx, ry = v(37, 0.1), v(27)
    y = 58
    return {
        "body": [ellipse(50, y, rx, ry)],
        "rib": [ellipse(50, y, rx * 0.32, ry * 0.98), *mirrored([arc(50, y, rx * 0.68, ry * 0.99, -84, 84)])],
        "stem": [
            curve((46, y - ry), (45, y - ry - 8), (40, y - ry - 14)),
            line(40, y - ry - 14, 47, y - ry - 17),
            curve((47, y - ry - 17), (53, y - ry - 8), (54, y - ry)),
        ],
        "leaf": [bumps(30, y - ry - 6, v(10), 6, 6, 2.5), line(40, y - ry - 3, 26, y - ry - 7)],
        "tendril": [
            curve(
                (54, y - ry - 2),
                (62, y - ry - 10),
                (70, y - ry - 6),
                (66, y - ry - 1),
                (64, y - ry - 7),
                (74, y - ry - 12),
                (82, y - ry - 4),
            )
        ],
    }


PLANTS_FOOD = (
    Concept("beer", "food drink alcoholic liquid glass handled", beer),
    Concept("cactus", "plant prickly green tall potted grows", cactus),
    Concept("cupcake", "food sweet baked edible small", cupcake),
    Concept("flower", "plant grows colourful stalked petals round green", flower),
    Concept("margarita", "food drink alcoholic liquid glass fruit stalked", margarita),
    Concept("mushroom", "food plant edible grows stalked spotted", mushroom),
    Concept("pineapple", "food plant edible sweet fruit prickly grows", pineapple),
    Concept("pumpkin", "food plant edible round fruit grows large", pumpkin),
)
