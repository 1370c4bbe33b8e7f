"""One model call: forwarded with the real key, streamed back, counted, and recorded or replayed on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

from aiohttp import ClientConnectionResetError, ClientConnectorError, ClientError, ClientResponse, ClientSession
from aiohttp.web import Request, Response, StreamResponse
from yarl import URL

from agentv.extensions.agents.gateway.routes import (
    CallBody,
    Route,
    StreamRedaction,
    protocol_of,
    redacted,
    returned_headers,
    sent_headers,
)
from agentv.extensions.agents.gateway.session import STILL_RUNNING, CountedCall, TrialSession
from agentv.extensions.agents.gateway.usage import (
    ReplyReader,
    StreamReader,
    TooLongEventError,
    ceiling,
    cost_in,
    failure_in,
    is_local,
    usage_of,
)
from agentv.extensions.agents.traces.values import number
from agentv.model.suite.tools import DROP, ModelProtocol, ModelUpstream
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.trace import ModelReply, ModelRequest
from agentv.user_code.connections import proxy_for
from agentv.user_code.deadline import LIMIT

if TYPE_CHECKING:
    from agentv.extensions.agents.gateway.recording import TrialReplay

REFUSED_STATUS = 402
"""Status of a call that is refused, such as beyond a budget. SDKs and agents do not retry it."""

_ANTHROPIC = {401: "authentication_error", 402: "billing_error", 429: "rate_limit_error", 529: "overloaded_error"}
_OPENAI = {401: "invalid_api_key", 402: "insufficient_quota", 429: "rate_limit_exceeded"}
_GEMINI = {401: "UNAUTHENTICATED", 402: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}
"""Header that keeps the SDKs of OpenAI and Anthropic from retrying."""


_OPTIONS: Mapping[str, Any] = {"allow_redirects": False, "skip_auto_headers": ("User-Agent",)}
"""Options of requests to the API. Redirects are off, because the key is only for this server."""


def error_body(protocol: ModelProtocol, status: int, message: str) -> bytes:
    """Return the body of an error reply in the format of a protocol."""
    if protocol == "anthropic":
        kind = _ANTHROPIC.get(status, "invalid_request_error" if status < 500 else "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    if protocol == "gemini":
        kind = _GEMINI.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")
        return json.dumps({"error": {"code": status, "message": message, "status": kind}}).encode()
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": _OPENAI.get(status)}
    return json.dumps({"error": error}).encode()


def replayed_response(exchanges: TrialReplay, request: ModelRequest, connection: Request) -> Response:
    """Return the recorded reply to a request that is not a model call, or an error reply."""
    found = exchanges.recorded(request)
    if not isinstance(found, ModelReply):
        return refusal(connection.path, REFUSED_STATUS, found.message)
    if not found.complete:
        abort_connection(connection)
    kind = {"Content-Type": found.content_type} if found.content_type else {}
    return Response(status=found.status or REFUSED_STATUS, body=found.body, headers=kind)


def abort_connection(connection: Request) -> None:
    """Abort the connection to the agent before the reply is complete."""
    if connection.transport is not None:
        connection.transport.abort()


def refusal(path: str, status: int, message: str) -> Response:
    """Return an error reply to a request that is not forwarded, in the format of its API."""
    body = error_body(protocol_of(path), status, message)
    return Response(status=status, body=body, content_type="application/json", headers=dict(NO_RETRY))


async def forward_once(
    client: ClientSession, session: TrialSession, request: Request, route: Route, data: bytes
) -> StreamResponse:
    """Forward a request that is not a model call, such as one that counts tokens, unchanged and without retries."""
    upstream, token, exchanges = session.upstream, session.access.token, session.exchanges
    asked = ModelRequest(route.protocol, request.method, route.path, data)
    if exchanges is not None and exchanges.replays:
        return replayed_response(exchanges, asked, request)
    record = None if exchanges is None else exchanges.begin(asked)
    url = address(upstream, route.path, request, token)
    try:
        headers, proxy = sent_headers(request, upstream, token), proxy_for(str(url))
        async with client.request(
            request.method, url, data=data or None, headers=headers, proxy=proxy, **_OPTIONS
        ) as reply:
            found = redacted(await read_bounded(reply.content) or b"", upstream)
            if record is not None:
                record(ModelReply(reply.status, reply.headers.get("Content-Type", ""), found))
            return Response(status=reply.status, body=found, headers=returned_headers(reply.headers, upstream))
    except (ClientError, OSError, ValueError) as error:
        return refusal(request.path, 502, f"no reply: {reason_of(error, upstream)}")


LONGEST_REPLY = 64_000_000
"""Maximum bytes of a reply that is not streamed."""

_CHUNK = 1 << 16
_FAULT_STATUS_TEXT = "injected by the target's 'faults'"


@dataclass(slots=True)
class ForwardedCall:
    """One model call of an agent.

    Attributes:
        reply: the reply to the agent, once it has begun.
        last: the last error of the API: status, headers, body.
        record: called with the reply, to record it.
    """

    session: TrialSession
    client: ClientSession
    request: Request
    route: Route
    body: CallBody
    call: CountedCall
    reply: StreamResponse | None = None
    last: tuple[int, Mapping[str, str], bytes] | None = None
    record: Callable[[ModelReply], None] = field(default=lambda _: None)

    async def answer(self) -> StreamResponse:
        """Make the call and return the reply to the agent."""
        session, call, exchanges = self.session, self.call, self.session.exchanges
        asked = ModelRequest(self.route.protocol, "POST", self.route.path, self.body.data)
        try:
            if exchanges is not None and exchanges.replays:
                return await self._replay(exchanges.recorded(asked))
            fault = next(session.faults)
            if fault is not None:
                self.call.excused = True
                what = "the connection was dropped" if fault == DROP else f"HTTP {fault}"
                self.call.failure = Failure("connection", f"{what}: {_FAULT_STATUS_TEXT}")
                if fault == DROP:
                    abort_connection(self.request)
                    return StreamResponse()
                return await self._send(int(fault), error_body(self.route.protocol, int(fault), _FAULT_STATUS_TEXT), {})
            if exchanges is not None:
                self.record = exchanges.begin(asked)
            return await self._call_api()
        except (asyncio.CancelledError, ConnectionError):
            if session.closed:
                call.abort("it had not ended when the trial did", STILL_RUNNING)
            call.abort("the agent closed the connection before the reply ended")
            raise
        finally:
            session.end(call)

    async def _call_api(self) -> StreamResponse:
        """Return the reply of the API, after as many attempts as the target's settings allow."""
        session, call, body = self.session, self.call, self.body
        cost_ceiling = ceiling(session.upstream, body.model, body.values)
        outcome = await session.limits.call(self._attempt, cost_ceiling, len(body.data))
        if isinstance(outcome, TargetResponse):
            call.failure = None
            assert self.reply is not None  # noqa: S101  # set with each answer
            return self.reply
        call.failure = outcome
        if self.reply is not None:  # it has begun, so only a broken connection can show the failure
            abort_connection(self.request)
            return self.reply
        if isinstance(outcome, CallFailure) and self.last is not None:
            status, headers, data = self.last
            self.record(ModelReply(status, headers.get("Content-Type", "application/json"), data))
            return await self._send(status, data, headers)
        if isinstance(outcome, CallFailure):
            return await self._error(502, outcome.message)
        session.refuse(outcome)
        return await self._error(REFUSED_STATUS, outcome.message)

    async def _attempt(self) -> TargetResponse | Failure:
        """Make one attempt. It can be repeated until the first byte of its reply is forwarded."""
        self.last = None
        try:
            found = await self._exchange()
        except (ClientError, OSError, ValueError) as error:
            if self.reply is not None and isinstance(error, ClientConnectionResetError):
                raise  # the agent closed its connection while the reply was written
            what = reason_of(error, self.session.upstream)
            if self.reply is not None:
                found = CallFailure("bad-answer", f"the reply was cut off: {what}")
            elif isinstance(error, ClientConnectorError | ValueError):  # nothing was sent
                found = CallFailure("connection", f"no reply: {what}", retryable=not isinstance(error, ValueError))
            else:  # the API may have done the work, so the budget counts it
                found = CallFailure("bad-answer", f"no whole reply: {what}", retryable=True)
        if isinstance(found, Failure):
            self.call.failure = found
        return found

    async def _exchange(self) -> TargetResponse | Failure:
        session, route, body = self.session, self.route, self.body.data
        url = address(session.upstream, route.path, self.request, session.access.token)
        data = body if len(body) <= _CHUNK else BytesIO(body)  # sent in chunks, so that other calls are not delayed
        headers = sent_headers(self.request, session.upstream, session.access.token)
        async with self.client.post(url, data=data, headers=headers, proxy=proxy_for(str(url)), **_OPTIONS) as reply:
            if reply.status >= 300:
                refused = redacted(await read_bounded(reply.content) or b"", session.upstream)
                self.last = (reply.status, returned_headers(reply.headers, session.upstream), refused)
                retried = frozenset(session.trial.target.retry.status_codes)
                return failure_in(session.upstream, reply.status, reply.headers, refused, retried)
            if reply.headers.get("Content-Encoding", "identity") != "identity":
                return CallFailure("bad-answer", "the API compressed its reply, though it was asked not to")
            return await self._forward_reply(reply)

    async def _forward_reply(self, reply: ClientResponse) -> TargetResponse | Failure:
        """Forward a successful reply and count its usage."""
        reader, upstream = ReplyReader(self.route.api or "chat"), self.session.upstream
        limit = LIMIT.get()
        if reply.content_type != "text/event-stream":
            data = await read_bounded(reply.content)
            if data is None:
                return CallFailure("bad-answer", "the reply is larger than the gateway takes")
            reader.read_whole(data)
            with limit.held(_now) if limit is not None else nullcontext():
                found = self._count_usage(reader)
                self.record(ModelReply(reply.status, reply.headers.get("Content-Type", ""), data))
                self.session.keep_reply(self.call, reader.body, len(data))
                shown, headers = redacted(data, upstream), returned_headers(reply.headers, upstream)
                self.reply = await self._send(reply.status, shown, headers)
            return found
        first = await reply.content.readany()
        with limit.held(_now) if limit is not None else nullcontext():
            return await self._forward_stream(reply, first, reader)

    async def _forward_stream(
        self, reply: ClientResponse, first: bytes, reader: ReplyReader
    ) -> TargetResponse | Failure:
        stream, whole = StreamReader(reader, hides_usage=self.body.hides_usage), bytearray()
        redaction = StreamRedaction(self.session.upstream)
        answer = await self._begin(reply.status, returned_headers(reply.headers, self.session.upstream))
        chunk = first
        try:
            while chunk:
                whole += chunk
                shown = redaction.feed(stream.feed(chunk))
                if shown:
                    await answer.write(shown)
                chunk = await reply.content.readany()
            rest = redaction.feed(stream.end()) + redaction.end()
            if rest:
                await answer.write(rest)
        except TooLongEventError:
            return CallFailure("bad-answer", "an event of the stream is longer than the gateway takes")
        finally:
            reader.end()
            found = self._count_usage(reader)
            whole_type, is_whole = reply.headers.get("Content-Type", ""), not isinstance(found, Failure)
            self.record(ModelReply(reply.status, whole_type, bytes(whole), complete=is_whole))
            self.session.keep_reply(self.call, reader.body, len(whole))
        if not isinstance(found, Failure):
            await answer.write_eof()
        return found

    def _count_usage(self, reader: ReplyReader) -> TargetResponse | Failure:
        """Count the usage of a reply, even if it failed; return the usage or the failure."""
        session, call = self.session, self.call
        usage = reader.usage
        tokens, written = usage_of(self.route.protocol, usage)
        call.model = reader.model or call.model
        call.tokens, call.finish = tokens, reader.finish
        call.cost_usd = number((usage or {}).get("cost"))
        if call.cost_usd is None:
            call.cost_usd = cost_in(session.upstream, self.body.model, tokens, cache_written=written)
        if call.cost_usd is None and reader.model not in {"", self.body.model}:
            call.cost_usd = cost_in(session.upstream, reader.model, tokens, cache_written=written)
        if reader.error is not None:
            return CallFailure("bad-answer", f"the API broke off its reply: {reader.error}")
        if not reader.complete:
            return CallFailure("bad-answer", "the stream ended early")
        cost = 0.0 if call.cost_usd is None and is_local(session.upstream) else call.cost_usd
        return TargetResponse(None, token_usage=tokens, cost_usd=cost)

    async def _replay(self, recorded: ModelReply | Failure) -> StreamResponse:
        """Return the recorded reply, whose usage counts but is not charged. Without one, the trial fails."""
        session, call = self.session, self.call
        if isinstance(recorded, Failure):
            session.refuse(recorded)
            call.failure = recorded
            return await self._error(REFUSED_STATUS, recorded.message)
        reader, shown = ReplyReader(self.route.api or "chat"), recorded.body
        streamed = recorded.content_type.startswith("text/event-stream")
        if streamed:
            stream = StreamReader(reader, hides_usage=self.body.hides_usage)
            shown = stream.feed(recorded.body) + stream.end()
        elif recorded.complete:
            reader.read_whole(recorded.body)
        found = self._count_usage(reader) if recorded.status < 300 else None
        session.keep_reply(call, reader.body if recorded.status < 300 else None, len(recorded.body))
        if found is None:
            call.failure = CallFailure("http-status", f"HTTP {recorded.status} (recorded)", status=recorded.status)
        elif not recorded.complete:
            call.abort("the recorded reply was not whole")
        elif isinstance(found, Failure):
            call.failure = found
        if not recorded.status:  # the recorded call got no reply
            abort_connection(self.request)
            return await self._begin(502, {})
        if not streamed and recorded.complete:
            return await self._send(recorded.status, shown, {"Content-Type": recorded.content_type})
        answer = await self._begin(recorded.status, {"Content-Type": recorded.content_type})
        await answer.write(shown)
        if recorded.complete:
            await answer.write_eof()
        else:
            abort_connection(self.request)
        return answer

    async def _error(self, status: int, message: str) -> StreamResponse:
        headers = NO_RETRY if status == REFUSED_STATUS else {}
        return await self._send(status, error_body(self.route.protocol, status, message), headers)

    async def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> StreamResponse:
        known = {"Content-Type": "application/json", **headers}
        answer = Response(status=status, body=data, headers=known)
        await answer.prepare(self.request)
        self.reply = answer
        await answer.write_eof()
        return answer

    async def _begin(self, status: int, headers: Mapping[str, str]) -> StreamResponse:
        answer = self.reply = StreamResponse(status=status, headers=dict(headers))
        await answer.prepare(self.request)
        return answer


def address(upstream: ModelUpstream, path: str, request: Request, token: str) -> URL:
    """Return the API's URL for a path, with the agent's query except for keys."""
    query = [(name, value) for name, value in request.query.items() if name != "key" and token not in value]
    url = URL(f"{upstream.base_url}{path}", encoded=True)
    return url.update_query(query) if query else url


def reason_of(error: Exception, upstream: ModelUpstream) -> str:
    """Return why there is no reply, with the key redacted."""
    return redacted(f"{type(error).__name__}: {error}".encode(), upstream).decode()


async def read_bounded(content: Any, longest: int = LONGEST_REPLY) -> bytes | None:
    """Return all bytes of a stream, or None as soon as they exceed a limit."""
    data = bytearray()
    async for chunk in content.iter_chunked(_CHUNK):
        data += chunk
        if len(data) > longest:
            return None
    return bytes(data)


def _now() -> float:
    return asyncio.get_running_loop().time()
