"""Location of the API key in a request, for each provider."""

from __future__ import annotations

from collections.abc import Mapping

_HEADERS = {"anthropic": "x-api-key", "azure": "api-key", "gemini": "x-goog-api-key"}


def key_in(provider: str, headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """The key that a request shows: in its provider's header, as a bearer's token, or in the URL (Gemini).

    Args:
        provider: its name.
        headers: by lower-case name.
        query: of the URL.
    """
    own = headers.get(_HEADERS.get(provider, ""), "")
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return own or bearer or (query.get("key", "") if provider == "gemini" else "")
