"""Batched simulation with torch tensors: all sessions and all rules of a subtask advance together, on any device.

A weight vector is a sum of shown features, so the preference for an image is the sum of coefficients C times inner
products with the images shown so far. Trials go in blocks of `BLOCK`: one gather of inner products gives a block's sums
over all trials before it; within the block a trial's coefficients are added to the few trials left. All is arithmetic
on rows of sessions, for every rule and action at once, and sums run in the order of the trials, so that equal weights
tie (a batched matrix product is faster, and breaks ties by the grouping of its sums). Everything is float64 by default.

Axes: R rules, S sessions, T trials, B trials of a block, N images, M actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

import numpy as np
import torch

from humanlike.learners.checks import Sessions
from humanlike.learners.simulation import matrices
from humanlike.learners.update_rules import (
    ExemplarRule,
    LinearRule,
    PrototypeRule,
    ReinforceRule,
    UpdateRule,
    inferred_action,
)

BLOCK = 10
CPU_SESSIONS, CPU_GATHER = 2700, 1000  # sessions at a time of a trial, and of a block's gather, which stays in cache
CHUNK_BYTES = 2**28  # of coefficients, on other devices


@dataclass(frozen=True)
class Outcome:
    """A trial of one rule in S sessions: its images' K_ii, the chosen actions, their preferences and rewards."""

    diagonal_S: torch.Tensor
    action_S: torch.Tensor
    chosen_MS: torch.Tensor
    own_S: torch.Tensor
    reward_S: torch.Tensor


class BatchedRule(Protocol):
    """How one rule acts on a batch of sessions, given the sums C·K of each action."""

    def preferences(self, sum_MS: torch.Tensor) -> torch.Tensor:
        """(M, S) preferences for the current image."""

    def learn(self, sum_MS: torch.Tensor, outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Coefficients of the current image, and (S,) factors of all coefficients after it, or None.

        The coefficients are (M, S), or (S,) where only the chosen action has one.
        """


class _Linear:
    def __init__(self, rule: LinearRule, alpha: float) -> None:
        self.rule, self.alpha = rule, alpha
        self.squared_norm_S: torch.Tensor | float = 0.0

    def preferences(self, sum_MS: torch.Tensor) -> torch.Tensor:
        return sum_MS

    def learn(self, sum_MS: torch.Tensor, outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor | None]:
        own_S = outcome.own_S
        g_S = self.alpha * self.rule.step(outcome.reward_S, own_S).to(own_S.dtype)
        if math.isinf(self.rule.norm_cap):
            return g_S, None
        squared_S = self.squared_norm_S + g_S * (2 * own_S + g_S * outcome.diagonal_S)
        self.squared_norm_S = squared_S.clamp(max=self.rule.norm_cap**2)
        over_S = squared_S > self.rule.norm_cap**2
        if not bool(over_S.any()):
            return g_S, None
        factor_S = torch.where(over_S, self.rule.norm_cap / squared_S.clamp(min=1e-300).sqrt(), 1.0)
        return g_S, factor_S


class _Reinforce:
    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def preferences(self, sum_MS: torch.Tensor) -> torch.Tensor:
        return sum_MS

    def learn(self, sum_MS: torch.Tensor, outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor | None]:
        weight_MS = (sum_MS - outcome.own_S).exp_()
        return (self.alpha * outcome.reward_S) * (outcome.chosen_MS * 1.0 - weight_MS / weight_MS.sum(0)), None


class _Inferred:
    """Stores the image under the inferred correct action: exemplars, whose similarities are summed."""

    def preferences(self, sum_MS: torch.Tensor) -> torch.Tensor:
        return sum_MS

    def learn(self, sum_MS: torch.Tensor, outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor | None]:
        correct_S = inferred_action(outcome.action_S, outcome.reward_S, len(sum_MS))
        return (correct_S == torch.arange(len(sum_MS), device=sum_MS.device)[:, None]).to(sum_MS.dtype), None


class _Prototype(_Inferred):
    def __init__(self) -> None:
        self.count_MS: torch.Tensor | float = 0.0
        self.q_MS: torch.Tensor | float = 0.0

    def preferences(self, sum_MS: torch.Tensor) -> torch.Tensor:
        n_MS = torch.clamp(torch.zeros_like(sum_MS) + self.count_MS, min=1.0)
        return sum_MS / n_MS - self.q_MS / (2.0 * n_MS * n_MS)

    def learn(self, sum_MS: torch.Tensor, outcome: Outcome) -> tuple[torch.Tensor, torch.Tensor | None]:
        g_MS, _ = super().learn(sum_MS, outcome)
        self.q_MS = self.q_MS + g_MS * (2.0 * sum_MS + outcome.diagonal_S)
        self.count_MS = self.count_MS + g_MS
        return g_MS, None


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


def choose(preference_RMS: torch.Tensor, coin_S: torch.Tensor) -> torch.Tensor:
    """(R, S) int8 index of the largest preference; among m exact ties number ⌊coin·m⌋."""
    if preference_RMS.shape[1] == 2:
        first_RS, second_RS = preference_RMS.unbind(1)
        return ((second_RS > first_RS) | ((second_RS == first_RS) & (coin_S >= 0.5))).to(torch.int8)
    tied_RMS = preference_RMS == preference_RMS.amax(1, keepdim=True)
    rank_RMS = tied_RMS.cumsum(1)
    count_RS = rank_RMS[:, -1]
    pick_RS = torch.minimum((coin_S * count_RS).long(), count_RS - 1)
    return (tied_RMS & (rank_RMS == pick_RS[:, None] + 1)).to(torch.int8).argmax(1).to(torch.int8)


def choose_by_share(preference_MS: torch.Tensor, coin_S: torch.Tensor, gamma: float) -> torch.Tensor:
    """(S,) action drawn by the coin with probabilities ∝ E^γ; all actions tie while nothing is stored."""
    largest_S = preference_MS.amax(0)
    below_MS = ((preference_MS / largest_S.clamp(min=1e-300)) ** gamma).cumsum(0)
    drawn_S = (coin_S * below_MS[-1] >= below_MS).sum(0, dtype=torch.int8).clamp(max=len(preference_MS) - 1)
    return torch.where(largest_S > 0, drawn_S, choose(preference_MS[None], coin_S)[0])


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
    kind = torch.device(device).type
    if kind == "mps" and dtype == torch.float64:
        raise ValueError("the simulation needs float64, which mps devices lack; leave device at None")
    S, T = sessions.order_ST.shape
    choices_RST = np.empty((len(rules), S, T), dtype=np.int8)
    step = CPU_SESSIONS if kind == "cpu" else max(1, CHUNK_BYTES // (8 * max(T, 1) * num_choices * len(rules)))
    step = -(-S // -(-S // step)) if S else step  # chunks of one size
    workspace = _Workspace(torch.device(device))
    for matrix, members in matrices(torch.from_numpy(gram_NN).to(device, dtype), rules):
        for start in range(0, S, step):
            rows = slice(start, start + step)
            part = Sessions(sessions.order_ST[rows], sessions.correct_ST[rows], sessions.coins_ST[rows])
            batch = _Batch(matrix, part, [rules[r] for r in members], alpha, num_choices, rewards, workspace)
            choices_RST[members, rows] = batch.run()
    return choices_RST


class _Workspace:
    """Memory that is used again by every block and every chunk: fresh pages cost as much as what is written to them."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._kept: dict[str, torch.Tensor] = {}

    def __call__(self, name: str, dtype: torch.dtype, *shape: int) -> torch.Tensor:
        """What was kept under a name, in another shape; made larger when it is too small. Holds anything."""
        count = math.prod(shape)
        if name not in self._kept or len(self._kept[name]) < count:
            self._kept[name] = torch.empty(count, dtype=dtype, device=self.device)
        return self._kept[name][:count].view(shape)


class _Batch:
    """A chunk of sessions of the rules that sum over one matrix, with their coefficients."""

    def __init__(
        self,
        matrix: torch.Tensor,
        sessions: Sessions,
        rules: Sequence[UpdateRule],
        alpha: float,
        num_choices: int,
        rewards: tuple[float, float],
        workspace: _Workspace,
    ) -> None:
        self.matrix, self.rules, self.M, self.workspace = matrix, rules, num_choices, workspace
        self.right, self.wrong, self.zero = (matrix.new_tensor(float(number)) for number in (*rewards, 0))
        self.whole = torch.int32 if matrix.numel() < 2**31 else torch.int64  # half of the memory to pass through
        self.order_TS = torch.from_numpy(np.ascontiguousarray(sessions.order_ST.T)).to(matrix.device, self.whole)
        self.correct_TS = torch.from_numpy(sessions.correct_ST.T.astype(np.int8)).to(matrix.device)
        self.coin_TS = torch.from_numpy(np.ascontiguousarray(sessions.coins_ST.T)).to(matrix)
        self.batched = [batched_rule(rule, alpha) for rule in rules]
        T, S = self.order_TS.shape
        self.C_TRMS = workspace("coefficients", matrix.dtype, T, len(rules), num_choices, S)
        self.actions_M1 = torch.arange(num_choices, device=matrix.device, dtype=torch.int8)[:, None]

    def run(self) -> np.ndarray:
        """(R, S, T) int8 choices."""
        T, S = self.order_TS.shape
        choices_TRS = torch.empty(T, len(self.rules), S, device=self.matrix.device, dtype=torch.int8)
        for t0 in range(0, T, BLOCK):
            t1 = min(t0 + BLOCK, T)
            sum_BRMS, within_BBS = self._before(t0, t1)
            g_BRMS = self.C_TRMS[t0:t1]
            for b in range(t1 - t0):
                choices_TRS[t0 + b] = self._trial(t0, b, sum_BRMS, g_BRMS, within_BBS[b, b])
                sum_BRMS[b + 1 :].addcmul_(g_BRMS[b], within_BBS[b, b + 1 :, None, None])
        return choices_TRS.permute(1, 2, 0).contiguous().cpu().numpy()

    def _before(self, t0: int, t1: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, R, M, S) sums over the trials before a block, and (B, B, S) inner products within it."""
        (_, S), B = self.order_TS.shape, t1 - t0
        sum_BRMS = self.matrix.new_empty(B, len(self.rules), self.M, S)
        within_BBS = self.matrix.new_empty(B, B, S)
        step = CPU_GATHER if self.matrix.device.type == "cpu" else S
        for start in range(0, S, step):
            rows = slice(start, start + step)
            order_TS = self.order_TS[:t1, rows]
            shape = (t1, B, order_TS.shape[1])
            index_tBS = self.workspace("indices", self.whole, *shape)
            K_tBS = self.workspace("entries", self.matrix.dtype, *shape)
            torch.add(order_TS[:, None], order_TS[None, t0:], alpha=len(self.matrix), out=index_tBS)
            torch.index_select(self.matrix.view(-1), 0, index_tBS.view(-1), out=K_tBS.view(-1))
            part_BRMS = sum_BRMS[..., rows]
            if t0:
                torch.mul(self.C_TRMS[0, ..., rows], K_tBS[0, :, None, None], out=part_BRMS)
            else:
                part_BRMS.zero_()
            for t in range(1, t0):
                part_BRMS.addcmul_(self.C_TRMS[t, ..., rows], K_tBS[t, :, None, None])
            within_BBS[..., rows] = K_tBS[t0:]
        return sum_BRMS, within_BBS

    def _trial(
        self, t0: int, b: int, sum_BRMS: torch.Tensor, g_BRMS: torch.Tensor, diagonal_S: torch.Tensor
    ) -> torch.Tensor:
        """(R, S) actions of trial b of a block, whose coefficients are filled in."""
        sum_RMS, coin_S = sum_BRMS[b], self.coin_TS[t0 + b]
        sums = sum_RMS.unbind()
        preferences = [rule.preferences(sum_MS) for rule, sum_MS in zip(self.batched, sums, strict=True)]
        same = all(given is sum_MS for given, sum_MS in zip(preferences, sums, strict=True))
        preference_RMS = sum_RMS if same else torch.stack(preferences)
        action_RS = choose(preference_RMS, coin_S)
        for r, rule in enumerate(self.rules):
            if isinstance(rule, ExemplarRule) and math.isfinite(rule.gamma):
                action_RS[r] = choose_by_share(preference_RMS[r], coin_S, rule.gamma)
        chosen_RMS, own_RS = action_RS[:, None] == self.actions_M1, preference_RMS.amax(1)
        reward_RS = torch.where(action_RS == self.correct_TS[t0 + b], self.right, self.wrong)
        outcomes = [Outcome(diagonal_S, *each) for each in zip(action_RS, chosen_RMS, own_RS, reward_RS, strict=True)]
        learned = [rule.learn(sums[r], outcomes[r]) for r, rule in enumerate(self.batched)]
        alone_RS = torch.stack([g if g.ndim == 1 else own for (g, _), own in zip(learned, own_RS, strict=True)])
        torch.where(chosen_RMS, alone_RS[:, None], self.zero, out=g_BRMS[b])
        for r, (g, factor_S) in enumerate(learned):
            if g.ndim == 2:
                g_BRMS[b, r] = g
            if factor_S is not None:
                self.C_TRMS[: t0 + b + 1, r] *= factor_S
                sum_BRMS[b + 1 :, r] *= factor_S
        return action_RS
