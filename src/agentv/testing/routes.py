"""Routes of the providers' APIs, and the bytes that a step replies with on each."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from agentv.testing.anthropic_messages import ANTHROPIC, MESSAGES
from agentv.testing.embeddings import EMBED, EMBED_MANY, EMBED_ONE
from agentv.testing.gemini import GEMINI, GENERATE
from agentv.testing.openai import AZURE, CHAT, OLLAMA, OPENAI, RESPONSES
from agentv.testing.replies import JSON, ModelApi, Operation, Reply, encoded, ok_reply
from agentv.testing.steps import (
    Answer,
    ContentFilter,
    EmptyChoices,
    MalformedJson,
    ModelCall,
    SlowDrip,
    Status,
    Step,
    StoppedStream,
    Together,
    Truncated,
    WrongType,
)

ADDRESSES = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "gemini": "/gemini",
    "azure": "/azure",
    "ollama": "/ollama",
}
"""Protocol → path of its base URL."""

_GEMINI = r"/gemini/v1\w*/\w+/(?P<model>[^/:]+)"
_DEPLOYMENT = r"/azure/openai/deployments/(?P<model>[^/]+)"
_OPENAI_BASES = ((r"/openai/v1", OPENAI), (r"/azure/openai(?:/v1)?", AZURE), (r"/ollama/v1", OLLAMA))
_OPENAI_PATHS = (("/chat/completions", CHAT), ("/responses", RESPONSES), ("/embeddings", EMBED))
_ROUTES: tuple[tuple[str, ModelApi, Operation], ...] = (
    *((base + path, api, operation) for base, api in _OPENAI_BASES for path, operation in _OPENAI_PATHS),
    (r"/anthropic/v1/messages", ANTHROPIC, MESSAGES),
    (rf"{_GEMINI}:(?:generateContent|streamGenerateContent)", GEMINI, GENERATE),
    (rf"{_GEMINI}:embedContent", GEMINI, EMBED_ONE),
    (rf"{_GEMINI}:batchEmbedContents", GEMINI, EMBED_MANY),
    (rf"{_DEPLOYMENT}/chat/completions", AZURE, CHAT),
    (rf"{_DEPLOYMENT}/embeddings", AZURE, EMBED),
)
_COMPILED = tuple((re.compile(pattern), provider, operation) for pattern, provider, operation in _ROUTES)
_PROVIDERS = {provider.name: provider for provider in (OPENAI, ANTHROPIC, GEMINI, AZURE, OLLAMA)}


@dataclass(frozen=True, slots=True)
class Route:
    """The operation of a path, with the model if the path contains it."""

    provider: ModelApi
    operation: Operation
    model: str = ""


def route_of(path: str) -> Route | None:
    """Operation of a POST to a path; None if no provider has such a path."""
    for pattern, provider, operation in _COMPILED:
        if match := pattern.fullmatch(path):
            return Route(provider, operation, unquote(match.groupdict().get("model") or ""))
    return None


def provider_of(path: str) -> ModelApi:
    """Provider of a path; OpenAI for unknown paths."""
    return _PROVIDERS.get(path.split("/")[1], OPENAI)


NO_REPLY = Reply(0, ())


def reply_of(route: Route, call: ModelCall, step: Step, number: int) -> Reply:
    """The bytes of a step's reply. `deliver` delays or truncates them."""
    if isinstance(step, ContentFilter) and route.provider.filtered is not None:
        step = route.provider.filtered
    match step:
        case Status():
            return error_reply(route.provider, call, step)
        case Answer() | EmptyChoices() | ContentFilter():
            return ok_reply(route.operation, call, step, number)
        case WrongType():
            return Reply(200, (step.body.encode(),), step.content_type)
        case MalformedJson() | Truncated() | SlowDrip() | StoppedStream() | Together():
            whole = ok_reply(route.operation, call, step.answer, number)
            if not isinstance(step, MalformedJson):
                return whole
            pieces = list(whole.pieces)
            place = min(1, len(pieces) - 1)  # remove a brace from the body or the second event
            pieces[place] = pieces[place].replace(b"}", b"", 1)
            return replace(whole, pieces=tuple(pieces))
    return NO_REPLY  # ClosedConnection, Hang


def error_reply(provider: ModelApi, call: ModelCall, status: Status) -> Reply:
    """An error reply in the provider's format."""
    after = status.retry_after
    body = provider.error(call, status.code, status.message, None if isinstance(after, str) else after)
    headers = {} if after is None else {"Retry-After": after if isinstance(after, str) else f"{after:g}"}
    return Reply(status.code, (encoded(body),), JSON, {**headers, **status.headers})


def over_limit(provider: ModelApi, call: ModelCall, wait_s: float) -> Reply:
    """A 429 reply with the retry delay in the headers that the SDKs read."""
    body = provider.error(call, 429, "", wait_s)
    headers = {"Retry-After": str(math.ceil(wait_s)), "retry-after-ms": str(math.ceil(wait_s * 1000))}
    return Reply(429, (encoded(body),), JSON, headers)
