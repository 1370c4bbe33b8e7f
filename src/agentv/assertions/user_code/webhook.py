"""`webhook`: the user's server grades the answer (SPEC sections 7.2 and 8)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar
from urllib.parse import urlsplit

from agentv.assertions.user_code.result import BAD_RESULT, grade_of, with_checks
from agentv.model.redaction import Redactor
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import EMPTY, Json, JsonObject, plain_json
from agentv.registry.fields import Alias, DeclaredAssertion, Doc, Issue, Nonempty, Text
from agentv.user_code.connections import proxy_for
from agentv.user_code.excerpts import head

if TYPE_CHECKING:
    from aiohttp import ClientResponse

LIMIT = 10_000_000
"""Maximum size of a response, in bytes."""

_CHUNK = 65_536
_PUBLIC_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers whose values are not secrets."""

_SHORTEST_SECRET = 8
"""Minimum length, in characters, of a word in a header that is a secret by itself, unlike `Bearer`."""


@dataclass(frozen=True, slots=True)
class Webhook(DeclaredAssertion):
    """Your own server grades the answer: it receives the case as JSON, and responds with `pass` or `score`."""

    value: Annotated[Text, Nonempty(), Alias(("url",)), Doc("URL that receives the case, by POST")]
    headers: Annotated[Mapping[str, Text], Doc("headers to send; their values are never written to a result")] = field(
        default_factory=dict, repr=False
    )
    config: Annotated[JsonObject, Doc("sent as `config`")] = field(default=EMPTY)

    timeout_s: ClassVar[float | None] = CODE_TIMEOUT_S
    runs_code: ClassVar[bool] = True

    def label(self) -> str:
        """The host only, because the rest of the URL may be a secret."""
        parts = _scheme_and_host(self.value)
        return parts[1] if parts else ""

    def validate(self) -> Iterable[Issue]:
        """Report invalid URLs and headers."""
        if _scheme_and_host(self.value) is None:
            yield Issue(("value",), "the URL must start with http:// or https:// and contain a host")
        elif "@" in urlsplit(self.value).netloc and any(name.lower() == "authorization" for name in self.headers):
            message = "the URL contains a user, and 'headers' has 'Authorization'"
            yield Issue(("value",), message, hint="keep one of them")
        for name, value in self.headers.items():
            if not name.isascii() or not name.isprintable() or not name.strip() or " " in name or ":" in name:
                yield Issue(("headers", name), f"{name!r} is not a valid header name")
            elif not value.isprintable():
                message = f"the value of header '{name}' contains a line break or a control character"
                yield Issue(("headers", name), message)

    async def grade(self, context: AssertionContext) -> Grade:
        """Send one request. Errors give an errored grade, and redirects are not followed."""
        # the case as scripts get it, and also under promptfoo's names `output` and `context`
        promptfoo_context: dict[str, Json] = {"prompt": context.prompt, "vars": context.vars}
        config = self.config or context.config
        payload = {**context.payload, "config": config, "prompt": context.prompt, "context": promptfoo_context}
        reply = await self._post(json.dumps(payload, default=plain_json).encode())
        if isinstance(reply, Failure):
            return Grade.errored(reply.code, reply.message)
        redactor = _redactor(self.headers)
        try:
            answer = json.loads(reply)
        except (ValueError, RecursionError):
            excerpt = redactor.redact(head(reply, 200)) or "an empty response"
            return Grade.errored(BAD_RESULT, f"the webhook did not respond with JSON: {excerpt}")
        if not isinstance(answer, Mapping):
            return Grade.errored(BAD_RESULT, "the webhook must respond with an object that has 'pass' or 'score'")
        return redactor.redacted(grade_of(with_checks(answer), "webhook"))

    async def _post(self, body: bytes) -> bytes | Failure:
        """Return the body of a successful response. No error message contains the full URL or a header."""
        from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, DummyCookieJar

        has_type = any(name.lower() == "content-type" for name in self.headers)
        headers = self.headers if has_type else {"Content-Type": "application/json", **self.headers}
        try:
            # no timeout here: the caller cancels the entry at its time limit
            async with (
                ClientSession(timeout=ClientTimeout(total=None), cookie_jar=DummyCookieJar()) as session,
                session.post(
                    self.value, data=body, headers=headers, allow_redirects=False, proxy=proxy_for(self.value)
                ) as response,
            ):
                return await _body(response, _redactor(self.headers))
        except (ClientError, OSError, ValueError) as error:
            why = type(error).__name__  # the messages of most errors contain the URL
            if isinstance(error, ClientConnectorError):
                why = f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
            return Failure("connection", f"no response from the webhook: {why}")


def _scheme_and_host(url: str) -> tuple[str, str] | None:
    """Return the scheme and the host, with its port, of an HTTP URL, or None if it is not one."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return None
    return (parts.scheme, host + port) if parts.scheme in {"http", "https"} and host else None


def _redactor(headers: Mapping[str, str]) -> Redactor:
    """Return the redactor that removes the values of headers from responses that repeat them."""
    secrets = [value for name, value in headers.items() if name.lower() not in _PUBLIC_HEADERS]
    return Redactor([*secrets, *(word for value in secrets for word in value.split() if len(word) >= _SHORTEST_SECRET)])


async def _body(response: ClientResponse, redactor: Redactor) -> bytes | Failure:
    data = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        data += chunk
        if len(data) > LIMIT:
            return Failure("output-too-large", "the response of the webhook is over 10 MB")
    if 300 <= response.status < 400:
        return Failure(
            "http-status", f"the webhook responded with a redirect (HTTP {response.status}), which is not followed"
        )
    if not 200 <= response.status < 300:
        body = redactor.redact(head(bytes(data))) or "no body"
        return Failure("http-status", f"the webhook responded with HTTP {response.status}: {body}")
    return bytes(data)
