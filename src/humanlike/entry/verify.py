"""`humanlike verify RUN`: replay a score from its record and name the first stage that differs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from humanlike.entry.verify_stages import Findings
    from humanlike.types import Score

RESULTS = "object_learning"
"""Folder below the features where finished layers are kept."""
HELP_WORDS = frozenset({"--help", "-h"})
HELP = """\
humanlike verify RUN [RUN …] [--from-scratch] [key=value …]: compute a finished run's score again and compare it with
the record, stage by stage: data, transform, weights, features, readout, metric. The first stage that differs is named,
with what differs.

  RUN             a run's folder, or one with runs below it (a sweep, benchmark=all)
  --from-scratch  compute the features anew; without it stored ones are read, after their checksums were checked
  key=value       settings that have moved since, such as dataset.root=PATH or paths.cache=PATH

Numbers count as the same within 1e-6 where libraries and device are those of the record. Elsewhere features may differ
by 1e-3 of their norm, 1% of the answers, and scores by 0.01.

Exit status: 0 the record holds, 1 it does not or cannot be replayed, 2 wrong use.
"""


def main(arguments: Sequence[str]) -> None:
    """Run the command; leaves with exit status 0 or 1."""
    from humanlike.entry.overrides import OverrideError

    if HELP_WORDS & set(arguments):
        print(HELP)
        sys.exit(0)
    options = [a for a in arguments if a.startswith("-")]
    if unknown := [o for o in options if o != "--from-scratch"]:
        raise OverrideError(f"verify knows no option {unknown[0]!r}; there is --from-scratch")
    settings = [a for a in arguments if "=" in a and not a.startswith("-") and not Path(a).exists()]
    folders = [f for a in arguments if a not in settings and a not in options for f in runs_below(Path(a))]
    if not folders:
        raise OverrideError("verify needs the folder of a finished run: humanlike verify RUN")
    held = [_report(folder, verify(folder, "--from-scratch" in options, settings)) for folder in folders]
    sys.exit(0 if all(held) else 1)


def runs_below(folder: Path) -> list[Path]:
    """The folder itself where it is a finished run, else the finished runs below it.

    Raises:
        FileNotFoundError: There is none.
    """
    if (folder / "score.json").is_file():
        return [folder]
    found = sorted(path.parent for path in folder.rglob("score.json")) if folder.is_dir() else []
    if not found:
        raise FileNotFoundError(f"{folder} holds no score.json: the run is not finished, or it is another folder")
    return found


def verify(run_dir: Path, from_scratch: bool = False, settings: Sequence[str] = ()) -> Findings:
    """Compare a finished run with its replay.

    Args:
        run_dir: The run's folder.
        from_scratch: Compute features anew instead of reading stored ones.
        settings: Overrides `key=value` of the recorded configuration.

    Raises:
        FileNotFoundError: The run is not finished, or files are missing from it.
        ValueError: The record cannot be replayed: the model was handed over in Python, or a setting was masked.
    """
    from humanlike.entry.environment import prepare
    from humanlike.entry.evaluate import config_hash
    from humanlike.entry.verify_stages import Findings, compare_contents, compare_hash
    from humanlike.reports.config_record import read_config
    from humanlike.reports.run_folder import read_run

    recorded = read_run(run_dir)
    config = replayed_config(run_dir, recorded, settings)
    prepare(config)
    findings = Findings()
    provenance = recorded.result.tables.get("provenance")
    data = _built(findings, "data", config.dataset)
    if data is None:
        return findings
    if provenance is None:
        findings.notes.append("the run was made before items were recorded one by one: the first item is not named")
    else:
        from humanlike.entry.provenance import contents, item_ids
        from humanlike.types import Sketches

        compare_contents(
            findings,
            provenance,
            item_ids(data),
            contents(data.images if isinstance(data, Sketches) else data.images.images),
        )
    _further_hashes(findings, recorded, data)
    if findings.first is not None:
        return findings
    backbone = _built(findings, "weights", config.backbone)
    if backbone is None:
        return findings
    _network(findings, recorded, backbone, config)
    if findings.first is not None:
        return findings
    if not from_scratch:
        _stored(findings, recorded, Path(config.paths.cache) / "features", backbone)
        if findings.first is not None:
            return findings
    with tempfile.TemporaryDirectory(prefix="humanlike-verify-") as scratch:
        if not from_scratch:
            _features_alone(Path(config.paths.cache) / "features", Path(scratch) / "features")
        config.paths.cache = scratch
        _replay(findings, recorded, config, data, backbone)
    stated = config_hash(read_config(run_dir / "config.yaml"))
    compare_hash(findings, "config", "config.yaml", recorded.hashes.get("config"), stated)
    return findings


def replayed_config(run_dir: Path, recorded: Score, settings: Sequence[str]) -> DictConfig:
    """The recorded configuration, on one process and with the recorded number of threads.

    Raises:
        FileNotFoundError: The run has no config.yaml.
        ValueError: A setting was masked as a secret, or an override names none.
    """
    from omegaconf import OmegaConf

    from humanlike.entry.overrides import OverrideError, setting_value
    from humanlike.reports.config_record import MASK, read_config

    if not (run_dir / "config.yaml").is_file():
        raise FileNotFoundError(f"{run_dir} lacks config.yaml, which a finished run has; was it copied in part?")
    config = OmegaConf.create(read_config(run_dir / "config.yaml"))
    for setting in settings:
        key, _, value = setting.partition("=")
        if OmegaConf.select(config, key, default=OmegaConf) is OmegaConf:
            raise OverrideError(f"the run's configuration has no {key!r} ({run_dir / 'config.yaml'})")
        OmegaConf.update(config, key, setting_value(key, value))
    if masked := [key for key, value in _leaves(OmegaConf.to_container(config)) if value == MASK]:
        raise ValueError(f"{masked[0]} was masked in {run_dir / 'config.yaml'}: give it as {masked[0]}=…")
    extraction = recorded.result.details.get("extraction", {})
    if extraction.get("threads") and "extraction" in config:
        config.extraction.threads = int(extraction["threads"])
    if str(config.trainer.get("accelerator", "cpu")) == "cpu":
        config.trainer.devices, config.trainer.strategy = 1, "auto"  # scores depend on neither
    return config


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [leaf for k, v in value.items() for leaf in _leaves(v, f"{path}.{k}" if path else str(k))]
    return [(path, value)]


def _built(findings: Findings, stage: str, config: Any) -> Any:
    """What the configuration describes; that it cannot be built is a difference of its stage."""
    from humanlike.entry.sentences import sentence
    from humanlike.entry.targets import build

    try:
        return build(config)
    except (OSError, ValueError) as error:
        findings.add(stage, f"cannot be built any more: {sentence(error)}")
        return None


def _further_hashes(findings: Findings, recorded: Score, data: Any) -> None:
    from humanlike.entry.provenance import further_hashes
    from humanlike.entry.verify_stages import compare_hash

    for name, digest in further_hashes(data).items():
        compare_hash(findings, "data", name, recorded.hashes.get(name), digest)


def _network(findings: Findings, recorded: Score, backbone: Any, config: DictConfig) -> None:
    """Transform and weights, which can be compared before anything is computed."""
    from humanlike.entry.verify_stages import compare_hash
    from humanlike.files import sha256_value

    if backbone.name != recorded.backbone:
        raise ValueError(
            f"the run scored {recorded.backbone!r}, but its configuration makes {backbone.name!r}: the model was "
            "handed over in Python and cannot be made again from the record"
        )
    if not hasattr(backbone, "weights_hash"):
        return  # recorded answers: no network
    transform = recorded.hashes.get("transform")
    if transform is not None and config.benchmark.get("transform") != "whole":
        now = sha256_value(dict(backbone.transform.fingerprint))
        compare_hash(findings, "transform", "transform", transform, now)
    compare_hash(findings, "weights", "weights", recorded.hashes.get("weights"), backbone.weights_hash)


def _features_alone(cache_dir: Path, replayed: Path) -> None:
    """Let a replay see the stored features, but no results that were computed from them."""
    replayed.mkdir()
    for path in cache_dir.glob("*"):
        if path.name != RESULTS:
            (replayed / path.name).symlink_to(path.resolve(), target_is_directory=path.is_dir())


def _stored(findings: Findings, recorded: Score, cache_dir: Path, backbone: Any) -> None:
    """The checksums of stored features, before a replay would compute a damaged shard anew."""
    from humanlike.entry.provenance import stored_cache

    info = recorded.result.details.get("extraction", {})
    if grams := recorded.result.details.get("stored_grams"):
        _stored_grams(findings, recorded, cache_dir, dict(grams), backbone)
        return
    if info.get("cache_key") is None:
        return  # no features of a layer as a whole, such as those of a critic that was fitted on a part of the data
    cache = stored_cache(cache_dir, info)
    if cache is None:
        findings.notes.append(f"no stored features of this run in {cache_dir}: they are computed anew")
        return
    for path in sorted(cache.folder.glob("*/*.safetensors")):
        shard = int(path.stem)
        layer = _layer_of(path)
        if layer is None or cache.read(layer, shard) is None:
            start, stop = cache.bounds(shard)
            findings.add("features", f"the stored shard {path} is damaged (items {start} to {stop - 1})")


def _stored_grams(
    findings: Findings, recorded: Score, cache_dir: Path, grams: Mapping[str, str], backbone: Any
) -> None:
    """The same for inner products, which object learning keeps in the place of features."""
    from humanlike.entry.provenance import stored_grams
    from humanlike.files import sha256_value

    key = str(recorded.hashes["features"])
    found = stored_grams(cache_dir, key)
    names = {sha256_value([key, layer])[:32]: layer for layer in getattr(backbone, "layers", ())}
    if not found:
        findings.notes.append(f"no stored inner products of this run in {cache_dir}: they are computed anew")
    for folder in grams.keys() & found.keys():
        if found[folder] != grams[folder]:
            what = f"of layer {names[folder]!r} " if folder in names else ""
            where = cache_dir / "gram" / key[:32] / folder
            findings.add("features", f"the stored inner products {what}in {where} are not those of the run")


def _layer_of(path: Path) -> str | None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="np") as handle:
            return (handle.metadata() or {}).get("layer")
    except (SafetensorError, OSError):
        return None


def _replay(findings: Findings, recorded: Score, config: DictConfig, data: Any, backbone: Any) -> None:
    from humanlike.entry.evaluate import score_from_config
    from humanlike.entry.verify_stages import (
        OTHER_MACHINE,
        SAME_MACHINE,
        compare_features,
        compare_hash,
        compare_scores,
    )

    score, _ = score_from_config(config, backbone=backbone, data=data)
    assert score is not None  # one process
    moved = _moved(recorded, score)
    tolerance = OTHER_MACHINE if moved else SAME_MACHINE
    findings.notes += moved
    compare_hash(findings, "data", "data", recorded.hashes.get("data"), score.hashes.get("data"))
    if "sketches" in recorded.hashes:  # generated ones, which are scored
        compare_hash(findings, "data", "sketches", recorded.hashes["sketches"], score.hashes.get("sketches"))
    if "transform" in recorded.hashes:
        compare_hash(findings, "transform", "transform", recorded.hashes["transform"], score.hashes.get("transform"))
    own, now = (s.result.tables.get("provenance") for s in (recorded, score))
    assert now is not None
    if "features" in recorded.hashes:
        same = recorded.hashes["features"] == score.hashes.get("features")
        compare_features(findings, own, now, same or bool(moved and own is None), tolerance)
    compare_scores(findings, recorded, score, tolerance)
    _record_itself(findings, recorded)


def _record_itself(findings: Findings, recorded: Score) -> None:
    """Whether the record's tables have the digest that it states."""
    from humanlike.reports.run_folder import digest

    found = digest(recorded.result.items, recorded.result.counts)
    if found != recorded.digest:
        findings.add("metric", f"digest: score.json states {recorded.digest[:16]}…, items.parquet has {found[:16]}…")


def _moved(recorded: Score, replayed: Score) -> list[str]:
    """What surrounds the numbers and differs from the record: libraries, device."""
    told = [
        f"{name} is {replayed.versions.get(name, 'absent')} here, {version} in the record"
        for name, version in recorded.versions.items()
        if name not in {"humanlike", "platform"} and replayed.versions.get(name) != version
    ]
    devices = [s.result.details.get("extraction", {}).get("device") for s in (recorded, replayed)]
    if devices[0] != devices[1]:
        told.append(f"the device is {devices[1]} here, {devices[0]} in the record")
    return told


def _report(folder: Path, findings: Findings) -> bool:
    """Print what was found; whether the record holds."""
    from humanlike.entry.verify_stages import STAGES

    print(f"{folder}")
    for stage in STAGES:
        said = findings.differences.get(stage, [])
        if stage == "config" and not said:
            continue
        word = "differs" if said else "same" if stage in findings.checked else "not reached"
        print(f"  {stage:<10} {word}")
        for line in said:
            print(f"             {line}")
    for note in findings.notes:
        print(f"  note: {note}")
    first = findings.first
    print("the record holds" if first is None else f"the first stage that differs is: {first}")
    return first is None
