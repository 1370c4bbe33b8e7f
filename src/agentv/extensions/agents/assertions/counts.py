"""Counts of a trace with a maximum: `tool-errors`, `permission-denials`, `turns` (AGENTS.md section 7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentv.assertions.evidence import excerpt
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.formatting import plural
from agentv.model.values.trace import Trace
from agentv.registry.fields import Count, DeclaredAssertion, Doc, Reads

_NO_TRACE = Grade.errored("no-data", "the target reports no trace, so it is not known what the agent did")
_FAILED = ("failed", "denied")
_SHOWN = 5


class _Counted(DeclaredAssertion):
    """Base of the types that count steps of the trace."""

    __slots__ = ()

    max: int

    def label(self) -> str:
        """The maximum."""
        return f"≤ {self.max}"

    def grade(self, context: AssertionContext) -> Grade:
        """Count."""
        trace = context.agent_trace
        if trace is None:
            return _NO_TRACE
        what, number, found = self._counted(trace)
        if trace.partial and number <= self.max:
            return Grade.errored("no-data", f"the trace is partial, so there may be more: {trace.partial}")
        names = Counter(found)
        evidence = ", ".join(f"{name} {times}×" if times > 1 else name for name, times in names.most_common(_SHOWN))
        said = plural(number, what)
        return Grade.of(
            number <= self.max,
            f"at most {plural(self.max, what)}",
            excerpt(f"{said}: {evidence}" if names else said),
        )

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        """What is counted, in the singular, how many there are, and the name of each that has one."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ToolErrors(_Counted):
    """No more calls of tools failed than allowed."""

    max: Annotated[Count, Doc("maximum number of failed calls")] = 0

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        failed = [call.name for call in trace.tool_calls if call.status in _FAILED or call.error is not None]
        return "tool error", len(failed), failed


@dataclass(frozen=True, slots=True)
class PermissionDenials(_Counted):
    """No more permissions were refused than allowed."""

    reads: ClassVar[Reads] = "call"

    max: Annotated[Count, Doc("maximum number of refused permissions")] = 0

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        return "permission denial", len(trace.denials), [step.tool for step in trace.denials]


@dataclass(frozen=True, slots=True)
class Turns(_Counted):
    """The agent called its model no more often than allowed."""

    reads: ClassVar[Reads] = "call"

    max: Annotated[Count, Doc("maximum number of turns: calls of the model, or messages of the agent")]

    short: ClassVar[str | None] = "max"

    def _counted(self, trace: Trace) -> tuple[str, int, list[str]]:
        return "turn", trace.turns, []
