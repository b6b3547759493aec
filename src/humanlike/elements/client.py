"""A client of chat endpoints that speak OpenAI's protocol: patient with the endpoint, strict with the answers.

Answers are checked before they count, kept on disk the moment they pass, and never asked for again.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from humanlike.elements.cache import AnswerCache, Failure
from humanlike.elements.client_credential import checked_address, credential
from humanlike.elements.client_errors import (
    EndpointDownError,
    EndpointError,
    InvalidAnswerError,
    RefusedError,
    RejectedError,
    TransientError,
)
from humanlike.elements.client_limits import Backoff, Budget, CircuitBreaker, SingleFlight
from humanlike.elements.client_questions import Outcome, Question, Reply, Structured
from humanlike.elements.client_transport import Transport

REPLIES = 2  # a reply that cannot be used is asked for once more
REJECTIONS = 5  # so many rejected requests without any answer mean that the form of the request is not understood
_LOG = logging.getLogger(__name__)


class _StoppedError(Exception):
    """The run is being stopped; what was not sent stays unsent."""


class ChatClient:
    """Asks questions of one model, many at a time.

    Args:
        model: Name of the model at the endpoint.
        base_url: Address of the endpoint, mostly ending in /v1.
        credential_env: Environment variable that holds the key; None: none is sent.
        needs_credential: Whether the address needs a key; None: where it is neither this machine nor a private network.
        cache: SQLite file of answers; None: answers are kept for the life of this object.
        parameters: Parameters of every request, such as temperature, max_tokens or seed.
        structured: How the form of an answer is asked for: by "json_schema", as "json_object", or in words alone
            ("none"). The check of the answer is the same.
        revision: What else distinguishes the model (quantisation, date); a part of the key of an answer.
        concurrency: Requests at a time.
        timeout: Seconds after which a request has failed.
        max_attempts: Attempts at a request that fails in a way that may pass.
        max_wait: Longest wait in seconds that an endpoint may ask for.
        budget_requests: Most requests, every attempt counts; None: no cap.
        budget_tokens: Most tokens; None: no cap.
        retry_failures: Whether questions that were refused, or answered in vain twice, in earlier runs are asked again.
        backoff: Waits between attempts; None: the usual ones.
        breaker: What stops asking an endpoint that keeps failing; None: the usual one.

    Raises:
        CredentialError: No key where one is needed; nothing was sent.
        ValueError: An argument is out of range.
        ModuleNotFoundError: httpx is not installed.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        credential_env: str | None = "OPENAI_API_KEY",
        needs_credential: bool | None = None,
        cache: str | Path | None = None,
        parameters: Mapping[str, Any] | None = None,
        structured: Structured = "json_schema",
        revision: str = "",
        concurrency: int = 8,
        timeout: float = 60.0,
        max_attempts: int = 6,
        max_wait: float = 120.0,
        budget_requests: int | None = None,
        budget_tokens: int | None = None,
        retry_failures: bool = False,
        backoff: Backoff | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        if structured not in ("json_schema", "json_object", "none"):
            raise ValueError(f"structured is {structured!r}; it can be json_schema, json_object or none")
        if not model or concurrency < 1 or timeout <= 0 or max_attempts < 1 or max_wait < 0:
            raise ValueError(
                "a client needs a model, concurrency ≥ 1, timeout > 0, max_attempts ≥ 1 and max_wait ≥ 0; got "
                f"{model!r}, {concurrency}, {timeout}, {max_attempts}, {max_wait}"
            )
        self.model, self.revision, self.structured = model, revision, structured
        self.base_url = checked_address(base_url)
        self.parameters = {name: value for name, value in (parameters or {}).items() if value is not None}
        if {"messages", "model", "stream", "response_format", "n"} & set(self.parameters):
            raise ValueError("parameters cannot set messages, model, stream, n or response_format; the client does")
        self.concurrency, self.max_attempts, self.max_wait = concurrency, max_attempts, max_wait
        self.retry_failures = retry_failures
        self.backoff, self.breaker = backoff or Backoff(), breaker or CircuitBreaker()
        self.budget = Budget(budget_requests, budget_tokens)
        key = credential(self.base_url, credential_env, needs_credential)
        self._transport = Transport(self.base_url, key, timeout, concurrency)
        self.cache = AnswerCache(":memory:" if cache is None else cache)
        self._flight, self._lock = SingleFlight(), threading.Lock()
        self._counts: Counter[str] = Counter()

    @property
    def source(self) -> str:
        """Model and, where stated, revision."""
        return f"{self.model} ({self.revision})" if self.revision else self.model

    @property
    def counts(self) -> dict[str, int]:
        """What happened how often: `requests`, `tokens`, `answered`, `kept` (from the cache), `refused` and others."""
        with self._lock:
            return {**self._counts, "requests": self.budget.requests, "tokens": self.budget.tokens}

    def close(self) -> None:
        """Close connections and cache."""
        self._transport.close()
        self.cache.close()

    def __enter__(self) -> ChatClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, question: Question) -> Outcome:
        """Ask one question; see `ask_all`."""
        return self._settled(0, question, threading.Event())

    def ask_all(self, questions: Iterable[Question]) -> Iterator[Outcome]:
        """Ask questions, `concurrency` at a time, and give what came of each as soon as it is there.

        Questions are taken from the iterable as they are sent, so that any number of them needs little memory. A
        failure of one question is an outcome with a reason; an error that concerns all of them is raised, after the
        requests on their way are finished and their answers kept.

        Args:
            questions: The questions.

        Yields:
            One outcome a question, in the order in which they are finished; `index` is the position of the question.

        Raises:
            EndpointError: The run cannot go on: see its subclasses.
        """
        source = enumerate(questions)
        taking, stop = threading.Lock(), threading.Event()
        finished: queue.Queue[Outcome | BaseException | None] = queue.Queue(maxsize=2 * self.concurrency)

        def hand_over(item: Outcome | BaseException | None) -> None:
            while not stop.is_set():
                try:
                    finished.put(item, timeout=0.1)
                except queue.Full:
                    continue
                return

        def work() -> None:
            try:
                while not stop.is_set():
                    with taking:
                        taken = next(source, None)
                    if taken is None:
                        break
                    hand_over(self._settled(*taken, stop))
            except _StoppedError:
                pass
            except BaseException as error:  # whatever it is, the caller gets it
                hand_over(error)
            hand_over(None)

        threads = [threading.Thread(target=work, daemon=True, name=f"ask-{i}") for i in range(self.concurrency)]
        try:
            for thread in threads:
                thread.start()
            working = len(threads)
            while working:
                item = finished.get()
                if item is None:
                    working -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def _settled(self, index: int, question: Question, stop: threading.Event) -> Outcome:
        """The answer from the cache or from the endpoint, or why there is none."""
        key = question.key(self.model, self.revision, self.parameters, self.structured)
        with self._flight(key):
            known = self.cache.get(key)
            if known is not None:
                self._count("kept")
                return Outcome(index, known, kept=True)
            failure = self.cache.failure(key) if not self.retry_failures else None
            if failure is not None and (failure.final or failure.attempts >= REPLIES):
                self._count("kept_failures")
                return Outcome(index, None, failure.reason, kept=True)
            return self._asked(index, key, question, failure, stop)

    def _asked(
        self, index: int, key: str, question: Question, failure: Failure | None, stop: threading.Event
    ) -> Outcome:
        attempts, reason = (failure.attempts, failure.reason) if failure else (0, "")
        while attempts < REPLIES:
            try:
                reply = self._delivered(key, question, reason, stop)
            except RefusedError as error:
                self._count("refused")
                self._keep_failure(key, question, Failure(attempts + 1, True, str(error)))
                return Outcome(index, None, str(error))
            except (RejectedError, TransientError, _PictureError) as error:
                return Outcome(index, None, str(error))  # not kept: another run may have more luck
            try:
                answer = question.check(reply)
            except InvalidAnswerError as error:
                attempts, reason = attempts + 1, str(error)
                self._count("unusable")
                self._keep_failure(key, question, Failure(attempts, False, reason))
            else:
                self.cache.put(key, answer, self.source, question.topic, reply.used)
                self._count("answered")
                return Outcome(index, answer)
        return Outcome(index, None, reason)

    def _delivered(self, key: str, question: Question, reason: str, stop: threading.Event) -> Reply:
        """A reply, after as many attempts as it takes and is allowed."""
        try:
            body = question.body(self.model, self.parameters, self.structured, reason)
        except (OSError, ValueError) as error:
            raise _PictureError(f"the image could not be read: {error}") from error
        for attempt in range(self.max_attempts):
            try:
                return self._sent(question, body, stop)
            except TransientError as error:
                self._count("rate_limited" if error.rate_limited else "failed")
                asked = error.retry_after
                if asked is not None and asked > self.max_wait:
                    raise EndpointDownError(
                        f"{self.base_url}: {error}; it asks to wait {asked:.0f} s, longer than max_wait="
                        f"{self.max_wait:g}; answers so far are kept: start again later to continue"
                    ) from None
                if asked is not None and error.rate_limited:
                    self.breaker.hold(asked)
                if attempt + 1 == self.max_attempts:
                    raise TransientError(f"{error}, after {self.max_attempts} attempts") from None
                seconds = self.backoff.seconds(key, attempt, asked)
                _LOG.info("%s: %s; attempt %d in %.1f s", self.base_url, error, attempt + 2, seconds)
                self._wait(seconds, stop)
        raise AssertionError("unreachable")

    def _sent(self, question: Question, body: Mapping[str, Any], stop: threading.Event) -> Reply:
        """One request, if breaker and budget let it pass."""
        while seconds := self.breaker.wait_time():
            self._wait(seconds, stop)
        tokens = question.estimated_tokens(self.parameters)
        try:
            self.budget.reserve(tokens)
        except EndpointError:
            self.breaker.abandoned()
            raise
        used = None
        try:
            reply = self._transport.send(body)
            used = reply.used
        except TransientError as error:
            used = 0 if error.rate_limited else None
            (self.breaker.worked if error.rate_limited else self.breaker.failed)()
            raise
        except RejectedError as error:
            used = 0
            self.breaker.worked()
            self._rejected(error)
            raise
        except RefusedError:
            self.breaker.worked()
            raise
        except EndpointError:
            self.breaker.abandoned()
            raise
        finally:
            self.budget.settle(tokens, used)
        self.breaker.worked()
        self._count("replies")
        return reply

    def _rejected(self, error: RejectedError) -> None:
        self._count("rejected")
        with self._lock:
            understood = self._counts["replies"] or self._counts["kept"]
            hopeless = self._counts["rejected"] >= REJECTIONS and not understood
        if hopeless:
            raise EndpointError(
                f"{self.base_url} rejected the first {REJECTIONS} requests, the last with {error}; if it knows no JSON "
                "schemas or parameters of this kind, set structured=json_object or none, or change parameters"
            )

    def _keep_failure(self, key: str, question: Question, failure: Failure) -> None:
        self.cache.put_failure(key, failure, self.source, question.topic)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1

    @staticmethod
    def _wait(seconds: float, stop: threading.Event) -> None:
        if stop.wait(seconds):
            raise _StoppedError


class _PictureError(Exception):
    """A picture of a question cannot be read."""
