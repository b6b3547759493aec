"""`benchmark=all`: several benchmarks of one backbone, each a run of its own, and a report card of them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from omegaconf import DictConfig

    from humanlike.types import Score

OF_DATA = ("dataset", "readout", "judge", "metric", "layer")
"""Settings that belong to a data set: a part with one of its own does not take them from the command line."""
TABLE = "benchmarks"


@dataclass(frozen=True)
class AllBenchmarks:
    """Which benchmarks run.

    Attributes:
        parts: Name of the part, which is its folder → overrides that make it.

    Raises:
        ValueError: There are no parts, or one does not say which benchmark it is.
    """

    parts: Mapping[str, Sequence[str]]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("benchmark.parts is empty; name at least one, for example {seva: [benchmark=seva]}")
        for name, own in self.parts.items():
            if isinstance(own, str) or not any(str(o).startswith("benchmark=") for o in own):
                raise ValueError(f"benchmark.parts.{name} must be a list with benchmark=NAME in it, got {own!r}")

    def overrides(self, name: str, given: Sequence[str]) -> list[str]:
        """What part `name` is composed with, `given` on the command line of the whole."""
        own = [str(o) for o in self.parts[name]]
        with_data = any(_key(o) == "dataset" for o in own)
        kept = [o for o in given if _key(o) != "benchmark" and not (with_data and _key(o) in OF_DATA)]
        return [*kept, *own]


def _key(override: str) -> str:
    """The first name of an override's key: "dataset" of "+dataset.root=x"."""
    return override.lstrip("+~").split("=")[0].split(".")[0].split("@")[0].strip("/")


def run_all(config: DictConfig, folder: Path, run_one: Callable[..., None]) -> None:
    """Run every part in a folder of its own below `folder`, then write one table of all scores and a report card.

    A part that is finished with the same settings is not repeated. A part that fails does not keep the others from
    running; the table holds what is there, and the failure is raised at the end. Of several processes the first alone
    reads the scores and writes; the others help to compute features.

    Args:
        config: Composed configuration of `evaluate` with `benchmark=all`.
        folder: The run's folder.
        run_one: Runs one configuration in one folder; see `evaluate_job`.

    Raises:
        RuntimeError: Parts failed; each is named with its reason.
    """
    from hydra.core.hydra_config import HydraConfig
    from rich.console import Console

    from humanlike.entry.conf import compose
    from humanlike.entry.environment import is_first_process
    from humanlike.entry.report import write_card
    from humanlike.entry.report_runs import find_runs
    from humanlike.entry.sentences import sentence
    from humanlike.entry.targets import build
    from humanlike.files import write_text
    from humanlike.reports.run_folder import read_run, write_table
    from humanlike.reports.tables import markdown_table

    given = list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
    whole: AllBenchmarks = build(config.benchmark)
    console, failed = Console(), dict[str, str]()
    plan = {name: compose("evaluate", whole.overrides(name, given)) for name in whole.parts}
    scores: dict[str, Score] = {}
    for name, part in plan.items():
        console.rule(f"{name}", align="left")
        try:
            run_one(part, folder / name)
            if is_first_process():
                scores[name] = read_run(folder / name)
        except Exception as error:  # the other parts do not depend on this one
            failed[name] = sentence(error)
            console.print(f"{name} failed: {failed[name]}", highlight=False, soft_wrap=True)
    if scores:
        table = scores_table(scores)
        write_table(folder / f"{TABLE}.parquet", table)
        heads, rows = table_cells(table)
        write_text(folder / f"{TABLE}.md", markdown_table(heads, rows) + "\n")
        write_card(folder, find_runs([folder / name for name in plan]))
        console.print(_shown(heads, rows))
        console.print(f"written to {folder}; report.html is the report card", highlight=False, soft_wrap=True)
    if failed:
        raise RuntimeError("; ".join(f"{name} failed: {why}" for name, why in failed.items()))


def scores_table(scores: Mapping[str, Score]) -> pd.DataFrame:
    """One row a score of a part; scores without a value are left out.

    Returns:
        Columns `part, benchmark, dataset, backbone, layer, score, value, ci_low, ci_high, people, ceiling, n, unit,
        simulated, run_dir`.
    """
    import pandas as pd

    from humanlike.reports.wording import is_missing, is_simulated, score_rows

    rows: list[dict[str, Any]] = []
    for part, score in scores.items():
        rows += [
            {
                "part": part,
                "benchmark": score.benchmark,
                "dataset": score.dataset,
                "backbone": score.backbone,
                "layer": score.layer,
                "score": row.name,
                "value": row.model.value,
                "ci_low": row.model.ci_low,
                "ci_high": row.model.ci_high,
                "people": None if row.people is None else row.people.value,
                "ceiling": row.model.ceiling,
                "n": row.model.n,
                "unit": row.model.unit,
                "simulated": is_simulated(score),
                "run_dir": part,
            }
            for row in score_rows(score)
            if not is_missing(row.model.value)
        ]
    return pd.DataFrame(rows)


def table_cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and texts of the table for people."""
    from humanlike.reports.wording import MISSING, SMALL, interval, is_missing, number, short_title

    rows = []
    for row in table.to_dict(orient="records"):
        digits = 5 if str(row["score"]).startswith(SMALL) else 3
        other = row["ceiling"] if is_missing(row["people"]) else row["people"]
        rows.append(
            [
                str(row["part"]).replace("_", " "),
                short_title(str(row["score"])),
                number(row["value"], digits),
                interval(row["ci_low"], row["ci_high"], digits),
                MISSING if is_missing(other) else number(other, digits),
            ]
        )
    who = "simulated people" if bool(table["simulated"].all()) else "people"
    return ["benchmark", "score", "value", "95% interval", f"{who} or ceiling"], rows


def _shown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table

    table = Table(title="all benchmarks", title_justify="left")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i < 2 else "right")
    previous = ""
    for row in rows:
        if row[0] != previous and previous:
            table.add_section()
        table.add_row("" if row[0] == previous else row[0], *row[1:])
        previous = row[0]
    return table
