"""Check, answer and record the calls of a scripted server's tools. Functions of users run in a worker."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.suite.tools import ScriptedServer, ScriptedTool
from agentv.model.values.response import Failure
from agentv.model.values.trace import ToolCallStep
from agentv.model.values.values import Json, JsonObject
from agentv.ports import CodeCall, Executor, Raised
from agentv.user_code.functions import arguments_for, plan_call

STATE = "state"
ARGUMENTS = "arguments"
"""Further parameters that a function may have: the state kept by earlier calls of the trial, and all arguments."""
RAISED = "target-raised"


async def function_failure(tool: ScriptedTool, executor: Executor) -> Failure | None:
    """Return a Failure if the function of a tool cannot be called."""
    found = await executor.python(_call(tool, "check", {"parameters": list(tool.parameters)}))
    return found if isinstance(found, Raised) else None


def check(function: Callable[..., Any], payload: Mapping[str, Any]) -> None:
    """In a worker: raise if a function has parameters that calls do not provide.

    Raises:
        ForeignError: it has such parameters.
    """
    plan_call(function, (*payload["parameters"], STATE, ARGUMENTS), ARGUMENTS)


async def call_function(
    tool: ScriptedTool, given: Mapping[str, Any], state: JsonObject, executor: Executor
) -> tuple[Json, JsonObject] | Failure:
    """Call the function of a tool. Its changes to the state count only if it returns.

    Returns:
        The return value and the new state. A Failure with the code `RAISED` for an exception, which the agent gets as
        an answer, or with another code if the tool is broken.
    """
    try:
        async with asyncio.timeout(CODE_TIMEOUT_S):
            found = await executor.python(_call(tool, "call", {"given": given, "state": state}))
    except TimeoutError:
        return Failure("timeout", f"{tool.name} returned nothing within {CODE_TIMEOUT_S:g} s")
    if not isinstance(found, Raised):
        value, left = found.value
        return value, left
    if found.code == "bad-result":
        return Failure("bad-result", f"{tool.name} must return JSON and keep JSON in its state: {found.cause}")
    return Failure(found.code, found.cause or found.message)


def call(function: Callable[..., Any], payload: Mapping[str, Any]) -> Any:
    """In a worker: call a function, and return its value and the new state."""
    given, state = payload["given"], payload["state"]
    value = function(**arguments_for(function, {**given, STATE: state, ARGUMENTS: dict(given)}, ARGUMENTS))
    return _awaited(value, state) if inspect.isawaitable(value) else (value, state)


async def _awaited(value: Awaitable[Any], state: JsonObject) -> Any:
    return await value, state


def _call(tool: ScriptedTool, adapter: str, payload: Mapping[str, Any]) -> CodeCall:
    file, _, name = tool.function.rpartition(":")
    return CodeCall("world", f"{__name__}:{adapter}", payload, code=RAISED, what=tool.name, function=name, file=file)


TIMEOUT = "timeout"
MOST_CALLS = 10_000
MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call: its value, or the message of its error. If `timed_out`, the client gets only a timeout."""

    value: Json = None
    error: str | None = None
    timed_out: bool = False


class ToolCalls:
    """The tools of one server in one trial.

    Args:
        server: definition of the server.
        executor: runs users' code.
        began: start of the trial, by `time.monotonic`.

    Attributes:
        record: the calls so far, in order.
        state: the state that the functions keep.
        listed: whether the agent has listed the tools.
        broken: why a function could not answer, such as a crash of its process; None if all returned or raised.
    """

    def __init__(self, server: ScriptedServer, executor: Executor, began: float) -> None:
        self._server = server
        self._tools = {tool.name: tool for tool in server.tools}
        self._executor = executor
        self._began = began
        self._counts: Counter[str] = Counter()
        self._bytes = 0
        self._one_at_a_time = asyncio.Lock()
        self.record: list[ToolCallStep] = []
        self.state: JsonObject = server.state
        self.listed = False
        self.broken: Failure | None = None

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Result:
        """Answer a call. Calls of one server run one at a time, so that they cannot corrupt the state."""
        async with self._one_at_a_time:
            self._bytes += len(json.dumps(arguments))
            if len(self.record) >= MOST_CALLS or self._bytes > MOST_BYTES:
                return Result(error="too many calls")
            began = time.monotonic()
            result = await self._answer(name, arguments)
            step = ToolCallStep(
                name=f"{self._server.name}.{name}",
                arguments=dict(arguments),
                native_name=name,
                result=result.value,
                error=result.error,
                status="completed" if result.error is None else "failed",
                started_ms=round((began - self._began) * 1000, 3),
                duration_ms=round((time.monotonic() - began) * 1000, 3),
                evidence="tools",
            )
            self.record.append(step)
            return result

    async def _answer(self, name: str, arguments: Mapping[str, Any]) -> Result:
        tool = self._tools.get(name)
        if tool is None:
            return Result(error=f"unknown tool: {name}")
        self._counts[name] += 1
        wrong = _wrong_argument(tool, arguments)
        if wrong is not None:
            return Result(error=wrong)
        failure = tool.failure
        if failure is not None and (not failure.calls or self._counts[name] in failure.calls):
            timed_out = failure.error == TIMEOUT
            return Result(error="timed out" if timed_out else failure.error, timed_out=timed_out)
        if not tool.function:
            return Result(tool.returns)
        found = await call_function(tool, arguments, self.state, self._executor)
        if isinstance(found, Failure):
            self.broken = self.broken or (found if found.code != RAISED else None)
            return Result(error=found.message)
        value, self.state = found
        return Result(value)


def _wrong_argument(tool: ScriptedTool, arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, or None."""
    from agentv.matching.json_schema import schema_from

    found = schema_from(dict(tool.schema)).errors(arguments)
    complaint = found.message if isinstance(found, Failure) else next(iter(found), None)
    if not complaint:
        return None
    return f"invalid arguments for {tool.name}: {complaint.removeprefix('$.').removeprefix('$: ')}"
