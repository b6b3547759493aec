"""Vision-language models from a folder into memory: whole, without pickles, of the class that the reader expects."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from humanlike.elements.vlm_answers import Loading

OWN_CODE = "runs Python files of its own ({files}): read them, and allow them with judge.trust_remote_code=true"


def require_transformers() -> None:
    """Say what to install.

    Raises:
        ModuleNotFoundError: transformers is not there.
    """
    if importlib.util.find_spec("transformers") is None:
        raise ModuleNotFoundError(
            "a vision-language model as judge needs transformers: pip install 'humanlike[vlm]'", name="transformers"
        )


def load_model(folder: Path, loading: Loading, model_class: str) -> Any:
    """A model in evaluation mode on its device.

    Args:
        folder: Folder with `config.json` and safetensors.
        loading: Device, type and whether code of the model's own may run.
        model_class: Name of a class of transformers with `from_pretrained`.

    Raises:
        ValueError: The weights are of another class, some are missing or of another shape, or the model needs code of
            its own that is not allowed.
    """
    require_transformers()
    import transformers

    settings = {"local_files_only": True, "trust_remote_code": loading.remote_code}
    config = _config(folder, settings)
    if not model_class.startswith("Auto"):
        _expect(config, model_class, folder)
    try:
        model, about = getattr(transformers, model_class).from_pretrained(
            folder, config=config, use_safetensors=True, dtype=loading.dtype, output_loading_info=True, **settings
        )
    except ValueError as error:
        raise ValueError(
            f"{folder.name}: {model_class} of transformers {transformers.__version__} cannot read it "
            f"({_first(error)}); is this the right judge for the model? See conf/judge"
        ) from error
    _expect(config, type(model).__name__, folder)
    lacking = sorted([*about["missing_keys"], *(str(k) for k in about.get("mismatched_keys", ()))])
    if lacking:
        raise ValueError(
            f"{folder.name} lacks {len(lacking)} weights of {type(model).__name__}, for example {lacking[0]}; such a "
            "model would answer at random"
        )
    return model.to(loading.device).eval().requires_grad_(False)


def _expect(config: Any, name: str, folder: Path) -> None:
    """Refuse weights that were saved from another class than the one that is to read them."""
    published = list(getattr(config, "architectures", None) or [])
    if published and name not in published:
        raise ValueError(
            f"{folder.name} holds weights of {published[0]}, but this judge reads {name}; see conf/judge for the "
            "judge of that class"
        )


def load_processor(folder: Path, loading: Loading) -> Any:
    """The processor of a model: image processor, tokenizer and chat template."""
    return _from_folder("AutoProcessor", folder, loading, **loading.processor)


def load_tokenizer(folder: Path, loading: Loading) -> Any:
    """The tokenizer alone."""
    return _from_folder("AutoTokenizer", folder, loading)


def _from_folder(name: str, folder: Path, loading: Loading, **further: Any) -> Any:
    import transformers

    try:
        return getattr(transformers, name).from_pretrained(
            folder, local_files_only=True, trust_remote_code=loading.remote_code, **further
        )
    except (ValueError, OSError) as error:
        raise ValueError(f"{folder.name}: {name} cannot be built from its files ({_first(error)})") from error


def _config(folder: Path, settings: dict[str, Any]) -> Any:
    import json

    import transformers

    plain = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    native = plain.get("model_type") in transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if "auto_map" in plain and not native and not settings["trust_remote_code"]:
        files = sorted({str(v).rpartition(".")[0].rpartition("--")[2] + ".py" for v in plain["auto_map"].values()})
        raise ValueError(f"{folder.name} {OWN_CODE.format(files=', '.join(files))}")
    try:
        return transformers.AutoConfig.from_pretrained(folder, **settings)
    except (ValueError, KeyError) as error:
        raise ValueError(
            f"{folder.name}: transformers {transformers.__version__} knows no model type {plain.get('model_type')!r} "
            f"({_first(error)})"
        ) from error


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
