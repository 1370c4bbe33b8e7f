"""Grades of plugins: their code runs apart from the engine, and its results are checked."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from agentv.model.run.context import Assertion, AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.suite.assertion import AssertionEntry
from agentv.user_code.functions.guard import ForeignError, foreign_code

RAISED = "assertion-raised"


async def grade_of_plugin(entry: AssertionEntry, context: AssertionContext) -> Grade:
    """The grade that a plugin's `grade` gives; errored where it raises, or returns anything else.

    A plain function runs on a thread. A coroutine runs here, where it reaches the judge, and must not block.
    """
    grade: Callable[[AssertionContext], Any] = cast("Assertion", entry.assertion).grade
    try:
        if inspect.iscoroutinefunction(grade):
            with foreign_code(RAISED, entry.type):
                given: object = await grade(context)
        else:
            given = await context.services.executor.call(partial(_graded, entry, grade, context))
            if inspect.isawaitable(given):
                given = await _awaited(entry, given)
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)
    if isinstance(given, Grade):
        denied = not given.passed and given.error is None
        return replace(given, has_own_threshold=True) if denied else given  # its own no counts 0 (SPEC section 10)
    return Grade.errored("bad-result", f"{entry.type} must return a Grade, and returned {type(given).__name__}")


def _graded(entry: AssertionEntry, grade: Callable[[AssertionContext], Any], context: AssertionContext) -> object:
    with foreign_code(RAISED, entry.type):
        return grade(context)


async def _awaited(entry: AssertionEntry, given: Awaitable[Any]) -> object:
    with foreign_code(RAISED, entry.type):
        return await given
