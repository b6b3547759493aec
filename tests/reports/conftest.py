"""A made-up score with the columns and fields of a real one, for the tests of reports alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageDraw

from humanlike.reports.gallery import Example
from humanlike.types import BenchmarkResult, Score, ScoreValue

CONCEPTS = ("airplane", "bear", "castle", "cup <b>&", "fish", "guitar", "lion", "tree")
CONDITIONS = (4.0, 8.0, 16.0, 32.0)
METRICS = ("accuracy", "entropy", "snp", "jsd")
COMPARED = ("accuracy", "entropy", "snp")


def _cells(rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for concept in CONCEPTS:
        ease = rng.normal(0, 0.12)
        for i, condition in enumerate(CONDITIONS):
            people = np.clip(0.35 + 0.12 * i + ease + rng.normal(0, 0.04), 0, 1)
            model = np.clip(0.2 + 0.13 * i + ease + rng.normal(0, 0.06), 0, 1)
            rows.append(
                {
                    "cell": f"{concept}|{condition:g}", "concept": concept, "condition": condition, "n_items": 16,
                    "accuracy": model, "entropy": 2.6 - 1.5 * model, "snp": 0.6 + 0.2 * model,
                    "jsd": 0.7 - 0.4 * model, "accuracy_people": people, "entropy_people": 2.2 - 1.4 * people,
                    "snp_people": 0.66 + 0.2 * people, "n_responses_people": 192,
                }
            )  # fmt: skip
    cells = pd.DataFrame(rows)
    cells.loc[3, ["snp", "snp_people"]] = np.nan
    return cells


def _items(rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for target, concept in enumerate(CONCEPTS):
        for instance in range(4):
            for condition in CONDITIONS:
                top1 = target if rng.random() < 0.5 else int(rng.integers(len(CONCEPTS)))
                rows.append(
                    {
                        "sketch_id": f"{concept}_{instance}_{condition:g}", "concept": concept, "condition": condition,
                        "image_id": f"{concept}_{instance}", "fold": instance % 2, "target_index": target,
                        "top1_index": top1, "top1": CONCEPTS[top1], "correct": int(top1 == target),
                        "snp_rank": 0 if top1 == target else 1 + (top1 - target) % 7,
                        "probability_target": float(rng.random()), "entropy": float(rng.random()),
                        "accuracy_people": float(rng.random()), "entropy_people": float(rng.random()),
                        "n_responses_people": 12, "error": None,
                    }
                )  # fmt: skip
    items = pd.DataFrame(rows).astype({"error": object})
    items.loc[5, ["top1_index", "correct", "snp_rank", "fold"]] = [-1, 0, -1, -1]
    items.loc[5, ["top1", "error"]] = [None, "airplane_1_8.png: truncated"]
    return items


def _conditions(cells: pd.DataFrame) -> pd.DataFrame:
    groups = cells.groupby("condition")
    table = pd.DataFrame({"n_cells": groups.size(), "n_items": groups["n_items"].sum()})
    for metric in METRICS:
        for name in (metric, f"{metric}_people"):
            known = name in cells
            table[name] = groups[name].mean() if known else np.nan
            table[f"{name}_sem"] = groups[name].sem() if known else np.nan
    return table.reset_index()


def _scores(cells: pd.DataFrame) -> dict[str, ScoreValue]:
    units = {"accuracy": "share", "entropy": "nats", "snp": "share", "jsd": "nats"}
    scores = {}
    for metric in METRICS:
        mean = float(cells[metric].mean())
        scores[metric] = ScoreValue(mean, mean - 0.03, mean + 0.03, n=len(cells), unit=units[metric])
        if metric in COMPARED:
            mean = float(cells[f"{metric}_people"].mean())
            scores[f"{metric}_people"] = ScoreValue(mean, mean - 0.01, mean + 0.01, n=len(cells), unit=units[metric])
    for metric, value in zip(COMPARED, (0.62, 0.55, -0.02), strict=True):
        scores[f"alignment_{metric}"] = ScoreValue(value, value - 0.08, value + 0.07, 0.88, (0.85, 0.91), 32, "R2")
        scores[f"delta_r2_{metric}"] = ScoreValue(value / 4, value / 4 - 0.05, value / 4 + 0.05, None, None, 32, "R2")
    scores["error_consistency"] = ScoreValue(0.21, 0.17, 0.26, 0.48, (0.44, 0.52), 127, "kappa")
    return scores


@pytest.fixture
def score() -> Score:
    """Model and simulated people on 8 concepts × 4 conditions."""
    rng = np.random.default_rng(0)
    cells, items = _cells(rng), _items(rng)
    result = BenchmarkResult(
        scores=_scores(cells),
        cells=cells,
        items=items,
        conditions=_conditions(cells),
        counts={"items_total": 128, "items_used": 127, "items_failed": 1, "cells": 32, "conditions": 4},
        flags=("simulated_participants", "images_failed:1", "a_new_flag:3"),
        protocol={"preset": "corrected", "cv": "stratified", "interval": "ratio_centred", "overridden": ["cv"]},
        details={
            "readout": {"converged": True, "relative_gap": 3.2e-9, "iterations": [41, 39]},
            "human_consistency": {"accuracy": {"split_half": 0.88, "ci_low": 0.85, "ci_high": np.float64(0.91)}},
            "conditions_unit": "s",
            "chance": {"accuracy": 1 / 8},
        },
    )
    return Score(
        benchmark="seva", benchmark_version="1", dataset="doodles", backbone="tf_efficientnet_lite0",
        layer="global_pool", result=result, seeds={"global": 0}, hashes={"weights": "ab" * 32, "config": "cd" * 32},
        versions={"humanlike": "0.1.0", "torch": "2.14.1"}, started="2026-01-02T03:04:05+00:00", seconds=61.25,
        digest="ef" * 32,
    )  # fmt: skip


@pytest.fixture
def score_without_people(score: Score) -> Score:
    """The same run on data without people and without a semantic space."""
    absent = [c for c in score.result.cells.columns if c.endswith("_people") or c.startswith(("snp", "jsd"))]
    lacking = [c for c in score.result.conditions.columns if "_people" in c or c.startswith(("snp", "jsd"))]
    scores = {
        name: value if name in ("accuracy", "entropy") else ScoreValue(None, unit=value.unit)
        for name, value in score.scores.items()
    }
    cells = score.result.cells.assign(**dict.fromkeys(absent, np.nan))
    conditions = score.result.conditions.assign(**dict.fromkeys(lacking, np.nan))
    flags = ("no_people", "no_semantic_space")
    result = replace(score.result, scores=scores, cells=cells, conditions=conditions, flags=flags)
    return replace(score, result=result)


@pytest.fixture
def make_examples() -> Callable[[int], Sequence[Example]]:
    """Example sketches of the first concepts, four conditions each."""

    def make(sources: int) -> list[Example]:
        examples = []
        for source in range(sources):
            concept = CONCEPTS[source + 2]
            for i, condition in enumerate(CONDITIONS):
                image = Image.new("RGB", (112, 112), "white")
                draw = ImageDraw.Draw(image)
                for k in range(3 + 2 * i):
                    draw.arc((10 + 5 * k, 14 + 4 * source, 100 - 6 * k, 96), 20 * k, 200 + 35 * k, "black", 2)
                right = i > source
                answer = concept if right else "bear"
                examples.append(
                    Example(f"{concept}_{i}", concept, concept, condition, image, answer, right, concept, 0.5 + i / 8)
                )
        return examples

    return make
