"""One spelling for parts that models and people name in many: singular, lower case, without articles and numbers."""

from __future__ import annotations

import re

from humanlike.elements.linter import is_plural

_IRREGULAR = {
    "antennae": "antenna", "calves": "calf", "cacti": "cactus", "children": "child", "feet": "foot", "fungi": "fungus",
    "geese": "goose", "halves": "half", "hooves": "hoof", "knives": "knife", "larvae": "larva", "leaves": "leaf",
    "loaves": "loaf", "men": "man", "mice": "mouse", "oxen": "ox", "people": "person", "scarves": "scarf",
    "shelves": "shelf", "teeth": "tooth", "vertebrae": "vertebra", "wolves": "wolf", "women": "woman",
    "potatoes": "potato", "tomatoes": "tomato", "torpedoes": "torpedo", "axes": "axe", "matrices": "matrix",
    "movies": "movie", "cookies": "cookie", "hoodies": "hoodie", "brownies": "brownie", "pies": "pie", "ties": "tie",
    "bowties": "bowtie", "gases": "gas", "lenses": "lens", "canvases": "canvas", "buses": "bus", "cheeses": "cheese",
    "headaches": "headache", "moustaches": "moustache", "mustaches": "mustache", "caches": "cache",
}  # fmt: skip
_ADDED_ES = re.compile(r".*(ss|sh|ch|x|zz)es")
_START = re.compile(
    r"(?:(?:it )?(?:has|have|having|with)|an?|the|its|their|some|several|many|multiple|(?:a )?(?:pair|set|number) of|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|\d+|both|usually|often|sometimes)\s+"
)
_ASIDE = re.compile(r"\s*\([^)]*\)|[.;:!*\"`]")
WORDS = re.compile(r"[a-z]+(?:['-][a-z]+)*(?: [a-z]+(?:['-][a-z]+)*){0,3}")


def lemma(noun: str) -> str:
    """The singular of a lower-case noun, by its ending and a table of irregular ones.

    Example:
        >>> [lemma(noun) for noun in ("wings", "feet", "leaves", "branches", "berries", "glass", "eye", "axles")]
        ['wing', 'foot', 'leaf', 'branch', 'berry', 'glass', 'eye', 'axle']
    """
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if not is_plural(noun) or len(noun) < 3:
        return noun
    if noun.endswith("ies") and len(noun) > 4:
        return noun[:-3] + "y"
    if _ADDED_ES.fullmatch(noun):
        return noun[:-2]
    return noun[:-1]


def normal(phrase: str) -> str:
    """A part as it is counted in votes; "" for what names no part in up to four words.

    Example:
        >>> normal("Has four long Legs"), normal("a pair of antennae"), normal("wings (folded)")
        ('long leg', 'antenna', 'wing')
        >>> normal("it is used to cut paper into many small pieces")
        ''
    """
    text = " ".join(_ASIDE.sub("", phrase.lower().replace("_", " ")).split()).strip(" ,-")
    while (found := _START.match(text)) is not None:
        text = text[found.end() :]
    if not WORDS.fullmatch(text):
        return ""
    before, of, after = text.partition(" of ")
    words = before.split(" ")
    stem, dash, last = words[-1].rpartition("-")
    words[-1] = stem + dash + lemma(last)
    return " ".join(words) + of + after


def head(phrase: str) -> str:
    """The noun of a part without what describes it.

    Example:
        >>> head("long bushy tails"), head("arms of the chair"), head("tail-fin")
        ('tail', 'arm', 'fin')
    """
    words = normal(phrase).partition(" of ")[0].split(" ")
    return words[-1].split("-")[-1]
