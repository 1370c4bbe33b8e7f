"""Headers that the gateway passes on in either direction: neither the token nor the real key is among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentv.model.suite.gateway import SHORTEST_KEY, ModelUpstream

if TYPE_CHECKING:
    from aiohttp.web import Request


_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""RFC 9110, section 7.6.1."""

_NOT_SENT = _HOP_BY_HOP | {
    "accept-encoding",
    "api-key",
    "authorization",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "origin",
    "referer",
    "via",
    "x-api-key",
    "x-forwarded-for",
    "x-goog-api-key",
}
_NOT_RETURNED = _HOP_BY_HOP | {
    "content-encoding",
    "content-length",
    "set-cookie",
    "alt-svc",
    "strict-transport-security",
}


def sent_headers(request: Request, upstream: ModelUpstream, token: str) -> dict[str, str]:
    """The headers for the API, with the real key in place of the token."""
    named = {name.strip().lower() for name in request.headers.get("Connection", "").split(",")}
    passed = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in _NOT_SENT and name.lower() not in named and token not in value
    }
    key = upstream.api_key
    own = {
        "openai": {"Authorization": f"Bearer {key}"},
        "anthropic": {"x-api-key": key},
        "gemini": {"x-goog-api-key": key},
    }[upstream.protocol]
    return {**passed, **own, "Accept-Encoding": "identity"}


def returned_headers(headers: Mapping[str, str], upstream: ModelUpstream) -> dict[str, str]:
    """The headers for the agent."""
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _NOT_RETURNED and not upstream.holds_key(value)
    }


REDACTED = b"[redacted]"


def redacted(data: bytes, upstream: ModelUpstream) -> bytes:
    """Bytes without the real key."""
    key = upstream.api_key
    return data.replace(key.encode(), REDACTED) if len(key) >= SHORTEST_KEY else data


class StreamRedaction:
    """Takes the real key out of a stream. Bytes that may be its beginning wait for what follows them."""

    def __init__(self, upstream: ModelUpstream) -> None:
        key = upstream.api_key.encode()
        self._key = key if len(key) >= SHORTEST_KEY else b""
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be passed on."""
        if not self._key:
            return chunk
        data = (self._held + chunk).replace(self._key, REDACTED)
        begun = self._begun(data)
        self._held = data[len(data) - begun :]
        return data[: len(data) - begun]

    def end(self) -> bytes:
        """The rest of the stream."""
        held, self._held = self._held, b""
        return held

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end of the data are the beginning of the key."""
        longest = min(len(self._key) - 1, len(data))
        return next((size for size in range(longest, 0, -1) if data.endswith(self._key[:size])), 0)
