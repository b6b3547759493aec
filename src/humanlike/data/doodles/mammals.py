"""Stroke programs of mammals, seen from the side and facing left (an instance may be mirrored)."""

from __future__ import annotations

from humanlike.data.doodles.concept import Concept, Parts, Vary
from humanlike.data.doodles.shapes import arc, bumps, curve, dots, ellipse, leg, line, poly, zigzag


def _legs(v: Vary, xs: tuple[float, ...], top: float, bottom: float, width: float) -> list:
    return [leg(x, top, bottom + v.shift(2), width, v.shift(2)) for x in xs]


def bear(v: Vary) -> Parts:
    """A sitting bear from the front."""
    r, ear, belly = v(16), v(6.5), v(23)
    head_y = 30
    body_y = head_y + r + belly - 5
    return {
        "ear": [
            arc(50 - r * 0.8, head_y - r * 0.8, ear, ear, 105, 350),
            arc(50 + r * 0.8, head_y - r * 0.8, ear, ear, 190, 435),
        ],
        "head": [ellipse(50, head_y, r * 1.1, r)],
        "snout": [ellipse(50, head_y + r * 0.4, r * 0.5, r * 0.4), ellipse(50, head_y + r * 0.2, 3, 2)],
        "body": [arc(50, body_y, v(21), belly, -55, 235)],
        "paw": [
            ellipse(31, body_y + belly * 0.85, 9, 7, -20),
            ellipse(69, body_y + belly * 0.85, 9, 7, 20),
            curve((35, body_y - 12), (24, body_y - 2), (27, body_y + 8), (37, body_y + 2)),
            curve((65, body_y - 12), (76, body_y - 2), (73, body_y + 8), (63, body_y + 2)),
        ],
        "eye": dots([(50 - r * 0.4, head_y - 3), (50 + r * 0.4, head_y - 3)], 1.5),
        "belly": [ellipse(50, body_y + 2, belly * 0.55, belly * 0.6)],
        "claw": [
            line(x + d, body_y + belly * 0.85 + 3, x + 1.5 * d, body_y + belly * 0.85 + 8)
            for x in (31, 69)
            for d in (-4, 0, 4)
        ],
    }


def cow(v: Vary) -> Parts:
    """A cow with udder, spots and horns."""
    back, belly, floor = v.shift(2) + 36, v.shift(2) + 60, v(84, 0.04)
    head_y = back + v.shift(2)
    return {
        "body": [
            poly((33, back + 2), (84, back), (87, belly - 4), (82, belly), (34, belly + 1)),
            curve((30, head_y + 12), (31, belly - 5), (34, belly + 1)),
        ],
        "head": [
            poly(
                (16, head_y - 6),
                (31, head_y - 6),
                (30, head_y + 4),
                (27, head_y + 14),
                (17, head_y + 14),
                (14, head_y + 4),
                closed=True,
            ),
            arc(21.5, head_y + 11.5, 5.5, 3.5, 180, 360),
        ],
        "horn": [
            curve((17, head_y - 6), (12, head_y - 10), (13, head_y - 16)),
            curve((30, head_y - 6), (35, head_y - 10), (34, head_y - 16)),
        ],
        "udder": [
            arc(63, belly, v(8), v(7), 0, 180),
            line(60, belly + 6, 60, belly + 9),
            line(66, belly + 6, 66, belly + 9),
        ],
        "spot": [
            bumps(48, back + 10, v(7), v(6), 5, 2.2),
            bumps(70, back + 9, v(6), v(5), 5, 2),
            bumps(60, belly - 6, 4, 3, 4, 1.5),
        ],
        "leg": _legs(v, (38, 46, 75, 83.5), belly, floor, v(6)),
        "tail": [
            curve((85, back + 1), (92, back + 6), (91, back + 20)),
            curve((91, back + 20), (88, back + 26), (92, back + 28), (94, back + 24), (91, back + 20)),
        ],
        "ear": [ellipse(11, head_y - 3, 4.5, 2, 15), ellipse(35.5, head_y - 3, 4.5, 2, -15)],
        "eye": dots([(19, head_y), (26, head_y)], 1.1),
    }


def elephant(v: Vary) -> Parts:
    """An elephant with a hanging trunk."""
    head, back, belly, floor = v(14), 34 + v.shift(2), 66 + v.shift(2), v(86, 0.04)
    tip = v(76, 0.08)
    return {
        "trunk": [
            curve((19, 44), (15, 58), (14, tip), (9, tip + 2), (6, tip - 3)),
            curve((28, 53), (24, 62), (22, tip), (14, tip + 9), (4, tip + 4), (6, tip - 3)),
        ],
        "ear": [curve((38, 28), (50, 27), (55, 40), (48, 56), (40, 52), (37, 42), (38, 28))],
        "head": [arc(32, 40, head, head, 160, 310), curve((28, 53), (33, 55), (38, 53))],
        "body": [
            curve((42, back - 3), (62, back - 6), (82, back + 2), (88, 50), (84, belly)),
            curve((42, belly), (56, belly - 2), (68, belly)),
        ],
        "leg": [
            poly((38, 54), (37, floor), (48, floor), (48, belly)),
            poly((52, belly - 1), (52, floor), (61, floor), (61, belly - 1)),
            poly((66, belly - 1), (66, floor), (75, floor), (75, belly)),
            poly((77, belly), (78, floor), (87, floor), (86, belly - 8)),
        ],
        "tusk": [curve((27, 54), (21, 61), (13, 61), (20, 65), (31, 56))],
        "tail": [curve((88, 44), (94, 52), (93, 64)), zigzag(91, 66, 96, 66, 3, -4)],
        "eye": dots([(28, 41)], 1.4),
    }


def giraffe(v: Vary) -> Parts:
    """A giraffe: most of it is neck and legs."""
    top, belly, floor = v(14, 0.2), 56 + v.shift(2), v(95, 0.03)
    return {
        "neck": [
            curve((31, top + 8), (38, 30), (44, 46), (46, 52)),
            curve((39, top + 4), (47, 26), (55, 40), (64, 43)),
        ],
        "leg": _legs(v, (47, 53, 70, 76), belly, floor, v(4)),
        "body": [
            curve((64, 43), (76, 45), (80, 52), (78, belly + 1)),
            curve((45, 50), (46, belly), (60, belly + 2), (78, belly + 1)),
        ],
        "head": [poly((39, top + 4), (37, top - 1), (30, top), (19, top + 7), (20, top + 11), (31, top + 9))],
        "spot": [
            poly((x - 2.6, y - 1.5), (x + 1, y - 2.8), (x + 3, y), (x, y + 2.6), (x - 2.4, y + 1.4), closed=True)
            for x, y in ((42, 27), (47, 36), (52, 45), (60, 50), (69, 49), (74, 53), (40, top + 11), (63, 46))
        ],
        "horn": [
            line(35, top - 1, 34, top - 7),
            line(38, top, 39, top - 6),
            *dots([(34, top - 8), (39, top - 7)], 1.2),
        ],
        "tail": [curve((79, 49), (85, 55), (84, 64)), zigzag(82.5, 65, 86, 65, 2, -4)],
        "ear": [ellipse(43, top + 1, 4, 1.8, -25)],
        "eye": dots([(31, top + 3)], 1.0),
    }


def lion(v: Vary) -> Parts:
    """A lion looking at us."""
    r, ring, floor = v(12), v(19, 0.1), v(86, 0.04)
    n = v.count(11, 15)
    return {
        "mane": [bumps(30, 38, ring, ring * 1.05, n, 3.6, 40, 400)],
        "head": [ellipse(30, 38, r, r * 1.05)],
        "body": [curve((48, 45), (64, 42), (80, 45), (86, 56), (82, 67)), curve((43, 66), (56, 69), (72, 67))],
        "tail": [curve((85, 52), (94, 50), (95, 40), (90, 30))],
        "leg": [
            poly((40, 58), (41, floor), (49, floor), (49, 67)),
            leg(55, 68, floor - 2, v(6)),
            leg(70, 66, floor - 2, v(6)),
            poly((76, 66), (77, floor), (85, floor), (83, 64)),
        ],
        "eye": dots([(30 - r * 0.4, 35), (30 + r * 0.4, 35)], 1.3),
        "nose": [
            poly((27.5, 40), (32.5, 40), (30, 43), closed=True),
            curve((26, 46), (28, 47), (30, 43)),
            curve((30, 43), (32, 47), (34, 46)),
        ],
        "tuft": [curve((90, 30), (86, 24), (88, 18), (94, 22), (93, 28), (90, 30))],
        "whisker": [line(30 + s * 4, 43 + d, 30 + s * 14, 42 + 2.2 * d) for s in (-1, 1) for d in (-0.7, 1.3)],
    }


def mouse(v: Vary) -> Parts:
    """A mouse with a pointed nose and a long tail."""
    ear, back, floor = v(9), v(34, 0.1), 68
    loop = v.shift(4)
    return {
        "body": [
            curve((12, 58), (24, 44), (44, back), (64, 42), (72, 58), (66, floor)),
            curve((12, 58), (20, 65), (40, floor + 1), (66, floor)),
        ],
        "ear": [ellipse(36, back + 1, ear, ear * 1.1, -10), arc(24, back + 6, ear * 0.6, ear * 0.7, 150, 330)],
        "tail": [curve((70, 63), (82, 68), (92, 58 + loop), (86, 46 + loop), (96, 36 + loop))],
        "whisker": [line(16, 59 + d, 4 + abs(d), 58 + 4 * d) for d in (-1.5, 0, 1.5)]
        + [line(19, 61, 17, 71), line(22, 62, 23, 72)],
        "eye": dots([(25, 53)], 1.8),
        "nose": [ellipse(12, 58, 2.4, 2.2)],
        "foot": [ellipse(x, floor + 2.5, v(6), 2.6) for x in (34, 60)],
    }


MAMMALS = (
    Concept("bear", "animal mammal legs fur wild predator round large standing", bear),
    Concept("cow", "animal mammal legs tail horned farm large hooves spotted", cow),
    Concept("elephant", "animal mammal legs tail wild large gray tusked", elephant),
    Concept("giraffe", "animal mammal legs tail wild large long hooves spotted tall", giraffe),
    Concept("lion", "animal mammal legs tail fur wild predator large", lion),
    Concept("mouse", "animal mammal legs tail fur small gray", mouse),
)
