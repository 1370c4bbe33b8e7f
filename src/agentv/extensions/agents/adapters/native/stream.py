"""The seam between an agent's own JSON stream and what all agents share: how it is started, what its lines mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.ports import TargetRequest


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


class TraceRecorder(Protocol):
    """Takes what the lines of a stream mean, and builds the trace. Times are those of the arrival of the line."""

    def message(self, text: str, *, reasoning: str = "", message_id: str = "", parent: str | None = None) -> None:
        """The agent says something; the texts of one non-empty `message_id` are one message."""
        ...

    def tool_call(
        self, call_id: str, native_name: str, arguments: JsonObject, *, parent: str | None = None, name: str = ""
    ) -> None:
        """It calls a tool; a second one with the same `call_id` completes the first one's arguments.

        `name`: the canonical one, where the agent tells more than the native one does; empty: that of the native one.
        """
        ...

    def tool_result(self, call_id: str, result: Json, *, error: str | None = None, status: str = "") -> None:
        """The tool has ended. `status` as in `ToolStatus`; empty: `completed`, or `failed` with an error."""
        ...

    def usage(self, model: str | None, tokens: TokenUsage | None, cost_usd: float | None = None) -> None:
        """One call of its model has ended, as the agent reports it."""
        ...

    def denied(self, native_name: str, reason: str, call_id: str = "") -> None:
        """A permission was refused; `call_id` of the call that it was asked for."""
        ...

    def agent(self, name: str = "", version: str = "", model: str = "") -> None:
        """What the agent says of itself."""
        ...

    def tools(self, native_names: tuple[str, ...]) -> None:
        """The tools that the agent offers its model, where its stream lists them: without ours, it is `no-tools`."""
        ...


class StreamReader(Protocol):
    """Reads the lines of one turn."""

    def read(self, event: JsonObject) -> None:
        """Take the next event. One that is unknown, or lacks a key, changes nothing and raises nothing."""
        ...

    def ending(self) -> Ending:
        """How the turn ended, after the last line."""
        ...


class NativeAgent(Protocol):
    """An agent: a table of its flags, variables and settings files, and a reader of its stream."""

    def launch(self, request: TargetRequest, directories: Directories, session_id: str) -> Launch | Failure:
        """How to start it for a turn; `session_id` of the turn before, empty for the first."""
        ...

    def reader(self, recorder: TraceRecorder) -> StreamReader:
        """A reader for one turn."""
        ...


def text(event: Mapping[str, Any], key: str) -> str:
    """A text; empty for anything else."""
    value = event.get(key)
    return value if isinstance(value, str) else ""


def texts(event: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a list; none for anything else."""
    value = event.get(key)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def mapping(event: Mapping[str, Any], key: str) -> JsonObject:
    """An object; empty for anything else."""
    value = event.get(key)
    return value if isinstance(value, dict) else {}


def items(event: Mapping[str, Any], key: str) -> list[JsonObject]:
    """The objects of a list; none for anything else."""
    return objects_in(event.get(key))


_MOST = 1e18
"""Numbers above are not counts."""


def number(event: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative; None for anything else."""
    value = event.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST else None


def count(event: Mapping[str, Any], key: str) -> int:
    """A whole number that is not negative; 0 for anything else."""
    return int(number(event, key) or 0)
