"""What surrounds a run: offline mode, threads, the trainer, the loggers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from omegaconf import DictConfig

# Settings at the top of a configuration, which go to no constructor that states their types.
TYPES = {"seed": int, "max_failures": int, **dict.fromkeys(("resume", "offline", "report", "tracebacks"), bool)}


def prepare(config: DictConfig) -> None:
    """Set what must stand before heavy libraries are imported, and silence their chatter.

    Offline mode is a property of the process: the Hugging Face libraries read it once, at import.

    Raises:
        TargetError: A setting at the top has the wrong type.
    """
    import logging
    import warnings

    from humanlike.entry.targets import check_types

    check_types(TYPES, {key: config[key] for key in TYPES if key in config})
    if config.get("offline"):
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["WANDB_MODE"] = "offline"
    os.environ.setdefault("WANDB_SILENT", "true")
    # Lightning sets the level of its root logger when imported, so the loggers below it are set, which stay.
    for name in ("utilities.rank_zero", "accelerators.cuda", "trainer.connectors.signal_connector"):
        logging.getLogger(f"pytorch_lightning.{name}").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*srun. command is available.*")


def build_trainer(config: DictConfig, **extra: Any) -> pl.Trainer:
    """The Lightning trainer of `config.trainer`, without loggers, checkpoints or bars unless `extra` asks for them."""
    from humanlike.entry.targets import build

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "use_distributed_sampler": False,
    }
    return build(config.trainer, **{**quiet, **extra})


def run_name() -> str:
    """A name that says what the job is, for dashboards: the chosen benchmark or task, data set and backbone."""
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return "humanlike"
    choices = HydraConfig.get().runtime.choices
    return "-".join(str(choices[g]) for g in ("benchmark", "task", "dataset", "backbone") if choices.get(g))


def loggers(config: DictConfig, folder: Path) -> list[Any]:
    """The Lightning loggers of `config.logger`, writing below `folder`; none in any process but the first."""
    from humanlike.entry.targets import build

    if int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", os.environ.get("SLURM_PROCID", "0")))) != 0:
        return []
    name = run_name()
    made = []
    for key, entry in (config.get("logger") or {}).items():
        extra = {"save_dir": str(folder / "loggers" / key)}
        if "name" not in entry:
            extra["name"] = name
        Path(extra["save_dir"]).mkdir(parents=True, exist_ok=True)
        made.append(build(entry, **extra))
    return made
