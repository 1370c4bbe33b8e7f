"""Settings shared by the agents of all protocols (AGENTS.md section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from agentv.model.suite.tools import McpServer, ModelProtocol
from agentv.registry.fields import Between, Command, Declared, DirectoryPath, Doc, Issue, Nonempty, Text, missing_extra
from agentv.registry.gateway_options import Faults, GatewaySettings, Otel, UpstreamKey, UpstreamUrl

DEFAULT_TIMEOUT_S = 1800.0
"""Default time limit of an agent's trial, in seconds."""

Decision = Literal["allow", "deny"]
OnDenied = Literal["error", "grade"]


@dataclass(frozen=True, slots=True)
class PermissionRule(Declared):
    """One rule of `permissions`. It applies if all of its conditions hold; the first rule that applies decides."""

    short: ClassVar[str | None] = None

    action: Annotated[Decision, Doc("`allow` or `deny`")]
    tool: Annotated[Text | None, Nonempty(), Doc("canonical or native name of the tool; a glob such as `shop.*`")] = (
        None
    )
    kind: Annotated[
        Text | None, Nonempty(), Doc("kind of the tool in the agent's terms, such as `edit`, `execute`")
    ] = None
    path: Annotated[
        Text | None, Nonempty(), Doc("glob of files, relative to the workspace; `allow` needs all paths to match")
    ] = None


@dataclass(frozen=True, slots=True)
class McpServerSettings(Declared):
    """One entry of `mcp`: a server for the agent."""

    short: ClassVar[str | None] = None

    command: Annotated[tuple[Text, ...], Doc("program and arguments of a server on stdio")] = ()
    env: Annotated[Mapping[str, Text], Doc("environment of the program")] = field(default_factory=dict)
    url: Annotated[Text, Doc("address of a server over streamable HTTP")] = ""
    headers: Annotated[Mapping[str, Text], Doc("headers of each request to `url`")] = field(default_factory=dict)

    def validate(self) -> Iterable[Issue]:
        """Report a server with both `command` and `url` or neither, and keys that have no effect."""
        if bool(self.command) == bool(self.url):
            found = "both" if self.url else "neither"
            yield Issue((), f"an MCP server needs 'command' or 'url', found {found}")
        elif self.url and self.env:
            yield Issue(("env",), "'env' is for a server with 'command'; this one has 'url'")
        elif self.command and self.headers:
            yield Issue(("headers",), "'headers' are for a server with 'url'; this one has 'command'")

    def server(self, name: str) -> McpServer:
        """Return the server, with its name in `mcp`."""
        transport: Literal["stdio", "http"] = "http" if self.url else "stdio"
        return McpServer(name, transport, self.command, self.env, self.url, self.headers)


@dataclass(frozen=True, slots=True)
class AgentSettings(GatewaySettings):
    """Settings of every agent: how to start it, what it may do, and its limits."""

    short: ClassVar[str | None] = "command"
    confined: ClassVar[bool] = True
    is_agent: ClassVar[bool] = True
    returns_context: ClassVar[bool] = False

    command: Annotated[Command, Doc("the agent's program: a list of words or a shell command")]
    args: Annotated[tuple[Text, ...], Doc("further arguments")] = ()
    cwd: Annotated[
        DirectoryPath | None,
        Doc("directory that the agent works in a copy of, where neither suite nor case says `workspace`"),
    ] = None
    permissions: Annotated[
        Decision | tuple[PermissionRule, ...],
        Doc("answer to the agent's requests for permission: `allow`, `deny`, or rules; without a match: denied"),
    ] = "allow"
    on_denied: Annotated[
        OnDenied,
        Doc("an agent that reports success after a denial and has done nothing: an `error`, or `grade` its answer"),
    ] = "error"
    max_turns: Annotated[Annotated[int, Between(1)] | None, Doc("maximum number of model calls of a trial")] = None
    max_tool_calls: Annotated[Annotated[int, Between(1)] | None, Doc("maximum number of tool calls of a trial")] = None
    mcp: Annotated[Mapping[str, McpServerSettings], Doc("further MCP servers: name → `command` or `url`")] = field(
        default_factory=dict
    )
    gateway: Annotated[
        bool | ModelProtocol | None,
        Doc("`false`: model calls do not pass agentv's gateway; or the protocol of the model where the agent has none"),
    ] = None
    faults: Faults = field(default_factory=dict)

    def validate(self) -> Iterable[Issue]:
        """Report `args` with a shell command, and invalid faults."""
        yield from self.fault_issues()
        if self.args and self.command.shell is not None:
            yield Issue(("args",), "'args' need 'command' as a list of words; write them into the shell command")

    @property
    def started(self) -> Command:
        """The command with its arguments."""
        if not self.args:
            return self.command
        return Command((*self.command.argv, *self.args), cwd=self.command.cwd)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        """The MCP servers of `mcp`."""
        return tuple(one.server(name) for name, one in self.mcp.items())


@dataclass(frozen=True, slots=True)
class AcpSettings(AgentSettings):
    """Settings of an agent that speaks the Agent Client Protocol (ACP) on stdio."""

    example: ClassVar[str | None] = "my-agent --acp"

    model: Annotated[Text | None, Doc("model, where the agent has an option for it")] = None
    mode: Annotated[Text | None, Doc("session mode, by the agent's id of it")] = None
    auth_method: Annotated[
        Text | None, Doc("how to authenticate, by the agent's id of it; default: only if its variables are set")
    ] = None

    base_url: UpstreamUrl = None
    api_key: UpstreamKey = None
    otel: Otel = False

    def validate(self) -> Iterable[Issue]:
        """Report a missing SDK, and what is wrong with the settings of any agent."""
        missing = missing_extra("acp", "agents", "calling an agent over ACP")
        if missing is not None:
            yield missing
        yield from AgentSettings.validate(self)
        yield from self.protocol_issues()
