"""Stroke programs of furniture and other things of the home."""

from __future__ import annotations

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import arc, bumps, curve, dots, ellipse, line, mirrored, poly, rect, scallops, wave


def bathtub(v: Vary) -> Parts:
    """A bathtub on feet, with foam and a tap."""
    left, right, rim, deep = 12, v(88, 0.05), 48, v(28)
    return {
        "tub": [
            curve(
                (left + 3, rim + 5),
                (left + 6, rim + deep * 0.7),
                (left + 16, rim + deep),
                (50, rim + deep + 1),
                (right - 16, rim + deep),
                (right - 6, rim + deep * 0.7),
                (right - 3, rim + 5),
            )
        ],
        "rim": [rect(left - 2, rim, right + 2, rim + 5)],
        "faucet": [
            poly((right - 2, rim), (right - 2, 26), (right - 18, 26), (right - 18, 33)),
            poly((right - 6, rim), (right - 6, 30), (right - 14, 30), (right - 14, 33)),
            line(right - 18, 33, right - 14, 33),
        ],
        "foot": [
            curve(
                (left + 15, rim + deep),
                (left + 10, rim + deep + 7),
                (left + 17, rim + deep + 9),
                (left + 22, rim + deep + 1),
            ),
            curve(
                (right - 15, rim + deep),
                (right - 10, rim + deep + 7),
                (right - 17, rim + deep + 9),
                (right - 22, rim + deep + 1),
            ),
        ],
        "foam": [scallops(left + 4, rim, right - 26, rim, v.count(5, 7), v(8))],
        "bubble": [ellipse(28, 30, v(4)), ellipse(40, 22, 3), ellipse(50, 32, 2.4), ellipse(24, 18, 2)],
        "knob": [ellipse(right - 4, 21, 4, 3)],
    }


def bed(v: Vary) -> Parts:
    """A bed from the side."""
    head, foot, top, floor = v(28, 0.2), v(48, 0.05), 55, 84
    return {
        "mattress": [poly((14, top), (88, top), (88, 70), (14, 70), closed=True)],
        "headboard": [rect(8, head, 14, floor - 6)],
        "pillow": [curve((16, 54), (15, 47), (22, 45), (32, 46), (36, 50), (33, 55), (22, 56), (16, 54))],
        "leg": [
            poly((8, floor - 6), (8, floor + 4), (13, floor + 4), (13, floor - 6)),
            poly((88, floor - 6), (88, floor + 4), (93, floor + 4), (93, floor - 6)),
        ],
        "blanket": [
            curve((40, 54), (44, 49), (62, 48), (84, 50), (89, 56)),
            curve((40, 54), (42, 66), (39, 76), (52, 74), (64, 77), (76, 74), (87, 76)),
        ],
        "footboard": [rect(88, foot, 93, floor - 6)],
        "frame": [line(14, floor - 6, 88, floor - 6)],
    }


def bench(v: Vary) -> Parts:
    """A park bench seen a little from above."""
    left, right, top = 12, v(88, 0.04), v(32, 0.15)
    return {
        "seat": [
            poly((left + 4, 54), (right - 4, 54), (right + 4, 66), (left - 4, 66), closed=True),
            poly((left - 4, 66), (left - 4, 70), (right + 4, 70), (right + 4, 66)),
        ],
        "backrest": [rect(left + 4, top, right - 4, top + 14)],
        "leg": [poly((x, 70), (x, 90), (x + 5, 90), (x + 5, 70)) for x in (left, right - 5)]
        + [poly((x, 70), (x, 82), (x + 3, 82), (x + 3, 70)) for x in (left + 14, right - 17)],
        "slat": [
            line(left + 4, top + 7, right - 4, top + 7),
            line(left + 1, 58, right - 1, 58),
            line(left - 1, 62, right + 1, 62),
        ],
        "armrest": [
            curve((left + 3, 44), (left - 4, 45), (left - 7, 49), (left - 4, 66)),
            curve((right - 3, 44), (right + 4, 45), (right + 7, 49), (right + 4, 66)),
        ],
        "post": [line(x, top + 14, x, 54) for x in (left + 10, left + 13, right - 13, right - 10)],
    }


def chair(v: Vary) -> Parts:
    """A wooden chair from the front and the side."""
    top, seat, floor = v(10, 0.4), 54 + v.shift(3), 92
    return {
        "seat": [
            poly((30, seat), (64, seat), (76, seat + 11), (40, seat + 11), closed=True),
            poly((40, seat + 11), (40, seat + 15), (76, seat + 15), (76, seat + 11)),
        ],
        "backrest": [poly((30, seat), (27, top), (60, top), (64, seat))],
        "leg": [poly((x, seat + 15), (x, floor + 4), (x + 4, floor + 4), (x + 4, seat + 15)) for x in (40, 72)]
        + [
            poly((30, seat + 2), (30, floor - 8), (33.5, floor - 8), (33.5, seat + 5)),
            line(62, seat + 15, 62, floor - 8),
        ],
        "spindle": [line(27 + f * 33, top + 10, 30 + f * 34, seat) for f in (0.2, 0.4, 0.6, 0.8)],
        "rail": [line(28, top + 10, 61, top + 10)],
        "crossbar": [line(44, 80, 72, 80), line(33, 74, 40, 80)],
    }


def couch(v: Vary) -> Parts:
    """A couch with two cushions."""
    top, seat, arm = v(34, 0.12), 56, v(10)
    return {
        "backrest": [curve((18, 50), (18, top + 6), (24, top), (50, top - 1), (76, top), (82, top + 6), (82, 50))],
        "armrest": [
            curve((8 + arm, 78), (8 + arm, 54), (4 + arm, 48), (6, 49), (4, 56), (5, 78)),
            curve((92 - arm, 78), (92 - arm, 54), (96 - arm, 48), (94, 49), (96, 56), (95, 78)),
        ],
        "cushion": [
            curve((8 + arm, 66), (8 + arm, seat), (30, seat - 2), (49, seat), (50, 66)),
            curve((50, 66), (51, seat), (70, seat - 2), (92 - arm, seat), (92 - arm, 66)),
        ],
        "base": [poly((5, 78), (95, 78)), line(8 + arm, 66, 92 - arm, 66)],
        "leg": [poly((x, 78), (x + 1, 86), (x + 5, 86), (x + 6, 78)) for x in (9, 85)],
        "seam": [line(50, top, 50, seat - 1)],
        "pillow": [poly((24, 40), (37, 37), (40, 51), (27, 54), closed=True)],
    }


def crib(v: Vary) -> Parts:
    """A baby's crib with bars."""
    top, low, n = v(32, 0.12), 76, v.count(7, 9)
    return {
        "bar": [line(14 + 72 * i / n, top + 5, 14 + 72 * i / n, low) for i in range(1, n)],
        "rail": [rect(14, top, 86, top + 5), rect(14, low, 86, low + 5)],
        "post": [
            poly((9, 90), (9, top - 6), (14, top - 6), (14, 90)),
            poly((86, 90), (86, top - 6), (91, top - 6), (91, 90)),
        ],
        "mobile": [
            curve((91, top - 6), (86, 6), (70, 2), (58, 8)),
            line(58, 8, 58, 12),
            line(46, 12, 70, 12),
            line(46, 12, 46, 20),
            line(70, 12, 70, 19),
            ellipse(46, 23, 3),
            poly((67, 25), (70, 19), (73, 25), closed=True),
        ],
        "wheel": [ellipse(11.5, 93, 3), ellipse(88.5, 93, 3)],
        "mattress": [line(14, 66, 86, 66), line(14, 61, 86, 61)],
        "ball": [ellipse(11.5, top - 9, 3), ellipse(88.5, top - 9, 3)],
    }


def fishbowl(v: Vary) -> Parts:
    """A goldfish in a round bowl."""
    r, length = v(36, 0.08), v(12)
    y, x = 52, 55 + v.shift(4)
    fy = y + 4 + v.shift(4)
    return {
        "bowl": [arc(50, y, r, r * 0.92, -58, 238)],
        "fish": [
            ellipse(x, fy, length, length * 0.52),
            poly((x + length - 1, fy), (x + length + 8, fy - 6), (x + length + 8, fy + 6), closed=True),
        ],
        "rim": [ellipse(50, y - r * 0.8, r * 0.56, 4)],
        "water": [wave(50 - r * 0.88, y - r * 0.42, 50 + r * 0.88, y - r * 0.42, 5, 2)],
        "eye": dots([(x - length * 0.5, fy - 1)], 1.3),
        "bubble": [
            ellipse(x - length - 4, fy - 7, 2),
            ellipse(x - length - 2, fy - 13, 1.6),
            ellipse(x - length - 5, fy - 18, 1.3),
        ],
        "plant": [wave(27, y + r * 0.62, 25, y + 3, 4, 2.5), wave(33, y + r * 0.68, 33, y + 11, 3, 2.5)],
        "gravel": [
            curve((50 - r * 0.72, y + r * 0.62), (45, y + r * 0.56), (60, y + r * 0.64), (50 + r * 0.72, y + r * 0.6)),
            *dots([(40, y + r * 0.74), (50, y + r * 0.79), (59, y + r * 0.75)], 1.7),
        ],
    }


def vase(v: Vary) -> Parts:
    """A vase with three flowers."""
    neck, belly, foot = v(8), v(21), v(10)
    tips = [(34 + v.shift(4), 12), (51, 5 + v.shift(3)), (67 + v.shift(4), 13)]
    return {
        "body": [*mirrored([curve((50 + neck, 48), (50 + belly, 62), (50 + belly * 0.92, 76), (50 + foot, 94))])],
        "flower": [bumps(x, y, 4.4, 4.4, 6, 3) for x, y in tips],
        "stem": [curve((x, y + 7), (50 + (x - 50) * 0.5, 30), (50 + (x - 50) * 0.22, 41)) for x, y in tips],
        "rim": [
            ellipse(50, 42, neck * 1.45, 3),
            *mirrored([curve((50 + neck * 1.45, 42), (50 + neck, 45), (50 + neck, 48))]),
        ],
        "base": [ellipse(50, 94, foot, 2)],
        "band": [
            curve((50 - belly * 0.95, 64), (50, 67), (50 + belly * 0.95, 64)),
            curve((50 - belly * 0.97, 74), (50, 77), (50 + belly * 0.97, 74)),
        ],
        "leaf": [
            curve((44, 31), (36, 34), (30, 29), (37, 26), (44, 31)),
            curve((57, 30), (64, 33), (71, 28), (64, 25), (57, 30)),
        ],
    }


FURNITURE = (
    Concept("bathtub", "home furniture water container bathroom large", bathtub, turn=2),
    Concept("bed", "home furniture soft sleep legs bedroom large", bed, turn=2),
    Concept("bench", "furniture seat legs wooden outdoor", bench, turn=2),
    Concept("chair", "home furniture seat legs wooden", chair, turn=2),
    Concept("couch", "home furniture seat legs soft large", couch, turn=2),
    Concept("crib", "home furniture sleep legs bedroom wooden baby", crib, turn=2),
    Concept("fishbowl", "home water container glass animal round", fishbowl, turn=2),
    Concept("vase", "home container decoration petals glass", vase, turn=2),
)
