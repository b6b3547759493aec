"""A finished score in the loggers of Lightning: CSV, TensorBoard, Weights & Biases, or any other.

Every logger gets the scalars, the per-condition scalars and the configuration. Those that can show more get more:
CSV the tables as files, TensorBoard tables and pictures, Weights & Biases tables, pictures and a summary; the last two
also charts of the model's line beside people's. Names begin with the benchmark (`seva/accuracy`), people's values and
bounds stand beside (`seva/accuracy_people`, `seva/accuracy_ci_low`), and what the data could not give is absent. The
run's folder stays the truth; a dashboard shows a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pandas as pd

from humanlike.files import atomic_path
from humanlike.reports.config_record import masked_config
from humanlike.reports.tables import condition_cells, markdown_table, score_markdown
from humanlike.reports.wording import condition_label, condition_metrics, is_missing, is_simulated
from humanlike.types import Score

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger

    from humanlike.reports.dashboard_history import Row
    from humanlike.reports.gallery import Example

Pictures = Mapping[str, np.ndarray]
LONGEST_TABLE = 10_000
"""Rows of a table that Weights & Biases shows; it would cut longer ones."""


def begin(loggers: Iterable[Logger], config: Mapping[str, Any], rows: Sequence[Row] = ()) -> None:
    """Open every logger before anything is computed, so that one that cannot work says so at once.

    Args:
        loggers: Lightning loggers; may be empty.
        config: The run's configuration; logged as a plain nested dict with secrets masked.
        rows: What the job has logged before it was stopped; each logger adds what it lost.
    """
    loggers = list(loggers)
    if not loggers or not _is_first_process():
        return
    plain = masked_config(config)
    for logger in loggers:
        logger.log_hyperparams(plain)
        if rows and hasattr(logger, "go_on"):
            logger.go_on(rows)
        logger.save()


def log_result(loggers: Iterable[Logger], result: Mapping[str, Any]) -> None:
    """Write the numbers that a training ends with into every logger, as `result/name`; nested ones as `result/a/b`."""
    if not _is_first_process():
        return
    from pytorch_lightning.loggers import WandbLogger

    values = dict(_numbers(result, "result"))
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            logger.experiment.summary.update({**values, "result/flags": list(result.get("flags", []))})
        else:
            logger.log_metrics(values)
        logger.save()


def _numbers(value: Mapping[str, Any], start: str) -> Iterator[tuple[str, float]]:
    for name, entry in value.items():
        if isinstance(entry, Mapping) and name != "settings":
            yield from _numbers(entry, f"{start}/{name}")
        elif _finite(entry) and not isinstance(entry, bool):
            yield f"{start}/{name}", float(entry)


def score_scalars(score: Score) -> dict[str, float]:
    """`benchmark/score` → value, with `_ci_low`, `_ci_high`, `_ceiling`; and `benchmark/counts/name`.

    What is missing is absent.
    """
    scalars: dict[str, float] = {}
    for name, value in score.scores.items():
        parts = {"": value.value, "_ci_low": value.ci_low, "_ci_high": value.ci_high, "_ceiling": value.ceiling}
        scalars |= {f"{score.benchmark}/{name}{k}": float(v) for k, v in parts.items() if _finite(v)}
    return scalars | {f"{score.benchmark}/counts/{name}": float(n) for name, n in score.result.counts.items()}


def condition_scalars(score: Score) -> list[dict[str, float]]:
    """One dict a condition: `benchmark/condition`, and `benchmark/by_condition/metric` with people's and the errors."""
    table, start = score.result.conditions, score.benchmark
    names = [f"{m}{end}" for m in condition_metrics(table) for end in ("", "_sem", "_people", "_people_sem")]
    return [
        {f"{start}/condition": float(row["condition"])}
        | {f"{start}/by_condition/{n}": float(row[n]) for n in names if _finite(row.get(n))}
        for row in table.to_dict(orient="records")
    ]


def log_score(
    loggers: Iterable[Logger],
    score: Score,
    *,
    config: Mapping[str, Any],
    figures: Mapping[str, Figure] | None = None,
    examples: Sequence[Example] = (),
) -> None:
    """Write a score into every logger; on processes other than the first this does nothing.

    Args:
        loggers: Lightning loggers; may be empty.
        score: The finished evaluation.
        config: The run's configuration; logged as a plain nested dict with secrets masked.
        figures: Name → figure, logged as pictures.
        examples: Sketches to show where the logger can.
    """
    loggers = list(loggers)
    if not loggers or not _is_first_process():
        return
    from humanlike.reports.figures import figure_rgb

    pictures = {name: figure_rgb(figure) for name, figure in (figures or {}).items()}
    plain = masked_config(config)
    for logger in loggers:
        logger.log_hyperparams(plain)
        _writer(logger)(logger, score, pictures, examples)
        logger.save()


def finish(loggers: Iterable[Logger], exit_code: int) -> None:
    """Close every logger: with exit code 0 as finished, otherwise as failed.

    A Weights & Biases run is ended with the exit code, so that a failed job does not stand there as finished, and
    the next job of a sweep starts a run of its own.
    """
    if not _is_first_process():
        return
    from pytorch_lightning.loggers import WandbLogger

    for logger in loggers:
        logger.finalize("success" if exit_code == 0 else "failed")
        if isinstance(logger, WandbLogger):
            logger.experiment.finish(exit_code=exit_code)


@cache
def _writers() -> tuple[tuple[type, Callable[..., None]], ...]:
    from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger

    return (
        (CSVLogger, _write_csv),
        (TensorBoardLogger, _write_tensorboard),
        (WandbLogger, _write_wandb),
        (Logger, _write_scalars),
    )


def _writer(logger: Logger) -> Callable[..., None]:
    for kind, write in _writers():
        if isinstance(logger, kind):
            return write
    raise TypeError(f"a logger must be a Lightning Logger, got {type(logger).__name__}")


def _write_scalars(logger: Logger, score: Score, pictures: Pictures, examples: Sequence[Example]) -> None:
    """What any logger can take: the scores at step 0, then each condition as a step."""
    logger.log_metrics(score_scalars(score), step=0)
    for step, scalars in enumerate(condition_scalars(score)):
        logger.log_metrics(scalars, step=step)


def _write_csv(logger: CSVLogger, score: Score, pictures: Pictures, examples: Sequence[Example]) -> None:
    _write_scalars(logger, score, pictures, examples)
    for name, table in _named_tables(score).items():
        with atomic_path(Path(logger.log_dir) / f"{score.benchmark}_{name}.csv") as temporary:
            table.to_csv(temporary, index=False)


def _write_tensorboard(
    logger: TensorBoardLogger, score: Score, pictures: Pictures, examples: Sequence[Example]
) -> None:
    """Scalars (conditions on their own axis), tables as Markdown, pictures; tags begin with the benchmark."""
    writer, start = logger.experiment, score.benchmark
    for tag, value in score_scalars(score).items():
        writer.add_scalar(tag, value, 0)
    rows = condition_scalars(score)
    conditions = [row.pop(f"{start}/condition") for row in rows]
    # A step is a whole number there: conditions such as 0.5 s take their rank instead.
    whole = all(c.is_integer() for c in conditions)
    for rank, (condition, row) in enumerate(zip(conditions, rows, strict=True)):
        for tag, value in row.items():
            writer.add_scalar(tag, value, int(condition) if whole else rank)
    lines = [f"{start}/by_condition/{metric}" for metric in condition_metrics(score.result.conditions)]
    charts = {tag: ["Multiline", [tag, f"{tag}_people"]] for tag in lines if any(f"{tag}_people" in r for r in rows)}
    if charts:
        writer.add_custom_scalars({f"{start}, model and people": charts})
    writer.add_text(f"{start}/scores", score_markdown(score), 0)
    writer.add_text(f"{start}/conditions", markdown_table(*condition_cells(score)), 0)
    cells = score.result.cells
    writer.add_text(f"{start}/cells", markdown_table([str(c) for c in cells.columns], _texts(cells)), 0)
    for name, pixels in pictures.items():
        writer.add_image(f"{start}/figures/{name}", pixels, 0, dataformats="HWC")
    for example in examples:
        tag = f"{start}/sketches/{example.concept}/{condition_label(example.condition)}"
        writer.add_image(tag, np.asarray(example.image.convert("RGB")), 0, dataformats="HWC")


def _write_wandb(logger: WandbLogger, score: Score, pictures: Pictures, examples: Sequence[Example]) -> None:
    """Scalars, tables and pictures in one history row, each condition in a row on its own axis, a summary."""
    import wandb

    run, start = logger.experiment, score.benchmark
    run.define_metric(f"{start}/condition", hidden=True)
    run.define_metric(f"{start}/by_condition/*", step_metric=f"{start}/condition")
    rows = condition_scalars(score)
    for row in rows:
        run.log(row)
    content: dict[str, Any] = dict(score_scalars(score))
    tables = _named_tables(score)
    content |= {f"{start}/{n}": _wandb_table(t) for n, t in tables.items() if 0 < len(t) <= LONGEST_TABLE}
    content |= _wandb_charts(score, rows)
    content |= {f"{start}/figures/{name}": wandb.Image(pixels, caption=name) for name, pixels in pictures.items()}
    if examples:
        content[f"{start}/sketches"] = [wandb.Image(e.image, caption=_said(e)) for e in examples]
    run.log(content)
    run.summary.update(
        {
            f"{start}/flags": list(score.result.flags),
            f"{start}/protocol": dict(score.result.protocol),
            f"{start}/digest": score.digest,
            f"{start}/hashes": dict(score.hashes),
            f"{start}/seconds": score.seconds,
            f"{start}/tables_in_files": sorted(n for n, t in tables.items() if len(t) > LONGEST_TABLE),
        }
    )


def _wandb_charts(score: Score, rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """A chart a metric: the model's line over the conditions and people's, as a reference, beside it."""
    import wandb

    start, who = score.benchmark, "simulated people" if is_simulated(score) else "people"
    charts: dict[str, Any] = {}
    for metric in condition_metrics(score.result.conditions):
        series = {score.backbone: f"{start}/by_condition/{metric}", who: f"{start}/by_condition/{metric}_people"}
        whole = {name: key for name, key in series.items() if rows and all(key in row for row in rows)}
        if who in whole:
            charts[f"{start}/with_people/{metric}"] = wandb.plot.line_series(
                xs=[row[f"{start}/condition"] for row in rows],
                ys=[[row[key] for row in rows] for key in whole.values()],
                keys=list(whole),
                title=f"{metric}: {score.backbone} and {who}",
                xname="condition",
            )
    return charts


def _named_tables(score: Score) -> dict[str, pd.DataFrame]:
    further = {name: table for name, table in score.result.tables.items() if name != "provenance"}
    return {"cells": score.result.cells, "conditions": score.result.conditions, **further}


def _wandb_table(table: pd.DataFrame) -> Any:
    import wandb

    rows: list[Any] = [[None if is_missing(v) else v for v in row] for row in table.astype(object).to_numpy().tolist()]
    return wandb.Table(columns=[str(c) for c in table.columns], data=rows, allow_mixed_types=True)


def _texts(table: pd.DataFrame) -> list[list[str]]:
    return [
        ["" if is_missing(v) else f"{v:.4g}" if isinstance(v, float) else str(v) for v in row]
        for row in table.astype(object).to_numpy().tolist()
    ]


def _said(example: Example) -> str:
    said = f"{example.concept}, {condition_label(example.condition)}; model: {example.answer}"
    return said if example.people_answer is None else f"{said}; people: {example.people_answer}"


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and bool(np.isfinite(value))


def _is_first_process() -> bool:
    from pytorch_lightning.utilities import rank_zero_only

    return getattr(rank_zero_only, "rank", 0) == 0
