"""Where the callers of each provider put their key."""

from __future__ import annotations

from collections.abc import Mapping

from agentv.testing.calls import ModelCall

_HEADERS = {"anthropic": "x-api-key", "azure": "api-key", "gemini": "x-goog-api-key"}


def key_in(call: ModelCall, query: Mapping[str, str]) -> str:
    """The key that a call shows, in the header of its provider, as a bearer's token, or in the URL (Gemini)."""
    own = call.headers.get(_HEADERS.get(call.protocol, ""), "")
    bearer = call.headers.get("authorization", "").removeprefix("Bearer ")
    return own or bearer or (query.get("key", "") if call.protocol == "gemini" else "")
