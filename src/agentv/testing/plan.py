"""Conversion of a call and a step into the bytes of a reply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime

from agentv.testing.calls import ModelCall
from agentv.testing.rate import Left
from agentv.testing.replies import JSON, ModelApi, Reply, encoded, ok_reply
from agentv.testing.routes import Route
from agentv.testing.steps import (
    Answer,
    ContentFilter,
    EmptyChoices,
    MalformedJson,
    SlowDrip,
    Status,
    Step,
    StoppedStream,
    Together,
    Truncated,
    WrongType,
)

NOTHING = Reply(0, ())


def reply_of(route: Route, call: ModelCall, step: Step, number: int) -> Reply:
    """The bytes that a step replies with; how they are sent, or cut, is the server's part."""
    match step:
        case Status():
            return refusal(route.provider, call, step)
        case ContentFilter() if route.provider.filtered is not None:
            return refusal(route.provider, call, route.provider.filtered)
        case Answer() | EmptyChoices() | ContentFilter():
            return ok_reply(route.operation, call, step, number)
        case WrongType():
            return Reply(200, (step.body.encode(),), step.content_type)
        case MalformedJson() | Truncated() | SlowDrip() | StoppedStream() | Together():
            whole = ok_reply(route.operation, call, step.answer, number)
            return _malformed(whole) if isinstance(step, MalformedJson) else whole
    return NOTHING  # ClosedConnection, Hang


def refusal(provider: ModelApi, call: ModelCall, status: Status) -> Reply:
    """An error as the provider words it."""
    after = status.retry_after
    wait_s = float(after) if isinstance(after, int | float) else None
    body = provider.error(call, status.code, status.message, wait_s)
    return Reply(status.code, (encoded(body),), JSON, {**_retry_after(after), **status.headers})


def over_limit(provider: ModelApi, call: ModelCall, left: Left) -> Reply:
    """429: the seconds rounded up, as the header has it; a provider that knows finer ones says them too."""
    body = provider.error(call, 429, "", left.next_s)
    return Reply(429, (encoded(body),), JSON, {"Retry-After": str(max(1, math.ceil(left.next_s)))})


def _retry_after(after: float | datetime | str | None) -> Mapping[str, str]:
    if after is None:
        return {}
    if isinstance(after, datetime):
        return {"Retry-After": format_datetime(after.astimezone(UTC), usegmt=True)}
    return {"Retry-After": after if isinstance(after, str) else f"{after:g}"}


def _malformed(reply: Reply) -> Reply:
    """The same with a brace missing: in the body, or in the second event of a stream."""
    pieces = list(reply.pieces)
    place = min(1, len(pieces) - 1)
    pieces[place] = pieces[place].replace(b"}", b"", 1)
    return Reply(reply.status, tuple(pieces), reply.content_type, reply.headers, reply.streamed)
