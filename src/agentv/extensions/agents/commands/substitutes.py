"""Substitutes for an agent: they do nothing, apply the solution, or copy work that was done elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.workspace import Solution, ToolUse, WorkspaceCommand
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace import MessageStep, Trace
from agentv.ports import Executor, Target, TargetRequest
from agentv.registry.fields import Command
from agentv.registry.types import ProviderSettings
from agentv.user_code.excerpts import tail
from agentv.user_code.processes import run_program

CaseKey: TypeAlias = tuple[str, str]
"""Name of a suite, and id of a case in it."""

Act = Callable[[TargetRequest], Awaitable[TargetResponse | Failure]]

NOTHING_DONE = "Done."
"""Answer of a substitute that did nothing, but claims to have."""

_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Substitute(ProviderSettings):
    """Settings and target of a substitute for an agent."""

    act: Act

    short: ClassVar[str | None] = None
    free: ClassVar[bool] = True
    confined: ClassVar[bool] = True

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return the substitute itself, which needs no connection."""
        del spec, executor
        return self

    def answer(self, request: TargetRequest) -> Awaitable[TargetResponse | Failure]:
        """Act in place of the agent."""
        return self.act(request)

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""


def substitute(name: str, act: Act) -> TargetSpec:
    """Return a target that calls a function in place of an agent."""
    return TargetSpec(name, "python", Substitute(act), public={"provider": "python", "function": name})


@dataclass(frozen=True, slots=True)
class NoAgent:
    """An agent that only connects to its tools and tries to read the hidden files.

    Attributes:
        hidden: case → absolute paths of its hidden files.
        readable: case → the hidden files that it could read.
    """

    hidden: dict[CaseKey, tuple[str, ...]]
    readable: dict[CaseKey, tuple[str, ...]]

    async def act(self, request: TargetRequest) -> TargetResponse | Failure:
        """Answer "Done." without doing anything."""
        paths = self.hidden.get(key_of(request), ())
        if paths and request.sandbox is not None:
            found = [path for path in paths if not await _run(WorkspaceCommand(argv=("test", "-r", path)), request)]
            if found:
                self.readable[key_of(request)] = tuple(found)
        return await _call_tools((), request) or _answer_without_calls(NOTHING_DONE)


@dataclass(frozen=True, slots=True)
class SolutionAgent:
    """An agent that applies the solution of each case and returns its reference answer.

    Attributes:
        solutions: case → its solution.
        answers: case → its reference answer, if it has one.
    """

    solutions: Mapping[CaseKey, Solution]
    answers: Mapping[CaseKey, str]

    async def act(self, request: TargetRequest) -> TargetResponse | Failure:
        """Apply the patch, copy the files, run the commands, and call the tools of the solution."""
        solution = self.solutions.get(key_of(request), Solution())
        if replace(solution, calls=()) != Solution() and request.workspace_path is None:
            return Failure("no-workspace", "the case has a 'solution' and no workspace to apply it to")
        failure = await _apply_solution(solution, request) or await _call_tools(solution.calls, request)
        return failure or _answer_without_calls(self.answers.get(key_of(request), NOTHING_DONE))


@dataclass(frozen=True, slots=True)
class PreparedWork:
    """A substitute whose work was done beforehand, in a prepared directory.

    Attributes:
        workspace: absolute path of the directory with the work.
        response: the answer; if None, assertions on the answer are errored.
        trace: trace of the work, if known.
    """

    workspace: str
    response: str | None
    trace: Trace | None

    async def act(self, request: TargetRequest) -> TargetResponse | Failure:
        """Replace the content of the workspace with that of the directory."""
        if request.workspace_path is not None:
            from agentv.extensions.agents.workspaces.placing import copy_directory, remove_content

            await asyncio.to_thread(remove_content, request.workspace_path)
            failure = await copy_directory(self.workspace, request.workspace_path)
            if failure is not None:
                return failure
        return TargetResponse(self.response, trace=self.trace)


def _answer_without_calls(text: str) -> TargetResponse:
    """Return an answer with a trace without tool calls."""
    return TargetResponse(text, trace=Trace((MessageStep("assistant", text),), source="substitute"))


def key_of(request: TargetRequest) -> CaseKey:
    """Return the case that a request belongs to."""
    return request.suite.partition("\0")[0], request.case_id


async def _call_tools(calls: Sequence[ToolUse], request: TargetRequest) -> Failure | None:
    """Connect to the scripted tools as an agent does, and make calls until one fails."""
    if not request.mcp_servers:
        return None
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with AsyncExitStack() as open_:
        sessions: dict[str, ClientSession] = {}
        for one in request.mcp_servers:
            started = StdioServerParameters(command=one.command[0], args=list(one.command[1:])) if one.command else None
            way = stdio_client(started) if started is not None else streamable_http_client(one.url)
            read, write, *_ = await open_.enter_async_context(way)
            sessions[one.name] = await open_.enter_async_context(ClientSession(read, write))
            await sessions[one.name].initialize()
            await sessions[one.name].list_tools()
        for call in calls:
            server, _, tool = call.tool.partition(".")
            result = await sessions[server].call_tool(tool, dict(call.args))
            if result.is_error:
                error = " ".join(getattr(one, "text", "") for one in result.content)
                return Failure("solution-failed", f"{call.tool} of the solution fails: {error}")
    return None


async def _apply_solution(solution: Solution, request: TargetRequest) -> Failure | None:
    failed: Failure | None = None
    if solution.patch:
        arguments = ("git", "apply", "--whitespace=nowarn", "-")
        failed = await _run(WorkspaceCommand(argv=arguments), request, solution.patch.encode())
    if failed is None and solution.files:
        from agentv.extensions.agents.workspaces.placing import place_files

        failed = await asyncio.to_thread(place_files, solution.files, request.workspace_path or "")
    for command in solution.commands:
        failed = failed or await _run(command, request)
    return failed


async def _run(command: WorkspaceCommand, request: TargetRequest, stdin: bytes = b"") -> Failure | None:
    """Run a command of the solution in the agent's sandbox."""
    words = ("/bin/sh", "-c", command.shell) if command.shell is not None else command.argv
    place = os.path.join(request.workspace_path or "", command.cwd)  # noqa: PTH118  # as text
    argv = words if request.sandbox is None else request.sandbox.argv(words, place)
    env, timeout_s = {**request.env, **command.env}, min(command.timeout_s, _TIMEOUT_S)
    ended = await run_program(Command(argv=argv, cwd=place), stdin=stdin, env=env, timeout_s=timeout_s)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        output = tail(ended.stderr or ended.stdout)
        return Failure("solution-failed", f"'{command}' of the solution exits with {ended.status}: {output}")
    return None
