"""The seam between an agent's own JSON stream and what all agents share: how it is started, what its lines mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import JsonObject


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
