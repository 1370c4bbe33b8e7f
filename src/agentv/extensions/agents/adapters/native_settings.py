"""Agents that print their own JSON stream: their settings, how to start them, and how to read their streams.

To add an agent, add a module here whose settings derive from `model_access.NativeProvider`, and a line in `PROVIDERS`
of `extensions/agents/__init__.py`.
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
        home: its HOME, which is new for each trial unless the suite says `home: host`.
        config: where `Launch.files` are written: HOME if it belongs to the trial, otherwise an empty directory of the
            trial, so that no file of the user is overwritten.
    """

    workspace: str
    home: str
    config: str

    @property
    def fresh_home(self) -> bool:
        """Whether HOME belongs to the trial, so that only this agent reads settings files in it."""
        return self.config == self.home


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent is started for one turn.

    Attributes:
        argv: arguments of the program, without its name; those of the setting `args` follow.
        env: additional environment variables.
        files: path relative to `Directories.config` → text of a settings file, written before the start and readable
            only by the user.
        skills: directory relative to `Directories.config` in which the agent looks for skills, and to which those of
            the setting are copied; empty if none exists.
        stdin: its standard input.
        report: file relative to `Directories.config` that the program writes in addition to stdout: JSON lines, or one
            JSON document. Its events are read after those of stdout, when the program has ended. With `*`, the newest
            matching file is read, and none is removed before the start. May be empty.
        discarded: prefixes of lines that only repeat others. They are neither read nor kept, and have no size limit.
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
    """How a turn ended, according to its stream.

    Attributes:
        output: the final answer; None if the stream does not give it.
        failure: why the turn is not an answer, whatever the exit status (`agent-limit`, `agent-api`,
            `permission-denied`); None if the stream reports success.
        session_id: id by which the next turn resumes the session.
        tokens, cost_usd: totals of the turn, as the agent reports them; None to add up the usages instead.
        stop_reason: why the turn ended, in the agent's terms.
        complete: whether the stream has its final event. Without it, the turn is an error `agent-stopped`.
        repeated: whether the stream has several final events, so that it is unclear which one is valid.
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
    """Reads the events of one turn."""

    def read(self, event: JsonObject) -> None:
        """Read the next event. Unknown events and missing keys are ignored."""
        ...

    def ending(self) -> Ending:
        """Return how the turn ended, as far as its events have been read."""
        ...


@dataclass(slots=True)
class Memory:
    """What a session's readers carry over from turn to turn.

    Attributes:
        usage: usage of the session so far, in the agent's own terms.
        refused: ids of the calls that were refused.
        servers: names of the agent's MCP servers.
    """

    usage: dict[str, Any] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent, and how to install it.

    Attributes:
        name: its name on PATH.
        module: Python package that contains the program; may be empty.
        path: path of the program in that package.
        extra: extra of agentv that installs the module.
        npm: npm package that installs it.
        pip: Python package that installs it as a command.
        version_argv: arguments that print its version; empty if its stream gives it.
        tested: versions whose stream format is known; a row of another version has a note.
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
        """Return the path of the program in its package or on PATH, or its name if it is in neither."""
        return self._bundled() or shutil.which(self.name) or self.name

    def missing(self, title: str) -> Issue | None:
        """Return an Issue with how to install the program, or None if it is installed."""
        if self._bundled() or shutil.which(self.name):
            return None
        message = f"{title} is not installed: no program '{self.name}' on PATH"
        ways = [install_hint(self.extra)] if self.extra else []
        ways += [f"npm install -g {self.npm}"] if self.npm else []
        ways += [f"pip install {self.pip}"] if self.pip else []
        ways.append("set 'command'")
        return Issue((), message, "missing-agent", ", or ".join(ways), of_machine=True)

    def untested(self, version: str) -> str:
        """Return a note if the agent's version is untested; "" if it is tested or unknown.

        Versions that differ only in their third number count as the same.
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
    """Base of the settings of agents that print a JSON stream. An adapter sets the class attributes.

    Attributes:
        title: name of the agent in messages, such as `Claude Code`.
        program: the program to start if `command` is not set.
        protocol: protocol of the model API that it calls; None if its configuration decides.
        unsupported: setting that the agent cannot follow → what to do instead, as the end of a sentence.
        without_rules: what to do instead of permission rules, for an agent that takes none.
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
        """Return how to start it for a turn. `session_id` is that of the previous turn, or empty."""
        raise NotImplementedError

    def reader(self, recorder: Recording, memory: Memory) -> StreamReader:
        """Return a reader for one turn."""
        raise NotImplementedError

    def validate(self) -> Iterable[Issue]:
        """Report settings that the agent cannot follow, and a program that is not installed."""
        yield from AgentSettings.validate(self)
        for name, instead in self.unsupported.items():
            if getattr(self, name) not in (None, (), {}, "allow"):  # the defaults
                yield Issue((name,), f"{self.title} has no setting for '{name}'; {instead}")
        if self.without_rules and not isinstance(self.permissions, str):
            yield Issue(("permissions",), f"{self.title} {self.without_rules}")
        yield from self._gateway_issues()
        if not self.has_command:
            missing = self.program.missing(self.title)
            if missing is not None:
                yield missing

    def _gateway_issues(self) -> Iterable[Issue]:
        """Report options of the gateway that do not apply to the agent's model calls."""
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
        """The program without arguments; the adapter's arguments follow, then those of `args`."""
        return self.command if self.has_command else Command((self.program.find(),))

    @property
    def model_protocol(self) -> ModelProtocol | None:
        """Protocol of the agent's model calls; None if it is unknown, so that they do not pass through the gateway."""
        return self.protocol
