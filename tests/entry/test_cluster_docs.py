"""The examples of docs/cluster.md and docs/slurm: the shell reads them, and the commands exist as written."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from humanlike.entry.arguments import parse_arguments
from humanlike.entry.conf import conf_dir
from humanlike.entry.overrides import check_overrides, group_options

SCRIPTS = ("one_job", "several_nodes", "sweep")
RANGES = {"…": "1.0"}


def commands(text):
    """(Name of the configuration, arguments) of every command line of this project in a text."""
    joined = re.sub(r"\\\n\s*", "", text)
    found = []
    for line in joined.splitlines():
        hit = re.match(r"(?:srun \S+ )?python (evaluate|train)\.py (.*)", line.strip())
        if hit:
            found.append((hit[1], [word for word in shlex.split(hit[2], comments=True) if word != "$@"]))
    return found


def settings_of(script):
    return dict(re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", script, re.M))


@pytest.fixture
def read(repository):
    return lambda name: (repository / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_read_by_the_shell_and_its_command_composes(name, read, repository):
    path = repository / "docs" / "slurm" / f"{name}.sbatch"
    subprocess.run(["bash", "-n", str(path)], check=True)
    script = read(f"slurm/{name}.sbatch")
    assert script.startswith("#!/bin/bash\n")
    settings = settings_of(script)
    environment = {
        "SLURM_NNODES": settings["nodes"],
        "SLURM_NTASKS_PER_NODE": settings.get("ntasks-per-node", ""),
        "SLURM_JOB_ID": "7",
    }
    ((config, arguments),) = commands(script)
    filled = [re.sub(r"\$\{(\w+)\}", lambda hit: environment[hit[1]], word) for word in arguments]
    line = parse_arguments(filled)
    check_overrides(config, line.overrides, multirun=line.multirun)


def test_tasks_of_the_example_on_several_machines_are_its_devices(read):
    script = read("slurm/several_nodes.sbatch")
    settings = settings_of(script)
    assert settings["ntasks-per-node"] == settings["gpus-per-node"]
    assert "trainer.num_nodes=${SLURM_NNODES}" in script
    assert "trainer.devices=${SLURM_NTASKS_PER_NODE}" in script


def test_every_command_of_the_page_composes(read, monkeypatch):
    monkeypatch.setattr("humanlike.entry.overrides._check_installed", lambda hydra: None)  # extras may be absent
    found = commands(read("cluster.md"))
    assert len(found) >= 6
    for config, arguments in found:
        filled = [word.replace("layer=…", "layer=norm").replace("…", "1.0") for word in arguments]
        line = parse_arguments(filled)
        check_overrides(config, line.overrides, multirun=line.multirun)


def test_every_launcher_is_described_and_every_description_is_a_launcher(read):
    told = set(re.findall(r"^\| `(\w+)`(?: \(default\))? \|", read("cluster.md").partition("##")[0], re.M))
    assert told == {*group_options(conf_dir() / "hydra" / "launcher"), "basic"}
