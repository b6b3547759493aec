"""Update rules of the decision stage: how feedback changes the preferences for the actions.

A decision stage with M actions keeps one weight vector w_a an action, all zero at the start; the preferences for an
image with features x (‖x‖ ≤ 1) are l_a = xᵀw_a, the choice is the action of the largest one, and ties are broken by a
coin u in [0, 1): index ⌊u·m⌋ among the m tied. r in [-1, 1] is the reward of the chosen action, α in [0, 1] the rate of
learning. A rule is an object; its formula stands here once and is run by every path: the plain simulation with weight
vectors (`direct`), the compiled one (`kernels`) and the batched one (`batched`).

Rounding decides nothing: an image of norm 1 that is shown again lies exactly on the boundary of the hinge and the MAE
rule (r·l = 1, l = r), where the last bit of a dot product would otherwise choose the branch. What lies within
`BOUNDARY` of it counts as on it, so that hinge updates there and MAE does not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BOUNDARY = 1e-9


def exp(x: Any) -> Any:
    """e^x of a float, a NumPy array or a torch tensor; compiled code has its own version of it (`kernels`)."""
    if isinstance(x, float):
        return math.exp(min(x, 709.0))  # math.exp raises where the arrays give infinity
    return np.exp(x) if isinstance(x, np.ndarray | np.generic) else x.exp()


def square_step(reward: Any, preference: Any) -> Any:
    """Step r - l, down the gradient of ½ (r - l)²."""
    return reward - preference


def perceptron_step(reward: Any, preference: Any) -> Any:
    """Step r where r·l ≤ 0, else 0."""
    return reward * (reward * preference <= 0.0)


def hinge_step(reward: Any, preference: Any) -> Any:
    """Step r where r·l ≤ 1 (on the boundary included, see `BOUNDARY`), else 0."""
    return reward * (reward * preference <= 1.0 + BOUNDARY)


def mae_step(reward: Any, preference: Any) -> Any:
    """Step sign(r - l), and 0 where l = r (see `BOUNDARY`)."""
    difference = reward - preference
    return (difference > BOUNDARY) * 1.0 - (difference < -BOUNDARY) * 1.0


def exponential_step(reward: Any, preference: Any) -> Any:
    """Step r exp(-r·l)."""
    return reward * exp(-reward * preference)


def cross_entropy_step(reward: Any, preference: Any) -> Any:
    """Step 4 r / (1 + exp(r·l)); the factor 4 is the largest step at which the rule cannot diverge."""
    return 4.0 * reward / (1.0 + exp(reward * preference))


@dataclass(frozen=True)
class UpdateRule(ABC):
    """A rule of learning from rewards; concrete ones are final."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Word in tables and on the command line."""


@dataclass(frozen=True)
class LinearRule(UpdateRule):
    """Only the weights of the chosen action move: w_a += α step(r, l_a) x.

    A rule of one's own needs nothing but a step of two numbers, written with arithmetic, comparisons and `exp` of this
    module, so that it runs on floats, on tensors and compiled.

    Args:
        label: Name of the rule.
        step: (r, l_a) → factor of α x.
        norm_cap: Frobenius norm of all weights together, above which they are scaled back to it after an update.

    Raises:
        ValueError: When the cap is not positive.

    Example:
        >>> LinearRule("cautious", lambda reward, preference: 0.5 * (reward - preference)).step(1.0, 0.0)
        0.5
    """

    label: str
    step: Callable[[Any, Any], Any]
    norm_cap: float = math.inf

    def __post_init__(self) -> None:
        if not self.norm_cap > 0:
            raise ValueError(f"norm_cap must be positive (infinite for no cap), got {self.norm_cap}")

    @property
    def name(self) -> str:
        """Word in tables and on the command line."""
        return self.label


@dataclass(frozen=True)
class ReinforceRule(UpdateRule):
    """The policy gradient moves the weights of every action i: w_i += α r (1[i = a] - softmax(l)_i) x."""

    @property
    def name(self) -> str:
        """Word in tables and on the command line."""
        return "reinforce"

    @staticmethod
    def steps(reward: float, preference_M: np.ndarray, action: int) -> np.ndarray:
        """(M,) factors of α x, given the preferences, the chosen action and its reward."""
        weight_M = np.exp(preference_M - preference_M.max())
        return reward * ((np.arange(len(weight_M)) == action) - weight_M / weight_M.sum())


@dataclass(frozen=True)
class ExemplarRule(UpdateRule):
    """Generalised context model without attention weights: an action's preference is its exemplars' similarity.

    E_a = Σ over the exemplars j stored under a of exp(-c·d_j^p), d_j the distance of the image from the exemplar. After
    each trial the image is stored under its inferred correct action (see `inferred_action`); nothing decays. The choice
    is argmax E where γ is infinite; for finite γ, action a has probability E_a^γ / Σ E^γ and the coin draws it (action
    0 where the coin is below its probability). While nothing is stored all actions are tied. α plays no part.

    Args:
        c: Steepness of generalisation, > 0.
        p: Exponent of the distance: 1 exponential, 2 Gaussian similarity.
        gamma: Determinism of the choice, > 0.

    Raises:
        ValueError: When a parameter is out of range.

    References:
        Nosofsky (1986).
    """

    c: float = 10.0
    p: int = 1
    gamma: float = math.inf

    def __post_init__(self) -> None:
        if not (self.c > 0 and math.isfinite(self.c)):
            raise ValueError(f"c of the exemplar rule must be a positive number, got {self.c}")
        if self.p not in (1, 2):
            raise ValueError(f"p of the exemplar rule must be 1 or 2, got {self.p}")
        if not self.gamma > 0:
            raise ValueError(f"gamma of the exemplar rule must be positive (infinite for argmax), got {self.gamma}")

    @property
    def name(self) -> str:
        """Word in tables and on the command line."""
        return "exemplar"

    def similarity(self, squared_distance: Any) -> Any:
        """exp(-c·d^p) of squared distances d² ≥ 0, an array or tensor of any shape."""
        return exp(-self.c * squared_distance ** (self.p / 2))


@dataclass(frozen=True)
class PrototypeRule(UpdateRule):
    """Nearest prototype: l_a = x·μ_a - ½‖μ_a‖², μ_a the running mean of the images inferred to belong to a.

    An action without images scores 0 (as does a prototype at the origin). α plays no part.

    References:
        Sorscher, Ganguli and Sompolinsky (2022).
    """

    @property
    def name(self) -> str:
        """Word in tables and on the command line."""
        return "prototype"


def inferred_action(action: Any, reward: Any, num_choices: int) -> Any:
    """The action that a trial's feedback shows to be correct: numbers or tensors.

    With two choices the chosen one where the reward is positive, else the other; with more choices an unrewarded
    trial leaves open which of the others was correct, which gives -1.

    Example:
        >>> inferred_action(1, 1.0, 2), inferred_action(1, -1.0, 2), inferred_action(1, -1.0, 3)
        (1, 0, -1)
    """
    other = 1 - action if num_choices == 2 else -1
    return action * (reward > 0) + other * (reward <= 0)


SQUARE = LinearRule("square", square_step)
PERCEPTRON = LinearRule("perceptron", perceptron_step)
HINGE = LinearRule("hinge", hinge_step)
MAE = LinearRule("mae", mae_step)
EXPONENTIAL = LinearRule("exponential", exponential_step, norm_cap=10.0)
CROSS_ENTROPY = LinearRule("cross_entropy", cross_entropy_step)
REINFORCE = ReinforceRule()

PAPER_RULES: tuple[UpdateRule, ...] = (SQUARE, PERCEPTRON, HINGE, MAE, EXPONENTIAL, CROSS_ENTROPY, REINFORCE)
RULES: dict[str, UpdateRule] = {rule.name: rule for rule in (*PAPER_RULES, ExemplarRule(), PrototypeRule())}


def resolve_rule(rule: str | UpdateRule) -> UpdateRule:
    """A rule by name with the paper's parameters, or a rule itself.

    Raises:
        ValueError: On an unknown name.
        TypeError: When `rule` is neither a name nor a rule.

    Example:
        >>> resolve_rule("square").name
        'square'
    """
    if isinstance(rule, UpdateRule):
        return rule
    if not isinstance(rule, str):
        raise TypeError(f"rule must be the name of an update rule or an UpdateRule, got {type(rule).__name__}")
    if rule not in RULES:
        raise ValueError(f"unknown update rule {rule!r}; the rules are {', '.join(RULES)}")
    return RULES[rule]
