"""Addressed generators: same address, same draws; any difference in the address, other draws."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from humanlike.rng import address_seed, generator, torch_draws, torch_generator

PART = st.one_of(st.text(max_size=5), st.integers(-5, 5))


def test_seed_is_the_documented_digest():
    expected = int.from_bytes(hashlib.sha256(b"(7, 'a', 3)").digest()[:16], "little")
    assert address_seed(7, "a", 3) == expected


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(0, 9), PART, PART), st.tuples(st.integers(0, 9), PART, PART))
def test_addresses_collide_only_when_equal(a, b):
    assert (address_seed(*a) == address_seed(*b)) == (a == b)


def test_numbers_and_their_text_are_different_addresses():
    assert address_seed(0, 1) != address_seed(0, "1")
    assert address_seed(0, "a", "b") != address_seed(0, "ab")
    assert address_seed(0, np.int64(3)) == address_seed(0, 3)


def test_draws_do_not_depend_on_what_else_was_drawn():
    alone = generator(0, "session", 5).random(4)
    for session in range(5):
        generator(0, "session", session).random(100)
    np.testing.assert_array_equal(generator(0, "session", 5).random(4), alone)


def test_draws_are_uniform():
    x = generator(3, "uniform").random(20_000)
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 1 / 12) < 0.002


def test_torch_generator_repeats():
    a = torch.rand(3, generator=torch_generator(1, "x"))
    assert torch.equal(a, torch.rand(3, generator=torch_generator(1, "x")))
    assert not torch.equal(a, torch.rand(3, generator=torch_generator(2, "x")))


def test_global_draws_have_an_address_and_leave_no_trace():
    before = torch.random.get_rng_state()
    with torch_draws(1, "x"):
        inside = torch.rand(3)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(inside, torch.rand(3, generator=torch_generator(1, "x")))


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="strings and integers, got float"):
        address_seed(0, 1.5)
