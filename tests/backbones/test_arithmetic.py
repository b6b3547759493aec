"""The surroundings of a forward pass are set for its duration and put back."""

from __future__ import annotations

import ctypes

import pytest
import torch

from humanlike.backbones import arithmetic
from humanlike.backbones.arithmetic import fixed_arithmetic, reused_memory


def test_threads_and_precision_come_back_also_after_an_error():
    threads, precision = torch.get_num_threads(), torch.backends.mkldnn.matmul.fp32_precision

    def fail():
        with fixed_arithmetic("cpu", threads=2):
            assert torch.get_num_threads() == 2
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert torch.get_num_threads() == threads
    assert torch.backends.mkldnn.matmul.fp32_precision == precision


class Library:
    """A C library that writes down what it is told."""

    def __init__(self):
        self.calls = []

    def mallopt(self, parameter, value):
        self.calls.append((parameter, value))
        return 1

    def malloc_trim(self, pad):
        self.calls.append(("trim", pad))
        return 1


def test_memory_is_kept_while_it_lasts_and_given_back_after(monkeypatch):
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    with reused_memory():
        assert library.calls == [(-3, 2**30), (-1, 2**30)]
    assert library.calls[2:] == [(-3, arithmetic.ADAPTED_MMAP), (-1, arithmetic.ADAPTED_TRIM), ("trim", 0)]


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    with reused_memory():
        pass


def test_results_are_the_same_bits():
    torch.manual_seed(0)
    network, x = torch.nn.Conv2d(3, 8, 3), torch.randn(4, 3, 64, 64)
    plain = network(x)
    with reused_memory():
        kept = network(x)
    assert torch.equal(plain, kept)
