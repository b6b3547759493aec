"""The `humanlike` command: help in a moment, unknown commands answered, layers and prefetch."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from humanlike.entry import cli


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["humanlike", *arguments])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code


def test_help_version_and_unknown_commands(monkeypatch, capsys):
    assert run(monkeypatch) == 0
    assert "humanlike evaluate" in capsys.readouterr().out
    assert run(monkeypatch, "--version") == 0
    assert run(monkeypatch, "evalute") == 2
    assert "did you mean 'evaluate'" in capsys.readouterr().err


def test_layers_are_listed(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["humanlike", "layers", "random_tiny"])
    cli.main()
    said = capsys.readouterr().out
    assert "pre_logits" in said
    assert "blocks.0" in said


def test_layers_of_nothing(monkeypatch, capsys):
    assert run(monkeypatch, "layers", "resnet5") == 2
    assert "did you mean 'resnet50'" in capsys.readouterr().err


def test_layers_of_a_backbone_that_needs_a_setting(monkeypatch, capsys):
    assert run(monkeypatch, "layers", "timm") == 1
    assert "backbone.architecture has no default" in capsys.readouterr().err
    assert run(monkeypatch, "layers", "recorded", "backbone.path=answers.csv") == 1
    assert "recorded answers, which have no layers" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["plan", "prefetch"])
def test_what_cannot_be_read_of_a_sweep_is_wrong_use(monkeypatch, capsys, command):
    assert run(monkeypatch, command, "-m", "seed=[1") == 2
    assert "cannot read the override 'seed=[1'" in capsys.readouterr().err
    assert run(monkeypatch, command, "-m", "readout.C=interval(1,2)") == 2
    assert "name some, as in readout.C=1,2" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "status", "words"), [
    (KeyboardInterrupt(), 130, "interrupted\n"),
    (RuntimeError("strange"), 1, "RuntimeError: strange (unexpected; run again with HYDRA_FULL_ERROR=1"),
])  # fmt: skip
def test_every_command_ends_with_a_sentence(monkeypatch, capsys, error, status, words):
    def broken(arguments):
        raise error

    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
    monkeypatch.setattr("humanlike.entry.gather.main", broken)
    assert run(monkeypatch, "gather", "RUN") == status
    assert words in capsys.readouterr().err
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.setattr(sys, "argv", ["humanlike", "gather", "RUN"])
    with pytest.raises(type(error)):
        cli.main()


def test_prefetch_names_what_is_ready(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["humanlike", "prefetch", "backbone=random_tiny", "dataset.concepts=3"])
    cli.main()
    assert capsys.readouterr().out.startswith("ready: random_tiny (weights ")


def test_prefetch_without_network_says_what_is_missing(monkeypatch, capsys):
    assert run(monkeypatch, "prefetch", "backbone=resnet50", "dataset.concepts=3") == 1
    assert "resnet50" in capsys.readouterr().err


def test_help_imports_nothing_heavy(repository):
    """What makes `--help` answer within a second; the time itself is measured in perf/."""
    heavy = {"torch", "pytorch_lightning", "timm", "pandas", "matplotlib", "sklearn", "wandb"}
    code = (
        "import sys; sys.argv = ['evaluate.py', '--help']\n"
        "import humanlike, humanlike.entry.evaluate, humanlike.entry.train, humanlike.entry.cli\n"
        "try:\n    humanlike.entry.evaluate.main()\nexcept SystemExit:\n    pass\n"
        f"assert not {heavy!r} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=repository)


@pytest.mark.parametrize("command", ["evaluate", "train"])
def test_help_lists_every_group_with_its_options(command):
    from humanlike.entry.conf import conf_dir
    from humanlike.entry.help import help_text

    text = help_text(command)
    for option in (conf_dir() / "dataset").glob("*.yaml"):
        assert option.stem in text
    assert "debug=true" in text


@pytest.mark.parametrize("command", ["evaluate", "train", "study", "extract"])
def test_help_begins_with_what_the_file_says_above_its_settings(command):
    from humanlike.entry.conf import conf_dir
    from humanlike.entry.help import help_text

    file = (conf_dir() / f"{command}.yaml").read_text(encoding="utf-8")
    said = [line.removeprefix("# ") for line in file[: file.index("defaults:")].splitlines()]
    assert help_text(command).splitlines()[: len(said) + 1] == [*said, ""]


def test_every_list_of_exit_statuses_has_the_interruption():
    from humanlike.entry import help as help_of_commands
    from humanlike.entry import launch

    assert launch.INTERRUPTED == 130
    for text in (cli.USAGE, help_of_commands.ENDING, launch.__doc__):
        assert "130 interrupted" in text


def test_the_file_of_the_training_speaks_of_what_it_trains(repository):
    import ast

    (task,) = re.findall(r"- task: (\w+)", (repository / "conf" / "train.yaml").read_text(encoding="utf-8"))
    says = ast.get_docstring(ast.parse((repository / "train.py").read_text(encoding="utf-8")))
    assert re.search(rf"`python train.py` trains a .*{task}", says)
