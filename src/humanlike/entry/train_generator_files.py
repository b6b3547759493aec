"""What a generator's run leaves in its folder: sketches before and after, as files and as a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pytorch_lightning.loggers import Logger

from humanlike.benchmarks.generation import split_by_source
from humanlike.benchmarks.generation_evaluation import evaluated
from humanlike.benchmarks.generation_sketches import SketchSet
from humanlike.data.svg import drawing_to_svg
from humanlike.files import write_text
from humanlike.generators.finetune import FineTuning
from humanlike.generators.finetune_monitor import GapMonitor, means, read_drawings
from humanlike.reports.generation_page import write_comparison
from humanlike.reports.run_folder import write_table
from humanlike.types import Sketches

STAGES = ("before", "after")


class Watch:
    """Seconds of each part."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = {}
        self._last = (time.process_time(), time.perf_counter())

    def lap(self, name: str) -> None:
        """What has passed since the last call belongs to `name`."""
        now = (time.process_time(), time.perf_counter())
        self.cpu[name], self.wall[name] = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now


def spread_over(labels: Sequence[str], concepts: Sequence[str] | int | None) -> tuple[str, ...]:
    """Names that are asked for, by name or by number, in label order.

    Raises:
        ValueError: A name is no label, or the number is out of range.

    Example:
        >>> spread_over(["a", "b", "c", "d"], 2), spread_over(["a", "b"], ["b"])
        (('a', 'c'), ('b',))
    """
    if concepts is None:
        return tuple(labels)
    if isinstance(concepts, int):
        if not 1 <= concepts <= len(labels):
            raise ValueError(f"concepts, as a number, must lie between 1 and {len(labels)}, got {concepts}")
        return tuple(labels[i * len(labels) // concepts] for i in range(concepts))
    unknown = [c for c in concepts if c not in labels]
    if unknown or not concepts:
        raise ValueError(
            f"concepts must be labels of the data set, got {unknown or list(concepts)}; it has {labels[:8]}"
        )
    return tuple(label for label in labels if label in set(concepts))


def write_sketches(
    folder: Path, module: FineTuning, monitor: GapMonitor, loggers: Sequence[Logger] = ()
) -> dict[str, Any]:
    """Write `sketches/STAGE/*.svg` and `sketches.parquet`, and tell every logger the means.

    Returns:
        `before` and `after`: reader → means; `gain`: reader → gain of SEA, P and v; `hack_gap`.
    """
    tables: list[pd.DataFrame] = []
    found: dict[str, Any] = {}
    for stage in STAGES:
        drawings, concepts = monitor.sketches(module, before=stage == "before")
        number = pd.Series(concepts).groupby(concepts).cumcount()
        ids = [f"{concept}-{k:02d}" for concept, k in zip(concepts, number, strict=True)]
        paths = [f"sketches/{stage}/{i.replace(' ', '_')}.svg" for i in ids]
        for drawing, path in zip(drawings, paths, strict=True):
            write_text(folder / path, drawing_to_svg(drawing, size=224))
        table = pd.DataFrame({"sketch_id": ids, "stage": stage, "path": paths})
        for who, reader in (("critic", module.critic), ("judge", monitor.judge)):
            read = read_drawings(reader, drawings, concepts, monitor.size)
            found.setdefault(stage, {})[who] = means(read)
            read = read.rename(columns={c: f"{c}_{who}" for c in ("p", "v", "sea", "recognised", "blank")})
            table = table.assign(**{c: read[c] for c in read.columns})
        tables.append(table)
    write_table(folder / "sketches.parquet", pd.concat(tables, ignore_index=True))
    gain = {
        who: {name: found["after"][who][name] - found["before"][who][name] for name in ("sea", "p", "v")}
        for who in ("critic", "judge")
    }
    gap = gain["critic"]["sea"] - gain["judge"]["sea"]
    scalars = {f"{who}/gain_{name}": value for who, part in gain.items() for name, value in part.items()}
    for logger in loggers:
        logger.log_metrics({**scalars, "hack_gap_final": gap}, step=int(module.steps_done))
        logger.save()
    return {**found, "gain": gain, "hack_gap": gap}


def write_page(
    folder: Path, module: FineTuning, monitor: GapMonitor, data: Sketches, n_splits: int, seed: int, credit: int = 4
) -> dict[str, dict[str, float | None]]:
    """Write `before_after.html`: the sketches of `write_sketches` as `benchmark=generation` compares them.

    The reference is 1/n_splits of the data set's sources, of the concepts that are drawn.

    Returns:
        Score → value and interval, as that benchmark has them.
    """
    sets = [SketchSet.of_drawings(*monitor.sketches(module, before=stage == "before"), stage) for stage in STAGES]
    _, reference = split_by_source(data, 1 / n_splits, seed)
    every = SketchSet.of_sketches(reference, "reference")
    rows = [i for i, concept in enumerate(every.concepts) if concept in module.generator.concepts]
    shown = SketchSet(
        name="reference",
        ids=tuple(every.ids[i] for i in rows),
        concepts=tuple(every.concepts[i] for i in rows),
        drawings=tuple(every.drawings[i] for i in rows),
        pictures=tuple(every.pictures[i] for i in rows),
        source=every.source,
    )
    result = evaluated(
        sets,
        module.critic,
        [monitor.judge],
        shown,
        condition_M=reference.table["condition"].to_numpy(float)[rows],
        condition_unit=data.condition_unit,
        credit=credit,
        seed=seed,
        about={"flags": list(data.flags)},
    )
    write_comparison(folder, result, data.name)
    return {
        name: {"value": score.value, "ci_low": score.ci_low, "ci_high": score.ci_high}
        for name, score in result.scores.items()
    }
