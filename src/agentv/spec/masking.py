"""What must never be written: secrets, told by the keys that hold them (SPEC section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

_SECRET = re.compile(
    r".*(?:api|access|private|subscription)[_-]?key|(?:.*[_-])?token|.*(?:secret|authorization|password|passphrase)",
    re.IGNORECASE,
)
_SECRET_HEADER = re.compile(r".*(?:key|token|secret|auth).*|cookie", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USERINFO = re.compile(r"(?<=://)(?:[^/@\s:]*:)?([^/@\s:]+)@")
"""The password in a URL, or the token that stands alone before its host."""
MASK = "[redacted]"
_NOTHING = (None, "")


def mask(settings: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The settings with every value masked that stands under a secret's key, or in a secret's header.

    Args:
        settings: plain data.
        within: the key under which they stand.
    """
    return {
        key: MASK if is_secret(key, within) and one not in _NOTHING else _masked(one, key)
        for key, one in settings.items()
    }


def secrets_in(value: Any, *, hide: bool = False, within: str = "") -> Iterator[str]:
    """The values that stand under a secret's key, and the words of each.

    Args:
        value: plain data.
        hide: it stands under such a key.
        within: the key under which it stands.
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from secrets_in(one, hide=hide or is_secret(key, within), within=key)
    elif isinstance(value, list):
        for one in value:
            yield from secrets_in(one, hide=hide, within=within)
    elif hide and value not in _NOTHING:
        yield from _pieces(str(value))
    elif isinstance(value, str) and "://" in value:
        yield from (form for found in _USERINFO.findall(value) for form in (found, unquote(found)))


def _masked(value: Any, within: str) -> Any:
    if isinstance(value, Mapping):
        return mask(value, within)
    if isinstance(value, list):
        return [_masked(one, within) for one in value]
    return _USERINFO.sub(f"{MASK}@", value) if isinstance(value, str) and "://" in value else value


def is_secret(key: str, within: str = "") -> bool:
    """Whether what a key holds must never be written: `api_key`, `X-Api-Key`, `accessToken`, `client_secret`, ….

    Under `headers` any name that speaks of a key, a token, a secret or authorisation is one: `x-goog-key`, `Cookie`.
    """
    if within == "headers" and _SECRET_HEADER.fullmatch(key):
        return True
    return _SECRET.fullmatch(_CAMEL.sub("_", key)) is not None


def _pieces(value: str) -> Iterator[str]:
    """A secret, and its words: `Bearer sk-…` is as secret without its first word."""
    yield value
    yield from (word for word in value.split() if len(word) >= 8)  # shorter words are not secrets
