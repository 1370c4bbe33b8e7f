"""The connection to one server: a body goes out, a JSON object comes back, and every way to fail is a value.

OpenAI's SDK takes most of a second to import and three milliseconds a call, and its retries, limits of time and classes
of replies would all have to be turned off. So the few requests that are needed are made with aiohttp.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from agentv.model.values.response import CallFailure, Failure
from agentv.model.values.values import JsonObject
from agentv.targets.http.answers import TOO_LARGE
from agentv.targets.http.bodies import PackedError, TooLargeError, bounded
from agentv.targets.http.certificates import tls_context
from agentv.targets.http.connection import reason_of, sendable, unlimited_session
from agentv.targets.http.model_calls import carries_key, names_user, no_key_sent
from agentv.targets.http.statuses import failure_of, shown
from agentv.targets.model_api.streams import ReplyStream, events_in, is_stream
from agentv.targets.openai_api.dialect import Dialect
from agentv.targets.openai_api.replies import bad_answer, filtered, reported_error
from agentv.user_code.connections import proxy_for
from agentv.user_code.excerpts import head
from agentv.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from multidict import CIMultiDict

_FILTERS = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
"""Codes of errors that mean the content and not the call."""

_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Error codes of status 429 that a retry cannot fix."""

_FROM_ENVIRONMENT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that OpenAI's SDK sends too if the variable is set."""

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
    _session: ClientSession | None = field(default=None, repr=False)
    _headers: CIMultiDict[str] | None = field(default=None, repr=False)

    async def post(self, path: str, body: Mapping[str, Any], stream: ReplyStream | None = None) -> JsonReply | Failure:
        """Send a body and read the reply.

        Args:
            path: of the API.
            body: of the request.
            stream: takes the events of a reply that is streamed; None: it is not.

        Returns:
            The reply; `Refused` where it has an error status; else a Failure with the code `connection`, `bad-answer`,
            `bad-body` or `output-too-large`.
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
                allow_redirects=False,  # a key for one server must not reach another
            ) as response:
                pieces = bounded(response.content.iter_any(), response.headers.get("Content-Encoding", ""))
                if stream is not None and response.status < 300 and is_stream(response.headers):
                    failure = await stream.read(events_in(pieces))
                    failure = reported_error({"error": stream.reply.error}) or failure
                    return failure or JsonReply(stream.reply.body(), response.headers, _ms_since(started))
                reply = b"".join([piece async for piece in pieces])
        except (ClientError, OSError, TooLargeError, ValueError, RecursionError) as error:
            return self._broken(error)
        if not 200 <= response.status < 300:
            return self._refused(response, reply)
        return self._read(reply, response.headers, _ms_since(started))

    def opened(self) -> ClientSession:
        """The session of the loop that runs now; certificates take their time, which must not count as an answer's."""
        if self._session is None:
            self._headers = self._sent()
            base_url = self.dialect.base_url
            context = tls_context(base_url, proxy_for(base_url))
            self._session = unlimited_session(context, auto_decompress=False)
        return self._session

    def _sent(self) -> CIMultiDict[str]:
        """The headers of every request: the key, what the environment says, the target's own."""
        from multidict import CIMultiDict

        found = CIMultiDict(
            {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": f"agentv/{__version__}",
                **self.dialect.credentials(),
            }
        )
        found.update({name: os.environ[key] for name, key in _FROM_ENVIRONMENT.items() if key in os.environ})
        found.update(self.headers)
        if names_user(self.dialect.base_url):
            found.pop("Authorization", None)  # the user in the URL becomes one
        return found

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
        if code in _SPENT:
            known |= {"retryable": False, "stops": True}
        return Refused(**known, about=f"{parameter} {code} {self._shown(message)}")

    def _hint(self, status: int) -> str | None:
        """What to look at, by a status; servers on this machine are asked without a key, and some want one."""
        if status in _OF_KEYS and not self.dialect.api_key and not carries_key(self.headers):
            return no_key_sent(self.dialect.key_from)
        return _HINTS.get(status, "").format(key=self._key_place()) or None

    def _key_place(self) -> str:
        return f"'api_key' ({' or '.join(self.dialect.key_from)})" if self.dialect.api_key else "'headers'"

    def _broken(self, error: Exception) -> Failure:
        """Why no whole reply came."""
        from aiohttp import ClientConnectorError, ClientPayloadError

        if isinstance(error, TooLargeError):
            return TOO_LARGE
        if isinstance(error, PackedError):
            return bad_answer(str(error))
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
