"""Failures of calls of model APIs: what an error status, a redirect or a lost connection means, and what may be shown.

Sources: RFC 9110 (`Retry-After`), OpenAI's and Azure's `retry-after-ms`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from http import HTTPStatus
from urllib.parse import urlsplit

from agentv.model.redaction import REDACTED, Redactor
from agentv.model.values.response import CallFailure
from agentv.registry.fields import Issue
from agentv.user_code.excerpts import LONGEST, head

RETRYABLE = frozenset({408, 409, 429})
"""Statuses below 500 that another try may turn into an answer."""

STOPPING = frozenset({401, 402, 403, 404})
"""A refused key, no credit left, a model that is not there: no call of this target can do better."""

_PHRASES = {int(one): one.phrase for one in HTTPStatus}
_FAR = 1e14  # beyond any time that a server can mean

_MASKED = re.compile(r"[\w-]*\*{3}[\w*-]*")  # servers quote a refused key as sk-****abcd
_USERINFO = re.compile(r"(?<=://)[^\s/@]+@")
_OF_THE_SDK = re.compile(r"/(?:chat/completions|responses|embeddings|v1/messages|v1beta/models/[^/]*)/?$")
"""What SDKs add to the address by themselves."""

_QUERY = re.compile(r"(?<=://)([^\s?\"'<>]+)\?[^\s\"'<>]*")


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether the body of a reply is compressed, by its headers in lower case or in any."""
    return headers.get("content-encoding", "").lower() not in ("", "identity")


def failure_of(
    status: int | None,
    message: str,
    headers: Mapping[str, str],
    retryable_statuses: frozenset[int] = frozenset(),
    *,
    secrets: Iterable[str] = (),
    address: str = "base_url",
) -> CallFailure:
    """The failure that a reply is that has an error status, redirects, or is compressed.

    No redirect is followed: keys would leave. Nothing is decompressed: a megabyte may become gigabytes.

    Args:
        status: of HTTP; None where the library does not tell it, which is neither tried again nor final.
        message: what the server said, as text or JSON; it is shortened, and neither keys nor queries of URLs stay.
        headers: of the reply, in any case of letters.
        retryable_statuses: what the target's `retry.status_codes` lists; empty: what the status means.
        secrets: texts that the message must not hold.
        address: the option that says where to ask.
    """
    known = {name.lower(): value for name, value in headers.items()}
    moved = _moved_to(status, known.get("location"))
    if moved is not None:
        moved = _OF_THE_SDK.sub("", moved) if address == "base_url" else moved
        message = f"the server redirects to {moved}: write that as '{address}'"
    elif is_compressed(known):
        how = known["content-encoding"][:40]
        message = (
            f"the reply is compressed ({how}), which agentv does not read: the server, or a proxy before it, must "
            "respect 'Accept-Encoding: identity'"
        )
    if status is not None and retryable_statuses:
        passing = status in retryable_statuses
    else:
        passing = status is not None and (status in RETRYABLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR)
    named = "the API refused the call" if status is None else f"HTTP {status} {_PHRASES.get(status, '')}".rstrip()
    return CallFailure(
        "http-status" if status is None or status >= HTTPStatus.MULTIPLE_CHOICES else "bad-answer",
        f"{named}: {shown(message, secrets) or 'no message'}",
        retryable=passing,
        status=status,
        retry_after_s=retry_after(known),
        stops=status in STOPPING and status not in retryable_statuses,
    )


_SEARCHED = 1_000_000
"""Characters of a message that are searched for secrets; of these no more than `4 * LONGEST` are shown."""


def shown(message: str, secrets: Iterable[str] = ()) -> str:
    """Words of a server or a library as they may be shown: short, without keys and without queries of URLs."""
    message = Redactor(secrets).redact(message[:_SEARCHED])
    message = message[: 4 * LONGEST]  # what follows takes time by the square
    message = _QUERY.sub(r"\1", _USERINFO.sub("", _MASKED.sub(REDACTED, message)))
    return head(message.encode(errors="replace"))


def _moved_to(status: int | None, location: str | None) -> str | None:
    """Where a redirect leads, as host and path: a query may hold a key."""
    if status is None or not 300 <= status < 400 or not location:
        return None
    try:
        parts = urlsplit(location)
    except ValueError:
        return "an address that cannot be parsed"
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}" or "nowhere"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that the server asks to wait, at least 0; None where it does not ask, or cannot be understood.

    Args:
        headers: with names in lower case.
        now: the time that a date counts from.
    """
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return max(exact / 1000, 0.0)
    value = headers.get("retry-after")
    seconds = _number(value)
    return max(seconds, 0.0) if seconds is not None else _until(value, now)


def _until(value: str | None, now: datetime | None) -> float | None:
    """Seconds until a date of HTTP (RFC 9110) or of RFC 3339."""
    if value is None:
        return None
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = read(value.strip())
            given = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
            return max((given - (now or datetime.now(UTC))).total_seconds(), 0.0)
        except (ValueError, TypeError, IndexError):
            continue
    return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < _FAR else None


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
