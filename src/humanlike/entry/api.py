"""`humanlike.evaluate`: the command line's evaluation as a Python call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from humanlike.types import Score


def evaluate(
    backbone: str | Callable[..., Any] = "tf_efficientnet_lite0",
    benchmark: str = "seva",
    dataset: str = "doodles",
    *,
    transform: Any = None,
    name: str | None = None,
    out_dir: str | Path | None = None,
    learners: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Score:
    """Score a model on a benchmark.

    Args:
        backbone: Name of a configuration in conf/backbone, a ready `humanlike.interfaces.Backbone`, or any callable
            that maps a (B, 3, H, W) float tensor to (B, D) features (then `transform` is needed).
        benchmark: Name of a configuration in conf/benchmark.
        dataset: Name of a configuration in conf/dataset.
        transform: For a callable: maps an RGB `PIL.Image` to a (3, H, W) float tensor.
        name: For a callable: its name in results.
        out_dir: Folder that gets score.json, tables and report.html; None writes nothing.
        learners: With `benchmark="object_learning"`: name → learner of your own (`humanlike.interfaces.Learner`),
            simulated session by session beside the update rules.
        overrides: Any setting of the command line; a dot is written as two underscores, for example
            `dataset__root="drawings"` or `benchmark__replicates=200`.

    Returns:
        The score; `score["accuracy"]` is a value, `score.result.cells` the table of cells.

    Raises:
        ValueError: For misspelt names (the nearest valid ones are given) and unusable data.
        TypeError: When `backbone` is neither a name nor callable.
        OSError: When `out_dir` cannot be made, before anything is computed.
    """
    from humanlike.entry.conf import compose
    from humanlike.entry.environment import prepare
    from humanlike.entry.evaluate import score_from_config, write_score
    from humanlike.entry.targets import build

    if out_dir is not None:
        _make_folder(Path(out_dir))
    settings = [f"benchmark={benchmark}", f"dataset={dataset}"]
    ready = None
    if isinstance(backbone, str):
        settings.append(f"backbone={backbone}")
    else:
        ready = _as_backbone(backbone, transform, name)
    settings += [f"{key.replace('__', '.')}={_literal(value)}" for key, value in overrides.items()]
    config = compose("evaluate", settings)
    if "parts" in config.benchmark:
        raise ValueError(
            f"benchmark={benchmark} is several benchmarks and has no single score; evaluate them one by one: "
            f"{', '.join(config.benchmark.parts)}"
        )
    prepare(config)
    own = None if learners is None else build(config.benchmark, learners=dict(learners))
    score, data = score_from_config(config, backbone=ready, benchmark=own)
    if score is None:
        raise RuntimeError("this process is not the first of a multi-process run and holds no score")
    if out_dir is not None:
        from humanlike.reports.config_record import masked_config

        write_score(score, data, Path(out_dir), masked_config(config), with_report=bool(config.report))
    return score


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"out_dir {folder} cannot be made a folder ({error.strerror})") from error


def _as_backbone(model: Any, transform: Any, name: str | None) -> Any:
    from humanlike.backbones.callable import CallableBackbone
    from humanlike.interfaces import Backbone

    if isinstance(model, Backbone):
        return model
    if not callable(model):
        raise TypeError(f"backbone is a name, a Backbone or a callable (B,3,H,W) -> (B,D), got {type(model).__name__}")
    if transform is None:
        raise TypeError("a callable backbone needs transform=, a function from an RGB PIL image to a (3, H, W) tensor")
    return CallableBackbone(model, transform=transform, name=name or getattr(model, "__name__", type(model).__name__))


def _literal(value: Any) -> str:
    """A value in Hydra's override grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ",".join(_literal(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, int | float):
        return repr(value)
    if not isinstance(value, str | Path):
        raise TypeError(f"a setting is a text, a number, a list or a dictionary of these, got {type(value).__name__}")
    text = str(value)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
