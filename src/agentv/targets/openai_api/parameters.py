"""The parameters of a request, from the server's dialect, the target's settings and the request itself.

**Temperature.** Rubrics request temperature 0 from their judge, but OpenAI's reasoning models reject any temperature
with 400. So the request's temperature is omitted if the model's name is that of a reasoning model (`reasons`). If a
server rejects it, it is omitted from all later calls of the target. A temperature in the target's settings is always
sent, and its rejection is an error: an answer must not appear to have been made with a setting that was ignored.

**Schemas.** A judge's schema is sent if the server is known to follow schemas, and omitted if the server rejects it.
The target's own `response_format` is always sent, and takes precedence over a judge's schema.

**Usage.** A stream reports its tokens if `stream_options` asks for them. That is omitted if the server rejects it.

**Limits.** `max_tokens` is named `max_completion_tokens` for OpenAI, Azure and all reasoning models. If a server
rejects one name with 400, the other one is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import quote

from agentv.model.values.usage import Ceiling
from agentv.model.values.values import Json, JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Between, Doc, Issue, NoSecrets, Text, Verbatim
from agentv.targets.http.failures import endpoint_of, has_user, is_local, key_issues, url_issues
from agentv.targets.model_api.content import tool_issues
from agentv.targets.model_api.prices import RequestSettings
from agentv.targets.model_api.settings import ModelSettings, extra_issues

_NOT_IN_RESPONSES = ("seed", "stop", "frequency_penalty", "presence_penalty", "tool_calls_as_output")


@dataclass(frozen=True, slots=True)
class OpenAISettings(ModelSettings):
    """Base of the settings of servers with OpenAI's API."""

    embeds: ClassVar[bool] = True

    response_format: Annotated[
        Json, Verbatim(), NoSecrets(), Doc("`json_object`, a JSON Schema for the answer, or an object of the API")
    ] = None
    api: Annotated[Literal["chat", "responses"], Doc("which API: `chat` (chat completions) or `responses`")] = "chat"
    frequency_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for repeated tokens")] = None
    presence_penalty: Annotated[float | None, Between(-2, 2), Doc("penalty for tokens already present")] = None
    seed: Annotated[int | None, Doc("sampling seed; makes answers repeatable where the server supports it")] = None
    reasoning_effort: Annotated[Text | None, Doc("for models that reason: `minimal`, `low`, `medium`, `high`, …")] = (
        None
    )
    strict_schemas: Annotated[
        bool | None,
        Doc("request verdicts as JSON Schema; by default only where the server is known to follow it, else as text"),
    ] = None
    tool_calls_as_output: Annotated[
        bool | None,
        Doc("an answer that calls tools is the JSON of the calls, or of the message if it has text; as in promptfoo"),
    ] = None
    embedding_model: Annotated[Text | None, Doc("model that `similar` uses")] = None

    def dialect(self) -> Dialect:
        """Return the server's dialect."""
        raise NotImplementedError

    def validate(self) -> Iterable[Issue]:
        """Report invalid settings, and settings that the API does not support."""
        yield from key_issues(self.api_key)
        yield from url_issues(self.dialect().base_url if self.base_url is not None else None)
        if self.api_key and self.base_url is not None and has_user(self.base_url) and self.dialect().name != "azure":
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
        """Return `api_key` for a server on this machine, which usually requires no key."""
        return ("api_key",) if is_local(self.dialect().base_url) else ()

    def endpoint(self) -> str | None:
        """Return the server's URL with a hash of the key."""
        dialect = self.dialect()
        return endpoint_of(dialect.name, dialect.base_url, dialect.api_key)

    def request_settings(self) -> RequestSettings:
        """Return the settings that determine the cost of a call."""
        dialect = self.dialect()
        self_hosted = dialect.prices is None or is_local(dialect.base_url)
        return replace(self.priced_as(dialect.prices, self.model, self.max_tokens), self_hosted=self_hosted)

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:
        """Return the most that embedding these texts can use, by the price list."""
        return replace(self.request_settings(), model=self.dialect().embedding_model).ceiling_of_vectors(texts)


TEMPERATURE = "temperature"
SCHEMA = "schema"
LIMIT_NAME = "limit-name"
USAGE = "usage"
"""Parts of a request that are omitted or renamed if the server rejects them."""

_CHOICES = frozenset({"auto", "none", "required", "any"})
_FORMATS = frozenset({"text", "json_object", "json_schema", "grammar", "structural_tag"})

_PART_PATTERNS = {
    TEMPERATURE: re.compile(r"temperature", re.IGNORECASE),
    SCHEMA: re.compile(r"response_?format|json_?schema|text\.format|structured|guided|grammar", re.IGNORECASE),
    LIMIT_NAME: re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE),
    USAGE: re.compile(r"stream_options|include_usage", re.IGNORECASE),
}
_REJECTION = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|deprecated|not (?:permitted|allowed)|unexpected|only the"
    r"|extra (?:inputs|fields)",
    re.IGNORECASE,
)


def chat_parameters(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> dict[str, Any]:
    """Return the parameters for chat completions."""
    newer = dialect.completion_tokens or reasons(settings.model)
    limit_name = "max_completion_tokens" if newer is (LIMIT_NAME not in refused) else "max_tokens"
    reports_usage = settings.stream and USAGE not in refused
    body = {
        "model": settings.model,
        "temperature": _temperature(settings, request, refused),
        "top_p": settings.top_p,
        "frequency_penalty": settings.frequency_penalty,
        "presence_penalty": settings.presence_penalty,
        dialect.seed: settings.seed,
        limit_name: settings.max_tokens,
        "stop": list(settings.stop or ()) or None,
        "reasoning_effort": settings.reasoning_effort,
        "tools": [_nested(tool) for tool in settings.tools] or None,
        "tool_choice": _choice(settings.tool_choice, nested=True),
        "stream": settings.stream or None,
        "stream_options": {"include_usage": True} if reports_usage else None,
        "response_format": _format(settings, dialect, request, refused),
    }
    return {**{key: value for key, value in body.items() if value is not None}, **settings.extra}


def response_parameters(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> dict[str, Any]:
    """Return the parameters for the responses API. As with chat completions, the server does not store the answers."""
    form, effort = _format(settings, dialect, request, refused), settings.reasoning_effort
    body = {
        "model": settings.model,
        "store": False,
        "temperature": _temperature(settings, request, refused),
        "stream": settings.stream or None,
        "top_p": settings.top_p,
        "max_output_tokens": settings.max_tokens,
        "reasoning": None if effort is None else {"effort": effort},
        "tools": [_flat(tool) for tool in settings.tools] or None,
        "tool_choice": _choice(settings.tool_choice, nested=False),
        "text": None if form is None else {"format": _flat(form)},
    }
    return {**{key: value for key, value in body.items() if value is not None}, **settings.extra}


def refused_by(message: str, sent: frozenset[str]) -> frozenset[str]:
    """Return the removable parts of a request that an error message rejects."""
    named = {one for one in sent if _PART_PATTERNS[one].search(message)}
    return frozenset(one for one in named if one == SCHEMA or _REJECTION.search(message))


def removable(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> frozenset[str]:
    """Return the parts of the request that can be omitted or renamed, without those that were rejected before."""
    there = {
        TEMPERATURE: request.temperature is not None and not reasons(settings.model),
        SCHEMA: request.schema is not None and dialect.strict_schemas and settings.response_format is None,
        LIMIT_NAME: settings.max_tokens is not None and settings.api == "chat",
        USAGE: settings.stream and settings.api == "chat",
    }
    return frozenset(one for one, is_there in there.items() if is_there) - refused


def _temperature(settings: OpenAISettings, request: TargetRequest, refused: frozenset[str]) -> float | None:
    if request.temperature is None:
        return settings.temperature
    return None if TEMPERATURE in refused or reasons(settings.model) else request.temperature


def _format(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> JsonObject | None:
    """Return the target's `response_format`, or else the request's schema if the server follows schemas."""
    response_format = settings.response_format
    if response_format is None and request.schema is not None:
        return _schema(request.schema) if dialect.strict_schemas and SCHEMA not in refused else None
    if isinstance(response_format, str):
        return {"type": "json_object" if response_format == "json" else response_format}
    if not isinstance(response_format, Mapping):
        return None
    return response_format if response_format.get("type") in _FORMATS else _schema(response_format)


def _schema(schema: JsonObject) -> JsonObject:
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": _is_closed(schema), "schema": schema},
    }


def _is_closed(schema: Json) -> bool:
    """Whether every object of a schema is closed and requires all its properties, as strict mode demands."""
    if isinstance(schema, list | tuple):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or isinstance(properties, Mapping):
        named = set(properties) if isinstance(properties, Mapping) else set()
        required = schema.get("required")
        if schema.get("additionalProperties") is not False or set(required or ()) != named:  # type: ignore[arg-type]
            return False
    return all(map(_is_closed, schema.values()))


def _choice(choice: Json, *, nested: bool) -> Json:
    if isinstance(choice, str):
        if choice in _CHOICES:
            return choice
        choice = {"type": "function", "function": {"name": choice}}
    return _nested(choice) if nested else _flat(choice)


_OUTER_KEYS = frozenset({"type", "cache_control"})


def _nested(tool: Json) -> Json:
    """Return a function in the format of chat completions: `{type: function, function: {name, …}}`."""
    if not isinstance(tool, Mapping) or "function" in tool or "name" not in tool:
        return tool
    return {"type": "function", "function": {key: value for key, value in tool.items() if key not in _OUTER_KEYS}}


def _flat(tool: Json) -> Json:
    """Return a function or a schema in the format of the responses API: `{type: function, name, …}`."""
    if not isinstance(tool, Mapping):
        return tool
    kind = str(tool.get("type", "function"))
    inner = tool.get(kind)
    if not isinstance(inner, Mapping):
        return tool
    return {"type": kind, **inner, **{key: value for key, value in tool.items() if key not in ("type", kind)}}


_REASONING = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))", re.IGNORECASE)


def reasons(model: str) -> bool:
    """Whether a name is that of an OpenAI reasoning model: `o3`, `gpt-5-mini`, `openai/gpt-5`.

    Those accept neither `temperature` nor `max_tokens`. `gpt-5-chat-latest` is not a reasoning model.
    """
    return _REASONING.match(model) is not None


@dataclass(frozen=True, slots=True)
class Dialect:
    """Requirements and guarantees of one server.

    Attributes:
        name: name of the provider.
        base_url: base URL of the API, without a trailing slash.
        api_key: the API key; None if none is sent.
        prices: the provider's name in the price list, or its URL; None if its calls have no price.
        seed: name of the parameter for a seed.
        strict_schemas: whether answers follow a JSON Schema, so that a judge's schema is sent.
        completion_tokens: whether `max_tokens` is named `max_completion_tokens`.
        packed_vectors: whether embeddings are available as base64, at a quarter of the size.
        embedding_model: the model for embeddings.
        api_version: version of Azure's API; None if the URL needs none.
        unreachable: hint for a server that cannot be reached.
        key_from: the environment variables for the key.
        needs_key: whether every call requires a key.
    """

    name: str
    base_url: str
    embedding_model: str
    api_key: str | None = field(default=None, repr=False)
    prices: str | None = None
    seed: str = "seed"
    strict_schemas: bool = False
    completion_tokens: bool = False
    packed_vectors: bool = False
    api_version: str | None = None
    unreachable: str | None = None
    key_from: tuple[str, ...] = ()
    needs_key: bool = False

    @property
    def keyless(self) -> bool:
        """Whether a required key is missing."""
        return self.needs_key and not self.api_key

    def url(self, path: str, model: str) -> str:
        """Return the URL of a path of the API. Azure's older API has the deployment and version in it."""
        if self.api_version is None:
            return f"{self.base_url}{path}"
        deployment = "" if path == "/responses" else f"/deployments/{quote(model)}"
        return f"{self.base_url}{deployment}{path}?api-version={quote(self.api_version)}"

    def credentials(self) -> dict[str, str]:
        """Return the headers with the key, if there is one."""
        if not self.api_key:
            return {}
        found = {"api-key": self.api_key} if self.name == "azure" else {}
        return found if self.api_version is not None else {"Authorization": f"Bearer {self.api_key}", **found}
