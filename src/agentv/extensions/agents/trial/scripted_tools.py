"""Start the scripted tools of a trial, and merge their recorded calls with those that the agent reports."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Sequence
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv.extensions.agents import sockets
from agentv.extensions.agents.sockets import listening_at
from agentv.extensions.agents.trial.tool_calls import ToolCalls, function_failure
from agentv.model.suite.tools import FIRST_SANDBOX_PORT, McpServer, ScriptedServer
from agentv.model.suite.workspace import Network, ToolUse
from agentv.model.values.response import Failure
from agentv.model.values.trace import MessageStep, Step, ToolCallStep, Trace
from agentv.model.values.values import JsonObject
from agentv.ports import Executor
from agentv.user_code.files import temporary_prefix

if TYPE_CHECKING:
    from agentv.extensions.agents.trial.mcp_server import HttpServer, SocketServer


UNCONFIRMED = "unconfirmed_calls"
"""Key in a trace's metadata of the calls that the agent reports but that never reached the scripted tools."""

_SEPARATORS = (".", "_", "__", "/", "-")
"""Separators of server and tool in the names that agents give tools."""


def joined(trace: Trace | None, calls: Sequence[ToolCallStep], servers: Sequence[str]) -> Trace:
    """Merge the recorded calls into the agent's trace.

    A recorded call replaces the agent's report of it, in the same place. A recorded call that the agent does not report
    keeps its place among the recorded ones. A reported call that was never recorded is named in the metadata. It is
    left out, or kept under another name if the agent says that it failed, as an error of the agent and no call of the
    tool.

    Args:
        trace: trace of the agent; None if it reports none.
        calls: recorded calls, in order.
        servers: names of the scripted servers.
    """
    if trace is None:
        return Trace(tuple(calls), source="tools")
    reported = {place: step for place, step in enumerate(trace.steps) if isinstance(step, ToolCallStep)}
    seen: dict[int, ToolCallStep] = {}
    extra: dict[int, list[ToolCallStep]] = {}
    last = -1
    for call in calls:
        # with the same arguments if there is one, else the first of that name
        named = [place for place, step in reported.items() if _is_named(step, call)]
        place = next((one for one in named if reported[one].arguments == call.arguments), next(iter(named), None))
        if place is None:
            extra.setdefault(last, []).append(replace(call, started_ms=None))  # the agent's clock began later
            continue
        step = reported.pop(place)
        took = step.duration_ms if step.duration_ms is not None else call.duration_ms
        ours = replace(call, native_name=step.native_name, id=step.id, parent=step.parent)
        seen[place] = replace(ours, started_ms=step.started_ms, duration_ms=took)
        last = place
    missing = {place: step for place, step in reported.items() if _is_scripted(step, servers)}
    answers = [at for at, one in enumerate(trace.steps) if isinstance(one, MessageStep) and one.role == "assistant"]
    made: list[Step] = []
    begin = min([*seen, *answers[-1:], len(trace.steps)])  # if it reports none of them: before its last message
    for place, one in enumerate(trace.steps):
        made += extra.get(-1, ()) if place == begin else ()
        if place not in missing:
            made += [seen.get(place, one), *extra.get(place, ())]
        elif missing[place].status not in {"completed", "unknown"}:
            name = f"unconfirmed:{missing[place].name}"
            made.append(replace(missing[place], name=name, native_name=name))
    made += extra.get(-1, ()) if begin == len(trace.steps) else ()
    names = [step.name for step in missing.values()]
    metadata = {**trace.metadata, UNCONFIRMED: names} if names else trace.metadata
    return replace(trace, steps=tuple(made), metadata=metadata)


def _is_named(step: ToolCallStep, call: ToolCallStep) -> bool:
    """Whether a reported call may be a recorded one, judging by its name."""
    if step.evidence != "agent":
        return False
    server, _, tool = call.name.partition(".")
    if {step.name, step.native_name} & {call.name, *(f"{server}{separator}{tool}" for separator in _SEPARATORS)}:
        return True
    words = step.native_name.replace("(", " ").replace(")", " ").split()
    return call.native_name in (step.name, step.native_name, *words[:1])


def _is_scripted(step: ToolCallStep, servers: Sequence[str]) -> bool:
    """Whether a reported call is of a scripted tool. Names are compared case-insensitively, as in assertions."""
    names = (step.name.casefold(), step.native_name.casefold())
    ours = [f"{server.casefold()}{separator}" for server in servers for separator in _SEPARATORS]
    return any(name.startswith(one) for name in names for one in ours)


_HIDDEN_DIRECTORY = ".agentv-tools-"


async def start_tools(
    servers: Sequence[ScriptedServer], executor: Executor, directory: str = "", network: Network = "host"
) -> RunningTools | Failure:
    """Start scripted tools, or return a Failure. Functions of users run in workers.

    Args:
        servers: scripted servers of the case.
        executor: runs the functions.
        directory: absolute path of a directory for sockets, writable for agentv and visible to the agent under the
            same path, such as the HOME of its sandbox. Empty: a temporary directory, which must be visible as well.
        network: network of the agent; with `loopback`, servers over HTTP listen on sockets as well.
    """
    for tool in (tool for server in servers for tool in server.tools if tool.function):
        failure = await function_failure(tool, executor)
        if failure is not None:
            return failure
    running = RunningTools(servers, executor)
    try:
        await running.open(directory, network)
    except BaseException as error:
        await running.close()
        if isinstance(error, OSError):
            return Failure("cannot-start", f"the scripted tools cannot listen: {error}")
        raise
    return running


async def state_after(
    calls: Sequence[ToolUse], servers: Sequence[ScriptedServer], executor: Executor
) -> JsonObject | Failure:
    """Return the state of new instances of the servers after some calls, or a Failure if a call fails."""
    whole = [replace(one, tools=tuple(replace(tool, failure=None) for tool in one.tools)) for one in servers]
    fresh = {one.name: ToolCalls(one, executor, time.monotonic()) for one in whole}
    for call in calls:
        server, _, tool = call.tool.partition(".")
        result = await fresh[server].call(tool, call.args)
        if result.error is not None:
            return Failure("solution-failed", f"{call.tool} of the solution fails: {result.error}")
    return {name: one.state for name, one in fresh.items()}


class RunningTools:
    """The scripted tools of one trial."""

    def __init__(self, servers: Sequence[ScriptedServer], executor: Executor) -> None:
        began = time.monotonic()
        self._scripted = servers
        self._calls = {one.name: ToolCalls(one, executor, began) for one in servers}
        self._listening: list[SocketServer | HttpServer] = []
        self._directory = ""
        self.servers: tuple[McpServer, ...] = ()
        self.forwards: dict[int, str] = {}

    async def open(self, directory: str, network: Network = "host") -> None:
        """Start listening. For stdio servers, the agent starts a relay to a socket; the tools stay in this process.

        Raises:
            OSError: a server cannot listen.
        """
        from agentv.extensions.agents.trial.mcp_server import HttpServer, SocketServer, server_of

        made: list[McpServer] = []
        for number, one in enumerate(self._scripted):
            server = server_of(one, self._calls[one.name])
            if one.transport == "http" and network != "loopback":
                http = HttpServer(server)
                self._listening.append(http)
                made.append(McpServer(one.name, "http", url=await http.start()))
                continue
            relay, path = self._relay(directory), f"{self._directory}/{number}"
            if one.transport == "http":
                http, port = HttpServer(server), FIRST_SANDBOX_PORT + number
                self._listening.append(http)
                made.append(McpServer(one.name, "http", url=await http.start(listening_at(path), port)))
                self.forwards[port] = path
                continue
            sockets = SocketServer(server)
            self._listening.append(sockets)
            await sockets.start(listening_at(path))
            python = shutil.which("python3") or sys.executable  # in sandboxes too, since they show PATH
            made.append(McpServer(one.name, command=(python, "-I", "-S", relay, path)))
        self.servers = tuple(made)

    def _relay(self, directory: str) -> str:
        """Copy the relay next to the sockets on first use, and return its path."""
        if not self._directory:
            prefix = _HIDDEN_DIRECTORY if directory else temporary_prefix()
            self._directory = mkdtemp(prefix=prefix, dir=directory or None)
            shutil.copyfile(sockets.__file__, f"{self._directory}/relay.py")
        return f"{self._directory}/relay.py"

    def calls(self) -> tuple[ToolCallStep, ...]:
        """The calls that reached the tools, in order."""
        found = (step for calls in self._calls.values() for step in calls.record)
        return tuple(sorted(found, key=lambda step: step.started_ms or 0.0))

    def joined(self, trace: Trace | None) -> Trace:
        """Merge these calls into the agent's trace."""
        return joined(trace, self.calls(), tuple(self._calls))

    def failure(self) -> Failure | None:
        """Return a Failure if the agent never listed the tools, or if a tool is broken."""
        unlisted = [name for name, calls in self._calls.items() if not (calls.listed or calls.record)]
        if unlisted:
            return Failure("no-tools", f"the agent never asked for the tools of {', '.join(unlisted)}")
        broken = next((calls.broken for calls in self._calls.values() if calls.broken), None)
        return broken and Failure(broken.code, f"a scripted tool is broken: {broken.message}")

    def state(self) -> JsonObject:
        """Server name → the state that its functions kept."""
        return {name: calls.state for name, calls in self._calls.items()}

    async def close(self) -> None:
        """Stop listening, and remove the sockets."""
        await asyncio.gather(*(one.close() for one in self._listening))
        self._listening.clear()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
