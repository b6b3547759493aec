"""Everything that follows from sets of sketches, a critic, judges and reference sketches; nothing is written.

Headline scores are the first judge's, as means over the sizes of the raster. Legend: N sketches of a set, M reference
sketches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from humanlike.benchmarks.generation_comparison import AFTER, BEFORE, Estimate, compared
from humanlike.benchmarks.generation_credit import stroke_credit
from humanlike.benchmarks.generation_distances import (
    diversity,
    frechet_distance,
    kernel_distance,
    pareto_front,
    response_divergence,
)
from humanlike.benchmarks.generation_readings import (
    CRITIC,
    JUDGE,
    MEASURES,
    Readings,
    over_sizes,
    read,
    readings_table,
    with_own_names,
)
from humanlike.benchmarks.generation_sketches import SketchSet
from humanlike.data.svg import drawing_to_svg
from humanlike.elements.critic import Critic
from humanlike.metrics.functional.sea import SEAParameters
from humanlike.types import BenchmarkResult, ScoreValue

BY_ROLE = ("sea", "recognition", "visual_ratio", "accuracy")


def evaluated(
    sets: Sequence[SketchSet],
    critic: Critic,
    judges: Sequence[Critic],
    reference: SketchSet,
    *,
    condition_M: np.ndarray | None = None,
    condition_unit: str = "",
    sizes: Sequence[int] = (128, 224),
    parameters: SEAParameters | None = None,
    credit: int = 8,
    tolerance: float = 0.02,
    replicates: int = 1000,
    seed: int = 0,
    about: Mapping[str, Any] | None = None,
) -> BenchmarkResult:
    """Score sets of sketches; the last is the one that headlines speak of, one named "before" is compared with it.

    Args:
        sets: [after] or [before, after].
        critic: Who trained the generator.
        judges: Who did not; the first gives the headline.
        reference: Sketches by people, or doodles.
        condition_M: (M,) conditions of the reference, such as seconds of drawing.
        condition_unit: Their unit.
        sizes: Sides of the raster in pixels.
        parameters: Hyperparameters of SEA.
        credit: Number of sketches of the last set that get a credit map.
        tolerance: See `stroke_credit`.
        replicates: Bootstrap replicates.
        seed: Of resamples and subsets.
        about: Facts for the record; its "flags" join the result's.

    Returns:
        Scores; `items` (the headline judge's, a row a sketch of the last set), `cells` (a row a concept) and tables:
        `readings` (a row a set, sketch, network and size), `networks`, `comparison`, `distances`, `divergence`,
        `pareto`, `credit`, `pruned`, `drawings`, `reference_conditions`.
    """
    parameters = parameters or SEAParameters()
    critic, *judges = with_own_names([critic, *judges])
    conditions_M = np.zeros(len(reference)) if condition_M is None else np.asarray(condition_M, float)
    shown = [*sets, reference]
    seen: dict[tuple[str, str, int], Readings] = {}
    tables = []
    for size in sizes:
        for sketches in shown:
            canvas_NHW = sketches.canvases(size)
            for network, role in [(critic, CRITIC), *((j, JUDGE) for j in judges)]:
                found = read(network, canvas_NHW, sketches.concepts, parameters)
                seen[sketches.name, network.name, size] = found
                tables.append(readings_table(sketches, network, role, size, found))
    readings = pd.concat(tables, ignore_index=True)
    rows = over_sizes(readings)
    last, judge = sets[-1], judges[0]
    distances, divergence = _distances(shown, reference, judges, seen, max(sizes), seed)
    result_tables = {
        "readings": readings,
        "networks": networks_table(readings),
        "distances": distances,
        "divergence": divergence,
        "pareto": _pareto(rows, reference.name, judge.name, conditions_M),
        "reference_conditions": _by_condition(rows, reference, conditions_M),
        "drawings": _drawings(shown),
    }
    gaps: dict[str, Estimate] = {}
    if len(sets) > 1:
        result_tables["comparison"], gaps = compared(rows[rows["set"] != reference.name], replicates, seed)
    if credit:
        result_tables |= _credits(judge, last, credit, max(sizes), tolerance, parameters)
    return BenchmarkResult(
        scores=_scores(sets, rows, critic, judge, distances, gaps, result_tables.get("comparison")),
        cells=_cells(rows, last, judge, divergence),
        items=_items(rows, last, judge, seen, max(sizes)),
        conditions=result_tables["reference_conditions"],
        counts=_counts(sets, reference, rows, judge),
        flags=_flags(sets, rows, judge, gaps, about),
        protocol={
            "preset": "published" if parameters == SEAParameters() else "own",
            **asdict(parameters),
            "sizes": list(sizes),
            "tolerance": tolerance,
            "renderer": "resvg",
        },
        details={
            "generation": {
                "critic": critic.name,
                "judges": [j.name for j in judges],
                "judges_held_out": {j.name: j.record.get("held_out") for j in judges},
                "hack_gap": {name: gap._asdict() for name, gap in gaps.items()},
                "reference_unit": condition_unit,
                **{k: v for k, v in (about or {}).items() if k != "flags"},
            },
            "interval": {"kind": "basic", "level": 0.95, "replicates": replicates, "over": "sketches within concepts"},
            "chance": {"accuracy": 1 / len(judge.concepts)},
        },
        tables=result_tables,
    )


def networks_table(readings: pd.DataFrame) -> pd.DataFrame:
    """Means and standard deviations of every set under every network at every size."""
    grouped = readings.groupby(["set", "network", "role", "size"], sort=False)
    mean, sd = grouped[list(MEASURES)].mean(), grouped[["recognition", "visual_ratio", "sea"]].std(ddof=1)
    table = grouped.size().rename("n").to_frame().join(mean).join(sd.add_suffix("_sd"))
    return table.join(grouped["strokes"].mean()).reset_index()


def _distances(
    shown: Sequence[SketchSet],
    reference: SketchSet,
    judges: Sequence[Critic],
    seen: Mapping[tuple[str, str, int], Readings],
    size: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row a set and judge, and a row a set, judge and concept; the reference has its diversity."""
    rows, parts = [], []
    for judge in judges:
        theirs = seen[reference.name, judge.name, size]
        for sketches in shown:
            own = seen[sketches.name, judge.name, size]
            row: dict[str, Any] = {"set": sketches.name, "judge": judge.name, "n": len(sketches)}
            row["diversity"] = diversity(own.f_ND, sketches.concepts)
            if sketches is not reference:
                part = response_divergence(own.p_NK, sketches.concepts, theirs.p_NK, reference.concepts)
                parts.append(part.assign(set=sketches.name, judge=judge.name))
                row |= {"jsd": part["jsd"].mean(), "js_divergence": part["js_divergence"].mean()}
                row["frechet"] = frechet_distance(own.f_ND, theirs.f_ND)
                row["kernel"], row["kernel_sd"] = kernel_distance(own.f_ND, theirs.f_ND, seed=seed)
            rows.append(row)
    return pd.DataFrame(rows), pd.concat(parts, ignore_index=True)


def _pareto(rows: pd.DataFrame, reference: str, judge: str, conditions_M: np.ndarray) -> pd.DataFrame:
    """A row a sketch under the judge: P, v (mean probability of presence), and whether its set's front holds it."""
    table = rows[rows["network"] == judge][["set", "sketch_id", "concept", "recognition", "soft_ratio", "strokes"]]
    table = table.assign(condition=np.nan, front=False).reset_index(drop=True)
    table.loc[table["set"] == reference, "condition"] = conditions_M
    for _, own in table.groupby("set", sort=False):
        table.loc[own.index, "front"] = pareto_front(own["recognition"].to_numpy(), own["soft_ratio"].to_numpy())
    return table


def _by_condition(rows: pd.DataFrame, reference: SketchSet, conditions_M: np.ndarray) -> pd.DataFrame:
    """Means of the reference by condition, under every network."""
    own = rows[rows["set"] == reference.name]
    condition = dict(zip(reference.ids, conditions_M, strict=True))
    grouped = own.assign(condition=own["sketch_id"].map(condition)).groupby(
        ["network", "role", "condition"], sort=False
    )
    return grouped[[*MEASURES, "soft_ratio", "strokes"]].mean().join(grouped.size().rename("n")).reset_index()


def _drawings(shown: Sequence[SketchSet]) -> pd.DataFrame:
    """SVG text of every sketch that has strokes, a row each."""
    return pd.DataFrame(
        [
            {"set": s.name, "sketch_id": i, "concept": c, "svg": drawing_to_svg(d, size=100)}
            for s in shown
            for i, c, d in zip(s.ids, s.concepts, s.drawings, strict=True)
            if d is not None
        ],
        columns=["set", "sketch_id", "concept", "svg"],
    )


def _credits(
    judge: Critic, sketches: SketchSet, count: int, size: int, tolerance: float, parameters: SEAParameters
) -> dict[str, pd.DataFrame]:
    """Credit maps of some sketches, evenly spread over the set."""
    able = [i for i, d in enumerate(sketches.drawings) if d is not None and d.num_strokes > 0]
    chosen = sorted({able[round(k)] for k in np.linspace(0, len(able) - 1, min(count, len(able)))}) if able else []
    strokes, pruned = [], []
    for i in chosen:
        drawing = sketches.drawings[i]
        assert drawing is not None
        found = stroke_credit(judge, drawing, sketches.concepts[i], size, tolerance, parameters)
        place = {"sketch_id": sketches.ids[i], "concept": sketches.concepts[i]}
        strokes.append(found.table.assign(**place))
        pruned.append(
            {
                **place,
                "strokes": drawing.num_strokes,
                "strokes_kept": found.pruned.num_strokes,
                **{f"{name}_before": value for name, value in found.before.items()},
                **{f"{name}_after": value for name, value in found.after.items()},
                "svg": drawing_to_svg(drawing, size=100),
                "svg_pruned": drawing_to_svg(found.pruned, size=100),
            }
        )
    return {"credit": pd.concat(strokes, ignore_index=True), "pruned": pd.DataFrame(pruned)} if chosen else {}


def _scores(
    sets: Sequence[SketchSet],
    rows: pd.DataFrame,
    critic: Critic,
    judge: Critic,
    distances: pd.DataFrame,
    gaps: Mapping[str, Estimate],
    comparison: pd.DataFrame | None,
) -> dict[str, ScoreValue]:
    found: dict[str, ScoreValue] = {}
    for sketches in reversed(sets):
        suffix = "" if sketches is sets[-1] else "_before"
        own = rows[rows["set"] == sketches.name]
        for network, role in ((judge.name, ""), (critic.name, "_critic")):
            values = own[own["network"] == network]
            for name in BY_ROLE:
                found[f"{name}{role}{suffix}"] = ScoreValue(float(values[name].mean()), n=len(values))
        strokes = sketches.strokes_N
        if np.isfinite(strokes).any():
            found[f"strokes{suffix}"] = ScoreValue(float(np.nanmean(strokes)), n=int(np.isfinite(strokes).sum()))
        row = distances[(distances["set"] == sketches.name) & (distances["judge"] == judge.name)].iloc[0]
        for name in ("diversity", "jsd", "frechet", "kernel"):
            value = float(row[name])
            found[f"{name}{suffix}"] = ScoreValue(value if np.isfinite(value) else None, n=len(sketches))
    if comparison is not None:
        sea = comparison[comparison["measure"] == "sea"].set_index("network")
        for name, network in (("gain_sea", judge.name), ("gain_sea_critic", critic.name)):
            gain = [float(sea[c].loc[network]) for c in ("gain", "gain_low", "gain_high")]
            found[name] = ScoreValue(gain[0], gain[1], gain[2])
        gap = gaps[judge.name]
        found["hack_gap"] = ScoreValue(gap.value, gap.low, gap.high)
    return found


def _items(
    rows: pd.DataFrame, last: SketchSet, judge: Critic, seen: Mapping[tuple[str, str, int], Readings], size: int
) -> pd.DataFrame:
    own = rows[(rows["set"] == last.name) & (rows["network"] == judge.name)].set_index("sketch_id").loc[list(last.ids)]
    found = seen[last.name, judge.name, size]
    return pd.DataFrame(
        {
            "sketch_id": list(last.ids),
            "concept": list(last.concepts),
            "condition": 0.0,
            "image_id": list(last.ids),
            "top1": [judge.concepts[k] for k in found.top1_N],
            "top1_index": found.top1_N,
            "correct": found.correct_N,
            "num_present": found.present_N,
            "num_elements": found.elements_N,
            "strokes": last.strokes_N,
            **{name: own[name].to_numpy() for name in ("recognition", "visual_ratio", "sea")},
            "error": "",
        }
    )


def _cells(rows: pd.DataFrame, last: SketchSet, judge: Critic, divergence: pd.DataFrame) -> pd.DataFrame:
    own = rows[(rows["set"] == last.name) & (rows["network"] == judge.name)]
    grouped = own.groupby("concept", sort=True)
    table = grouped[[*MEASURES, "strokes"]].mean().join(grouped.size().rename("n_items"))
    far = divergence[(divergence["set"] == last.name) & (divergence["judge"] == judge.name)].set_index("concept")
    table = table.join(far["jsd"]).reset_index()
    table.insert(0, "cell", np.arange(len(table)))
    table.insert(2, "condition", 0.0)
    return table


def _counts(sets: Sequence[SketchSet], reference: SketchSet, rows: pd.DataFrame, judge: Critic) -> dict[str, int]:
    last = sets[-1]
    own = rows[(rows["set"] == last.name) & (rows["network"] == judge.name)]
    return {
        "items_total": len(last),
        "items_used": len(last),
        "items_failed": 0,
        "items_before": sum(len(s) for s in sets[:-1]),
        "items_reference": len(reference),
        "items_zero_v": int((own["visual_ratio"] == 0).sum()),
        "items_blank": int((last.strokes_N == 0).sum()),
        "items_left_out": int(sum(last.dropped.values())),
        "concepts": len(set(last.concepts)),
    }


def _flags(
    sets: Sequence[SketchSet],
    rows: pd.DataFrame,
    judge: Critic,
    gaps: Mapping[str, Estimate],
    about: Mapping[str, Any] | None,
) -> tuple[str, ...]:
    last = sets[-1]
    own = rows[(rows["set"] == last.name) & (rows["network"] == judge.name)]
    zero, blank = int((own["visual_ratio"] == 0).sum()), int((last.strokes_N == 0).sum())
    alone = sum(1 for c in set(last.concepts) if last.concepts.count(c) < 2)
    told = {
        f"zero_v:{zero}": zero,
        f"blank_sketches:{blank}": blank,
        f"single_sketch_concepts:{alone}": alone,
        "hack_gap_open": bool(gaps) and gaps[judge.name].low > 0,
    }
    others = [f for f in (about or {}).get("flags", ()) if f != "simulated_participants"]
    return tuple(dict.fromkeys([*others, *(flag for flag, holds in told.items() if holds)]))


__all__ = ["AFTER", "BEFORE", "evaluated", "networks_table"]
