"""Grading helpers: answers, entries with settings, and services that grade nested lists as the engine does."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

from agentv.engine.grading import grade_entries
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.run.trial import Score
from agentv.model.suite.assertion import AssertionEntry, AssertionSettings
from agentv.model.values.message import Message, ToolCall
from doubles.embedding import CountingEmbedder
from doubles.run_contexts import FixedClock


class NestedServices:
    """The services of a run that assertion sets and similarity need."""

    async def grade(self, entries: Any, context: AssertionContext) -> tuple[Score, ...]:
        return await grade_entries(entries, context, FixedClock())  # type: ignore[arg-type]

    def embedder(self, name: str | None) -> CountingEmbedder:
        return CountingEmbedder()


@dataclass(frozen=True, slots=True)
class FixedGrade:
    outcome: Grade
    name: str = "given"

    def label(self) -> str:
        return self.name

    def grade(self, context: AssertionContext) -> Grade:
        return self.outcome


@dataclass(frozen=True)
class CallbackAssertion:
    action: Any

    def label(self) -> str:
        return ""

    def grade(self, context: AssertionContext) -> Any:
        return self.action(context)


def answer(output: str | None = "", *, reference: Any = None, **known: Any) -> AssertionContext:
    """Return the context of an answer; `reference` is the content of the expected output."""
    expected = () if reference is None else (Message("assistant", reference),)
    return AssertionContext(input=(), output=output, expected_output=expected, _services=NestedServices(), **known)  # type: ignore[arg-type]


def answer_after_calls(*calls: ToolCall | str, **known: Any) -> AssertionContext:
    """Return the context of an answer after these tool calls."""
    made = tuple(call if isinstance(call, ToolCall) else ToolCall(call, {}) for call in calls)
    return answer("done", messages=(Message("assistant", "", tool_calls=made), Message("assistant", "done")), **known)


def entry(assertion: Any, kind: str = "given", **settings: Any) -> AssertionEntry:
    return AssertionEntry(kind, assertion, AssertionSettings(**settings))


def graded(assertion: Any, context: AssertionContext | str | None) -> Grade:
    """Return the grade of an assertion, awaited if necessary."""
    whole = context if isinstance(context, AssertionContext) else answer(context)
    grade = assertion.grade(whole)
    return asyncio.run(grade) if inspect.isawaitable(grade) else grade


def issues(assertion: Any) -> list[tuple[str, tuple[str | int, ...]]]:
    """Return the codes and positions of an assertion's issues with its options; warnings are marked."""
    return [(f"{'~' if fault.warning else ''}{fault.code}", fault.path) for fault in assertion.validate()]
