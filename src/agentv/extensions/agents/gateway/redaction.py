"""Redaction of the real key, should an API repeat it: in whole replies, and in streams wherever they are cut."""

from __future__ import annotations

from agentv.model.suite.gateway import SHORTEST_KEY, ModelUpstream

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
