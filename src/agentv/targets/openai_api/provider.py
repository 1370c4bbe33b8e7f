"""Base of the providers that speak OpenAI's API: checks of the settings, the cost of a call, the target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from agentv.model.run.budget import Ceiling
from agentv.model.suite.suite import TargetSpec
from agentv.ports import Executor, Target
from agentv.registry.fields import Issue
from agentv.targets.http.model_calls import endpoint_of, is_local, key_issues, names_user, url_issues
from agentv.targets.model_api.ceilings import RequestSettings
from agentv.targets.model_api.settings import extra_issues
from agentv.targets.model_api.tool_calls import tool_issues
from agentv.targets.openai_api.parameters import OpenAISettings

_NOT_IN_RESPONSES = ("seed", "stop", "frequency_penalty", "presence_penalty", "tool_calls_as_output")


@dataclass(frozen=True, slots=True)
class OpenAIProvider(OpenAISettings):
    """Base of the providers that speak OpenAI's API."""

    def validate(self) -> Iterable[Issue]:
        """Invalid URLs, and settings that the API lacks."""
        yield from key_issues(self.api_key)
        yield from url_issues(self.dialect().base_url if self.base_url is not None else None)
        if self.api_key and self.base_url is not None and names_user(self.base_url) and self.dialect().name != "azure":
            message = "'base_url' contains a user, and 'api_key' is sent as 'Authorization'"
            yield Issue(("base_url",), message, hint="keep one of them")
        for name in _NOT_IN_RESPONSES if self.api == "responses" else ():
            if getattr(self, name) is not None:
                yield Issue((name,), f"the responses API does not support '{name}'", hint="remove it, or set api: chat")
        yield from tool_issues(self.tools)
        yield from extra_issues(self.extra, ("model", "messages" if self.api == "chat" else "input"))
        given = self.response_format
        if given is not None and not isinstance(given, Mapping) and given not in ("json", "json_object", "text"):
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

    def request_settings(self) -> RequestSettings:
        """What the price of a call depends on."""
        dialect = self.dialect()
        self_hosted = dialect.prices is None or is_local(dialect.base_url)
        return replace(self.priced_as(dialect.prices, self.model, self.max_tokens), self_hosted=self_hosted)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """By the price list."""
        return replace(self.request_settings(), model=self.dialect().embedding_model).ceiling_of_vectors(texts)

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target, which opens its connections at its first call."""
        from agentv.targets.openai_api.target import OpenAITarget

        return OpenAITarget(self, spec, executor)
