"""Shared parts of targets that call a model API: the base URL, and the reasons of failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from urllib.parse import urlsplit

from agentv.model.values.response import CallFailure
from agentv.registry.fields import Issue
from agentv.targets.http.statuses import shown

_SSL = re.compile(r" ssl:(?:\w+|<[^>]*>)")  # aiohttp's word on how it would have encrypted

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  # as people write it, not bound to
_KEY_HEADER = re.compile(r"authorization|api-?key|token|subscription-key", re.IGNORECASE)


def endpoint_of(provider: str, url: str, key: str | None) -> str:
    """Where calls go and with whose key, by a hash of it: calls of one endpoint share a rate limit."""
    return f"{provider} {place_of(url)} {sha256((key or '').encode()).hexdigest()[:8]}"


def place_of(url: str) -> str:
    """A URL as it may be shown: without a user and a password, and without a query, which may hold a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""  # refused when it is loaded
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def host_of(url: str) -> str:
    """The host of a URL, or an empty text."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_local(url: str) -> bool:
    """Whether a server is on this machine."""
    return host_of(url) in _LOOPBACK


def other_server(url: str | None, *domains: str) -> str | None:
    """The place of a server that is in none of a provider's own domains; None where nothing or one of those is said."""
    if url is None or any(f".{host_of(url)}".endswith(f".{domain}") for domain in domains):
        return None
    return place_of(url)


def url_issues(url: str | None, option: str = "base_url") -> Iterator[Issue]:
    """What is wrong with the address of an API, where one is given."""
    try:
        parts = urlsplit("http://host" if url is None else url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0  # an invalid port raises
    except ValueError:
        sound = False
    if not sound:
        yield Issue((option,), f"'{option}' must start with http:// or https:// and contain a host")


def names_user(url: str) -> bool:
    """Whether a URL says who asks, which is sent as `Authorization`: no other header may say it too."""
    try:
        return "@" in urlsplit(url).netloc
    except ValueError:
        return False


def key_issues(key: str | None) -> Iterator[Issue]:
    """An API key that no HTTP header can hold, which libraries refuse with its text in the message."""
    if key is not None and not (key.isascii() and key.isprintable()):
        message = (
            "the API key contains a character that is not allowed in an HTTP header: was it pasted with a "
            "quote or a space?"
        )
        yield Issue(("api_key",), message)


def missing_key(names: Iterable[str]) -> CallFailure:
    """No key is known, so that no call can do anything."""
    return CallFailure("missing-key", f"no API key: set {' or '.join(names)}, or 'api_key' of the target", stops=True)


def no_key_sent(names: Iterable[str]) -> str:
    """What to do where a server wants a key and was sent none."""
    return f"no key was sent: set {' or '.join(names)}, or 'api_key' of the target"


def carries_key(headers: Iterable[str]) -> bool:
    """Whether one of the headers, by their names, is there to hold a key."""
    return any(_KEY_HEADER.search(name) for name in headers)


def no_reply_in_time(timeout_s: float) -> CallFailure:
    """The call took too long."""
    return CallFailure("timeout", f"no response within {timeout_s:g} s", retryable=True)


def no_connection(reason: object, secrets: Iterable[str] = ()) -> CallFailure:
    """The server could not be reached, or closed the connection without a reply."""
    return CallFailure("connection", f"no reply: {_words(reason, secrets)}", retryable=True)


def incomplete_reply(reason: object, secrets: Iterable[str] = ()) -> CallFailure:
    """The reply ended before it was complete."""
    return CallFailure("bad-answer", f"the response was cut off: {_words(reason, secrets)}", retryable=True)


def unreadable_reply(what: str, secrets: Iterable[str] = ()) -> CallFailure:
    """A reply came with a good status, and it is not what the API's protocol says: what a proxy or an outage sends."""
    return CallFailure("bad-answer", shown(what, secrets), retryable=True)


def _words(reason: object, secrets: Iterable[str]) -> str:
    text = _SSL.sub("", str(reason))
    name = type(reason).__name__
    return shown(text if isinstance(reason, str) else f"{name}: {text}" if text else name, secrets)
