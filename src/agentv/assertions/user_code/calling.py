"""Calls of users' Python functions that grade, in workers, and their results read as grades."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from agentv.assertions.services_for_workers import services_of
from agentv.assertions.user_code.result import BAD_RESULT, grade_of
from agentv.model.run.context import AssertionContext, wire_of_context
from agentv.model.run.grade import Grade
from agentv.model.values.values import JsonObject
from agentv.ports import CodeCall, Raised

Read = Callable[[object, str], Grade]
"""(what user code returned, whose code it is) → its grade."""


async def grade_in_worker(
    context: AssertionContext, call: CodeCall, config: JsonObject | None, read: Read = grade_of
) -> Grade:
    """The grade that a call leads to.

    Args:
        context: of the answer; the worker gets it with the payload.
        call: its payload is what the adapter gets beside the context.
        config: the context's `config` there; None: as it is.
        read: converts the return value to a grade.

    Returns:
        The grade; errored with `assertion-raised`, `cannot-load` or `user-code-died` if the code returns none.
    """
    payload = {**call.payload, "context": wire_of_context(context, config)}
    env = dict(context.env) or None
    found = await context.services.executor.python(
        replace(call, payload=payload, env=env, handler=services_of(context))
    )
    if not isinstance(found, Raised):
        return read(found.value, call.what)
    if found.code == BAD_RESULT and found.cause:
        wanted = "it must return a bool, a number, or an object with 'pass' or 'score'"
        return Grade.errored(BAD_RESULT, f"{call.what} returned {found.cause}; {wanted}")
    return Grade.errored(found.code, found.message)
