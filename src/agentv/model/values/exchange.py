"""Exchanges of an agent with its model: requests and replies as they pass the gateway."""

from __future__ import annotations

from msgspec import Struct


class ModelRequest(Struct, frozen=True):
    """A request of an agent to its model.

    Attributes:
        protocol: of the API: `openai`, `anthropic` or `gemini`.
        path: below the protocol's base URL, with its query: `/v1/messages?beta=true`.
        body: without any content encoding.
    """

    protocol: str
    method: str
    path: str
    body: bytes = b""


class ModelReply(Struct, frozen=True):
    """The reply to such a request.

    Attributes:
        body: without any content encoding; a stream as its whole text.
        complete: False: the agent or the server closed the connection before its end.
    """

    status: int
    content_type: str
    body: bytes = b""
    complete: bool = True
