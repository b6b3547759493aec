"""Element-level VQA: how well a judge answers "is this element drawn?", held against people's annotation.

python evaluate.py benchmark=element_vqa dataset=commonsketch dataset.root=PATH judge=endpoint judge.client.model=gpt-4o
humanlike gather RUNS       # several judges in one table, with rank groups
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from humanlike.backbones.features import extract_features
from humanlike.benchmarks.element_vqa_tables import class_tables, condition_table, score_columns
from humanlike.benchmarks.sea import JudgeMaker, layer_seen, one_thread
from humanlike.benchmarks.sea_scores import (
    answer_codes,
    counts_by_sketch,
    judge_facts,
    of_used_sketches,
    resampled_counts,
    score_value,
)
from humanlike.benchmarks.seva_items import SevaItems, used_items
from humanlike.elements.annotation import AnnotationJudge
from humanlike.elements.lists import ElementLists
from humanlike.elements.presence import Presence, PresenceJudge
from humanlike.files import sha256_value
from humanlike.interfaces import Backbone
from humanlike.metrics.functional.element_vqa import element_vqa_scores, scores_from_table
from humanlike.stats import basic
from humanlike.types import BenchmarkResult, Features, ScoreValue, Sketches

SCORED = ("f1", "precision", "recall", "accuracy", "balanced_accuracy", "specificity", "present_rate_bias", "f1_gain",
          "coverage", "accuracy_over_all")  # fmt: skip
"""What gets an interval, all pairs pooled as in the published table."""
OF_ALL_PAIRS = ("coverage", "accuracy_over_all")
"""What rests on all pairs, the unanswered ones too; all else on those with an answer."""


@dataclass(frozen=True)
class Measured:
    """What a run of the benchmark gives; see `humanlike.benchmarks.sea.Measured`."""

    result: BenchmarkResult
    layer: str
    hashes: Mapping[str, str]
    info: Mapping[str, Any]


class ElementVQABenchmark:
    """A judge of elements against the annotation of the data set.

    Pairs of sketch and element are pooled ("micro", as published); means over classes and over elements stand beside.
    An answer that could not be read is no answer: it is left out of precision, recall, F1 and accuracy, lowers
    coverage, and counts as wrong in `accuracy_over_all`.

    Args:
        judge: A `PresenceJudge`, or what makes one from `backbone=` (in a configuration `_partial_: true`).
        replicates: Bootstrap replicates over source images within concepts.

    Raises:
        ValueError: There are too few replicates, or no judge.

    References:
        SEA (CVPR 2026), "Element-level commonsense VQA".
    """

    identifier = "element_vqa"
    version = "1"
    bibtex = """@inproceedings{sea2026,
  title     = {Sketch abstraction efficiency},
  booktitle = {IEEE/CVF Conference on Computer Vision and Pattern Recognition},
  year      = {2026}
}"""

    def __init__(self, judge: PresenceJudge | JudgeMaker, replicates: int = 1000) -> None:
        if replicates < 2:
            raise ValueError(f"replicates is {replicates}; an interval needs 2 or more")
        if judge is None:
            raise ValueError("benchmark=element_vqa needs a judge, for example judge=presence_head or judge=endpoint")
        self.judge, self.replicates = judge, replicates

    def run_backbone(
        self,
        backbone: Backbone,
        data: Sketches,
        *,
        layer: str | None = None,
        seed: int = 0,
        cache_dir: str | Path | None = None,
        trainer: Any = None,
        extraction: Mapping[str, Any] | None = None,
    ) -> Measured | None:
        """Ask the judge and score its answers; the backbone is looked at only if the judge looks through it.

        Args:
            backbone: The run's network.
            data: Annotated sketches.
            layer: Not looked at: the judge names its layer.
            seed: Global seed of the resamples.
            cache_dir: Where features are kept.
            trainer: Lightning trainer of the extraction.
            extraction: Keywords of `extract_features`.

        Returns:
            The result; None in every process but the first.

        Raises:
            TypeError: `data` are no sketches.
            ValueError: The data set has no annotation, or the judge is that annotation.
        """
        del layer
        if not isinstance(data, Sketches):
            raise TypeError(f"benchmark=element_vqa needs sketches, got {type(data).__name__}; use dataset=doodles")
        elements = ElementLists.from_annotation(data)
        judge = self.judge if isinstance(self.judge, PresenceJudge) else self.judge(backbone=backbone)
        if isinstance(judge, AnnotationJudge):
            raise ValueError(
                "judge=annotation is what judges are held against; choose another, such as judge=presence_head"
            )
        seen = layer_seen(judge, backbone)
        features = _no_features(data)
        if seen is not None:
            options = {**(extraction or {}), "trainer": trainer, "cache_dir": cache_dir}
            features = extract_features(backbone, data, [seen], **options)[seen]
        if trainer is not None and not trainer.is_global_zero:
            return None
        with one_thread():
            presence = judge.judge(data, elements, None if seen is None else features)
        result = self.scored(data, features, presence, elements, seed)
        return Measured(result, features.layer, features.hashes, features.info)

    def scored(
        self, data: Sketches, features: Features, presence: Presence, elements: ElementLists, seed: int = 0
    ) -> BenchmarkResult:
        """Everything that follows from judgments; nothing is written.

        Args:
            data: Annotated sketches.
            features: Features of the items that could be read; their values are not looked at.
            presence: Judgments.
            elements: The lists that were judged.
            seed: Global seed.
        """
        items = used_items(data, features)
        pairs = of_used_sketches(presence.against(AnnotationJudge().judge(data, elements)), items)
        table_N6 = counts_by_sketch(pairs, items)
        scores, facts = self._scores(pairs, table_N6, data, items, seed)
        conditions = condition_table(items, table_N6)
        return BenchmarkResult(
            scores=scores,
            cells=_cells(items, table_N6, data.labels),
            items=_items(data, features, items, table_N6),
            conditions=conditions,
            counts={
                "items_total": len(data),
                "items_used": len(items),
                "items_failed": len(features.failed),
                "items_without_annotation": int((table_N6.sum(axis=1) == 0).sum()),
                "pairs": len(pairs),
                "pairs_unanswered": int(pairs["decision"].isna().sum()),
                "concepts": items.design.num_concepts,
                "conditions": items.design.num_conditions,
            },
            flags=tuple(_flags(data, features, pairs, scores, presence)),
            protocol={"preset": "published", "average": "micro", "threshold": presence.threshold},
            details={
                "elements": {"source": elements.source, "concepts": len(elements)},
                "judge": {"source": presence.source, "threshold": presence.threshold, "coverage": presence.coverage,
                          "missing": dict(presence.missing), **presence.facts, **facts},
                "interval": {"kind": "basic", "level": 0.95, "replicates": self.replicates, "over": "images"},
                "conditions_unit": data.condition_unit,
            },
            tables=class_tables(data, items, table_N6),
        )  # fmt: skip

    def _scores(
        self, pairs: pd.DataFrame, table_N6: np.ndarray, data: Sketches, items: SevaItems, seed: int
    ) -> tuple[dict[str, ScoreValue], dict[str, Any]]:
        said_M1 = answer_codes(pairs)
        drawn_M1 = torch.from_numpy(pairs["annotated"].to_numpy(bool, copy=True)[:, None])
        full = element_vqa_scores(said_M1, drawn_M1)
        counts_B6 = resampled_counts(table_N6, items, self.replicates, seed)
        by_replicate = scores_from_table(counts_B6[:, None, None, :])
        scores, answered = {}, int(pairs["decision"].notna().sum())
        for name in SCORED:
            value = float(getattr(full, name))
            found = basic(value, getattr(by_replicate, name).numpy())
            n = len(pairs) if name in OF_ALL_PAIRS else answered
            scores[name] = score_value(value, found.low, found.high, n, "share")
        facts = judge_facts(pairs, data, said_M1, drawn_M1, full)
        for name in ("f1_macro_class", "f1_macro_element", "always_present_f1"):
            n = len(pairs) if name in OF_ALL_PAIRS else answered
            scores[name] = score_value(facts[name], np.nan, np.nan, n, "share")
        return scores, facts


def _no_features(data: Sketches) -> Features:
    """Every item, without a network: for judges that look at the images themselves."""
    facts = {"ids": data.table["sketch_id"].tolist(), "name": data.name}
    return Features(
        np.zeros((len(data), 1), np.float32), np.arange(len(data)), {}, "none", {"data": sha256_value(facts)}
    )


def _items(data: Sketches, features: Features, items: SevaItems, table_N6: np.ndarray) -> pd.DataFrame:
    """One row an item of the data set: its pairs by answer and annotation, judged and annotated v, and `error`."""
    names = ("true_absent", "false_present", "unanswered_absent", "false_absent", "true_present", "unanswered_present")
    table = data.table[["sketch_id", "concept", "condition", "image_id"]].reset_index(drop=True)
    whole = np.zeros((len(data), len(names)), np.int64)
    whole[items.rows_N] = table_N6
    table = table.assign(**{name: whole[:, i] for i, name in enumerate(names)})
    answered = whole[:, [0, 1, 3, 4]].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        table["visual_ratio"] = whole[:, [1, 4]].sum(axis=1) / answered
        table["visual_ratio_annotated"] = whole[:, 3:].sum(axis=1) / whole.sum(axis=1)
    return table.assign(error=pd.Series([features.failed.get(i) for i in range(len(data))], dtype=object))


def _cells(items: SevaItems, table_N6: np.ndarray, labels: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame({**items.cell_columns(labels), **score_columns(items.design.in_cell_CN @ table_N6)})


def _flags(
    data: Sketches, features: Features, pairs: pd.DataFrame, scores: Mapping[str, ScoreValue], presence: Presence
) -> list[str]:
    failed, unread = len(features.failed), int(pairs["decision"].isna().sum())
    gain, bias = scores["f1_gain"], scores["present_rate_bias"]
    told: dict[str, Any] = {
        f"images_failed:{failed}": failed,
        f"judgments_missing:{unread}": unread,
        "not_better_than_always_present": gain.value is not None and gain.value <= 0,
        "judge_says_present_too_often": bias.ci_low is not None and bias.ci_low > 0,
        "judge_says_present_too_seldom": bias.ci_high is not None and bias.ci_high < 0,
        "single_condition": data.table["condition"].nunique() == 1,
    }
    own = [flag for flag in data.flags if flag != "simulated_participants"]
    return list(dict.fromkeys([*own, *(f for f, holds in told.items() if holds), *presence.facts.get("flags", ())]))
