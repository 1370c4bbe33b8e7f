"""Settings that every provider of a model API has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from agentv.model.run.budget import Ceiling
from agentv.model.values.values import Json, JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Between, Doc, Fraction, Issue, Nonempty, NoSecrets, Secret, Text, Verbatim
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.extra_keys import extra_issues
from agentv.targets.http.model_calls import key_issues, url_issues
from agentv.targets.model_api.answer_format import format_issues
from agentv.targets.model_api.ceilings import RequestSettings
from agentv.targets.model_api.tool_calls import tool_issues


@dataclass(frozen=True, slots=True)
class ModelSettings(ProviderSettings):
    """Base of the settings of a model behind an API.

    Attributes:
        request_keys: keys of the request's body that the target fills, so that `extra` must not.
        only_schemas: the API takes a JSON Schema as `response_format` and nothing else.
    """

    calls: ClassVar[Calls] = "server"
    short: ClassVar[str | None] = "model"
    request_keys: ClassVar[tuple[str, ...]] = ("model", "messages")
    only_schemas: ClassVar[bool] = False
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
