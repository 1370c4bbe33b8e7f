"""Calls of users' Python functions: on threads of theirs, guarded, their results read as grades."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from agentv.assertions.user_code.result import grade_of
from agentv.model.run.grade import Grade
from agentv.ports import Executor
from agentv.user_code.functions.guard import ForeignError, foreign_code

RAISED = "assertion-raised"


Read = Callable[[object, str], Grade]
"""(what user code returned, whose code it is) → its grade."""


async def grade_on_thread(subject: str, call: Callable[[], object], executor: Executor, read: Read = grade_of) -> Grade:
    """The grade that a call leads to. What an `async def` returns is awaited on the users' event loop.

    Args:
        subject: whose code it is, for messages.
        call: loads and calls the user's function.
        executor: runs calls where one that never returns blocks nothing else.
        read: converts the return value to a grade.

    Returns:
        The grade; errored with `assertion-raised` or `cannot-load` where the code raises or calls `sys.exit`.
    """
    try:
        outcome = await executor.call(lambda: _outcome(subject, call, read))
        if isinstance(outcome, Grade):
            return outcome
        return await executor.call_async(lambda: _awaited(subject, outcome, read))
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)


async def grade_coroutine(subject: str, call: Callable[[], object], executor: Executor, read: Read = grade_of) -> Grade:
    """As `grade_on_thread`, for a call that is known to return a coroutine and to run none of it."""
    try:
        return await executor.call_async(lambda: _made_there(subject, call, read))
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)


def _outcome(subject: str, call: Callable[[], object], read: Read = grade_of) -> Grade | Awaitable[object]:
    with foreign_code(RAISED, subject):
        value = call()
        return value if inspect.isawaitable(value) else read(value, subject)


async def _made_there(subject: str, call: Callable[[], object], read: Read) -> Grade:
    outcome = _outcome(subject, call, read)
    return outcome if isinstance(outcome, Grade) else await _awaited(subject, outcome, read)


async def _awaited(subject: str, outcome: Awaitable[object], read: Read = grade_of) -> Grade:
    with foreign_code(RAISED, subject):
        return read(await outcome, subject)
