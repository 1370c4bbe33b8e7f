"""Tool calls in a transcript: matching names, and matching calls to expected ones."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from agentv.assertions.evidence import excerpt
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import PLACES, Check, Grade
from agentv.model.values.message import ToolCall
from agentv.model.values.tool_names import mcp_name

_NO_TRANSCRIPT = "the target reports no transcript, so its tool calls are unknown"

_SHOWN = 10


def no_calls(context: AssertionContext) -> Grade:
    """The grade of any type that checks tool calls if they are not all known."""
    if context.partial:
        return Grade.errored("no-data", f"the trace is partial, so its tool calls are not all known: {context.partial}")
    return Grade.errored("no-data", _NO_TRANSCRIPT)


def is_tool(tool: str, call: ToolCall) -> bool:
    """Whether a call is of the named tool. The name may be native, canonical, or in any form for MCP tools."""
    return tool in call.names or mcp_name(tool) in call.names


def fits_call(pattern: str, call: ToolCall) -> bool:
    """Whether a pattern matches one of a call's names."""
    return any(fits(one, name) for one in dict.fromkeys((pattern, mcp_name(pattern))) for name in call.names)


def call_names(calls: Sequence[ToolCall]) -> str:
    """The names of the called tools in order, as evidence."""
    if not calls:
        return "no tool was called"
    names = ", ".join(call.name for call in calls[:_SHOWN])
    return excerpt(f"called: {names}" + (f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""))


def share_of(checks: Sequence[Check]) -> Grade:
    """Return a grade that passes if all checks pass; its score is the share that pass."""
    passed = sum(check.passed for check in checks)
    return Grade(round(passed / len(checks), PLACES), passed == len(checks), tuple(checks))


def all_or_nothing(checks: Sequence[Check]) -> Grade:
    """Return a grade that passes with score 1 if all checks pass, and else fails with score 0."""
    passed = all(check.passed for check in checks)
    return Grade(1.0 if passed else 0.0, passed, tuple(checks))


def fits(pattern: str, name: str) -> bool:
    """Whether a pattern matches a name, ignoring case: `*` matches any characters, `?` one."""
    return fnmatchcase(name.casefold(), pattern.casefold().replace("[", "[[]"))


def in_order(fitting: Sequence[Sequence[bool]]) -> list[int | None]:
    """Match expected calls to the calls made, in order: for each, return the index of its match, or None.

    As many as possible are matched (longest common subsequence), so that a missing call does not affect later ones.

    Args:
        fitting: for each expected call, whether each call made fits it.
    """
    made = len(fitting[0]) if fitting else 0
    longest = [[0] * (made + 1) for _ in range(len(fitting) + 1)]
    for one in reversed(range(len(fitting))):
        for other in reversed(range(made)):
            without = max(longest[one + 1][other], longest[one][other + 1])
            longest[one][other] = longest[one + 1][other + 1] + 1 if fitting[one][other] else without
    found: list[int | None] = [None] * len(fitting)
    one = other = 0
    while one < len(fitting) and other < made:
        if fitting[one][other]:
            found[one] = other
            one, other = one + 1, other + 1
        elif longest[one + 1][other] > longest[one][other + 1]:
            one += 1
        else:
            other += 1
    return found


def in_any_order(fitting: Sequence[Sequence[bool]]) -> list[int | None]:
    """Match expected calls to different calls made: for each, return the index of its match, or None.

    As many as possible are matched, by augmenting paths (H. W. Kuhn, 1955). Taking the first fit could use up the only
    call that fits a later expected call.
    """
    taken: dict[int, int] = {}

    def place(one: int, tried: set[int]) -> bool:
        for other, fit in enumerate(fitting[one]):
            if not fit or other in tried:
                continue
            tried.add(other)
            if other not in taken or place(taken[other], tried):
                taken[other] = one
                return True
        return False

    for one in range(len(fitting)):
        place(one, set())
    found: list[int | None] = [None] * len(fitting)
    for other, one in taken.items():
        found[one] = other
    return found
