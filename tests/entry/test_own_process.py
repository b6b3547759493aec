"""Jobs of a sweep that run on several processes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from humanlike.entry import own_process
from humanlike.entry.own_process import needs_own_process, processes_a_node, reserved_port, run_alone


@pytest.mark.parametrize(
    ("trainer", "expected"),
    [
        ({}, 1),
        ({"devices": 3}, 3),
        ({"devices": "4"}, 4),
        ({"devices": [0, 2]}, 2),
        ({"devices": "0,1,2"}, 3),
        ({"devices": "auto", "accelerator": "cpu"}, 1),
        ({"devices": -1, "accelerator": "gpu"}, 2),
        ({"devices": "auto", "accelerator": "gpu"}, 2),
    ],
)
def test_processes_of_a_trainer(trainer, expected, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert processes_a_node(trainer) == expected


def test_only_a_job_that_would_start_processes_itself_is_run_alone(monkeypatch):
    for name in (*own_process.STARTED_BY_OTHERS, "SLURM_NTASKS", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert needs_own_process({"devices": 2})
    assert not needs_own_process({"devices": 1})
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "2")
    assert not needs_own_process({"devices": 2})
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert needs_own_process({"devices": 2})
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert not needs_own_process({"devices": 2})


def test_ports_are_free_and_given_once():
    with reserved_port() as first, reserved_port() as second, reserved_port() as third, reserved_port() as fourth:
        assert len({first, second, third, fourth}) == 4
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", first))


def test_a_port_that_something_listens_on_is_passed_over():
    with reserved_port() as port:
        pass
    with socket.socket() as busy:
        busy.bind(("", port))
        busy.listen()
        with reserved_port() as other:
            assert other != port


def test_ports_differ_between_processes():
    code = (
        "from humanlike.entry.own_process import reserved_port\n"
        "with reserved_port() as p: print(p, flush=True); input()"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ports = [process.stdout.readline() for process in started]
    assert len(set(ports)) == 4
    for process in started:
        process.communicate("\n")


def test_the_command_keeps_folder_settings_and_port(tmp_path, monkeypatch):
    seen = {}

    class Process:
        pid = 2**30

        def __init__(self, command, env, start_new_session):
            seen.update(command=command, env=env)

        def wait(self):
            return -signal.SIGKILL

    monkeypatch.setattr(own_process.subprocess, "Popen", Process)
    monkeypatch.setattr(own_process.os, "killpg", lambda *_: None)
    folder = tmp_path / "it's a=1,b=[2]"
    status = run_alone("humanlike.entry.evaluate", ["seed=1", "layer=null"], ["more"], folder, "seed=1")
    assert status == -signal.SIGKILL
    assert seen["command"][1:] == [
        "-m", "humanlike.entry.own_process", "--config-dir", "more", "seed=1", "layer=null",
        "hydra.run.dir='" + str(folder).replace("'", "\\'") + "'",
    ]  # fmt: skip
    assert int(seen["env"]["MASTER_PORT"]) in own_process.PORTS
    assert (seen["env"][own_process.MODULE], seen["env"][own_process.OVERRIDES]) == (
        "humanlike.entry.evaluate",
        "seed=1",
    )


def test_a_foreign_module_is_not_run(monkeypatch, capsys):
    monkeypatch.setenv(own_process.MODULE, "os")
    monkeypatch.setattr(own_process, "end_with_parent", lambda: None)
    with pytest.raises(SystemExit) as left:
        own_process.main()
    assert left.value.code == 2
    assert "must name a command's module, got 'os'" in capsys.readouterr().err
