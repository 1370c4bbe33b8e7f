"""Calls of users' Python functions: on a thread, guarded, their results read as grades."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from agentv.assertions.result import grade_of
from agentv.foreign.guard import ForeignError, foreign_code
from agentv.model.grade import Grade
from agentv.ports import Executor

RAISED = "assertion-raised"


async def grade_on_thread(subject: str, call: Callable[[], object], executor: Executor) -> Grade:
    """The grade that a call leads to. What an `async def` returns is awaited here, not on the thread.

    Args:
        subject: whose code it is, for messages.
        call: loads and calls the user's function.
        executor: where a call that never returns holds up nobody else.

    Returns:
        The grade; errored with `assertion-raised` or `cannot-load` where the code raises or calls `sys.exit`.
    """
    try:
        return await _settled(subject, await executor.call(lambda: _outcome(subject, call)))
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)


async def grade_coroutine(subject: str, call: Callable[[], object]) -> Grade:
    """As `grade_on_thread`, for a call that is known to return a coroutine and to run none of it."""
    try:
        return await _settled(subject, _outcome(subject, call))
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)


def _outcome(subject: str, call: Callable[[], object]) -> Grade | Awaitable[object]:
    with foreign_code(RAISED, subject):
        value = call()
        return value if inspect.isawaitable(value) else grade_of(value, subject)


async def _settled(subject: str, outcome: Grade | Awaitable[object]) -> Grade:
    if isinstance(outcome, Grade):
        return outcome
    with foreign_code(RAISED, subject):
        return grade_of(await outcome, subject)
