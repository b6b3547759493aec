"""Does the ranking by SEA depend on its nine hyperparameters? The paper fixes them and leaves the question open.

Two rankings are looked at: that of groups (conditions, generators) by their mean SEA, and that of sketches by Z, which
orders like SEA without the ties of a saturated tanh. The hyperparameters are moved one at a time over their ranges,
and all at once by points that fill the box of ranges evenly; both on a logarithmic scale, because each is a factor or
an exponent. How much of the joint variation is due to which hyperparameter is told by Sobol indices: the first order is
the share of variance explained by it alone, the total the share that would be left if only it were unknown.

Legend: N sketches, G groups, D draws, J the nine hyperparameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Unpack

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, qmc, rankdata

from humanlike.metrics.functional.sea import PARAMETER_NAMES, SEAKeywords, SEAParameters, sea_terms
from humanlike.rng import generator

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **{name: (value / 2, value * 2) for name, value in asdict(SEAParameters()).items()},
        "delta": (1e-8, 1e-4),
    }
)
"""Half to double the published value; δ over two powers of ten to either side of the notation's."""

COMPATIBLE_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **{name: (value, value) for name, value in asdict(SEAParameters()).items()},
        "lam": (0.89, 1.16),
        "eta": (0.71, 0.86),
        "k": (1.8, 2.8),
        "tau": (0.37, 0.45),
        "r": (1.35, 1.98),
        "gamma": (1.58, 1.98),
        "delta": (1e-7, 1e-6),
    }
)
"""What the paper's printed table allows each to be, the others at their published values; α and β are not pinned."""

MEASURES = ("kendall_sketches", "spearman_sketches", "kendall_groups", "spearman_groups", "margin")
"""Columns of every table: rank correlations with the ranking under the given hyperparameters, and the margin: the
smallest difference of mean SEA between neighbours of that ranking of groups, below 0 where their order is reversed."""


@dataclass(frozen=True)
class SEASensitivity:
    """How rankings change with the hyperparameters.

    Attributes:
        one_at_a_time: One row a value: `parameter`, `value`, the columns of `MEASURES`, `order_kept` (are all groups
            in the order they have under the given hyperparameters?).
        joint: One row a draw: the nine values, the columns of `MEASURES`, `order_kept`.
        pairs: One row a pair of groups: `higher`, `lower` (under the given hyperparameters), `difference` of mean SEA
            there, `share_kept` of draws with the same sign, `least` and `greatest` difference over draws.
        importance: One row a measure and hyperparameter: Sobol indices `first_order` and `total` with standard errors;
            NaN where the measure does not vary.
        share_kept: Share of draws that keep the order of all groups, NaN with one group.
        ranges: The range of each hyperparameter.
        sketches_ranked: Number of sketches whose ranking was compared.
    """

    one_at_a_time: pd.DataFrame
    joint: pd.DataFrame
    pairs: pd.DataFrame
    importance: pd.DataFrame
    share_kept: float
    ranges: Mapping[str, tuple[float, float]]
    sketches_ranked: int


def sea_sensitivity(
    P_N: np.ndarray,
    v_N: np.ndarray,
    group_N: Sequence[Hashable] | np.ndarray,
    *,
    ranges: Mapping[str, tuple[float, float]] = RANGES,
    points: int = 9,
    draws: int = 256,
    seed: int = 0,
    max_ranked: int = 2000,
    **parameters: Unpack[SEAKeywords],
) -> SEASensitivity:
    """Sensitivity of the rankings of groups and of sketches to the nine hyperparameters.

    Args:
        P_N: (N,) probabilities of the true class, without missing sketches.
        v_N: (N,) visual ratios.
        group_N: (N,) group of every sketch.
        ranges: (least, greatest) of each hyperparameter; those left out stay at their value.
        points: Values of each hyperparameter one at a time, from end to end.
        draws: A power of two; twice as many points of the box are compared (`joint`), and 11 times as many computed.
        seed: Global seed.
        max_ranked: At most so many sketches are ranked, a random sample of them; mean SEA is always of all.
        **parameters: Hyperparameters of the ranking that the others are compared with.

    Returns:
        `SEASensitivity`.

    Raises:
        ValueError: If P or v is out of range (the sketch is named), lengths differ, there are fewer than two sketches,
            a range is none, or `draws` is no power of two.

    References:
        Saltelli et al. (2010), "Variance based sensitivity analysis of model output", and Jansen (1999) for the
        estimators.

    Example:
        >>> P, v = np.array([0.2, 0.4, 0.8, 0.9]), np.array([0.5, 0.4, 0.4, 0.3])
        >>> result = sea_sensitivity(P, v, ["4 s", "4 s", "32 s", "32 s"], draws=8, points=3)
        >>> result.share_kept, len(result.one_at_a_time), len(result.joint)
        (1.0, 27, 16)
    """
    reference = SEAParameters(**parameters)
    limits_J2 = _limits(ranges, reference)
    if draws < 2 or draws & (draws - 1):
        raise ValueError(f"draws must be a power of two, at least 2, got {draws}")
    rankings = _Rankings(np.asarray(P_N, np.float64), np.asarray(v_N, np.float64), group_N, reference, max_ranked, seed)
    design = saltelli_design(len(PARAMETER_NAMES), draws, seed)
    values = limits_J2[:, 0] * (limits_J2[:, 1] / limits_J2[:, 0]) ** design
    compared = [
        rankings.compare(dict(zip(PARAMETER_NAMES, row, strict=True))) for row in values.reshape(-1, 9).tolist()
    ]
    table = pd.DataFrame([measures for measures, _ in compared])
    both = slice(2 * draws)  # the two independent halves of the design; the rest are mixtures of them
    joint = pd.concat([pd.DataFrame(values[:2].reshape(-1, 9), columns=list(PARAMETER_NAMES)), table[both]], axis=1)
    return SEASensitivity(
        one_at_a_time=_with_order(_one_at_a_time(rankings, limits_J2, points)),
        joint=_with_order(joint),
        pairs=rankings.pairs(np.array([means for _, means in compared[both]])),
        importance=_importance(table, draws),
        share_kept=float((joint["margin"] > 0).mean()) if rankings.num_groups > 1 else float("nan"),
        ranges=MappingProxyType(
            {name: (float(low), float(high)) for name, (low, high) in zip(PARAMETER_NAMES, limits_J2, strict=True)}
        ),
        sketches_ranked=len(rankings.ranked),
    )


class _Rankings:
    """The sketches, and their rankings under given hyperparameters beside those under the reference's."""

    def __init__(
        self,
        P_N: np.ndarray,
        v_N: np.ndarray,
        group_N: Sequence[Hashable] | np.ndarray,
        reference: SEAParameters,
        max_ranked: int,
        seed: int,
    ) -> None:
        if P_N.ndim != 1 or P_N.shape != v_N.shape or len(group_N) != len(P_N) or len(P_N) < 2:
            raise ValueError(
                f"P_N, v_N and group_N must be of one length ≥ 2, got {P_N.shape}, {v_N.shape} and {len(group_N)}"
            )
        self.P_N, self.v_N, self.reference = P_N, v_N, reference
        self.code_N, self.groups = pd.factorize(np.asarray(group_N), sort=True)
        if (self.code_N < 0).any():
            raise ValueError(
                f"group_N must name a group for every sketch; sketch {int(np.argmin(self.code_N))} has none"
            )
        self.count_G = np.bincount(self.code_N)
        rng = generator(seed, "sea_sensitivity", "ranked")
        chosen = rng.choice(len(P_N), max_ranked, replace=False) if len(P_N) > max_ranked else np.arange(len(P_N))
        self.ranked = np.sort(chosen)
        z, self.mean_G = self._scores(asdict(reference))
        self.ranks, self.ranks_G = rankdata(z), rankdata(self.mean_G)
        self.order = np.argsort(-self.mean_G, kind="stable")

    @property
    def num_groups(self) -> int:
        """G."""
        return len(self.groups)

    def compare(self, parameters: Mapping[str, float]) -> tuple[dict[str, float], np.ndarray]:
        """The measures, and the mean SEA of every group."""
        z, mean_G = self._scores(parameters)
        ranks, ranks_G = rankdata(z), rankdata(mean_G)
        steps = -np.diff(mean_G[self.order])
        measures = {
            # Scipy's counts discordant pairs by sorting, which thousands of sketches need.
            "kendall_sketches": float(kendalltau(self.ranks, ranks).statistic) if np.ptp(z) > 0 else float("nan"),
            "spearman_sketches": _product_moment(self.ranks, ranks),
            "kendall_groups": _kendall(self.ranks_G, ranks_G),
            "spearman_groups": _product_moment(self.ranks_G, ranks_G),
            "margin": float(steps.min()) if len(steps) else float("nan"),
        }
        return measures, mean_G

    def pairs(self, mean_DG: np.ndarray) -> pd.DataFrame:
        """`SEASensitivity.pairs` from the mean SEA of every draw and group."""
        rows = []
        for high, low in combinations(self.order, 2):
            difference_D = mean_DG[:, high] - mean_DG[:, low]
            rows.append(
                {
                    "higher": self.groups[high],
                    "lower": self.groups[low],
                    "difference": self.mean_G[high] - self.mean_G[low],
                    "share_kept": (difference_D > 0).mean(),
                    "least": difference_D.min(),
                    "greatest": difference_D.max(),
                }
            )
        return pd.DataFrame(rows, columns=["higher", "lower", "difference", "share_kept", "least", "greatest"])

    def _scores(self, parameters: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        terms = sea_terms(self.P_N, self.v_N, **dict(parameters))  # type: ignore[arg-type]
        mean_G = np.bincount(self.code_N, terms.sea.numpy(), self.num_groups) / self.count_G
        return terms.z.numpy()[self.ranked], mean_G


def saltelli_design(variables: int, draws: int, seed: int) -> np.ndarray:
    """Points of the unit box for Sobol indices.

    Two halves A and B that share no coordinate, of a Sobol sequence shifted at random, and for every variable A with
    that variable's coordinate from B.

    Args:
        variables: J.
        draws: D, a power of two.
        seed: Global seed.

    Returns:
        (2 + J, D, J) in [0, 1): A, B, then A with one column of B.
    """
    shift = generator(seed, "sea_sensitivity", "shift").random(2 * variables)
    points = (qmc.Sobol(2 * variables, scramble=False).random_base2(draws.bit_length() - 1) + shift) % 1.0
    first, second = points[:, :variables], points[:, variables:]
    mixed = np.repeat(first[None], variables, axis=0)
    for j in range(variables):
        mixed[j, :, j] = second[:, j]
    return np.concatenate([first[None], second[None], mixed])


def sobol_indices(outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First-order Sobol indices by the estimator of Saltelli et al., total ones by Jansen's, with standard errors.

    Args:
        outcome: (2 + J, D) outcome at the points of `saltelli_design`.

    Returns:
        `first_order`, its standard error, `total`, its standard error, each (J,); NaN where the outcome does not vary.
        The errors are those of independent draws, and so on the safe side for points that fill the box evenly.
    """
    first, second, mixed = outcome[0], outcome[1], outcome[2:]
    variance = np.concatenate([first, second]).var()
    if not variance > 0:
        nothing = np.full(len(mixed), np.nan)
        return nothing, nothing, nothing, nothing
    alone = (second - outcome.mean()) * (mixed - first) / variance
    together = (mixed - first) ** 2 / (2 * variance)
    root = np.sqrt(outcome.shape[1])
    return alone.mean(axis=1), alone.std(axis=1) / root, together.mean(axis=1), together.std(axis=1) / root


def _one_at_a_time(rankings: _Rankings, limits_J2: np.ndarray, points: int) -> pd.DataFrame:
    rows = []
    for name, (low, high) in zip(PARAMETER_NAMES, limits_J2.tolist(), strict=True):
        for value in np.geomspace(low, high, points if low < high else 1).tolist():
            measures, _ = rankings.compare({**asdict(rankings.reference), name: value})
            rows.append({"parameter": name, "value": value, **measures})
    return pd.DataFrame(rows)


def _importance(table: pd.DataFrame, draws: int) -> pd.DataFrame:
    parts = []
    for measure in MEASURES:
        indices = sobol_indices(table[measure].to_numpy().reshape(-1, draws))
        columns = dict(zip(("first_order", "first_order_se", "total", "total_se"), indices, strict=True))
        parts.append(pd.DataFrame({"measure": measure, "parameter": PARAMETER_NAMES, **columns}))
    return pd.concat(parts, ignore_index=True)


def _with_order(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `order_kept`, missing where there is one group."""
    kept = (table["margin"] > 0).astype("boolean").mask(table["margin"].isna())
    return table.assign(order_kept=kept)


def _limits(ranges: Mapping[str, tuple[float, float]], reference: SEAParameters) -> np.ndarray:
    """(J, 2) least and greatest value of every hyperparameter."""
    unknown = sorted(set(ranges) - set(PARAMETER_NAMES))
    if unknown:
        raise ValueError(f"ranges name no hyperparameter of SEA: {unknown}; known are {list(PARAMETER_NAMES)}")
    limits = []
    for name, value in asdict(reference).items():
        low, high = ranges.get(name, (value, value))
        if not 0 < low <= high < np.inf:
            raise ValueError(f"the range of {name} must be 0 < least ≤ greatest, got {(low, high)}")
        limits.append((low, high))
    return np.array(limits)


def _product_moment(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation of two columns (of ranks: Spearman's ρ), NaN where one is constant."""
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / norm) if norm > 0 else float("nan")


def _kendall(x_G: np.ndarray, y_G: np.ndarray) -> float:
    """Kendall's τ_b by all pairs; NaN where one column is constant."""
    x_GG, y_GG = (np.sign(a[:, None] - a) for a in (x_G, y_G))
    norm = np.sqrt((x_GG**2).sum() * (y_GG**2).sum())
    return float((x_GG * y_GG).sum() / norm) if norm > 0 else float("nan")
