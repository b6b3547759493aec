"""A harness that runs a function in several gloo processes by fork, with a hard time limit."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
import warnings
from datetime import timedelta

import pytest
import torch
import torch.distributed


def _process(job, rank, world_size, folder):
    # A process group of its own, so that whatever it starts can be ended with it.
    os.setsid()
    # Threads do not survive a fork; OpenMP in the child would wait for them for ever.
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        torch.distributed.init_process_group(
            "gloo",
            init_method=f"file://{folder / 'rendezvous'}",
            rank=rank,
            world_size=world_size,
            timeout=timedelta(seconds=55),
        )
        torch.save(job(rank, world_size), folder / f"{rank}.pt")
        torch.distributed.destroy_process_group()
    except BaseException:
        (folder / f"{rank}.error").write_text(traceback.format_exc())
        raise SystemExit(1) from None


@pytest.fixture
def run_processes(tmp_path_factory):
    """`run(job, world_size)` → [job(rank, world_size) of every rank]; results are tensors or containers of them."""

    def run(job, world_size, limit_s=60.0):
        folder = tmp_path_factory.mktemp("processes")
        context = multiprocessing.get_context("fork")
        processes = [context.Process(target=_process, args=(job, r, world_size, folder)) for r in range(world_size)]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
            for process in processes:
                process.start()
        deadline = time.monotonic() + limit_s
        try:
            for process in processes:
                process.join(max(0.0, deadline - time.monotonic()))
            late = [r for r, process in enumerate(processes) if process.is_alive()]
        finally:
            for process in processes:
                if process.is_alive():
                    os.killpg(process.pid, signal.SIGKILL)
                    process.join()
        errors = {path.stem: path.read_text() for path in folder.glob("*.error")}
        assert not errors, "\n".join(f"process {rank}:\n{text}" for rank, text in sorted(errors.items()))
        assert not late, f"processes {late} of {world_size} did not finish within {limit_s} s"
        return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(world_size)]

    return run
