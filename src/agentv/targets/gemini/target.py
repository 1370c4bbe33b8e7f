"""The `gemini` target, which calls Google's Gemini models through Google's SDK (extra `gemini`)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import Ceiling
from agentv.model.values.values import Json
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Between, Doc, FromEnvironment, Issue, Secret, Text, Verbatim, missing_extra
from agentv.targets.gemini.messages import (
    conversation,
    embeddings_of,
    refusal_of,
    response_of,
    tool_config_in,
    tools_in,
)
from agentv.targets.http.answers import TOO_LARGE, parsed
from agentv.targets.http.connection import TooLargeError, UnreadReplyError, sdk_session, tls_context
from agentv.targets.http.failures import (
    endpoint_of,
    incomplete_reply,
    missing_key,
    no_connection,
    no_reply_in_time,
    unreadable_reply,
)
from agentv.targets.http.preparation import Imports, timed
from agentv.targets.model_api.prices import RequestSettings, load_prices
from agentv.targets.model_api.settings import ModelSettings, OptionalParameters, schema_in
from agentv.targets.model_api.streams import ContentStream, ReplyStream
from agentv.user_code.connections import proxy_for

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from google.genai import Client
    from google.genai.errors import APIError

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""Environment variables of the key, in the order of Google's SDK."""

URL = "https://generativelanguage.googleapis.com"
EMBEDDING_MODEL = "gemini-embedding-001"
_TEXTS_AT_ONCE = 100

_SCHEMA = "schema"
_OPTIONAL = {_SCHEMA: re.compile(r"schema|mime.?type", re.IGNORECASE)}
"""Optional parameter of judges → pattern of the error message (status 400) that rejects it."""

T = TypeVar("T", TargetResponse, Embeddings)


@dataclass(frozen=True, slots=True)
class Gemini(ModelSettings):
    """Calls a Gemini model of Google."""

    model_names: ClassVar[tuple[str, ...]] = ("gemini-",)
    small_model: ClassVar[str | None] = "gemini-2.5-flash"
    embeds: ClassVar[bool] = True
    request_keys: ClassVar[tuple[str, ...]] = ("contents", "systemInstruction", "system_instruction")
    domains: ClassVar[tuple[str, ...]] = ("googleapis.com",)

    base_url: Annotated[
        Text | None,
        FromEnvironment(("GOOGLE_GEMINI_BASE_URL",), required=False),
        Doc(f"base URL of the API; defaults to GOOGLE_GEMINI_BASE_URL, then `{URL}`"),
    ] = None
    api_key: Annotated[
        Text | None, Secret(), FromEnvironment(KEYS), Doc(f"API key; defaults to {', then '.join(KEYS)}")
    ] = None
    top_k: Annotated[int | None, Between(1), Doc("number of most likely tokens to sample from")] = None
    seed: Annotated[int | None, Doc("sampling seed; makes answers repeatable as far as the server supports it")] = None
    thinking: Annotated[
        Json,
        Verbatim(),
        Doc(
            "thinking budget in tokens (0: none, -1: the model decides), a level such as `low`, or an object of the API"
        ),
    ] = None
    safety: Annotated[Mapping[str, Text], Doc("category → threshold: `{HARM_CATEGORY_HARASSMENT: BLOCK_NONE}`")] = (
        field(default_factory=dict)
    )
    embedding_model: Annotated[
        Text | None,
        Doc(f"model that `similar` uses; defaults to `{EMBEDDING_MODEL}`, or `model` if it is for embeddings"),
    ] = None

    def validate(self) -> Iterable[Issue]:
        """Report a missing SDK and invalid settings."""
        missing = missing_extra("google.genai", "gemini", "calling Gemini")
        if missing is not None:
            yield missing
        yield from ModelSettings.validate(self)

    def endpoint(self) -> str:
        """Return the server's URL with a hash of the key."""
        return endpoint_of("gemini", self.base_url or URL, self.api_key)

    def request_settings(self) -> RequestSettings:
        """Return the settings that determine the cost of a call."""
        return self.priced_as(self.elsewhere() or "google", self.model.removeprefix("models/"), self.max_tokens)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """Return the most that embedding these texts can use, by the price list."""
        model = self.embedding_model or _embedding_model(self.model)
        return replace(self.request_settings(), model=model).ceiling_of_vectors(texts)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target with its own client, which opens connections on demand."""
        return _Gemini(self, frozenset(spec.retry.status_codes), executor)


def _import() -> None:
    """Import the SDK and read the price list."""
    from google import genai  # noqa: F401

    load_prices()


class _Gemini:
    """A connected target, with one client on aiohttp without a connection limit."""

    def __init__(self, settings: Gemini, retryable: frozenset[int], executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, _import)
        self._retryable = retryable
        self._client: Client | None = None
        self._session: ClientSession | None = None
        self._fixed_config = _fixed_config(settings)
        self._optional = OptionalParameters(_OPTIONAL)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Call the model. Once the model has rejected a judge's schema, later calls omit it."""
        await self._ready()
        stream = ReplyStream(ContentStream) if self._settings.stream else None
        found = await timed(self._ask(request, stream))
        return found if stream is None else stream.timed(found, self._response)

    async def _ready(self) -> None:
        """Create the client on first use. That time does not count as time of an answer."""
        if self._settings.api_key:
            await self._imports.ready()
            self._opened()

    async def _ask(self, request: TargetRequest, stream: ReplyStream | None) -> TargetResponse | Failure:
        made = conversation(request.messages or (Message("user", request.prompt),), self._settings.model)
        if isinstance(made, Failure):
            return made
        system, contents = made
        config = dict(self._fixed_config)
        whole_system = "\n\n".join(text for text in (self._settings.system, system) if text)
        if whole_system:
            config["system_instruction"] = whole_system
        if request.temperature is not None:
            config["temperature"] = request.temperature
        wanted = {}
        if request.schema is not None and self._settings.response_format is None:
            wanted[_SCHEMA] = _json_config(request.schema)

        async def call(optional: Mapping[str, Any]) -> TargetResponse | Failure:
            bound = {**config, **optional.get(_SCHEMA, {})}
            if stream is None:
                return await self._in_time(lambda: self._generated(contents, bound), request.timeout_s)
            return await self._in_time(lambda: self._streamed(contents, bound, stream), request.timeout_s)

        return await self._optional.answer(wanted, call)

    async def _streamed(self, contents: Any, config: Any, stream: ReplyStream) -> TargetResponse | Failure:
        stream.begin()
        events = await self._opened().aio.models.generate_content_stream(
            model=self._settings.model, contents=contents, config=config
        )

        form: Any = {"mode": "json", "by_alias": True, "exclude_none": True, "exclude": {"sdk_http_response"}}
        failure = await stream.read(event.model_dump(**form) async for event in events)
        return failure or self._response(stream.reply.body())

    async def _generated(self, contents: Any, config: Any) -> TargetResponse | Failure:
        reply = await self._opened().aio.models.generate_content(
            model=self._settings.model,
            contents=contents,
            config=config | {"should_return_http_response": True},
        )
        raw = reply.sdk_http_response
        body = raw.body if raw is not None else None
        value = parsed(body or "")
        if isinstance(value, str):
            return unreadable_reply(f"the reply is not JSON: {body}", self._settings.secrets)
        return self._response(value)

    def _response(self, reply: Json) -> TargetResponse | Failure:
        return response_of(reply, self._settings.model, self._settings.elsewhere() or "google")

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """Return the embeddings of the texts. The API does not report their tokens."""
        await self._ready()
        return await self._in_time(lambda: self._embedded(texts), timeout_s)

    async def _embedded(self, texts: Sequence[str]) -> Embeddings | Failure:
        model = self._settings.embedding_model or _embedding_model(self._settings.model)
        config: Any = {"task_type": "SEMANTIC_SIMILARITY"} if model.endswith(EMBEDDING_MODEL) else {}
        found: list[Sequence[float] | None] = []
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            contents: Any = [{"parts": [{"text": text}]} for text in texts[begin : begin + _TEXTS_AT_ONCE]]
            reply = await self._opened().aio.models.embed_content(model=model, contents=contents, config=config)
            found += [one.values for one in reply.embeddings or ()]
        return embeddings_of(found, len(texts))

    async def _in_time(self, ask: Callable[[], Awaitable[T | Failure]], timeout_s: float) -> T | Failure:
        """Await a call of the SDK with a time limit. Return exceptions as Failures, with messages without the key."""
        if not self._settings.api_key:
            return missing_key(KEYS)
        from aiohttp import ClientError
        from google.genai.errors import APIError

        try:
            async with asyncio.timeout(timeout_s):
                return await ask()
        except TimeoutError:
            return no_reply_in_time(timeout_s)
        except (APIError, UnreadReplyError) as error:
            return self._refused(error)
        except (ClientError, OSError, TooLargeError) as error:
            return self._connection_failure(error)
        except ValueError as error:  # invalid JSON, or not in the API's format
            return unreadable_reply(f"{type(error).__name__}: {error}", self._settings.secrets)

    def _connection_failure(self, error: Exception) -> Failure:
        from aiohttp import ClientPayloadError

        if isinstance(error, TooLargeError):
            return TOO_LARGE
        failed = incomplete_reply if isinstance(error, ClientPayloadError) else no_connection
        return failed(error, self._settings.secrets)

    def _refused(self, error: APIError | UnreadReplyError) -> CallFailure:
        if isinstance(error, UnreadReplyError):
            return refusal_of(error.status, None, error.headers, self._retryable, self._settings.secrets)
        headers = getattr(error.response, "headers", None) or {}
        return refusal_of(error.code, error.details, headers, self._retryable, self._settings.secrets)

    def _opened(self) -> Client:
        if self._client is None:
            from google.genai import Client
            from google.genai.types import HttpOptions, HttpRetryOptions

            # without a handler, Python writes the SDK's warnings to stderr, for instance about two keys
            logging.getLogger("google_genai").addHandler(logging.NullHandler())
            self._session = sdk_session()  # the SDK's own session emits a warning
            base_url = self._settings.base_url or URL
            proxy = proxy_for(base_url)
            tls = tls_context(base_url, proxy)
            options = HttpOptions(
                base_url=base_url,
                client_args={"verify": tls},
                async_client_args={"verify": tls, "ssl": tls} | ({} if proxy is None else {"proxy": proxy}),
                headers=dict(self._settings.headers),
                extra_body=dict(self._settings.extra) or None,
                retry_options=HttpRetryOptions(attempts=1),  # by default the SDK retries a lost connection
                aiohttp_client=self._session,
            )
            self._client = Client(vertexai=False, api_key=self._settings.api_key, http_options=options)
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        client, session = self._client, self._session
        self._client = self._session = None
        if client is not None and session is not None:
            await client.aio.aclose()
            client.close()
            await session.close()


def _fixed_config(settings: Gemini) -> dict[str, Any]:
    """Return the parts of every request's config that come from the settings."""
    config: dict[str, Any] = {
        "temperature": settings.temperature,
        "max_output_tokens": settings.max_tokens,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "seed": settings.seed,
        "stop_sequences": list(settings.stop or ()) or None,
        "thinking_config": _thinking(settings.thinking),
        "tools": tools_in(settings.tools) or None,
        "tool_config": tool_config_in(settings.tool_choice),
        "safety_settings": [{"category": one, "threshold": limit} for one, limit in settings.safety.items()] or None,
        **({} if settings.response_format is None else _json_config(schema_in(settings.response_format))),
    }
    given = {name: one for name, one in config.items() if one is not None}
    return {**given, "automatic_function_calling": {"disable": True}}


def _embedding_model(model: str) -> str:
    """Return the model itself if it is for embeddings (`gemini:gemini-embedding-001`), or else the default."""
    return model if "embedding" in model else EMBEDDING_MODEL


def _json_config(schema: Mapping[str, Json] | None) -> dict[str, Any]:
    whole = {"response_mime_type": "application/json"}
    return whole if schema is None else {**whole, "response_json_schema": dict(schema)}


def _thinking(value: Json) -> Json:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"thinking_budget": value}
    return {"thinking_level": value.upper()} if isinstance(value, str) else value
