"""The README's Python program runs as printed, and its commands name what exists."""

from __future__ import annotations

import re
import shlex

import pytest

from humanlike.entry.cli import USAGE
from humanlike.entry.overrides import check_overrides

BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(repository, language):
    return [
        code for kind, code in BLOCK.findall((repository / "README.md").read_text(encoding="utf-8")) if kind == language
    ]


@pytest.mark.slow
def test_the_python_programs_run(repository, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HUMANLIKE_CACHE", str(tmp_path))
    programs = blocks(repository, "python")
    assert programs
    for program in programs:
        exec(compile(program, "README.md", "exec"), {})
    assert "accuracy_people" in capsys.readouterr().out


def test_the_commands_name_what_exists(repository):
    commands = [shlex.split(line, comments=True) for line in "".join(blocks(repository, "sh")).splitlines() if line]
    scripts = [c for c in commands if c[0] == "python"]
    assert len(scripts) >= 6
    for _, script, *overrides in scripts:
        assert (repository / script).is_file()
        check_overrides(script.removesuffix(".py"), [o for o in overrides if o != "-m"])
    targets = (repository / "Makefile").read_text(encoding="utf-8")
    for _, target in (c for c in commands if c[0] == "make"):
        assert f"\n{target}:" in targets
    for _, command, *_ in (c for c in commands if c[0] == "humanlike"):
        assert f"\n  humanlike {command} " in USAGE


def test_the_readme_is_short(repository):
    assert len((repository / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
