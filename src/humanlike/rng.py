"""Addressed random generators: randomness has an address, nothing draws from a global state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def address_seed(seed: int, *address: str | int) -> int:
    """A 128-bit seed for an address below a global seed.

    The address is hashed, so that any part of a study (one doodle, one session) can be drawn again alone,
    on any number of workers, with the same result.

    Args:
        seed: Global seed, any integer.
        address: Names and numbers that say what is drawn, for example `("doodles", "lion", 3)`.

    Returns:
        An integer in [0, 2¹²⁸).

    Example:
        >>> address_seed(0, "a", 1) == address_seed(0, "a", 1), address_seed(0, "a", 1) == address_seed(0, "a", 2)
        (True, False)
    """
    for part in address:
        if not isinstance(part, str | int | np.integer):
            raise TypeError(f"an address is made of strings and integers, got {type(part).__name__}: {part!r}")
    text = repr((int(seed), *(p if isinstance(p, str) else int(p) for p in address)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(seed: int, *address: str | int) -> np.random.Generator:
    """A NumPy generator (Philox, counter based) for an address below a global seed; see `address_seed`.

    Example:
        >>> bool(generator(0, "x").random() == generator(0, "x").random())
        True
    """
    return np.random.Generator(np.random.Philox(key=address_seed(seed, *address)))


def torch_generator(seed: int, *address: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A torch generator for an address below a global seed; see `address_seed`."""
    g = torch.Generator(device=device)
    g.manual_seed(address_seed(seed, *address) % (2**63))
    return g


@contextmanager
def torch_draws(seed: int, *address: str | int) -> Iterator[None]:
    """Inside the block torch's global generator draws for an address; after it, it goes on from where it was.

    For initial weights and dropout, which torch draws from nowhere else; see `address_seed`.

    Example:
        >>> with torch_draws(0, "weights"):
        ...     a = torch.rand(3)
        >>> with torch_draws(0, "weights"):
        ...     b = torch.rand(3)
        >>> torch.equal(a, b)
        True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(address_seed(seed, *address) % (2**63))
        yield
