"""What surrounds a run: offline mode, threads, the trainer, the loggers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanlike.entry.job_folder import UNNAMED, fitted

if TYPE_CHECKING:
    import pytorch_lightning as pl
    from omegaconf import DictConfig

# Settings at the top of a configuration, which go to no constructor that states their types.
TYPES = {"seed": int, "max_failures": int, **dict.fromkeys(("resume", "offline", "report", "tracebacks"), bool)}

NAMED = ("benchmark", "task", "dataset", "backbone")
"""Groups whose choices make the name of a run."""
LONGEST_NAME = 120


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
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line a request otherwise, ten thousand for a judge
    warnings.filterwarnings("ignore", message=".*LeafSpec.*is deprecated.*")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*srun. command is available.*")


def build_trainer(config: DictConfig, **extra: Any) -> pl.Trainer:
    """The Lightning trainer of `config.trainer`, without loggers, checkpoints or bars unless `extra` asks for them."""
    from humanlike.entry.several_processes import guard, require_machines, start_by_fork
    from humanlike.entry.targets import build

    require_machines(config.trainer)
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "use_distributed_sampler": False,
    }
    trainer = build(config.trainer, **{**quiet, **start_by_fork(config.trainer), **extra})
    return guard(trainer, config.paths.cache)


def is_first_process() -> bool:
    """Whether this process is the first of a run, which alone writes and logs."""
    known = os.environ
    if "RANK" in known:
        return int(known["RANK"]) == 0
    # Machines that are started by hand have only the rank on each and `NODE_RANK`.
    return int(known.get("NODE_RANK", "0")) == 0 == int(known.get("LOCAL_RANK", known.get("SLURM_PROCID", "0")))


def run_name(folder: Path | None = None) -> str:
    """A name that says what the job is, for dashboards: the chosen benchmark or task, data set and backbone.

    What else was asked for on the command line follows, so that the jobs of a sweep can be told apart.

    Args:
        folder: The run's folder; of a part of `benchmark=all` its name is the part's.
    """
    from hydra.core.hydra_config import HydraConfig

    if not HydraConfig.initialized():
        return "humanlike"
    choices = dict(HydraConfig.get().runtime.choices)
    if choices.get("benchmark") == "all" and folder is not None:
        choices["benchmark"] = folder.name
    chosen = "-".join(str(choices[g]) for g in NAMED if choices.get(g))
    further = [o.lstrip("+~") for o in HydraConfig.get().overrides.task]
    told = [o for o in further if re.split(r"[=@]", o)[0] not in NAMED and re.split(r"[=.@/]", o)[0] not in UNNAMED]
    return f"{chosen} {fitted(told, LONGEST_NAME - len(chosen) - 1, ' ')}".strip()[:LONGEST_NAME]


def loggers(config: DictConfig, folder: Path) -> list[Any]:
    """The Lightning loggers of `config.logger`, writing below `folder`; none in any process but the first."""
    from humanlike.entry.targets import build

    if not is_first_process():
        return []
    made = []
    for key, entry in (config.get("logger") or {}).items():
        extra: dict[str, Any] = {"save_dir": str(folder / "loggers" / key)}
        if "name" not in entry:
            extra["name"] = run_name(folder)
        if str(entry.get("_target_")).endswith(".WandbRun"):
            extra |= {k: v for k, v in _about_run(config).items() if k not in entry}
        Path(extra["save_dir"]).mkdir(parents=True, exist_ok=True)
        made.append(build(entry, **extra))
    return made


def _about_run(config: DictConfig) -> dict[str, Any]:
    """What a dashboard groups runs by: the command, and the sweep that a job belongs to."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    about: dict[str, Any] = {"job_type": str(config.get("command", "evaluate"))}
    if HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN:
        about["group"] = Path(HydraConfig.get().sweep.dir).name
    return about
