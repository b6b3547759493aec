"""Batched simulation with torch tensors: all sessions and all rules of a subtask advance together, on any device.

A weight vector is a sum of shown features, so the preference for an image is the sum of coefficients C times inner
products with the images shown so far: per trial one batched matrix product for all rules, then a few operations on
(rules, sessions, actions) tensors. Everything is float64 by default, as the compiled path.

Axes: R rules, S sessions, T trials, N images, M actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Protocol

import numpy as np
import torch

from humanlike.learners.checks import Sessions
from humanlike.learners.simulation import squared_distances
from humanlike.learners.update_rules import (
    ExemplarRule,
    LinearRule,
    PrototypeRule,
    ReinforceRule,
    UpdateRule,
    inferred_action,
)

CHUNK_BYTES = 2**28


class BatchedRule(Protocol):
    """How one rule acts on a batch of sessions, given the sums C·K of each action."""

    def preferences(self, sum_SM: torch.Tensor) -> torch.Tensor:
        """(S, M) preferences for the current image."""

    def learn(
        self, sum_SM: torch.Tensor, action_S: torch.Tensor, reward_S: torch.Tensor, diagonal_S: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(S, M) coefficients of the current image, and (S,) factors of all coefficients after it, or None."""


def _one_hot(action_S: torch.Tensor, num_choices: int) -> torch.Tensor:
    return action_S[:, None] == torch.arange(num_choices, device=action_S.device)


class _Linear:
    def __init__(self, rule: LinearRule, alpha: float) -> None:
        self.rule, self.alpha = rule, alpha
        self.squared_norm_S = torch.zeros(())

    def preferences(self, sum_SM: torch.Tensor) -> torch.Tensor:
        return sum_SM

    def learn(
        self, sum_SM: torch.Tensor, action_S: torch.Tensor, reward_S: torch.Tensor, diagonal_S: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        own_S = sum_SM.gather(1, action_S[:, None])[:, 0]
        g_S = self.alpha * self.rule.step(reward_S, own_S).to(sum_SM.dtype)
        g_SM = torch.zeros_like(sum_SM).scatter_(1, action_S[:, None], g_S[:, None])
        if math.isinf(self.rule.norm_cap):
            return g_SM, None
        self.squared_norm_S = self.squared_norm_S.to(g_S) + 2 * g_S * own_S + g_S.square() * diagonal_S
        over_S = self.squared_norm_S > self.rule.norm_cap**2
        if not bool(over_S.any()):
            return g_SM, None
        factor_S = torch.where(over_S, self.rule.norm_cap / self.squared_norm_S.clamp(min=1e-300).sqrt(), 1.0)
        self.squared_norm_S = torch.where(over_S, self.rule.norm_cap**2, self.squared_norm_S)
        return g_SM, factor_S


class _Reinforce:
    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def preferences(self, sum_SM: torch.Tensor) -> torch.Tensor:
        return sum_SM

    def learn(
        self, sum_SM: torch.Tensor, action_S: torch.Tensor, reward_S: torch.Tensor, diagonal_S: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        chosen_SM = _one_hot(action_S, sum_SM.shape[1]).to(sum_SM.dtype)
        return self.alpha * reward_S[:, None] * (chosen_SM - sum_SM.softmax(1)), None


class _Inferred:
    """Stores the image under the inferred correct action: exemplars, whose similarities are summed."""

    def preferences(self, sum_SM: torch.Tensor) -> torch.Tensor:
        return sum_SM

    def learn(
        self, sum_SM: torch.Tensor, action_S: torch.Tensor, reward_S: torch.Tensor, diagonal_S: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        correct_S = inferred_action(action_S, reward_S, sum_SM.shape[1])
        return _one_hot(correct_S, sum_SM.shape[1]).to(sum_SM.dtype), None


class _Prototype(_Inferred):
    def __init__(self) -> None:
        self.count_SM: torch.Tensor | float = 0.0
        self.q_SM: torch.Tensor | float = 0.0

    def preferences(self, sum_SM: torch.Tensor) -> torch.Tensor:
        n_SM = torch.clamp(torch.zeros_like(sum_SM) + self.count_SM, min=1.0)
        return sum_SM / n_SM - self.q_SM / (2.0 * n_SM * n_SM)

    def learn(
        self, sum_SM: torch.Tensor, action_S: torch.Tensor, reward_S: torch.Tensor, diagonal_S: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        g_SM, _ = super().learn(sum_SM, action_S, reward_S, diagonal_S)
        self.q_SM = self.q_SM + g_SM * (2.0 * sum_SM + diagonal_S[:, None])
        self.count_SM = self.count_SM + g_SM
        return g_SM, None


@singledispatch
def batched_rule(rule: UpdateRule, alpha: float) -> BatchedRule:
    """A rule's action on a batch of sessions, before the first trial; register one for a kind of one's own."""
    raise TypeError(
        f"there is no batched simulation of a {type(rule).__name__}; use humanlike.learners.simulate_direct"
    )


@batched_rule.register
def _linear(rule: LinearRule, alpha: float) -> BatchedRule:
    return _Linear(rule, alpha)


@batched_rule.register
def _reinforce(rule: ReinforceRule, alpha: float) -> BatchedRule:
    return _Reinforce(alpha)


@batched_rule.register
def _exemplar(rule: ExemplarRule, alpha: float) -> BatchedRule:
    return _Inferred()


@batched_rule.register
def _prototype(rule: PrototypeRule, alpha: float) -> BatchedRule:
    return _Prototype()


def choose(preference_BM: torch.Tensor, coin_B: torch.Tensor) -> torch.Tensor:
    """(B,) index of the largest preference; among m exact ties number ⌊coin·m⌋. B may be several axes."""
    tied_BM = preference_BM == preference_BM.amax(-1, keepdim=True)
    rank_BM = tied_BM.cumsum(-1)
    count_B = rank_BM[..., -1]
    pick_B = torch.minimum((coin_B * count_B).long(), count_B - 1)
    return (tied_BM & (rank_BM == pick_B[..., None] + 1)).to(torch.int8).argmax(-1)


def choose_by_share(preference_SM: torch.Tensor, coin_S: torch.Tensor, gamma: float) -> torch.Tensor:
    """(S,) action drawn by the coin with probabilities ∝ E^γ; all actions tie while nothing is stored."""
    largest_S1 = preference_SM.amax(1, keepdim=True)
    below_SM = ((preference_SM / largest_S1.clamp(min=1e-300)) ** gamma).cumsum(1)
    drawn_S = (coin_S[:, None] * below_SM[:, -1:] >= below_SM).sum(1).clamp(max=preference_SM.shape[1] - 1)
    return torch.where(largest_S1[:, 0] > 0, drawn_S, choose(preference_SM, coin_S))


def simulate_batched(
    gram_NN: np.ndarray,
    sessions: Sessions,
    rules: Sequence[UpdateRule],
    alpha: float,
    num_choices: int,
    rewards: tuple[float, float],
    device: str | torch.device,
    dtype: torch.dtype = torch.float64,
) -> np.ndarray:
    """(R, S, T) int8 choices of checked sessions; see `simulation.simulate_gram`."""
    if torch.device(device).type == "mps" and dtype == torch.float64:
        raise ValueError("the simulation needs float64, which mps devices lack; leave device at None")
    trials = sessions.order_ST.shape[1]
    step = max(1, CHUNK_BYTES // (8 * max(trials, 1) * num_choices * len(rules)))
    parts = []
    for start in range(0, len(sessions.order_ST), step):
        rows = slice(start, start + step)
        part = Sessions(sessions.order_ST[rows], sessions.correct_ST[rows], sessions.coins_ST[rows])
        parts.append(_Batch(gram_NN, part, rules, alpha, num_choices, rewards, device, dtype).run())
    return np.concatenate(parts, 1) if parts else np.empty((len(rules), 0, trials), dtype=np.int8)


class _Batch:
    """A chunk of sessions of all rules, with the coefficients of each kind of matrix they sum over."""

    def __init__(
        self,
        gram_NN: np.ndarray,
        sessions: Sessions,
        rules: Sequence[UpdateRule],
        alpha: float,
        num_choices: int,
        rewards: tuple[float, float],
        device: str | torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.rules, self.M, self.rewards = rules, num_choices, rewards
        self.order_TS = torch.from_numpy(np.ascontiguousarray(sessions.order_ST.T)).to(device)
        self.correct_TS = torch.from_numpy(np.ascontiguousarray(sessions.correct_ST.T)).to(device)
        self.coin_TS = torch.from_numpy(np.ascontiguousarray(sessions.coins_ST.T)).to(device, dtype)
        gram = torch.from_numpy(gram_NN).to(device, dtype)
        self.N, self.diagonal_N = len(gram), gram.diagonal()
        self.batched = [batched_rule(rule, alpha) for rule in rules]
        S, T = sessions.order_ST.shape
        self.groups: list[tuple[torch.Tensor, list[int], torch.Tensor]] = []  # flat matrix, its rules, coefficients
        linear = [r for r, rule in enumerate(rules) if not isinstance(rule, ExemplarRule)]
        matrices = [(gram, linear)] if linear else []
        matrices += [
            (rule.similarity(squared_distances(gram)), [r])
            for r, rule in enumerate(rules)
            if isinstance(rule, ExemplarRule)
        ]
        for matrix, members in matrices:
            C = torch.zeros(S, len(members) * num_choices, T, device=device, dtype=dtype)
            self.groups.append((matrix.reshape(-1), members, C))

    def run(self) -> np.ndarray:
        """(R, S, T) int8 choices."""
        T, S = self.order_TS.shape
        choices_TRS = torch.empty(T, len(self.rules), S, device=self.order_TS.device, dtype=torch.int8)
        for t in range(T):
            sums_RSM = self._sums(t)
            preference_RSM = torch.stack([b.preferences(sums_RSM[r]) for r, b in enumerate(self.batched)])
            action_RS = self._choose(preference_RSM, self.coin_TS[t])
            choices_TRS[t] = action_RS
            reward_RS = torch.where(action_RS == self.correct_TS[t], *self.rewards).to(sums_RSM.dtype)
            self._learn(t, sums_RSM, action_RS, reward_RS)
        return choices_TRS.permute(1, 2, 0).contiguous().cpu().numpy()

    def _sums(self, t: int) -> torch.Tensor:
        """(R, S, M) sums of coefficients times inner products (or similarities) with the current image."""
        S = self.order_TS.shape[1]
        sums_RSM = self.diagonal_N.new_empty(len(self.rules), S, self.M)
        index_St = (self.order_TS[t] * self.N + self.order_TS[:t]).T
        for flat, members, C in self.groups:
            product_SK = torch.bmm(C[:, :, :t], flat[index_St][:, :, None])[:, :, 0]
            sums_RSM[members] = product_SK.view(S, len(members), self.M).transpose(0, 1)
        return sums_RSM

    def _choose(self, preference_RSM: torch.Tensor, coin_S: torch.Tensor) -> torch.Tensor:
        action_RS = choose(preference_RSM, coin_S.expand(preference_RSM.shape[:2]))
        for r, rule in enumerate(self.rules):
            if isinstance(rule, ExemplarRule) and math.isfinite(rule.gamma):
                action_RS[r] = choose_by_share(preference_RSM[r], coin_S, rule.gamma)
        return action_RS

    def _learn(self, t: int, sums_RSM: torch.Tensor, action_RS: torch.Tensor, reward_RS: torch.Tensor) -> None:
        diagonal_S = self.diagonal_N[self.order_TS[t]]
        for _, members, C in self.groups:
            for place, r in enumerate(members):
                own = slice(place * self.M, (place + 1) * self.M)
                g_SM, factor_S = self.batched[r].learn(sums_RSM[r], action_RS[r], reward_RS[r], diagonal_S)
                C[:, own, t] = g_SM
                if factor_S is not None:
                    C[:, own, : t + 1] *= factor_S[:, None, None]
