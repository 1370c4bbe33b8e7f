"""A server that speaks OpenAI's API, connected: answers and vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.response import STRUCTURED, CallFailure, Embeddings, Failure, TargetResponse, is_cut
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import Executor, TargetRequest
from agentv.targets.http.answers import parsed
from agentv.targets.http.model_calls import is_local, missing_key, no_reply_in_time
from agentv.targets.http.once import Imports
from agentv.targets.model_api.prices import cost_of, load_prices
from agentv.targets.model_api.settings import schema_in
from agentv.targets.model_api.streams import ChatStream, ReplyStream, ResponseStream
from agentv.targets.openai_api.client import JsonReply, ModelClient, Refused
from agentv.targets.openai_api.messages import AcceptedContent, chat_messages, response_items, with_system
from agentv.targets.openai_api.parameters import (
    SCHEMA,
    OpenAISettings,
    chat_parameters,
    refused_by,
    removable,
    response_parameters,
)
from agentv.targets.openai_api.replies import chat_answer, cost_in, response_answer, with_calls_as_output
from agentv.targets.openai_api.vectors import Batches, vectors_of

_LEARNING = frozenset({400, 422, 501})
"""Statuses with which servers refuse a part of a request that they do not know."""


class OpenAITarget:
    """One client, for answers and for vectors."""

    def __init__(self, settings: OpenAISettings, spec: TargetSpec, executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, self._import)
        self._dialect = settings.dialect()
        prices = self._dialect.prices
        self._prices = None if prices is None or is_local(prices) else prices  # no list has prices of this machine
        self._spec = spec
        self._client = ModelClient(
            self._dialect, settings.headers, frozenset(spec.retry.status_codes), settings.secrets
        )
        self._refused: frozenset[str] = frozenset()
        self._read_body = chat_answer if settings.api == "chat" else response_answer

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask once; again, at once, only where the server refuses a part that can be left out (see `parameters`)."""
        if self._dialect.keyless:
            return missing_key(self._dialect.key_from)
        messages = self._messages(request)
        if isinstance(messages, Failure):
            return messages
        await self._ready()
        stream = self._stream()
        try:
            async with asyncio.timeout(request.timeout_s):
                reply = await self._post(request, messages, stream)
        except TimeoutError:
            reply = no_reply_in_time(request.timeout_s)
        found = reply if isinstance(reply, Failure) else self._read(reply)
        return found if stream is None else stream.timed(found, self._read_body)

    async def _ready(self) -> None:
        """Return once there is a client; what it takes to make one is not the time of an answer."""
        await self._imports.ready()
        self._client.opened()

    def _import(self) -> None:
        """Import the HTTP client and read the price list."""
        import aiohttp  # noqa: F401

        if self._prices is not None:
            load_prices()

    def _stream(self) -> ReplyStream | None:
        if not self._settings.stream:
            return None
        return ReplyStream(ChatStream if self._settings.api == "chat" else ResponseStream)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _messages(self, request: TargetRequest) -> list[Any] | Failure:
        write = chat_messages if self._settings.api == "chat" else response_items
        conversation = with_system(self._settings.system, request.messages, request.prompt)
        return write(conversation, AcceptedContent(self._dialect.fetches_pictures, self._dialect.takes_documents))

    async def _post(
        self, request: TargetRequest, messages: list[Any], stream: ReplyStream | None
    ) -> JsonReply | Failure:
        refused = self._refused
        while True:
            reply = await self._client.post(*self._call(request, messages, refused), stream)
            if not (isinstance(reply, Refused) and reply.status in _LEARNING):
                self._refused |= refused  # it went well without, or at least no worse
                return reply
            more = self._left_out(reply, request, refused)
            if not more:
                return reply
            refused |= more

    def _call(
        self, request: TargetRequest, messages: list[Any], refused: frozenset[str]
    ) -> tuple[str, Mapping[str, Any]]:
        """The path and the body."""
        if self._settings.api == "chat":
            parameters = chat_parameters(self._settings, self._dialect, request, refused)
            return "/chat/completions", {"messages": messages, **parameters}
        parameters = response_parameters(self._settings, self._dialect, request, refused)
        return "/responses", {"input": messages, **parameters}

    def _left_out(self, reply: Refused, request: TargetRequest, refused: frozenset[str]) -> frozenset[str]:
        """What to leave out next: what the error names, else a schema, of which some servers only say 'bad request'."""
        sent = removable(self._settings, self._dialect, request, refused)
        return refused_by(reply.about, sent) or sent & {SCHEMA}

    def _read(self, reply: JsonReply) -> TargetResponse | Failure:
        found = self._read_body(reply.body)
        if isinstance(found, Failure):
            return found
        if found.output is None and not found.messages and not self._spec.allow_empty and is_cut(found.finish_reason):
            return _all_spent(found.token_usage)
        cost = self._cost(reply.body, found.token_usage)
        found = with_calls_as_output(found, reply.body) if self._settings.tool_calls_as_output else found
        return replace(
            found,
            cost_usd=cost,
            duration_ms=reply.duration_ms,
            metadata={**found.metadata, **self._structured(found.output)},
        )

    def _structured(self, output: str | None) -> JsonObject:
        """The mark of an answer that is the JSON which the target's own schema asks for; code grades the value."""
        schema = schema_in(self._settings.response_format)
        return {STRUCTURED: True} if schema is not None and isinstance(parsed(output or ""), dict | list) else {}

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
        for batch in Batches(texts, packed=self._dialect.packed_vectors):
            form = "base64" if self._dialect.packed_vectors else "float"
            body = {"model": model, "input": list(batch), "encoding_format": form}
            reply = await self._client.post("/embeddings", body)
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


def _joined(one: Embeddings, more: Embeddings) -> Embeddings:
    if not one.vectors:
        return more
    usage = one.token_usage + more.token_usage if one.token_usage and more.token_usage else None
    cost = None if one.cost_usd is None or more.cost_usd is None else one.cost_usd + more.cost_usd
    return Embeddings(one.vectors + more.vectors, usage, cost)


def _all_spent(usage: TokenUsage | None) -> CallFailure:
    """Models that reason may spend all the tokens that they have before they say a word."""
    spent = f" {usage.reasoning} of its tokens were used for reasoning;" if usage and usage.reasoning else ""
    return CallFailure("empty-output", f"the model reached its limit before answering;{spent} raise 'max_tokens'")
