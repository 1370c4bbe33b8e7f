"""Settings that all providers of model APIs share, and parameters that only some models accept."""

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
    """Return the JSON Schema in a `response_format`, plain or in OpenAI's format, or None if it has none."""
    if not isinstance(response_format, Mapping) or response_format.get("type") == JSON_OBJECT:
        return None
    if response_format.get("type") != "json_schema":
        return response_format
    inner = response_format.get("json_schema", response_format)
    schema = inner.get("schema") if isinstance(inner, Mapping) else None
    return schema if isinstance(schema, Mapping) else None


def format_issues(response_format: Json, *, only_schemas: bool = False) -> Iterator[Issue]:
    """Report an invalid `response_format`."""
    if response_format is None or schema_in(response_format) is not None:
        return
    any_json = response_format in (JSON_OBJECT, {"type": JSON_OBJECT})
    if only_schemas:
        yield Issue(
            ("response_format",), "'response_format' must be a JSON Schema: this API supports no other JSON format"
        )
    elif not any_json:
        yield Issue(("response_format",), "'response_format' must be json_object or a JSON Schema")


_UNSUPPORTED = {"stream": "set 'stream: true' on the target itself", "background": None}


def extra_issues(extra: Mapping[str, Json], own: Collection[str]) -> Iterator[Issue]:
    """Report invalid keys in `extra`.

    Args:
        extra: the setting of the target.
        own: the keys of the request body that the target or the case sets.
    """
    for name, hint in _UNSUPPORTED.items():
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
        request_keys: keys of the request body that the target sets, so that `extra` must not.
        only_schemas: whether the API supports only a JSON Schema as `response_format`.
        domains: domains of the provider's own servers, whose prices are known; empty if it has none.
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
        """Report an invalid URL, key, `response_format`, tool, or key in `extra`."""
        yield from url_issues(self.base_url)
        yield from key_issues(self.api_key)
        yield from format_issues(self.response_format, only_schemas=self.only_schemas)
        yield from tool_issues(self.tools)
        yield from extra_issues(self.extra, self.request_keys)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that messages must not contain."""
        return tuple(text for text in (self.api_key, *self.headers.values()) if text)

    def elsewhere(self) -> str | None:
        """Return the server's URL if it is outside the provider's domains; None otherwise."""
        return other_server(self.base_url, *self.domains) if self.domains else None

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """Return the most tokens and dollars that a call can use."""
        return self.request_settings().ceiling(request)

    def request_settings(self) -> RequestSettings:
        """Return the settings that determine the cost of a call."""
        raise NotImplementedError

    def priced_as(self, provider: str | None, model: str, longest: int | None) -> RequestSettings:
        """Return the request settings with the names that the price list has for the provider and model."""
        fixed_parts = (self.system, self.tools, self.response_format)
        return RequestSettings(provider, model, longest, self.extra, fixed_parts)


Call: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[TargetResponse | Failure]]
"""A function that makes one call with the given optional parameters."""


class OptionalParameters:
    """The optional parameters of a target, without those that its model rejects.

    Args:
        patterns: parameter → pattern of the error message (status 400) that rejects it.
        refused: parameters that the model is known to reject.
    """

    def __init__(self, patterns: Mapping[str, re.Pattern[str]], refused: Iterable[str] = ()) -> None:
        self._patterns = patterns
        self._refused = set(refused)

    async def answer(self, wanted: Mapping[str, Any], call: Call) -> TargetResponse | Failure:
        """Call with the wanted parameters. If the model rejects some, repeat the call without them.

        Rejected parameters are omitted from all later calls too.
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
