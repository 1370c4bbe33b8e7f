"""One client of the SDK a target: a body goes out, a JSON object comes back, and every way to fail is a value.

Requests are made with the SDK's `post`: it signs, finds the address and sends, and leaves the reply as it came. Its
typed calls read every reply into classes first, for a millisecond each, and take what is no answer for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from agentv.model.values.response import CallFailure, Failure
from agentv.model.values.values import JsonObject
from agentv.targets.http.answers import TOO_LARGE
from agentv.targets.http.bodies import PackedError, TooLargeError
from agentv.targets.http.connection import reason_of
from agentv.targets.http.model_calls import carries_key, no_key_sent
from agentv.targets.http.statuses import failure_of, shown
from agentv.targets.model_api.streams import ReplyStream, is_stream
from agentv.targets.openai_api.dialect import Dialect, client_of
from agentv.targets.openai_api.replies import bad_answer, filtered, reported_error
from agentv.user_code.excerpts import head

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_FILTERS = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
"""Codes of errors that mean the content and not the call."""

_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of status 429 that a retry cannot fix."""

_OF_KEYS = (401, 403)

_HINTS = {
    401: "the key was refused: check {key}",
    403: "this key lacks permission: check {key}, and whether it has access to the model",
    404: "check 'model' and 'base_url'",
}


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A JSON object that a server sent, the headers beside it, and the milliseconds until it was there."""

    body: JsonObject
    headers: Mapping[str, str]
    duration_ms: float


class Refused(CallFailure, frozen=True):
    """A reply with an error status; `about` is all that it says of the cause, for recognising it."""

    about: str = ""


@dataclass(slots=True)
class ModelClient:
    """The connection to one server.

    Attributes:
        dialect: of the server.
        headers: further ones.
        retryable: the statuses that the target's `retry` lists.
        secrets: texts that no message may hold.
    """

    dialect: Dialect
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retryable: frozenset[int] = frozenset()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    _client: AsyncOpenAI | None = field(default=None, repr=False)

    async def post(self, path: str, body: Mapping[str, Any], stream: ReplyStream | None = None) -> JsonReply | Failure:
        """Send a body and read the reply.

        Args:
            path: of the API.
            body: of the request.
            stream: takes the events of a reply that is streamed; None: it is not.

        Returns:
            The reply; `Refused` where it has an error status; else a Failure with the code `connection`, `timeout`,
            `bad-answer`, `bad-body` or `output-too-large`.
        """
        import httpx
        from openai import OpenAIError

        try:
            return await (self._whole(path, body) if stream is None else self._streamed(path, body, stream))
        except (OpenAIError, httpx.HTTPError, TooLargeError, TypeError, ValueError) as error:
            return self._failure(error)

    async def _whole(self, path: str, body: Mapping[str, Any]) -> JsonReply | Failure:
        import httpx

        client, started = self.opened(), perf_counter()
        response = await client.post(path, cast_to=httpx.Response, body=body, options=self._options())
        return self._read(response.content, response.headers, _ms_since(started))

    async def _streamed(self, path: str, body: Mapping[str, Any], stream: ReplyStream) -> JsonReply | Failure:
        from openai import AsyncStream

        client, started = self.opened(), perf_counter()
        stream.begin()
        events = await client.post(
            path, cast_to=object, body=body, options=self._options(), stream=True, stream_cls=AsyncStream[object]
        )
        response = events.response
        if not is_stream(response.headers):
            return self._read(await response.aread(), response.headers, _ms_since(started))
        failure = await stream.read(events)
        failure = reported_error({"error": stream.reply.error}) or failure
        return failure or JsonReply(stream.reply.body(), response.headers, _ms_since(started))

    def _failure(self, error: Exception) -> Failure:
        """The failure that an exception of the SDK, or of what is below it, means."""
        from openai import APIConnectionError, APIError, APIStatusError, OpenAIError

        if isinstance(error, APIStatusError):
            return self._refused(error)
        if isinstance(error, OpenAIError) and not isinstance(error, APIConnectionError):
            body: Any = error.body if isinstance(error, APIError) else None  # by an event of a stream
            return reported_error({"error": body}) or bad_answer(self._shown(str(error)))
        if isinstance(error, json.JSONDecodeError):
            return bad_answer(f"an event of the stream is not JSON: {self._shown(str(error))}")
        if isinstance(error, TypeError | ValueError) and not isinstance(error, PackedError):
            return Failure("bad-body", f"the request cannot be written as JSON: {self._shown(str(error))}")
        return self._broken(error)

    def opened(self) -> AsyncOpenAI:
        """The client; it takes its time to be made, which must not count as an answer's."""
        if self._client is None:
            self._client = client_of(self.dialect)
        return self._client

    def _options(self) -> Any:
        """The target's own headers; without a key, the marker that makes the SDK send none."""
        headers: dict[str, Any] = dict(self.headers)
        if not self.dialect.api_key and not any(name.lower() == "authorization" for name in headers):
            from openai import omit

            headers = {"Authorization": omit, "api-key": omit, **headers}
        return {"headers": headers, "security": {"bearer_auth": bool(self.dialect.api_key)}}

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _read(self, content: bytes, headers: Mapping[str, str], duration_ms: float) -> JsonReply | Failure:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            kind = headers.get("content-type", "no content type").partition(";")[0]
            return bad_answer(f"the response is not JSON ({kind}): {self._shown(head(content, 200)) or 'no body'}")
        if not isinstance(body, dict):
            return bad_answer(f"the response is not a JSON object: {self._shown(head(content, 200))}")
        return JsonReply(body, headers, duration_ms)

    def _refused(self, error: APIStatusError) -> Failure:
        status, headers = error.status_code, error.response.headers
        message, code = _message_and_code(error.response.content)
        if code in _FILTERS or "ResponsibleAIPolicy" in message:
            return filtered()
        failure = failure_of(status, message, headers, self.retryable, secrets=self.secrets)
        known = structs.asdict(failure)
        if hint := self._hint(status):
            known["message"] += f" ({hint})"
        if code in _SPENT:
            known |= {"retryable": False, "stops": True}
        return Refused(**known, about=f"{error.param or ''} {code} {self._shown(message)}")

    def _hint(self, status: int) -> str | None:
        """What to look at, by a status; servers on this machine are asked without a key, and some want one."""
        if status in _OF_KEYS and not self.dialect.api_key and not carries_key(self.headers):
            return no_key_sent(self.dialect.key_from)
        return _HINTS.get(status, "").format(key=self._key_place()) or None

    def _key_place(self) -> str:
        return f"'api_key' ({' or '.join(self.dialect.key_from)})" if self.dialect.api_key else "'headers'"

    def _broken(self, error: Exception) -> Failure:
        """Why no whole reply came. The SDK calls nearly all of it a time-out; what happened stands behind."""
        from aiohttp import ClientConnectorError, ClientError, ClientPayloadError, ServerTimeoutError

        for cause in _causes(error):
            if isinstance(cause, TooLargeError):
                return TOO_LARGE
            if isinstance(cause, PackedError | ClientPayloadError):
                return bad_answer(f"{cause}" if isinstance(cause, PackedError) else "the response was cut off")
            if isinstance(cause, ServerTimeoutError):
                return CallFailure("timeout", "the server took too long", retryable=True)
            if isinstance(cause, ClientConnectorError) and self.dialect.unreachable:
                message = f"no reply: {reason_of(cause)}; {self.dialect.unreachable}"
                return CallFailure("connection", message, retryable=True)
            if isinstance(cause, ClientError | OSError):
                return CallFailure("connection", f"no reply: {self._shown(reason_of(cause))}", retryable=True)
        *_, last = _causes(error)
        return CallFailure("connection", f"no reply: {type(last).__name__}", retryable=True)

    def _shown(self, message: str) -> str:
        return shown(message, self.secrets)


def _ms_since(started: float) -> float:
    return (perf_counter() - started) * 1000


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, from the last to the first."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _message_and_code(content: bytes) -> tuple[str, str]:
    """The words of an error and its code, out of the shapes in which servers write them."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content[:8000].decode(errors="replace"), ""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return error if isinstance(error, str) else json.dumps(error), ""
    message = next((error[key] for key in ("message", "detail", "error") if error.get(key)), error)
    code = error.get("code") or error.get("type") or ""
    return message if isinstance(message, str) else json.dumps(message), str(code)
