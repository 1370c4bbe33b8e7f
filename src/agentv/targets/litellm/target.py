"""The `litellm`, `bedrock` and `vertex` targets, which call models through the LiteLLM library (extra `litellm`)."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec, Variable
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.values import JsonObject
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Doc, Issue, Nonempty, Secret, Text, Verbatim, missing_extra
from agentv.targets.http.connection import unlimited_session
from agentv.targets.http.failures import (
    carries_key,
    endpoint_of,
    missing_key,
    no_reply_in_time,
    other_server,
    unreadable_reply,
)
from agentv.targets.http.preparation import Imports, timed
from agentv.targets.litellm.library import address_for, failure_in, in_call, library, missing_variables, parameters_from
from agentv.targets.model_api.prices import RequestSettings, cost_of, load_prices
from agentv.targets.model_api.settings import JSON_OBJECT, ModelSettings, OptionalParameters, schema_in
from agentv.targets.model_api.streams import ENDED_EARLY, ChatStream, ReplyStream
from agentv.targets.openai_api.messages import chat_messages, with_system
from agentv.targets.openai_api.replies import chat_answer

if TYPE_CHECKING:
    from aiohttp import ClientSession


_PRICED_AS = {
    "bedrock": "aws",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""LiteLLM's name of a provider → its name in the price list, if they differ."""

_OPTIONAL = {
    "temperature": re.compile("temperature", re.IGNORECASE),
    "response_format": re.compile(
        r"response_?(?:format|schema)|json_?schema|structured|output_(?:config|format)", re.IGNORECASE
    ),
}
"""Optional parameter of judges → pattern of the error message that rejects it."""


@dataclass(frozen=True, slots=True)
class LiteLLM(ModelSettings):
    """Calls any model that LiteLLM supports."""

    small_model: ClassVar[str | None] = "mistral/mistral-small-latest"
    finds_keys: ClassVar[bool] = True

    model: Annotated[Text, Nonempty(), Doc("provider and model, as LiteLLM spells them: `mistral/mistral-small`")]
    api_key: Annotated[
        Text | None, Secret(), Doc("API key; defaults to the variable that LiteLLM reads for the provider")
    ] = None
    extra: Annotated[JsonObject, Verbatim(), Doc("additional parameters of `litellm.acompletion`")] = field(
        default_factory=dict
    )
    seed: Annotated[int | None, Doc("sampling seed; makes answers repeatable as far as the server supports it")] = None
    reasoning_effort: Annotated[Text | None, Doc("for models that reason: `low`, `medium`, `high`, …")] = None

    route: ClassVar[str] = ""

    @property
    def full_model(self) -> str:
        """LiteLLM's name of the model, which begins with its provider."""
        return self.model if self.model.startswith(self.route) else f"{self.route}{self.model}"

    def parameters(self) -> JsonObject:
        """Return additional parameters of a call."""
        return {}

    def validate(self) -> Iterable[Issue]:
        """Report a missing library and invalid settings."""
        missing = missing_extra("litellm", "litellm", "calling a model through LiteLLM")
        if missing is not None:
            yield missing
        yield from ModelSettings.validate(self)

    def reads(self, env: Mapping[str, str]) -> Iterable[Variable]:
        """Return the variables that LiteLLM reads for the provider's key, if known and if the settings have no key."""
        names = () if self.has_credentials else key_variables(self.full_model)
        if names:
            found = key_found(self.full_model, env)
            yield Variable("api_key", names, found, found is None, secret=True)

    @property
    def has_credentials(self) -> bool:
        """Whether the settings contain credentials, or name another server, which may need none."""
        given = {"api_key", "use_xai_oauth"} & self.extra.keys()
        return bool(self.api_key or given or carries_key(self.headers)) or self.elsewhere() is not None

    def endpoint(self) -> str:
        """Return the provider or base URL, with a hash of the key in the settings."""
        place = self.base_url or f"litellm://{self.full_model.partition('/')[0]}"
        return endpoint_of("litellm", place, self.api_key)

    def elsewhere(self) -> str | None:
        """Return the base URL from the settings or the environment, or None. It may be the provider's own."""
        given = self.base_url or self.extra.get("api_base") or self.extra.get("base_url")
        return other_server(given if isinstance(given, str) else address_for(self.full_model))

    def request_settings(self) -> RequestSettings:
        """Return the settings that determine the cost of a call."""
        provider, _, model = self.full_model.partition("/")
        return self.priced_as(
            self.elsewhere() or _PRICED_AS.get(provider, provider), model or self.full_model, self.max_tokens
        )

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target with its own connection pool, for the providers that LiteLLM calls with aiohttp."""
        return _LiteLLM(self, frozenset(spec.retry.status_codes), executor)


class _LiteLLM:
    """A connected target.

    LiteLLM reads keys from the process's environment, which agentv never changes. So the variables that the provider
    needs, if a suite's `.env` or `env:` sets them, are passed as parameters of the call: key, base URL, API version,
    and those of Vertex AI and Bedrock. Other variables must be set in the process's environment.
    """

    def __init__(self, settings: LiteLLM, retryable: frozenset[int], executor: Executor) -> None:
        self._settings = settings
        self._imports = Imports(executor, self._import)
        self._variables: tuple[str, ...] = ()
        self._retryable = retryable
        self._fixed_parameters = _fixed_parameters(settings)
        self._session: ClientSession | None = None
        self._optional = OptionalParameters(_OPTIONAL)

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Call the model. Once the model has rejected a judge's temperature or schema, later calls omit it."""
        self._variables = await self._imports.ready()
        stream = ReplyStream(ChatStream) if self._settings.stream else None
        found = await timed(self._ask(request, stream))
        return found if stream is None else stream.timed(found, chat_answer)

    def _import(self) -> tuple[str, ...]:
        """Import the library and read the price list. Return the variables that the provider needs."""
        load_prices()
        library()
        model = self._settings.full_model
        return () if self._settings.api_key else (*key_variables(model), *missing_variables(model))

    async def _ask(self, request: TargetRequest, stream: ReplyStream | None) -> TargetResponse | Failure:
        messages = chat_messages(with_system(self._settings.system, request.messages, request.prompt))
        if isinstance(messages, Failure):
            return messages
        missing = self._keys_missing(request.env)
        if missing:
            return missing_key(missing)
        from_env = parameters_from(request.env, self._variables)
        call = {**from_env, **self._fixed_parameters, "messages": messages, "timeout": request.timeout_s}
        secrets = tuple(text for text in (*from_env.values(), *self._settings.secrets) if text)
        wanted: dict[str, Any] = {}  # optional parameters of judges
        if request.temperature is not None:
            wanted["temperature"] = request.temperature
        if request.schema is not None and self._settings.response_format is None:
            wanted["response_format"] = _schema_format(request.schema)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._optional.answer(wanted, lambda more: self._call({**call, **more}, secrets, stream))
        except TimeoutError:
            return no_reply_in_time(request.timeout_s)

    def _keys_missing(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables of which one must be set to call the provider. Azure also accepts tokens."""
        if self._settings.has_credentials or key_found(self._settings.full_model, {**os.environ, **env}):
            return ()
        others = (name for name in self._variables if name.endswith("_API_KEY") and not name.startswith("AZURE"))
        names = key_variables(self._settings.full_model) or tuple(others)
        return () if any(env.get(name) for name in names) else names

    async def _call(
        self, call: dict[str, Any], secrets: tuple[str, ...], stream: ReplyStream | None
    ) -> TargetResponse | Failure:
        """Make one call. Exceptions of the library are returned as Failures, with messages without the key."""
        from openai import OpenAIError  # base of LiteLLM's exceptions

        if self._session is None:
            self._session = unlimited_session()
        token = in_call.set(True)
        try:
            if stream is None:
                reply = await library().acompletion(**call, shared_session=self._session)
            else:
                stream.begin()
                reply = await library().acompletion(
                    **call, shared_session=self._session, stream=True, stream_options={"include_usage": True}
                )
                await stream.read(chunk.model_dump() async for chunk in reply)
                if getattr(reply, "received_finish_reason", None) is None:  # LiteLLM makes up one in the chunks
                    return ENDED_EARLY
                return self._read(stream.reply.body(), reply)
        except OpenAIError as error:
            return failure_in(error, self._retryable, secrets)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # LiteLLM's module for a provider failed on an unknown reply
            return unreadable_reply(f"{type(error).__name__}: {error}", secrets)
        finally:
            in_call.reset(token)
        body = reply.model_dump()
        for choice in body.get("choices") or ():  # move the refusal to where OpenAI's API has it
            message = choice.get("message") or {}
            fields = message.get("provider_specific_fields") or {}
            message.setdefault("refusal", fields.get("refusal"))
        return self._read(body, reply)

    def _read(self, body: JsonObject, reply: Any) -> TargetResponse | Failure:
        hidden = getattr(reply, "_hidden_params", None) or {}
        found = chat_answer(body)
        if isinstance(found, Failure):
            return found
        return replace(found, cost_usd=self._cost(found, hidden.get("response_cost")))

    def _cost(self, found: TargetResponse, price: object) -> float | None:
        """Return the cost by the price list, or else by LiteLLM's own list, which ignores the base URL."""
        provider, _, model = self._settings.full_model.partition("/")
        address = self._settings.elsewhere()
        if address is not None:
            answered = str(found.metadata.get("model") or model)
            costs = (cost_of(address, name, found.token_usage) for name in (model, answered))
            return next((one for one in costs if one is not None), None)
        cost = cost_of(_PRICED_AS.get(provider, provider), model, found.token_usage)
        if cost is None and found.token_usage is not None and isinstance(price, int | float) and price > 0:
            return float(price)
        return cost

    async def close(self) -> None:
        """Close the connections that belong to this target."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _fixed_parameters(settings: LiteLLM) -> dict[str, Any]:
    """Return the parameters of every call that come from the settings, with LiteLLM's retries disabled."""
    choice, schema = settings.tool_choice, schema_in(settings.response_format)
    if isinstance(choice, str) and choice not in {"auto", "required", "none"}:
        choice = {"type": "function", "function": {"name": choice}}
    any_json = None if settings.response_format is None else {"type": JSON_OBJECT}
    call: dict[str, Any] = {
        "model": settings.full_model,
        "api_key": settings.api_key,
        "base_url": settings.base_url,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "stop": list(settings.stop or ()) or None,
        "reasoning_effort": settings.reasoning_effort,
        "tools": list(settings.tools) or None,
        "tool_choice": choice,
        "response_format": any_json if schema is None else _schema_format(schema),
        "extra_headers": dict(settings.headers) or None,
    }
    given = {name: one for name, one in call.items() if one is not None}
    if settings.tools:
        given["_skip_mcp_handler"] = True  # otherwise LiteLLM requires its MCP dependencies
    return {**given, "max_retries": 0, "num_retries": 0, "caching": False, **settings.parameters(), **settings.extra}


def _schema_format(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}


_KEYS: Mapping[str, tuple[str, ...]] = {
    "ai21": ("AI21_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "codestral": ("CODESTRAL_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nebius": ("NEBIUS_API_KEY",),
    "novita": ("NOVITA_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "together_ai": ("TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
}
"""LiteLLM's name of a provider → the environment variables of its key, in LiteLLM's order."""

_KEY_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_FEDERATION_RULE_ID"),
}
"""LiteLLM's name of a provider → environment variables that replace its key."""


def key_variables(model: str) -> tuple[str, ...]:
    """Return the variables of which one must contain the key of a model such as `mistral/mistral-small`, if known."""
    return _KEYS.get(model.partition("/")[0], ()) if "/" in model else ()


def key_found(model: str, env: Mapping[str, str]) -> str | None:
    """Return the first variable that is set of those for the credentials of the model's provider, or None."""
    names = (*key_variables(model), *_KEY_ALTERNATIVES.get(model.partition("/")[0], ()))
    return next((name for name in names if env.get(name, "").strip()), None)


@dataclass(frozen=True, slots=True)
class Bedrock(LiteLLM):
    """Calls a model of Amazon Bedrock, through LiteLLM."""

    small_model: ClassVar[str | None] = "us.anthropic.claude-haiku-4-5-20251001-v1:0"
    route: ClassVar[str] = "bedrock/"

    model: Annotated[
        Text, Nonempty(), Doc("model ID or inference profile: `us.anthropic.claude-haiku-4-5-20251001-v1:0`")
    ]
    region: Annotated[Text | None, Doc("AWS region; defaults to AWS_REGION_NAME, then AWS_REGION")] = None

    def parameters(self) -> JsonObject:
        """Return the region under LiteLLM's name."""
        return {"aws_region_name": self.region} if self.region else {}


@dataclass(frozen=True, slots=True)
class Vertex(LiteLLM):
    """Calls a model of Google's Vertex AI, through LiteLLM."""

    small_model: ClassVar[str | None] = "gemini-2.5-flash"
    route: ClassVar[str] = "vertex_ai/"

    model: Annotated[Text, Nonempty(), Doc("model name: `gemini-2.5-pro`")]
    project: Annotated[Text | None, Doc("Google Cloud project; defaults to VERTEXAI_PROJECT")] = None
    location: Annotated[Text | None, Doc("region; defaults to VERTEXAI_LOCATION")] = None

    def parameters(self) -> JsonObject:
        """Return the project and location under LiteLLM's names."""
        given = {"vertex_project": self.project, "vertex_location": self.location}
        return {name: value for name, value in given.items() if value}
