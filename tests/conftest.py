"""Settings that must stand before torch is imported, the folder of shared real data, and what several folders need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("WANDB_SILENT", "true")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

if TYPE_CHECKING:
    from humanlike.backbones.callable import CallableBackbone

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data that lies beside a checkout; tests that need it skip where it is absent."""
    root = Path(os.environ.get("HUMANLIKE_SHARED", REPOSITORY.parent / "shared")) / "data"
    if not root.is_dir():
        pytest.skip("the shared data folder is absent (set HUMANLIKE_SHARED to the folder that holds data/)")
    return root


@pytest.fixture(scope="module")
def smooth_backbone() -> CallableBackbone:
    """A smooth random network that looks at 32 × 32 pixels: a 4 × 4 map of 6 channels, flattened."""
    import torch

    from humanlike.backbones.callable import CallableBackbone

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 5, stride=2), torch.nn.Tanh(), torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten()
        )
    return CallableBackbone(network, {"size": 32}, name="smooth")


@pytest.fixture
def serve() -> Iterator[Callable[[type[BaseHTTPRequestHandler]], str]]:
    """Starts a server on this machine that answers as a class of handlers says, silently → its address."""
    running = []

    def start(handler: type[BaseHTTPRequestHandler]) -> str:
        quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
        server = ThreadingHTTPServer(("127.0.0.1", 0), quiet)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()
