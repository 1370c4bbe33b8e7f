"""Settings shared by the providers that speak OpenAI's API."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from agentv.model.run.budget import Ceiling
from agentv.model.suite.suite import TargetSpec
from agentv.model.values.values import Json, JsonObject
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Between, Doc, Issue, Nonempty, Text, Verbatim
from agentv.registry.types import ProviderSettings
from agentv.targets.http.extra_keys import extra_faults
from agentv.targets.http.model_calls import endpoint_of, host_of, key_faults, names_user, url_faults
from agentv.targets.model_api.ceilings import RequestSettings
from agentv.targets.model_api.tool_calls import tool_faults
from agentv.targets.openai_api.dialect import Dialect

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})  # noqa: S104  # as people write it, not bound to
_NOT_IN_RESPONSES = ("seed", "stop", "frequency_penalty", "presence_penalty")


@dataclass(frozen=True, slots=True)
class OpenAISettings(ProviderSettings):
    """Base class of the settings of providers with OpenAI's API."""

    short: ClassVar[str | None] = "model"
    embeds: ClassVar[bool] = True

    model: Annotated[Text, Nonempty(), Doc("the provider's name of the model")]
    base_url: Annotated[Text | None, Doc("base URL of the API")] = None
    api_key: Annotated[Text | None, Doc("the key")] = None
    api: Annotated[Literal["chat", "responses"], Doc("which API: `chat` (chat completions) or `responses`")] = "chat"
    system: Annotated[Text | None, Doc("a system message before all others")] = None
    temperature: Annotated[float | None, Between(0, 2), Doc("sampling temperature")] = None
    max_tokens: Annotated[int | None, Between(1), Doc("maximum tokens of an answer, including reasoning")] = None
    top_p: Annotated[float | None, Between(0, 1), Doc("nucleus sampling: share of likely tokens to sample from")] = None
    frequency_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for repetition")] = None
    presence_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for staying on the same topics")] = None
    seed: Annotated[int | None, Doc("makes answers repeatable, if the server supports it")] = None
    stop: Annotated[tuple[Text, ...] | None, Doc("texts that end the answer")] = None
    reasoning_effort: Annotated[Text | None, Doc("for models that reason: `minimal`, `low`, `medium`, `high`, …")] = (
        None
    )
    tools: Annotated[
        tuple[Json, ...],
        Verbatim(),
        Doc("tools that the model may call, in OpenAI's format; the transcript shows the calls"),
    ] = ()
    tool_choice: Annotated[
        Json, Verbatim(), Doc("`auto`, `none`, `required`, the name of a tool, or an object of the API")
    ] = None
    response_format: Annotated[
        Json, Verbatim(), Doc("`json_object`, a JSON Schema for the answer, or an object of the API")
    ] = None
    strict_schemas: Annotated[
        bool | None,
        Doc("request verdicts as JSON Schema; default: true for servers known to support it, else false"),
    ] = None
    embedding_model: Annotated[Text | None, Doc("the embedding model for `similar`")] = None
    headers: Annotated[Mapping[str, Text], Doc("additional HTTP headers")] = field(default_factory=dict)
    extra: Annotated[JsonObject, Verbatim(), Doc("additional keys of the request body, as the API expects them")] = (
        field(default_factory=dict)
    )

    def dialect(self) -> Dialect:
        """The server that is meant, and what it wants."""
        raise NotImplementedError

    def faults(self) -> Iterable[Issue]:
        """A URL that is none; what the API has no word for."""
        yield from key_faults(self.api_key)
        yield from url_faults(self.dialect().base_url if self.base_url is not None else None)
        if self.api_key and self.base_url is not None and names_user(self.base_url) and self.dialect().name != "azure":
            message = "'base_url' contains a user, and 'api_key' is sent as 'Authorization'"
            yield Issue(("base_url",), message, hint="keep one of them")
        for name in _NOT_IN_RESPONSES if self.api == "responses" else ():
            if getattr(self, name) is not None:
                yield Issue((name,), f"the responses API does not support '{name}'", hint="remove it, or set api: chat")
        yield from tool_faults(self.tools)
        yield from extra_faults(self.extra, ("model", "messages" if self.api == "chat" else "input"))
        said = self.response_format
        if said is not None and not isinstance(said, Mapping) and said not in ("json", "json_object", "text"):
            message = "'response_format' must be json_object, a JSON Schema, or an object of the API"
            yield Issue(("response_format",), message)
        if self.stop is not None and not self.stop:
            yield Issue(("stop",), "'stop' is empty", "missing-value")

    def spares(self) -> Collection[str]:
        """A server on this machine mostly wants no key."""
        return ("api_key",) if is_local(self.dialect().base_url) else ()

    def endpoint(self) -> str | None:
        """The server, and which key is used there: a short hash of it."""
        dialect = self.dialect()
        return endpoint_of(dialect.name, dialect.base_url, dialect.api_key)

    def ceiling(self, request: TargetRequest) -> Ceiling:
        """By the price list, and the tokens that an answer may have."""
        return self._asked().ceiling(request)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """By the price list."""
        return replace(self._asked(), model=self.dialect().embedding_model).ceiling_of_vectors(texts)

    def _asked(self) -> RequestSettings:
        dialect = self.dialect()
        besides = (self.system, self.tools, self.response_format)
        own = dialect.prices is None or is_local(dialect.base_url)
        return RequestSettings(dialect.prices, self.model, self.max_tokens, self.extra, besides, own=own)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target with one client of the SDK, which opens connections as it is asked.

        The SDK and the price list are read here: that takes a second, in which no answer could be received.
        """
        from agentv.targets.openai_api.target import OpenAITarget

        del executor
        return OpenAITarget(self, spec)


def is_local(url: str) -> bool:
    """Whether a server is on this machine."""
    return host_of(url) in _LOOPBACK


def secrets_of(*texts: str | None) -> tuple[str, ...]:
    """Those of the texts that are there."""
    return tuple(text for text in texts if text)
