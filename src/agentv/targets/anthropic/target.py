"""The `anthropic` target, which calls Claude models through Anthropic's SDK."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import Json, JsonObject
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Between, Doc, Fraction, FromEnvironment, Issue, NoSecrets, Secret, Text, Verbatim
from agentv.targets.anthropic.messages import conversation, response_of, tool_choice_in, tools_in
from agentv.targets.http.answers import TOO_LARGE, decoded, parsed
from agentv.targets.http.connection import (
    UNCOMPRESSED,
    BoundedBody,
    TooLargeError,
    UnreadReplyError,
    refuse_unread,
)
from agentv.targets.http.failures import (
    endpoint_of,
    failure_of,
    incomplete_reply,
    missing_key,
    no_connection,
    no_reply_in_time,
    unreadable_reply,
)
from agentv.targets.http.preparation import Imports, timed
from agentv.targets.model_api.prices import RequestSettings, load_prices
from agentv.targets.model_api.settings import ModelSettings, OptionalParameters, schema_in
from agentv.targets.model_api.streams import MessageStream, ReplyStream, is_stream

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


KEY = "ANTHROPIC_API_KEY"
URL = "https://api.anthropic.com"
MAX_TOKENS = 8192
"""Default for `max_tokens`, which the API requires. Every current model accepts this number."""

SMALLEST_BUDGET = 1024
SAMPLING_HEADERS = {"anthropic-version": "2023-06-01"}
"""Header for the API version that supports `temperature`, `top_p` and `top_k`. The newer one rejects them."""

_CLAUDE = re.compile(r"\bclaude-")
_SAMPLING_MODELS = re.compile(r"claude-(?:instant|[123]\b|(?:sonnet|haiku)-4|opus-4(?!-[789]))")
"""Claude models that accept a temperature: those before Opus 4.7."""

_STATUSES = {
    "authentication_error": 401,
    "invalid_request_error": 400,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "request_too_large": 413,
    "timeout_error": 504,
}
"""Error type in an event of a stream → the status that it has without streaming. Others are treated as 500."""

_OPTIONAL = {
    "temperature": re.compile("temperature|sampling", re.IGNORECASE),
    "output_config": re.compile(r"output_config|output_format|structured output|schema", re.IGNORECASE),
}
"""Optional parameter of judges → pattern of the error message (status 400) that rejects it."""


@dataclass(frozen=True, slots=True)
class Anthropic(ModelSettings):
    """Calls a Claude model of Anthropic, or any server with the Messages API."""

    model_names: ClassVar[tuple[str, ...]] = ("claude-",)
    small_model: ClassVar[str | None] = "claude-haiku-4-5"
    request_keys: ClassVar[tuple[str, ...]] = ("model", "messages", "system")
    only_schemas: ClassVar[bool] = True
    domains: ClassVar[tuple[str, ...]] = ("anthropic.com",)

    base_url: Annotated[
        Text | None,
        FromEnvironment(("ANTHROPIC_BASE_URL",), required=False),
        Doc(f"base URL of the API, without `/v1`; defaults to ANTHROPIC_BASE_URL, then `{URL}`"),
    ] = None
    api_key: Annotated[Text | None, Secret(), FromEnvironment((KEY,)), Doc(f"API key; defaults to {KEY}")] = None
    temperature: Annotated[
        Fraction | None, Doc("sampling temperature; like `top_p` and `top_k` only for models before Opus 4.7")
    ] = None
    max_tokens: Annotated[
        int | None,
        Between(1),
        Doc(f"maximum tokens of an answer, including thinking; defaults to {MAX_TOKENS} plus the thinking budget"),
    ] = None
    response_format: Annotated[Json, Verbatim(), NoSecrets(), Doc("a JSON Schema for the answer")] = None
    top_k: Annotated[int | None, Between(1), Doc("number of most likely tokens to sample from")] = None
    thinking: Annotated[
        Json,
        Verbatim(),
        Doc("a thinking budget in tokens (1024 or more), `adaptive`, `disabled`, or an object of the API"),
    ] = None
    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None, Doc("effort the model spends on an answer")
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report the issues of every model, an invalid thinking budget, and sampling combined with thinking."""
        yield from ModelSettings.validate(self)
        budget = self.budget
        if budget is not None and budget < SMALLEST_BUDGET:
            yield Issue(("thinking",), f"a thinking budget must be at least {SMALLEST_BUDGET} tokens, found {budget}")
        elif budget is not None and self.max_tokens is not None and budget >= self.max_tokens:
            yield Issue(("thinking",), f"the thinking budget must be below 'max_tokens' ({self.max_tokens})")
        if (
            budget is None
            and self.thinking not in (None, "adaptive", "disabled")
            and not isinstance(self.thinking, Mapping)
        ):
            found = f"'{self.thinking}'" if isinstance(self.thinking, str) else json.dumps(self.thinking)
            yield Issue(("thinking",), f"'thinking' must be a budget, adaptive or disabled, found {found}")
        for name in ("temperature", "top_k"):
            if self.thinks and getattr(self, name) is not None:
                yield Issue((name,), f"'{name}' cannot be combined with 'thinking': the API refuses it")

    @property
    def budget(self) -> int | None:
        """The thinking budget in tokens, or None if none is set."""
        value = self.thinking.get("budget_tokens") if isinstance(self.thinking, Mapping) else self.thinking
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def thinks(self) -> bool:
        """Whether thinking is enabled."""
        value = self.thinking.get("type") if isinstance(self.thinking, Mapping) else self.thinking
        return value not in (None, "disabled")

    def endpoint(self) -> str:
        """Return the server's URL with a hash of the key."""
        return endpoint_of("anthropic", self.base_url or URL, self.api_key)

    @property
    def answer_limit(self) -> int:
        """The `max_tokens` of a request, which the API requires."""
        return self.max_tokens or MAX_TOKENS + (self.budget or 0)

    def request_settings(self) -> RequestSettings:
        """Return the settings that determine the cost of a call."""
        return self.priced_as(self.elsewhere() or "anthropic", self.model, self.answer_limit)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target with its own client, which opens connections on demand."""
        return _Anthropic(self, frozenset(spec.retry.status_codes), executor)


def _import() -> None:
    """Import the SDK and read the price list."""
    import anthropic  # noqa: F401

    load_prices()


class _Anthropic:
    """A connected target, with one client on aiohttp, which takes half the CPU time of httpx.

    The client has no connection limit below 1,000.
    """

    def __init__(self, settings: Anthropic, retryable: frozenset[int], executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, _import)
        self._retryable = retryable
        self._client: AsyncAnthropic | None = None
        takes_none = settings.thinks or (_CLAUDE.search(settings.model) and not _SAMPLING_MODELS.search(settings.model))
        self._optional = OptionalParameters(_OPTIONAL, ("temperature",) if takes_none else ())

    @cached_property
    def _fixed_body(self) -> dict[str, Any]:
        return _fixed_body(self._settings)  # not before the SDK is imported

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Call the model.

        A judge's temperature and schema are omitted if the model rejects them: newer models reject a temperature, older
        ones a schema. The target's own settings are always sent, and their rejection is an error.
        """
        if not self._settings.api_key:
            return missing_key((KEY,))
        await self._imports.ready()
        self._opened()  # not part of the measured duration
        stream = ReplyStream(MessageStream) if self._settings.stream else None
        found = await timed(self._ask(request, stream))
        return found if stream is None else stream.timed(found, self._response)

    async def _ask(self, request: TargetRequest, stream: ReplyStream | None) -> TargetResponse | Failure:
        made = conversation(request.messages or (Message("user", request.prompt),), self._settings.model)
        if isinstance(made, Failure):
            return made
        system, turns = made
        body = {**self._fixed_body, "messages": turns}
        whole_system = "\n\n".join(text for text in (self._settings.system, system) if text)
        if whole_system:
            body["system"] = whole_system
        if stream is not None:
            body["stream"] = True
        body |= self._settings.extra
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._optional.answer(
                    self._wanted(request), lambda more: self._call({**body, **more}, stream)
                )
        except TimeoutError:
            return no_reply_in_time(request.timeout_s)

    def _wanted(self, request: TargetRequest) -> dict[str, Any]:
        wanted: dict[str, Any] = {}
        if request.temperature is not None:
            wanted["temperature"] = request.temperature
        if request.schema is not None and self._settings.response_format is None:
            wanted["output_config"] = {**self._fixed_body.get("output_config", {}), **_schema_output(request.schema)}
        return wanted

    async def _call(self, body: dict[str, Any], stream: ReplyStream | None) -> TargetResponse | Failure:
        """Make one call. Exceptions of the SDK are returned as Failures, with messages without the key."""
        from anthropic import AnthropicError, APIConnectionError, APIStatusError
        from httpx2 import HTTPError

        try:
            return await (self._whole(body) if stream is None else self._streamed(body, stream))
        except APIStatusError as error:
            message, detail = error.api_message or error.message, error.body
            inner = detail.get("error") if isinstance(detail, dict) else None
            kind = str(inner.get("type")) if isinstance(inner, dict) else ""
            status = _STATUSES.get(kind, 500) if error.status_code == HTTPStatus.OK else error.status_code
            failure = failure_of(
                status, message, error.response.headers, self._retryable, secrets=self._settings.secrets
            )
            return replace(failure, stops=True) if "credit balance" in message else failure
        except APIConnectionError as error:
            return self._connection_failure(error.__cause__ or error)
        except (HTTPError, TooLargeError) as error:
            return self._connection_failure(error)
        except (AnthropicError, ValueError) as error:
            return unreadable_reply(f"{type(error).__name__}: {error}", self._settings.secrets)

    async def _whole(self, body: dict[str, Any]) -> TargetResponse | Failure:
        from httpx2 import Response

        # not `messages.create`, which warns on stderr about deprecated models and some settings
        raw = await self._opened().post("/v1/messages", cast_to=Response, body=body, options=_options(body))
        return self._read(raw.content)

    async def _streamed(self, body: dict[str, Any], stream: ReplyStream) -> TargetResponse | Failure:
        from anthropic import AsyncStream

        stream.begin()
        events = await self._opened().post(
            "/v1/messages",
            cast_to=object,
            body=body,
            options=_options(body),
            stream=True,
            stream_cls=AsyncStream[object],
        )
        if not is_stream(events.response.headers):
            return self._read(await events.response.aread())
        failure = await stream.read(events)
        return failure or self._response(stream.reply.body())

    def _read(self, content: bytes) -> TargetResponse | Failure:
        text = decoded(content)
        if isinstance(text, Failure):
            return text
        reply = parsed(text)
        if isinstance(reply, str):
            return unreadable_reply(f"the reply is not JSON: {text}", self._settings.secrets)
        return self._response(reply)

    def _response(self, reply: Json) -> TargetResponse | Failure:
        return response_of(reply, self._settings.model, self._settings.elsewhere() or "anthropic")

    def _connection_failure(self, cause: BaseException) -> Failure:
        from httpx2 import ReadError, RemoteProtocolError

        if isinstance(cause, TooLargeError):
            return TOO_LARGE
        if isinstance(cause, UnreadReplyError):
            return failure_of(cause.status, "", cause.headers, self._retryable, secrets=self._settings.secrets)
        broken = isinstance(cause, ReadError | RemoteProtocolError)
        return (incomplete_reply if broken else no_connection)(cause, self._settings.secrets)

    def _opened(self) -> AsyncAnthropic:
        if self._client is None:
            from anthropic import AsyncAnthropic, DefaultAioHttpClient

            self._client = AsyncAnthropic(
                api_key=self._settings.api_key,
                base_url=self._settings.base_url or URL,
                max_retries=0,
                timeout=None,  # the engine has its own limit, and the SDK's would reject large 'max_tokens'
                http_client=DefaultAioHttpClient(timeout=None, follow_redirects=False, event_hooks=_hooks()),
                default_headers={**UNCOMPRESSED, **self._settings.headers},
                open_telemetry=False,
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _hooks() -> dict[str, list[Callable[..., Any]]]:
    """Return hooks for the SDK's client that reject redirects and compressed replies, and limit the size of others."""
    from httpx2 import AsyncByteStream, Response

    class BoundedReply(BoundedBody, AsyncByteStream):
        """A body that raises TooLargeError if it is too large."""

    async def on_response(response: Response) -> None:
        refuse_unread(response.status_code, response.headers)
        assert isinstance(response.stream, AsyncByteStream)  # noqa: S101  # always true for an async client
        response.stream = BoundedReply(response.stream)

    return {"response": [on_response]}


def _fixed_body(settings: Anthropic) -> dict[str, Any]:
    """Return the parts of every request's body that come from the settings."""
    schema = schema_in(settings.response_format)
    output = {"effort": settings.effort} if settings.effort else {}
    if schema is not None:
        output |= _schema_output(schema)
    optional = {
        "model": settings.model,
        "max_tokens": settings.answer_limit,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "stop_sequences": list(settings.stop or ()) or None,
        "thinking": _thinking(settings.thinking),
        "output_config": output or None,
        "tools": tools_in(settings.tools) or None,
        "tool_choice": tool_choice_in(settings.tool_choice),
    }
    return {name: one for name, one in optional.items() if one is not None}


def _schema_output(schema: JsonObject) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "schema": converted_schema(schema)}}


def _options(body: Mapping[str, Any]) -> Any:
    return {"headers": SAMPLING_HEADERS} if any(name in body for name in ("temperature", "top_p", "top_k")) else {}


def _thinking(value: Json) -> Json:
    if isinstance(value, str):
        return {"type": value}
    return {"type": "enabled", "budget_tokens": value} if isinstance(value, int) else value


def converted_schema(schema: JsonObject) -> JsonObject:
    """Return a schema that the SDK converted for the API, or the schema itself if the SDK cannot convert it."""
    from anthropic import transform_schema

    whole = _without_type_lists(schema)
    definitions = whole.pop("definitions", {})  # the SDK supports only `$defs`
    try:
        found: JsonObject = transform_schema(whole)
        kept = {name: transform_schema(one) for name, one in definitions.items()}
    except (AssertionError, AttributeError, TypeError, ValueError):
        return schema
    return {**found, "definitions": kept} if kept else found


def _without_type_lists(schema: Any) -> Any:
    """Return the schema with each list of types as `anyOf`, because the SDK does not convert lists of types."""
    if isinstance(schema, list | tuple):
        return [_without_type_lists(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    whole = {key: _without_type_lists(value) for key, value in schema.items()}
    types = whole.get("type")
    if not isinstance(types, list):
        return whole
    rest = {key: value for key, value in whole.items() if key not in {"type", "description"}}
    described = {"description": whole["description"]} if "description" in whole else {}
    return {**described, "anyOf": [{"type": one} if one == "null" else {**rest, "type": one} for one in types]}
