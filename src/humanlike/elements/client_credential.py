"""Addresses and keys of endpoints: a key comes from the environment only and is shown nowhere."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from humanlike.elements.client_errors import CredentialError

MASK = "***"
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


class Credential:
    """A key that shows itself as *** wherever an object is printed, and refuses to be pickled.

    Args:
        value: The key; None where there is none.

    Example:
        >>> key = Credential("sk-abc")
        >>> key, key.hidden_in("Incorrect key sk-abc"), key.headers
        (Credential(***), 'Incorrect key ***', {'Authorization': 'Bearer sk-abc'})
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | None) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"Credential({MASK if self._value else 'none'})"

    def __reduce__(self) -> tuple:
        raise TypeError("a credential is not pickled; every process reads it from its own environment")

    def __bool__(self) -> bool:
        return bool(self._value)

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers that carry the key."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def hidden_in(self, text: str) -> str:
        """`text` with the key masked, for replies and messages that repeat it."""
        return text.replace(self._value, MASK) if self._value else text


def checked_address(base_url: str) -> str:
    """The address without a slash at its end.

    Raises:
        ValueError: It is no http(s) address, or carries a user, a query or a fragment, where keys like to hide.
    """
    parts = urlsplit(base_url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            f"base_url of {parts.hostname!r} must be a plain address such as https://host/v1, without a user, a query "
            "or a fragment; keys come from the environment only (credential_env names the variable)"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"base_url must be an http(s) address such as https://api.openai.com/v1, got {base_url!r}")
    return base_url.rstrip("/")


def is_local(base_url: str) -> bool:
    """Whether an address is of this machine or of a private network, where servers mostly ask for no key.

    Example:
        >>> [is_local(f"http://{host}/v1") for host in ("localhost:11434", "10.0.0.7", "gpu3", "api.openai.com")]
        [True, True, True, False]
    """
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local", ".internal")) or "." not in host
    return address.is_loopback or address.is_private


def credential(base_url: str, name: str | None, needed: bool | None = None) -> Credential:
    """The key for an address.

    Args:
        base_url: Where requests go.
        name: Environment variable that holds the key; None: no key is sent.
        needed: Whether the address needs one; None: where it is not local (see `is_local`).

    Raises:
        CredentialError: There is no key and one is needed, `name` looks like a key itself, or the key would go over
            the network unencrypted.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise CredentialError(
            "credential_env must be the name of an environment variable in capitals, such as OPENAI_API_KEY; what was "
            "given looks like something else (it is not shown here: if it was a key, remove it from the configuration)"
        )
    value = (os.environ.get(name) or "").strip() or None if name else None
    if value is None and (not is_local(base_url) if needed is None else needed):
        variable = f"set the environment variable {name}" if name else "name an environment variable in credential_env"
        raise CredentialError(f"{base_url} needs a key and there is none: {variable}; nothing was sent")
    if value is not None and any(not 32 < ord(c) < 127 for c in value):
        raise CredentialError(f"the key in {name} holds characters that no HTTP header can carry; nothing was sent")
    if value is not None and base_url.startswith("http://") and not is_local(base_url):
        raise CredentialError(
            f"{base_url} is not encrypted, so the key in {name} would be readable on its way; use https://, or "
            "credential_env=null where no key is needed; nothing was sent"
        )
    return Credential(value)
