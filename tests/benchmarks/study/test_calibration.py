"""Do intervals cover and tests hold their level? 400 studies of the doodles twin, whose truth is known.

A study draws 16 images (the number in SEVA) of each of 12 concepts from a large pool of doodles in four conditions, new
participants with an acuity of their own who judge one sketch of each concept, and new answers of the models. The truth
of a statistic is its mean over other, independent studies of the same size.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from humanlike.data.doodles.dataset import doodles
from humanlike.data.doodles.participants import Observer, choice_probability
from humanlike.data.doodles.twin import simulate_model
from humanlike.metrics.functional import semantic_ranks
from humanlike.metrics.functional.response import row_entropy
from humanlike.stats import (
    CellDesign,
    CodedResponses,
    Interval,
    ModelAnswers,
    PeopleSwitches,
    alignment_r2,
    basic,
    cell_metrics,
    condition_r2,
    delta_r2,
    difference,
    image_weights,
    model_statistics,
    people_statistics,
    ratio_centred,
    split_half_consistency,
)
from humanlike.stats.comparison import compare_pairs
from humanlike.stats.consistency import HalfResamples
from humanlike.stats.crossed import PeopleUnderWeights, fewer_people, with_participants
from humanlike.stats.hidden_spread import hidden_variance
from humanlike.stats.intervals import widened
from humanlike.stats.noise_correction import noise_corrected
from humanlike.stats.power import needed_size, variance_components

K, J, JUDGMENTS, STUDIES, REPLICATES, SPLITS = 12, 16, 8, 400, 200, 20
POOL = 40
"""Images a concept in the pool."""
SWITCHES = PeopleSwitches(estimator="chao_shen")
MODELS = {"near": (0.85, 1), "twin_of_near": (0.85, 1), "far": (0.5, 2)}
"""Name → true alignment on accuracy, seed: two are the same distribution and answer independently."""


@dataclass
class World:
    """The pool: choice distributions of people of each acuity, and of the models, for every sketch."""

    target_N: np.ndarray
    image_KJT: np.ndarray  # row of the pool, by concept, image and condition
    people_ANL: np.ndarray
    models: dict[str, np.ndarray]
    entropies: dict[str, np.ndarray]
    ranks_LL: np.ndarray


@pytest.fixture(scope="module")
def world() -> World:
    pool = doodles(concepts=K, instances=POOL, judgments=0)
    acuity = Observer().acuity
    models = {name: simulate_model(pool, alignment, seed) for name, (alignment, seed) in MODELS.items()}
    return World(
        target_N=pool.target_N,
        image_KJT=np.arange(len(pool)).reshape(K, POOL, 4),
        people_ANL=np.stack([choice_probability(pool, Observer(acuity=(a,))) for a in acuity]),
        models=models,
        entropies={name: row_entropy(torch.from_numpy(p)).numpy() for name, p in models.items()},
        ranks_LL=semantic_ranks(torch.from_numpy(pool.semantic_space)).numpy(),
    )


@dataclass
class Study:
    """One study: its items, people's answers and the models' answers."""

    design: CellDesign
    target_N: np.ndarray
    coded: CodedResponses
    models: dict[str, ModelAnswers]


def draw(world: World, seed: int) -> Study:
    """A new study: other images, other people, other answers of the models."""
    rng = np.random.default_rng(seed)
    pool_images = world.image_KJT.shape[1]
    chosen_KJ = rng.integers(pool_images, size=(K, J))  # with replacement: independent draws from the pool
    rows_N = world.image_KJT[np.arange(K)[:, None], chosen_KJ].ravel()
    concept_N, image_N, condition_N = (a.ravel() for a in np.indices((K, J, 4)))
    design = CellDesign(concept_N, image_N, condition_N, np.array([4.0, 8.0, 16.0, 32.0]))
    models = {
        name: ModelAnswers(sampled(proba[rows_N], rng), world.entropies[name][rows_N])
        for name, proba in world.models.items()
    }
    return Study(design, world.target_N[rows_N], people(world, rows_N, rng), models)


def sampled(proba_NL: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cumulative = np.cumsum(proba_NL, axis=1)
    return (cumulative <= rng.random((len(proba_NL), 1)) * cumulative[:, -1:]).sum(axis=1)


def people(world: World, rows_N: np.ndarray, rng: np.random.Generator) -> CodedResponses:
    """`JUDGMENTS` of every sketch by people who see one sketch of each concept, with up to 5 guesses."""
    seats = J * 4
    item = np.concatenate(
        [np.concatenate([k * seats + rng.permutation(seats) for k in range(K)]) for _ in range(JUDGMENTS)]
    )
    participant = np.concatenate([j * seats + np.tile(np.arange(seats), K) for j in range(JUDGMENTS)])
    level = rng.integers(len(world.people_ANL), size=JUDGMENTS * seats)
    log_odds = np.log(world.people_ANL[level[participant], rows_N[item]]) + rng.gumbel(
        size=(len(item), len(world.ranks_LL))
    )
    guess = np.argsort(-log_odds, axis=1)[:, :5]
    given = 1 + rng.binomial(4, Observer().more_guesses, size=len(item))
    return CodedResponses(participant, item, np.where(np.arange(5) < given[:, None], guess, -1))


def mean(value_BC: np.ndarray) -> np.ndarray:
    return np.nanmean(value_BC, axis=1)


def full_sample(world: World, study: Study) -> dict[str, float]:
    """Every statistic of a study."""
    design = study.design
    own = cell_metrics(design, people_statistics(study.coded, study.target_N, world.ranks_LL, SWITCHES))
    out = {f"people_{metric}": mean(value)[0] for metric, value in own.items()}
    for name, answers in study.models.items():
        cells = cell_metrics(design, model_statistics(answers, study.target_N, world.ranks_LL))
        out[f"{name}_accuracy"], out[f"{name}_snp"] = mean(cells["accuracy"])[0], mean(cells["snp"])[0]
        for metric in ("accuracy", "entropy"):
            out[f"{name}_alignment_{metric}"] = alignment_r2(own[metric], cells[metric], design.condition_C)[0]
        out[f"{name}_delta_r2"] = delta_r2(own["accuracy"], cells["accuracy"], design.condition_C)[0]
    split = split_half_consistency(design, study.coded, study.target_N, None, SWITCHES, splits=SPLITS)["accuracy"]
    for name in study.models:
        out[f"{name}_corrected"] = out[f"{name}_alignment_accuracy"] / split.reliability
    out["difference_accuracy"] = out["near_accuracy"] - out["far_accuracy"]
    out["difference_alignment"] = out["near_alignment_accuracy"] - out["far_alignment_accuracy"]
    return out


class Intervals:
    """Intervals of the statistics of one study, and p of the comparisons of the two models that are the same."""

    def __init__(self, world: World, study: Study, seed: int) -> None:
        self.design = design = study.design
        weights = image_weights(design, REPLICATES, seed)
        statistics = people_statistics(study.coded, study.target_N, world.ranks_LL, SWITCHES)
        weighted = PeopleUnderWeights(design, study.coded, study.target_N, world.ranks_LL, SWITCHES)
        self.hidden = {"people": hidden_variance(design, statistics.neighbours)}
        self.own, self.again = cell_metrics(design, statistics), cell_metrics(design, statistics, weights)
        self.fewer = [fewer_people(weighted, REPLICATES, seed, unit) for unit in ("participants", "judgments")]
        sides = {n: model_statistics(a, study.target_N, world.ranks_LL) for n, a in study.models.items()}
        self.hidden |= {name: hidden_variance(design, side.neighbours) for name, side in sides.items()}
        self.cells = {name: cell_metrics(design, side) for name, side in sides.items()}
        self.cells_again = {name: cell_metrics(design, side, weights) for name, side in sides.items()}
        resamples = HalfResamples(weights)
        self.split = split_half_consistency(
            design, study.coded, study.target_N, None, SWITCHES, splits=SPLITS, resamples=resamples
        )["accuracy"]

    def over_images(self) -> tuple[dict[str, Interval], dict[str, float]]:
        """Of what images alone decide, or nearly so."""
        out, r2, r2_B, means, means_B = {}, {}, {}, {}, {}
        for name in MODELS:
            for metric in ("accuracy", "snp"):
                means[name, metric] = mean(self.cells[name][metric])[0]
                hidden = self.hidden[name] if metric == "snp" else 0.0
                means_B[name, metric] = self._widened(mean(self.cells_again[name][metric]), hidden)
                out[f"{name}_{metric}"] = ratio_centred(means[name, metric], means_B[name, metric])
            for metric in ("accuracy", "entropy"):
                r2[name, metric] = self._r2(self.own, self.cells[name], metric)[0]
                r2_B[name, metric] = self._widened(self._r2(self.again, self.cells_again[name], metric))
                out[f"{name}_alignment_{metric}"] = ratio_centred(r2[name, metric], r2_B[name, metric])
            out[f"{name}_corrected"] = noise_corrected(
                r2[name, "accuracy"], r2_B[name, "accuracy"], self.split
            ).interval
            out[f"{name}_delta_r2"] = self._added(name)
        (a, b), (a_B, b_B) = ([x[name, "accuracy"] for name in ("near", "far")] for x in (r2, r2_B))
        out["difference_alignment"] = difference(a, a_B, b, b_B)
        (a, b), (a_B, b_B) = ([x[name, "accuracy"] for name in ("near", "far")] for x in (means, means_B))
        out["difference_accuracy"] = basic(a - b, a_B - b_B)
        p = {}
        for what, value, value_B, centring in (
            ("alignment", r2, r2_B, "ratio_centred"),
            ("accuracy", means, means_B, "basic"),
        ):
            alike = [(name, "accuracy") for name in ("near", "twin_of_near")]
            values, replicates = np.array([value[key] for key in alike]), np.stack([value_B[key] for key in alike])
            p[what] = float(compare_pairs(values, replicates, centring=centring).p_Q[0])
        return out, p

    def crossed(self) -> dict[str, Interval]:
        """Of what images and participants decide."""
        out = {}
        for metric, value in self.own.items():
            images_B = self._widened(mean(self.again[metric]), self.hidden["people"] if metric == "snp" else 0.0)
            replicates = [images_B, *(mean(cells[metric]) for cells in self.fewer)]
            out[f"people_{metric}"] = ratio_centred(mean(value)[0], with_participants(*replicates))
        for metric in ("accuracy", "entropy"):
            replicates = [self._widened(self._r2(self.again, self.cells_again["near"], metric))]
            replicates += [self._r2(cells, self.cells["near"], metric) for cells in self.fewer]
            estimate = self._r2(self.own, self.cells["near"], metric)[0]
            out[f"near_alignment_{metric}"] = ratio_centred(estimate, with_participants(*replicates))
        return out

    def _r2(self, people: dict[str, np.ndarray], model: dict[str, np.ndarray], metric: str) -> np.ndarray:
        return alignment_r2(people[metric], model[metric], self.design.condition_C)

    def _added(self, name: str) -> Interval:
        condition_C = self.design.condition_C
        added, alone = [], []
        for own, cells in ((self.own, self.cells[name]), (self.again, self.cells_again[name])):
            added.append(delta_r2(own["accuracy"], cells["accuracy"], condition_C))
            alone.append(condition_r2(own["accuracy"], condition_C, cells["accuracy"]))
        added_B, alone_B = self._widened(added[1]), self._widened(alone[1])
        return difference(added[0][0] + alone[0][0], added_B + alone_B, alone[0][0], alone_B)

    def _widened(self, replicates_B: np.ndarray, hidden: float = 0.0) -> np.ndarray:
        return widened(replicates_B, self.design.resampling_spread, hidden)


@pytest.fixture(scope="module")
def truth(world) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for study in range(STUDIES):
        for name, value in full_sample(world, draw(world, 10**6 + study)).items():
            found[name].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_intervals_cover_and_tests_hold_their_level(world, truth):
    covered: dict[str, list[bool]] = defaultdict(list)
    different: dict[str, list[bool]] = defaultdict(list)
    for seed in range(STUDIES):
        study = Intervals(world, draw(world, seed), seed)
        images, p = study.over_images()
        found = images | {f"{name} (crossed)": interval for name, interval in study.crossed().items()}
        for name, interval in found.items():
            covered[name].append(interval.low <= truth[name.removesuffix(" (crossed)")] <= interval.high)
        for name, value in p.items():
            different[name].append(value <= 0.05)
    share = {name: float(np.mean(values)) for name, values in covered.items()}
    wrong = {name: value for name, value in share.items() if not 0.92 <= value <= 0.98}
    assert not wrong, wrong
    assert all(np.mean(values) <= 0.08 for values in different.values()), different.keys()


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_power_comes_true(world):
    """The number of images at which two models' accuracies would be told apart with 80% power does it in 80%."""
    rng = np.random.default_rng(0)
    a, b = (world.models[name] for name in ("near", "far"))

    def differences(images: int, studies: int) -> np.ndarray:
        """(studies, images) mean difference in correct answers, over concepts and conditions."""
        chosen = rng.integers(world.image_KJT.shape[1], size=(studies, K, images))
        rows = world.image_KJT[np.arange(K)[:, None], chosen].reshape(-1)
        right = [sampled(proba[rows], rng) == world.target_N[rows] for proba in (a, b)]
        return (right[0].astype(float) - right[1]).reshape(studies, K, images, 4).mean(axis=3)

    def found(d_SKJ: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Difference and its variance in each study, from what varies between images within concepts."""
        images = d_SKJ.shape[2]
        return d_SKJ.mean(axis=(1, 2)), d_SKJ.var(axis=2, ddof=1).mean(axis=1) / (images * K)

    rows = world.image_KJT.reshape(-1)
    right_a, right_b = (proba[rows, world.target_N[rows]] for proba in (a, b))
    truth = float((right_a - right_b).mean())  # the expectation of a sampled answer, exactly
    _, variance_S = found(differences(J, 200))
    size = needed_size(truth, variance_components(float(variance_S.mean())), images=J, participants=1)
    value_S, variance_S = found(differences(int(size.images), 400))
    told = np.abs(value_S) > 1.96 * np.sqrt(variance_S)
    assert 0.74 < told.mean() < 0.86  # three standard errors of a share of 400 around .80
    fewer_S, variance_S = found(differences(int(size.images // 2), 400))
    assert (np.abs(fewer_S) > 1.96 * np.sqrt(variance_S)).mean() < 0.65
