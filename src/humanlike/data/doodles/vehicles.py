"""Stroke programs of vehicles, on land, on water and in the air."""

from __future__ import annotations

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import (
    bumps,
    curve,
    dots,
    ellipse,
    line,
    mirrored,
    poly,
    rays,
    rect,
    wave,
)


def airplane(v: Vary) -> Parts:
    """An airliner flying to the left."""
    reach, fat = v(34), v(7.5)
    return {
        "wing": [
            poly((42, 53), (60 + reach * 0.25, 53 + reach), (68 + reach * 0.25, 53 + reach), (60, 52)),
            poly(
                (44, 50 - fat),
                (58 + reach * 0.2, 48 - reach * 0.85),
                (65 + reach * 0.2, 48 - reach * 0.85),
                (60, 50 - fat),
            ),
        ],
        "fuselage": [
            curve(
                (96, 44),
                (70, 50 - fat),
                (25, 50 - fat),
                (10, 48),
                (5, 53),
                (12, 58),
                (30, 50 + fat + 1),
                (70, 50 + fat),
                (96, 46),
            )
        ],
        "tail": [poly((80, 44), (90, 26), (98, 26), (96, 44)), poly((84, 48), (92, 58), (98, 58), (93, 47))],
        "window": [ellipse(28 + 7 * i, 47.5, 1.7, 2) for i in range(v.count(6, 8))],
        "cockpit": [poly((11, 48), (16, 45), (21, 46), (19, 50), closed=True)],
        "engine": [ellipse(56, 68, 6, 3, 12), ellipse(60, 31, 6, 3, -12)],
    }


def carriage(v: Vary) -> Parts:
    """A coach with four spoked wheels."""
    big, small = v(15), v(11)
    y = 88
    return {
        "wheel": [ellipse(72, y - big, big), ellipse(24, y - small, small)],
        "cabin": [
            curve(
                (20, 32),
                (26, 28),
                (48, 26),
                (70, 28),
                (76, 32),
                (74, 50),
                (68, 63),
                (48, 68),
                (28, 63),
                (22, 50),
                (20, 32),
            )
        ],
        "spoke": [*rays(72, y - big, 2.5, big, 8), *rays(24, y - small, 2, small, 8)],
        "window": [rect(28, 34, 38, 46), rect(59, 34, 69, 46)],
        "door": [poly((42, 67), (42, 33), (55, 33), (55, 67)), *dots([(44, 52)], 1.2)],
        "roof": [curve((17, 32), (24, 22), (48, 19), (72, 22), (79, 32)), ellipse(48, 16, 3)],
        "seat": [poly((20, 52), (8, 52), (4, 42)), poly((8, 52), (8, 62), (24, 66))],
        "shaft": [curve((14, 70), (4, 68), (-12, 68))],
    }


def balloon(v: Vary) -> Parts:
    """A hot-air balloon with its basket."""
    r, drop = v(32, 0.1), v(12)
    y = 36
    low = y + r * 1.1
    return {
        "envelope": [
            curve(
                (42, low),
                (50 - r * 0.85, y + r * 0.55),
                (50 - r, y),
                (50 - r * 0.7, y - r * 0.72),
                (50, y - r),
                (50 + r * 0.7, y - r * 0.72),
                (50 + r, y),
                (50 + r * 0.85, y + r * 0.55),
                (58, low),
                (42, low),
            )
        ],
        "basket": [poly((42, low + drop), (43, low + drop + 13), (57, low + drop + 13), (58, low + drop), closed=True)],
        "rope": [
            line(43, low, 43, low + drop),
            line(57, low, 57, low + drop),
            line(48, low, 47, low + drop),
            line(52, low, 53, low + drop),
        ],
        "stripe": [
            curve((46, low), (50 - r * 0.42, y), (50, y - r)),
            curve((54, low), (50 + r * 0.42, y), (50, y - r)),
            curve((50 - r, y - 2), (50, y + 7), (50 + r, y - 2)),
        ],
        "flame": [curve((48, low + 7), (48.5, low + 3), (50, low), (51.5, low + 3), (52, low + 7))],
        "weave": [
            line(43, low + drop + 4.5, 57, low + drop + 4.5),
            line(43, low + drop + 9, 57, low + drop + 9),
            line(48, low + drop, 48, low + drop + 13),
            line(53, low + drop, 53, low + drop + 13),
        ],
        "cloud": [bumps(91, 66, 8, 4, 6, 3.4)],
    }


def missile(v: Vary) -> Parts:
    """A missile rising on its flame."""
    half, long = v(8), v(44, 0.12)
    top, low = 12 + v.shift(2), 24 + long
    return {
        "body": [
            line(50 - half, 26, 50 - half, low),
            line(50 + half, 26, 50 + half, low),
            line(50 - half, low, 50 + half, low),
        ],
        "nose": [
            curve((50 - half, 26), (50 - half * 0.6, top + 5), (50, top - 4)),
            curve((50, top - 4), (50 + half * 0.6, top + 5), (50 + half, 26)),
            line(50 - half, 26, 50 + half, 26),
        ],
        "fin": mirrored(
            [poly((50 + half, low - 14), (50 + half + 11, low - 2), (50 + half + 11, low + 7), (50 + half, low))]
        ),
        "flame": [
            curve(
                (50 - half * 0.8, low + 1), (43, low + 12), (50, low + 26), (57, low + 12), (50 + half * 0.8, low + 1)
            ),
            curve((47, low + 2), (48, low + 9), (50, low + 15), (52, low + 9), (53, low + 2)),
        ],
        "band": [line(50 - half, 34, 50 + half, 34), line(50 - half, low - 17, 50 + half, low - 17)],
        "wing": mirrored([poly((50 + half, 38), (50 + half + 6, 45), (50 + half, 47))]),
    }


def sailboat(v: Vary) -> Parts:
    """A boat with two sails on waves."""
    mast, width = v(8, 0.5), v(34)
    return {
        "hull": [poly((14, 68), (86, 68), (74, 84), (26, 84), closed=True)],
        "sail": [poly((52, mast + 6), (54, 60), (54 + width * 0.85, 60), closed=True)],
        "mast": [line(50, mast, 50, 68)],
        "jib": [poly((47, mast + 12), (46, 60), (46 - width * 0.7, 60), closed=True)],
        "wave": [wave(2, 87, 98, 87, 7, 2.5), wave(12, 94, 88, 94, 5, 2.5)],
        "flag": [poly((50, mast), (61, mast - 4), (50, mast - 8)), line(50, mast, 50, mast - 8)],
        "porthole": [ellipse(x, 76, 2.6) for x in (36, 50, 64)],
    }


def tank(v: Vary) -> Parts:
    """A battle tank pointing to the left."""
    reach, rise = v(34), v.shift(3)
    return {
        "track": [
            curve((22, 64), (14, 68), (13, 76), (22, 84), (50, 85), (80, 84), (89, 76), (88, 68), (80, 64)),
            line(22, 64, 80, 64),
        ],
        "turret": [poly((34, 50), (39, 36), (66, 36), (73, 50))],
        "barrel": [
            line(37, 41, 37 - reach, 39 - rise),
            line(36, 45, 37 - reach, 43 - rise),
            rect(33 - reach, 37.5 - rise, 37 - reach, 44.5 - rise),
        ],
        "hull": [poly((14, 58), (22, 50), (80, 50), (90, 58), (82, 64), (20, 64), closed=True)],
        "wheel": [ellipse(x, 74.5, v(6, 0.06)) for x in (24, 37.5, 51, 64.5, 78)],
        "hatch": [poly((47, 36), (48, 31), (59, 31), (60, 36))],
        "antenna": [line(68, 37, 78, 14)],
        "tread": [line(x, 85, x + 1, 88) for x in range(22, 84, 6)],
    }


def taxi(v: Vary) -> Parts:
    """A taxi with its sign on the roof."""
    roof, wheel = v(34, 0.06), v(9, 0.1)
    checks = [rect(27 + 8 * i, 56 + 3 * (i % 2), 35 + 8 * i, 59 + 3 * (i % 2)) for i in range(6)]
    return {
        "body": [
            poly((30, 50), (6, 52), (4, 72), (14, 72)),
            line(14 + 2 * wheel, 72, 66, 72),
            poly((66 + 2 * wheel, 72), (96, 72), (95, 53), (80, 50)),
        ],
        "roof": [curve((28, 50), (36, roof + 3), (44, roof), (64, roof), (72, roof + 4), (82, 50))],
        "wheel": [
            ellipse(14 + wheel, 73, wheel),
            ellipse(66 + wheel, 73, wheel),
            ellipse(14 + wheel, 73, wheel * 0.4),
            ellipse(66 + wheel, 73, wheel * 0.4),
        ],
        "sign": [
            poly((47, roof), (47, roof - 10), (65, roof - 10), (65, roof)),
            # A letter that survives mirroring.
            line(53.5, roof - 7.5, 58.5, roof - 7.5),
            line(56, roof - 7.5, 56, roof - 2.5),
        ],
        "window": [
            poly((33, 50), (40, roof + 4), (52, roof + 4), (52, 50), closed=True),
            poly((56, 50), (56, roof + 4), (66, roof + 4), (74, 50), closed=True),
        ],
        "door": [line(54, 50, 54, 72), line(57, 54, 61, 54)],
        "checker": checks,
        "headlight": [ellipse(7.5, 58, 2.2, 3)],
    }


def train(v: Vary) -> Parts:
    """A steam locomotive driving to the left."""
    boiler, big, small = v(22, 0.1), v(10, 0.1), v(7, 0.1)
    top = 62 - boiler
    return {
        "boiler": [poly((64, top), (20, top), (16, top + 5), (16, 57), (20, 62), (64, 62))],
        "chimney": [poly((24, top), (25, top - 13), (21, top - 18), (35, top - 18), (31, top - 13), (32, top))],
        "wheel": [
            ellipse(78, 84 - big, big),
            ellipse(28, 84 - small, small),
            ellipse(44, 84 - small, small),
            ellipse(60, 84 - small, small),
        ],
        "cab": [
            poly((64, 68), (64, top - 14), (92, top - 14), (92, 68)),
            line(60, top - 14, 96, top - 14),
            rect(70, top - 7, 86, top + 7),
        ],
        "smoke": [bumps(34, top - 27, v(6), 4, 6, 3), bumps(52, top - 35, v(9), 5, 7, 3.5)],
        "cowcatcher": [poly((16, 64), (4, 84), (18, 84)), line(12, 71, 10, 84), line(16, 66, 15, 84)],
        "rail": [line(0, 85, 100, 85), line(0, 88, 100, 88)],
        "rod": [line(28, 84 - small, 78, 84 - big)],
        "lamp": [ellipse(13, top + 4, 3.4)],
    }


VEHICLES = (
    Concept("airplane", "vehicle flies wings metal machine large windows", airplane, turn=10),
    Concept("carriage", "vehicle wheels wooden doors road windows", carriage, turn=2),
    Concept("hot-air balloon", "vehicle flies round colourful large container", balloon),
    Concept("missile", "flies metal machine weapon long military", missile, turn=14),
    Concept("sailboat", "vehicle water wooden wind", sailboat, turn=3),
    Concept("tank", "vehicle wheels metal machine weapon military large", tank, turn=2),
    Concept("taxi", "vehicle wheels metal machine doors road windows colourful", taxi, turn=2),
    Concept("train", "vehicle wheels metal machine large long rails windows", train, turn=2),
)
