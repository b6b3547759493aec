"""Shares of the cores: disjoint, complete, and taken by the processes that compute features."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanlike.cores import keep_to_share, own_cores, share_of_cores

confines = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot confine a process")


@given(num=st.integers(1, 200), world_size=st.integers(1, 40), threads=st.integers(1, 8))
def test_shares_are_disjoint_complete_and_large_enough_or_everything(num, world_size, threads):
    cores = list(range(100, 100 + num))
    shares = [share_of_cores(cores, rank, world_size, threads) for rank in range(world_size)]
    if any(len(share) < num for share in shares):
        assert sorted(core for share in shares for core in share) == cores
        sizes = [len(share) for share in shares]
        assert min(sizes) >= threads
        assert max(sizes) - min(sizes) <= 1
    else:
        assert num // world_size < threads or world_size == 1


@confines
def test_a_process_keeps_to_its_share_and_its_threads_do_too(tmp_path):
    before = own_cores()
    if pid := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    else:
        keep_to_share(1, 2, 1)
        (tmp_path / "cores").write_text(json.dumps(own_cores()))
        os._exit(0)
    expected = before[len(before) // 2 :] if len(before) > 1 else before
    assert tuple(json.loads((tmp_path / "cores").read_text())) == expected
    assert own_cores() == before, "another process is not confined"
