"""One HTTP request to a chat endpoint: what its reply means, and which failures may pass."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, NoReturn

from humanlike.elements.client_credential import Credential, is_local
from humanlike.elements.client_errors import EndpointError, RefusedError, RejectedError, TransientError
from humanlike.elements.client_questions import Reply, TokenChoice

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 8 << 20
_PASSING = {408, 409, 425, 429}
_OF_THIS_REQUEST = {400, 413, 415, 422}
_SHOWN = 300


class Transport:
    """Sends requests over a pool of connections; used by many threads at once.

    Args:
        base_url: Address, to which /chat/completions is added.
        credential: The key.
        timeout: Seconds after which a request has failed, from its start to the last byte of its reply.
        connections: Most connections at a time.

    Raises:
        ModuleNotFoundError: httpx is not installed.
    """

    def __init__(self, base_url: str, credential: Credential, timeout: float, connections: int) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "judges and element lists from an endpoint need httpx: pip install 'humanlike[judges]'"
            ) from error
        self._httpx = httpx
        self._url = f"{base_url}/chat/completions"
        self._credential = credential
        self._timeout = timeout
        self._client = httpx.Client(
            headers={**credential.headers, "Content-Type": "application/json", "Accept": "application/json"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 15.0)),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            trust_env=not is_local(base_url),  # a proxy is no way to one's own machine
            follow_redirects=False,  # the key goes to this address and to no other
        )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def send(self, body: Mapping[str, Any]) -> Reply:
        """Send one request and read its reply.

        Raises:
            TransientError: It failed in a way that may pass.
            RejectedError: The endpoint rejected this request.
            RefusedError: The model declined.
            EndpointError: Every further request would fail alike.
        """
        started = time.monotonic()
        content = json.dumps(body, ensure_ascii=False).encode()
        try:
            with self._client.stream("POST", self._url, content=content) as response:
                raw = self._read(response, started)
        except self._httpx.TimeoutException:
            raise TransientError(f"no reply within {self._timeout:g} s") from None
        except self._httpx.RequestError as error:
            text = self._credential.hidden_in(str(error))[:_SHOWN]
            raise TransientError(f"the connection failed ({type(error).__name__}: {text})") from None
        text = raw.decode("utf-8", errors="replace")
        if response.status_code != 200:
            self._refuse(response, text)
        kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            kind = self._credential.hidden_in(kind)[:_SHOWN]
            raise TransientError(f"the reply is {kind or 'of no stated type'}, not application/json")
        return reply_of(text, self._credential.hidden_in)

    def _read(self, response: httpx.Response, started: float) -> bytes:
        """The whole reply. Time-outs of a connection are a read each, so that a trickle of bytes would never end."""
        parts, size = [], 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise TransientError(f"the reply is longer than {MOST_BYTES} bytes")
            if time.monotonic() - started > self._timeout:
                raise TransientError(f"the reply was not complete within {self._timeout:g} s")
        return b"".join(parts)

    def _refuse(self, response: httpx.Response, text: str) -> NoReturn:
        status = response.status_code
        code, said = _error_of(text, self._credential.hidden_in)
        sentence = f"HTTP {status}" + (f" ({said})" if said else "")
        if status == 429 and code in ("insufficient_quota", "billing_hard_limit_reached"):
            raise EndpointError(f"{self._url}: {sentence}; the account has no quota left")
        if status in _PASSING or status >= 500:
            raise TransientError(sentence, retry_after(response.headers), rate_limited=status == 429)
        if status in _OF_THIS_REQUEST:
            raise RejectedError(sentence)
        advice = {
            401: "the key is not accepted; see the variable that credential_env names",
            403: "the key may not use this model",
            404: "see base_url (mostly it ends with /v1) and model",
        }.get(status, "redirects are not followed; give the final address" if 300 <= status < 400 else "see base_url")
        raise EndpointError(f"{self._url}: {sentence}; {advice}")


def reply_of(text: str, hide: Callable[[str], str] = str) -> Reply:
    """The reply in the text of a chat completion.

    Args:
        text: The body.
        hide: Masks what must not be repeated, after all escapes are resolved.

    Raises:
        TransientError: The text is no chat completion.
        RefusedError: The model declined, or a filter did.
    """
    try:
        value = json.loads(text)
        choice = value["choices"][0]
        message = choice["message"]
        content, refusal = message.get("content"), message.get("refusal")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise TransientError("the reply is no chat completion (truncated, or of another kind)") from None
    finish = str(choice.get("finish_reason") or "")
    if refusal or finish == "content_filter":
        raise RefusedError(f"the model refused: {hide(str(refusal or 'content filter'))[:_SHOWN]}")
    if isinstance(content, list):  # some servers give parts
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    if not isinstance(content, str):
        content = ""
    return Reply(hide(content), finish, _tokens(choice), _used(value))


def _used(value: Mapping[str, Any]) -> int | None:
    usage = value.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and total >= 0 else None


def _tokens(choice: Mapping[str, Any]) -> tuple[TokenChoice, ...]:
    """Tokens with log-probabilities; none at all where anything about them is not as documented."""
    try:
        found = (choice.get("logprobs") or {}).get("content") or ()
        return tuple(
            TokenChoice(
                str(t["token"]),
                float(t["logprob"]),
                tuple((str(o["token"]), float(o["logprob"])) for o in t.get("top_logprobs") or ()),
            )
            for t in found
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        return ()


def _error_of(text: str, hide: Callable[[str], str]) -> tuple[str, str]:
    """Code and message of an error reply, as far as it has them."""
    try:
        error = json.loads(text)["error"]
        if isinstance(error, str):
            return "", hide(error)[:_SHOWN]
        return str(error.get("code") or error.get("type") or ""), hide(str(error.get("message") or ""))[:_SHOWN]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return "", ""


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that an endpoint asks to wait: a number, or a date; None where it does not say.

    Args:
        headers: Headers of the reply, found without regard to case in httpx's mapping.
        now: The time; None: now.

    Example:
        >>> retry_after({"retry-after": "2.5"}), retry_after({"retry-after": "soon"}), retry_after({})
        (2.5, None, None)
    """
    said = headers.get("retry-after", "").strip()
    try:
        seconds = float(said)
    except ValueError:
        try:
            at = parsedate_to_datetime(said)
        except (ValueError, TypeError):
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = (at - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
