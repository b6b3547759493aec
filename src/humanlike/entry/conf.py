"""Where the configuration lives, and how it is composed from any folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omegaconf import DictConfig

PACKAGE = Path(__file__).resolve().parents[1]


def conf_dir() -> Path:
    """The folder of configuration files: inside an installed wheel, or `conf/` at the root of a checkout.

    Raises:
        FileNotFoundError: When neither exists, which means a broken installation.
    """
    for candidate in (PACKAGE / "conf", PACKAGE.parents[1] / "conf"):
        if (candidate / "evaluate.yaml").is_file():
            return candidate
    raise FileNotFoundError(f"no conf/evaluate.yaml inside {PACKAGE} or {PACKAGE.parents[1]}; reinstall humanlike")


def register_resolvers() -> None:
    """Register the interpolations that the configuration uses; safe to call again."""
    from omegaconf import OmegaConf

    from humanlike.entry.job_folder import job_folder
    from humanlike.entry.several_processes import moment

    OmegaConf.register_new_resolver("humanlike.cache_dir", default_cache_dir, replace=True)
    OmegaConf.register_new_resolver("humanlike.job_folder", job_folder, replace=True)
    OmegaConf.register_new_resolver("humanlike.moment", moment, replace=True)


def default_cache_dir() -> str:
    """The user's cache folder of this project, unless the environment variable HUMANLIKE_CACHE names another."""
    import os

    from platformdirs import user_cache_dir

    return os.environ.get("HUMANLIKE_CACHE") or user_cache_dir("humanlike", appauthor=False)


@contextmanager
def hydra_session() -> Iterator[None]:
    """A Hydra compose session on the project's conf/ that leaves a surrounding Hydra application as it was."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.singleton import Singleton

    register_resolvers()
    outer = Singleton.get_state()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
            yield
    finally:
        Singleton.set_state(outer)


def compose(config_name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The composed configuration of `evaluate` or `train`, as the command line would see it.

    Args:
        config_name: File name in conf/ without suffix.
        overrides: Hydra overrides such as `"backbone=resnet50"`.

    Raises:
        humanlike.entry.overrides.OverrideError: With the nearest valid names when an override is misspelt.
    """
    from hydra import compose as hydra_compose

    from humanlike.entry.overrides import check_overrides

    check_overrides(config_name, overrides, multirun=False)
    with hydra_session():
        return hydra_compose(config_name=config_name, overrides=list(overrides))
