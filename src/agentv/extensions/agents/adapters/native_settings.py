"""Agents that print a JSON stream of their own: their settings, how each is started, and what its stream tells.

A new agent is a file here that derives its settings from `model_access.NativeProvider`, and a line in `PROVIDERS` of
`extensions/agents/__init__.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

from agentv.extensions.agents.adapters.recorder import Recording
from agentv.extensions.agents.adapters.settings import AgentSettings
from agentv.model.suite.tools import ModelProtocol
from agentv.model.suite.workspace import Home
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject
from agentv.ports import TargetRequest
from agentv.registry.fields import Alias, Command, DirectoryPath, Doc, Issue, Nonempty, Secret, Text, install_hint
from agentv.registry.gateway_options import no_effect


@dataclass(frozen=True, slots=True)
class Directories:
    """Where an agent runs. Absolute paths, as the agent sees them.

    Attributes:
        workspace: its working directory.
        home: its HOME: new for each trial, unless the suite says `home: host`.
        config: where `Launch.files` are written: HOME where it belongs to the trial, else an empty directory of the
            trial, so that nothing of the user's is overwritten.
    """

    workspace: str
    home: str
    config: str

    @property
    def fresh_home(self) -> bool:
        """Whether HOME belongs to the trial, so that settings files in it are read by this agent alone."""
        return self.config == self.home


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent is started for one turn.

    Attributes:
        argv: arguments of the program, without its name; those of the setting `args` are added behind them.
        env: further variables of its environment.
        files: path relative to `Directories.config` → text of a settings file, written before the start, readable by
            the user alone.
        skills: directory relative to `Directories.config` where the agent finds skills; those of the setting are
            copied there. Empty: nowhere.
        stdin: what it reads.
        report: file relative to `Directories.config` that the program writes beside its stdout: JSON lines, or one
            JSON document. Its events are read after those of stdout, when the program has ended. With `*` it is the
            newest file that matches, which stays where it is. May be empty.
        discarded: how lines begin that only repeat others: neither read nor kept, however many there are.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    skills: str = ""
    stdin: bytes = field(default=b"", repr=False)
    report: str = ""
    discarded: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended, as the stream tells it.

    Attributes:
        output: the final answer; None: the stream has none.
        failure: why it is no answer, whatever the exit status says (`agent-limit`, `agent-api`, `permission-denied`);
            None: the stream reports success.
        session_id: by which the next turn resumes it.
        tokens, cost_usd: totals of the turn, as the agent reports them; None: the sum of the usages.
        stop_reason: why it ended, in the agent's terms.
        complete: the stream has its own last event. Without it the turn is errored `agent-stopped`.
        repeated: it has more than one where one is due, so that nobody knows which of them holds.
    """

    output: str | None = None
    failure: Failure | None = None
    session_id: str = ""
    tokens: TokenUsage | None = None
    cost_usd: float | None = None
    stop_reason: str = ""
    complete: bool = False
    repeated: bool = False


class StreamReader(Protocol):
    """Reads the lines of one turn."""

    def read(self, event: JsonObject) -> None:
        """Take the next event. One that is unknown, or lacks a key, changes nothing and raises nothing."""
        ...

    def ending(self) -> Ending:
        """How the turn ended, after the last line."""
        ...


@dataclass(slots=True)
class Memory:
    """What the readers of one session's turns know of the turns before.

    Attributes:
        usage: what the session has used so far, in the agent's own terms.
        refused: calls that were refused.
        servers: names of the MCP servers that the agent was given.
    """

    usage: dict[str, Any] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent.

    Attributes:
        name: on PATH.
        module: Python package that contains the program; empty: none does.
        path: of the program inside that package.
        extra: extra of this package that brings the module.
        npm: npm package that brings it.
        pip: Python package that brings it as a command.
        version_argv: arguments that make it print its version; empty: its stream tells it.
        tested: versions whose stream is known; with another one the row has a note.
    """

    name: str
    module: str = ""
    path: str = ""
    extra: str = ""
    npm: str = ""
    pip: str = ""
    version_argv: tuple[str, ...] = ("--version",)
    tested: tuple[str, ...] = ()

    def find(self) -> str:
        """The program: of the package, else the one on PATH; its name where neither is there."""
        return self._bundled() or shutil.which(self.name) or self.name

    def missing(self, title: str) -> Issue | None:
        """An Issue with how to install it, if it is nowhere."""
        if self._bundled() or shutil.which(self.name):
            return None
        message = f"{title} is not installed: no program '{self.name}' on PATH"
        ways = [install_hint(self.extra)] if self.extra else []
        ways += [f"npm install -g {self.npm}"] if self.npm else []
        ways += [f"pip install {self.pip}"] if self.pip else []
        ways.append("set 'command'")
        return Issue((), message, "missing-agent", ", or ".join(ways), of_machine=True)

    def untested(self, version: str) -> str:
        """What a trace says of a version that was never seen; empty for a tested one, and where that is not known.

        Versions that differ in their third number count as one.
        """
        own, *tested = (".".join(one.split(".")[:2]) for one in (version, *self.tested))
        if not version or not tested or own in tested:
            return ""
        return f"{self.name} {version}; tested with {', '.join(self.tested)}"

    def _bundled(self) -> str:
        found = find_spec(self.module) if self.module else None
        directories = (found and found.submodule_search_locations) or ()
        return next(filter(None, (shutil.which(str(Path(one, self.path))) for one in directories)), "")


@dataclass(frozen=True, slots=True)
class NativeAgentSettings(AgentSettings):
    """Base of the settings of one agent. An adapter sets the class attributes.

    Attributes:
        title: name of the agent in messages, such as `Claude Code`.
        program: where it is found without `command`.
        protocol: which model API it calls; None: it depends on its configuration, so that the gateway is not used.
        unsupported: setting that the agent has no counterpart of → what to do instead, as the end of a sentence.
        without_rules: what to do in place of rules for permissions, for an agent that takes none.
    """

    short: ClassVar[str | None] = "model"
    title: ClassVar[str] = ""
    program: ClassVar[AgentProgram] = AgentProgram("")
    protocol: ClassVar[ModelProtocol | None] = None
    unsupported: ClassVar[Mapping[str, str]] = {}
    without_rules: ClassVar[str] = ""

    model: Annotated[Text | None, Doc("name of the model")] = None
    base_url: Annotated[Text | None, Doc("base URL of the model's API")] = None
    api_key: Annotated[Text | None, Secret(), Doc("key of the model's API")] = None
    system_prompt: Annotated[Text | None, Doc("replaces the agent's own instructions")] = None
    append_system_prompt: Annotated[Text | None, Doc("added to the agent's own instructions")] = None
    reasoning_effort: Annotated[
        Text | None,
        Nonempty(),
        Alias(("model_reasoning_effort", "thinking")),
        Doc("how much the model thinks, in the agent's words: `low`, `medium`, `high`, …"),
    ] = None
    allowed_tools: Annotated[tuple[Text, ...], Doc("tools that need no permission")] = ()
    skills: Annotated[tuple[DirectoryPath, ...], Doc("directories of skills that the agent gets")] = ()
    command: Annotated[Command, Doc("the agent's program; default: the installed one")] = field(default_factory=Command)
    home: Annotated[
        Home | None,
        Doc("`fresh`: each trial has a new HOME; `host`: the agent uses yours; default: as the workspace says"),
    ] = None

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """How to start it for a turn; `session_id` of the turn before, empty for the first."""
        raise NotImplementedError

    def reader(self, recorder: Recording, memory: Memory) -> StreamReader:
        """A reader for one turn."""
        raise NotImplementedError

    def validate(self) -> Iterable[Issue]:
        """Reports settings that the agent cannot follow, and a program that is not installed."""
        yield from AgentSettings.validate(self)
        for name, instead in self.unsupported.items():
            if getattr(self, name) not in (None, (), {}, "allow"):  # as it is where it is not set
                yield Issue((name,), f"{self.title} has no setting for '{name}'; {instead}")
        if self.without_rules and not isinstance(self.permissions, str):
            yield Issue(("permissions",), f"{self.title} {self.without_rules}")
        yield from self._gateway_issues()
        if not self.has_command:
            missing = self.program.missing(self.title)
            if missing is not None:
                yield missing

    def _gateway_issues(self) -> Iterable[Issue]:
        """Reports options of the gateway that the agent's model calls would not follow."""
        speaks = self.model_protocol
        if self.gateway is False:
            if self.faults:
                yield no_effect("faults", "with 'gateway: false'", "remove 'gateway: false'")
        elif speaks is None:
            hint = "set 'model' as 'provider/name', or 'base_url' and 'api_key'"
            for name in ("gateway", "faults"):
                if getattr(self, name):
                    yield no_effect(name, "while it is not known which model API the agent calls", hint)
        elif isinstance(self.gateway, str) and self.gateway != speaks:
            message = f"{self.title} calls its model by the protocol '{speaks}', not '{self.gateway}'"
            is_own = hasattr(self, "api") and (self.base_url or self.api_key)
            hint = "'api' sets the protocol" if is_own else "remove 'gateway'"
            yield Issue(("gateway",), message, hint=hint)

    @property
    def has_command(self) -> bool:
        """Whether `command` is set."""
        return bool(self.command.argv or self.command.shell)

    @property
    def started(self) -> Command:
        """The program, without arguments: the adapter's come first, then those of `args`."""
        return self.command if self.has_command else Command((self.program.find(),))

    @property
    def model_protocol(self) -> ModelProtocol | None:
        """The protocol by which the agent calls its model; None: it is not known, so that its calls pass no gateway."""
        return self.protocol
