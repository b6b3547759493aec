"""Restraint towards an endpoint: budget, back-off, and a circuit breaker that all threads of a client share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from humanlike.elements.client_errors import BudgetError, EndpointDownError

Clock = Callable[[], float]


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: exponential, with jitter, never shorter than the endpoint asks for.

    Attributes:
        base: Seconds before the second attempt, before jitter.
        longest: Longest wait in seconds, before jitter.
        seed: Seed of the jitter.

    Example:
        >>> wait = Backoff(base=1.0, longest=8.0)
        >>> [0.5 * 2**n <= wait.seconds("q", n) < 2**n for n in range(3)], 20 <= wait.seconds("q", 0, 20.0) < 21
        ([True, True, True], True)
    """

    base: float = 0.5
    longest: float = 60.0
    seed: int = 0

    def seconds(self, question: str, attempt: int, retry_after: float | None = None) -> float:
        """Seconds to wait after attempt number `attempt` (from 0) at a question.

        Args:
            question: Key of the question; with it the jitter differs between questions, and repeats in a replay.
            attempt: Failed attempts before this one.
            retry_after: Seconds that the endpoint asked for.
        """
        from humanlike.rng import generator  # brings torch, which a client that meets no failure can do without

        u = float(generator(self.seed, "backoff", question, attempt).random())
        if retry_after is not None:
            return retry_after + u * self.base
        return min(self.longest, self.base * 2.0**attempt) * (0.5 + 0.5 * u)


class Budget:
    """A cap on requests and tokens, counted before a request is sent.

    A request reserves an estimate of its tokens, which its reply replaces by what was used; a request without such a
    statement keeps the estimate. The cap on tokens can therefore be passed by the error of the estimate only.

    Args:
        requests: Most requests, every attempt counts; None: no cap.
        tokens: Most tokens, of prompts and answers; None: no cap.

    Raises:
        ValueError: A cap is negative.
    """

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        if (requests or 0) < 0 or (tokens or 0) < 0:
            raise ValueError(f"a budget is a number of requests and one of tokens, 0 or more; got {requests}, {tokens}")
        self.max_requests, self.max_tokens = requests, tokens
        self.requests = self.tokens = self.reserved = 0
        self._lock = threading.Lock()

    def reserve(self, tokens: int) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetError: It would exceed the budget; it must not be sent.
        """
        with self._lock:
            if self.max_requests is not None and self.requests >= self.max_requests:
                raise BudgetError(self._spent(f"{self.max_requests} requests"))
            if self.max_tokens is not None and self.tokens + self.reserved + tokens > self.max_tokens:
                raise BudgetError(self._spent(f"{self.max_tokens} tokens"))
            self.requests += 1
            self.reserved += tokens

    def settle(self, reserved: int, used: int | None) -> None:
        """Replace an estimate by what was used; None: the estimate stands."""
        with self._lock:
            self.reserved -= reserved
            self.tokens += reserved if used is None else used

    def _spent(self, cap: str) -> str:
        return (
            f"the budget of {cap} is used up ({self.requests} requests, {self.tokens} tokens used, {self.reserved} "
            "reserved); answers so far are kept: raise the budget and start again to continue"
        )


class CircuitBreaker:
    """Stops asking an endpoint that keeps failing, tries it with one request after a pause, and gives up in the end.

    Args:
        failures: Failures in a row, over all threads, that open it; rate limits are none.
        pause: Seconds that it stays open at first; doubled at every failed trial.
        trials: Failed trials in a row after which it gives up.
        clock: Time in seconds.

    Raises:
        ValueError: A number is out of range.
    """

    def __init__(self, failures: int = 20, pause: float = 10.0, trials: int = 4, clock: Clock = time.monotonic) -> None:
        if failures < 1 or trials < 1 or pause < 0:
            raise ValueError(f"a breaker needs failures ≥ 1, trials ≥ 1, pause ≥ 0; got {failures}, {trials}, {pause}")
        self.failures, self.pause, self.trials, self.clock = failures, pause, trials, clock
        self._lock = threading.Lock()
        self._row = self._failed_trials = 0
        self._trial = False
        self._open_until: float | None = None
        self._hold_until = float("-inf")

    def wait_time(self) -> float:
        """Seconds to wait before a request may be sent; 0: send it, and report how it went.

        Raises:
            EndpointDownError: It gave up.
        """
        with self._lock:
            if self._failed_trials >= self.trials:
                raise EndpointDownError(
                    f"the endpoint failed {self._row} times in a row, and at {self._failed_trials} later trials; "
                    "answers so far are kept: see that it works, and start again to continue"
                )
            now = self.clock()
            if now < self._hold_until:
                return self._hold_until - now
            if self._open_until is None:
                return 0.0
            if now < self._open_until:
                return self._open_until - now
            if self._trial:
                return 0.05  # another thread is trying
            self._trial = True
            return 0.0

    def hold(self, seconds: float) -> None:
        """Nobody sends anything for a while, as the endpoint asked."""
        with self._lock:
            self._hold_until = max(self._hold_until, self.clock() + seconds)

    def worked(self) -> None:
        """A request was answered, be it by a rejection: the endpoint works."""
        with self._lock:
            self._row = self._failed_trials = 0
            self._open_until, self._trial = None, False

    def failed(self) -> None:
        """A request failed on the endpoint's side."""
        with self._lock:
            self._row += 1
            if self._trial:
                self._failed_trials += 1
                self._trial = False
            elif self._open_until is not None or self._row < self.failures:
                return  # a request that was on its way when it opened, or not enough of them
            self._open_until = self.clock() + self.pause * 2.0**self._failed_trials

    def abandoned(self) -> None:
        """A request that was allowed is not sent after all."""
        with self._lock:
            self._trial = False


class SingleFlight:
    """Lets threads with the same key pass one after another, so that the second finds the answer of the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def __call__(self, key: str) -> Iterator[None]:
        """Hold `key`."""
        with self._lock:
            lock, users = self._locks.get(key, (threading.Lock(), 0))
            self._locks[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._locks[key]
                if users == 1:
                    del self._locks[key]
                else:
                    self._locks[key] = (lock, users - 1)
