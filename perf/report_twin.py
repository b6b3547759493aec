"""Synthetic run folders for the report card: real benchmarks score simulated models, object learning is made up whole.

Every folder has what a finished run has (score.json, tables, report with example sketches). SEVA and SEA are computed
by the package's own benchmarks on doodles, for models whose answers are drawn with a known alignment with the simulated
people; of object learning, curves and squared errors are drawn from a model of their own in the form of a real run. The
backbones are called `synthetic_…`, and every run carries the flag `synthetic_run`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from humanlike.benchmarks.sea import SeaBenchmark
from humanlike.benchmarks.seva import SevaBenchmark
from humanlike.data.doodles import doodles
from humanlike.data.doodles.twin import simulate_model
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.files import sha256_value, write_json
from humanlike.reports.gallery import Example, gallery_examples
from humanlike.reports.html import write_report
from humanlike.reports.run_folder import digest, score_record, write_table
from humanlike.types import BenchmarkResult, Features, Score, ScoreValue, Sketches

FLAG = "synthetic_run"
RULES, LAYERS, TRIALS = ("square", "hinge"), 6, tuple(range(10, 101, 10))
VERSIONS = {"python": "3.11", "humanlike": "0.1.0", "numpy": np.__version__, "pandas": pd.__version__}


class ReadOut:
    """A readout whose features are the answers already."""

    def out_of_fold_proba(
        self, f_ND: np.ndarray, label_N: np.ndarray, num_labels: int, group_N: Any = None
    ) -> np.ndarray:
        """The features."""
        return f_ND


class ReportTwin:
    """Writes runs of three benchmarks for any number of models.

    Args:
        concepts: Number of concepts of the doodles.
        instances: Sketches a concept and condition.
        replicates: Bootstrap replicates of each run.
        seed: Of data and models.
    """

    def __init__(self, concepts: int = 12, instances: int = 8, replicates: int = 100, seed: int = 0) -> None:
        self.data: Sketches = doodles(concepts=concepts, instances=instances, seed=seed)
        self.seed = seed
        self.seva = SevaBenchmark(replicates=replicates, splits=40)
        self.sea = SeaBenchmark(replicates=replicates, sensitivity_draws=0)
        self.elements = ElementLists.from_annotation(self.data)
        self.presence = AnnotationJudge().judge(self.data, self.elements)
        self.examples: dict[str, Sequence[Example]] = {}

    def write(self, folder: Path, models: int, seeds: int = 1) -> list[Path]:
        """Write a run a model, benchmark and seed below `folder`; returns the folders."""
        written = []
        for number in range(models):
            alignment = 0.55 + 0.4 * (number * 0.618 % 1)
            for seed in range(seeds):
                for score in self.scores(f"synthetic_net_{number:03d}", alignment, number, seed):
                    written.append(self._write(folder / score.benchmark / f"{score.backbone},seed={seed}", score))
        return written

    def scores(self, name: str, alignment: float, number: int, seed: int = 0) -> Iterator[Score]:
        """A model's runs of the three benchmarks."""
        proba_NL = simulate_model(self.data, alignment, seed=1000 * number + seed + self.seed)
        hashes = {k: sha256_value([k, name]) for k in ("weights", "features")}
        features = Features(proba_NL.astype(np.float32), np.arange(len(self.data)), {}, "pre_logits", hashes)
        yield self._score("seva", name, self.seva.run(self.data, features, ReadOut(), seed=0), seed, hashes)
        result = self.sea.scored(self.data, features, ReadOut(), self.presence, self.elements)
        yield self._score("sea", name, result, seed, hashes)
        yield self._score("object_learning", name, learning_result(name, alignment, 1000 * number + seed), seed, hashes)

    def _score(self, benchmark: str, name: str, result: BenchmarkResult, seed: int, hashes: Mapping[str, str]) -> Score:
        sketches = benchmark != "object_learning"
        result = replace(result, flags=tuple(dict.fromkeys([*result.flags, "simulated_participants", FLAG])))
        return Score(
            benchmark=benchmark, benchmark_version="1", dataset=self.data.name if sketches else "novel_objects",
            backbone=name, layer="pre_logits", result=result, seeds={"seed": seed},
            hashes={**hashes, "data": sha256_value([benchmark == "object_learning", self.seed]),
                    "transform": sha256_value("transform"), "config": sha256_value([benchmark, name, seed])},
            versions=VERSIONS, started=f"2026-01-{1 + seed:02d}T00:00:00+00:00", seconds=1.0,
            digest=digest(result.items, result.counts, "session_id" if not sketches else "sketch_id"),
        )  # fmt: skip

    def _write(self, folder: Path, score: Score) -> Path:
        result = score.result
        tables = {"cells": result.cells, "items": result.items, **result.tables}
        for name, table in tables.items():
            write_table(folder / f"{name}.parquet", table)
        write_report(folder / "report.html", score, figures={}, examples=self._examples(score))
        write_json(folder / "score.json", score_record(score))
        return folder

    def _examples(self, score: Score) -> Sequence[Example]:
        """The sketches that a run's report shows, drawn once, with this run's answers."""
        if score.benchmark == "object_learning":
            return ()
        if score.benchmark not in self.examples:
            self.examples[score.benchmark] = gallery_examples(self.data, score.result.items)
        rows = score.result.items.set_index("sketch_id")
        return [
            replace(e, answer=str(rows.loc[e.sketch_id, "top1"]), correct=bool(rows.loc[e.sketch_id, "correct"]))
            for e in self.examples[score.benchmark]
        ]


def learning_result(name: str, quality: float, seed: int) -> BenchmarkResult:
    """A made-up run of object learning in the form of a real one; the better the quality, the nearer to people."""
    rng = np.random.default_rng(seed)
    people_T = 0.9 - 0.4 * np.exp(-np.array(TRIALS) / 25)
    model_T = np.clip(people_T + rng.normal(1 - quality, 0.02) * np.linspace(0.5, 1, len(TRIALS)) * 0.2, 0, 1)
    error = float(np.mean((model_T - people_T) ** 2)) + 0.0024
    resample_B = np.random.default_rng(0).normal(size=300)  # people's resamples are the same for every model
    models, replicates = [], []
    for layer in range(LAYERS):
        for rule in RULES:
            own = error * (1 + 2.0 * (LAYERS - 1 - layer) / LAYERS) * (1.0 if rule == RULES[0] else 1.02)
            depth = (layer + 1) / LAYERS
            model = {
                "experiment": "high_variation",
                "backbone": name,
                "layer": f"block_{layer}",
                "relative_depth": depth,
            }
            model |= {"rule": rule}
            models.append(model | {"msen_paper": own, "msen_paper_ci_low": 0.8 * own, "msen_paper_ci_high": 1.2 * own})
            spread_B = own * (1 + 0.08 * resample_B + 0.05 * rng.normal(size=300))
            replicates.append(model | {f"r{b}": v for b, v in enumerate(spread_B)})
    conditions = pd.DataFrame({"condition": np.array(TRIALS, float), "accuracy": model_T, "accuracy_sem": 0.01,
                               "accuracy_people": people_T, "accuracy_people_sem": 0.02})  # fmt: skip
    items = pd.DataFrame({"session_id": [f"task:{s}" for s in range(40)], "subtask": "task", "session": range(40),
                          "trials": 100, "correct": rng.binomial(100, model_T.mean(), 40), "error": None})  # fmt: skip
    scores = {
        "msen_paper": ScoreValue(error, 0.8 * error, 1.2 * error, n=800, unit="accuracy²"),
        "noise_floor": ScoreValue(0.0024, n=800, unit="accuracy²"),
        "consistency": ScoreValue(float(np.clip(quality, 0, 0.98)), ceiling=0.9865, n=8, unit="rho"),
        "accuracy": ScoreValue(float(model_T.mean()), n=800),
        "accuracy_people": ScoreValue(float(people_T.mean()), n=800),
    }
    return BenchmarkResult(
        scores=scores, cells=pd.DataFrame({"cell": ["task"], "n_items": [40]}), items=items, conditions=conditions,
        counts={"items_total": 40, "items_used": 40, "items_failed": 0, "people_sessions": 400}, flags=(),
        protocol={"preset": "paper", "overridden": [], "convention": "paper", "experiment": "high_variation",
                  "rules": list(RULES), "sessions": 500, "replicates": 300},
        details={"object_learning": {"experiment": "high_variation", "convention": "paper",
                                     "reference": {"layer": f"block_{LAYERS - 1}", "rule": RULES[0]}},
                 "conditions_unit": "trials", "chance": {"accuracy": 0.5}},
        tables={"models": pd.DataFrame(models), "replicates": pd.DataFrame(replicates)},
    )  # fmt: skip
