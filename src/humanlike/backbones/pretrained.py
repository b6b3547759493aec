"""Where timm's published weights lie on this machine, and fetching them once under a lock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from humanlike.backbones.downloads import download
from humanlike.data.fetch import is_offline


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
    if not config.hf_hub_id:
        return download(config.url, offline=offline)
    repository, _, revision = config.hf_hub_id.partition("@")
    names = (config.hf_hub_filename,) if config.hf_hub_filename else ("model.safetensors", "pytorch_model.bin")
    return hub_weights(architecture, repository, names, revision or None, offline)


def _absent(architecture: str, what: str, where: str, reason: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"the weights of {architecture!r} are not on this machine: {what} is not in {where} ({reason}). "
        "Run `python -m humanlike prefetch backbone=...` where there is a network (HF_HOME says where files go), or "
        "take weights that need no download: backbone=tf_efficientnet_lite0"
    )


def hub_weights(
    architecture: str,
    repository: str,
    names: Sequence[str],
    revision: str | None = None,
    offline: bool | None = None,
) -> Path:
    """The first of a repository's files `names` on Hugging Face that is here or can be fetched.

    Args:
        architecture: Name, for messages.
        repository: "owner/name".
        names: File names, the most wanted first.
        revision: Branch, tag or commit; None for the newest.
        offline: True: only look on this machine, at once. Otherwise as HF_HUB_OFFLINE says.

    Raises:
        FileNotFoundError: None is on this machine or can be fetched; says which, and how to fetch it.
    """
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    for name in names:
        cached = try_to_load_from_cache(repository, name, revision=revision)
        if isinstance(cached, str):
            return Path(cached)
    what, where = f"{repository}/{names[0]}", str(constants.HF_HUB_CACHE)
    if is_offline(offline) or constants.HF_HUB_OFFLINE:
        raise _absent(architecture, what, where, "offline=true or HF_HUB_OFFLINE=1 rules out a download")
    reason = "the repository holds no such file"
    for name in names:
        try:
            return Path(hf_hub_download(repository, name, revision=revision))
        except LocalEntryNotFoundError as error:
            raise _absent(architecture, what, where, f"download failed: {_first_line(error)}") from error
        except EntryNotFoundError:
            continue
        except Exception as error:  # the hub's client and its transport raise a dozen unrelated kinds
            raise _absent(architecture, what, where, f"download failed: {_first_line(error)}") from error
    raise _absent(architecture, what, where, reason)


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:160] if text else type(error).__name__
