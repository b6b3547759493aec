"""`humanlike prefetch`, then a run with the network closed: every connection to another machine raises."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
from pathlib import Path

import pytest
import timm
import torch

from humanlike.entry import cli
from humanlike.entry.prefetch import configurations

CLOSED = '''
import socket

_connect, _getaddrinfo = socket.socket.connect, socket.getaddrinfo
LOCAL = ("127.", "::1", "localhost")


def connect(self, address):
    """Refuse every address but this machine's own."""
    if self.family in (socket.AF_INET, socket.AF_INET6) and not str(address[0]).startswith(LOCAL):
        raise OSError(101, f"the network is closed: {address}")
    return _connect(self, address)


def getaddrinfo(host, *arguments, **keywords):
    if host is not None and not str(host).startswith(LOCAL):
        raise OSError(101, f"the network is closed: {host}")
    return _getaddrinfo(host, *arguments, **keywords)


socket.socket.connect, socket.getaddrinfo = connect, getaddrinfo
socket.socket.connect_ex = lambda self, address: 101
'''


@pytest.fixture
def closed(command, tmp_path):
    """Run a command in a process whose network is closed."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CLOSED)
    paths = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    return functools.partial(command, PYTHONPATH=paths)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["humanlike", "prefetch", *arguments])
    cli.main()


def test_the_closed_network_is_closed(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(CLOSED)
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "the network is closed" in done.stderr


def test_all_that_is_missing_is_listed(monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SystemExit) as left:
        run(monkeypatch, "-m", "backbone=resnet50,clip_vit_b32,random_tiny", "dataset.concepts=2", "offline=true")
    assert left.value.code == 1
    out, err = capsys.readouterr()
    assert out.startswith("ready: ")
    assert "random_tiny (weights" in out
    assert "2 of " in err
    assert "backbone resnet50" in err
    assert "backbone clip_vit_b32" in err
    assert "Traceback" not in err


def test_what_is_prefetched_follows_the_sweep_the_parts_and_the_task():
    assert len(list(configurations(["-m", "seed=0,1", "backbone=random_tiny,resnet50"]))) == 4
    parts = list(configurations(["benchmark=all", "backbone=random_tiny"]))
    assert len(parts) == 3
    assert {c.backbone.name for c in parts} == {"random_tiny"}
    (train,) = configurations(["task=readout", "backbone=random_tiny"])
    assert train.command == "train"


@pytest.fixture
def server(tmp_path, serve):
    """A web server of this machine with a checkpoint, and how often it was asked."""
    folder = tmp_path / "served"
    folder.mkdir()
    torch.manual_seed(1)
    torch.save(timm.create_model("test_vit").state_dict(), folder / "net-0a1b2c3d.pth")
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, directory=str(folder), **keywords)

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    return f"{serve(Handler)}/net-0a1b2c3d.pth", asked


@pytest.mark.slow
def test_weights_from_a_server_are_fetched_once_and_then_no_network_is_needed(closed, command, server, tmp_path):
    address, asked = server
    settings = [
        "backbone=checkpoint", "backbone.architecture=test_vit", f"backbone.weights.url={address}",
        "backbone.transform={size: 160, mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}",
        "dataset.concepts=5", "dataset.instances=5",
    ]  # fmt: skip
    torch_home = {"TORCH_HOME": str(tmp_path / "torch"), "HF_HUB_OFFLINE": ""}
    run_settings = [*settings, "offline=true", "logger=none", "report=false", "benchmark.replicates=20",
                    "benchmark.splits=5", f"hydra.run.dir={tmp_path / 'run'}"]  # fmt: skip
    before = closed("evaluate.py", *run_settings, **torch_home)
    assert before.returncode == 1
    assert "net-0a1b2c3d.pth" in before.stderr
    assert "prefetch" in before.stderr
    fetched = humanlike(command, "prefetch", *settings, **torch_home)
    assert fetched.returncode == 0, fetched.stderr
    assert len(asked) == 1
    after = closed("evaluate.py", *run_settings, **torch_home)
    assert after.returncode == 0, after.stderr
    assert (tmp_path / "run" / "score.json").is_file()
    assert len(asked) == 1


def humanlike(command, *arguments, **extra):
    return subprocess.run(
        [sys.executable, "-m", "humanlike", *arguments],
        env={**command.environment, **extra}, cwd=command.home, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_demo_needs_no_network(closed, tmp_path):
    done = closed(
        "evaluate.py", "dataset.concepts=4", "dataset.instances=5", "benchmark.replicates=20", "benchmark.splits=5",
        "extraction.num_workers=0", f"hydra.run.dir={tmp_path / 'run'}", "offline=true", HF_HUB_OFFLINE="",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert Path(tmp_path / "run" / "report.html").is_file()
