"""Compiled functions do what their Python does, also where nothing can be kept on disk."""

import numba.core.caching
import numpy as np
import pytest

from humanlike.compilation import compiled


def squares(values_N):
    total = 0.0
    for x in values_N:
        total += x * x
    return total


@pytest.mark.parametrize("refusal", [None, RuntimeError("cannot cache function: no locator available"), OSError(30)])
def test_where_no_folder_takes_the_cache_it_compiles_for_itself(monkeypatch, refusal):
    def refused(self, function):
        raise refusal

    if refusal is not None:
        monkeypatch.setattr(numba.core.caching.FunctionCache, "__init__", refused)
    made = compiled(squares)
    values_N = np.arange(5.0)
    assert made(values_N) == squares(values_N) == 30.0
    assert made.signatures, "it was compiled, not interpreted"
