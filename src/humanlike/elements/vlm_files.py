"""The files of a vision-language model: a folder, or a repository on Hugging Face at one commit, fetched once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from humanlike.data.fetch import is_offline
from humanlike.files import sha256_file, sha256_value

WANTED = ("*.json", "*.jinja", "*.txt", "*.model", "*.safetensors")
"""Configuration, templates, vocabularies and weights; nothing of it can run code when it is read."""
NOT_WANTED = ("onnx/*", "original/*", "consolidated*", "*.gguf", "openvino/*")
CODE = "*.py"
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class ModelFiles:
    """A model on this machine.

    Attributes:
        folder: Where its files lie.
        name: "owner/name", or the name of a folder.
        commit: The commit of the repository; "" for a folder of one's own.
    """

    folder: Path
    name: str
    commit: str = ""

    @cached_property
    def revision(self) -> str:
        """What fixes the content: the commit, or "files:" and a digest over all files that are read."""
        if self.commit:
            return self.commit
        patterns = (*WANTED, CODE)
        found = sorted({p for pattern in patterns for p in self.folder.rglob(pattern) if p.is_file()})
        return f"files:{sha256_value([[p.relative_to(self.folder).as_posix(), sha256_file(p)] for p in found])[:40]}"


def model_files(
    model: str | Path, revision: str | None = None, offline: bool | None = None, remote_code: bool = False
) -> ModelFiles:
    """Find a model's files, and fetch them now if they are not here yet and that is allowed.

    What is on this machine is not asked for again: a branch stays at the commit that it had when it was fetched.

    Args:
        model: A folder, or "owner/name" on Hugging Face.
        revision: Commit, tag or branch of the repository; None: its main branch.
        offline: True: only look on this machine. Otherwise as HF_HUB_OFFLINE says.
        remote_code: Whether code of the repository is to be fetched and run; its commit must be given then.

    Raises:
        FileNotFoundError: Something is not here and cannot be fetched; says what, and how to get it.
        ValueError: The name is none, a folder is given a revision, code would run from no stated commit, or the weights
            come only as pickles.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise ValueError(f"{model} is a folder, which has no revisions; leave out revision={revision}")
        _check(folder, str(model))
        return ModelFiles(folder, folder.resolve().name)
    if not _REPOSITORY.fullmatch(str(model)):
        raise FileNotFoundError(
            f"the model {str(model)!r} is no folder on this machine and no name on Hugging Face ('owner/name')"
        )
    if remote_code and not _COMMIT.fullmatch(revision or ""):
        raise ValueError(
            f"trust_remote_code=true runs Python files of {model}: read them and name the commit that you read, "
            f"revision=<40 hex digits>; got {revision}"
        )
    folder = _snapshot(str(model), revision, offline, remote_code)
    return ModelFiles(folder, str(model), folder.name)


def _snapshot(name: str, revision: str | None, offline: bool | None, remote_code: bool) -> Path:
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    patterns = [*WANTED, CODE] if remote_code else list(WANTED)
    wanted: dict[str, Any] = {"revision": revision, "allow_patterns": patterns, "ignore_patterns": list(NOT_WANTED)}
    what = f"{name}@{revision}" if revision else name
    reason = f"it is not in {constants.HF_HUB_CACHE}"
    try:
        folder = Path(snapshot_download(name, local_files_only=True, **wanted))
        _check(folder, what)
        return folder
    except LocalEntryNotFoundError:
        pass
    except FileNotFoundError as error:  # a download that was broken off
        reason = str(error)
    if is_offline(offline) or constants.HF_HUB_OFFLINE:
        raise _absent(what, f"{reason}, and offline=true or HF_HUB_OFFLINE=1 rules out a download")
    try:
        folder = Path(snapshot_download(name, **wanted))
    except Exception as error:  # the hub's client and its transport raise a dozen unrelated kinds
        text = str(error).strip()
        raise _absent(
            what, f"download failed: {text.splitlines()[0][:200] if text else type(error).__name__}"
        ) from error
    _check(folder, what)
    return folder


def _absent(what: str, reason: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"the vision-language model {what} is not on this machine: {reason}. Run `humanlike prefetch benchmark=sea "
        "judge=...` where there is a network (HF_HOME says where files go; gated models need `hf auth login`), or give "
        "a folder: judge.model=PATH"
    )


def _check(folder: Path, what: str) -> None:
    """Configuration and every file of weights are here, as safetensors.

    Raises:
        FileNotFoundError: One is missing.
        ValueError: The weights come only as pickles.
    """
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{what} lacks config.json")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        lacking = [shard for shard in shards if not (folder / shard).is_file()]
        if lacking:
            raise FileNotFoundError(f"{what} lacks {lacking[0]} ({len(lacking)} of {len(shards)} files of weights)")
        return
    if (folder / "model.safetensors").is_file():
        return
    pickles = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth") for p in folder.glob(pattern))
    if pickles:
        raise ValueError(
            f"{what} has its weights only as {pickles[0]}, a pickle, which can run code when it is read; save it anew "
            "with model.save_pretrained(FOLDER), or name a revision with safetensors"
        )
    raise FileNotFoundError(f"{what} lacks model.safetensors")
