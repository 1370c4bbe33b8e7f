"""A request's body but its messages: what the server takes, what the target says, and what the request wants instead.

**Temperature.** Rubrics ask their judge for temperature 0, and OpenAI's models that reason answer 400 to any. So what a
request asks for is left out where the model is known to reason by its name (`reasons`), and where a server refuses it
by name it is left out of all further calls of this target. What the target's own settings say is always sent, and a
refusal of that is an error with the server's words: an answer must not look as if a setting had been in force.

**Schemas.** A judge's schema is sent where the server is known to keep to it; one that refuses it is asked without. The
target's own `response_format` is always sent, and wins over a judge's schema.

**Usage.** A stream tells of its tokens where `stream_options` asks for them; a server that refuses those streams
without.

**Limits.** `max_tokens` is called `max_completion_tokens` by OpenAI and Azure, and wherever the model is known to
reason. A server that knows only the other name says so with 400, and is then asked by that one.
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
from agentv.targets.http.failures import endpoint_of, is_local, key_issues, names_user, url_issues
from agentv.targets.model_api.content import tool_issues
from agentv.targets.model_api.prices import RequestSettings
from agentv.targets.model_api.settings import ModelSettings, extra_issues

_NOT_IN_RESPONSES = ("seed", "stop", "frequency_penalty", "presence_penalty", "tool_calls_as_output")


@dataclass(frozen=True, slots=True)
class OpenAISettings(ModelSettings):
    """What may be said of a request, and which server it is."""

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
        """The server that is meant, and what it wants."""
        raise NotImplementedError

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


TEMPERATURE = "temperature"
SCHEMA = "schema"
LIMIT_NAME = "limit-name"
USAGE = "usage"
"""What can be refused, and is then left out or called otherwise."""

_CHOICES = frozenset({"auto", "none", "required", "any"})
_FORMATS = frozenset({"text", "json_object", "json_schema", "grammar", "structural_tag"})

_NAMED = {
    TEMPERATURE: re.compile(r"temperature", re.IGNORECASE),
    SCHEMA: re.compile(r"response_?format|json_?schema|text\.format|structured|guided|grammar", re.IGNORECASE),
    LIMIT_NAME: re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE),
    USAGE: re.compile(r"stream_options|include_usage", re.IGNORECASE),
}
_UNKNOWN = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|deprecated|not (?:permitted|allowed)|unexpected|only the"
    r"|extra (?:inputs|fields)",
    re.IGNORECASE,
)


def chat_parameters(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> dict[str, Any]:
    """For chat completions."""
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
    """For the responses API. Answers are not kept on the server: chat completions are not either."""
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
    """Which of the things that were sent, and could be left out, an error names."""
    named = {one for one in sent if _NAMED[one].search(message)}
    return frozenset(one for one in named if one == SCHEMA or _UNKNOWN.search(message))


def removable(
    settings: OpenAISettings, dialect: Dialect, request: TargetRequest, refused: frozenset[str]
) -> frozenset[str]:
    """What is in the request's body that this program may leave out, or call otherwise."""
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
    """What form the answer must have: what the target says, else the request's schema where it can be promised."""
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
    """Whether every object of a schema is closed and needs all of its properties, as strict mode wants."""
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


_OUTSIDE = frozenset({"type", "cache_control"})


def _nested(tool: Json) -> Json:
    """A function as chat completions take it: `{type: function, function: {name, …}}`."""
    if not isinstance(tool, Mapping) or "function" in tool or "name" not in tool:
        return tool
    return {"type": "function", "function": {key: value for key, value in tool.items() if key not in _OUTSIDE}}


def _flat(tool: Json) -> Json:
    """A function, or a schema, as the responses API takes it: `{type: function, name, …}`."""
    if not isinstance(tool, Mapping):
        return tool
    kind = str(tool.get("type", "function"))
    inner = tool.get(kind)
    if not isinstance(inner, Mapping):
        return tool
    return {"type": kind, **inner, **{key: value for key, value in tool.items() if key not in ("type", kind)}}


_REASONING = re.compile(r"(?:.*/)?(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))", re.IGNORECASE)


def reasons(model: str) -> bool:
    """Whether a model is one of OpenAI's that reason, by its name: `o3`, `gpt-5-mini`, `openai/gpt-5`.

    They take neither `temperature` nor `max_tokens`. `gpt-5-chat-latest` does not reason.
    """
    return _REASONING.match(model) is not None


@dataclass(frozen=True, slots=True)
class Dialect:
    """Requirements and guarantees of one server.

    Attributes:
        name: of the provider.
        base_url: with which its paths begin, without a slash at the end.
        api_key: None: the server wants none.
        prices: the provider as the price list calls it, or its URL; None: its calls have no price.
        seed: the parameter for a seed.
        strict_schemas: it is known to keep to a JSON Schema, so that one is asked for.
        completion_tokens: the limit of an answer is called `max_completion_tokens`, and not `max_tokens`.
        packed_vectors: it gives vectors as base64 too, a quarter of the size.
        embedding_model: the model that makes vectors.
        api_version: of Azure's API; None: the path says it.
        unreachable: what may be wrong where nobody listens.
        key_from: the variables that may give the key.
        needs_key: nothing can be asked without one.
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
        """The address of a path of the API; Azure's older one names the deployment and the version in it."""
        if self.api_version is None:
            return f"{self.base_url}{path}"
        deployment = "" if path == "/responses" else f"/deployments/{quote(model)}"
        return f"{self.base_url}{deployment}{path}?api-version={quote(self.api_version)}"

    def credentials(self) -> dict[str, str]:
        """The headers that hold the key, if there is one."""
        if not self.api_key:
            return {}
        found = {"api-key": self.api_key} if self.name == "azure" else {}
        return found if self.api_version is not None else {"Authorization": f"Bearer {self.api_key}", **found}
