"""Tools of agents: scripted tools, MCP servers, and model APIs behind the gateway (AGENTS.md sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import Struct, field

from agentv.model.values.usage import Price
from agentv.model.values.values import EMPTY, Json, JsonObject, PartlyShown

FIRST_SANDBOX_PORT = 61_001
"""First port for HTTP servers on the loopback interface of a sandbox that has its own network."""


class ToolFailure(Struct, frozen=True):
    """Failures that a scripted tool simulates.

    Attributes:
        calls: numbers of the calls that fail, from 1; empty if all fail.
        error: `timeout`, or the error message.
    """

    error: str
    calls: tuple[int, ...] = ()


class ScriptedTool(Struct, frozen=True):
    """One tool of a scripted server.

    Attributes:
        params: parameter → JSON type, or a JSON Schema.
        returns: the result of every call.
        function: `file.py:name` with an absolute path; called with the arguments, and with `state` if it declares it.
        sha256: hash of the function's file.
    """

    name: str
    description: str = ""
    params: JsonObject = field(default=EMPTY)
    returns: Json = None
    function: str = ""
    failure: ToolFailure | None = None
    sha256: str = ""

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of its arguments. In the short form every parameter is required, and others are rejected."""
        if is_schema(self.params):
            return self.params
        properties = {name: {"type": one} if isinstance(one, str) else one for name, one in self.params.items()}
        return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}

    @property
    def parameters(self) -> Sequence[str]:
        """The names of the declared parameters."""
        declared = self.params.get("properties") if is_schema(self.params) else self.params
        return tuple(declared) if isinstance(declared, Mapping) else ()


class ScriptedServer(Struct, frozen=True):
    """An MCP server that agentv runs, one instance per trial.

    Attributes:
        state: initial state for its functions.
        transport: `stdio`, which also works without a network, or `http` on loopback.
    """

    name: str
    tools: tuple[ScriptedTool, ...]
    state: JsonObject = field(default=EMPTY)
    transport: Literal["stdio", "http"] = "stdio"

    def facts(self) -> list[Json]:
        """Return what identifies the server, for hashes: the content of its files, but not their paths."""
        tools: list[Json] = []
        for one in self.tools:
            function = one.function.rpartition(":")[2]
            failure = () if one.failure is None else (one.failure.error, list(one.failure.calls))
            tools.append([one.name, one.description, one.params, one.returns, function, one.sha256, *failure])
        return [self.name, self.transport, self.state, tools]


def is_schema(params: JsonObject) -> bool:
    """Whether `params` is a JSON Schema of all arguments, rather than a mapping parameter → type."""
    return params.get("type") == "object" and isinstance(params.get("properties", EMPTY), Mapping)


class McpServer(PartlyShown, frozen=True):
    """An MCP server for an agent: a program on stdio, or a URL."""

    hidden: ClassVar[frozenset[str]] = frozenset({"env", "headers"})

    name: str
    transport: Literal["stdio", "http"] = "stdio"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def mcp_config(servers: Iterable[McpServer]) -> JsonObject:
    """Return the content of a file such as `.mcp.json`, as accepted by `claude --mcp-config`."""
    entries: dict[str, dict[str, Json]] = {}
    for one in servers:
        if one.transport == "http":
            entry: dict[str, Json] = {"type": "http", "url": one.url}
            entry |= {"headers": dict(one.headers)} if one.headers else {}
        else:
            entry = {"command": one.command[0], "args": list(one.command[1:])}
            entry |= {"env": dict(one.env)} if one.env else {}
        entries[one.name] = entry
    return {"mcpServers": entries}


ModelProtocol = Literal["openai", "anthropic", "gemini"]
"""Protocol of a model API: OpenAI's chat completions and responses, Anthropic's messages, Gemini's generateContent."""

SHORTEST_KEY = 12
"""Minimum characters of a key that is searched for inside longer texts."""

DROP = "drop"
"""Name of the injected fault that closes the connection without a reply."""

API_URLS: Mapping[ModelProtocol, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""Protocol → base URL of its provider, in the form that the provider's SDK expects."""

_KEYS: Mapping[ModelProtocol, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
_BASE_URLS: Mapping[ModelProtocol, tuple[str, ...]] = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "gemini": ("GOOGLE_GEMINI_BASE_URL",),
}


_PLACEHOLDER_NAMES: tuple[str, ...] = ("openai", "anthropic", "gemini", "key")

GATEWAY_NAMES: Mapping[str, Mapping[str, str]] = {
    "gateway": {word: f"{{{{ gateway.{word} }}}}" for word in _PLACEHOLDER_NAMES}
}
"""Values of the `gateway` placeholders while a target is loaded: the placeholders themselves.

Every trial has its own address and token, which `GatewayAccess.filled` puts in later.
"""


class ModelUpstream(PartlyShown, frozen=True):
    """The model API to which the gateway forwards the calls of a target.

    Attributes:
        base_url: in the form that the provider's SDK expects, as in `API_URLS`.
        api_key: the real key, which agents never see.
        faults: injected faults: an HTTP status as text, such as `429`, or `drop` → share of the calls, 0..1.
        price: price of its tokens; None to look it up in the price list.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"api_key"})

    protocol: ModelProtocol
    base_url: str
    api_key: str
    faults: Mapping[str, float] = field(default_factory=dict)
    price: Price | None = None

    @classmethod
    def from_settings(
        cls,
        protocol: ModelProtocol,
        env: Mapping[str, str],
        base_url: str | None = None,
        api_key: str | None = None,
        faults: Mapping[str, float] | None = None,
    ) -> ModelUpstream | None:
        """Return the API from the settings or else the variables that the provider's SDKs read; None without a key."""
        key = api_key or next((env[name] for name in _KEYS[protocol] if env.get(name)), None)
        if not key:
            return None
        url = base_url or next((env[name] for name in _BASE_URLS[protocol] if env.get(name)), API_URLS[protocol])
        return cls(protocol, url.rstrip("/"), key, faults or {})

    def holds_key(self, text: str) -> bool:
        """Return whether a text is or contains the key.

        A short key is only compared with the whole text: it is a dummy for a local server that accepts any key.
        """
        return self.api_key == text or (len(self.api_key) >= SHORTEST_KEY and self.api_key in text)


class GatewayAccess(PartlyShown, frozen=True):
    """How the agent of one trial reaches the gateway.

    Attributes:
        url: root of the gateway on loopback, without a path, as seen by the programs of the trial.
        token: used in place of the API key; valid until the trial ends.
        socket: path of a Unix socket on which the gateway also listens; empty for none.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"token"})

    url: str
    token: str
    socket: str = ""

    def base_url(self, protocol: ModelProtocol) -> str:
        """Return the base URL for a protocol, in the form that the provider's SDK expects."""
        return f"{self.url}/{protocol}/v1" if protocol == "openai" else f"{self.url}/{protocol}"

    def filled(self, text: str) -> str:
        """Return a text of the target with its gateway placeholders, such as `{{ gateway.openai }}`, filled in."""
        if "{{ gateway." not in text:
            return text
        for word, placeholder in GATEWAY_NAMES["gateway"].items():
            value = self.token if word == "key" else self.base_url(word)  # type: ignore[arg-type]  # a protocol
            text = text.replace(placeholder, value)
        return text

    def env(self, protocol: ModelProtocol) -> dict[str, str]:
        """Return the environment variables that point the provider's SDKs to the gateway."""
        names = (*_BASE_URLS[protocol], *_KEYS[protocol])
        return {name: self.token if name in _KEYS[protocol] else self.base_url(protocol) for name in names}
