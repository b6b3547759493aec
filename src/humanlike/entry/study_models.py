"""The models of a study: backbones that are evaluated now, finished runs, published answers and simulated models."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.benchmarks.seva import SevaBenchmark
    from humanlike.benchmarks.study.models import StudyModel
    from humanlike.types import Sketches

ALL_MARKED = "seva_table2"
"""In place of names of backbones: all whose `info` is marked so."""

STUDY_ONLY = frozenset(
    {
        "backbones",
        "layers",
        "runs",
        "machine_answers",
        "simulated",
        "machine_sketches",
        "machine_root",
        "discrepancy",
        "discrepancy_refit",
        "analyses",
        "command",
    }
)
"""Settings of a study that an evaluation does not have."""

DEMO_ALIGNMENTS = {"simulated_close": 0.95, "simulated_middling": 0.8, "simulated_far": 0.65}
"""Models of the demo and their true alignment with the simulated people on accuracy."""


@dataclass
class Evaluated:
    """What became of the backbones of a study.

    Attributes:
        folders: Name → folder of the finished run.
        failed: Name → why it could not be evaluated.
        lossy: Names of those that lost more images than allowed; they take part.
    """

    folders: dict[str, Path] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    lossy: list[str] = field(default_factory=list)


def backbone_files() -> dict[str, Path]:
    """Name → file of every backbone configuration, those of `--config-dir` included."""
    from hydra.core.hydra_config import HydraConfig

    from humanlike.entry.conf import conf_dir

    roots = [conf_dir()]
    if HydraConfig.initialized():
        sources = HydraConfig.get().runtime.config_sources
        roots += [Path(s.path) for s in sources if s.schema == "file" and s.path]
    return {path.stem: path for root in roots for path in sorted((root / "backbone").glob("*.yaml"))}


def chosen_backbones(wanted: str | Sequence[str]) -> dict[str, Any]:
    """Name → configuration (interpolations unresolved) of the backbones that were asked for.

    Raises:
        ValueError: When there is none of a name, or one is named twice.
    """
    from omegaconf import OmegaConf

    files = backbone_files()
    if isinstance(wanted, str) and wanted != ALL_MARKED:
        raise ValueError(f"backbones is {wanted!r}; it is a list of names, or {ALL_MARKED}")
    names = list(files) if isinstance(wanted, str) else [str(name) for name in wanted]
    for name in names:
        if name not in files:
            near = difflib.get_close_matches(name, files, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "`humanlike evaluate --help` lists them"
            raise ValueError(f"backbones names {name!r}, which conf/backbone does not have; {hint}")
    if len(set(names)) < len(names):
        raise ValueError(f"backbones names a backbone twice: {names}")
    found = {name: OmegaConf.to_container(OmegaConf.load(files[name]), resolve=False) for name in names}
    if isinstance(wanted, str):
        return {n: c for n, c in found.items() if isinstance(c, dict) and (c.get("info") or {}).get(ALL_MARKED)}
    return found


def evaluation_config(config: DictConfig, name: str, backbone: Mapping[str, Any]) -> DictConfig:
    """The configuration of the ordinary evaluation of one backbone, with everything else as the study has it."""
    from omegaconf import OmegaConf

    plain = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict)
    shared = {key: value for key, value in plain.items() if key not in STUDY_ONLY}
    layer = dict(plain["layers"] or {}).get(name)
    return OmegaConf.create({**shared, "command": "evaluate", "layer": layer, "backbone": dict(backbone)})


def refit_config(config: DictConfig, cv: str) -> DictConfig:
    """The study's configuration with the readouts' folds changed and nothing else."""
    from omegaconf import OmegaConf, open_dict

    plain = OmegaConf.to_container(config, resolve=False)
    assert isinstance(plain, dict)
    changed = OmegaConf.create(plain)
    with open_dict(changed):
        changed.metric.cv = cv
        changed.report = False
    return changed


def evaluate_backbones(
    config: DictConfig, folder: Path, data: Sketches, benchmark: SevaBenchmark, backbones: Mapping[str, Any]
) -> Evaluated:
    """Evaluate every backbone in a folder of its own; one that fails does not stop the others.

    Args:
        config: Of the study.
        folder: Every backbone gets a folder of its name in it.
        data: The built data set.
        benchmark: The built benchmark, which computes people's side once.
        backbones: Name → configuration.
    """
    from humanlike.entry.evaluate import evaluate_job
    from humanlike.entry.launch import FAILED, LOSSES, Job

    evaluated, job = Evaluated(), Job(partial(evaluate_job, brief=True, data=data, benchmark=benchmark))
    for number, (name, backbone) in enumerate(backbones.items(), 1):
        print(f"model {number} of {len(backbones)}: {name}", flush=True)
        status = job.run(evaluation_config(config, name, backbone), folder / name)
        if status == FAILED:
            evaluated.failed[name] = job.why
            continue
        evaluated.folders[name] = folder / name
        if status == LOSSES:
            evaluated.lossy.append(name)
    return evaluated


def named_runs(config: DictConfig, backbones: Iterable[str]) -> dict[str, Path]:
    """Name in the study → folder of the finished runs that join; `runs` is a list of folders or {NAME: FOLDER}.

    Args:
        config: Of the study.
        backbones: Names that are taken.

    Raises:
        FileNotFoundError: When a folder holds no finished run.
        ValueError: When a name is taken.
    """
    from humanlike.reports.run_folder import read_record

    given = config.runs or []
    by_name = given.items() if hasattr(given, "items") else ((None, folder) for folder in given)
    found: dict[str, Path] = {}
    taken = {*backbones}
    for name, folder in by_name:
        path = Path(str(folder)).expanduser()
        record = read_record(path)  # of named ones too: an unfinished run is told before anything is computed
        own = str(name or record["backbone"])
        if own in taken:
            raise ValueError(
                f"the run {path} is of {own!r}, a name that another model of the study has; give it a name of its own: "
                f"runs={{NAME: {path}}}"
            )
        taken.add(own)
        found[own] = path
    return found


def models_of_runs(runs: Mapping[str, Path], labels: Sequence[str]) -> Iterator[StudyModel]:
    """Models of finished runs.

    Args:
        runs: Name in the study → folder.
        labels: The labels of the study.

    Raises:
        FileNotFoundError: When a folder holds no finished run.
        ValueError: When a run does not fit the study.
    """
    from humanlike.benchmarks.study.models import model_from_score
    from humanlike.reports.config_record import read_config
    from humanlike.reports.run_folder import read_run

    for name, folder in runs.items():
        stored = read_config(folder / "config.yaml") if (folder / "config.yaml").is_file() else {}
        info = (stored.get("backbone") or {}).get("info") or {}
        yield model_from_score(read_run(folder), labels, info, name)


def published_models(place: str | None, labels: Sequence[str]) -> Iterator[StudyModel]:
    """Models from tables of their answers, a Parquet file each, as `humanlike convert` writes them.

    Args:
        place: A file, a folder of files, or None.
        labels: The labels of the study.

    Raises:
        FileNotFoundError: When there is no such file.
        ValueError: When a table does not fit.
    """
    import pandas as pd

    from humanlike.benchmarks.study.models import model_from_answers
    from humanlike.files import sha256_file

    if place is None:
        return
    path = Path(place).expanduser()
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise FileNotFoundError(f"machine_answers names {path}, where no .parquet file is")
    for file in files:
        model = model_from_answers(file.stem, pd.read_parquet(file), labels, source=str(file))
        yield replace(model, hashes={"answers": sha256_file(file)})


def machine_sketches_of(config: DictConfig) -> Sketches | None:
    """The configured data set of a machine's sketches, or None.

    Raises:
        ValueError: When there is no such data set, or it needs a folder and none is named.
    """
    from omegaconf import OmegaConf

    from humanlike.entry.conf import conf_dir
    from humanlike.entry.overrides import group_options
    from humanlike.entry.targets import build

    if config.machine_sketches is None:
        return None
    name, folder = str(config.machine_sketches), conf_dir() / "dataset"
    if name not in group_options(folder):
        near = difflib.get_close_matches(name, group_options(folder), n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "conf/dataset lists them"
        raise ValueError(f"machine_sketches names {name!r}, which is no data set; {hint}")
    own = OmegaConf.to_container(OmegaConf.load(folder / f"{name}.yaml"), resolve=False)
    assert isinstance(own, dict)
    if config.machine_root is not None:
        own["root"] = str(config.machine_root)
    if own.get("root") == "???":
        raise ValueError(f"machine_sketches={name} lies in a folder of its own: name it with machine_root=FOLDER")
    return build(OmegaConf.create(own))


def simulated_models(config: DictConfig, data: Sketches) -> Iterator[StudyModel]:
    """Models whose true alignment with the simulated people is known; only the doodles have such people.

    Raises:
        ValueError: When they are asked for on another data set, or no model has the wanted alignment.
    """
    from humanlike.benchmarks.study.models import model_from_draws
    from humanlike.data.doodles.twin import sample_labels, simulate_model
    from humanlike.entry.targets import build

    is_demo = data.name == "doodles" and data.responses is not None
    wanted = (DEMO_ALIGNMENTS if is_demo else {}) if config.simulated is None else dict(config.simulated)
    if wanted and not is_demo:
        raise ValueError(
            f"simulated models ({', '.join(wanted)}) can be made for dataset=doodles with people alone, not for "
            f"{data.name}; set simulated={{}}"
        )
    observer = build(config.dataset.observer) if wanted and config.dataset.get("observer") else None
    ids = data.table["sketch_id"].tolist()
    for number, (name, alignment) in enumerate(wanted.items()):
        seed = int(config.seed) + number
        proba_NL = simulate_model(data, float(alignment), seed=seed, observer=observer)
        yield model_from_draws(str(name), ids, proba_NL, sample_labels(proba_NL, seed))
