"""A server that speaks OpenAI's API, connected: answers and vectors."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import DocumentBlock, Message
from agentv.model.values.response import STRUCTURED, CallFailure, Embeddings, Failure, TargetResponse, is_cut
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject
from agentv.ports import Executor, TargetRequest
from agentv.targets.http.answers import parsed
from agentv.targets.http.failures import failure_of, is_local, missing_key, no_reply_in_time, shown
from agentv.targets.http.preparation import Imports
from agentv.targets.model_api.client import ApiErrors, JsonReply, ModelClient
from agentv.targets.model_api.prices import cost_of, load_prices
from agentv.targets.model_api.settings import schema_in
from agentv.targets.model_api.streams import ENDED_EARLY, ChatStream, ReplyStream, ResponseStream, StreamedReply
from agentv.targets.openai_api.messages import chat_messages, response_items, with_system
from agentv.targets.openai_api.parameters import (
    SCHEMA,
    Dialect,
    OpenAISettings,
    chat_parameters,
    refused_by,
    removable,
    response_parameters,
)
from agentv.targets.openai_api.replies import (
    batches,
    chat_answer,
    cost_in,
    filtered,
    reported_error,
    response_answer,
    vectors_of,
    with_calls_as_output,
)

_LEARNING = frozenset({400, 422, 501})
"""Statuses with which servers refuse a part of a request that they do not know."""


@dataclass(frozen=True, slots=True)
class _Api:
    """One of the two APIs: its path, the key of its messages, how a request is written, and how a reply is read."""

    path: str
    key: str
    messages: Callable[[Iterable[Message]], list[Any] | Failure]
    parameters: Callable[[OpenAISettings, Dialect, TargetRequest, frozenset[str]], dict[str, Any]]
    read: Callable[[JsonObject], TargetResponse | Failure]
    stream: type[StreamedReply]


_CHAT = _Api("/chat/completions", "messages", chat_messages, chat_parameters, chat_answer, ChatStream)
_RESPONSES = _Api("/responses", "input", response_items, response_parameters, response_answer, ResponseStream)


class OpenAITarget:
    """One client, for answers and for vectors."""

    def __init__(self, settings: OpenAISettings, spec: TargetSpec, executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, self._import)
        self._dialect = settings.dialect()
        prices = self._dialect.prices
        self._prices = None if prices is None or is_local(prices) else prices  # no list has prices of this machine
        self._spec = spec
        named = {name: os.environ[key] for name, key in _FROM_ENVIRONMENT.items() if key in os.environ}
        self._client = ModelClient(
            self._dialect.base_url,
            _Errors(frozenset(spec.retry.status_codes), settings.secrets),
            self._dialect.credentials(),
            {**named, **settings.headers},
            self._dialect.key_from,
            self._dialect.unreachable,
        )
        self._refused: frozenset[str] = frozenset()
        self._api = _CHAT if settings.api == "chat" else _RESPONSES

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask once; again, at once, only where the server refuses a part that can be left out (see `parameters`)."""
        if self._dialect.keyless:
            return missing_key(self._dialect.key_from)
        conversation = with_system(self._settings.system, request.messages, request.prompt)
        messages = _refused_content(self._settings, conversation) or self._api.messages(conversation)
        if isinstance(messages, Failure):
            return messages
        await self._ready()
        stream = ReplyStream(self._api.stream) if self._settings.stream else None
        try:
            async with asyncio.timeout(request.timeout_s):
                reply = await self._post(request, messages, stream)
        except TimeoutError:
            reply = no_reply_in_time(request.timeout_s)
        found = reply if isinstance(reply, Failure) else self._read(reply)
        return found if stream is None else stream.timed(found, self._api.read)

    async def _ready(self) -> None:
        """Return once there is a client; what it takes to make one is not the time of an answer."""
        await self._imports.ready()
        self._client.opened()

    def _import(self) -> None:
        """Import the HTTP client and read the price list."""
        import aiohttp  # noqa: F401

        if self._prices is not None:
            load_prices()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _post(
        self, request: TargetRequest, messages: list[Any], stream: ReplyStream | None
    ) -> JsonReply | Failure:
        refused, api = self._refused, self._api
        while True:
            body = {api.key: messages, **api.parameters(self._settings, self._dialect, request, refused)}
            reply = await self._client.post(self._dialect.path(api.path, body["model"]), body, stream)
            if not (isinstance(reply, Refused) and reply.status in _LEARNING):
                self._refused |= refused  # it went well without, or at least no worse
                return reply
            sent = removable(self._settings, self._dialect, request, refused)
            # what the error names, else a schema, of which some servers only say 'bad request'
            more = refused_by(reply.about, sent) or sent & {SCHEMA}
            if not more:
                return reply
            refused |= more

    def _read(self, reply: JsonReply) -> TargetResponse | Failure:
        found = self._api.read(reply.body)
        if isinstance(found, Failure):
            return found
        usage = found.token_usage
        if found.output is None and not found.messages and not self._spec.allow_empty and is_cut(found.finish_reason):
            spent = f" {usage.reasoning} of its tokens were used for reasoning;" if usage and usage.reasoning else ""
            message = f"the model reached its limit before answering;{spent} raise 'max_tokens'"
            return CallFailure("empty-output", message)
        cost = self._cost(reply.body, usage)
        found = with_calls_as_output(found, reply.body) if self._settings.tool_calls_as_output else found
        metadata = found.metadata
        # an answer that is the JSON which the target's own schema asks for: code grades the value
        if schema_in(self._settings.response_format) is not None and isinstance(
            parsed(found.output or ""), dict | list
        ):
            metadata = {**metadata, STRUCTURED: True}
        return replace(found, cost_usd=cost, duration_ms=reply.duration_ms, metadata=metadata)

    def _cost(self, body: JsonObject, usage: TokenUsage | None, model: str | None = None) -> float | None:
        """What the server says, else by the price list: under the name of the model that answered, else the asked."""
        reported = cost_in(body)
        prices = self._prices
        if reported is not None or prices is None:
            return reported
        model_name = model or self._settings.model
        names = dict.fromkeys(name for name in (body.get("model"), model_name) if isinstance(name, str))
        return next((cost for name in names if (cost := cost_of(prices, name, usage)) is not None), None)

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Vectors of the texts, in their order, from as many calls as needed.

        Args:
            texts: none of them empty, which the APIs refuse.
            timeout_s: seconds for all of it.
        """
        if self._dialect.keyless:
            return missing_key(self._dialect.key_from)
        await self._ready()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._embedded(texts)
        except TimeoutError:
            return no_reply_in_time(timeout_s)

    async def _embedded(self, texts: Sequence[str]) -> Embeddings | Failure:
        found = Embeddings(())
        model = self._dialect.embedding_model
        for batch in batches(texts, packed=self._dialect.packed_vectors):
            form = "base64" if self._dialect.packed_vectors else "float"
            body = {"model": model, "input": batch, "encoding_format": form}
            reply = await self._client.post(self._dialect.path("/embeddings", model), body)
            if isinstance(reply, Failure):
                return reply
            more = vectors_of(reply.body, len(batch))
            if isinstance(more, Failure):
                return more
            cost = self._cost(reply.body, more.token_usage, model)
            found = _joined(found, replace(more, cost_usd=cost))
        if len({len(vector) for vector in found.vectors}) > 1:
            return CallFailure("bad-answer", "the vectors differ in length", retryable=True)
        return found


def _refused_content(settings: OpenAISettings, messages: Iterable[Message]) -> Failure | None:
    """Why a picture or a PDF cannot be sent, where the server has no place for it."""
    for block in (one for message in messages if isinstance(message.content, tuple) for one in message.content):
        if why := settings.refuses(block):
            code = "bad-document" if isinstance(block, DocumentBlock) else "bad-picture"
            return Failure(code, f"this API {why}")
    return None


def _joined(one: Embeddings, more: Embeddings) -> Embeddings:
    if not one.vectors:
        return more
    usage = one.token_usage + more.token_usage if one.token_usage and more.token_usage else None
    cost = None if one.cost_usd is None or more.cost_usd is None else one.cost_usd + more.cost_usd
    return Embeddings(one.vectors + more.vectors, usage, cost)


_FILTERS = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
"""Codes of errors that mean the content and not the call."""

_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of status 429 that a retry cannot fix."""

_FROM_ENVIRONMENT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that OpenAI's SDK sends too if the variable is set."""


class Refused(CallFailure, frozen=True):
    """A reply with an error status; `about` is all that it says of the cause, for recognising it."""

    about: str = ""


class _Errors(ApiErrors):
    """Of OpenAI's API, and of all servers that speak it."""

    def of_status(self, status: int, content: bytes, headers: Mapping[str, str]) -> CallFailure:
        message, code, parameter = _error_in(content)
        if code in _FILTERS or "ResponsibleAIPolicy" in message:
            return filtered()
        known = structs.asdict(failure_of(status, message, headers, self.retryable, secrets=self.secrets))
        if code in _SPENT:
            known |= {"retryable": False, "stops": True}
        return Refused(**known, about=f"{parameter} {code} {shown(message, self.secrets)}")

    def of_stream(self, error: Json) -> CallFailure:
        return reported_error({"error": error}) or ENDED_EARLY


def _error_in(content: bytes) -> tuple[str, str, str]:
    """The words of an error, its code and the parameter that it names, in the shapes in which servers write them."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content[:8000].decode(errors="replace"), "", ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return error if isinstance(error, str) else json.dumps(error), "", ""
    message = next((error[key] for key in ("message", "detail", "error") if error.get(key)), error)
    code = error.get("code") or error.get("type") or ""
    return message if isinstance(message, str) else json.dumps(message), str(code), str(error.get("param") or "")
