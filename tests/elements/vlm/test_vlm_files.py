"""Where a model's files come from: folders, a hub's cache, one commit, no pickles, no code that was not allowed."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from huggingface_hub import constants

from humanlike.elements.vlm_answers import Loading
from humanlike.elements.vlm_chat import ChatReader
from humanlike.elements.vlm_files import model_files
from humanlike.elements.vlm_loading import load_model
from humanlike.elements.vlm_prompt import PromptReader
from humanlike.elements.vlm_sequence import SequenceReader

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CPU = Loading(torch.device("cpu"))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub's cache with one repository; returns its snapshot's folder."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = tmp_path / "models--lab--seer"
    folder = repository / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_cached_repository_is_found_at_its_commit(hub):
    (hub / "model.safetensors").write_bytes(b"w")
    for revision in (None, "main", COMMIT):
        found = model_files("lab/seer", revision, offline=True)
        assert (found.folder, found.name, found.revision) == (hub, "lab/seer", COMMIT)


def test_a_missing_model_names_itself_and_prefetch(hub):
    with pytest.raises(
        FileNotFoundError, match=r"model lab/other is not on this machine: .* `humanlike prefetch benchmark=sea"
    ):
        model_files("lab/other", offline=True)


def test_what_is_not_here_is_fetched_once_and_nothing_else_of_it(hub, monkeypatch):
    """The hub's client is played: it writes what was asked for, as the real one does."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    calls = []

    def snapshot(name, revision=None, local_files_only=False, allow_patterns=None, ignore_patterns=None):
        calls.append((name, revision, local_files_only))
        assert not {"*.py", "*.bin", "*.pt", "*"} & set(allow_patterns)
        if local_files_only and not (hub / "model.safetensors").exists():
            raise LocalEntryNotFoundError("absent")
        (hub / "model.safetensors").write_bytes(b"w")
        return str(hub)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert model_files("lab/seer", "v1").revision == COMMIT
    assert model_files("lab/seer", "v1", offline=True).revision == COMMIT
    assert calls == [("lab/seer", "v1", True), ("lab/seer", "v1", False), ("lab/seer", "v1", True)]


def test_a_failed_download_says_why(hub, monkeypatch):
    def snapshot(name, local_files_only=False, **settings):
        from huggingface_hub.errors import LocalEntryNotFoundError

        raise LocalEntryNotFoundError("absent") if local_files_only else ConnectionError("no route to host\nat line 3")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"lab/seer is not on this machine: download failed: no route to host\. Run"
    ):
        model_files("lab/seer")


def test_a_broken_download_is_not_taken_for_a_whole_one(hub):
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (hub / "model.safetensors.index.json").write_text(json.dumps(index))
    (hub / "model-00001-of-00002.safetensors").write_bytes(b"w")
    with pytest.raises(FileNotFoundError, match=r"lacks model-00002-of-00002.safetensors \(1 of 2 files of weights\)"):
        model_files("lab/seer", offline=True)
    (hub / "model-00002-of-00002.safetensors").write_bytes(b"w")
    assert model_files("lab/seer", offline=True).folder == hub


def test_pickles_are_refused(hub):
    (hub / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ValueError, match=r"weights only as pytorch_model.bin, a pickle"):
        model_files("lab/seer", offline=True)


def test_code_runs_only_from_a_commit(hub):
    (hub / "model.safetensors").write_bytes(b"w")
    with pytest.raises(ValueError, match=r"trust_remote_code=true runs Python files of lab/seer"):
        model_files("lab/seer", "main", offline=True, remote_code=True)
    assert model_files("lab/seer", COMMIT, offline=True, remote_code=True).revision == COMMIT


def test_neither_folder_nor_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder on this machine and no name on Hugging Face"):
        model_files(tmp_path / "absent")


def test_a_folder_is_known_by_its_content(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "model.safetensors").write_bytes(b"w")
    first, second = (model_files(tmp_path / name).revision for name in "ab")
    assert first == second
    (tmp_path / "b" / "processor_config.json").write_text('{"size": 2}')
    assert model_files(tmp_path / "b").revision != first


def test_the_judge_of_another_class_is_named(saved):
    with pytest.raises(ValueError, match=r"holds weights of BlipForQuestionAnswering, but this judge reads Blip"):
        PromptReader().load(saved("blip"), CPU)
    with pytest.raises(
        ValueError, match="of LlavaForConditionalGeneration, but this judge reads BlipForQuestionAnswering"
    ):
        SequenceReader().load(saved("llava"), CPU)


def test_weights_that_lack_are_not_made_up(saved, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(saved("llava"), tmp_path / "torn")
    weights = load_file(folder / "model.safetensors")
    gone = next(name for name in weights if name.endswith("layers.1.mlp.up_proj.weight"))
    del weights[gone]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        ValueError, match=r"torn lacks 1 weights of LlavaForConditionalGeneration, for example .*up_proj"
    ):
        ChatReader().load(folder, CPU)


def test_an_unknown_type_of_model_is_said(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "seer9"}))
    with pytest.raises(ValueError, match=r"knows no model type 'seer9'"):
        load_model(tmp_path, CPU, "AutoModelForImageTextToText")
