"""The arithmetic of a forward pass, fixed for its duration and put back afterwards."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def device_name(device: torch.device) -> str:
    """What computes: the GPU's name or the CPU's vector instructions; both decide the last bits of a result."""
    if device.type == "cuda":
        return f"cuda {torch.cuda.get_device_name(device)}"
    if device.type == "cpu":
        return f"cpu {torch.backends.cpu.get_cpu_capability()}"
    return device.type


@contextmanager
def fixed_arithmetic(device_type: str, dtype: str = "float32", threads: int = 1) -> Iterator[None]:
    """IEEE single precision (no TF32, no bfloat16 inside float32 products), fixed threads, deterministic convolutions.

    Args:
        device_type: "cpu", "cuda", …
        dtype: "float32", or a narrower type in which convolutions and products run by autocast.
        threads: Threads inside one operator on the CPU.
    """
    saved = _precisions()
    threads_before = torch.get_num_threads()
    reduced = DTYPES[dtype] is not torch.float32
    autocast: Any = (
        torch.autocast(device_type, dtype=DTYPES[dtype]) if reduced else torch.autocast(device_type, enabled=False)
    )
    cudnn = torch.backends.cudnn
    cudnn_before = (cudnn.benchmark, cudnn.deterministic)
    try:
        for operator in saved:
            operator.fp32_precision = "ieee"
        cudnn.benchmark, cudnn.deterministic = False, True
        torch.set_num_threads(threads)
        with autocast if torch.amp.is_autocast_available(device_type) else nullcontext():
            yield
    finally:
        torch.set_num_threads(threads_before)
        cudnn.benchmark, cudnn.deterministic = cudnn_before
        for operator, precision in saved.items():
            operator.fp32_precision = precision


# mallopt's parameters in glibc. Setting one ends glibc's own adaptation, so afterwards they get its highest values.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 2**30
ADAPTED_TRIM, ADAPTED_MMAP = 2**26, 2**25


@contextmanager
def reused_memory() -> Iterator[None]:
    """Keep freed memory in the process while many equal passes run, and give it back afterwards.

    glibc hands blocks of a few megabytes back to the system as soon as they are free, and the system must clear every
    page when the next layer asks for them again: in a forward pass on the CPU that can cost as much as the arithmetic.
    Where the C library is another one, nothing happens.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (OSError, AttributeError):
        yield
        return
    try:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        yield
    finally:
        mallopt(M_MMAP_THRESHOLD, ADAPTED_MMAP)
        mallopt(M_TRIM_THRESHOLD, ADAPTED_TRIM)
        trim(0)


def _precisions() -> dict[Any, str]:
    backends: Any = torch.backends
    operators = (backends.cuda.matmul, backends.cudnn.conv, backends.mkldnn.matmul, backends.mkldnn.conv)
    return {operator: operator.fp32_precision for operator in operators}
