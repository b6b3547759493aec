"""One compiled trial of one rule for a few sessions at a time: from the sums of each action to its coefficient.

Every kind of rule is a compiled function of one signature, called by address (`lanes.call`), and a linear rule's step
is another, so that the kernel that drives them (`kernels`) is compiled once and cached on disk, whatever the rules.
Loops run over sessions without a branch on what a learner does, which no processor could predict. Their number, always
`LANES`, is a variable to the compiler: it makes vectors of loops that it cannot unroll.

Pointers of a trial, with M actions and L = LANES sessions:
    sums      (M, L) Σ C K of each action for the current image
    out       (M, L) coefficients of the current image, to be filled
    correct   (L,) correct action
    diagonal  (L,) K_ii
    lanes     (4, L) chosen action, its sum, its reward, its step, to be filled
    memory    (2M + 1, L) what the rule remembers of its sessions, zero at their start; the last row holds factors
    coins     coin of session j at j·stride
    numbers   rewards of a correct and of a wrong choice, α, and the rule's parameter

A trial returns 1 where all coefficients so far must be multiplied by the factors in the last row of `memory`, else 0.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

from humanlike.learners import update_rules
from humanlike.learners.compilation import OPTIONS, callback
from humanlike.learners.lanes import LANES, bits_of, call, from_bits, shifted

_P, _I = numba.types.CPointer(numba.float64), numba.int64
TRIAL = _I(*(_P,) * 7, _I, _P, _I, _I, _I)
STEP = _I(_P, _P, _P, _I)
_ROUND = 6755399441055744.0  # 1.5·2⁵²: adding it rounds to a whole number, which the lowest bits then hold
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_FACTORIALS = tuple(1.0 / math.factorial(n) for n in range(14))


@numba.njit(**OPTIONS)
def _power_of_two(n: float) -> float:
    return from_bits((bits_of(n + _ROUND) + 1023) << 52)


@numba.njit(**OPTIONS)
def exponential(x: float) -> float:
    """e^x to within 1 unit in the last place, in arithmetic alone so that loops over lanes stay vectors.

    x = n ln 2 + r with |r| ≤ ½ ln 2, e^r by its series to r¹³/13! (the rest is below 5·10⁻¹⁸), and 2ⁿ as a product of
    two powers, which reaches infinity and the subnormal numbers.
    """
    x = 720.0 if x > 720.0 else x
    x = -760.0 if x < -760.0 else x
    n = (x * 1.4426950408889634 + _ROUND) - _ROUND
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = _INVERSE_FACTORIALS[13]
    for k in range(12, 1, -1):
        p = p * r + _INVERSE_FACTORIALS[k]
    half = (n * 0.5 + _ROUND) - _ROUND
    return (1.0 + (r + r * r * p)) * _power_of_two(half) * _power_of_two(n - half)


@overload(update_rules.exp, strict=False)
def _compiled_exp(x: Any) -> Callable[[Any], Any]:
    """e^x inside compiled code."""
    return lambda x: exponential(x)


@functools.lru_cache(maxsize=256)
def compiled_step(step: Callable[[Any, Any], Any]) -> Any:
    """A linear rule's step as a compiled function of pointers to rewards, preferences and (filled) steps of the lanes.

    Raises:
        ValueError: When the step cannot be compiled.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", numba.NumbaWarning)
            scalar = numba.njit(**OPTIONS)(step)

            @numba.cfunc(STEP, **OPTIONS)
            def steps(reward: Any, preference: Any, out: Any, count: int) -> int:
                for j in range(count):
                    out[j] = scalar(reward[j], preference[j])
                return 0

            return steps
    except (numba.core.errors.NumbaError, TypeError, AttributeError) as error:
        raise ValueError(
            f"the step {getattr(step, '__name__', step)!r} of an update rule cannot be compiled; write it with "
            f"arithmetic, comparisons and humanlike.learners.update_rules.exp, or pass device='cpu': {error}"
        ) from error


@numba.njit(**OPTIONS)
def _choose(preference: Any, lanes: Any, coins: Any, stride: int, M: int, count: int) -> None:
    """Fill in each lane the action of the largest preference, of m exact ties number ⌊coin·m⌋, and that preference."""
    action, own = lanes, shifted(lanes, LANES)
    ties = 0
    second = shifted(preference, LANES)
    for j in range(count):
        x, y = preference[j], second[j]
        action[j] = 1.0 if y > x else 0.0
        own[j] = max(x, y)
        ties += x == y
    for a in range(2, M):
        other = shifted(preference, a * LANES)
        for j in range(count):
            x, y = own[j], other[j]
            action[j] = float(a) if y > x else action[j]
            own[j] = max(x, y)
            ties += x == y
    if ties > 0:
        for j in range(count):
            tied = 0
            for a in range(M):
                tied += preference[a * LANES + j] == own[j]
            left = min(int(coins[j * stride] * tied), tied - 1)
            for a in range(M):
                if preference[a * LANES + j] == own[j]:
                    if left == 0:
                        action[j] = float(a)
                    left -= 1


@numba.njit(**OPTIONS)
def _reward(correct: Any, lanes: Any, numbers: Any, count: int) -> None:
    action, reward, right, wrong = lanes, shifted(lanes, 2 * LANES), numbers[0], numbers[1]
    for j in range(count):
        reward[j] = right if action[j] == correct[j] else wrong


@callback(TRIAL)
def linear(
    sums: Any,
    out: Any,
    correct: Any,
    diagonal: Any,
    lanes: Any,
    memory: Any,
    coins: Any,
    stride: int,
    numbers: Any,
    step: int,
    M: int,
    count: int,
) -> int:
    """A rule that moves the chosen action's weights by α step(reward, preference); the parameter caps their norm.

    The squared norm of all weights, row 0 of the memory, follows from ‖W + g x‖² = ‖W‖² + 2 g l_a + g² K_ii.
    """
    action, own, reward, g = (
        lanes,
        shifted(lanes, LANES),
        shifted(lanes, 2 * LANES),
        shifted(lanes, 3 * LANES),
    )
    _choose(sums, lanes, coins, stride, M, count)
    _reward(correct, lanes, numbers, count)
    call(step, (reward, own, g, count))
    alpha, cap = numbers[2], numbers[3]
    for a in range(M):
        place = shifted(out, a * LANES)
        for j in range(count):
            place[j] = alpha * g[j] if action[j] == float(a) else 0.0
    over = 0
    if cap < np.inf:
        factor = shifted(memory, 2 * M * LANES)
        for j in range(count):
            change = alpha * g[j]
            memory[j] += 2.0 * change * own[j] + change * change * diagonal[j]
            over += memory[j] > cap * cap
        if over > 0:
            for j in range(count):
                factor[j] = cap / math.sqrt(memory[j]) if memory[j] > cap * cap else 1.0
                memory[j] = min(memory[j], cap * cap)
    return int(over > 0)


@callback(TRIAL)
def reinforce(
    sums: Any,
    out: Any,
    correct: Any,
    diagonal: Any,
    lanes: Any,
    memory: Any,
    coins: Any,
    stride: int,
    numbers: Any,
    step: int,
    M: int,
    count: int,
) -> int:
    """The policy gradient, which moves every action's weights by α r (1[i = a] - softmax(l)_i)."""
    action, own, reward, total = (
        lanes,
        shifted(lanes, LANES),
        shifted(lanes, 2 * LANES),
        shifted(lanes, 3 * LANES),
    )
    _choose(sums, lanes, coins, stride, M, count)
    _reward(correct, lanes, numbers, count)
    alpha = numbers[2]
    if M == 2:  # e^0 = 1 of the chosen action needs no exponential
        first, second, more = sums, shifted(sums, LANES), shifted(out, LANES)
        for j in range(count):
            other = exponential(min(first[j], second[j]) - own[j])
            total[j] = 1.0 + other
            out[j] = 1.0 if action[j] == 0.0 else other
            more[j] = 1.0 if action[j] == 1.0 else other
    else:
        for j in range(count):
            total[j] = 0.0
        for a in range(M):
            weight, preference = shifted(out, a * LANES), shifted(sums, a * LANES)
            for j in range(count):
                weight[j] = exponential(preference[j] - own[j])
                total[j] += weight[j]
    for a in range(M):
        weight = shifted(out, a * LANES)
        for j in range(count):
            weight[j] = alpha * reward[j] * ((1.0 if action[j] == float(a) else 0.0) - weight[j] / total[j])
    return 0


@numba.njit(**OPTIONS)
def _store(out: Any, lanes: Any, M: int, count: int) -> None:
    """Coefficient 1 of the action inferred to be correct (see `update_rules.inferred_action`)."""
    action, reward = lanes, shifted(lanes, 2 * LANES)
    for a in range(M):
        place = shifted(out, a * LANES)
        for j in range(count):
            seen = reward[j] > 0.0
            place[j] = 1.0 if (action[j] == float(a)) == seen and (seen or M == 2) else 0.0


@callback(TRIAL)
def exemplar(
    sums: Any,
    out: Any,
    correct: Any,
    diagonal: Any,
    lanes: Any,
    memory: Any,
    coins: Any,
    stride: int,
    numbers: Any,
    step: int,
    M: int,
    count: int,
) -> int:
    """The exemplar rule, whose sums are those of similarities; the parameter is γ."""
    action, own, gamma = lanes, shifted(lanes, LANES), numbers[3]
    _choose(sums, lanes, coins, stride, M, count)
    if gamma < np.inf:
        for j in range(count):
            if own[j] > 0.0:
                total, below = 0.0, 0.0
                for a in range(M):
                    total += (sums[a * LANES + j] / own[j]) ** gamma
                chosen = -1
                for a in range(M):
                    below += (sums[a * LANES + j] / own[j]) ** gamma
                    if chosen < 0 and (coins[j * stride] * total < below or a == M - 1):
                        chosen = a
                action[j] = float(chosen)
    _reward(correct, lanes, numbers, count)
    _store(out, lanes, M, count)
    return 0


@callback(TRIAL)
def prototype(
    sums: Any,
    out: Any,
    correct: Any,
    diagonal: Any,
    lanes: Any,
    memory: Any,
    coins: Any,
    stride: int,
    numbers: Any,
    step: int,
    M: int,
    count: int,
) -> int:
    """The prototype rule. Memory: n_a images and q_a = ΣΣ K_jk of each action, so that l_a = s_a/n_a - q_a/(2 n_a²)."""
    squares = shifted(memory, M * LANES)
    for j in range(M * count):  # the coefficients' place holds the preferences until they are known
        n = max(memory[j], 1.0)
        out[j] = sums[j] / n - squares[j] / (2.0 * n * n)
    _choose(out, lanes, coins, stride, M, count)
    _reward(correct, lanes, numbers, count)
    _store(out, lanes, M, count)
    for a in range(M):
        for j in range(count):
            k = a * LANES + j
            squares[k] += out[k] * (2.0 * sums[k] + diagonal[j])
            memory[k] += out[k]
    return 0
