"""Replies as bytes, rate limits, and the operations of every protocol: between the protocols and the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from agentv.model.values.values import Json, JsonObject
from agentv.testing.steps import Answer, ContentFilter, EmptyChoices, ModelCall, Status


class TokenBucket:
    """Accepts `rate` requests per second, with a burst of one second's worth, at least one."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        if not rate > 0:
            raise ValueError(f"rate must be above 0 requests per second, found {rate}")
        self._rate = rate
        self._clock = clock
        self._limit = max(1, int(rate))
        self._tokens = float(self._limit)
        self._at = clock()

    def take(self) -> float:
        """Request one token; the seconds until there is one, 0 where it was taken."""
        now = self._clock()
        self._tokens = min(self._limit, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1 - 1e-9:  # a caller that waited exactly as long as requested is let in
            return (1 - self._tokens) / self._rate
        self._tokens = max(0.0, self._tokens - 1)
        return 0.0


JSON = "application/json"
EVENTS = "text/event-stream"

ReplyStep: TypeAlias = "Answer | EmptyChoices | ContentFilter"
"""Content of a reply with status 200."""


UNAUTHORIZED = Status(401)


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes of a reply.

    Attributes:
        pieces: the body; a stream's events one by one, else one piece.
        streamed: the pieces are sent one by one, without a length.
    """

    status: int
    pieces: tuple[bytes, ...]
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a provider's API does, as pure functions.

    Attributes:
        name: as in `ModelCall.operation`.
        body: (call, what is said, number of the call) → the reply's JSON.
        events: (call, the reply's JSON) → the pieces of the same as a stream, where the operation has streams.
    """

    name: str
    body: Callable[[ModelCall, ReplyStep, int], JsonObject]
    events: Callable[[ModelCall, JsonObject], Iterable[bytes]] | None = None


@dataclass(frozen=True, slots=True)
class ModelApi:
    """Error responses of a provider, the same for all operations.

    Attributes:
        name: as in `ModelCall.protocol`.
        error: (call, status, message or "", seconds to wait) → the JSON of an error.
        bad_key: error for an unknown key.
        filtered: error of its content filter; None if it returns an answer without text.
    """

    name: str
    error: Callable[[ModelCall, int, str, float | None], JsonObject]
    bad_key: Status = UNAUTHORIZED
    filtered: Status | None = None


def encoded(value: Json) -> bytes:
    """JSON as the providers send it."""
    return json.dumps(value, ensure_ascii=False).encode()


def event(data: Json, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + encoded(data) + b"\n\n"


def ok_reply(operation: Operation, call: ModelCall, step: ReplyStep, number: int) -> Reply:
    """The reply of status 200, as a stream where the call asks for one."""
    body = operation.body(call, step, number)
    headers = step.headers if isinstance(step, Answer) else {}
    if call.stream and operation.events is not None:
        return Reply(200, tuple(operation.events(call, body)), EVENTS, headers, streamed=True)
    return Reply(200, (encoded(body),), headers=headers)


def stream_pieces(text: str) -> list[str]:
    """A text in the pieces that a stream brings: words with the white space before them."""
    pieces: list[str] = []
    for word in text.split(" "):
        pieces.append(f" {word}" if pieces else word)
    return pieces if text else []
