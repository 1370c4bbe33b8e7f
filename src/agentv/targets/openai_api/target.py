"""The target of all servers with OpenAI's API, for answers and embeddings.

OpenAI's SDK takes almost a second to import and three milliseconds per call, and its retries, timeouts and reply
classes would have to be disabled. So the few requests are made with aiohttp directly.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import structs
from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import DocumentBlock, Message
from agentv.model.values.response import STRUCTURED, CallFailure, Embeddings, Failure, TargetResponse, is_cut
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import Executor, TargetRequest
from agentv.targets.http.answers import TOO_LARGE, parsed
from agentv.targets.http.connection import (
    TooLargeError,
    bounded,
    reason_of,
    sendable,
    tls_context,
    unlimited_session,
)
from agentv.targets.http.failures import (
    carries_key,
    failure_of,
    has_user,
    is_compressed,
    is_local,
    missing_key,
    no_key_sent,
    no_reply_in_time,
    shown,
)
from agentv.targets.http.preparation import Imports
from agentv.targets.model_api.prices import cost_of, load_prices
from agentv.targets.model_api.settings import schema_in
from agentv.targets.model_api.streams import (
    ChatStream,
    ReplyStream,
    ResponseStream,
    StreamedReply,
    events_in,
    is_stream,
)
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
    bad_answer,
    batches,
    chat_answer,
    cost_in,
    filtered,
    reported_error,
    response_answer,
    vectors_of,
    with_calls_as_output,
)
from agentv.user_code.connections import proxy_for
from agentv.user_code.excerpts import head
from agentv.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from multidict import CIMultiDict


_REJECTION_STATUSES = frozenset({400, 422, 501})
"""Statuses with which servers reject an unknown part of a request."""


@dataclass(frozen=True, slots=True)
class _Api:
    """One of the two APIs: its path, the key of its messages, and the functions for its requests and replies."""

    path: str
    key: str
    messages: Callable[[Iterable[Message]], list[Any] | Failure]
    parameters: Callable[[OpenAISettings, Dialect, TargetRequest, frozenset[str]], dict[str, Any]]
    read: Callable[[JsonObject], TargetResponse | Failure]
    stream: type[StreamedReply]


_CHAT = _Api("/chat/completions", "messages", chat_messages, chat_parameters, chat_answer, ChatStream)
_RESPONSES = _Api("/responses", "input", response_items, response_parameters, response_answer, ResponseStream)


class OpenAITarget:
    """A connected target, with one client for answers and embeddings."""

    def __init__(self, settings: OpenAISettings, spec: TargetSpec, executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, self._import)
        self._dialect = settings.dialect()
        prices = self._dialect.prices
        self._prices = None if prices is None or is_local(prices) else prices  # local models have no prices
        self._spec = spec
        self._client = ModelClient(
            self._dialect, settings.headers, frozenset(spec.retry.status_codes), settings.secrets
        )
        self._refused: frozenset[str] = frozenset()
        self._api = _CHAT if settings.api == "chat" else _RESPONSES

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Call the model, and again without a part that the server rejects if it can be omitted (see `parameters`)."""
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
        """Create the client on first use. That time does not count as time of an answer."""
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
            reply = await self._client.post(api.path, body, stream)
            if not (isinstance(reply, Refused) and reply.status in _REJECTION_STATUSES):
                self._refused |= refused  # the reply is no longer a rejection
                return reply
            sent = removable(self._settings, self._dialect, request, refused)
            # the parts that the error names, or else a schema, which some servers reject as a mere 'bad request'
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
        # with a schema in the target's settings, code graders get the parsed JSON of an answer
        if schema_in(self._settings.response_format) is not None and isinstance(
            parsed(found.output or ""), dict | list
        ):
            metadata = {**metadata, STRUCTURED: True}
        return replace(found, cost_usd=cost, duration_ms=reply.duration_ms, metadata=metadata)

    def _cost(self, body: JsonObject, usage: TokenUsage | None, model: str | None = None) -> float | None:
        """Return the cost that the server reports, or else the price of the model that answered or was requested."""
        reported = cost_in(body)
        prices = self._prices
        if reported is not None or prices is None:
            return reported
        model_name = model or self._settings.model
        names = dict.fromkeys(name for name in (body.get("model"), model_name) if isinstance(name, str))
        return next((cost for name in names if (cost := cost_of(prices, name, usage)) is not None), None)

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the embeddings of the texts in their order, with as many calls as needed.

        Args:
            texts: texts to embed, without empty ones, which the APIs reject.
            timeout_s: time limit in seconds for all calls together.
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


def _refused_content(settings: OpenAISettings, messages: Iterable[Message]) -> Failure | None:
    """Return a Failure if the messages contain a picture or PDF that the server does not support."""
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
"""Error codes that reject the content of a call."""

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of status 429 that a retry cannot fix."""

_FROM_ENVIRONMENT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Header → environment variable with its value. OpenAI's SDK sends the same headers."""

_KEY_STATUSES = (401, 403)

_HINTS = {
    401: "the key was refused: check {key}",
    403: "this key lacks permission: check {key}, and whether it has access to the model",
    404: "check 'model' and 'base_url'",
}


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A reply that is a JSON object, with its headers and the milliseconds until it had arrived."""

    body: JsonObject
    headers: Mapping[str, str]
    duration_ms: float


class Refused(CallFailure, frozen=True):
    """A reply with an error status. `about` has its code, parameter and message, to find the rejected part."""

    about: str = ""


@dataclass(slots=True)
class ModelClient:
    """The connection to one server.

    Attributes:
        dialect: dialect of the server.
        headers: additional headers.
        retryable: the target's `retry.status_codes`.
        secrets: texts to remove from messages.
    """

    dialect: Dialect
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retryable: frozenset[int] = frozenset()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    _session: ClientSession | None = field(default=None, repr=False)
    _headers: CIMultiDict[str] | None = field(default=None, repr=False)

    async def post(self, path: str, body: Mapping[str, Any], stream: ReplyStream | None = None) -> JsonReply | Failure:
        """Send a body and read the reply.

        Args:
            path: path of the API.
            body: body of the request.
            stream: receives the events of a streamed reply; None for a whole reply.

        Returns:
            The reply; `Refused` if it has an error status; or another Failure with the code `connection`,
            `bad-answer`, `bad-body` or `output-too-large`.
        """
        from aiohttp import ClientError

        try:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            return Failure("bad-body", f"the request cannot be written as JSON: {self._shown(str(error))}")
        url, session, started = self.dialect.url(path, body["model"]), self.opened(), perf_counter()
        if stream is not None:
            stream.begin()
        try:
            async with session.post(
                url,
                data=sendable(content),
                headers=self._headers,
                proxy=proxy_for(self.dialect.base_url),
                allow_redirects=False,  # another server must not get the key
            ) as response:
                if is_compressed(response.headers):
                    return self._refused(response, b"")
                pieces = bounded(response.content.iter_any())
                if stream is not None and response.status < 300 and is_stream(response.headers):
                    failure = await stream.read(events_in(pieces))
                    failure = reported_error({"error": stream.reply.error}) or failure
                    return failure or JsonReply(stream.reply.body(), response.headers, _ms_since(started))
                reply = b"".join([piece async for piece in pieces])
        except (ClientError, OSError, TooLargeError, ValueError, RecursionError) as error:
            return self._connection_failure(error)
        if not 200 <= response.status < 300:
            return self._refused(response, reply)
        return self._read(reply, response.headers, _ms_since(started))

    def opened(self) -> ClientSession:
        """Return the session of the running event loop, created on first use, which reads the certificates."""
        if self._session is not None:
            return self._session
        from multidict import CIMultiDict

        base_url = self.dialect.base_url
        headers = CIMultiDict(
            {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": f"agentv/{__version__}",
                **self.dialect.credentials(),
            }
        )
        headers.update({name: os.environ[key] for name, key in _FROM_ENVIRONMENT.items() if key in os.environ})
        headers.update(self.headers)
        if has_user(base_url):
            headers.pop("Authorization", None)  # aiohttp sends the user in the URL as `Authorization`
        self._headers = headers
        self._session = unlimited_session(tls_context(base_url, proxy_for(base_url)), auto_decompress=False)
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _read(self, content: bytes, headers: Mapping[str, str], duration_ms: float) -> JsonReply | Failure:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            kind = headers.get("content-type", "no content type").partition(";")[0]
            return bad_answer(f"the response is not JSON ({kind}): {self._shown(head(content, 200)) or 'no body'}")
        if not isinstance(body, dict):
            return bad_answer(f"the response is not a JSON object: {self._shown(head(content, 200))}")
        return JsonReply(body, headers, duration_ms)

    def _refused(self, response: ClientResponse, reply: bytes) -> Failure:
        status = response.status
        message, code, parameter = _error_in(reply)
        if code in _FILTERS or "ResponsibleAIPolicy" in message:
            return filtered()
        failure = failure_of(status, message, response.headers, self.retryable, secrets=self.secrets)
        known = structs.asdict(failure)
        if hint := self._hint(status):
            known["message"] += f" ({hint})"
        if code in _QUOTA_CODES:
            known |= {"retryable": False, "stops": True}
        return Refused(**known, about=f"{parameter} {code} {self._shown(message)}")

    def _hint(self, status: int) -> str | None:
        """Return a hint for an error status, or None. A local server is called without a key, but may require one."""
        if status in _KEY_STATUSES and not self.dialect.api_key and not carries_key(self.headers):
            return no_key_sent(self.dialect.key_from)
        place = f"'api_key' ({' or '.join(self.dialect.key_from)})" if self.dialect.api_key else "'headers'"
        return _HINTS.get(status, "").format(key=place) or None

    def _connection_failure(self, error: Exception) -> Failure:
        """Return the failure for an exception while reading a reply."""
        from aiohttp import ClientConnectorError, ClientPayloadError

        if isinstance(error, TooLargeError):
            return TOO_LARGE
        if isinstance(error, ClientPayloadError):
            return bad_answer("the response was cut off")
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError):
            return bad_answer(f"an event of the stream is not JSON: {self._shown(str(error))}")
        unreachable = isinstance(error, ClientConnectorError) and self.dialect.unreachable
        hint = f"; {unreachable}" if unreachable else ""
        return CallFailure("connection", f"no reply: {self._shown(reason_of(error))}{hint}", retryable=True)

    def _shown(self, message: str) -> str:
        return shown(message, self.secrets)


def _ms_since(started: float) -> float:
    return (perf_counter() - started) * 1000


def _error_in(content: bytes) -> tuple[str, str, str]:
    """Return the message, code and parameter of an error body, in any of the formats that servers use."""
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
