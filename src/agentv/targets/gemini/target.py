"""`gemini`: one of Google's Gemini models answers, by the Gemini API."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Embeddings, Failure, TargetResponse
from agentv.model.values.usage import Ceiling
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Between, Doc, FromEnvironment, Secret, Text, Verbatim
from agentv.targets.gemini.messages import (
    conversation,
    embeddings_of,
    refusal_of,
    response_of,
    tool_config_in,
    tools_in,
)
from agentv.targets.http.answers import parsed
from agentv.targets.http.failures import endpoint_of, missing_key, no_reply_in_time
from agentv.targets.http.preparation import Imports, timed
from agentv.targets.model_api.client import ApiErrors, ModelClient, load_client
from agentv.targets.model_api.prices import RequestSettings
from agentv.targets.model_api.settings import ModelSettings, OptionalParameters, schema_in
from agentv.targets.model_api.streams import ContentStream, ReplyStream

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""In the order of Google's SDK, whose version of the API is asked, too."""

URL = "https://generativelanguage.googleapis.com"
EMBEDDING_MODEL = "gemini-embedding-001"
_TEXTS_AT_ONCE = 100

_SCHEMA = "schema"
_OPTIONAL = {_SCHEMA: re.compile(r"schema|mime.?type", re.IGNORECASE)}
"""What a judge asks for and can do without → how a refusal (400) names it."""


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

    def endpoint(self) -> str:
        """The address, and a hash of the key."""
        return endpoint_of("gemini", self.base_url or URL, self.api_key)

    def request_settings(self) -> RequestSettings:
        """What the price of a call depends on."""
        return self.priced_as(self.elsewhere() or "google", self.model.removeprefix("models/"), self.max_tokens)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """By the price list: the API does not report their tokens."""
        model = self.embedding_model or _embedding_model(self.model)
        return replace(self.request_settings(), model=model).ceiling_of_vectors(texts)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that opens connections by its calls."""
        return _Gemini(self, frozenset(spec.retry.status_codes), executor)


class _Errors(ApiErrors):
    """Of Gemini's API: `{"error": {"code", "message", "status", "details"}}`."""

    def of_status(self, status: int, content: bytes, headers: Mapping[str, str]) -> CallFailure:
        return refusal_of(status, parsed(content.decode(errors="replace")), headers, self.retryable, self.secrets)

    def of_stream(self, error: Json) -> CallFailure:
        code = error.get("code") if isinstance(error, Mapping) else None
        return refusal_of(code if isinstance(code, int) else 500, error, {}, self.retryable, self.secrets)


class _Gemini:
    def __init__(self, settings: Gemini, retryable: frozenset[int], executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, load_client)
        self._client = ModelClient(
            f"{(settings.base_url or URL).rstrip('/')}/v1",
            _Errors(retryable, settings.secrets),
            {"x-goog-api-key": settings.api_key or ""},
            settings.headers,
            KEYS,
        )
        self._fixed_body = _fixed_body(settings)
        self._optional = OptionalParameters(_OPTIONAL)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Ask the model. A schema that a judge asks for is left out once the model has refused one."""
        if not self._settings.api_key:
            return missing_key(KEYS)
        await self._ready()
        stream = ReplyStream(ContentStream) if self._settings.stream else None
        found = await timed(self._ask(request, stream))
        return found if stream is None else stream.timed(found, self._response)

    async def _ready(self) -> None:
        """Return once there is a client; what it takes to make one is not the time of an answer."""
        await self._imports.ready()
        self._client.opened()

    async def _ask(self, request: TargetRequest, stream: ReplyStream | None) -> TargetResponse | Failure:
        made = conversation(request.messages or (Message("user", request.prompt),), self._settings.model)
        if isinstance(made, Failure):
            return made
        system, contents = made
        generation, body = dict(self._fixed_body["generationConfig"]), {**self._fixed_body, "contents": contents}
        whole_system = "\n\n".join(text for text in (self._settings.system, system) if text)
        if whole_system:
            body["systemInstruction"] = {"parts": [{"text": whole_system}]}
        if request.temperature is not None:
            generation["temperature"] = request.temperature
        wanted = {}
        if request.schema is not None and self._settings.response_format is None:
            wanted[_SCHEMA] = _json_config(request.schema)
        operation = "generateContent" if stream is None else "streamGenerateContent?alt=sse"

        async def call(optional: Mapping[str, Any]) -> TargetResponse | Failure:
            bound = {**body, "generationConfig": {**generation, **optional.get(_SCHEMA, {})}}
            whole = _merged(bound, self._settings.extra)
            reply = await self._client.post(f"/{_named(self._settings.model)}:{operation}", whole, stream)
            return reply if isinstance(reply, Failure) else self._response(reply.body)

        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._optional.answer(wanted, call)
        except TimeoutError:
            return no_reply_in_time(request.timeout_s)

    def _response(self, reply: Json) -> TargetResponse | Failure:
        return response_of(reply, self._settings.model, self._settings.elsewhere() or "google")

    async def embed(self, texts: Sequence[str], timeout_s: float) -> Embeddings | Failure:
        """The vectors of the texts, by the model that `embedding_model` names. The API does not tell their tokens."""
        if not self._settings.api_key:
            return missing_key(KEYS)
        await self._ready()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._embedded(texts)
        except TimeoutError:
            return no_reply_in_time(timeout_s)

    async def _embedded(self, texts: Sequence[str]) -> Embeddings | Failure:
        model = _named(self._settings.embedding_model or _embedding_model(self._settings.model))
        task = {"taskType": "SEMANTIC_SIMILARITY"} if model.endswith(EMBEDDING_MODEL) else {}
        found: list[Json] = []
        for begin in range(0, len(texts), _TEXTS_AT_ONCE):
            some = texts[begin : begin + _TEXTS_AT_ONCE]
            rows = [{"model": model, "content": {"parts": [{"text": text}]}, **task} for text in some]
            reply = await self._client.post(f"/{model}:batchEmbedContents", {"requests": rows})
            if isinstance(reply, Failure):
                return reply
            found += [one.get("values") for one in objects_in(reply.body.get("embeddings"))]
        return embeddings_of(found, len(texts))

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.close()


def _fixed_body(settings: Gemini) -> dict[str, Any]:
    """What every request holds by the settings."""
    generation: dict[str, Any] = {
        "temperature": settings.temperature,
        "maxOutputTokens": settings.max_tokens,
        "topP": settings.top_p,
        "topK": settings.top_k,
        "seed": settings.seed,
        "stopSequences": list(settings.stop or ()) or None,
        "thinkingConfig": _thinking(settings.thinking),
        **({} if settings.response_format is None else _json_config(schema_in(settings.response_format))),
    }
    body: dict[str, Any] = {
        "generationConfig": {name: one for name, one in generation.items() if one is not None},
        "tools": tools_in(settings.tools) or None,
        "toolConfig": tool_config_in(settings.tool_choice),
        "safetySettings": [{"category": one, "threshold": limit} for one, limit in settings.safety.items()] or None,
    }
    return {name: one for name, one in body.items() if one is not None}


def _merged(body: Mapping[str, Any], extra: JsonObject) -> dict[str, Any]:
    """The body with further keys, which win; objects are merged key by key."""
    both = {key: (body.get(key), value) for key, value in extra.items()}
    return {
        **body,
        **{
            key: _merged(one, other) if isinstance(one, Mapping) and isinstance(other, Mapping) else other
            for key, (one, other) in both.items()
        },
    }


def _named(model: str) -> str:
    """A model by the API's name of it."""
    return model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"


def _embedding_model(model: str) -> str:
    """`gemini:gemini-embedding-001` is asked as it is named."""
    return model if "embedding" in model else EMBEDDING_MODEL


def _json_config(schema: Mapping[str, Json] | None) -> dict[str, Any]:
    whole = {"responseMimeType": "application/json"}
    return whole if schema is None else {**whole, "responseJsonSchema": dict(schema)}


def _thinking(value: Json) -> Json:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"thinkingBudget": value}
    return {"thinkingLevel": value.upper()} if isinstance(value, str) else value
