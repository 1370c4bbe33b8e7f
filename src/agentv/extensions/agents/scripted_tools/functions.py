"""Functions of users that answer calls of scripted tools, in a worker."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentv.model.suite.suite import CODE_TIMEOUT_S
from agentv.model.suite.tools import ScriptedTool
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.ports import CodeCall, Executor, Raised
from agentv.user_code.functions.functions import arguments_for, plan_call

STATE = "state"
ARGUMENTS = "arguments"
"""What a function may ask for beside its parameters: what earlier calls of the trial kept, and all arguments."""
RAISED = "target-raised"


@dataclass(frozen=True, slots=True)
class Returned:
    """What a function gave, and the state that it left."""

    value: Json
    state: JsonObject


async def checked(tool: ScriptedTool, executor: Executor) -> Failure | None:
    """Why the function of a tool cannot be called."""
    found = await executor.python(_call(tool, "check", {"parameters": list(tool.parameters)}))
    return found if isinstance(found, Raised) else None


def check(function: Callable[..., Any], payload: Mapping[str, Any]) -> None:
    """In a worker: refuse a function that asks for what no call offers.

    Raises:
        ForeignError: it does.
    """
    plan_call(function, (*payload["parameters"], STATE, ARGUMENTS), ARGUMENTS)


async def called(
    tool: ScriptedTool, given: Mapping[str, Any], state: JsonObject, executor: Executor
) -> Returned | Failure:
    """Call a function with the state: what it changes counts only if it returns.

    Returns:
        A Failure `RAISED` for an exception, which is an answer to the agent; another code if the tool is broken.
    """
    try:
        async with asyncio.timeout(CODE_TIMEOUT_S):
            found = await executor.python(_call(tool, "call", {"given": given, "state": state}))
    except TimeoutError:
        return Failure("timeout", f"{tool.name} returned nothing within {CODE_TIMEOUT_S:g} s")
    if not isinstance(found, Raised):
        value, left = found.value
        return Returned(value, left)
    if found.code == "bad-result":
        return Failure("bad-result", f"{tool.name} must return JSON and keep JSON in its state: {found.cause}")
    return Failure(found.code, found.cause or found.message)


def call(function: Callable[..., Any], payload: Mapping[str, Any]) -> Any:
    """In a worker: what a function returns, and the state that it leaves."""
    given, state = payload["given"], payload["state"]
    value = function(**arguments_for(function, {**given, STATE: state, ARGUMENTS: dict(given)}, ARGUMENTS))
    return _awaited(value, state) if inspect.isawaitable(value) else (value, state)


async def _awaited(value: Awaitable[Any], state: JsonObject) -> Any:
    return await value, state


def _call(tool: ScriptedTool, adapter: str, payload: Mapping[str, Any]) -> CodeCall:
    file, _, name = tool.function.rpartition(":")
    return CodeCall(
        "world",
        f"agentv.extensions.agents.scripted_tools.functions:{adapter}",
        payload,
        code=RAISED,
        what=tool.name,
        function=name,
        file=file,
    )
