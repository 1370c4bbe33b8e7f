"""`litellm`: whatever model the library LiteLLM knows answers (extra `litellm`)."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentv.model.run.budget import Ceiling
from agentv.model.suite.suite import TargetSpec, Variable
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.values import Json, JsonObject
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.extras import missing_extra
from agentv.registry.fields import Between, Doc, Fraction, Issue, Nonempty, Secret, Text, Verbatim
from agentv.registry.types import ProviderSettings
from agentv.targets.http.connection import session_of_sdk
from agentv.targets.http.extra_keys import extra_faults
from agentv.targets.http.model_calls import (
    carries_key,
    endpoint_of,
    key_faults,
    missing_key,
    no_reply_in_time,
    not_readable,
    outside,
    url_faults,
)
from agentv.targets.http.once import timed
from agentv.targets.http.statuses import limits_of
from agentv.targets.litellm.failures import failure_in
from agentv.targets.litellm.keys import key_found, keys_of
from agentv.targets.litellm.library import address_for, asking, library, parameters_from, wanted_by
from agentv.targets.model_api.answer_format import JSON_OBJECT, format_faults, schema_in
from agentv.targets.model_api.ceilings import RequestSettings
from agentv.targets.model_api.prices import cost_of, load_prices
from agentv.targets.model_api.tool_calls import tool_faults
from agentv.targets.openai_api.messages import chat_messages, with_system
from agentv.targets.openai_api.replies import chat_answer

if TYPE_CHECKING:
    from aiohttp import ClientSession

_PRICED_AS = {
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "together_ai": "together",
    "vertex_ai": "google",
    "xai": "x-ai",
}
"""Providers by LiteLLM's names → by those of the price list, where they differ."""

_OPTIONAL = {
    "temperature": re.compile("temperature", re.IGNORECASE),
    "response_format": re.compile(
        r"response_?(?:format|schema)|json_?schema|structured|output_(?:config|format)", re.IGNORECASE
    ),
}
"""What a judge asks for and can do without → how a refusal names it."""

_FORWARDED = "llm_provider-"


@dataclass(frozen=True, slots=True)
class LiteLLM(ProviderSettings):
    """Calls any model that LiteLLM supports."""

    short: ClassVar[str | None] = "model"
    finds_keys: ClassVar[bool] = True

    model: Annotated[Text, Nonempty(), Doc("provider and model as LiteLLM writes them: `mistral/mistral-small`")]
    api_key: Annotated[
        Text | None, Secret(), Doc("the key; default: the variable that LiteLLM reads for the provider")
    ] = None
    base_url: Annotated[Text | None, Doc("base URL of the API; default: the provider's own")] = None
    system: Annotated[Text | None, Doc("a system message before all others")] = None
    temperature: Annotated[float | None, Between(0, 2), Doc("sampling temperature")] = None
    max_tokens: Annotated[int | None, Between(1), Doc("maximum tokens of an answer, including reasoning")] = None
    top_p: Annotated[Fraction | None, Doc("nucleus sampling: share of likely tokens to sample from")] = None
    seed: Annotated[int | None, Doc("makes answers repeatable, if the server supports it")] = None
    stop: Annotated[tuple[Text, ...], Doc("texts that end the answer")] = ()
    reasoning_effort: Annotated[Text | None, Doc("for models that reason: `low`, `medium`, `high`, …")] = None
    tools: Annotated[tuple[Json, ...], Verbatim(), Doc("tools that the model may call, in OpenAI's format")] = ()
    tool_choice: Annotated[Json, Verbatim(), Doc("`auto`, `required`, `none`, the name of a tool, or an object")] = None
    response_format: Annotated[Json, Verbatim(), Doc("`json_object`, or a JSON Schema for the answer")] = None
    headers: Annotated[Mapping[str, Text], Doc("additional HTTP headers")] = field(default_factory=dict)
    extra: Annotated[Mapping[str, Json], Verbatim(), Doc("additional parameters of `litellm.acompletion`")] = field(
        default_factory=dict
    )

    def faults(self) -> Iterable[Issue]:
        """The library is not there; an address that is none."""
        missing = missing_extra("litellm", "litellm", "LiteLLM's models are asked")
        if missing is not None:
            yield missing
        yield from url_faults(self.base_url)
        yield from key_faults(self.api_key)
        yield from format_faults(self.response_format)
        yield from tool_faults(self.tools)
        yield from extra_faults(self.extra, ("model", "messages"))

    def reads(self, env: Mapping[str, str]) -> Iterable[Variable]:
        """The key of the model's provider, where it is known which one LiteLLM reads, and that none is given."""
        names = () if self.let_in else keys_of(self.model)
        if names:
            found = key_found(self.model, env)
            yield Variable("api_key", names, found, found is None, secret=True)

    @property
    def let_in(self) -> bool:
        """Whether the settings say all that a server may want to know, or name one that may want no key."""
        given = {"api_key", "use_xai_oauth"} & self.extra.keys()
        return bool(self.api_key or given or carries_key(self.headers)) or self.elsewhere() is not None

    def endpoint(self) -> str:
        """The provider or the address, and a hash of the key where the settings say one."""
        place = self.base_url or f"litellm://{self.model.partition('/')[0]}"
        return endpoint_of("litellm", place, self.api_key)

    def elsewhere(self) -> str | None:
        """The address that the settings say, or the process to the library. It may be the provider's own as well."""
        said = self.base_url or self.extra.get("api_base") or self.extra.get("base_url")
        return outside(said if isinstance(said, str) else address_for(self.model))

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """By the price list, and the tokens that an answer may have."""
        return self._asked().ceiling(request)

    def _asked(self) -> RequestSettings:
        provider, _, model = self.model.partition("/")
        besides = (self.system, self.tools, self.response_format)
        prices = self.elsewhere() or _PRICED_AS.get(provider, provider)
        return RequestSettings(prices, model or self.model, self.max_tokens, self.extra, besides)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target with a pool of connections of its own, for those providers that LiteLLM asks over aiohttp."""
        load_prices()

        library()  # more than two seconds that must not count as the first answer's

        del executor
        return _LiteLLM(self, frozenset(spec.retry.status_codes))


class _LiteLLM:
    """LiteLLM reads keys from the environment of the process.

    What a suite's `.env` or `env:` says of the variables that the model's provider wants is handed to it as parameters
    of the call: its key, address and API version, and what Vertex AI and Bedrock need. Any other variable must be set
    in the environment of the process: nothing is ever written there.
    """

    def __init__(self, settings: LiteLLM, retryable: frozenset[int]) -> None:
        self._settings = settings
        self._retryable = retryable
        self._always = _always(settings)
        self._wanted = () if settings.api_key else (*keys_of(settings.model), *wanted_by(settings.model))
        self._session: ClientSession | None = None
        self._unwanted: set[str] = set()

    def answer(self, request: TargetRequest) -> Awaitable[TargetResponse | Failure]:
        """Ask the model. A temperature or a schema that a judge asks for is left out once the model has refused it."""
        return timed(self._ask(request))

    async def _ask(self, request: TargetRequest) -> TargetResponse | Failure:
        said = with_system(self._settings.system, request.messages, request.prompt)
        messages = chat_messages(said)
        if isinstance(messages, Failure):
            return messages
        keyless = self._keys_missing(request.env)
        if keyless:
            return missing_key(keyless)
        from_env = parameters_from(request.env, self._wanted)
        call = {**from_env, **self._always, "messages": messages}
        secrets = tuple(text for text in (*from_env.values(), *self._secrets()) if text)
        try:
            async with asyncio.timeout(request.timeout_s):
                return await self._sent(call, request, secrets)
        except TimeoutError:
            return no_reply_in_time(request.timeout_s)

    def _keys_missing(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The variables of keys without which the provider answers nothing. Azure takes tokens instead of them."""
        if self._settings.let_in or key_found(self._settings.model, {**os.environ, **env}):
            return ()
        others = (name for name in self._wanted if name.endswith("_API_KEY") and not name.startswith("AZURE"))
        names = keys_of(self._settings.model) or tuple(others)
        return () if any(env.get(name) for name in names) else names

    def _secrets(self) -> tuple[str, ...]:
        return (self._settings.api_key or "", *self._settings.headers.values())

    async def _sent(
        self, call: dict[str, Any], request: TargetRequest, secrets: tuple[str, ...]
    ) -> TargetResponse | Failure:
        """The answer, with what the judge asks for as far as the model takes it."""
        optional: dict[str, Any] = {}
        if request.temperature is not None and "temperature" not in self._unwanted:
            optional["temperature"] = request.temperature
        if request.schema is not None and "response_format" not in self._unwanted:
            optional["response_format"] = _obeying(request.schema)
        answer = await self._call({**call, **optional, "timeout": request.timeout_s}, secrets)
        refused = _refused_in(answer, optional)
        if not refused:
            return answer
        self._unwanted |= refused
        return await self._sent(call, request, secrets)

    async def _call(self, call: dict[str, Any], secrets: tuple[str, ...]) -> TargetResponse | Failure:
        """One call. Whatever the library raises comes back as a Failure; its words are shown without the key."""
        from openai import OpenAIError  # of which LiteLLM's errors are kinds

        if self._session is None:
            self._session = session_of_sdk()
        ours = asking.set(True)  # which has no name
        try:
            reply = await library().acompletion(**call, shared_session=self._session)
        except OpenAIError as error:
            return failure_in(error, self._retryable, secrets)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
        ) as error:  # a provider's module met what it does not know
            return not_readable(f"{type(error).__name__}: {error}", secrets)
        finally:
            asking.reset(ours)
        return self._read(reply)

    def _read(self, reply: Any) -> TargetResponse | Failure:
        hidden = getattr(reply, "_hidden_params", None) or {}
        found = chat_answer(_with_refusal(reply.model_dump()))
        if isinstance(found, Failure):
            return found
        headers = hidden.get("additional_headers") or {}
        known = {str(name).removeprefix(_FORWARDED): str(value) for name, value in headers.items()}
        return replace(found, cost_usd=self._cost(found, hidden.get("response_cost")), limits=limits_of(known))

    def _cost(self, found: TargetResponse, said: object) -> float | None:
        """The price by the list that all targets share, else by LiteLLM's own, which asks for no address."""
        provider, _, model = self._settings.model.partition("/")
        address = self._settings.elsewhere()
        if address is not None:
            answered = str(found.metadata.get("model") or model)
            costs = (cost_of(address, name, found.token_usage) for name in (model, answered))
            return next((one for one in costs if one is not None), None)
        cost = cost_of(_PRICED_AS.get(provider, provider), model, found.token_usage)
        known = cost is None and found.token_usage is not None and isinstance(said, int | float) and said > 0
        return float(said) if known and isinstance(said, int | float) else cost

    async def close(self) -> None:
        """Let go of all connections that are this target's own."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _with_refusal(body: dict[str, Any]) -> dict[str, Any]:
    """A reply with the words of a refusal where OpenAI's API has them. LiteLLM puts them beside."""
    for choice in body.get("choices") or ():
        message = choice.get("message") or {}
        beside = message.get("provider_specific_fields") or {}
        message.setdefault("refusal", beside.get("refusal"))
    return body


def _always(settings: LiteLLM) -> dict[str, Any]:
    """What every call holds by the settings; its own retries off."""
    call: dict[str, Any] = {
        "model": settings.model,
        "api_key": settings.api_key,
        "base_url": settings.base_url,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
        "top_p": settings.top_p,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
        "reasoning_effort": settings.reasoning_effort,
        "tools": list(settings.tools) or None,
        "tool_choice": _choice(settings.tool_choice),
        "response_format": _format(settings.response_format),
        "extra_headers": dict(settings.headers) or None,
    }
    given = {name: one for name, one in call.items() if one is not None}
    if settings.tools:
        given["_skip_mcp_handler"] = True  # else it wants the library of a protocol that no tool here speaks
    return {**given, "max_retries": 0, "num_retries": 0, "caching": False, **settings.extra}


def _choice(choice: Json) -> Json:
    if isinstance(choice, str) and choice not in {"auto", "required", "none"}:
        return {"type": "function", "function": {"name": choice}}
    return choice


def _format(said: Json) -> Json:
    schema = schema_in(said)
    return _obeying(schema) if schema is not None else None if said is None else {"type": JSON_OBJECT}


def _obeying(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": dict(schema)}}


def _refused_in(answer: TargetResponse | Failure, optional: Mapping[str, Any]) -> set[str]:
    """Which optional parts of the call the model refused by name."""
    if not isinstance(answer, CallFailure) or answer.status != HTTPStatus.BAD_REQUEST:
        return set()
    return {name for name in optional if _OPTIONAL[name].search(answer.message)}
