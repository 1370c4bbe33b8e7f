"""Bodies of model calls: read strictly, so that we count what the API will read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from agentv.extensions.agents.gateway.routes import Route
from agentv.model.values.values import JsonObject

LONGEST = 64_000_000
"""Bytes of a request; Anthropic takes 32 MB, the others less."""


class RefusedBodyError(ValueError):
    """A body that is not passed on; the text says why."""


@dataclass(frozen=True, slots=True)
class CallBody:
    """The body of a model call.

    Attributes:
        values: what it says.
        data: what is passed on.
        hides_usage: usage is asked for in addition, and not shown to the agent.
    """

    values: JsonObject
    data: bytes
    model: str
    streamed: bool
    hides_usage: bool = False


def read_body(data: bytes, route: Route) -> CallBody:
    """The body of a model call.

    Raises:
        RefusedBodyError: it is no JSON object, says something twice, or asks for work that nobody can count.
    """
    try:
        values = json.loads(data, object_pairs_hook=_once)
    except RefusedBodyError:
        raise
    except (ValueError, RecursionError) as error:
        raise RefusedBodyError("the body is not valid JSON") from error
    if not isinstance(values, dict):
        raise RefusedBodyError("the body is not a JSON object")
    if route.api == "responses" and values.get("background"):
        raise RefusedBodyError("background responses are not supported, since their usage cannot be counted")
    model, streamed = route.model or values.get("model"), route.streams or values.get("stream") is True
    body = CallBody(values, data, model if isinstance(model, str) else "", streamed)
    return _with_usage(body) if streamed and route.api == "chat" else body


def _with_usage(body: CallBody) -> CallBody:
    """The body of a streamed chat completion, which reports usage only where it is asked to."""
    values, options = dict(body.values), body.values.get("stream_options")
    given: dict[str, Any] = dict(options) if isinstance(options, dict) else {}
    if given.get("include_usage") is True:
        return body
    values["stream_options"] = {**given, "include_usage": True}
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return CallBody(values, data, body.model, body.streamed, hides_usage=True)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two limits in a body, we might count the one that the API passes over."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RefusedBodyError("an object of the body has a key twice")
    return found
