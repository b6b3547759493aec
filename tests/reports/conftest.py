"""A made-up score with the columns and fields of a real one, for the tests of reports alone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

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
VOID = {"meta", "link", "img", "input", "br", "wbr"}


class Page(HTMLParser):
    """Collects attributes and texts, and checks that every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, k, v) for k, v in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, k, v) for k, v in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def assert_whole(self) -> None:
        """Nothing that the page shows lies outside it."""
        for tag, key, value in self.attributes:
            if key in ("src", "href", "xlink:href", "action", "data", "srcset") and not value.startswith("#"):
                assert value.startswith("data:"), (tag, key, value[:60])

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


@pytest.fixture(scope="session")
def parsed() -> Callable[[str], Page]:
    """HTML text → its attributes and texts; fails where an element is not closed."""
    return Page


@pytest.fixture
def chromium(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Opens a page in Chromium, with further flags: its elements after all scripts, and its console."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed")

    def run(page: Path, *flags: str) -> tuple[str, str]:
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom", *flags, page.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return done.stdout, done.stderr

    return run


@pytest.fixture
def on_a_phone(chromium, said) -> Callable[[Path], tuple[int, int]]:
    """Opens a page that posts its width to its parent on a phone: pixels that its content needs, and that there are."""

    def run(page: Path) -> tuple[int, int]:
        frame = page.with_name("phone.html")
        frame.write_text(
            "<!DOCTYPE html><body><script>addEventListener('message', (e) => {"
            "document.body.setAttribute('data-widths', JSON.stringify(e.data)); });</script>"
            f'<iframe src="{page.name}" width="375" height="700"></iframe></body>'
        )
        dom, _ = chromium(frame, "--virtual-time-budget=3000", "--window-size=800,900")
        content, screen = said(dom, "widths")
        return content, screen

    return run


@pytest.fixture(scope="session")
def said() -> Callable[[str, str], object]:
    """(elements, name) → what the script of a test page left in the attribute data-name of its body."""
    return lambda dom, name: json.loads(html.unescape(re.search(rf'data-{name}="([^"]*)"', dom)[1]))


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


STUDY_MODELS = {
    "vgg19": "supervised",
    "dino": "self-supervised, self-distillation",
    "clip": "language-image contrastive",
    "twin": "simulated",
}


@pytest.fixture(scope="session")
def study_tables() -> dict[str, pd.DataFrame]:
    """The tables of a made-up study of four models (one simulated) and people, with a machine's sketches."""
    rng = np.random.default_rng(1)
    names = [*STUDY_MODELS]
    by_metric = dict(zip(COMPARED, ((0.1, 0.08, 0.125), (2.4, -0.3, 2.08), (0.6, 0.05, 0.5)), strict=True))
    conditions = [
        {"observer": o, "condition": c, "metric": m, "estimate": start + step * i + rng.normal(0, 0.02),
         "std_error": 0.01, "ci_low": start, "ci_high": start + 1, "n": 32, "over": "sketches", "chance": chance}
        for o in ["people", *names] for m, (start, step, chance) in by_metric.items() for i, c in enumerate(CONDITIONS)
    ]  # fmt: skip
    alignment = [
        {"observer": o, "metric": m, "estimate": 0.9 - 0.1 * k, "ci_low": 0.85 - 0.1 * k, "ci_high": 0.93 - 0.1 * k,
         "n": 32, "spearman_brown": 0.95 if o == "people" else np.nan,
         "corrected": np.nan if o == "people" else 0.94 - 0.1 * k}
        for m in COMPARED for k, o in enumerate(["people", *names])
    ]  # fmt: skip
    strokes = [(c, float(n)) for i, c in enumerate(CONDITIONS) for n in 1 + rng.poisson(3 + 2 * i, 200)]
    cells = [(k, c, rng.random(), rng.random()) for k in CONCEPTS for c in CONDITIONS]
    frame = pd.DataFrame
    return {
        "models": frame({"observer": names, "paradigm": STUDY_MODELS.values(), "training_data": "ImageNet-1k",
                         "simulated": [n == "twin" for n in names]}),
        "conditions": frame(conditions),
        "alignment": frame(alignment),
        "strokes": frame(strokes, columns=["condition", "num_strokes"]),
        "rank_groups": frame({"observer": names, "metric": "accuracy", "rank": [1, 1, 2, 4], "rank_high": [2, 3, 3, 4],
                              "letters": ["a", "ab", "b", "c"]}),
        "spearman": frame([("accuracy", "accuracy", 1.0), ("accuracy", "entropy", -0.4)],
                          columns=["first", "second", "rho"]).assign(p_value=[0.0, 0.6], n=4),
        "machine_cells": frame(cells, columns=["concept", "condition", "people_sketches", "machine_sketches"])
        .assign(fitted=lambda t: 0.2 + 0.5 * t["machine_sketches"]),
        "machine_levels": frame([(d, c, 0.4, 0.3, 0.5) for d in ("people", "CLIPasso") for c in CONDITIONS],
                                columns=["drawn_by", "condition", "estimate", "ci_low", "ci_high"]),
        "machine_divergence": frame([(m, c, 2 - c / 32, 1.5 - c / 32, 2.5 - c / 32) for m in ("distance", "rank")
                                     for c in CONDITIONS],
                                    columns=["measure", "condition", "estimate", "ci_low", "ci_high"]),
        "layers": frame({"layer": ["a", "b", "c"], "relative_depth": [0.0, 0.5, 1.0], "metric": "alignment_accuracy",
                         "value": [0.1, 0.6, 0.3], "ci_low": 0.0, "ci_high": 0.7, "chosen": [False, True, False]}),
        "mixed_effects_fits": frame({"metric": COMPARED, "chi2": [3455.3, 89698.0, 318.46], "df": 16,
                                     "p_value": [0.0, 1e-9, 0.99], "converged": [True, True, False],
                                     "singular": [False, True, False]}),
        "discrepancy": frame(
            [("people_accuracy", "all", "people", "accuracy", 0.5, 0.1, False, ""),
             ("people_accuracy", "first", "people", "accuracy", 0.4, 0.0, True, ""),
             ("preset", "paper_code", "vgg19", "accuracy", 0.2, -0.05, False, ""),
             ("model_accuracy", "all", "vgg19", "accuracy", np.nan, np.nan, False, "not defined"),
             ("cv", "stratified", "vgg19", "", np.nan, np.nan, False, "needs new readouts")],
            columns=["switch", "value", "observer", "score", "estimate", "change", "standing", "note"],
        ),
    }  # fmt: skip


@pytest.fixture(scope="session")
def study_svgs(study_tables) -> dict[str, str]:
    """All figures of that study, whose people are simulated; drawn once."""
    from humanlike.reports.study_figures import study_figures

    return study_figures(study_tables, unit="s", machine_unit="strokes", simulated={"people"})


@pytest.fixture
def study_record() -> dict:
    """The record of that study, whose people are simulated."""
    return {
        "schema": "humanlike.study/1", "dataset": "doodles", "source": "drawn by a program", "simulated_people": True,
        "protocol": {"preset": "corrected", "overridden": ["cv"], "cv": "stratified"}, "models_failed": {"net": "gone"},
        "counts": {"sketches": 128, "models": 4}, "flags": ["simulated_participants", "unanswered:vgg19:3"],
        "missing": {"power": "one participant only", "new_table": "no reason"}, "digest": "ef" * 32,
        "hashes": {"models": "ab" * 32, "tables": {"alignment": "cd" * 32}}, "versions": {"humanlike": "0.1.0"},
        "seeds": {"seed": 0}, "cpu_seconds": {"models": 1.5}, "config": {"seed": 0, "api_key": "abc123"},
    }  # fmt: skip
