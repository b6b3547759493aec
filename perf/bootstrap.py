"""Speed of the sketch analysis against a plain pandas, SciPy and scikit-learn version of it, on synthetic answers.

    OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python perf/bootstrap.py
    ... python perf/bootstrap.py --quick        # a small study, to see that both sides agree

128 concepts × 16 images × 4 drawing times, about 13 judgments a sketch with 1 to 5 guesses each, 1,854 labels in a
random semantic space. Both versions run in turn in one process and one thread; times are CPU seconds. A replicate of
the plain version is timed, one a round, against a thousand of the package, divided by a thousand, on the same resampled
images; the package's set-up is included, the plain version's is not. Most of the plain replicate is selecting the rows
of the drawn images; a second row of the table has a plain version that selects from the rows of the concept. The plain
Jensen-Shannon loop runs over a few rows and is extrapolated to all. Where the numbers of the two differ by more than
1e-9, the script stops.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import bootstrap_reference as reference
import numpy as np
import pandas as pd
import torch
from bootstrap_study import Study, image_name
from threadpoolctl import threadpool_limits

from humanlike.metrics.functional import (
    pairwise_jensen_shannon_distance,
    semantic_neighbour_preference,
)
from humanlike.rng import generator
from humanlike.stats import (
    METRICS,
    CodedResponses,
    ModelSwitches,
    PeopleSwitches,
    alignment_r2,
    cell_metrics,
    image_weights,
    model_statistics,
    people_statistics,
)

TOLERANCE = 1e-9


@dataclass
class Tables:
    """The study as the reference reads it; names sort as the label indices do."""

    study: Study
    names: list[str] = field(init=False)
    neighbours: dict[str, list[str]] = field(init=False)
    people: pd.DataFrame = field(init=False)
    model: pd.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        study = self.study
        self.names = [f"label_{i:04d}" for i in range(study.num_labels)]
        concept_N = [self.names[i] for i in study.target_N]
        sketches = pd.DataFrame(
            {
                "concept": concept_N,
                "image": [image_name(c, j) for c, j in zip(concept_N, study.image_N, strict=True)],
                "abstraction": study.seconds_N,
            }
        )
        sketches["sketch"] = sketches["image"] + "_" + sketches["abstraction"].astype(str)
        self.neighbours = reference.neighbour_lists(study.embedding_LD, self.names, sorted(set(concept_N)))
        self.model = sketches.assign(response=[self.names[i] for i in study.top1_N])
        guesses = [[self.names[i] for i in row if i >= 0] for row in study.guess_RG]
        people = sketches.iloc[study.item_R].reset_index(drop=True)
        self.people = people.assign(guesses=guesses, response=[row[0] for row in guesses])
        for table in (self.people, self.model):
            table["correct"] = table["response"] == table["concept"]

    def fill_entropy(self) -> None:
        """Add the column `entropy` to both tables."""
        self.people["entropy"] = self.people["sketch"].map(reference.people_entropy(self.people))
        self.model["entropy"] = reference.model_entropy(self.study.proba_NL)

    def preferences(self) -> tuple[pd.Series, pd.Series]:
        """Add the column `position` to both tables, and return every cell's preference."""
        for table in (self.people, self.model):
            table["position"] = reference.answer_positions(table, self.neighbours)
        people, model = (
            reference.preference_by_cell(table, self.study.num_labels) for table in (self.people, self.model)
        )
        return people, model


def statistics(study: Study) -> tuple[Any, Any]:
    """Sufficient statistics of people and the model, as the published analysis defines them."""
    coded = CodedResponses(np.zeros(len(study.item_R), dtype=np.int64), study.item_R, study.guess_RG)
    people = people_statistics(coded, study.target_N, study.ranks_LL, PeopleSwitches(snp="paper", no_error_cell="one"))
    switches = ModelSwitches(snp="paper", no_error_cell="one")
    return people, model_statistics(study.proba_NL, study.target_N, study.ranks_LL, switches)


def bootstrap(study: Study, replicates: int, seed: int) -> dict[str, Any]:
    """The package's bootstrap: cell metrics of both sides and alignment, for all replicates, from the raw answers."""
    design = study.design()
    people, model = statistics(study)
    weights_BKJ = image_weights(design, replicates, seed)
    people_cells, model_cells = (cell_metrics(design, side, weights_BKJ) for side in (people, model))
    alignment = {m: alignment_r2(people_cells[m], model_cells[m], design.condition_C) for m in METRICS}
    return {"weights": weights_BKJ, "people": people_cells, "model": model_cells, "alignment": alignment}


def preferences(study: Study) -> tuple[np.ndarray, np.ndarray]:
    """The package's SNP of every cell, people's and the model's, from labels."""
    cell_N, target_C = study.cells
    tables = (
        count_table(cell_N[study.item_R], study.guess_RG[:, 0], len(target_C), study.num_labels),
        count_table(cell_N, study.top1_N, len(target_C), study.num_labels),
    )
    target, ranks = torch.from_numpy(target_C), torch.from_numpy(study.ranks_LL)
    people, model = (semantic_neighbour_preference(torch.from_numpy(t), target, ranks).numpy() for t in tables)
    return people, model


def count_table(cell_E: np.ndarray, label_E: np.ndarray, num_cells: int, num_labels: int) -> np.ndarray:
    """(C, L) how often a label was given in a cell."""
    code_E = cell_E * num_labels + label_E
    return np.bincount(code_E, minlength=num_cells * num_labels).reshape(num_cells, num_labels)


def guess_counts(study: Study, item_R: np.ndarray, guess_RG: np.ndarray) -> np.ndarray:
    """(C, L) counts of the guesses."""
    cell_N, target_C = study.cells
    row_E, column_E = np.nonzero(guess_RG >= 0)
    return count_table(cell_N[item_R[row_E]], guess_RG[row_E, column_E], len(target_C), study.num_labels)


def timed(function: Callable, *arguments: Any, calls: int = 1) -> tuple[float, Any]:
    """CPU seconds of a call (the mean of `calls` of them), and what the last one returned."""
    start = time.process_time()
    for _ in range(calls):
        value = function(*arguments)
    return (time.process_time() - start) / calls, value


def require_equal(ours: np.ndarray, theirs: np.ndarray, what: str) -> float:
    """Largest difference; AssertionError if it exceeds the tolerance or either is not finite."""
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    if ours.shape != theirs.shape:
        raise AssertionError(f"{what}: the package returns shape {ours.shape}, the plain version {theirs.shape}")
    difference = float(np.abs(ours - theirs).max())
    if not difference <= TOLERANCE:
        raise AssertionError(f"{what}: the package and the plain version differ by {difference:.3g}")
    return difference


@dataclass
class Row:
    """One line of the table of results."""

    name: str
    target: int | None = None
    plain: list[float] = field(default_factory=list)
    package: list[float] = field(default_factory=list)
    difference: float = 0.0

    def add(self, plain: float, package: float, difference: float) -> None:
        """One round's seconds of both sides and how far their numbers lie apart."""
        self.plain.append(plain)
        self.package.append(package)
        self.difference = max(self.difference, difference)

    def line(self) -> str:
        """The row as text; ratios are those of single rounds."""
        ratios = np.array(self.plain) / np.array(self.package)
        demanded = "" if self.target is None else f"{self.target:,}"
        return (
            f"{self.name:50s} {np.median(self.plain):10.4f} {np.median(self.package):10.5f} {np.median(ratios):10,.0f} "
            f"{f'{ratios.min():,.0f} – {ratios.max():,.0f}':>17s} {demanded:>8s} {self.difference:10.1e}"
        )


def compare_replicate(ours: dict[str, Any], theirs: tuple, index: int) -> float:
    """Largest difference of cell metrics and alignment in replicate `index`."""
    people, model, alignment, _ = theirs
    differences = []
    for metric in METRICS:
        for side, table in (("people", people), ("model", model)):
            ours_C = ours[side][metric][index]
            differences.append(require_equal(ours_C, table[metric].to_numpy(), f"{metric} of {side}"))
        differences.append(
            require_equal(ours["alignment"][metric][index], np.array(alignment[metric]), f"alignment of {metric}")
        )
    return max(differences)


def drawn_images(study: Study, names: list[str], weights_KJ: np.ndarray) -> dict[str, list[str]]:
    """Concept → its drawn images, each as often as it was drawn."""
    concepts = [names[i] for i in np.unique(study.target_N)]
    return {
        concept: [image_name(concept, image) for image in np.repeat(np.unique(study.image_N), w)]
        for concept, w in zip(concepts, weights_KJ, strict=True)
    }


def main() -> None:
    """Measure every step in turn, check that both versions agree, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="12 concepts, 4 images, 200 labels, 50 replicates")
    parser.add_argument("--replicates", type=int, default=1000, help="bootstrap replicates of the package")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; each times one plain replicate")
    parser.add_argument(
        "--jsd-rows", type=int, default=8, help="machine cells that the plain Jensen-Shannon loop visits"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    size = (12, 4, 200) if options.quick else (128, 16, 1854)
    replicates = min(options.replicates, 50) if options.quick else options.replicates
    with threadpool_limits(1):
        study = Study.synthetic(*size, seed=options.seed)
        rows, selecting = measure(study, replicates, options.rounds, options.jsd_rows, options.seed)
    num_cells = len(study.cells[1])
    first_CL, every_CL = (guess_counts(study, study.item_R, study.guess_RG[:, :n]) for n in (1, 5))
    print(
        f"{len(study.target_N):,} sketches, {len(study.item_R):,} judgments, {(study.guess_RG >= 0).sum():,} guesses, "
        f"{study.num_labels:,} labels, {num_cells} cells\n"
        f"labels that occur in a cell: {(first_CL > 0).sum(1).mean():.0f} (first guesses), "
        f"{(every_CL > 0).sum(1).mean():.0f} (all guesses); CPU seconds, medians of {options.rounds} rounds"
    )
    print(
        f"{'':50s} {'plain':>10s} {'package':>10s} {'ratio':>10s} {'min – max':>17s} {'target':>8s} {'max diff':>10s}"
    )
    print("\n".join(row.line() for row in rows))
    print(f"* one plain replicate against {replicates:,} of the package with its set-up, divided by {replicates:,}")
    print(
        f"  {selecting:.0%} of the plain replicate in the first row is selecting rows of drawn images from whole tables"
    )
    print(f"** plain loop extrapolated from {min(options.jsd_rows, num_cells)} of {num_cells} rows")


def measure(study: Study, replicates: int, rounds: int, jsd_rows: int, seed: int) -> tuple[list[Row], float]:
    """The rows of the table, and the share of selecting rows in a plain replicate."""
    tables, cells = Tables(study), f"{len(study.cells[1])} × {len(study.cells[1])}"
    whole = Row("bootstrap replicate, images from the table *", 1000)
    careful = Row("bootstrap replicate, concept's rows first *")
    snp, entropy = Row("SNP of all cells, people and model", 50), Row("set-up: entropy of every sketch")
    first = Row(f"Jensen-Shannon, {cells}, first guesses **", 30)
    every = Row(f"Jensen-Shannon, {cells}, all guesses **", 30)
    shares = []
    for turn in range(rounds):
        measure_entropy(entropy, tables)
        plain, theirs = timed(tables.preferences)
        package, ours = timed(preferences, study, calls=10)  # a short one alone would be noise
        snp.add(plain, package, max(require_equal(a, b.to_numpy(), "SNP") for a, b in zip(ours, theirs, strict=True)))
        shares.append(measure_bootstrap(whole, careful, tables, replicates, seed, turn))
        for row, guesses in ((first, 1), (every, 5)):
            measure_distances(row, study, guesses, jsd_rows, turn)
    return [whole, careful, snp, first, every, entropy], float(np.mean(shares))


def measure_entropy(row: Row, tables: Tables) -> None:
    """Entropy of every sketch, people's guesses and the model's probabilities."""
    plain, _ = timed(tables.fill_entropy)
    package, (people, model) = timed(statistics, tables.study)
    people_N = tables.people.groupby("sketch", sort=False)["entropy"].first().to_numpy()
    differences = [
        require_equal(people.entropy.sum_N, people_N, "entropy of people's guesses"),
        require_equal(model.entropy.sum_N, tables.model["entropy"].to_numpy(), "entropy of probabilities"),
    ]
    row.add(plain, package, max(differences))


def measure_bootstrap(whole: Row, careful: Row, tables: Tables, replicates: int, seed: int, turn: int) -> float:
    """Replicate number `turn`, selected in two ways; returns the share of selecting in the first."""
    study, shares = tables.study, []
    package, ours = timed(bootstrap, study, replicates, seed)
    drawn = drawn_images(study, tables.names, ours["weights"][turn])
    for row, concept_first in ((whole, False), (careful, True)):
        plain, theirs = timed(reference.replicate, tables.people, tables.model, drawn, study.num_labels, concept_first)
        row.add(plain, package / replicates, compare_replicate(ours, theirs, turn))
        shares.append(theirs[3] / plain)
    return shares[0]


def measure_distances(row: Row, study: Study, guesses: int, jsd_rows: int, turn: int) -> None:
    """Distances of machine cells from human cells, the plain loop over `jsd_rows` machine cells."""
    machine_CL = guess_counts(study, study.machine_item_R, study.machine_guess_RG[:, :guesses])
    human_CL = guess_counts(study, study.item_R, study.guess_RG[:, :guesses])
    jsd_rows = min(jsd_rows, len(machine_CL))
    some = generator(turn, "perf", "rows").choice(len(machine_CL), jsd_rows, replace=False)
    plain, theirs = timed(reference.distances, machine_CL[some], human_CL)
    package, ours = timed(
        pairwise_jensen_shannon_distance, torch.from_numpy(machine_CL), torch.from_numpy(human_CL), calls=2
    )
    difference = require_equal(ours.numpy()[some], theirs, "Jensen-Shannon distance")
    row.add(plain * len(machine_CL) / jsd_rows, package, difference)


if __name__ == "__main__":
    main()
