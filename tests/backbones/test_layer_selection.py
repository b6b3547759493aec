from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.backbones.layer_selection import select_layers

LAYERS = ("stem.conv", "stem.norm", "blocks.0", "blocks.1", "blocks.2", "blocks.10", "norm", "pre_logits")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("norm", ["norm"]),
        (["pre_logits", "norm", "norm"], ["norm", "pre_logits"]),
        ("blocks.?", ["blocks.0", "blocks.1", "blocks.2"]),
        ("blocks.[12]*", ["blocks.1", "blocks.2", "blocks.10"]),
        ("*norm", ["stem.norm", "norm"]),
        ("all", list(LAYERS)),
        ("spread:1", ["pre_logits"]),
        ("spread:2", ["stem.conv", "pre_logits"]),
        ("spread:8", list(LAYERS)),
        (["spread:2", "stem.*"], ["stem.conv", "stem.norm", "pre_logits"]),
    ],
)
def test_selections(wanted, chosen):
    assert select_layers(LAYERS, wanted) == tuple(chosen)


def test_a_name_that_looks_like_a_pattern_is_a_name():
    assert select_layers(("a[0]", "a0", "all"), ["a[0]"]) == ("a[0]",)
    assert select_layers(("a[0]", "a0", "all"), "all") == ("all",)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ([], "no layer is asked for"),
        ("block.1", r"name 'block.1'; nearest are .*blocks.1"),
        ("bloks.*", r"pattern 'bloks.\*'; nearest are .*blocks"),
        ("xyz", "nearest are stem.conv, pre_logits"),
        ("spread:9", r"asks for 9 layer\(s\) of 8"),
        ("spread:0", "asks for 0"),
        ("spread:many", "whole number N"),
    ],
)
def test_what_fits_nothing_is_answered(wanted, words):
    with pytest.raises(ValueError, match=words):
        select_layers(LAYERS, wanted)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 300), st.data())
def test_a_spread_is_even_and_holds_both_ends(total, data):
    number = data.draw(st.integers(2, total))
    names = tuple(f"layer_{i}" for i in range(total))
    at = [names.index(layer) for layer in select_layers(names, f"spread:{number}")]
    gaps = [b - a for a, b in pairwise(at)]
    assert len(at) == number
    assert (at[0], at[-1]) == (0, total - 1)
    assert max(gaps) - min(gaps) <= 1
