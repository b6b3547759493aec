"""The harness itself: a hang and an error are told, not waited for."""

from __future__ import annotations

import time

import pytest
import torch


def test_results_come_in_rank_order(run_processes):
    assert [int(v) for v in run_processes(lambda rank, world_size: torch.tensor(10 * world_size + rank), 2)] == [20, 21]


def test_a_hang_is_ended_and_named(run_processes):
    started = time.monotonic()
    with pytest.raises(AssertionError, match=r"processes \[1\] of 2 did not finish within 3"):
        run_processes(lambda rank, _: time.sleep(100 * rank), 2, limit_s=3.0)
    assert time.monotonic() - started < 20


def test_an_error_is_told_with_its_process(run_processes):
    def job(rank, _):
        raise ValueError(f"told by {rank}")

    with pytest.raises(AssertionError, match="ValueError: told by 0"):
        run_processes(job, 1)
