"""Simulated participants of the demo: noisy perception of elements, then a Bayesian choice among the labels.

These are *not* people. They exist so that the whole pipeline runs on data whose truth is known: `choice_probability`
gives the exact distribution of the first guess for every sketch, from which every population value follows.

Legend: N sketches, L labels, V element names of all labels together, M judgments, A levels of acuity.

The model of one judgment of a sketch with drawn elements D:

1. Perception. Every element in D is detected independently with probability σ(base + gain·progress(t) + legibility(c) +
   acuity), where the acuity is the participant's; with probability `false_alarm` one common element is believed seen
   whether or not it is there. The result is the set S of seen elements.
2. Evidence. ℓ(l) = Σ_{e∈S} log p_le + Σ_{e∉S} log(1 - p_le), p_le the expected presence of e under label l: its own
   elements more likely the more diagnostic they are, and a share borrowed from semantic neighbours.
3. Choice. The guesses, in order, are a draw without replacement with weights exp(β ℓ(l)) (Plackett-Luce).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from humanlike.data.doodles.catalogue import CONCEPTS
from humanlike.data.doodles.concept import Concept
from humanlike.data.doodles.features import cosine_similarity, semantic_space
from humanlike.data.doodles.program import progress
from humanlike.rng import generator
from humanlike.types import GUESS_COLUMNS, Responses, Sketches

FLAG = "simulated_participants"


@dataclass(frozen=True)
class Observer:
    """How the simulated participants perceive and choose.

    Attributes:
        base: Log-odds of detecting a drawn element at 4 s.
        gain: What 32 s add to the log-odds.
        legibility: Standard deviation over concepts of the log-odds (some things are hard to make out).
        acuity: Log-odds of the equally frequent kinds of participants, added to the rest.
        false_alarm: Probability of believing to have seen one of the `num_common` most common element names.
        num_common: How many element names can be false alarms.
        first: Expected presence of the most diagnostic element of a label.
        last: Expected presence of its least diagnostic one.
        chance: Expected presence of an element that does not belong to a label.
        borrowed: Share of a label's expectation that comes from its semantic neighbours.
        nearness: Scale of the cosine on which neighbours count.
        decisiveness: β, the inverse temperature of the choice.
        more_guesses: Probability of each of the four further guesses being given.
    """

    base: float = -0.6
    gain: float = 1.7
    legibility: float = 1.8
    acuity: tuple[float, ...] = (-0.6, 0.0, 0.6)
    false_alarm: float = 0.15
    num_common: int = 6
    first: float = 0.75
    last: float = 0.25
    chance: float = 0.02
    borrowed: float = 0.48
    nearness: float = 0.06
    decisiveness: float = 1.0
    more_guesses: float = 0.35

    def __post_init__(self) -> None:
        shares = ("false_alarm", "first", "last", "chance", "borrowed", "more_guesses")
        wrong = [name for name in shares if not 0 <= getattr(self, name) <= 1]
        wrong += [name for name in ("nearness", "decisiveness") if not getattr(self, name) > 0]
        if not 0 < self.chance < 0.5:
            wrong.append("chance")
        if wrong:
            raise ValueError(
                f"Observer: {', '.join(dict.fromkeys(wrong))} out of range (shares lie in [0, 1], "
                "chance in (0, 0.5), nearness and decisiveness above 0)"
            )
        # Hydra hands over lists; the record stays hashable, because what observers know is cached by it.
        object.__setattr__(self, "acuity", tuple(float(a) for a in self.acuity))
        if not self.acuity or self.num_common < 1:
            raise ValueError("Observer: acuity needs one level or more, and num_common must be 1 or more")


@dataclass(frozen=True, eq=False)
class Mind:
    """What the observers know about a set of labels.

    Attributes:
        vocabulary: The V element names.
        base_L: Evidence for each label when nothing is seen.
        weight_VL: What seeing an element adds.
        legibility_L: Log-odds that a concept's elements are easier or harder to detect.
        common: Columns of the elements that are falsely believed seen.
    """

    vocabulary: tuple[str, ...]
    base_L: np.ndarray
    weight_VL: np.ndarray
    legibility_L: np.ndarray
    common: np.ndarray


@lru_cache(maxsize=8)
def mind(labels: tuple[str, ...], observer: Observer) -> Mind:
    """The knowledge of observers who choose among `labels` (names of doodle concepts)."""
    concepts = _concepts(labels)
    vocabulary = tuple(sorted({e for concept in concepts for e in concept.elements}))
    column = {e: v for v, e in enumerate(vocabulary)}
    own = np.zeros((len(concepts), len(vocabulary)))
    for row, concept in zip(own, concepts, strict=True):
        row[[column[e] for e in concept.elements]] = np.linspace(observer.first, observer.last, len(concept.elements))
    kernel = np.exp((cosine_similarity(semantic_space(concepts)) - 1) / observer.nearness)
    np.fill_diagonal(kernel, 0.0)
    neighbours = kernel / kernel.sum(axis=1, keepdims=True) @ own
    expected = (1 - observer.borrowed) * own + observer.borrowed * neighbours
    p = observer.chance + (1 - 2 * observer.chance) * expected
    scale = observer.decisiveness
    frequency = (own > 0).sum(axis=0)
    return Mind(
        vocabulary=vocabulary,
        base_L=scale * np.log1p(-p).sum(axis=1),
        weight_VL=scale * (np.log(p) - np.log1p(-p)).T,
        # A property of the thing, not of a sample of drawings: the same under every seed.
        legibility_L=np.array([generator(0, "doodles", c.name, "legibility").standard_normal() for c in concepts])
        * observer.legibility,
        common=np.argsort(-frequency, kind="stable")[: observer.num_common],
    )


def choice_probability(data: Sketches, observer: Observer | None = None) -> np.ndarray:
    """Exact probability of every label being the first guess of a simulated participant who sees the sketch.

    Perception is summed over all sets of detected elements, all levels of acuity and all false alarms; nothing is
    sampled. `choice_probability(data)[n, target]` is the sketch's population accuracy, and its mean over a cell's
    sketches is the cell's.

    Args:
        data: The doodles, or any selection of them.
        observer: The participants' perception; default `Observer()`.

    Returns:
        (N, L) float64, rows sum to 1, in the order of `data.labels`.

    Raises:
        ValueError: When `data` has no table of elements or labels that are not doodles.
    """
    who = observer or Observer()
    knowledge = mind(data.labels, who)
    drawn_NV = _drawn(data, knowledge)
    detect_NA = _detection(data, knowledge, who)
    # Sketches that show the same elements equally legibly share their distribution; rows compare fastest as bytes.
    keys = np.concatenate([np.packbits(drawn_NV, axis=1), detect_NA.view(np.uint8)], axis=1)
    _, rows, inverse = np.unique(keys.view(f"V{keys.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return np.stack([_exact(drawn_NV[r], detect_NA[r], knowledge, who) for r in rows])[inverse]


def _exact(drawn_V: np.ndarray, detect_A: np.ndarray, knowledge: Mind, who: Observer) -> np.ndarray:
    """(L,) distribution of the first guess, summed over all 2^|D| sets S of detected elements and C false alarms."""
    present = np.flatnonzero(drawn_V)
    sets = (np.arange(2 ** len(present))[:, None] >> np.arange(len(present))) % 2 == 1
    seen = sets.sum(axis=1)[:, None]
    weight_S = (detect_A**seen * (1 - detect_A) ** (len(present) - seen)).mean(axis=1)
    evidence_SL = knowledge.base_L + sets @ knowledge.weight_VL[present]
    odds_SL = np.exp(evidence_SL - evidence_SL.max(axis=1, keepdims=True))
    honest_S = weight_S / odds_SL.sum(axis=1)
    # A false alarm multiplies the odds, unless the element was detected anyway.
    factor_CL = np.exp(knowledge.weight_VL[knowledge.common])
    known_SC = sets @ (present[:, None] == knowledge.common) > 0
    fooled_SC = np.where(known_SC, 0.0, weight_S[:, None] / (odds_SL @ factor_CL.T))
    fooled_L = ((fooled_SC.T @ odds_SL) * factor_CL).sum(axis=0) + (known_SC.sum(axis=1) * honest_S) @ odds_SL
    return (1 - who.false_alarm) * (honest_S @ odds_SL) + who.false_alarm * fooled_L / len(knowledge.common)


def simulate_responses(
    data: Sketches, judgments: int = 13, seed: int = 0, observer: Observer | None = None
) -> Sketches:
    """The data set with simulated answers in place of people's, flagged as such.

    In each of `judgments` rounds every sketch is judged once, by participants who see one sketch of each concept
    and every time limit about equally often; their acuity is drawn once for each participant.

    Args:
        data: The doodles, all or a selection.
        judgments: Judgments a sketch, 1 or more.
        seed: Seed of the simulated people.
        observer: Their perception; default `Observer()`.

    Returns:
        `data` with `responses` (`simulated=True`) and the flag "simulated_participants".
    """
    if judgments < 1:
        raise ValueError(f"judgments must be 1 or more, got {judgments}")
    who = observer or Observer()
    knowledge = mind(data.labels, who)
    sketch_M, participant_M = _assigned(data, judgments, seed)
    rng = generator(seed, "doodles", "participants", "answers")
    level = generator(seed, "doodles", "participants", "acuity").integers(len(who.acuity), size=participant_M.max() + 1)
    detect_M = _detection(data, knowledge, who)[sketch_M, level[participant_M]]
    drawn_MV = _drawn(data, knowledge)[sketch_M]
    seen_MV = drawn_MV & (rng.random(drawn_MV.shape, dtype=np.float32) < detect_M[:, None])
    fooled = np.flatnonzero(rng.random(len(sketch_M)) < who.false_alarm)
    seen_MV[fooled, rng.choice(knowledge.common, size=len(fooled))] = True
    utility_ML = knowledge.base_L + seen_MV.astype(np.float32) @ knowledge.weight_VL.astype(np.float32)
    utility_ML += rng.gumbel(size=utility_ML.shape)
    given_M = 1 + rng.binomial(len(GUESS_COLUMNS) - 1, who.more_guesses, size=len(sketch_M))
    table = _answers(data, utility_ML, given_M, sketch_M, participant_M)
    flags = data.flags if FLAG in data.flags else (*data.flags, FLAG)
    return replace(data, responses=Responses(table, simulated=True), flags=flags)


def _answers(
    data: Sketches, utility_ML: np.ndarray, given_M: np.ndarray, sketch_M: np.ndarray, participant_M: np.ndarray
) -> pd.DataFrame:
    depth = min(len(GUESS_COLUMNS), len(data.labels))
    best = np.argsort(-utility_ML, axis=1, kind="stable")[:, :depth]
    guesses = np.full((len(sketch_M), len(GUESS_COLUMNS)), None, dtype=object)
    guesses[:, :depth] = np.array(data.labels, dtype=object)[best]
    guesses[np.arange(len(GUESS_COLUMNS)) >= given_M[:, None]] = None
    names = np.array([f"simulated-{p:04d}" for p in range(participant_M.max() + 1)], dtype=object)
    table = pd.DataFrame(
        {"participant": names[participant_M], "sketch_id": data.table["sketch_id"].to_numpy()[sketch_M]}
    )
    columns = {column: pd.Series(guesses[:, i], dtype=object) for i, column in enumerate(GUESS_COLUMNS)}
    return table.assign(**columns)


def _assigned(data: Sketches, judgments: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(M,) sketch and (M,) participant of every judgment; nobody sees two sketches of one concept."""
    target_N = data.target_N
    per_concept = [np.flatnonzero(target_N == label) for label in np.unique(target_N)]
    seats = max(len(rows) for rows in per_concept)
    sketches, participants = [], []
    for judgment in range(judgments):
        rng = generator(seed, "doodles", "participants", "assignment", judgment)
        for rows in per_concept:
            sketches.append(rng.permutation(rows))
            participants.append(judgment * seats + np.arange(len(rows)))
    return np.concatenate(sketches), np.concatenate(participants)


def _detection(data: Sketches, knowledge: Mind, who: Observer) -> np.ndarray:
    """(N, A) probability of detecting an element that is drawn."""
    time_N = np.array([progress(float(t)) for t in data.table["condition"]])
    log_odds_N = who.base + who.gain * time_N + knowledge.legibility_L[data.target_N]
    return 1 / (1 + np.exp(-(log_odds_N[:, None] + np.asarray(who.acuity))))


def _drawn(data: Sketches, knowledge: Mind) -> np.ndarray:
    """(N, V) bool, elements that are drawn, from the data set's own table."""
    if data.elements is None:
        raise ValueError(f"{data.name} has no table of elements; simulated participants need to know what is drawn")
    shown = data.elements[data.elements["drawn"]]
    rows = pd.Index(data.table["sketch_id"]).get_indexer(pd.Index(shown["sketch_id"]))
    columns = pd.Index(knowledge.vocabulary).get_indexer(pd.Index(shown["element"]))
    if (rows < 0).any() or (columns < 0).any():
        raise ValueError(
            f"{data.name}: the table of elements names sketches or elements that the data set does not have"
        )
    drawn = np.zeros((len(data), len(knowledge.vocabulary)), dtype=bool)
    drawn[rows, columns] = True
    return drawn


def _concepts(labels: tuple[str, ...]) -> tuple[Concept, ...]:
    by_name = {concept.name: concept for concept in CONCEPTS}
    unknown = [label for label in labels if label not in by_name]
    if unknown:
        raise ValueError(f"simulated participants know doodles only; these labels are none: {unknown[:5]}")
    return tuple(by_name[label] for label in labels)
