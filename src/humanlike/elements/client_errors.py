"""What can go wrong with an endpoint: some errors stop a run, some are tried again, some concern one question."""

from __future__ import annotations


class EndpointError(ValueError):
    """The run cannot go on; every answer so far is kept, so that it continues there when it is started again."""


class CredentialError(EndpointError):
    """An address needs a key and there is none, or a key would go where it must not."""


class BudgetError(EndpointError):
    """The next request would exceed the budget."""


class EndpointDownError(EndpointError):
    """The endpoint kept failing, or asks to wait for longer than allowed."""


class InvalidAnswerError(ValueError):
    """The reply is not what was asked for; the sentence says why and goes to the model when it is asked again."""


class RefusedError(Exception):
    """The model declined to answer; asking again is pointless."""


class RejectedError(Exception):
    """The endpoint rejected this very request (too large, a picture it cannot read)."""


class TransientError(Exception):
    """A failure that may pass: a time-out, a broken connection, a status 429 or 5xx, a reply of the wrong kind.

    Args:
        reason: What happened.
        retry_after: Seconds that the endpoint asks to wait, where it does.
        rate_limited: Whether it is a matter of rate: the endpoint works, and asks for patience.
    """

    def __init__(self, reason: str, retry_after: float | None = None, rate_limited: bool = False) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.rate_limited = rate_limited
