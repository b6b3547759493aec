"""Speed and memory of a whole study against a plain port of the published analysis, on a twin of the published size.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/study.py
    ... python perf/study.py --quick        # a small twin, to see that both sides agree

128 concepts × 16 images × 4 drawing times, about 13 judgments a sketch with 1 to 5 guesses each by 1,709 participants,
1,854 labels, 17 models. The package computes all tables of `humanlike.benchmarks.study` with 1,000 bootstrap replicates
and everything that follows from them but the mixed-effects models and the resampling of participants. The plain version
(`bootstrap_reference`) prepares people and one model, and computes one replicate of that model; its total is
*extrapolated*: the preparation of people once and of one model times the number of models, one replicate times the
replicates times the models. It has no discrepancy table (what each switch of the protocol changes), so that two ratios
are printed: to the package without that table, which still holds halves of people, comparisons and ranks that the plain
version lacks, and to everything.
Where the numbers of the two differ by more than 1e-9, the script stops.
"""

from __future__ import annotations

import argparse
import resource
import time
from types import SimpleNamespace
from typing import Any

import bootstrap_reference as reference
import numpy as np
import torch
from bootstrap import Tables, drawn_images, require_equal, timed
from study_twin import StudyTwin
from threadpoolctl import threadpool_limits

from humanlike.benchmarks.protocol import preset
from humanlike.benchmarks.study.analyses import ANALYSES, analyse
from humanlike.benchmarks.study.study import Study, StudyResult, StudySettings
from humanlike.stats import METRICS

EXCLUDED = ("mixed_effects", "power")
"""Analyses that are not part of what is timed: mixed models, and the resampling of participants."""


def package(twin: StudyTwin, models: list[Any], replicates: int, splits: int) -> tuple[StudyResult, Study]:
    """Everything the package computes, people's side included."""
    settings = StudySettings(protocol=preset("paper_code"), replicates=replicates, splits=splits, seed=twin.seed)
    study = Study(twin.data, settings)
    result = study.run(models)
    analyse(study, result, {name: part for name, part in ANALYSES.items() if name not in EXCLUDED})
    return result, study


def plain(twin: StudyTwin, proba_NL: np.ndarray, weights_KJ: np.ndarray) -> SimpleNamespace:
    """The plain version: seconds of preparing both sides, seconds of one replicate, and what it gives."""
    study = twin.study
    tables = Tables(study)
    began = time.process_time()
    tables.people["entropy"] = tables.people["sketch"].map(reference.people_entropy(tables.people))
    tables.people["position"] = reference.answer_positions(tables.people, tables.neighbours)
    people_cells = reference.preference_by_cell(tables.people, study.num_labels)
    people_seconds = time.process_time() - began
    tables.model["response"] = [tables.names[i] for i in proba_NL.argmax(axis=1)]
    tables.model["correct"] = tables.model["response"] == tables.model["concept"]
    began = time.process_time()
    tables.model["entropy"] = reference.model_entropy(proba_NL)
    tables.model["position"] = reference.answer_positions(tables.model, tables.neighbours)
    model_cells = reference.preference_by_cell(tables.model, study.num_labels)
    model_seconds = time.process_time() - began
    drawn = drawn_images(study, tables.names, weights_KJ)
    seconds, found = timed(reference.replicate, tables.people, tables.model, drawn, study.num_labels)
    return SimpleNamespace(
        tables=tables,
        people_seconds=people_seconds,
        model_seconds=model_seconds,
        replicate_seconds=seconds,
        alignment=found[2],
        people_cells=people_cells,
        model_cells=model_cells,
    )


def compare(result: StudyResult, theirs: SimpleNamespace, model: str) -> float:
    """Largest difference of people's Table 3, both sides' preferences, and one replicate of the alignment."""
    differences = []
    cells = result.tables["cell_rows"].set_index("observer")
    for observer, series in (("people", theirs.people_cells), (model, theirs.model_cells)):
        differences.append(require_equal(cells.loc[observer, "snp"].to_numpy(), series.to_numpy(), "SNP"))
    for metric in METRICS:
        ours = result.replicates[metric][model][0]
        differences.append(require_equal(np.array(ours), np.array(theirs.alignment[metric]), f"alignment of {metric}"))
    table3 = result.tables["people_by_condition"].set_index(["metric", "condition"])
    for metric, rows in table_3(theirs.tables.people, theirs.people_cells).items():
        ours_TM = table3.loc[metric][["estimate", "std_error"]].to_numpy()
        differences.append(require_equal(ours_TM, rows, f"Table 3, {metric}"))
    return max(differences)


def table_3(people: Any, preferences: Any) -> dict[str, np.ndarray]:
    """Metric → mean and standard error by condition, as the published notebook takes them."""
    by_sketch = people.groupby(["sketch", "abstraction"])
    over = {
        "accuracy": by_sketch["correct"].mean().groupby(level="abstraction"),
        "entropy": by_sketch["entropy"].first().groupby(level="abstraction"),
        "snp": preferences.groupby(level=1),
    }
    return {name: np.column_stack([values.mean(), values.sem()]) for name, values in over.items()}


def main() -> None:
    """Run both sides, check that they agree, and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12 concepts, 4 images, 200 labels, 3 models")
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--models", type=int, default=17)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    size = {"concepts": 12, "images": 4, "labels": 200, "participants": 60} if options.quick else {}
    replicates = min(options.replicates, 50) if options.quick else options.replicates
    splits, count = (10, 3) if options.quick else (options.splits, options.models)
    with threadpool_limits(1):
        twin = StudyTwin.synthetic(**size, seed=options.seed)
        models = [twin.model(i) for i in range(count)]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        ours, (result, study) = timed(package, twin, models, replicates, splits)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        theirs = plain(twin, twin.probabilities(0), study.resamples.bootstrap.bootstrap_BKJ[0])
        difference = compare(result, theirs, models[0].name)
    counts = result.counts
    total = theirs.people_seconds + count * (theirs.model_seconds + replicates * theirs.replicate_seconds)
    print(
        f"{counts['sketches']:,} sketches, {counts['judgments']:,} judgments, {counts['participants']:,} participants, "
        f"{twin.study.num_labels:,} labels, {count} models, {replicates:,} replicates; CPU seconds of one thread"
    )
    print(f"package, all tables and tests       {ours:12.1f}   peak memory {peak:.2f} GB (before: {before / 1e6:.2f})")
    print("  " + ", ".join(f"{part} {seconds:.1f}" for part, seconds in result.seconds.items()))
    print(f"plain, extrapolated                 {total:12,.0f}   people {theirs.people_seconds:.1f}")
    print(f"  a model {theirs.model_seconds:.2f}, one replicate of one model {theirs.replicate_seconds:.2f} (measured)")
    same = ours - result.seconds["discrepancy"]
    print(f"ratio, without the discrepancy table {total / same:11,.0f}   (package {same:.1f} s)")
    print(f"ratio, everything                   {total / ours:12,.0f}   largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
