"""Failures of HTTP calls: error statuses, redirects and lost connections, with messages that leak no secrets.

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
"""Statuses below 500 for which a retry may succeed."""

STOPPING = frozenset({401, 402, 403, 404})
"""Statuses after which every call of the target would fail: invalid key, no credit left, unknown model."""

_PHRASES = {int(one): one.phrase for one in HTTPStatus}
_MAX_NUMBER = 1e14  # larger than any wait that a server can mean

_MASKED = re.compile(r"[\w-]*\*{3}[\w*-]*")  # servers quote an invalid key as sk-****abcd
_USERINFO = re.compile(r"(?<=://)[^\s/@]+@")
_SDK_PATH = re.compile(r"/(?:chat/completions|responses|embeddings|v1/messages|v1beta/models/[^/]*)/?$")
"""The end of a path that SDKs append to the base URL."""

_QUERY = re.compile(r"(?<=://)([^\s?\"'<>]+)\?[^\s\"'<>]*")


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether a reply's body is compressed. Header names must be in lower case, or the mapping case-insensitive."""
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
    """Return the failure for a reply that has an error status, is a redirect, or is compressed.

    Redirects are not followed, because the new server would get the key. Compressed replies are not read, because a
    megabyte can expand to gigabytes.

    Args:
        status: the HTTP status; None if the library does not expose it. Such a failure is not retried and does not
            stop the target.
        message: the server's message, as text or JSON. It is shortened; keys and queries of URLs are removed.
        headers: headers of the reply, in any letter case.
        retryable_statuses: the target's `retry.status_codes`; if empty, RETRYABLE and statuses from 500.
        secrets: texts to remove from the message.
        address: name of the option with the server's address.
    """
    known = {name.lower(): value for name, value in headers.items()}
    moved = _moved_to(status, known.get("location"))
    if moved is not None:
        moved = _SDK_PATH.sub("", moved) if address == "base_url" else moved
        message = f"the server redirects to {moved}: write that as '{address}'"
    elif is_compressed(known):
        how = known["content-encoding"][:40]
        message = (
            f"the reply is compressed ({how}), which agentv does not read: the server, or a proxy before it, must "
            "respect 'Accept-Encoding: identity'"
        )
    if status is not None and retryable_statuses:
        retryable = status in retryable_statuses
    else:
        retryable = status is not None and (status in RETRYABLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR)
    named = "the API refused the call" if status is None else f"HTTP {status} {_PHRASES.get(status, '')}".rstrip()
    return CallFailure(
        "http-status" if status is None or status >= HTTPStatus.MULTIPLE_CHOICES else "bad-answer",
        f"{named}: {shown(message, secrets) or 'no message'}",
        retryable=retryable,
        status=status,
        retry_after_s=retry_after(known),
        stops=status in STOPPING and status not in retryable_statuses,
    )


_SEARCHED = 1_000_000
"""Characters of a message that are searched for secrets. At most `4 * LONGEST` of them are shown."""


def shown(message: str, secrets: Iterable[str] = ()) -> str:
    """Return a message of a server or library that is safe to show: short, without keys and queries of URLs."""
    message = Redactor(secrets).redact(message[:_SEARCHED])
    message = message[: 4 * LONGEST]  # the patterns below take quadratic time
    message = _QUERY.sub(r"\1", _USERINFO.sub("", _MASKED.sub(REDACTED, message)))
    return head(message.encode(errors="replace"))


def _moved_to(status: int | None, location: str | None) -> str | None:
    """Return the host and path that a redirect leads to, without the query, which may contain a key."""
    if status is None or not 300 <= status < 400 or not location:
        return None
    try:
        parts = urlsplit(location)
    except ValueError:
        return "an address that cannot be parsed"
    return f"{parts.netloc.rpartition('@')[2]}{parts.path}" or "nowhere"


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds to wait before a retry, at least 0; None if the headers do not say or are invalid.

    Args:
        headers: headers of the reply, with lower-case names.
        now: the current time, for a `Retry-After` that is a date.
    """
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return max(exact / 1000, 0.0)
    value = headers.get("retry-after")
    seconds = _number(value)
    return max(seconds, 0.0) if seconds is not None else _until(value, now)


def _until(value: str | None, now: datetime | None) -> float | None:
    """Return the seconds until a date in HTTP (RFC 9110) or RFC 3339 format, or None if it is invalid."""
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
    return number if math.isfinite(number) and abs(number) < _MAX_NUMBER else None


_SSL = re.compile(r" ssl:(?:\w+|<[^>]*>)")  # the TLS setting in aiohttp's messages

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  # not bound to
_KEY_HEADER = re.compile(r"authorization|api-?key|token|subscription-key", re.IGNORECASE)


def endpoint_of(provider: str, url: str, key: str | None) -> str:
    """Return an id of the server and the API key (hashed). Calls with the same id share a rate limit."""
    return f"{provider} {place_of(url)} {sha256((key or '').encode()).hexdigest()[:8]}"


def place_of(url: str) -> str:
    """Return a URL that is safe to show: without user, password and query, which may contain a key."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""  # an issue is reported at load
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def host_of(url: str) -> str:
    """Return the host of a URL, or "" if it has none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_local(url: str) -> bool:
    """Whether a URL's server is on this machine."""
    return host_of(url) in _LOOPBACK


def other_server(url: str | None, *domains: str) -> str | None:
    """Return the URL as shown if its server is outside these domains of the provider; None if it is not, or no URL."""
    if url is None or any(f".{host_of(url)}".endswith(f".{domain}") for domain in domains):
        return None
    return place_of(url)


def url_issues(url: str | None, option: str = "base_url") -> Iterator[Issue]:
    """Report an invalid base URL of an API."""
    try:
        parts = urlsplit("http://host" if url is None else url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0  # an invalid port raises
    except ValueError:
        sound = False
    if not sound:
        yield Issue((option,), f"'{option}' must start with http:// or https:// and contain a host")


def has_user(url: str) -> bool:
    """Whether a URL contains a user. That is sent as `Authorization`, so `headers` must not set that too."""
    try:
        return "@" in urlsplit(url).netloc
    except ValueError:
        return False


def key_issues(key: str | None) -> Iterator[Issue]:
    """Report an API key that is invalid in an HTTP header. Libraries would show the key in their message."""
    if key is not None and not (key.isascii() and key.isprintable()):
        message = (
            "the API key contains a character that is not allowed in an HTTP header: was it pasted with a "
            "quote or a space?"
        )
        yield Issue(("api_key",), message)


def missing_key(names: Iterable[str]) -> CallFailure:
    """Return the failure for a target without an API key, which stops all its calls."""
    return CallFailure("missing-key", f"no API key: set {' or '.join(names)}, or 'api_key' of the target", stops=True)


def no_key_sent(names: Iterable[str]) -> str:
    """Return the hint for a server that requires a key when none was sent."""
    return f"no key was sent: set {' or '.join(names)}, or 'api_key' of the target"


def carries_key(headers: Iterable[str]) -> bool:
    """Whether one of the header names is used for API keys."""
    return any(_KEY_HEADER.search(name) for name in headers)


def no_reply_in_time(timeout_s: float) -> CallFailure:
    """Return the failure for a call that timed out."""
    return CallFailure("timeout", f"no response within {timeout_s:g} s", retryable=True)


def no_connection(reason: object, secrets: Iterable[str] = ()) -> CallFailure:
    """Return the failure for a server that is unreachable or closed the connection without a reply."""
    return CallFailure("connection", f"no reply: {_reason_text(reason, secrets)}", retryable=True)


def incomplete_reply(reason: object, secrets: Iterable[str] = ()) -> CallFailure:
    """Return the failure for a reply that ended before it was complete."""
    return CallFailure("bad-answer", f"the response was cut off: {_reason_text(reason, secrets)}", retryable=True)


def unreadable_reply(what: str, secrets: Iterable[str] = ()) -> CallFailure:
    """Return the failure for a successful reply that breaks the API's protocol, as proxies send during an outage."""
    return CallFailure("bad-answer", shown(what, secrets), retryable=True)


def _reason_text(reason: object, secrets: Iterable[str]) -> str:
    text = _SSL.sub("", str(reason))
    name = type(reason).__name__
    return shown(text if isinstance(reason, str) else f"{name}: {text}" if text else name, secrets)
