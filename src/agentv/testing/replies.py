"""What the protocols and the server share: replies as bytes, the rate limit, and the types of operations and APIs."""

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
        """Take a token if there is one; return the seconds until the next one, or 0 if one was taken."""
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
"""Steps that produce a well-formed reply with status 200."""


UNAUTHORIZED = Status(401)


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes of a reply.

    Attributes:
        pieces: the body: one event per piece of a stream, otherwise one piece.
        streamed: whether the pieces are sent one by one, without `Content-Length`.
    """

    status: int
    pieces: tuple[bytes, ...]
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a provider's API, as pure functions.

    Attributes:
        name: value of `ModelCall.operation`.
        body: (call, step, number of the call) → the reply's JSON.
        events: (call, the reply's JSON) → its events as a stream; None if the operation has no streaming.
    """

    name: str
    body: Callable[[ModelCall, ReplyStep, int], JsonObject]
    events: Callable[[ModelCall, JsonObject], Iterable[bytes]] | None = None


@dataclass(frozen=True, slots=True)
class ModelApi:
    """Error responses of a provider, the same for all operations.

    Attributes:
        name: value of `ModelCall.protocol`.
        error: (call, status, message or "", seconds to wait) → the JSON of an error.
        bad_key: error for an unknown key.
        filtered: error of its content filter; None if it returns an answer without text.
    """

    name: str
    error: Callable[[ModelCall, int, str, float | None], JsonObject]
    bad_key: Status = UNAUTHORIZED
    filtered: Status | None = None


def encoded(value: Json) -> bytes:
    """JSON in UTF-8, without escaping non-ASCII characters, as the providers send it."""
    return json.dumps(value, ensure_ascii=False).encode()


def event(data: Json, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + encoded(data) + b"\n\n"


def ok_reply(operation: Operation, call: ModelCall, step: ReplyStep, number: int) -> Reply:
    """The reply with status 200, as a stream if the call requests one."""
    body = operation.body(call, step, number)
    headers = step.headers if isinstance(step, Answer) else {}
    if call.stream and operation.events is not None:
        return Reply(200, tuple(operation.events(call, body)), EVENTS, headers, streamed=True)
    return Reply(200, (encoded(body),), headers=headers)


def stream_pieces(text: str) -> list[str]:
    """The deltas of a streamed text: its words, each with the preceding space."""
    pieces: list[str] = []
    for word in text.split(" "):
        pieces.append(f" {word}" if pieces else word)
    return pieces if text else []
