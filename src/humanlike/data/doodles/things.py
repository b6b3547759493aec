"""Stroke programs of instruments, tools, clothes and small objects."""

from __future__ import annotations

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import (
    Path,
    arc,
    curve,
    dots,
    ellipse,
    line,
    mirrored,
    moved,
    poly,
    rays,
    rect,
    scallops,
    turned,
    wave,
)


def _frets(count: int, top: float, bottom: float, half: float) -> list[Path]:
    return [
        line(50 - half, top + (bottom - top) * i / count, 50 + half, top + (bottom - top) * i / count)
        for i in range(1, count)
    ]


def _pegs(top: float, reach: float) -> list[Path]:
    return mirrored(
        [
            curve((55, top + d), (55 + reach, top + d - 1.5), (55 + reach, top + d + 1.5), (55, top + d))
            for d in (1.5, 6.5)
        ]
    )


def banjo(v: Vary) -> Parts:
    """An upright banjo."""
    r, top = v(21, 0.1), v(12, 0.2)
    y = 74
    return {
        "drum": [ellipse(50, y, r), ellipse(50, y, r - 3)],
        "neck": [line(46.5, top + 10, 46.5, y - r), line(53.5, top + 10, 53.5, y - r)],
        "headstock": [poly((46.5, top + 10), (44, top - 3), (56, top - 3), (53.5, top + 10))],
        "string": [line(50 + d, top + 2, 50 + 1.5 * d, y + r * 0.45) for d in (-2.4, -0.8, 0.8, 2.4)],
        "peg": _pegs(top - 2, 5),
        "bridge": [rect(42, y + r * 0.45, 58, y + r * 0.45 + 2.5)],
        "fret": _frets(7, top + 10, y - r, 3.5),
        "bracket": rays(50, y, r, r + 3, 14),
    }


def guitar(v: Vary) -> Parts:
    """An upright guitar."""
    waist, hip, top = v(12.5), v(22), v(8, 0.3)
    return {
        "body": mirrored(
            [
                curve(
                    (54, 46),
                    (50 + waist + 4, 47),
                    (50 + waist + 4, 57),
                    (50 + waist, 64),
                    (50 + hip, 76),
                    (50 + hip * 0.8, 93),
                    (50, 97),
                )
            ]
        ),
        "neck": [line(46.5, top + 10, 46.5, 46), line(53.5, top + 10, 53.5, 46)],
        "soundhole": [ellipse(50, 66, v(6.5))],
        "headstock": [poly((46.5, top + 10), (44.5, top - 3), (55.5, top - 3), (53.5, top + 10))],
        "string": [line(50 + d, top + 2, 50 + d, 84) for d in (-2, 0, 2)],
        "peg": _pegs(top - 2, 5),
        "bridge": [rect(41, 83, 59, 87)],
        "fret": _frets(6, top + 10, 46, 3.5),
    }


def button(v: Vary) -> Parts:
    """A shirt button with four holes."""
    r, d, hole = v(36, 0.08), v(7), v(3.8)
    centres = [(50 + sx * d, 50 + sy * d) for sx, sy in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return {
        "disc": [ellipse(50, 50, r)],
        "hole": [ellipse(x, y, hole) for x, y in centres],
        "rim": [ellipse(50, 50, r * 0.8)],
        "thread": [line(*centres[0], *centres[2]), line(*centres[1], *centres[3])],
        "edge": [arc(53, 54, r, r, -35, 125)],
    }


def computer_screen(v: Vary) -> Parts:
    """A monitor on its stand."""
    half, top, low = v(38, 0.08), v(14, 0.3), 66
    return {
        "frame": [rect(50 - half, top, 50 + half, low)],
        "stand": [poly((46, low), (44, 82)), poly((54, low), (56, 82))],
        "base": [ellipse(50, 85, v(19), 4)],
        "display": [rect(50 - half + 4, top + 4, 50 + half - 4, low - 8)],
        "button": dots([(50 + half - 7, low - 4), (50 + half - 12, low - 4)], 1.2),
        "icon": [rect(50 - half + 9 + 11 * i, top + 9, 50 - half + 16 + 11 * i, top + 15) for i in range(3)],
        "cursor": [poly((52, 38), (52, 50), (55, 47), (58, 52), (60, 51), (57, 46), (61, 46), closed=True)],
    }


def doorknob(v: Vary) -> Parts:
    """A round knob on a plate, with its keyhole."""
    r, half = v(17), v(13)
    return {
        "knob": [ellipse(50, 38, r)],
        "plate": [
            curve((50 - half, 20), (50, 6), (50 + half, 20)),
            line(50 + half, 20, 50 + half, 86),
            curve((50 + half, 86), (50, 99), (50 - half, 86)),
            line(50 - half, 86, 50 - half, 20),
        ],
        "keyhole": [ellipse(50, 70, 3.6), poly((48.6, 73), (46.5, 82), (53.5, 82), (51.4, 73))],
        "highlight": [arc(50, 38, r * 0.65, r * 0.65, 190, 265)],
        "screw": [ellipse(50, 13, 2.4), line(48.4, 14, 51.6, 12), ellipse(50, 92, 2.4), line(48.4, 91, 51.6, 93)],
        "edge": [line(88, -4, 88, 106), line(94, -4, 94, 106)],
    }


def hat(v: Vary) -> Parts:
    """A hat with a brim and a feather."""
    half, high = v(20), v(34)
    return {
        "brim": [ellipse(50, 70, v(43, 0.08), 10)],
        "crown": [
            curve(
                (50 - half, 68),
                (50 - half * 0.9, 70 - high * 0.7),
                (50 - half * 0.6, 70 - high),
                (50, 74 - high),
                (50 + half * 0.6, 70 - high),
                (50 + half * 0.9, 70 - high * 0.7),
                (50 + half, 68),
            )
        ],
        "band": [
            curve((50 - half, 68), (50, 73), (50 + half, 68)),
            curve((50 - half * 0.97, 60), (50, 65), (50 + half * 0.97, 60)),
        ],
        "feather": [
            curve((62, 64), (72, 48), (76, 30), (84, 34), (80, 50), (63, 64)),
            curve((63, 63), (74, 48), (79, 34)),
        ],
        "dent": [curve((46, 76 - high), (48, 70 - high * 0.5), (50, 71 - high * 0.4))],
    }


def hatchet(v: Vary) -> Parts:
    """A small axe."""
    wide, long = v(26), v(62, 0.1)
    return {
        "blade": [
            curve((54, 16), (54 - wide * 0.5, 15), (50 - wide, 8)),
            curve((50 - wide, 8), (44 - wide, 26), (50 - wide, 44)),
            curve((50 - wide, 44), (54 - wide * 0.5, 34), (54, 32)),
            poly((54, 32), (64, 32), (64, 16), (54, 16)),
        ],
        "handle": [
            poly((56, 16), (56, 9), (62, 9), (62, 16)),
            curve((56, 32), (56, 60), (53, 30 + long), (60, 33 + long), (63, 60), (62, 32)),
        ],
        "edge": [curve((53 - wide, 11), (48.5 - wide, 26), (53 - wide, 41))],
        "grip": [line(54.5, 30 + long - d, 61.5, 28 + long - d) for d in (4, 9, 14, 19)],
        "grain": [curve((58, 38), (59, 50), (58, 62)), curve((60, 44), (60.5, 55), (60, 66))],
        "bolt": dots([(59, 24)], 1.6),
    }


def jeans(v: Vary) -> Parts:
    """A pair of jeans."""
    hip, ankle, floor = v(22, 0.1), v(27), v(94, 0.03)
    return {
        "leg": [
            *mirrored([poly((50 + hip * 0.9, 16), (50 + hip, 34), (50 + ankle, floor))]),
            *mirrored([poly((50 + ankle, floor), (50 + ankle - 17, floor), (50, 44))]),
        ],
        "waistband": [rect(50 - hip * 0.9, 8, 50 + hip * 0.9, 16)],
        "pocket": mirrored([curve((50 + hip * 0.45, 16), (50 + hip * 0.55, 25), (50 + hip * 0.97, 28))]),
        "fly": [line(50, 16, 50, 44), curve((55, 16), (55, 30), (50, 36))],
        "button": dots([(50, 12)], 1.8),
        "cuff": mirrored([line(50 + ankle - 1, floor - 6, 50 + ankle - 16, floor - 6)]),
        "loop": [rect(x - 1.3, 6.5, x + 1.3, 17) for x in (50 - hip * 0.6, 50 + hip * 0.6)],
        "seam": mirrored([curve((50 + hip - 3, 36), (50 + ankle - 4, 65), (50 + ankle - 4, floor - 7))]),
    }


def pocket_watch(v: Vary) -> Parts:
    """A pocket watch on its chain."""
    r, y = v(27, 0.1), 64
    a, b = v(14, 0.3), v(19)
    chain = [ellipse(56 + 6.4 * i, 19 - 5 * i + 0.9 * i * i, 4, 2.3, -20 + 12 * i) for i in range(6)]
    return {
        "case": [ellipse(50, y, r)],
        "hand": [line(50, y, 50 + a * 0.8, y - a * 0.55), line(50, y, 50 - 2, y - b), *dots([(50, y)], 1.2)],
        "chain": chain,
        "crown": [rect(46.5, y - r - 6, 53.5, y - r), ellipse(50, y - r - 10.5, 5, 4.5)],
        "dial": [ellipse(50, y, r - 4)],
        "tick": rays(50, y, r - 8, r - 5, 12),
    }


def scissors(v: Vary) -> Parts:
    """Open scissors."""
    opening, ring = v(14), v(8.5)
    blade = poly((50, 58), (47, 54), (46, 8), (53, 40), (53, 57))
    loop = [ellipse(50, 84, ring, ring * 1.35), ellipse(50, 84, ring * 0.62, ring)]
    shank = poly((48.5, 60), (48, 84 - ring * 1.35))
    return {
        "blade": mirrored([turned(blade, -opening, 50, 58)]),
        "handle": mirrored([turned(p, -opening * 1.1, 50, 58) for p in loop]),
        "screw": [ellipse(50, 58, 2.2), line(48.6, 59, 51.4, 57)],
        "shank": mirrored([turned(shank, -opening, 50, 58), turned(moved(shank, 4, 0), -opening, 50, 58)]),
        "edge": mirrored([turned(line(51, 40, 47.5, 16), -opening, 50, 58)]),
    }


def tennis_ball(v: Vary) -> Parts:
    """A tennis ball lying on the ground."""
    r, bend = v(34, 0.08), v(15)
    return {
        "ball": [ellipse(50, 48, r)],
        "seam": [
            curve(
                (50 - r * 0.72, 48 - r * 0.69),
                (50 - r + bend * 1.6, 40),
                (50 - r + bend * 1.6, 57),
                (50 - r * 0.72, 48 + r * 0.69),
            ),
            curve(
                (50 + r * 0.72, 48 - r * 0.69),
                (50 + r - bend * 1.6, 40),
                (50 + r - bend * 1.6, 57),
                (50 + r * 0.72, 48 + r * 0.69),
            ),
        ],
        "fuzz": rays(50, 48, r + 1, r + 4, v.count(26, 34)),
        "shadow": [curve((22, 84), (50, 80), (86, 84), (56, 89), (22, 84)), line(34, 85, 74, 83)],
        "logo": [ellipse(50, 47, 7, 4.5), wave(46, 47, 54, 47, 2, 1.5)],
    }


def umbrella(v: Vary) -> Parts:
    """An open umbrella in the rain."""
    half, high, y = v(40, 0.08), v(32), 46
    n = v.count(4, 6)
    step = 2 * half / n
    return {
        "canopy": [arc(50, y, half, high, 180, 360), scallops(50 - half, y, 50 + half, y, n, 5)],
        "shaft": [line(50, y - 5, 50, 86)],
        "handle": [curve((50, 86), (49, 95), (42, 97), (37, 91), (37, 86))],
        "rib": [
            curve((50, y - high), (50 + 0.72 * (50 - half + i * step - 50), y - high * 0.66), (50 - half + i * step, y))
            for i in range(1, n)
        ],
        "tip": [line(50, y - high, 50, y - high - 8)],
        "raindrop": [
            curve((x, ry), (x - 2, ry + 5), (x, ry + 7), (x + 2, ry + 5), (x, ry))
            for x, ry in ((14, 2), (82, 0), (95, 22), (3, 26))
        ],
    }


THINGS = (
    Concept("banjo", "instrument strings music round handled", banjo, turn=16),
    Concept("button", "clothing fastener round small", button, turn=20),
    Concept("computer screen", "electronic machine home flat display", computer_screen, turn=2),
    Concept("doorknob", "home metal round doors handled small", doorknob, turn=2),
    Concept("guitar", "instrument strings music wooden handled", guitar, turn=16),
    Concept("hat", "clothing worn head soft", hat, turn=6),
    Concept("hatchet", "tool metal wooden handled sharp weapon", hatchet, turn=16),
    Concept("jeans", "clothing worn legs soft fastener", jeans, turn=4),
    Concept("pocket watch", "metal round small worn machine hands time", pocket_watch, turn=6),
    Concept("scissors", "tool metal handled sharp small", scissors, turn=16),
    Concept("tennis ball", "sport round small soft toy", tennis_ball, turn=20),
    Concept("umbrella", "tool rain handled worn outdoor", umbrella, turn=8),
)
