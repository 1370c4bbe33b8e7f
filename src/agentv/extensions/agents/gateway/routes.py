"""What passes through the gateway: routes, bodies and headers of requests.

A route that is not listed is refused: batches, files and background responses would cost money that is not counted.
The API never gets the token, and the agent never gets the real key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agentv.model.suite.tools import SHORTEST_KEY, ModelProtocol, ModelUpstream
from agentv.model.values.values import JsonObject

if TYPE_CHECKING:
    from aiohttp.web import Request


Api = Literal["chat", "responses", "messages", "gemini", "embeddings"]
"""Format of the reply to a model call."""

_MODEL = r"\w[\w.:@+~-]*"
"""A path segment that cannot lead to another resource, as `models/../files` would, with the real key."""

_GEMINI = rf"/gemini(/v1(?:alpha|beta)?/models/(?P<model>{_MODEL}?)"
_CALLS: tuple[tuple[ModelProtocol, re.Pattern[str], Api], ...] = (
    ("openai", re.compile(r"/openai/v1(/chat/completions|/completions)"), "chat"),
    ("openai", re.compile(r"/openai/v1(/responses|/responses/compact)"), "responses"),
    ("openai", re.compile(r"/openai/v1(/embeddings)"), "embeddings"),
    ("anthropic", re.compile(r"/anthropic(/v1/messages)"), "messages"),
    ("gemini", re.compile(rf"{_GEMINI}:(?:generateContent|streamGenerateContent))"), "gemini"),
    ("gemini", re.compile(rf"{_GEMINI}:(?:embedContent|batchEmbedContents))"), "embeddings"),
)
_OTHERS: tuple[tuple[ModelProtocol, str, re.Pattern[str]], ...] = (
    ("openai", "POST", re.compile(r"/openai/v1(/responses/input_tokens)")),
    ("openai", "GET", re.compile(rf"/openai/v1(/models(?:/{_MODEL})*)")),
    ("anthropic", "POST", re.compile(r"/anthropic(/v1/messages/count_tokens)")),
    ("anthropic", "GET", re.compile(rf"/anthropic(/v1/models(?:/{_MODEL})?)")),
    ("gemini", "POST", re.compile(rf"/gemini(/v1(?:alpha|beta)?/models/{_MODEL}:countTokens)")),
    ("gemini", "GET", re.compile(rf"/gemini(/v1(?:alpha|beta)?/models(?:/{_MODEL})?)")),
)


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes.

    Attributes:
        path: path below the base URL of the API.
        api: format of the reply; None if the request is not a model call.
        model: model in the path; empty if the body names it.
        streams: whether the path asks for a streamed reply.
    """

    protocol: ModelProtocol
    path: str
    api: Api | None = None
    model: str = ""
    streams: bool = False


def route_of(method: str, path: str) -> Route | None:
    """Return the route for the raw path of a request, or None if it is refused."""
    if method == "POST":
        for protocol, pattern, api in _CALLS:
            found = pattern.fullmatch(path)
            if found is not None:
                model = found.groupdict().get("model") or ""
                return Route(protocol, found[1], api, model, ":streamGenerateContent" in found[1])
    for protocol, allowed, pattern in _OTHERS:
        found = pattern.fullmatch(path) if method == allowed else None
        if found is not None:
            return Route(protocol, found[1])
    return None


def protocol_of(path: str) -> ModelProtocol:
    """Return the protocol in which to answer a path, even an unknown one."""
    head = path.partition("/")[2].partition("/")[0]
    return head if head in {"anthropic", "gemini"} else "openai"  # type: ignore[return-value]  # one of the two


def token_in(headers: Mapping[str, str], query: Mapping[str, str]) -> list[str]:
    """Return all values that may be the token, from every place in which the providers' SDKs send a key."""
    scheme, _, value = headers.get("Authorization", "").partition(" ")
    bearer = value.strip() if scheme.lower() == "bearer" else ""
    others = (headers.get(name, "") for name in ("x-api-key", "x-goog-api-key", "api-key"))
    return [one for one in (bearer, *others, query.get("key", "")) if one]


LONGEST = 64_000_000
"""Maximum bytes of a request; Anthropic accepts 32 MB, the others less."""


class RefusedBodyError(ValueError):
    """A body that is not forwarded; the message says why."""


@dataclass(frozen=True, slots=True)
class CallBody:
    """The body of a model call.

    Attributes:
        values: the parsed body.
        data: the bytes to forward.
        hides_usage: whether the gateway has asked for usage that must not be shown to the agent.
    """

    values: JsonObject
    data: bytes
    model: str
    streamed: bool
    hides_usage: bool = False


def read_body(data: bytes, route: Route) -> CallBody:
    """Parse the body of a model call.

    Raises:
        RefusedBodyError: it is not a JSON object, or asks for work that cannot be counted.
    """
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RefusedBodyError("the body is not valid JSON") from error
    if not isinstance(values, dict):
        raise RefusedBodyError("the body is not a JSON object")
    if route.api == "responses" and values.get("background"):
        raise RefusedBodyError("background responses are not supported, since their usage cannot be counted")
    model, streamed = route.model or values.get("model"), route.streams or values.get("stream") is True
    model, options = model if isinstance(model, str) else "", values.get("stream_options")
    options = options if isinstance(options, dict) else {}
    if not streamed or route.api != "chat" or options.get("include_usage") is True:
        return CallBody(values, data, model, streamed)
    # a streamed chat completion reports usage only if asked
    values["stream_options"] = {**options, "include_usage": True}
    data = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    return CallBody(values, data, model, streamed, hides_usage=True)


_OF_PROXIES = frozenset({"proxy-authenticate", "proxy-authorization", "proxy-connection"})
_HOP_BY_HOP = _OF_PROXIES | {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
"""RFC 9110, section 7.6.1."""

_KEY_HEADERS = {"openai": "Authorization", "anthropic": "x-api-key", "gemini": "x-goog-api-key"}
_KEYS = frozenset({"api-key", "authorization", "x-api-key", "x-goog-api-key"})
_ORIGINS = frozenset({"cookie", "forwarded", "host", "origin", "referer", "via", "x-forwarded-for"})
_OF_BODIES = frozenset({"content-encoding", "content-length"})
_NOT_SENT = _HOP_BY_HOP | _KEYS | _ORIGINS | _OF_BODIES | {"accept-encoding", "expect"}
_NOT_RETURNED = _HOP_BY_HOP | _OF_BODIES | {"set-cookie", "alt-svc", "strict-transport-security"}


def sent_headers(request: Request, upstream: ModelUpstream, token: str) -> dict[str, str]:
    """Return the headers for the API, with the real key instead of the token."""
    left_out = _NOT_SENT | {name.strip().lower() for name in request.headers.get("Connection", "").split(",")}
    given = request.headers.items()
    passed = {name: value for name, value in given if name.lower() not in left_out and token not in value}
    name, key = _KEY_HEADERS[upstream.protocol], upstream.api_key
    own = f"Bearer {key}" if upstream.protocol == "openai" else key
    return {**passed, name: own, "Accept-Encoding": "identity"}


def returned_headers(headers: Mapping[str, str], upstream: ModelUpstream) -> dict[str, str]:
    """Return the headers for the agent, without any that contain the key."""
    shown = {name: value for name, value in headers.items() if name.lower() not in _NOT_RETURNED}
    return {name: value for name, value in shown.items() if not upstream.holds_key(value)}


REDACTED = b"[redacted]"


def redacted(data: bytes, upstream: ModelUpstream) -> bytes:
    """Return bytes with the real key redacted."""
    key = upstream.api_key
    return data.replace(key.encode(), REDACTED) if len(key) >= SHORTEST_KEY else data


class StreamRedaction:
    """Redacts the real key in a stream. Bytes that may be its beginning wait until more arrive."""

    def __init__(self, upstream: ModelUpstream) -> None:
        key = upstream.api_key.encode()
        self._key = key if len(key) >= SHORTEST_KEY else b""
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk and return what can be forwarded."""
        if not self._key:
            return chunk
        data = (self._held + chunk).replace(self._key, REDACTED)
        longest = min(len(self._key) - 1, len(data))
        begun = next((size for size in range(longest, 0, -1) if data.endswith(self._key[:size])), 0)
        self._held = data[len(data) - begun :]
        return data[: len(data) - begun]

    def end(self) -> bytes:
        """Return the rest of the stream."""
        return self._held
