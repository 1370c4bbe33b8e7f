"""Limits of an agent's work: one that it passed, and what a failed call comes to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agentv.model.suite.workspace import WorkLimits
from agentv.model.values.formatting import plural
from agentv.model.values.message import Message
from agentv.model.values.response import CallFailure, Failure, TargetResponse

_LIMIT_CODES = frozenset({"agent-limit", "timeout"})
"""Failures of an agent that reached a limit, or its time."""


def exceeded(
    limits: WorkLimits, messages: Sequence[Message], recorded: int, counted: int | None, *, has_trace: bool
) -> Failure | None:
    """The limit that an agent passed, though nothing ended it.

    Args:
        limits: of the trial.
        messages: of its transcript.
        recorded: number of calls that its scripted tools recorded.
        counted: number of model calls that passed the gateway; None: they do not pass it.
        has_trace: the agent reports what it did.
    """
    turns = sum(message.role == "assistant" for message in messages)
    calls = max(recorded, sum(len(message.tool_calls) for message in messages))
    if counted is not None and not messages:
        turns = counted
    unseen = limits.max_turns is not None and counted is None
    unknown = unseen or (limits.max_tool_calls is not None and not recorded)
    if unknown and not messages and not has_trace:
        return Failure("no-data", "the target reports no transcript, so that its limits cannot be checked")
    for most, found, what in ((limits.max_turns, turns, "turn"), (limits.max_tool_calls, calls, "tool call")):
        if most is not None and found > most:
            return Failure("agent-limit", f"the agent took {plural(found, what)}, and the limit is {most}")
    return None


def limited(answer: Failure, *, grades: bool) -> TargetResponse | Failure:
    """What a failed call comes to: a limit that was reached is `agent-limit`, or the work is graded as it is.

    Args:
        answer: the failure.
        grades: the work of an agent at its limit is graded.
    """
    if answer.code not in _LIMIT_CODES:
        return answer
    response = answer.response if isinstance(answer, CallFailure) else None
    if grades:
        return response or TargetResponse(None)
    if answer.code == "agent-limit":
        return answer
    message = f"{answer.message}; `on_limit: grade` grades what it did until then"
    if isinstance(answer, CallFailure):
        return replace(answer, code="agent-limit", message=message, retryable=False)
    return Failure("agent-limit", message)
