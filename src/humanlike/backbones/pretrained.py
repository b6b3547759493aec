"""Where timm's published weights lie on this machine, and fetching them once under a lock."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from filelock import FileLock


def timm_config(architecture: str) -> Any:
    """The record that timm keeps of an architecture's weights: preprocessing, licence, where they lie.

    Raises:
        ValueError: timm knows no such architecture or no such pretrained tag; the nearest names are given.
    """
    import difflib

    import timm
    from timm.models import get_pretrained_cfg

    base = architecture.partition(".")[0]
    if not timm.is_model(base):
        near = difflib.get_close_matches(base, timm.list_models(), n=3, cutoff=0.5)
        hint = f"nearest are {', '.join(near)}" if near else "timm.list_models() gives all names"
        raise ValueError(f"timm knows no architecture {base!r}; {hint}")
    try:
        return get_pretrained_cfg(architecture)
    except RuntimeError as error:
        tags = [name.partition(".")[2] for name in timm.list_pretrained(f"{base}.*")]
        raise ValueError(f"timm has no weights {architecture!r}; {base} comes as {', '.join(tags)}") from error


def is_offline(offline: bool | None = None) -> bool:
    """Whether downloads are ruled out: by the argument or by HF_HUB_OFFLINE."""
    return bool(offline) or os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in {"1", "true", "yes", "on"}


def timm_weights(architecture: str, offline: bool | None = None) -> Path:
    """The file with an architecture's published weights, fetched now if it is not here yet and that is allowed.

    Several processes that ask at once download it once: the hub's client takes a lock and renames a finished file.

    Args:
        architecture: timm's name, with or without a pretrained tag.
        offline: True: only look on this machine, at once. Otherwise as HF_HUB_OFFLINE says.

    Returns:
        Path of the file in Hugging Face's or torch hub's cache.

    Raises:
        FileNotFoundError: It is not on this machine and cannot be fetched; says which file, and how to fetch it.
        ValueError: timm publishes no weights for it.
    """
    config = timm_config(architecture)
    if config is None or not (config.hf_hub_id or config.url):
        raise ValueError(f"timm publishes no weights for {architecture!r}; set weights=null or name a file")
    if config.hf_hub_id:
        return _from_hub(architecture, config, is_offline(offline))
    return _from_url(architecture, config.url, is_offline(offline))


def _absent(architecture: str, what: str, where: str, reason: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"the weights of {architecture!r} are not on this machine: {what} is not in {where} ({reason}). "
        "Run `python -m humanlike prefetch backbone=...` where there is a network (HF_HOME says where files go), or "
        "take weights that need no download: backbone=tf_efficientnet_lite0"
    )


def _from_hub(architecture: str, config: Any, offline: bool) -> Path:
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    repository, _, revision = config.hf_hub_id.partition("@")
    names = [config.hf_hub_filename] if config.hf_hub_filename else ["model.safetensors", "pytorch_model.bin"]
    for name in names:
        cached = try_to_load_from_cache(repository, name, revision=revision or None)
        if isinstance(cached, str):
            return Path(cached)
    what, where = f"{repository}/{names[0]}", str(constants.HF_HUB_CACHE)
    if offline or constants.HF_HUB_OFFLINE:
        raise _absent(architecture, what, where, "offline=true or HF_HUB_OFFLINE=1 rules out a download")
    reason = "the repository holds no such file"
    for name in names:
        try:
            return Path(hf_hub_download(repository, name, revision=revision or None))
        except LocalEntryNotFoundError as error:
            raise _absent(architecture, what, where, f"download failed: {_first_line(error)}") from error
        except EntryNotFoundError:
            continue
        except Exception as error:  # the hub's client and its transport raise a dozen unrelated kinds
            raise _absent(architecture, what, where, f"download failed: {_first_line(error)}") from error
    raise _absent(architecture, what, where, reason)


def _from_url(architecture: str, url: str, offline: bool) -> Path:
    import torch

    folder = Path(torch.hub.get_dir()) / "checkpoints"
    path = folder / url.rpartition("/")[2]
    if path.is_file():
        return path
    if offline:
        raise _absent(architecture, path.name, str(folder), "offline=true or HF_HUB_OFFLINE=1 rules out a download")
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        if not path.is_file():
            try:
                torch.hub.download_url_to_file(url, str(path), progress=False)  # renames a finished temporary
            except OSError as error:
                raise _absent(architecture, url, str(folder), f"download failed: {_first_line(error)}") from error
    return path


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:160] if text else type(error).__name__
