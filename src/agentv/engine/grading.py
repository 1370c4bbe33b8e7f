"""Grade an answer with assertions: transform, grade, negate, apply the threshold (SPEC section 7.1)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from msgspec import to_builtins
from msgspec.structs import replace

from agentv.model.run.context import Assertion, AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.suite.assertion import DEFAULTS, AssertionEntry
from agentv.model.suite.suite import CODE_TIMEOUT_S, JUDGE_TIMEOUT_S
from agentv.model.values.response import Failure
from agentv.model.values.values import Json
from agentv.ports import Clock
from agentv.user_code.deadline import Deadline, in_time
from agentv.user_code.guard import ForeignError, attempt, foreign_code

T = TypeVar("T")


class GraderCheck(Protocol):
    """Check whether entries may grade, such as that their files are unchanged since the run began."""

    def begin(self, entry: AssertionEntry) -> Failure | None:
        """Return why an entry must not grade, or None if it may; `end` must follow only then."""

    def end(self, entry: AssertionEntry) -> Failure | None:
        """Return why the entry's grade does not count, or None if it does."""


async def grade_entries(
    entries: Sequence[AssertionEntry], context: AssertionContext, clock: Clock, check: GraderCheck | None = None
) -> tuple[Score, ...]:
    """Grade with one entry after the other, and return their scores in the order of the entries.

    An error in one entry becomes its errored grade, and the others still run. In a workspace, entries that read files
    run before those whose commands may change files, so that they see what the agent left.
    """
    scores = []
    before = clock.monotonic()
    order = None
    if context.workspace_path is not None:
        order = sorted(range(len(entries)), key=lambda place: not _reads_files(entries[place]))
    for entry in entries if order is None else [entries[place] for place in order]:
        refused = check.begin(entry) if check is not None else None
        if refused is not None:
            grade = Grade.errored(refused.code, refused.message)
        else:
            try:
                given = (
                    _start_grading(entry, context) if entry.settings.transform is None else _reshaped(entry, context)
                )
                grade = given if isinstance(given, Grade) else await _finish_grading(entry, given, context)
            finally:  # its files must be unchanged after they were read, too
                refused = check.end(entry) if check is not None else None
            if refused is not None:
                grade = replace(grade, error=refused)
        if context.answered is not None or entry.settings.transform is not None:
            grade = grade.without_spans()
        now = clock.monotonic()
        scores.append(Score(entry, judged(entry, grade, context.threshold), (now - before) * 1000))
        before = now
    if order is None:
        return tuple(scores)
    return tuple(score for _, score in sorted(zip(order, scores, strict=True), key=lambda pair: pair[0]))


def _reads_files(entry: AssertionEntry) -> bool:
    """Return whether an entry reads files of the workspace and runs no code; a group does what any member does."""
    inner = getattr(entry.assertion, "inner", ())
    if inner:
        return any(map(_reads_files, inner)) and not any(map(_runs_code, inner))
    return bool(getattr(entry.assertion, "reads_files", False))


def _runs_code(entry: AssertionEntry) -> bool:
    inner = getattr(entry.assertion, "inner", ())
    return bool(getattr(entry.assertion, "runs_code", False)) or any(map(_runs_code, inner))


def judged(entry: AssertionEntry, grade: Grade, threshold: float) -> Grade:
    """Return the grade, negated if the entry says so, with the entry's own threshold applied.

    A required grade without its own threshold must also reach the case's (SPEC section 7.1).
    """
    settings = entry.settings
    if settings is DEFAULTS:
        return grade
    if settings.negate:
        grade = grade.negated()
    if settings.min_score is not None:
        return grade.passing_at(settings.min_score)
    return grade.required_at(threshold) if settings.required is True else grade


def _start_grading(entry: AssertionEntry, context: AssertionContext) -> Grade | Awaitable[Grade]:
    if entry.plugin:
        return grade_of_plugin(entry, context)
    assertion = cast("Assertion", entry.assertion)
    given = attempt(assertion.grade, context, "assertion-raised", entry.type)
    return Grade.errored(given.code, given.message) if isinstance(given, Failure) else given


async def _reshaped(entry: AssertionEntry, context: AssertionContext) -> Grade:
    from agentv.engine.transform import transformed

    transform = entry.settings.transform
    reshaped = await transformed(transform, context) if transform is not None else context
    if isinstance(reshaped, Failure):
        return Grade.errored(reshaped.code, reshaped.message)
    given = _start_grading(entry, reshaped)
    return given if isinstance(given, Grade) else await given


async def graded_in_time(
    given: Awaitable[T], entry: AssertionEntry, context: AssertionContext
) -> tuple[T | Failure, Deadline]:
    """Await a grade within its time limit and return both; a Failure names the setting to raise after a timeout.

    The limit is the entry's own, else that of its type, scaled by the `timeout_s` of its judge's target.
    """
    assertion, judge = entry.assertion, None
    if getattr(assertion, "needs_judge", False) is True:
        with suppress(LookupError, RuntimeError):  # the grade itself reports the missing judge
            judge = context.services.judge(getattr(assertion, "judge", None))
    seconds = getattr(assertion, "timeout_s", None) or CODE_TIMEOUT_S
    if judge is not None:
        seconds *= getattr(judge, "timeout_s", JUDGE_TIMEOUT_S) / JUDGE_TIMEOUT_S
    limit = Deadline(entry.settings.timeout_s or seconds)
    found = await in_time(given, limit, code="assertion-raised", what=entry.type, missing="grade")
    if judge is not None and isinstance(found, Failure) and found.code == "timeout":
        where = "" if entry.settings.timeout_s else f" of the judge '{getattr(judge, 'name', '')}', or"
        found = replace(found, message=f"{found.message}; raise 'timeout_s'{where} of the assertion")
    return found, limit


async def _finish_grading(entry: AssertionEntry, given: Awaitable[Grade], context: AssertionContext) -> Grade:
    grade, limit = await graded_in_time(given, entry, context)
    if isinstance(grade, Failure):
        grade = Grade.errored(grade.code, grade.message)
    if not limit.attempts:
        return grade
    retries: list[Json] = [to_builtins(one) for one in limit.attempts]  # failed calls of its judge that were retried
    return replace(grade, details={**grade.details, "judge_retries": retries})


RAISED = "assertion-raised"


async def grade_of_plugin(entry: AssertionEntry, context: AssertionContext) -> Grade:
    """Return the grade of a plugin's `grade`; an errored one if it raises or returns anything else.

    A plain function runs on a thread. A coroutine function runs on the event loop, from where it can call the judge,
    and must not block.
    """
    grade: Callable[[AssertionContext], Any] = cast("Assertion", entry.assertion).grade

    def begun() -> object:
        with foreign_code(RAISED, entry.type):
            return grade(context)

    try:
        given = begun() if inspect.iscoroutinefunction(grade) else await context.services.executor.call(begun)
        while inspect.isawaitable(given):  # a coroutine may return another one
            with foreign_code(RAISED, entry.type):
                given = await given
    except ForeignError as error:
        return Grade.errored(error.failure.code, error.failure.message)
    if isinstance(given, Grade):
        denied = not given.passed and given.error is None
        return replace(given, has_own_threshold=True) if denied else given  # a failed grade counts 0 (SPEC section 10)
    return Grade.errored("bad-result", f"{entry.type} must return a Grade, and returned {type(given).__name__}")
