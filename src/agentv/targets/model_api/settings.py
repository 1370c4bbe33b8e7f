"""Settings that every provider of a model API has, and parameters that only some models take."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, ClassVar, TypeAlias

from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.usage import Ceiling
from agentv.model.values.values import Json, JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Between, Doc, Fraction, Issue, Nonempty, NoSecrets, Secret, Text, Verbatim
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.failures import key_issues, other_server, url_issues
from agentv.targets.model_api.content import tool_issues
from agentv.targets.model_api.prices import RequestSettings

JSON_OBJECT = "json_object"


def schema_in(response_format: Json) -> JsonObject | None:
    """The JSON Schema in a `response_format`: given by itself, or in OpenAI's shape. None: any JSON will do."""
    if not isinstance(response_format, Mapping) or response_format.get("type") == JSON_OBJECT:
        return None
    if response_format.get("type") != "json_schema":
        return response_format
    inner = response_format.get("json_schema", response_format)
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def format_issues(response_format: Json, *, only_schemas: bool = False) -> Iterator[Issue]:
    """What is wrong with a `response_format`, where one is given."""
    if response_format is None or schema_in(response_format) is not None:
        return
    any_json = response_format in (JSON_OBJECT, {"type": JSON_OBJECT})
    if only_schemas:
        yield Issue(
            ("response_format",), "'response_format' must be a JSON Schema: this API supports no other JSON format"
        )
    elif not any_json:
        yield Issue(("response_format",), "'response_format' must be json_object or a JSON Schema")


_PENDING = {"stream": "set 'stream: true' on the target itself", "background": None}


def extra_issues(extra: Mapping[str, Json], own: Collection[str]) -> Iterator[Issue]:
    """What is wrong with the further keys of a request's body.

    Args:
        extra: as the author writes it.
        own: the keys that are filled from the case, or have a setting of their own.
    """
    for name, hint in _PENDING.items():
        if extra.get(name):
            message = f"'{name}' cannot be set here: agentv reads the answer from the response to its call"
            yield Issue(("extra", name), message, hint=hint)
    count = extra.get("n")
    if isinstance(count, int | float) and count > 1:
        hint = "to call several times, set repeat under run"
        yield Issue(("extra", "n"), f"'n' must be 1: only one answer is read, found {count}", hint=hint)
    for name in own:
        if name in extra:
            yield Issue(("extra", name), f"'{name}' cannot be set here: the target and the case set it")


@dataclass(frozen=True, slots=True)
class ModelSettings(ProviderSettings):
    """Base of the settings of a model behind an API.

    Attributes:
        request_keys: keys of the request's body that the target fills, so that `extra` must not.
        only_schemas: the API takes a JSON Schema as `response_format` and nothing else.
        domains: of the provider's own servers, whose prices are known; none: no server is its own.
    """

    calls: ClassVar[Calls] = "server"
    short: ClassVar[str | None] = "model"
    request_keys: ClassVar[tuple[str, ...]] = ("model", "messages")
    only_schemas: ClassVar[bool] = False
    domains: ClassVar[tuple[str, ...]] = ()
    returns_context: ClassVar[bool] = False

    model: Annotated[Text, Nonempty(), Doc("model name, as the provider spells it")]
    base_url: Annotated[Text | None, Doc("base URL of the API, if it is not the provider's own")] = None
    api_key: Annotated[Text | None, Secret(), Doc("API key")] = None
    system: Annotated[Text | None, Doc("system prompt, placed before those of the case")] = None
    temperature: Annotated[float | None, Between(0, 2), Doc("sampling temperature")] = None
    max_tokens: Annotated[int | None, Between(1), Doc("maximum tokens of an answer, including reasoning")] = None
    top_p: Annotated[Fraction | None, Doc("nucleus sampling: probability mass to sample from")] = None
    stop: Annotated[tuple[Text, ...] | None, Doc("stop sequences")] = None
    stream: Annotated[bool, Doc("stream the answer, and record `time_to_first_token_ms`")] = False
    tools: Annotated[
        tuple[Json, ...],
        Verbatim(),
        NoSecrets(),
        Doc("tools the model may call, in OpenAI's form or the provider's own"),
    ] = ()
    tool_choice: Annotated[
        Json, Verbatim(), Doc("`auto`, `required`, `none`, the name of a tool, or an object of the API")
    ] = None
    response_format: Annotated[Json, Verbatim(), NoSecrets(), Doc("`json_object`, or a JSON Schema for the answer")] = (
        None
    )
    headers: Annotated[Mapping[str, Text], Doc("additional HTTP headers")] = field(default_factory=dict)
    extra: Annotated[JsonObject, Verbatim(), Doc("additional keys of the request body, in the API's own form")] = field(
        default_factory=dict
    )

    def validate(self) -> Iterable[Issue]:
        """An address or a key that cannot be used, a form of answer that the API does not know, unusable tools."""
        yield from url_issues(self.base_url)
        yield from key_issues(self.api_key)
        yield from format_issues(self.response_format, only_schemas=self.only_schemas)
        yield from tool_issues(self.tools)
        yield from extra_issues(self.extra, self.request_keys)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that no message may hold."""
        return tuple(text for text in (self.api_key, *self.headers.values()) if text)

    def elsewhere(self) -> str | None:
        """A server in none of the domains."""
        return other_server(self.base_url, *self.domains) if self.domains else None

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """By the price list, and the tokens that an answer may have."""
        return self.request_settings().ceiling(request)

    def request_settings(self) -> RequestSettings:
        """What the price of a call depends on."""
        raise NotImplementedError

    def priced_as(self, provider: str | None, model: str, longest: int | None) -> RequestSettings:
        """The request settings for a provider and a model by their names on the price list."""
        fixed_parts = (self.system, self.tools, self.response_format)
        return RequestSettings(provider, model, longest, self.extra, fixed_parts)


Call: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[TargetResponse | Failure]]
"""Makes one call with these optional parameters."""


class OptionalParameters:
    """The optional parameters of one target, and which of them its model refuses.

    Args:
        patterns: parameter → how a refusal (400) names it.
        refused: parameters that are known to be refused.
    """

    def __init__(self, patterns: Mapping[str, re.Pattern[str]], refused: Iterable[str] = ()) -> None:
        self._patterns = patterns
        self._refused = set(refused)

    async def answer(self, wanted: Mapping[str, Any], call: Call) -> TargetResponse | Failure:
        """The answer, with the wanted parameters as far as the model takes them.

        A refused one is left out at once, and of all later calls.
        """
        while True:
            sent = {name: value for name, value in wanted.items() if name not in self._refused}
            answer = await call(sent)
            if not isinstance(answer, CallFailure) or answer.status != HTTPStatus.BAD_REQUEST:
                return answer
            refused = {name for name in sent if self._patterns[name].search(answer.message)}
            if not refused:
                return answer
            self._refused |= refused
